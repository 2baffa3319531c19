package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/message"
)

// contents is what every file of a directory holds.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	require.NoError(t, filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		if e.Type().IsRegular() {
			b, err := os.ReadFile(p)
			require.NoError(t, err)
			name, err := filepath.Rel(dir, p)
			require.NoError(t, err)
			all[name] = string(b)
		}
		return nil
	}))
	return all
}

// Snapshots of a store that is written to meanwhile open, hold every message that was acknowledged before, and nothing that was
// done to one reaches the original or the next one.
func TestSnapshotsOfALiveStoreOpenAndStandAlone(t *testing.T) {
	for _, share := range []string{"link", "copy", "auto"} {
		t.Run(share, func(t *testing.T) {
			dir, work := filepath.Join(golden.TempDir(t), "live"), golden.TempDir(t)
			o := &rocketstore.Options{SegmentSize: 64 << 10, QueueSegmentSize: 1000, IndexSlots: 100, IndexEntries: 200}
			s, err := rocketstore.Open(dir, o)
			require.NoError(t, err)
			first, err := s.Put(t.Context(), &message.Message{Topic: "T", Body: make([]byte, 300)})
			require.NoError(t, err)
			require.NoError(t, s.WaitDispatched(t.Context(), first.PhysicalOffset+int64(first.Size))) // the queue is there
			var acknowledged atomic.Int64
			var writer sync.WaitGroup
			stop := make(chan struct{})
			writer.Go(func() {
				for n := int64(0); ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					p, err := message.NewProperties(message.PropertyKeys, fmt.Sprint("k", n))
					if err != nil {
						panic(err)
					}
					if _, err := s.Put(t.Context(), &message.Message{Topic: "T", Body: make([]byte, 300), Properties: p}); err != nil {
						panic(err)
					}
					acknowledged.Store(n + 1)
				}
			})
			var made []string
			var before []int64
			for i := range 3 {
				for acknowledged.Load() < int64(300*(i+1)) {
					_, err := os.Stat(dir) // let the writer work
					require.NoError(t, err)
				}
				to := filepath.Join(work, strconv.Itoa(i))
				before = append(before, acknowledged.Load())
				var out, problems bytes.Buffer
				require.Equal(t, statusFine, run(t.Context(), []string{"snapshot", dir, "--to", to, "--share", share}, &out, &problems), problems.String())
				made = append(made, to)
			}
			close(stop)
			writer.Wait()
			require.NoError(t, s.Close(t.Context()))
			original := contents(t, dir)
			untouched := contents(t, made[1])
			for i, to := range made {
				if i == 1 {
					continue
				}
				var out, problems bytes.Buffer
				require.Equal(t, statusFine, run(t.Context(), []string{"check", to}, &out, &problems), out.String())
				copied, err := rocketstore.Open(to, nil)
				require.NoError(t, err)
				n := int64(0)
				for r, err := range copied.Messages("T", 0, 0) {
					require.NoError(t, err)
					require.Equal(t, n, r.QueueOffset)
					n++
				}
				require.GreaterOrEqual(t, n, before[i])
				for range 400 { // beyond the last file
					_, err := copied.Put(t.Context(), &message.Message{Topic: "T", Body: make([]byte, 300)})
					require.NoError(t, err)
				}
				require.NoError(t, copied.Close(t.Context()))
			}
			require.Equal(t, original, contents(t, dir))
			require.Equal(t, untouched, contents(t, made[1]))
			d, err := inspect.Open(os.DirFS(dir))
			require.NoError(t, err)
			for f, err := range d.Check(t.Context(), inspect.CheckOptions{}) {
				require.NoError(t, err)
				t.Fatal(f)
			}
		})
	}
}
