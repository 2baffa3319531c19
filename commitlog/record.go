package commitlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/rocketstore/rocketstore/message"
)

// The magic codes.
const (
	MagicV1    uint32 = 0xDAA320A7
	MagicV2    uint32 = 0xDAA320AB // two-byte topic length, 5.1.0+
	MagicBlank uint32 = 0xCBD43194 // fills the end of a segment
)

// BlankSize is the length of a blank's header, and what must be left of a segment behind each record.
const BlankSize = 8

// Positions of fields that are read or filled in without decoding the whole record.
const (
	posMagic          = 4
	posBodyCRC        = 8
	posQueueID        = 12
	posFlag           = 16
	posQueueOffset    = 20
	posPhysicalOffset = 28
	posSysFlag        = 36
	posBornTimestamp  = 40
	posBornHost       = 48
	posStoreTimestamp = 56 // 12 later when the born host is IPv6

	fixedSize = 4 + 4 + 4 + 4 + 4 + 8 + 8 + 4 + 8 + 8 + 8 + 8 + 4 + 8 + 4 + 1 + 2
	ipv6Extra = 12

	// MinRecordSize is the length of a version 1 record with IPv4 hosts and no body, topic or properties.
	MinRecordSize = fixedSize
)

// Record is one message as the commit log stores it.
//
//	position  size    field
//	0         4       Size: the whole record, this field included
//	4         4       Magic: DAA320A7 version 1, DAA320AB version 2
//	8         4       BodyCRC: CRC-32 of the body without its top bit, 0 for no body
//	12        4       QueueID
//	16        4       Flag: the producer's own
//	20        8       QueueOffset (of a prepared or rollback record of 3.1: number in the state table)
//	28        8       PhysicalOffset: where the record's first byte lies
//	36        4       SysFlag
//	40        8       BornTimestamp, ms
//	48        8 / 20  BornHost: address and 4-byte port; 20 bytes when SysFlag has bit 4
//	56        8       StoreTimestamp, ms
//	64        8 / 20  StoreHost; 20 bytes when SysFlag has bit 5
//	72        4       ReconsumeTimes
//	76        8       PreparedTransactionOffset
//	84        4 + n   body length and Body
//	88 + n    1 / 2   topic length (version 2: two bytes) and Topic
//	          2 + p   properties length and Properties
//
// All fields are big-endian and signed. Positions are for IPv4 hosts and version 1.
type Record struct {
	Size                      int32
	Magic                     uint32
	BodyCRC                   uint32
	QueueID                   int32
	Flag                      int32
	QueueOffset               int64
	PhysicalOffset            int64
	SysFlag                   message.SysFlag
	BornTimestamp             int64
	BornHost                  message.Host
	StoreTimestamp            int64
	StoreHost                 message.Host
	ReconsumeTimes            int32
	PreparedTransactionOffset int64
	Body                      []byte
	Topic                     []byte
	Properties                []byte
}

// Reasons why bytes are no record; [Decode] wraps them.
var (
	ErrMagic = errors.New("no record: wrong magic")
	ErrSize  = errors.New("no record: its lengths do not add up")
	ErrCRC   = errors.New("body CRC does not match")
	ErrPlace = errors.New("record at another place than it says")
	ErrTorn  = errors.New("part of the record was never written")
)

// IsBlank says whether b starts with the header of a blank, which ends a segment.
func IsBlank(b []byte) bool {
	return len(b) >= BlankSize && binary.BigEndian.Uint32(b[posMagic:]) == MagicBlank
}

// AppendBlank appends the 8 header bytes of a blank that stands for left bytes.
func AppendBlank(b []byte, left int) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(left))
	return binary.BigEndian.AppendUint32(b, MagicBlank)
}

// Decode reads the record at the start of b. Body, Topic and Properties alias b. It checks the magic and that the
// lengths add up to Size, but neither the CRC ([Record.CheckBody]) nor the place. The errors match ErrMagic or ErrSize.
func Decode(b []byte) (Record, error) {
	var r Record
	err := r.decode(b)
	return r, err
}

// decode is Decode into r: a scan decodes millions into the same variable.
func (r *Record) decode(b []byte) error {
	at, err := r.decodeHead(b)
	if err != nil {
		return err
	}
	return r.decodeTail(b, at)
}

// decodeChecked is decode that says, if asked, what is wrong with the body too. That is asked before anything behind the body is
// read, so that memory is read in one direction, as it is fetched ahead. Without an error each field of r is set.
func (r *Record) decodeChecked(b []byte, check bool) (wrongBody, err error) {
	at, err := r.decodeHead(b)
	if err != nil {
		return nil, err
	}
	if check {
		wrongBody = r.CheckBody()
	}
	return wrongBody, r.decodeTail(b, at)
}

// decodeHead reads all up to the end of the body, and gives that.
func (r *Record) decodeHead(b []byte) (int, error) {
	if len(b) < BlankSize {
		return 0, fmt.Errorf("%w: %d bytes left", ErrSize, len(b))
	}
	r.Size = int32(binary.BigEndian.Uint32(b))
	r.Magic = binary.BigEndian.Uint32(b[posMagic:])
	topicWidth := 1
	switch r.Magic {
	case MagicV1:
	case MagicV2:
		topicWidth = 2
	default:
		return 0, fmt.Errorf("%w %08x", ErrMagic, r.Magic)
	}
	if int64(r.Size) < fixedSize || int64(r.Size) > int64(len(b)) {
		return 0, fmt.Errorf("%w: size %d, %d bytes left", ErrSize, r.Size, len(b))
	}
	b = b[:r.Size:r.Size]
	r.BodyCRC = binary.BigEndian.Uint32(b[8:])
	r.QueueID = int32(binary.BigEndian.Uint32(b[12:]))
	r.Flag = int32(binary.BigEndian.Uint32(b[16:]))
	r.QueueOffset = int64(binary.BigEndian.Uint64(b[posQueueOffset:]))
	r.PhysicalOffset = int64(binary.BigEndian.Uint64(b[posPhysicalOffset:]))
	r.SysFlag = message.SysFlag(binary.BigEndian.Uint32(b[posSysFlag:]))
	r.BornTimestamp = int64(binary.BigEndian.Uint64(b[posBornTimestamp:]))
	bornIPv6, storeIPv6 := r.SysFlag.Has(message.FlagBornHostIPv6), r.SysFlag.Has(message.FlagStoreHostIPv6)
	if need := minSize(topicWidth, bornIPv6, storeIPv6); int(r.Size) < need {
		return 0, fmt.Errorf("%w: size %d, at least %d for its hosts", ErrSize, r.Size, need)
	}
	at := posBornHost
	r.BornHost, _ = message.DecodeHost(b[at:], bornIPv6)
	at += r.BornHost.Size()
	r.StoreTimestamp = int64(binary.BigEndian.Uint64(b[at:]))
	at += 8
	r.StoreHost, _ = message.DecodeHost(b[at:], storeIPv6)
	at += r.StoreHost.Size()
	r.ReconsumeTimes = int32(binary.BigEndian.Uint32(b[at:]))
	r.PreparedTransactionOffset = int64(binary.BigEndian.Uint64(b[at+4:]))
	n := int64(int32(binary.BigEndian.Uint32(b[at+12:])))
	at += 16
	if n < 0 || n > int64(len(b)-at-topicWidth-2) {
		return 0, fmt.Errorf("%w: size %d, body length %d", ErrSize, r.Size, n)
	}
	r.Body = b[at : at+int(n) : at+int(n)]
	return at + int(n), nil
}

// decodeTail reads topic and properties; at is where the body ends, which [Record.decodeHead] gave.
func (r *Record) decodeTail(b []byte, at int) error {
	b = b[:r.Size:r.Size]
	t := int(int8(b[at]))
	if r.Magic == MagicV2 {
		t = int(int16(binary.BigEndian.Uint16(b[at:])))
		at++
	}
	at++
	if t < 0 || t > len(b)-at-2 {
		return fmt.Errorf("%w: size %d, topic length %d", ErrSize, r.Size, t)
	}
	r.Topic = b[at : at+t : at+t]
	at += t
	p := int(int16(binary.BigEndian.Uint16(b[at:])))
	at += 2
	if p != len(b)-at {
		return fmt.Errorf("%w: size %d, properties length %d where %d bytes are left", ErrSize, r.Size, p, len(b)-at)
	}
	r.Properties = b[at:]
	return nil
}

func minSize(topicWidth int, bornIPv6, storeIPv6 bool) int {
	n := fixedSize - 1 + topicWidth
	if bornIPv6 {
		n += ipv6Extra
	}
	if storeIPv6 {
		n += ipv6Extra
	}
	return n
}

// CheckBody compares the body with its CRC; the error matches ErrCRC. A record without a body is not checked, as in Java.
func (r *Record) CheckBody() error {
	if len(r.Body) == 0 {
		return nil
	}
	if crc := message.CRC(r.Body); crc != r.BodyCRC {
		return fmt.Errorf("%w: %08x computed, %08x stored", ErrCRC, crc, r.BodyCRC)
	}
	return nil
}

// AppendTo appends the record's bytes with every field as it stands; the lengths, the record's size and the width of the
// topic length come from the fields that they measure and from Magic. The host bits of SysFlag must fit the hosts.
func (r *Record) AppendTo(b []byte) []byte {
	return appendTexts(r.appendHead(b, r.EncodedSize()), r.Magic, r.Topic, r.Properties)
}

// appendHead appends what stands before the topic's length, with room for a record of so many bytes.
func (r *Record) appendHead(b []byte, size int) []byte {
	b = slices.Grow(b, size)
	h := b[len(b) : len(b)+posBornHost]
	binary.BigEndian.PutUint32(h, uint32(size))
	binary.BigEndian.PutUint32(h[posMagic:], r.Magic)
	binary.BigEndian.PutUint32(h[posBodyCRC:], r.BodyCRC)
	binary.BigEndian.PutUint32(h[posQueueID:], uint32(r.QueueID))
	binary.BigEndian.PutUint32(h[posFlag:], uint32(r.Flag))
	binary.BigEndian.PutUint64(h[posQueueOffset:], uint64(r.QueueOffset))
	binary.BigEndian.PutUint64(h[posPhysicalOffset:], uint64(r.PhysicalOffset))
	binary.BigEndian.PutUint32(h[posSysFlag:], uint32(r.SysFlag))
	binary.BigEndian.PutUint64(h[posBornTimestamp:], uint64(r.BornTimestamp))
	b = r.BornHost.AppendTo(b[:len(b)+posBornHost])
	b = binary.BigEndian.AppendUint64(b, uint64(r.StoreTimestamp))
	b = r.StoreHost.AppendTo(b)
	b = binary.BigEndian.AppendUint32(b, uint32(r.ReconsumeTimes))
	b = binary.BigEndian.AppendUint64(b, uint64(r.PreparedTransactionOffset))
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Body)))
	return append(b, r.Body...)
}

// appendTexts appends topic and properties, each behind its length.
func appendTexts[T, P []byte | string | message.Properties](b []byte, magic uint32, topic T, properties P) []byte {
	if magic == MagicV2 {
		b = append(b, byte(len(topic)>>8))
	}
	b = append(append(b, byte(len(topic))), topic...)
	b = append(b, byte(len(properties)>>8), byte(len(properties)))
	return append(b, properties...)
}

// EncodedSize is the number of bytes that AppendTo appends.
func (r *Record) EncodedSize() int {
	width := 1
	if r.Magic == MagicV2 {
		width = 2
	}
	return minSize(width, r.BornHost.Is6(), r.StoreHost.Is6()) + len(r.Body) + len(r.Topic) + len(r.Properties)
}

// Message copies the record's message out of the mapping.
func (r *Record) Message() *message.Message {
	return &message.Message{
		Topic: string(r.Topic), QueueID: r.QueueID, Flag: r.Flag, SysFlag: r.SysFlag, BornTimestamp: r.BornTimestamp,
		BornHost: r.BornHost, StoreHost: r.StoreHost, ReconsumeTimes: r.ReconsumeTimes,
		PreparedTransactionOffset: r.PreparedTransactionOffset,
		Body:                      append([]byte(nil), r.Body...),
		Properties:                message.Properties(r.Properties),
	}
}

// ID is the record's offset message id.
func (r *Record) ID() string { return message.OffsetID(r.StoreHost, r.PhysicalOffset) }
