package index_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

var seed = flag.Uint64("seed", 1, "seed of the random tests")

// crashShape has files of some pages, so that parts of one may be durable and parts not.
var crashShape = index.Shape{Slots: 1500, Entries: 400}

// randomLog is records with none to four keys, whose clock sometimes goes back. The first has a key, since a file that is made
// again begins, and so gets its name, at its first key.
func randomLog(rng *rand.Rand, n int) []index.Keys {
	var log []index.Keys
	offset, now := int64(0), start
	for range n {
		var keys []byte
		for range rng.IntN(5) {
			keys = fmt.Appendf(keys, "key%d ", rng.IntN(300))
		}
		log = append(log, index.Keys{Topic: []byte("T"), UniqueKey: fmt.Appendf(nil, "id%d", offset), Keys: keys, PhysicalOffset: offset, StoreTimestamp: now})
		if rng.IntN(10) == 0 && offset > 0 {
			log[len(log)-1].UniqueKey, log[len(log)-1].Keys = nil, nil
		}
		offset += 100 + rng.Int64N(400)
		if now += rng.Int64N(2000); rng.IntN(50) == 0 {
			now -= 60_000
		}
	}
	return log
}

// noted is what a checkpoint would say by then, and our note beside it.
type noted struct {
	indexTime int64
	mark      *index.Mark
}

// run puts the log until the power fails and gives what was noted by then.
func run(t *testing.T, fsys mappedfile.FS, log []index.Keys, rng *rand.Rand) (last noted) {
	t.Helper()
	x, err := index.Open(fsys, "index", &index.Options{Slots: crashShape.Slots, Entries: crashShape.Entries})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Abandon()) }()
	for _, k := range log {
		err := x.Put(k)
		if err == nil && rng.IntN(40) == 0 {
			mark, failed := x.Mark()
			require.NoError(t, failed)
			if err = x.Sync(); err == nil {
				last = noted{x.FullThrough(), mark}
			}
		}
		if err != nil {
			require.ErrorIs(t, err, crashfs.ErrCrashed)
			break
		}
	}
	return last
}

// kind is how a recovery goes about it.
type kind int

const (
	keepAll    kind = iota // torn files too
	dropTorn               // those that the checkpoint does not prove to be whole
	takeUpTorn             // but the last file is taken up where the note proves it
)

// recoverIndex makes the index whole again as recovery does, and gives its files.
func recoverIndex(fsys mappedfile.FS, log []index.Keys, last noted, how kind) ([]index.FileInfo, error) {
	x, err := index.Open(fsys, "index", &index.Options{Slots: crashShape.Slots, Entries: crashShape.Entries})
	if err != nil {
		return nil, err
	}
	keep, proof := index.Synced(x.Files(), last.indexTime), (*index.Proof)(nil)
	if how == takeUpTorn && last.mark != nil {
		if proof, err = x.Prove(last.mark); err != nil || proof == nil {
			return nil, errors.Join(errors.New("the note does not hold"), err)
		}
		keep = 1 + slices.IndexFunc(x.Files(), func(f index.FileInfo) bool { return f.Name == last.mark.File })
	}
	if how != keepAll {
		_, err = x.DropTail(keep)
	}
	from, dropped := x.DroppedFrom()
	if proof != nil {
		err = errors.Join(err, x.TakeUp(proof))
		from, dropped = last.mark.Header.EndOffset, true
	}
	if !dropped {
		from = x.EndOffset()
	}
	for _, k := range log {
		if err == nil && k.PhysicalOffset >= from {
			err = x.Put(k)
		}
	}
	files := x.Files()
	return files, errors.Join(err, x.Sync(), x.Close())
}

// lost compares a recovered index with one that was never interrupted.
func lost(t *testing.T, fsys, whole mappedfile.FS, log []index.Keys, last noted, how kind) string {
	t.Helper()
	if _, err := recoverIndex(fsys, log, last, how); err != nil {
		return err.Error()
	}
	if a, b := names(t, fsys), names(t, whole); !slices.Equal(a, b) {
		return fmt.Sprintf("files %v, want %v", a, b)
	}
	for i, b := range content(t, whole) {
		if !bytes.Equal(b, content(t, fsys)[i]) {
			return fmt.Sprintf("file %d differs", i)
		}
	}
	return ""
}

// losses cuts the power at many moments and gives what was lost first.
func losses(t *testing.T, how kind, prepare func(*crashfs.FS)) (found string, images int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(*seed, 1))
	log := randomLog(rng, 600)
	whole := memfs.New()
	run(t, whole, log, rng)
	total := crashfs.New(memfs.New())
	run(t, total, log, rand.New(rand.NewPCG(*seed, 2)))
	for step := range total.Steps() {
		fsys := crashfs.New(memfs.New())
		prepare(fsys)
		fsys.CrashAfter(step)
		last := run(t, fsys, log, rand.New(rand.NewPCG(*seed, 2)))
		snapshot := fsys.Snapshot()
		for image := range uint64(6) {
			images++
			if text := lost(t, snapshot.Image(image+uint64(step)*(image/2)), whole, log, last, how); text != "" {
				return fmt.Sprintf("seed %d, step %d, image %d: %s", *seed, step, image, text), images
			}
		}
	}
	return "", images
}

// R-E-058, R-E-066: after a power cut at any moment, dropping and a replay from where the index says give the files of a
// run without a cut: every key is there, none twice.
func TestPowerCutsLoseNoKey(t *testing.T) {
	for _, how := range []kind{dropTorn, takeUpTorn} {
		found, images := losses(t, how, func(*crashfs.FS) {})
		require.Empty(t, found)
		require.Greater(t, images, 200)
	}
}

// The same test sees when files are kept that may be torn, and when a sync is left out.
func TestPowerCutTestSeesPlantedBugs(t *testing.T) {
	for name, bug := range map[string]func(*crashfs.FS){
		"files of the directory not synced": func(f *crashfs.FS) { f.Ignore(crashfs.OpSyncDir, "index") },
		"full files not synced": func(f *crashfs.FS) {
			f.Ignore(crashfs.OpSync, "")
			f.Ignore(crashfs.OpSyncRange, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, how := range []kind{dropTorn, takeUpTorn} {
				found, _ := losses(t, how, bug)
				require.NotEmpty(t, found)
			}
		})
	}
	t.Run("torn files kept", func(t *testing.T) {
		found, _ := losses(t, keepAll, func(*crashfs.FS) {})
		require.NotEmpty(t, found)
	})
}
