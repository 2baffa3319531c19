package txstate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// RecordSize is the length of one record in bytes.
const RecordSize = 24

// statePos is where in a record its state is, the only part that ever changes.
const statePos = 20

// State is what became of a prepared message: bits 2 and 3 of the system flag, in place (R-B-03).
type State int32

// The states that a record may have.
const (
	Prepared   State = 4
	Committed  State = 8
	RolledBack State = 12
)

// Valid says whether a record may have the state.
func (s State) Valid() bool { return s == Prepared || s == Committed || s == RolledBack }

// String is "prepared", "committed", "rolled back" or the number of a state that there is not.
func (s State) String() string {
	switch s {
	case Prepared:
		return "prepared"
	case Committed:
		return "committed"
	case RolledBack:
		return "rolled back"
	}
	return strconv.Itoa(int(s))
}

// Why a record cannot be believed.
var (
	errShort  = errors.New("shorter than one record")
	errOffset = errors.New("negative commit log offset")
	errSize   = errors.New("message size is not positive")
	errState  = errors.New("unknown state")
)

// Record is one row of the transaction state table (formats.md 8.1).
//
//	offset  size  field         value
//	0       8     CommitOffset  physical offset of the prepared message
//	8       4     Size          bytes of that message in the commit log
//	12      4     StoredAt      store time, Unix seconds
//	16      4     GroupHash     Java String.hashCode of the producer group
//	20      4     State         4 prepared, 8 committed, 12 rolled back
//
// All fields are big-endian. There is no checksum, so a torn record shows only as an impossible field, if at all.
type Record struct {
	CommitOffset int64
	Size         int32
	StoredAt     int32
	GroupHash    int32
	State        State
}

// Decode reads the record that b begins with. The result does not alias b. It refuses what 3.1 takes for the end of the
// table (R-B-53): a negative offset, a size that is not positive, a state other than the three.
func Decode(b []byte) (Record, error) {
	if len(b) < RecordSize {
		return Record{}, fmt.Errorf("%w: %d bytes", errShort, len(b))
	}
	r := decode(b)
	return r, r.check()
}

// decode reads a record whatever its fields hold.
func decode(b []byte) Record {
	return Record{
		CommitOffset: int64(binary.BigEndian.Uint64(b)),
		Size:         int32(binary.BigEndian.Uint32(b[8:])),
		StoredAt:     int32(binary.BigEndian.Uint32(b[12:])),
		GroupHash:    int32(binary.BigEndian.Uint32(b[16:])),
		State:        State(binary.BigEndian.Uint32(b[statePos:])),
	}
}

// possible is check without the words.
func (r Record) possible() bool { return r.CommitOffset >= 0 && r.Size > 0 && r.State.Valid() }

// check says what is impossible in a record.
func (r Record) check() error {
	switch {
	case r.possible():
		return nil
	case r.CommitOffset < 0:
		return fmt.Errorf("%w: %d", errOffset, r.CommitOffset)
	case r.Size <= 0:
		return fmt.Errorf("%w: %d", errSize, r.Size)
	default:
		return fmt.Errorf("%w %d", errState, int32(r.State))
	}
}

// AppendTo appends the record's 24 bytes to b.
func (r Record) AppendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(r.CommitOffset))
	b = binary.BigEndian.AppendUint32(b, uint32(r.Size))
	b = binary.BigEndian.AppendUint32(b, uint32(r.StoredAt))
	b = binary.BigEndian.AppendUint32(b, uint32(r.GroupHash))
	return binary.BigEndian.AppendUint32(b, uint32(r.State))
}

// Seconds is the store time in Unix seconds, read as unsigned so that it holds until 2106: the original's 32-bit field
// turns negative in January 2038 (R-B-11).
func (r Record) Seconds() int64 { return int64(uint32(r.StoredAt)) }

// SecondsOf is the StoredAt of a message stored at millis, Unix milliseconds: whole seconds, wrapped to 32 bits as 3.1 does.
func SecondsOf(millis int64) int32 { return int32(millis / 1000) }

// Filler is the record for a slot whose message is not known, made from near, the nearest lower known prepared record or,
// without one, the next higher. It has that message's place and time, hash 0, and counts as rolled back (R-B-51 and its
// correction): the original's walk would end at a slot of size 0.
func Filler(near Record) Record {
	near.GroupHash, near.State = 0, RolledBack
	return near
}
