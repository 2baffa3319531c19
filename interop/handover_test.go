//go:build interop

package interop_test

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/dialect"
)

// The sizes of the workloads: enough for several files of each kind.
const (
	oursMessages = 220
	javaMessages = 120
	lastMessages = 60
)

// handover is one way to pass a directory from us to the real store and back.
type handover struct {
	name               string
	killOurs, haltJava bool
	longTopics         bool // records of version 2 among those of version 1
}

func handovers(l line) []handover {
	all := []handover{
		{name: "clean stops"},
		{name: "ours is killed and the real store halted", killOurs: true, haltJava: true},
		{name: "ours is killed", killOurs: true},
		{name: "the real store is halted", haltJava: true},
	}
	if l.dialect == "5.3" {
		for _, h := range slices.Clone(all) {
			h.name, h.longTopics = h.name+" with records of version 2", true
			all = append(all, h)
		}
	}
	return all
}

// TestOursGoesToTheRealStoreAndBack: what we write the real store reads, continues and leaves, and we read and continue that
// again; then the real store looks a last time. Nothing is lost or doubled on the way, and no side's recovery cuts anything.
func TestOursGoesToTheRealStoreAndBack(t *testing.T) {
	for _, l := range lines() {
		t.Run(l.version, func(t *testing.T) {
			t.Parallel()
			for _, h := range handovers(l) {
				t.Run(h.name, func(t *testing.T) { relay(t, l, h) })
			}
		})
	}
}

func relay(t *testing.T, l line, h handover) {
	dir := filepath.Join(t.TempDir(), "store")
	k := kind{batches: l.batches, ipv6: l.ipv6, uniqueKeys: true, longTopics: h.longTopics}
	b := newBook(t, l)
	j := startJVM(t, l)

	// We write.
	var unacknowledged []step
	keep := everyKey
	if h.killOurs {
		var acknowledged []sent
		acknowledged, unacknowledged = killOurs(t, l, dir, small, "ours", 4*oursMessages, oursMessages, k)
		b.add(acknowledged)
		keep = keptByJava(t, b.dialect, dir)
	} else {
		s := openOurs(t, l, dir, small)
		b.add(putOurs(t, s, workload("ours", oursMessages, k)))
		require.NoError(t, s.Close(t.Context()))
	}

	// The real store reads, and goes on.
	end := j.open(t, dir, small, nil).MaxPhysical
	d := j.dump(t, small)
	b.adopt(t, d, unacknowledged)
	b.checkEnd(t, d, end)
	b.checkJava(t, j, small, keep)
	b.add(j.put(t, workload("java", javaMessages, k)))
	b.checkJava(t, j, small, keep)
	if h.haltJava {
		j.halt(t)
	} else {
		j.shutdown(t)
	}

	// We read what it left, and go on.
	s := openOurs(t, l, dir, small)
	require.EqualValues(t, -1, s.Report().TruncatedAt, "our recovery cuts nothing")
	require.Equal(t, h.haltJava, s.Report().Unclean)
	b.checkOurs(t, s, keep)
	b.add(putOurs(t, s, workload("again", lastMessages, k)))
	b.checkOurs(t, s, keep)
	require.NoError(t, s.Close(t.Context()))

	// The real store looks again.
	if h.haltJava {
		j = startJVM(t, l)
	}
	end = j.open(t, dir, small, nil).MaxPhysical
	b.checkEnd(t, j.dump(t, small), end)
	b.checkJava(t, j, small, keep)
	j.halt(t)
}

// adopt takes the records into the book that a killed writer had stored but not acknowledged: they must be the next ones of
// its workload.
func (b *book) adopt(t *testing.T, d javaDump, next []step) {
	t.Helper()
	for _, step := range next {
		for _, m := range step {
			if len(b.sent) >= len(d.Records) {
				return
			}
			r := d.Records[len(b.sent)]
			b.sent = append(b.sent, sent{m, r.PhysicalOffset, r.QueueOffset, r.StoreTimestamp})
		}
	}
}

// checkEnd wants the log to end behind the book's last record, or behind the blank that fills the rest of that file.
func (b *book) checkEnd(t *testing.T, d javaDump, end int64) {
	t.Helper()
	last := d.Records[len(b.sent)-1]
	behind := last.PhysicalOffset + int64(last.StoreSize)
	if blank := (behind + small.segment - 1) / small.segment * small.segment; end != blank {
		require.Equal(t, behind, end, "the end of the log after the real store's recovery")
	}
}

// keptByJava says which keys survive the opening of an uncleanly stopped directory by the real store: it deletes the index
// files that end after the checkpoint's index time, and indexes again only from the commit log file on where its recovery
// starts. The directory is read as the kill left it.
func keptByJava(t *testing.T, d *dialect.Dialect, dir string) keeps {
	t.Helper()
	checkpoint := readAt(t, filepath.Join(dir, "checkpoint"), 24)
	var physic, logics, indexed int64
	if checkpoint != nil {
		physic, logics, indexed = long(checkpoint, 0), long(checkpoint, 8), long(checkpoint, 16)
	}
	covered := int64(-1)
	for _, name := range sorted(t, filepath.Join(dir, "index")) {
		if header := readAt(t, name, 40); long(header, 8) <= indexed {
			covered = max(covered, long(header, 24))
		}
	}
	start := int64(0)
	for at, name := range sorted(t, filepath.Join(dir, "commitlog")) {
		head := readAt(t, name, 80)
		time := 56
		if binary.BigEndian.Uint32(head[36:])&16 != 0 {
			time += 12 // the born host is an IPv6 one
		}
		if magic := binary.BigEndian.Uint32(head[4:]); magic != 0xDAA320A7 && (magic != 0xDAA320AB || !d.WritesV2) {
			continue
		}
		if stored := long(head, time); stored != 0 && stored <= max(0, min(physic, logics)-d.CheckpointMargin) {
			start = int64(at) * small.segment
		}
	}
	// The last message of a kept file may have more keys in the next one.
	return func(offset int64) bool { return offset < covered || offset >= start }
}

func long(b []byte, at int) int64 { return int64(binary.BigEndian.Uint64(b[at:])) }

// readAt reads the first bytes of a file; nil when there is no file. A kill may leave a file that was made and has no bytes
// yet; to Java, which maps it at full length, they are zeros.
func readAt(t *testing.T, name string, n int) []byte {
	t.Helper()
	f, err := os.Open(name)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	defer f.Close()
	b := make([]byte, n)
	if _, err = f.ReadAt(b, 0); !errors.Is(err, io.EOF) {
		require.NoError(t, err, name)
	}
	return b
}

// sorted lists the files of a folder by name.
func sorted(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, filepath.Join(dir, e.Name()))
	}
	return names
}
