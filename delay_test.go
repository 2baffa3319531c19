package rocketstore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
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
