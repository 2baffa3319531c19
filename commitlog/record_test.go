package commitlog_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/message"
)

// unhex turns the hex digits of a text with blanks and line ends into bytes.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	require.NoError(t, err)
	return b
}

func host(t testing.TB, s string) message.Host {
	t.Helper()
	h, err := message.ParseHost(s)
	require.NoError(t, err)
	return h
}

// record497 is a record that RocketMQ 4.9.7 wrote.
const record497 = `
000000A9 DAA320A7 3610A686 00000001 00000007
0000000000000000 0000000000000000
00000000 0000018BCFE56800
C0A80102 00009C40
000001A228F656E7 0A000001 00002A9F
00000000 0000000000000000
00000005 68656C6C6F 01 54 0048
4B45595301 6B31206B32 02
554E49515F4B455901 4330413830313032303030303138423441414332303030303030303030303030 02
5741495401 74727565 02 5441475301 54616741`

// R-E-019, R-E-020.
func TestDecodeReadsARecordOf497(t *testing.T) {
	b := unhex(t, record497)
	r, err := commitlog.Decode(b)
	require.NoError(t, err)
	require.Equal(t, commitlog.Record{
		Size: 169, Magic: commitlog.MagicV1, BodyCRC: 0x3610A686, QueueID: 1, Flag: 7, BornTimestamp: 1700000000000,
		BornHost: host(t, "192.168.1.2:40000"), StoreTimestamp: 1795983562471, StoreHost: host(t, "10.0.0.1:10911"),
		Body: []byte("hello"), Topic: []byte("T"),
		Properties: []byte("KEYS\x01k1 k2\x02UNIQ_KEY\x01C0A80102000018B4AAC2000000000000\x02WAIT\x01true\x02TAGS\x01TagA"),
	}, r)
	require.NoError(t, r.CheckBody())
	require.Equal(t, "0A00000100002A9F0000000000000000", r.ID())
	require.Equal(t, b, r.AppendTo(nil))
	require.Equal(t, len(b), r.EncodedSize())

	m := r.Message()
	require.Equal(t, "TagA", m.Tag())
	require.Equal(t, int64(0x27A807), message.TagsCode(m.Tag()))
	clear(b)
	require.Equal(t, "hello", string(m.Body), "the message is a copy")
	require.Equal(t, "T", m.Topic)
}

// sample is a record of every kind of host and version.
func sample(t testing.TB, magic uint32, born, store, topic, body string) commitlog.Record {
	r := commitlog.Record{
		Magic: magic, QueueID: 3, Flag: -1, QueueOffset: 1 << 40, PhysicalOffset: 1 << 41, BornTimestamp: 1700000000000,
		BornHost: host(t, born), StoreTimestamp: 1700000000001, StoreHost: host(t, store), ReconsumeTimes: 2,
		PreparedTransactionOffset: 77, Body: []byte(body), Topic: []byte(topic), Properties: []byte("TAGS\x01TagA\x02"),
		BodyCRC: message.CRC([]byte(body)),
	}
	if r.BornHost.Is6() {
		r.SysFlag |= message.FlagBornHostIPv6
	}
	if r.StoreHost.Is6() {
		r.SysFlag |= message.FlagStoreHostIPv6
	}
	r.Size = int32(r.EncodedSize())
	return r
}

const (
	ip4 = "10.0.0.1:10911"
	ip6 = "[2001:db8::1]:10911"
)

// R-E-021, R-E-022.
func TestRecordsOfBothVersionsAndAllHostsComeBack(t *testing.T) {
	long := strings.Repeat("t", 132)
	for _, tt := range []struct {
		name             string
		magic            uint32
		born, store, top string
		size, storeTime  int // bytes; where the store time lies
	}{
		{"version 1", commitlog.MagicV1, ip4, ip4, "T", 91 + 1 + 5 + 10, 56},
		{"version 1, born IPv6", commitlog.MagicV1, ip6, ip4, "T", 91 + 12 + 1 + 5 + 10, 68},
		{"version 1, store IPv6", commitlog.MagicV1, ip4, ip6, "T", 91 + 12 + 1 + 5 + 10, 56},
		{"version 1, both IPv6", commitlog.MagicV1, ip6, ip6, "T", 91 + 24 + 1 + 5 + 10, 68},
		{"version 2", commitlog.MagicV2, ip4, ip4, long, 92 + 132 + 5 + 10, 56},
		{"version 2, both IPv6", commitlog.MagicV2, ip6, ip6, long, 92 + 24 + 132 + 5 + 10, 68},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := sample(t, tt.magic, tt.born, tt.store, tt.top, "hello")
			b := want.AppendTo([]byte("before"))[len("before"):]
			require.Len(t, b, tt.size)
			require.Equal(t, tt.magic, binary.BigEndian.Uint32(b[4:]))
			require.Equal(t, uint64(want.PhysicalOffset), binary.BigEndian.Uint64(b[28:]))
			require.Equal(t, uint64(want.StoreTimestamp), binary.BigEndian.Uint64(b[tt.storeTime:]))
			got, err := commitlog.Decode(append(b, "behind"...))
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

// R-E-017, R-E-067.
func TestDecodeRejects(t *testing.T) {
	v1, v2 := sample(t, commitlog.MagicV1, ip4, ip4, "T", "hello"), sample(t, commitlog.MagicV2, ip6, ip6, "T", "hello")
	put32 := func(at int, v uint32) func(b []byte) []byte {
		return func(b []byte) []byte { binary.BigEndian.PutUint32(b[at:], v); return b }
	}
	for _, tt := range []struct {
		name   string
		record commitlog.Record
		want   error
		text   string
		harm   func(b []byte) []byte
	}{
		{"nothing", v1, commitlog.ErrSize, "0 bytes left", func(b []byte) []byte { return b[:0] }},
		{"less than a header", v1, commitlog.ErrSize, "7 bytes left", func(b []byte) []byte { return b[:7] }},
		{"one byte short", v1, commitlog.ErrSize, "size 107, 106 bytes left", func(b []byte) []byte { return b[:len(b)-1] }},
		{"no magic", v1, commitlog.ErrMagic, "00000000", put32(4, 0)},
		{"blank", v1, commitlog.ErrMagic, "cbd43194", put32(4, commitlog.MagicBlank)},
		{"size 0", v1, commitlog.ErrSize, "size 0", put32(0, 0)},
		{"size negative", v1, commitlog.ErrSize, "size -1", put32(0, math.MaxUint32)},
		{"size huge", v1, commitlog.ErrSize, "size 2147483647", put32(0, math.MaxInt32)},
		{"size one too small", v1, commitlog.ErrSize, "properties length", put32(0, 106)},
		{"size too small for IPv6 hosts", v2, commitlog.ErrSize, "for its hosts", put32(0, 115)},
		{"flag says IPv6", v1, commitlog.ErrSize, "for its hosts", put32(36, 48)},
		{"body length negative", v1, commitlog.ErrSize, "body length -5", put32(84, 0xFFFFFFFB)},
		{"body length huge", v1, commitlog.ErrSize, "body length 2147483647", put32(84, math.MaxInt32)},
		{"body length one too large", v1, commitlog.ErrSize, "size 107", put32(84, 6)},
		{"topic length negative", v1, commitlog.ErrSize, "topic length -1", func(b []byte) []byte { b[93] = 0xFF; return b }},
		{"topic length negative in version 2", v2, commitlog.ErrSize, "topic length -1", func(b []byte) []byte { b[117], b[118] = 0xFF, 0xFF; return b }},
		{"topic length too large", v1, commitlog.ErrSize, "topic length 127", func(b []byte) []byte { b[93] = 127; return b }},
		{"properties length negative", v1, commitlog.ErrSize, "properties length -32758", func(b []byte) []byte { b[95] = 0x80; return b }},
		{"properties length too small", v1, commitlog.ErrSize, "properties length 9", func(b []byte) []byte { b[96] = 9; return b }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := commitlog.Decode(tt.harm(tt.record.AppendTo(nil)))
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, tt.text)
		})
	}
}

func TestCheckBodyFindsAChangedBodyAndPassesAnEmptyOne(t *testing.T) {
	r := sample(t, commitlog.MagicV1, ip4, ip4, "T", "hello")
	require.NoError(t, r.CheckBody())
	r.Body = []byte("hellp")
	require.ErrorIs(t, r.CheckBody(), commitlog.ErrCRC)
	r.Body, r.BodyCRC = nil, 5
	require.NoError(t, r.CheckBody(), "as in Java")
}

func TestDecodedPartsCannotGrowIntoEachOther(t *testing.T) {
	b := append(unhex(t, record497), "behind"...)
	r, err := commitlog.Decode(b)
	require.NoError(t, err)
	for _, part := range [][]byte{r.Body, r.Topic, r.Properties} {
		_ = append(part, 'X')
	}
	require.Equal(t, append(unhex(t, record497), "behind"...), b)
}

// R-E-023: a blank of 3.1.4 with what is left of another record behind its header.
func TestBlankIsKnownByItsMagicAlone(t *testing.T) {
	b := unhex(t, "00000254 CBD43194 69D31461 00000000 00000007")
	require.True(t, commitlog.IsBlank(b))
	require.Equal(t, b[:8], commitlog.AppendBlank(nil, 596))
	require.False(t, commitlog.IsBlank(b[:7]))
	require.False(t, commitlog.IsBlank(unhex(t, record497)))
}

func TestDecodeAndEncodeDoNotAllocate(t *testing.T) {
	b, buf := unhex(t, record497), make([]byte, 0, 256)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r, err := commitlog.Decode(b)
		if err != nil || r.CheckBody() != nil || !bytes.Equal(b, r.AppendTo(buf)) {
			t.Fatal("wrong")
		}
	}))
}
