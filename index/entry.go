package index

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rocketstore/rocketstore/message"
)

// EntrySize is the length in bytes of an entry, SlotSize that of a slot.
const (
	EntrySize = 20
	SlotSize  = 4
)

// Entry is one key of one message.
//
//	offset  size  field           value
//	0       4     KeyHash         of topic#key: 3.1 signed, 4.x and 5.x the absolute value ([KeyHash])
//	4       8     PhysicalOffset  where the record starts in the commit log
//	12      4     TimeDiff        seconds from the header's BeginTimestamp to the store time, rounded down
//	16      4     Previous        number of the next older entry of the chain; 0: none
//
// All fields are big-endian and signed; there is no checksum. TimeDiff of entry 1 of a file that follows a full one counts
// from the end of that file, though the header has the entry's own time (formats.md 6).
type Entry struct {
	KeyHash        int32
	PhysicalOffset int64
	TimeDiff       int32 // seconds
	Previous       int32 // number of an entry
}

var (
	errEntry = errors.New("impossible index entry")
	errChain = errors.New("broken index chain")
)

// DecodeEntry reads the entry in the first [EntrySize] bytes of b. It fails only when b is shorter; whether the entry can be
// believed is for [Entry.Check] to say. The result does not alias b.
func DecodeEntry(b []byte) (Entry, error) {
	if len(b) < EntrySize {
		return Entry{}, fmt.Errorf("%w: an index entry has %d, there are %d", errShort, EntrySize, len(b))
	}
	return decodeEntry(b), nil
}

// decodeEntry is DecodeEntry for callers that know the length.
func decodeEntry(b []byte) Entry {
	_ = b[EntrySize-1]
	return Entry{
		KeyHash:        int32(binary.BigEndian.Uint32(b)),
		PhysicalOffset: int64(binary.BigEndian.Uint64(b[4:])),
		TimeDiff:       int32(binary.BigEndian.Uint32(b[12:])),
		Previous:       int32(binary.BigEndian.Uint32(b[16:])),
	}
}

// AppendTo appends the entry's 20 bytes to b.
func (e Entry) AppendTo(b []byte) []byte {
	var raw [EntrySize]byte
	e.put(raw[:])
	return append(b, raw[:]...)
}

// put writes the entry's bytes to the start of b.
func (e Entry) put(b []byte) {
	_ = b[EntrySize-1]
	binary.BigEndian.PutUint32(b, uint32(e.KeyHash))
	binary.BigEndian.PutUint64(b[4:], uint64(e.PhysicalOffset))
	binary.BigEndian.PutUint32(b[12:], uint32(e.TimeDiff))
	binary.BigEndian.PutUint32(b[16:], uint32(e.Previous))
}

// Check says what cannot be in the entry of that number. A chain only goes to smaller numbers, so it cannot be a circle.
func (e Entry) Check(number int32) error {
	switch {
	case e.PhysicalOffset < 0:
		return fmt.Errorf("%w %d: offset %d", errEntry, number, e.PhysicalOffset)
	case e.TimeDiff < 0:
		return fmt.Errorf("%w %d: time difference %d", errEntry, number, e.TimeDiff)
	case e.Previous < 0 || e.Previous >= number:
		return fmt.Errorf("%w: entry %d says that the one before it is %d", errChain, number, e.Previous)
	}
	return nil
}

// KeyHash is the signed hash of a key: Java's String.hashCode of topic#key. In a file it is as it is or its absolute value
// ([message.AbsHash]), by dialect; in both kinds the smallest integer is stored as 0.
func KeyHash(topic, key string) int32 { return keyHash(topicHash(topic), key) }

// topicHash is the hash of topic#, and keyHash goes on with a key.
func topicHash[T string | []byte](topic T) int32 {
	return message.HashMore(message.HashMore(0, topic), "#")
}

func keyHash[T string | []byte](topicHash int32, key T) int32 {
	return message.HashMore(topicHash, key)
}

// Slot is the number of the slot of a hash, signed or absolute, among so many; there is at least one.
func Slot(hash, slots int32) int32 { return message.AbsHash(hash) % slots }
