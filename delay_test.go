package rocketstore_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
)

func delayed(t *testing.T, body, level string) *message.Message {
	t.Helper()
	p, err := message.NewProperties(message.PropertyTags, "tag", message.PropertyDelay, level)
	require.NoError(t, err)
	return &message.Message{Topic: "T", QueueID: 3, Body: []byte(body), Properties: p}
}

func bodies(t *testing.T, s *rocketstore.Store, topic string, queue int32) []string {
	t.Helper()
	got := []string{}
	for r, err := range s.Messages(topic, queue, 0) {
		require.NoError(t, err)
		got = append(got, string(r.Body))
	}
	return got
}

// A message of level 3 becomes visible after 10 s and at most 1.1 s later, once, also over a clean stop (R-D-099 to R-D-104).
func TestDelayedMessagesAreDeliveredOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := memfs.New()
		o := small()
		o.FS = fsys
		s, err := rocketstore.Open("", o)
		require.NoError(t, err)
		_, err = s.Put(t.Context(), delayed(t, "ten seconds", "3"))
		require.NoError(t, err)
		_, err = s.Put(t.Context(), delayed(t, "at the most two hours", "99"))
		require.NoError(t, err)
		_, err = s.Put(t.Context(), delayed(t, "at once", "0"))
		require.NoError(t, err)
		require.Equal(t, []string{"at once"}, bodies(t, s, "T", 3))
		time.Sleep(9900 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []string{"at once"}, bodies(t, s, "T", 3))
		time.Sleep(1200 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []string{"at once", "ten seconds"}, bodies(t, s, "T", 3))
		require.NoError(t, s.Close(t.Context()))

		s, err = rocketstore.Open("", &rocketstore.Options{FS: fsys})
		require.NoError(t, err)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.Equal(t, []string{"at once", "ten seconds", "at the most two hours"}, bodies(t, s, "T", 3))
		for r, err := range s.Messages("T", 3, 2) {
			require.NoError(t, err)
			require.Equal(t, message.TagsCode("tag"), message.TagsCode(string(message.Lookup(r.Properties, message.PropertyTags))))
			require.Equal(t, "18", string(message.Lookup(r.Properties, message.PropertyDelay)))
		}
		require.NoError(t, s.Close(t.Context()))
	})
}

// When the clock is set back behind the moment of the send, a message is due at once: it would wait for longer than its level says
// (R-D-105).
func TestADelayedMessageIsDueWhenTheClockWasSetBack(t *testing.T) {
	for name, tt := range map[string]struct {
		back time.Duration
		due  bool
	}{
		"by an hour":          {time.Hour, true},
		"by little":           {2 * time.Second, true},
		"by nothing":          {0, false},
		"it was set forward":  {-3 * time.Second, false},
		"forward, and beyond": {-6 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var back atomic.Int64
				o := small()
				o.FS, o.Now = memfs.New(), func() int64 { return time.Now().UnixMilli() - back.Load() }
				s, err := rocketstore.Open("", o)
				require.NoError(t, err)
				_, err = s.Put(t.Context(), delayed(t, "five seconds", "2"))
				require.NoError(t, err)
				back.Store(tt.back.Milliseconds())
				time.Sleep(time.Second + 200*time.Millisecond) // less than its delay; the first look is after one second
				synctest.Wait()
				want := []string{}
				if tt.due {
					want = append(want, "five seconds")
				}
				require.Equal(t, want, bodies(t, s, "T", 3))
				require.NoError(t, s.Close(t.Context()))
			})
		})
	}
}

// The records of waiting messages are those that the real stores hold for the same messages, to the last 0x02, which 4.9 leaves
// out (R-D-011, R-D-099).
func TestWaitingRecordsAreTheRealOnes(t *testing.T) {
	for version, line := range map[string]string{"3.1.4": "3.1", "4.9.7": "4.9", "5.3.3": "5.3"} {
		t.Run(version, func(t *testing.T) {
			name := "rocketmq-" + version + "/clean"
			dir := golden.Unpack(t, name)
			theirs := open(t, dir, &rocketstore.Options{ReadOnly: true})
			ours := inMemory(t, memfs.New(), line)
			waiting, records := 0, golden.Load(t, name).Records()
			for i := range records {
				r := &records[i]
				if r.Topic != "SCHEDULE_TOPIC_XXXX" {
					continue
				}
				waiting++
				m := goldenMessage(t, dir, r)
				m.SysFlag = message.SysFlag(r.SysFlag)
				put, err := ours.Put(t.Context(), m)
				require.NoError(t, err)
				require.Equal(t, recordAt(t, theirs, r.PhysicalOffset), recordAt(t, ours, put.PhysicalOffset))
				require.Equal(t, lastByte(t, theirs, r.PhysicalOffset), lastByte(t, ours, put.PhysicalOffset))
			}
			require.GreaterOrEqual(t, waiting, 3)
		})
	}
}

// lastByte is the end of a record's property list.
func lastByte(t *testing.T, s *rocketstore.Store, offset int64) byte {
	t.Helper()
	for r, err := range s.Records(offset) {
		require.NoError(t, err)
		return r.Properties[len(r.Properties)-1]
	}
	t.Fatalf("no record at %d", offset)
	return 0
}

// Progress that lies behind the end of its level, of a log that lost more than the file or of another store, is set back: the
// messages to come are delivered, once.
func TestDelayProgressBehindTheEndIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := memfs.New()
		o := small()
		o.FS = fsys
		s := open(t, "", o)
		_, err := s.Put(t.Context(), delayed(t, "one", "1"))
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.NoError(t, s.Close(t.Context()))
		ahead := &config.DelayOffsets{}
		_, err = config.Load[mappedfile.File](fsys, ahead)
		require.NoError(t, err)
		ahead.Table.Set(1, 100)
		ahead.Table.Set(2, 7) // a level without a queue
		require.NoError(t, config.Save[mappedfile.File](fsys, ahead))
		s = open(t, "", o)
		for _, level := range []string{"1", "2"} {
			_, err = s.Put(t.Context(), delayed(t, "of level "+level, level))
			require.NoError(t, err)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"one", "of level 1", "of level 2"}, bodies(t, s, "T", 3))
		require.NoError(t, s.Close(t.Context()))
	})
}
