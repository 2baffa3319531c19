package inspect_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// deniedFS is a directory of which one file, or a folder with all that is in it, may not be read.
type deniedFS struct {
	fs.FS
	denied string
}

func (d deniedFS) Open(name string) (fs.File, error) {
	if name == d.denied || strings.HasPrefix(name, d.denied+"/") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return d.FS.Open(name)
}

func (d deniedFS) Stat(name string) (fs.FileInfo, error) {
	if strings.HasPrefix(name, d.denied+"/") {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrPermission}
	}
	return fs.Stat(d.FS, name)
}

// refusingFS is a directory of which some folders may not be listed, nor anything in them be opened.
type refusingFS struct {
	fs.FS
	denied []string
}

func (d refusingFS) Open(name string) (fs.File, error) {
	for _, no := range d.denied {
		if name == no || strings.HasPrefix(name, no+"/") {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
		}
	}
	return d.FS.Open(name)
}

// Stat, the walk over the queues and that over their extensions say each folder that they may not list, and look at all the rest.
func TestLookingGoesOnBehindFoldersThatCannotBeListed(t *testing.T) {
	dir := golden.Unpack(t, store49)
	denied := []string{"consumequeue/GoldenTiny", "consumequeue/GoldenNormal/1", log1, "index/20261129203500354"}
	whole, err := open(t, dir).Stat(t.Context(), inspect.StatOptions{}, func(inspect.Finding) {})
	require.NoError(t, err)
	d, err := inspect.Open(refusingFS{os.DirFS(dir), denied})
	require.NoError(t, err)
	var told []string
	part, err := d.Stat(t.Context(), inspect.StatOptions{}, func(f inspect.Finding) {
		if f.Kind == inspect.Unreadable {
			told = append(told, f.File)
		}
	})
	require.NoError(t, err)
	for _, name := range denied {
		require.Contains(t, told, name)
	}
	require.Len(t, told, len(denied), "each is told once")
	require.Positive(t, part.Records)
	require.Less(t, part.Records, whole.Records)
	require.Len(t, part.Index, len(whole.Index)-1)
	require.Equal(t, whole.Lags[0].Group, part.Lags[0].Group)

	queues, failed := make(map[string]int), 0
	for u, err := range d.Queues(t.Context(), inspect.QueueFilter{}, func(inspect.Finding) {}) {
		if err != nil {
			failed++
			continue
		}
		queues[u.Topic+"/"+strconv.Itoa(int(u.QueueID))]++
	}
	require.Equal(t, 1, failed)
	require.Positive(t, queues["GoldenNormal/0"])
	require.Positive(t, queues["GoldenTx/0"])
	require.Zero(t, queues["GoldenTiny/0"]+queues["GoldenNormal/1"])
}

// A folder that cannot be listed does not end the walk over the extensions.
func TestExtensionsGoOnBehindFoldersThatCannotBeListed(t *testing.T) {
	dir := golden.Unpack(t, storeExt)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "consumequeue_ext", "A", "0"), 0o755))
	d, err := inspect.Open(refusingFS{os.DirFS(dir), []string{"consumequeue_ext/A"}})
	require.NoError(t, err)
	units, failed := 0, 0
	for _, err := range d.Extensions(t.Context(), inspect.QueueFilter{}, func(inspect.Finding) {}) {
		if err != nil {
			failed++
			continue
		}
		units++
	}
	require.Equal(t, 1, failed)
	require.Positive(t, units)
}

// What may not be read is told once, by its name; the rest is looked at, and nothing is said about what only that would show.
func TestCheckTellsOnceWhatItMayNotRead(t *testing.T) {
	for store, names := range map[string][]string{
		store49: {
			log0, log1, log2, "commitlog", normal, normal2, "consumequeue/GoldenTiny/0", "consumequeue/GoldenTiny", "consumequeue", idx1, idx2, "index",
			"checkpoint", "config/topics.json", "config/consumerOffset.json",
		},
		store31: {"transaction", states, redo},
	} {
		dir := golden.Unpack(t, store)
		for _, name := range names {
			t.Run(name, func(t *testing.T) {
				d, err := inspect.Open(deniedFS{os.DirFS(dir), name})
				require.NoError(t, err)
				var stats inspect.CheckStats
				told := make(map[string]int)
				for f, err := range d.Check(t.Context(), inspect.CheckOptions{Stats: &stats}) {
					if err != nil {
						told[err.Error()]++
						require.ErrorContains(t, err, name)
						continue
					}
					require.Equal(t, inspect.Info, f.Severity, f)
				}
				require.NotEmpty(t, told)
				for text, n := range told {
					require.Equal(t, 1, n, text)
				}
				if name != "commitlog" {
					require.Positive(t, stats.Records)
				}
			})
		}
	}
}
