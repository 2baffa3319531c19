package inspect_test

import (
	"io/fs"
	"os"
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
