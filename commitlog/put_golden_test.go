package commitlog_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// given is a queue offset that is given and not counted.
type given int64

func (g given) NextOffset() int64 { return int64(g) }
func (g given) Advance(int64)     {}

// TestPuttingGoldenMessagesAgainGivesTheSameLog appends the messages of each cleanly stopped store anew, with the same times,
// hosts and properties, and compares every byte but the filler of blanks (R-E-019, R-E-023).
func TestPuttingGoldenMessagesAgainGivesTheSameLog(t *testing.T) {
	for _, name := range golden.Names() {
		exp := golden.Load(t, name)
		if exp.Abort() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir := golden.Unpack(t, name)
			size := exp.Config().CommitLogFileSize
			java := openReal(t, dir, size)
			ours, now := openOurs(t, size)
			putAgain(t, java, ours, now, exp)
			compareLogs(t, java, ours)
		})
	}
}

func openReal(t *testing.T, dir string, size int64) *commitlog.Log {
	t.Helper()
	fsys, err := mappedfile.OpenDir(dir, &mappedfile.DirOptions{ReadOnly: true})
	require.NoError(t, err)
	l, err := commitlog.Open(fsys, &commitlog.Options{SegmentSize: size, ReadOnly: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

func openOurs(t *testing.T, size int64) (*commitlog.Log, *int64) {
	t.Helper()
	now := new(int64)
	l, err := commitlog.Open(memfs.New(), &commitlog.Options{SegmentSize: size, Now: func() int64 { return *now }, NoAhead: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l, now
}

// putAgain appends record after record. Where the real log left a blank that the next record would have filled, a batch
// went to the next segment as a whole: its records are appended as one run.
func putAgain(t *testing.T, java, ours *commitlog.Log, now *int64, exp *golden.Expected) {
	t.Helper()
	d, err := dialect.Parse(exp.Line())
	require.NoError(t, err)
	d.MaxTopicLength = d.MaxRetryTopicLength // these stores were written below the broker, which checks the topic
	records := exp.Records()
	for i := 0; i < len(records); {
		at := records[i].PhysicalOffset
		run, n := []byte(nil), 0
		_, end := ours.Bounds()
		for ; i+n < len(records); n++ {
			r, v, err := java.Read(records[i+n].PhysicalOffset)
			require.NoError(t, err)
			if n > 0 {
				require.Equal(t, records[i].Topic, string(r.Topic), "a batch is of one topic")
			}
			before := len(run)
			run, err = commitlog.AppendMessage(run, r.Message(), d, exp.Config().MaxMessageSize)
			require.NoError(t, err)
			require.Len(t, run[before:], int(r.Size))
			v.Release()
			if end == at || int64(len(run))+commitlog.BlankSize > ours.SegmentSize()-end%ours.SegmentSize() {
				n++
				break
			}
		}
		*now = records[i].StoreTimestamp
		res, err := ours.Append(t.Context(), run, given(records[i].QueueOffset), false)
		require.NoError(t, err)
		require.Equal(t, at, res.PhysicalOffset)
		i += n
	}
}

func compareLogs(t *testing.T, java, ours *commitlog.Log) {
	t.Helper()
	start, end := ours.Bounds()
	for s := start; s < end; s += ours.SegmentSize() {
		have, err := ours.Queue().ViewFrom(s)
		require.NoError(t, err)
		want, err := java.Queue().ViewFrom(s)
		require.NoError(t, err)
		n := len(have.Bytes())
		scan := commitlog.NewBytesScanner(filepath.Base(want.File()), s, want.Bytes())
		for scan.Next() {
			continue
		}
		if scan.Ending() == commitlog.EndBlank { // the filler behind a blank's header means nothing
			n = int(scan.Offset()-s) + commitlog.BlankSize
		}
		require.Equal(t, want.Bytes()[:n], have.Bytes()[:n])
		have.Release()
		want.Release()
	}
}
