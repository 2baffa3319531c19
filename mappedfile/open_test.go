package mappedfile_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// dirOf makes a directory with files of the given content.
func dirOf(t *testing.T, files map[string]string) *memfs.FS {
	fsys := memfs.New()
	for name, content := range files {
		require.NoError(t, fsys.WriteFile("log/"+name, []byte(content)))
	}
	return fsys
}

func seg(start int64) string { return mappedfile.SegmentName(start) }

// R-E-008, R-E-009.
func TestOpenNotices(t *testing.T) {
	full := strings.Repeat("x", 8)
	zero := strings.Repeat("\x00", 8)
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  []mappedfile.Notice
		end   int64
	}{
		{"nothing odd", map[string]string{seg(0): full, seg(8): full}, nil, 16},
		{
			"foreign names",
			map[string]string{seg(8): full, "lock": "", "0": full, seg(16) + ".tmp": "x", "sub/x": "y"},
			[]mappedfile.Notice{
				{Kind: mappedfile.ForeignFile, File: "log/0", Text: "not a segment, left alone: log/0"},
				{Kind: mappedfile.ForeignFile, File: "log/" + seg(16) + ".tmp", Text: "not a segment, left alone: log/" + seg(16) + ".tmp"},
				{Kind: mappedfile.ForeignFile, File: "log/lock", Text: "not a segment, left alone: log/lock"},
				{Kind: mappedfile.ForeignFile, File: "log/sub", Text: "not a segment, left alone: log/sub"},
			},
			16,
		},
		{
			"empty last file",
			map[string]string{seg(0): full, seg(8): ""},
			[]mappedfile.Notice{{Kind: mappedfile.EmptySegment, File: "log/" + seg(8), From: 8, To: 16, Text: "empty segment log/" + seg(8)}},
			8,
		},
		{
			"short last file",
			map[string]string{seg(0): full, seg(8): "abc"},
			[]mappedfile.Notice{{Kind: mappedfile.ShortSegment, File: "log/" + seg(8), From: 11, To: 16, Text: "short segment log/" + seg(8) + ": 3 of 8 bytes"}},
			11,
		},
		{
			"short file with zeros behind it",
			map[string]string{seg(0): "abc", seg(8): zero, seg(16): zero[:4], seg(24): ""},
			[]mappedfile.Notice{
				{Kind: mappedfile.ShortSegment, File: "log/" + seg(0), From: 3, To: 8, Text: "short segment log/" + seg(0) + ": 3 of 8 bytes"},
				{Kind: mappedfile.ShortSegment, File: "log/" + seg(16), From: 20, To: 24, Text: "short segment log/" + seg(16) + ": 4 of 8 bytes"},
				{Kind: mappedfile.EmptySegment, File: "log/" + seg(24), From: 24, To: 32, Text: "empty segment log/" + seg(24)},
			},
			3,
		},
		{
			"gaps",
			map[string]string{seg(8): full, seg(24): full, seg(32): full, seg(80): full},
			[]mappedfile.Notice{
				{Kind: mappedfile.Gap, File: "log/" + seg(24), From: 16, To: 24, Text: "gap of 8 bytes between log/" + seg(8) + " and log/" + seg(24)},
				{Kind: mappedfile.Gap, File: "log/" + seg(80), From: 40, To: 80, Text: "gap of 40 bytes between log/" + seg(32) + " and log/" + seg(80)},
			},
			88,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, readOnly := range []bool{false, true} {
				q := open(t, dirOf(t, tt.files), "log", mappedfile.Options{SegmentSize: 8, ReadOnly: readOnly})
				require.Equal(t, tt.want, q.Notices())
				_, end := q.Bounds()
				require.Equal(t, tt.end, end)
			}
		})
	}
}

// R-E-008: an error that names the file and both sizes.
func TestOpenRefusesFilesThatContradictTheSegmentSize(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		files      map[string]string
		want       []string
	}{
		{"short file in the middle", seg(0), map[string]string{seg(0): "1234567", seg(8): "abcdefgh"}, []string{"7 bytes", "segments have 8"}},
		{"short file before a short one with content", seg(8), map[string]string{seg(0): "12345678", seg(8): "1", seg(16): "2"}, []string{"1 bytes", "have 8"}},
		{"long last file", seg(0), map[string]string{seg(0): "123456789"}, []string{"9 bytes", "have 8"}},
		{"long file in the middle", seg(0), map[string]string{seg(0): "1234567890", seg(16): "12345678"}, []string{"10 bytes", "have 8"}},
		{"long zeros behind a short file", seg(8), map[string]string{seg(0): "1", seg(8): "\x00\x00\x00\x00\x00\x00\x00\x00\x00"}, []string{"9 bytes"}},
		{"start between segments", seg(12), map[string]string{seg(0): "12345678", seg(12): "12345678"}, []string{"8 bytes", "starts at 12", "segments of 8"}},
		{"start at the end of all numbers", seg(1<<63 - 8), map[string]string{seg(1<<63 - 8): "12345678"}, []string{"does not fit"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := mappedfile.Open(dirOf(t, tt.files), "log", &mappedfile.Options{SegmentSize: 8})
			require.ErrorIs(t, err, mappedfile.ErrCorrupt)
			var corrupt *mappedfile.CorruptError
			require.ErrorAs(t, err, &corrupt)
			require.Equal(t, "log/"+tt.file, corrupt.File)
			for _, want := range tt.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// What has the name of a segment but is none may stand for one that lies elsewhere: it is not passed over as if it were a
// gap (R-E-008, R-E-009).
func TestOpenRefusesWhatHasTheNameOfASegmentButIsNoRegularFile(t *testing.T) {
	for name, put := range map[string]func(name string) error{
		"folder": func(name string) error { return os.Mkdir(name, 0o750) },
		"link":   func(name string) error { return os.Symlink("elsewhere", name) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fsys := openDir(t, dir)
			require.NoError(t, fsys.MkdirAll("log", 0o750))
			create(t, fsys, "log/"+seg(0), []byte("12345678"))
			if err := put(filepath.Join(dir, "log", seg(8))); err != nil && runtime.GOOS == "windows" {
				return // links need a right there
			}
			_, err := mappedfile.Open(fsys, "log", &mappedfile.Options{SegmentSize: 8})
			corrupt, ok := errors.AsType[*mappedfile.CorruptError](err)
			require.True(t, ok, err)
			require.Equal(t, "log/"+seg(8), corrupt.File)
			require.ErrorContains(t, err, "no regular file")
		})
	}
}

func TestShortSegmentIsReadableUpToItsLengthAndNotWritable(t *testing.T) {
	q := open(t, dirOf(t, map[string]string{seg(0): "12345678", seg(8): "abc"}), "log", mappedfile.Options{SegmentSize: 8})
	require.Equal(t, "abc", text(t, q, 8, 3))
	require.ErrorIs(t, second(q.View(8, 4)), mappedfile.ErrOutOfRange)
	v, err := q.ViewSegment(8)
	require.NoError(t, err)
	require.Equal(t, "abc", string(v.Bytes()))
	v.Release()
	require.ErrorIs(t, q.SetEnd(12), mappedfile.ErrOutOfRange)
	_, err = q.Append([]byte("x"))
	require.ErrorContains(t, err, "before it is repaired")
}

func TestNonZeroEndOfAnEmptyFile(t *testing.T) {
	q := open(t, dirOf(t, map[string]string{seg(0): "12345678", seg(8): ""}), "log", mappedfile.Options{SegmentSize: 8})
	end, err := q.NonZeroEnd(8, 8)
	require.NoError(t, err)
	require.EqualValues(t, 8, end)
}

func TestRepairMakesSegmentsWhole(t *testing.T) {
	onLayers(t, func(t *testing.T, fsys mappedfile.FS) {
		require.NoError(t, fsys.MkdirAll("log", 0o750))
		for name, content := range map[string]string{
			seg(0): "12345678", seg(8): "abc", seg(16): "\x00\x00\x00\x00\x00\x00\x00\x00", seg(24): "", seg(32): "", "foreign": "x",
		} {
			create(t, fsys, "log/"+name, []byte(content))
		}
		q := open(t, fsys, "log", mappedfile.Options{SegmentSize: 8, Reserve: mappedfile.ReserveWhole})
		require.Equal(t, "abc", text(t, q, 8, 3))
		done, err := q.Repair()
		require.NoError(t, err)
		require.Equal(t, []mappedfile.Notice{
			{Kind: mappedfile.EmptySegment, File: "log/" + seg(32), From: 32, To: 40, Text: "removed empty log/" + seg(32)},
			{Kind: mappedfile.EmptySegment, File: "log/" + seg(24), From: 24, To: 32, Text: "removed empty log/" + seg(24)},
			{Kind: mappedfile.ShortSegment, File: "log/" + seg(8), From: 11, To: 16, Text: "extended log/" + seg(8) + " from 3 to 8 bytes with zeros"},
		}, done)
		done, err = q.Repair()
		require.NoError(t, err)
		require.Empty(t, done)
		require.Equal(t, "abc\x00\x00\x00\x00\x00", string(readFile(t, fsys, "log/"+seg(8))))
		require.Equal(t, int64(11), put(t, q, "d"))
		require.NoError(t, q.Close())
		q = open(t, fsys, "log", mappedfile.Options{SegmentSize: 8})
		require.Len(t, q.Notices(), 1, "the foreign file")
		require.Equal(t, "abcd", text(t, q, 8, 4))
	})
}

// R-E-014: looking leaves every file's bytes and times alone, and needs no permission to write.
func TestReadOnlyQueueChangesNothing(t *testing.T) {
	dir := t.TempDir()
	w := open(t, openDir(t, dir), "log", mappedfile.Options{SegmentSize: page, Ahead: true})
	put(t, w, strings.Repeat("x", page))
	put(t, w, "tail")
	require.NoError(t, w.Sync(0))
	require.NoError(t, w.Abandon()) // the background, which makes a segment ahead, has ended
	require.NoError(t, os.WriteFile(dir+"/log/"+seg(5*page), nil, 0o440))
	require.NoError(t, os.WriteFile(dir+"/log/foreign", []byte("x"), 0o440))
	require.NoError(t, os.Chmod(dir+"/log", 0o550))
	defer func() { require.NoError(t, os.Chmod(dir+"/log", 0o750)) }()
	before := fingerprint(t, dir)

	fsys, err := mappedfile.OpenDir(dir, &mappedfile.DirOptions{ReadOnly: true})
	require.NoError(t, err)
	q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page, ReadOnly: true, Ahead: true, Mode: mappedfile.Staged})
	require.NotEmpty(t, q.Notices())
	require.Equal(t, "tail", text(t, q, page, 4))
	require.NoError(t, q.SetEnd(page+4))
	for _, err := range []error{
		second(q.Append([]byte("x"))), q.Fill(nil), q.WriteAt([]byte("x"), 0), q.Sync(0), q.Commit(), q.TruncateAfter(0), q.Begin(0),
		second(q.DeleteBefore(page)), second(q.Repair()), q.Destroy(),
	} {
		require.ErrorIs(t, err, mappedfile.ErrReadOnly)
	}
	require.NoError(t, q.Close())
	require.Equal(t, before, fingerprint(t, dir))
}

// fingerprint gives name, time, size and hash of everything below dir.
func fingerprint(t *testing.T, dir string) []string {
	var all []string
	require.NoError(t, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil || e.IsDir() {
			all = append(all, fmt.Sprint(name, info.ModTime()))
			return err
		}
		b, err := os.ReadFile(name)
		all = append(all, fmt.Sprint(name, info.ModTime(), info.Size(), sha256.Sum256(b)))
		return err
	}))
	return all
}

// A file that the writing program deletes after the directory was listed is an error of the view only.
func TestSegmentThatVanishesIsAnErrorOfItsViews(t *testing.T) {
	fsys := dirOf(t, map[string]string{seg(0): "12345678", seg(8): "abcdefgh"})
	q := open(t, fsys, "log", mappedfile.Options{SegmentSize: 8, ReadOnly: true})
	require.NoError(t, fsys.Remove("log/"+seg(0)))
	_, err := q.View(0, 1)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Equal(t, "a", text(t, q, 8, 1))
}

// listing is a file layer whose entries cannot be looked at.
type listing struct {
	mappedfile.FS
	err error
}

type entry struct {
	fs.DirEntry
	err error
}

func (e entry) Info() (fs.FileInfo, error) { return nil, e.err }

func (l listing) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := l.FS.ReadDir(name)
	for i := range entries {
		entries[i] = entry{entries[i], l.err}
	}
	return entries, err
}

func TestFileThatVanishesWhileOpeningIsPassedOver(t *testing.T) {
	fsys := dirOf(t, map[string]string{seg(0): "12345678"})
	q := open(t, listing{fsys, fs.ErrNotExist}, "log", mappedfile.Options{SegmentSize: 8})
	require.Empty(t, q.Segments())
	broken := errors.New("broken")
	_, err := mappedfile.Open(listing{fsys, broken}, "log", &mappedfile.Options{SegmentSize: 8})
	require.ErrorIs(t, err, broken)
	require.NoError(t, fsys.WriteFile("file", nil))
	_, err = mappedfile.Open(fsys, "file", &mappedfile.Options{SegmentSize: 8})
	require.Error(t, err, "not a directory")
}

// The end of what is not zero is found by the byte, over holes and borders of chunks, in memory and on a disk.
func TestNonZeroEnd(t *testing.T) {
	const size = 1 << 20
	onLayers(t, func(t *testing.T, fsys mappedfile.FS) {
		q, err := mappedfile.Open(fsys, "log", &mappedfile.Options{SegmentSize: size})
		require.NoError(t, err)
		defer q.Close()
		require.ErrorIs(t, second(q.NonZeroEnd(0, 0)), mappedfile.ErrOutOfRange)
		require.NoError(t, q.Fill([]byte{1}))
		_, err = q.Append([]byte{2})
		require.NoError(t, err)
		end, err := q.NonZeroEnd(0, 1)
		require.NoError(t, err)
		require.EqualValues(t, 1, end, "nothing but zeros")
		for _, at := range []int64{3, 4095, 4096, 64<<10 - 1, 64 << 10, 500_000, size - 1} {
			require.NoError(t, q.WriteAt([]byte{9}, at))
			for _, from := range []int64{0, 1, at} {
				end, err := q.NonZeroEnd(0, from)
				require.NoError(t, err)
				require.Equal(t, at+1, end, from)
			}
		}
		end, err = q.NonZeroEnd(size, size)
		require.NoError(t, err)
		require.EqualValues(t, size+1, end)
		require.ErrorIs(t, second(q.NonZeroEnd(10, 10)), mappedfile.ErrOutOfRange)
	})
}
