package consumer_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

func TestEachBroadcastMemberGetsEverythingAndKeepsItsPlace(t *testing.T) { // R-G-33
	dir := t.TempDir()
	inWorld(t, []string{"a"}, func(t *testing.T, w *world) {
		want := w.fill("T", "m", 20)
		one, two := &seen{fail: failing("m7")}, &seen{}
		o := w.options("one", one, "T")
		o.Broadcast, o.OffsetDir = true, dir
		c := w.consume(o)
		o.Listener, o.ClientOptions.InstanceName = two.listen, "two"
		w.consume(o)
		settle(2 * time.Second)
		require.ElementsMatch(t, want, one.bodies(), "m7 failed and is dropped")
		require.ElementsMatch(t, want, two.bodies())
		require.Len(t, c.Queues(), 4, "there is no retry topic")
		settle(10 * time.Second)
		file := filepath.Join(dir, c.ClientID(), "CG", "offsets.json")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(text), "\"queueId\":0,\n\t\t\t\"topic\":\"T\"\n\t\t}:5")
		require.NoError(t, c.Close(context.Background()))
		require.Equal(t, "-22", w.stored("a", "CG", "T", 0))

		more := w.fill("T", "more", 4)
		require.NoError(t, os.WriteFile(file, nil, 0o600)) // a crash of another program; the backup helps
		again := &seen{}
		o.Listener, o.ClientOptions.InstanceName = again.listen, "one"
		w.consume(o)
		settle(2 * time.Second)
		require.Subset(t, again.bodies(), more)
	})
}

func TestADamagedFileOfOffsetsIsAnError(t *testing.T) { // R-G-33
	dir := t.TempDir()
	inWorld(t, nil, func(t *testing.T, w *world) {
		o := w.options("one", &seen{}, "T")
		o.Broadcast, o.OffsetDir = true, dir
		c := w.consume(o)
		folder := filepath.Join(dir, c.ClientID(), "CG")
		require.NoError(t, c.Close(context.Background()))
		require.NoError(t, os.MkdirAll(folder, 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "offsets.json"), []byte(`{"offsetTable":{{`), 0o600))
		require.ErrorContains(t, start(o), "offsets.json")
	})
}

func TestABroadcastMemberCommitsNothingWithItsPulls(t *testing.T) { // protocol 8.3
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		o := w.options("one", &seen{}, "T")
		o.Broadcast, o.OffsetDir = true, t.TempDir()
		w.consume(o)
		b.put(0, "m")
		settle(30 * time.Second)
		require.Empty(t, b.requests(remoting.GetConsumerListByGroup))
		require.Empty(t, b.requests(remoting.UpdateConsumerOffset))
		for _, pull := range b.requests(remoting.PullMessage) {
			require.Equal(t, "2", pull.Fields.Get("sysFlag"))
		}
	})
}
