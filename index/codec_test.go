package index_test

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/index"
)

func bytesOf(t *testing.T, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
	require.NoError(t, err)
	return b
}

// R-E-051, R-E-052: the bytes of formats.md 16, from files of 4.9.7 and 3.1.4.
func TestWorkedBytesDecodeAndEncode(t *testing.T) {
	raw := bytesOf(t, "000001A228F656E7 000001A228F6570B 0000000000000000 000000000000037F 00000005 00000006")
	h, err := index.DecodeHeader(raw)
	require.NoError(t, err)
	require.Equal(t, index.Header{
		BeginTimestamp: 1795983562471, EndTimestamp: 1795983562507, EndOffset: 0x37F, SlotCount: 5, IndexCount: 6,
	}, h)
	require.Equal(t, int32(5), h.Keys())
	require.NoError(t, h.Check(index.Shape{Slots: 100, Entries: 400}))
	require.Equal(t, raw, h.AppendTo(nil))

	for _, tt := range []struct {
		digits string
		want   index.Entry
	}{
		{"10AF8F42 0000000000000000 00000000 00000000", index.Entry{KeyHash: 279940930}},
		{"EF5070BE 0000000000000000 00000000 00000000", index.Entry{KeyHash: -279940930}},
		{"0026BFB5 00000000000003E8 00000000 00000000", index.Entry{KeyHash: 0x26BFB5, PhysicalOffset: 1000}},
		{"0026BFB5 00000000000007D0 00000001 00000001", index.Entry{KeyHash: 0x26BFB5, PhysicalOffset: 2000, TimeDiff: 1, Previous: 1}},
	} {
		raw := bytesOf(t, tt.digits)
		e, err := index.DecodeEntry(raw)
		require.NoError(t, err)
		require.Equal(t, tt.want, e)
		require.NoError(t, e.Check(2))
		require.Equal(t, raw, e.AppendTo(nil))
	}
}

// R-E-052.
func TestKeyHashIsJavasHashOfTopicAndKey(t *testing.T) {
	require.Equal(t, int32(0x26BFB5), index.KeyHash("T", "k1"))
	require.Equal(t, int32(0x26BFB6), index.KeyHash("T", "k2"))
	require.Equal(t, int32(-279940930), index.KeyHash("T", "C0A80102000018B4AAC2000000000000"))
	require.Equal(t, int32(math.MinInt32), index.KeyHash("T", "DWIECHC"))
	require.Equal(t, int32(30), index.Slot(-279940930, 100))
	require.Equal(t, int32(30), index.Slot(279940930, 100))
	require.Zero(t, index.Slot(math.MinInt32, 100))
}

func TestShortBytesAreNoHeaderAndNoEntry(t *testing.T) {
	_, err := index.DecodeHeader(make([]byte, index.HeaderSize-1))
	require.ErrorContains(t, err, "too few bytes: an index header has 40, there are 39")
	_, err = index.DecodeEntry(make([]byte, index.EntrySize-1))
	require.ErrorContains(t, err, "too few bytes: an index entry has 20, there are 19")
}

func TestHeaderCheckNamesWhatCannotBe(t *testing.T) {
	shape := index.Shape{Slots: 4, Entries: 9}
	for _, tt := range []struct {
		name, want string
		h          index.Header
	}{
		{"all zero", "", index.Header{}},
		{"full", "", index.Header{BeginOffset: 1, EndOffset: 8, SlotCount: 8, IndexCount: 9}},
		{"a clock that went back", "", index.Header{BeginTimestamp: 9, EndTimestamp: 1, IndexCount: 3}},
		{"more than full", "index count 10 in a file for 9 entries", index.Header{IndexCount: 10}},
		{"less than none", "index count -1", index.Header{IndexCount: -1}},
		{"negative slot count", "slot count -1", index.Header{SlotCount: -1}},
		{"more slots than keys", "slot count 4 with index count 3", index.Header{SlotCount: 4, IndexCount: 3}},
		{"negative offset", "begin offset -1, end offset 5", index.Header{BeginOffset: -1, EndOffset: 5}},
		{"end before begin", "begin offset 7, end offset 5", index.Header{BeginOffset: 7, EndOffset: 5}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.h.Check(shape); tt.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.want)
			}
		})
	}
}

func TestEntryCheckNamesWhatCannotBe(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		e          index.Entry
	}{
		{"offset", "entry 5: offset -1", index.Entry{PhysicalOffset: -1}},
		{"time", "entry 5: time difference -3", index.Entry{TimeDiff: -3}},
		{"circle", "entry 5 says that the one before it is 5", index.Entry{Previous: 5}},
		{"forward", "entry 5 says that the one before it is 6", index.Entry{Previous: 6}},
		{"negative", "entry 5 says that the one before it is -1", index.Entry{Previous: -1}},
	} {
		t.Run(tt.name, func(t *testing.T) { require.ErrorContains(t, tt.e.Check(5), tt.want) })
	}
}

func TestFileNamesAreTimes(t *testing.T) {
	require.Equal(t, "20231114221320000", index.FileName(start))
	require.Equal(t, "00000101000000000", index.FileName(math.MinInt64))
	require.Equal(t, "99991231235959999", index.FileName(math.MaxInt64))
	at, ok := index.ParseFileName("20231114221320007")
	require.True(t, ok)
	require.Equal(t, start+7, at)
	for _, name := range []string{"", "2023111422132000", "202311142213200000", "20231114221320 00", "20231314221320000", "2023111422132-001"} {
		_, ok := index.ParseFileName(name)
		require.False(t, ok, name)
	}
}
