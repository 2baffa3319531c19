package client

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/rocketstore/rocketstore/message"
)

// ErrRecord says that bytes which a broker sent are not a message's record.
var ErrRecord = errors.New("no message record")

const (
	magicV1, magicV2 = 0xDAA320A7, 0xDAA320AB
	// recordFixed is the length of a record of version 1 with IPv4 hosts and nothing of variable length.
	recordFixed = 4 + 4 + 4 + 4 + 4 + 8 + 8 + 4 + 8 + 8 + 8 + 8 + 4 + 8 + 4 + 1 + 2
)

// DecodeRecords yields the messages of a pull's, query's or check's body, which is one stored record after another
// (docs/formats.md section 4). Bodies are decompressed, up to maxBody bytes, and alias b where they were not compressed; flags and
// BodyCRC stay as stored. A record whose lengths cannot be believed ends the sequence with a nil message and an error that matches
// [ErrRecord]. A body that does not fit its CRC or cannot be decompressed gives an error together with the message as it was stored,
// and the sequence goes on.
func DecodeRecords(b []byte, maxBody int) iter.Seq2[*message.Received, error] {
	return func(yield func(*message.Received, error) bool) {
		for at := 0; at < len(b); {
			m, err := decodeRecord(b[at:])
			if err != nil {
				yield(nil, fmt.Errorf("%w: byte %d of %d: %w", ErrRecord, at, len(b), err))
				return
			}
			at += int(m.StoreSize)
			if !yield(m, openBody(m, maxBody)) {
				return
			}
		}
	}
}

// openBody checks and decompresses the body of m.
func openBody(m *message.Received, maxBody int) error {
	if crc := message.CRC(m.Body); len(m.Body) > 0 && crc != m.BodyCRC {
		return fmt.Errorf("%w: message %s: body CRC %08x, computed %08x", ErrRecord, m.OffsetID(), m.BodyCRC, crc)
	}
	plain, err := Decompress(m.Body, m.SysFlag, maxBody)
	if err != nil {
		return fmt.Errorf("message %s: %w", m.OffsetID(), err)
	}
	m.Body = plain
	return nil
}

// fieldReader takes fields off the front of b; once one did not fit, short stays true and all others are zero.
type fieldReader struct {
	b     []byte
	short bool
}

func (r *fieldReader) take(n int64) []byte {
	if r.short || n < 0 || n > int64(len(r.b)) {
		r.short = true
		return nil
	}
	head := r.b[:n:n]
	r.b = r.b[n:]
	return head
}

func (r *fieldReader) int8() int8 {
	if b := r.take(1); b != nil {
		return int8(b[0])
	}
	return 0
}

func (r *fieldReader) int16() int16 {
	if b := r.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *fieldReader) int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *fieldReader) int64() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *fieldReader) host(ipv6 bool) message.Host {
	n := int64(8)
	if ipv6 {
		n = 20
	}
	h, err := message.DecodeHost(r.take(n), ipv6)
	if err != nil {
		r.short = true
	}
	return h
}

func decodeRecord(b []byte) (*message.Received, error) {
	r := fieldReader{b: b}
	size := r.int32()
	if r.short || size < recordFixed || int64(size) > int64(len(b)) {
		return nil, fmt.Errorf("size %d, %d bytes left", size, len(b))
	}
	r.b = b[4:size:size]
	magic := uint32(r.int32())
	if magic != magicV1 && magic != magicV2 {
		return nil, fmt.Errorf("magic %08x", magic)
	}
	m := &message.Received{StoreSize: size, BodyCRC: uint32(r.int32())}
	m.QueueID, m.Flag = r.int32(), r.int32()
	m.QueueOffset, m.PhysicalOffset = r.int64(), r.int64()
	m.SysFlag = message.SysFlag(r.int32())
	m.BornTimestamp = r.int64()
	m.BornHost = r.host(m.SysFlag.Has(message.FlagBornHostIPv6))
	m.StoreTimestamp = r.int64()
	m.StoreHost = r.host(m.SysFlag.Has(message.FlagStoreHostIPv6))
	m.ReconsumeTimes, m.PreparedTransactionOffset = r.int32(), r.int64()
	m.Body = r.take(int64(r.int32()))
	if magic == magicV1 {
		m.Topic = string(r.take(int64(r.int8())))
	} else {
		m.Topic = string(r.take(int64(r.int16())))
	}
	m.Properties = message.Properties(r.take(int64(r.int16())))
	if r.short || len(r.b) != 0 {
		return nil, fmt.Errorf("size %d: its lengths do not add up", size)
	}
	return m, nil
}
