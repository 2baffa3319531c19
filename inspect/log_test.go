package inspect_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

func TestLogMayStartAnywhereAndEndInUnusedFiles(t *testing.T) {
	s := newTree()
	s.log(8192, 4096, records(8192, 2), blank(4096, 2*recordSize))
	s.log(12288, 4096, records(12288, 1))
	s.log(16384, 4096)
	s.log(20480, 4096)
	got, c := offsets(t, s, inspect.LogRange{})
	require.Equal(t, []int64{8192, 8192 + recordSize, 12288}, got)
	require.Empty(t, c.all)
}

// R-E-009.
func TestEachGapIsReportedWithBothNeighbours(t *testing.T) {
	s := newTree()
	for _, start := range []int64{4096, 12288, 16384, 28672} {
		s.log(start, 4096, records(start, 1), blank(4096, recordSize))
	}
	_, c := offsets(t, s, inspect.LogRange{})
	require.Len(t, c.all, 2)
	require.Equal(t, inspect.Finding{
		Kind: inspect.Gap, Severity: inspect.Warning, File: "commitlog/00000000000000012288", From: 8192, To: 12288,
		Text: "4096 bytes are missing between commitlog/00000000000000004096 and commitlog/00000000000000012288",
	}, c.all[0])
	require.Equal(t, []int64{20480, 28672}, []int64{c.all[1].From, c.all[1].To})
}

func TestZerosWithRecordsBehindThemAreDamage(t *testing.T) {
	hole := make([]byte, 1000)
	s := newTree()
	s.log(0, 4096, records(0, 2), hole, records(2*recordSize+1000, 1))
	got, c := offsets(t, s, inspect.LogRange{})
	require.Equal(t, []int64{0, recordSize, 2*recordSize + 1000}, got)
	require.Equal(t, []string{"zeros with data behind them|commitlog/00000000000000000000|202"}, c.brief())
	require.Equal(t, []int64{202, 1202}, []int64{c.all[0].From, c.all[0].To})

	s = newTree() // the rest of a file, and a whole one
	s.log(0, 4096, records(0, 2))
	s.log(4096, 4096)
	s.log(8192, 4096, blank(4096, 0))
	_, c = offsets(t, s, inspect.LogRange{})
	require.Equal(t, []string{"zeros with data behind them|commitlog/00000000000000000000|202"}, c.brief())
	require.Equal(t, []int64{202, 8192}, []int64{c.all[0].From, c.all[0].To})
}

// R-E-008.
func TestFilesOfAnotherLengthAreReportedAndReadAsFarAsTheyGo(t *testing.T) {
	full := func(start int64) []byte { return file(4096, records(start, 1), blank(4096, recordSize)) }
	for _, tt := range []struct {
		name  string
		files map[int64][]byte
		want  []string
	}{
		{"short last", map[int64][]byte{0: full(0), 4096: records(4096, 1)}, []string{"short segment|commitlog/00000000000000004096|101"}},
		{
			"short before one never used",
			map[int64][]byte{0: full(0), 4096: records(4096, 1), 8192: file(4096)},
			[]string{"short segment|commitlog/00000000000000004096|101"},
		},
		{"empty last", map[int64][]byte{0: full(0), 4096: nil}, []string{"empty segment|commitlog/00000000000000004096|0"}},
		{
			"short middle",
			map[int64][]byte{0: full(0), 4096: records(4096, 1), 8192: full(8192)},
			[]string{"wrong file size|commitlog/00000000000000004096|0"},
		},
		{
			"long",
			map[int64][]byte{0: full(0), 4096: append(full(4096), 1), 8192: full(8192)},
			[]string{
				"wrong file size|commitlog/00000000000000004096|0", "overlap|commitlog/00000000000000008192|0",
				"blank of another length than what is left|commitlog/00000000000000004096|101",
			},
		},
		{
			"name that is no multiple",
			map[int64][]byte{0: full(0), 4096: full(4096), 9000: full(9000)},
			[]string{"wrong file size|commitlog/00000000000000009000|0", "gap|commitlog/00000000000000009000|0"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newTree()
			want := 0
			for start, b := range tt.files {
				s.log(start, len(b), b)
				if len(b) >= recordSize && b[0]|b[3] != 0 {
					want++
				}
			}
			got, c := offsets(t, s, inspect.LogRange{})
			require.Len(t, got, want)
			require.Equal(t, tt.want, c.brief())
		})
	}
}

// R-E-071.
func TestTheNextRecordBehindDamageIsFound(t *testing.T) {
	for _, tt := range []struct {
		name string
		harm func(b []byte)
		kind inspect.Kind
	}{
		{"magic", func(b []byte) { b[4] = 0 }, inspect.BadMagic},
		{"size far beyond the file", func(b []byte) { binary.BigEndian.PutUint32(b, 0x7FFFFFFF) }, inspect.BadSize},
		{"negative size", func(b []byte) { binary.BigEndian.PutUint32(b, 0x80000000) }, inspect.BadSize},
		{"size that swallows the next", func(b []byte) { binary.BigEndian.PutUint32(b, 2*recordSize) }, inspect.BadSize},
		{"body length", func(b []byte) { binary.BigEndian.PutUint32(b[84:], 0x7FFFFFFF) }, inspect.BadSize},
		{"topic length", func(b []byte) { b[92]++ }, inspect.BadSize},
		{"its own place", func(b []byte) { b[35]++ }, inspect.BadPlace},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, b := newTree(), records(0, 3)
			tt.harm(b[recordSize:])
			s.log(0, 4096, b)
			got, c := offsets(t, s, inspect.LogRange{})
			require.Equal(t, []int64{0, 2 * recordSize}, got)
			require.Len(t, c.all, 1)
			f := c.all[0]
			require.Equal(t, tt.kind, f.Kind)
			require.Equal(t, inspect.Error, f.Severity)
			require.Equal(t, []int64{recordSize, recordSize, 2 * recordSize}, []int64{f.Offset, f.From, f.To})
		})
	}
}

func TestARecordWithAWrongCRCIsGivenAsDamaged(t *testing.T) {
	s, b := newTree(), records(0, 3)
	b[recordSize+88] ^= 1 // in the body
	s.log(0, 4096, b)
	d, err := inspect.Open(s)
	require.NoError(t, err)
	var damaged []string
	c := &collector{}
	for r, err := range d.Log(t.Context(), inspect.LogRange{}, c.add) {
		require.NoError(t, err)
		damaged = append(damaged, r.Damaged)
	}
	require.Equal(t, []string{"", "crc", ""}, damaged)
	require.Equal(t, []string{"wrong CRC|commitlog/00000000000000000000|101"}, c.brief())

	r, ok, err := d.RecordAt(recordSize, c.add)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, inspect.DamagedCRC, r.Damaged)
}

// The CRC in the last property covers the whole record (5.2.0 and later).
func TestARecordThatDoesNotMatchItsCRCPropertyIsDamaged(t *testing.T) {
	b := record(0, "body", "KEYS", "k")
	binary.BigEndian.PutUint32(b, uint32(len(b)+commitlog.PropertyCRCSize))
	at := len(b) - len("KEYS\x01k\x02") - 2
	binary.BigEndian.PutUint16(b[at:], uint16(len(b)-at-2+commitlog.PropertyCRCSize))
	b = commitlog.AppendPropertyCRC(b)
	s := newTree()
	s.log(0, 4096, b)
	got, c := offsets(t, s, inspect.LogRange{})
	require.Len(t, got, 1)
	require.Empty(t, c.all)

	b[15] ^= 1 // queue id: no other check covers it
	s.log(0, 4096, b)
	got, c = offsets(t, s, inspect.LogRange{})
	require.Len(t, got, 1)
	require.Equal(t, []string{"wrong CRC|commitlog/00000000000000000000|0"}, c.brief())
}

func TestABlankStatesWhatIsLeft(t *testing.T) {
	s := newTree()
	s.log(0, 4096, records(0, 1), blank(4096, recordSize+8))
	s.log(4096, 4096, records(4096, 1))
	got, c := offsets(t, s, inspect.LogRange{})
	require.Len(t, got, 2)
	require.Equal(t, []string{"blank of another length than what is left|commitlog/00000000000000000000|101"}, c.brief())
}

func TestARangeGivesRecordsThatStartInsideAndOnlyItsFindings(t *testing.T) {
	s := newTree()
	first := records(0, 4)
	first[recordSize+4] = 0 // no magic
	s.log(0, 4096, first, blank(4096, 4*recordSize))
	s.log(4096, 4096, records(4096, 3))
	for _, tt := range []struct {
		r        inspect.LogRange
		want     []int64
		findings int
	}{
		{inspect.LogRange{}, []int64{0, 202, 303, 4096, 4197, 4298}, 1},
		{inspect.LogRange{From: 202}, []int64{202, 303, 4096, 4197, 4298}, 0},
		{inspect.LogRange{From: 203, To: 4197}, []int64{303, 4096}, 0},
		{inspect.LogRange{From: 1, To: 203}, []int64{202}, 1},
		{inspect.LogRange{To: 101}, []int64{0}, 0},
		{inspect.LogRange{To: 150}, []int64{0}, 1},
		{inspect.LogRange{From: 4096, To: 4097}, []int64{4096}, 0},
		{inspect.LogRange{From: 9000}, nil, 0},
		{inspect.LogRange{From: -5, To: 1}, []int64{0}, 0},
	} {
		got, c := offsets(t, s, tt.r)
		require.Equal(t, tt.want, got, "%+v", tt.r)
		require.Len(t, c.all, tt.findings, "%+v", tt.r)
	}
}

// brokenFS cannot open one file.
type brokenFS struct {
	fs.FS
	name string
}

var errBroken = errors.New("input/output error")

func (b brokenFS) Open(name string) (fs.File, error) {
	if name == b.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errBroken}
	}
	return b.FS.Open(name)
}

// R-E-107.
func TestAnUnreadableFileIsAnErrorAndTheWalkGoesOn(t *testing.T) {
	s := newTree()
	for _, start := range []int64{0, 4096, 8192} {
		s.log(start, 4096, records(start, 1), blank(4096, recordSize))
	}
	d, err := inspect.Open(brokenFS{s, "commitlog/00000000000000004096"})
	require.NoError(t, err)
	var got []int64
	var errs []error
	for r, err := range d.Log(t.Context(), inspect.LogRange{}, func(inspect.Finding) {}) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		got = append(got, r.PhysicalOffset)
	}
	require.Equal(t, []int64{0, 8192}, got)
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], errBroken)

	id, err := d.Identify(t.Context())
	require.NoError(t, err)
	require.Len(t, id.Findings, 1)
	require.Equal(t, inspect.Unreadable, id.Findings[0].Kind)
	require.Equal(t, "commitlog/00000000000000004096", id.Findings[0].File)
}

func TestWalksEndWithTheirContext(t *testing.T) {
	s := newTree()
	s.log(0, 4096, records(0, 1))
	s.queue("TopicA", 0, 0, 5, unit(0, recordSize))
	d, err := inspect.Open(s)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range d.Log(ctx, inspect.LogRange{}, func(inspect.Finding) {}) {
		require.ErrorIs(t, err, context.Canceled)
	}
	for _, err := range d.Queues(ctx, inspect.QueueFilter{}, func(inspect.Finding) {}) {
		require.ErrorIs(t, err, context.Canceled)
	}
	_, err = d.Identify(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestWhatIsNoStoreIsRefused(t *testing.T) {
	_, err := inspect.Open(os.DirFS(golden.TempDir(t)))
	require.ErrorIs(t, err, inspect.ErrNoStore)
	_, err = inspect.Open(os.DirFS(golden.TempDir(t) + "/nowhere"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestIdentifyKeepsABoundedNumberOfFindings(t *testing.T) {
	s := newTree()
	for i := range 12_000 {
		s.put(fmt.Sprintf("commitlog/%d", i), nil)
	}
	s.put("commitlog/00000000000000000000", records(0, 1))
	d, err := inspect.Open(s)
	require.NoError(t, err)
	id, err := d.Identify(t.Context())
	require.NoError(t, err)
	require.Len(t, id.Findings, 10_001)
	require.Equal(t, inspect.More, id.Findings[10_000].Kind)
	require.Equal(t, int64(1), id.CommitLog.Records)
}
