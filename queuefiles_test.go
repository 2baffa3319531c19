package rocketstore_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// queueFile is a file of one of the queues that manyFiles makes.
func queueFile(dir, queue string, n int64) string {
	return filepath.Join(dir, "consumequeue", queue, mappedfile.SegmentName(n*400))
}

// manyFiles makes a store of which two queues with four files each, and one with one, were written long before the end of the log.
func manyFiles(t *testing.T, clean bool) (dir string, want map[string][]string) {
	t.Helper()
	dir, want = golden.TempDir(t), make(map[string][]string)
	o := small()
	now := int64(1_000_000)
	o.SegmentSize, o.CheckpointEvery, o.HoldDelayed = 4096, time.Hour, true
	o.Now = func() int64 { now += 1000; return now }
	s := open(t, dir, o)
	for i := range 210 {
		topic := []string{"A", "B"}[i%2]
		switch {
		case i >= 150:
			topic = "Last"
		case i%30 == 7:
			topic = "Few"
		}
		body := fmt.Sprint("body ", i)
		_, err := s.Put(t.Context(), msg(topic, 0, body, "tag", fmt.Sprint("key-", i)))
		require.NoError(t, err)
		want[topic] = append(want[topic], body)
	}
	if clean {
		require.NoError(t, s.Close(t.Context()))
		return dir, want
	}
	_, end := s.Bounds()
	require.NoError(t, s.WaitDispatched(t.Context(), end))
	require.NoError(t, s.Checkpoint(t.Context()))
	require.NoError(t, s.Abandon())
	return dir, want
}

// swap exchanges two files.
func swap(t *testing.T, a, b string) {
	t.Helper()
	require.NoError(t, os.Rename(a, a+".x"))
	require.NoError(t, os.Rename(b, a))
	require.NoError(t, os.Rename(a+".x", b))
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, b, 0o600))
}

// Whatever became of a queue's files, all that the log has is in its queue afterwards, after every kind of stop and however
// little of the log is compared; a second opening finds nothing to mend; who only reads is given nothing wrong; and the plan says what is going to change
// (R-E-045, R-E-066, R-E-072, R-E-073).
func TestQueueFilesThatAreMissingOrNotTheirOwnAreMadeAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		harm func(t *testing.T, dir string)
	}{
		{"first file missing", func(t *testing.T, dir string) { remove(t, queueFile(dir, "A/0", 0)) }},
		{"first two files missing", func(t *testing.T, dir string) {
			remove(t, queueFile(dir, "A/0", 0))
			remove(t, queueFile(dir, "A/0", 1))
		}},
		{"a middle file missing", func(t *testing.T, dir string) { remove(t, queueFile(dir, "A/0", 1)) }},
		{"two middle files missing", func(t *testing.T, dir string) {
			remove(t, queueFile(dir, "A/0", 1))
			remove(t, queueFile(dir, "A/0", 2))
		}},
		{"first and third file missing", func(t *testing.T, dir string) {
			remove(t, queueFile(dir, "A/0", 0))
			remove(t, queueFile(dir, "A/0", 2))
		}},
		{"last file missing", func(t *testing.T, dir string) { remove(t, queueFile(dir, "A/0", 3)) }},
		{"first file under another name", func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(queueFile(dir, "A/0", 0), queueFile(dir, "A/0", 7)))
		}},
		{"the only file under another name", func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(queueFile(dir, "Few/0", 0), queueFile(dir, "Few/0", 3)))
		}},
		{"a middle file over another", func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(queueFile(dir, "A/0", 2), queueFile(dir, "A/0", 1)))
		}},
		{"two files in each other's place", func(t *testing.T, dir string) { swap(t, queueFile(dir, "A/0", 1), queueFile(dir, "A/0", 2)) }},
		{"first and last file in each other's place", func(t *testing.T, dir string) { swap(t, queueFile(dir, "A/0", 0), queueFile(dir, "A/0", 3)) }},
		{"files of two queues in each other's place", func(t *testing.T, dir string) { swap(t, queueFile(dir, "A/0", 1), queueFile(dir, "B/0", 1)) }},
		{"first files of two queues in each other's place", func(t *testing.T, dir string) { swap(t, queueFile(dir, "A/0", 0), queueFile(dir, "B/0", 0)) }},
		{"last files of two queues in each other's place", func(t *testing.T, dir string) { swap(t, queueFile(dir, "A/0", 3), queueFile(dir, "B/0", 3)) }},
		{"only files of two queues in each other's place", func(t *testing.T, dir string) { swap(t, queueFile(dir, "Few/0", 0), queueFile(dir, "A/0", 0)) }},
		{"a file of another queue behind the last", func(t *testing.T, dir string) { copyFile(t, queueFile(dir, "B/0", 1), queueFile(dir, "Few/0", 1)) }},
		{"a file of another queue in place of the only one", func(t *testing.T, dir string) { copyFile(t, queueFile(dir, "Last/0", 0), queueFile(dir, "Few/0", 0)) }},
		{"the last file zeroed", func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(queueFile(dir, "A/0", 3), make([]byte, 400), 0o600))
		}},
		{"the only file zeroed", func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(queueFile(dir, "Few/0", 0), make([]byte, 400), 0o600))
		}},
		{"folders of two queues in each other's place", func(t *testing.T, dir string) {
			swap(t, filepath.Join(dir, "consumequeue/A"), filepath.Join(dir, "consumequeue/B"))
		}},
		{"last file cut short", func(t *testing.T, dir string) { require.NoError(t, os.Truncate(queueFile(dir, "A/0", 3), 130)) }},
		{"last file without a byte", func(t *testing.T, dir string) { require.NoError(t, os.Truncate(queueFile(dir, "A/0", 3), 0)) }},
	} {
		for _, stop := range []string{"ours", "the original's", "killed"} {
			t.Run(tt.name+"/"+stop, func(t *testing.T) {
				dir, want := manyFiles(t, stop != "killed")
				tt.harm(t, dir)
				if stop == "the original's" {
					remove(t, filepath.Join(dir, "config/rocketstore.json"))
				}
				madeAgain(t, dir, want)
			})
		}
	}
}

// madeAgain opens a store, to read, to plan and to write, and compares.
func madeAgain(t *testing.T, dir string, want map[string][]string) {
	t.Helper()
	o := &rocketstore.Options{SegmentSize: 4096, QueueSegmentSize: 400, IndexSlots: 50, IndexEntries: 40, ReadOnly: true, Recovery: recovery.Options{VerifyBytes: 1}}
	s := open(t, dir, o)
	for topic, all := range want {
		for r, err := range s.Messages(topic, 0, 0) {
			if err != nil {
				require.ErrorIs(t, err, rocketstore.ErrCorrupt)
				continue
			}
			require.Equal(t, topic, string(r.Topic))
			require.Contains(t, all, string(r.Body))
		}
	}
	require.NoError(t, s.Close(t.Context()))
	o.ReadOnly = false
	plan, changes, err := rocketstore.Plan(t.Context(), dir, o)
	require.NoError(t, err)
	before := golden.Snapshot(t, dir)
	s = open(t, dir, o)
	comparePlan(t, plan, changes, s, before, dir)
	require.NotEmpty(t, changes)
	for topic, all := range want {
		require.Equal(t, all, bodies(t, s, topic, 0), topic)
	}
	r := s.Report()
	require.Empty(t, r.Lost)
	require.NoError(t, s.Abandon())
	first := golden.Snapshot(t, dir)
	s = open(t, dir, o)
	require.Empty(t, s.Report().Warnings)
	require.NoError(t, s.Abandon())
	for name, f := range golden.Snapshot(t, dir) {
		require.Equal(t, first[name].Hash, f.Hash, name)
	}
	s = open(t, dir, o)
	for topic, all := range want {
		res, err := s.Put(t.Context(), msg(topic, 0, "next", "", ""))
		require.NoError(t, err)
		require.EqualValues(t, len(all), res.QueueOffset, topic)
	}
	require.NoError(t, s.Close(t.Context()))
}

// indexFiles are the paths of the files of the index, oldest first.
func indexFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "index", "*"))
	require.NoError(t, err)
	return files
}

// Whatever became of index files, all keys are found afterwards, once each, however little of the log is compared (R-E-058, R-E-059,
// R-E-066).
func TestIndexFilesThatAreMissingOrNotTheirOwnAreMadeAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		harm func(t *testing.T, files []string)
	}{
		{"first file missing", func(t *testing.T, files []string) { remove(t, files[0]) }},
		{"a middle file missing", func(t *testing.T, files []string) { remove(t, files[2]) }},
		{"two middle files missing", func(t *testing.T, files []string) {
			remove(t, files[1])
			remove(t, files[2])
		}},
		{"last file missing", func(t *testing.T, files []string) { remove(t, files[len(files)-1]) }},
		{"two files in each other's place", func(t *testing.T, files []string) { swap(t, files[1], files[2]) }},
		{"first and last in each other's place", func(t *testing.T, files []string) { swap(t, files[0], files[len(files)-1]) }},
		{"one file over another", func(t *testing.T, files []string) { copyFile(t, files[1], files[2]) }},
		{"a file twice", func(t *testing.T, files []string) { copyFile(t, files[1], files[1][:len(files[1])-1]+"9") }},
		{"a middle file zeroed", func(t *testing.T, files []string) {
			info, err := os.Stat(files[2])
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(files[2], make([]byte, info.Size()), 0o600))
		}},
		{"a begin offset from elsewhere", func(t *testing.T, files []string) {
			writeAt(t, files[2], 16, binary.BigEndian.AppendUint64(nil, 1))
		}},
		{"an end offset from elsewhere", func(t *testing.T, files []string) {
			writeAt(t, files[2], 24, binary.BigEndian.AppendUint64(nil, 20_000))
		}},
	} {
		for _, stop := range []string{"ours", "the original's", "killed"} {
			t.Run(tt.name+"/"+stop, func(t *testing.T) {
				dir, want := manyFiles(t, stop != "killed")
				tt.harm(t, indexFiles(t, dir))
				if stop == "the original's" {
					remove(t, filepath.Join(dir, "config/rocketstore.json"))
				}
				madeAgain(t, dir, want)
				s := open(t, dir, nil)
				n := 0
				for topic, all := range want {
					for _, body := range all {
						var got []string
						for r, err := range s.Query(t.Context(), rocketstore.QueryRequest{Topic: topic, Key: "key-" + strings.TrimPrefix(body, "body ")}) {
							require.NoError(t, err)
							got = append(got, string(r.Body))
						}
						require.Equal(t, []string{body}, got)
						n++
					}
				}
				require.Equal(t, 210, n)
				require.NoError(t, s.Close(t.Context()))
			})
		}
	}
}

// A unit that is damaged, or another queue's, gives an error with its place, and not the message of another topic or another place of
// the log. Those before and behind it are served.
func TestAUnitOfAnotherTopicIsNotServed(t *testing.T) {
	for name, unit := range map[string]consumequeue.Unit{
		"another topic":       {PhysicalOffset: 0, Size: 1, TagsCode: 0},
		"zeros":               {},
		"negative":            {PhysicalOffset: -1, Size: 100},
		"another size":        {PhysicalOffset: 0, Size: 100},
		"within a record":     {PhysicalOffset: 3, Size: 100},
		"behind the log":      {PhysicalOffset: 1 << 40, Size: 100},
		"the first unit of B": {PhysicalOffset: 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir, want := manyFiles(t, true)
			switch name {
			case "another topic":
				b, err := os.ReadFile(queueFile(dir, "A/0", 0))
				require.NoError(t, err)
				unit, err = consumequeue.Decode(b)
				require.NoError(t, err)
			case "the first unit of B":
				b, err := os.ReadFile(queueFile(dir, "A/0", 1))
				require.NoError(t, err)
				unit, err = consumequeue.Decode(b)
				require.NoError(t, err)
			}
			writeAt(t, queueFile(dir, "B/0", 1), 100, unit.AppendTo(nil)) // inside, where a clean stop of our own is believed
			s := open(t, dir, nil)
			var got []string
			failed := 0
			for r, err := range s.Messages("B", 0, 0) {
				if err != nil {
					c, ok := errors.AsType[*mappedfile.CorruptError](err)
					require.True(t, ok, "%v", err)
					if unit.PhysicalOffset != 3 {
						require.Equal(t, "consumequeue/B/0/"+mappedfile.SegmentName(400), c.File)
						require.EqualValues(t, 100, c.Offset)
					}
					failed++
					continue
				}
				got = append(got, string(r.Body))
			}
			require.Equal(t, 1, failed)
			require.Equal(t, append(want["B"][:25:25], want["B"][26:]...), got)
			got = nil
			for at := int64(0); at < int64(len(want["B"])); {
				g, err := s.Get(t.Context(), rocketstore.GetRequest{Topic: "B", Offset: at})
				if err != nil {
					require.ErrorIs(t, err, rocketstore.ErrCorrupt)
				}
				for i := range g.Records {
					got = append(got, string(g.Records[i].Body))
				}
				require.Greater(t, g.Next, at)
				at = g.Next
				g.Release()
			}
			require.Equal(t, append(want["B"][:25:25], want["B"][26:]...), got)
			require.NoError(t, s.Close(t.Context()))
		})
	}
}

// The place of a tags code may hold the address of a unit of the queue's extension. One where the extension has no unit, or
// one with another tags code, is damage, and written again (R-E-048).
func TestAnAddressThatIsNoneIsWrittenAgain(t *testing.T) {
	for _, code := range []int64{math.MinInt64, math.MinInt64 + 20, math.MinInt32 - 1, math.MinInt64 + 1<<40} {
		dir, _ := manyFiles(t, false)
		name := queueFile(dir, "Last/0", 1)
		before, err := os.ReadFile(name)
		require.NoError(t, err)
		writeAt(t, name, 112, binary.BigEndian.AppendUint64(nil, uint64(code)))
		s := open(t, dir, nil)
		require.Equal(t, 1, kinds(s)[recovery.KindWrongUnit])
		require.NoError(t, s.Close(t.Context()))
		after, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, before, after)
	}
}

// A blank over the last record leaves no unit of it, and no key; neither do damaged segments that are passed over whole (R-E-068,
// R-E-071).
func TestWhatIsNoLongerInTheLogLeavesNoUnitAndNoKey(t *testing.T) {
	for _, stop := range []string{"ours", "the original's", "killed"} {
		for _, harm := range []string{"blank over the last record", "blank over the last record of a segment in the middle", "segment in the middle", "first segment"} {
			t.Run(harm+"/"+stop, func(t *testing.T) {
				dir, want := manyFiles(t, stop != "killed")
				s := open(t, dir, nil)
				last := map[int64]int64{} // of each segment
				start, _ := s.Bounds()
				for r, err := range s.Records(start) {
					require.NoError(t, err)
					last[r.PhysicalOffset/4096] = r.PhysicalOffset
				}
				require.NoError(t, s.Abandon())
				o := &rocketstore.Options{Recovery: recovery.Options{OnDamage: recovery.Skip}}
				segment, lastSegment := int64(3), int64(len(last)-1)
				switch harm {
				case "blank over the last record":
					segment = lastSegment
					fallthrough
				case "blank over the last record of a segment in the middle":
					at := last[segment] % 4096
					b := binary.BigEndian.AppendUint32(nil, uint32(4096-at))
					b = binary.BigEndian.AppendUint32(b, commitlog.MagicBlank)
					writeAt(t, filepath.Join(dir, "commitlog", mappedfile.SegmentName(segment*4096)), at, b)
				case "first segment":
					segment = 0
					fallthrough
				default:
					writeAt(t, filepath.Join(dir, "commitlog", mappedfile.SegmentName(segment*4096)), 0, bytes.Repeat([]byte{7}, 4096))
				}
				if stop == "the original's" {
					remove(t, filepath.Join(dir, "config/rocketstore.json"))
				}
				var first map[string]golden.State
				for i := range 3 {
					s = open(t, dir, o)
					for topic, all := range want {
						for _, body := range bodies(t, s, topic, 0) {
							require.Contains(t, all, body)
						}
						for _, body := range all {
							for _, err := range s.Query(t.Context(), rocketstore.QueryRequest{Topic: topic, Key: "key-" + strings.TrimPrefix(body, "body ")}) {
								require.NoError(t, err)
							}
						}
					}
					require.NoError(t, s.Abandon())
					if now := golden.Snapshot(t, dir); i > 0 {
						for name, f := range now {
							require.Equal(t, first[name].Hash, f.Hash, name)
						}
					} else {
						first = now
					}
				}
			})
		}
	}
}
