package consumer_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumer"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

func (w *world) puller(o consumer.PullOptions) *consumer.Puller {
	w.t.Helper()
	o.NameServers, o.ClientOptions, o.Group, o.From = []string{nameServer}, consumer.ClientOptions{Dial: w.net.Dial}, "PULL", consumer.FromFirst
	p, err := consumer.StartPull(w.t.Context(), &o)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, p.Close(context.Background())) })
	return p
}

// polled polls until there is nothing for a second.
func polled(t *testing.T, p *consumer.Puller) (bodies []string) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		list, err := p.Poll(ctx)
		cancel()
		if err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			return bodies
		}
		for _, m := range list {
			bodies = append(bodies, string(m.Body))
		}
	}
}

func TestAPullerReadsWhatItIsAssigned(t *testing.T) { // R-G-28, R-G-29
	inWorld(t, []string{"a"}, func(t *testing.T, w *world) {
		want := w.fill("T", "m", 16)
		p := w.puller(consumer.PullOptions{})
		all, err := p.Queues(t.Context(), "T")
		require.NoError(t, err)
		require.Len(t, all, 4)
		require.NoError(t, p.Assign(t.Context(), "*", all[0], all[1]))
		require.ElementsMatch(t, []string{"m0", "m4", "m8", "m12", "m1", "m5", "m9", "m13"}, polled(t, p))
		require.NoError(t, p.Assign(t.Context(), "*", all...))
		require.ElementsMatch(t, []string{"m2", "m6", "m10", "m14", "m3", "m7", "m11", "m15"}, polled(t, p))
		require.NoError(t, p.Seek(all[2], 3))
		require.Equal(t, []string{"m14"}, polled(t, p))
		require.NoError(t, p.SeekToBegin(t.Context(), all[3]))
		require.Equal(t, []string{"m3", "m7", "m11", "m15"}, polled(t, p))
		require.NoError(t, p.SeekToEnd(t.Context(), all[3]))
		require.Empty(t, polled(t, p))
		time.Sleep(time.Hour)
		now := time.Now()
		w.send("a", "T", 3, "", "late")
		require.NoError(t, p.SeekToTime(t.Context(), all[3], now))
		require.Equal(t, []string{"late"}, polled(t, p))
		require.NoError(t, p.Close(context.Background()))
		require.Equal(t, "5", w.stored("a", "PULL", "T", 3))

		again := w.puller(consumer.PullOptions{})
		require.NoError(t, again.Assign(t.Context(), "Tag1", all...))
		require.Empty(t, polled(t, again), "all of %v is consumed", want)
		for _, q := range all {
			require.NoError(t, again.Seek(q, 0))
		}
		require.ElementsMatch(t, []string{"m1", "m4", "m7", "m10", "m13"}, polled(t, again))
	})
}

func TestAPullerStoresWhatWasPolledBefore(t *testing.T) {
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		for _, body := range []string{"m0", "m1", "m2", "m3"} {
			b.put(0, body)
		}
		q := consumer.Queue{Topic: "T", BrokerName: "fake"}
		p := w.puller(consumer.PullOptions{PullBatch: 2})
		require.NoError(t, p.Assign(t.Context(), "*", q))
		list, err := p.Poll(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 2)
		settle(20 * time.Second)
		require.Zero(t, b.committed()[0], "they may still be in hand")
		position, err := p.Position(q)
		require.NoError(t, err)
		require.Equal(t, int64(2), position)
		_, err = p.Poll(t.Context())
		require.NoError(t, err)
		settle(6 * time.Second)
		require.Equal(t, int64(2), b.committed()[0])
		require.NoError(t, p.Commit(t.Context()))
		require.Equal(t, int64(4), b.committed()[0])
		offset, ok, err := p.Committed(t.Context(), q)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, int64(4), offset)
		pull := b.requests(remoting.PullMessage)[0].Fields
		require.Equal(t, "6", pull.Get("sysFlag"), "the subscription is in the pull, the offset is not")
		require.Equal(t, "*", pull.Get("subscription"))

		require.NoError(t, p.Pause(q))
		b.put(0, "m4")
		require.Empty(t, polled(t, p))
		require.NoError(t, p.Resume(q))
		require.Equal(t, []string{"m4"}, polled(t, p))

		other := consumer.Queue{Topic: "T", BrokerName: "elsewhere"}
		require.ErrorIs(t, p.Seek(other, 0), consumer.ErrNotAssigned)
		require.ErrorIs(t, p.Pause(other), consumer.ErrNotAssigned)
		require.ErrorContains(t, p.Assign(t.Context(), "*", q, other), "elsewhere")
		require.NoError(t, p.Close(context.Background()))
		_, err = p.Poll(t.Context())
		require.ErrorIs(t, err, consumer.ErrClosed)
		require.Equal(t, int64(5), b.committed()[0])
	})
}

func TestAPullerThatDoesNotSaveLeavesNoOffsets(t *testing.T) {
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		b.put(0, "m0")
		p := w.puller(consumer.PullOptions{NoSave: true})
		require.NoError(t, p.Assign(t.Context(), "*", consumer.Queue{Topic: "T", BrokerName: "fake"}))
		require.Equal(t, []string{"m0"}, polled(t, p))
		settle(time.Minute)
		require.NoError(t, p.Assign(t.Context(), "*"))
		require.NoError(t, p.Close(context.Background()))
		require.Empty(t, b.committed())
	})
}

func TestTheProgressOfATopicIsThatOfAllItsQueuesAsTheBrokersHaveThemNow(t *testing.T) {
	inWorld(t, []string{"a"}, func(t *testing.T, w *world) {
		w.fill("T", "m", 16)
		p := w.puller(consumer.PullOptions{})
		all, err := p.Queues(t.Context(), "T")
		require.NoError(t, err)
		require.NoError(t, p.Assign(t.Context(), "*", all[0]))
		require.Len(t, polled(t, p), 4)
		w.fill("T", "late", 4)
		list, err := p.TopicProgress(t.Context(), "T")
		require.NoError(t, err)
		require.Len(t, list, 4)
		for i, q := range list {
			require.Equal(t, all[i], q.Queue)
			require.EqualValues(t, 5, q.Max)
			require.Equal(t, []int64{4, 0, 0, 0}[i], q.Committed)
		}
		_, err = p.TopicProgress(t.Context(), "Nope")
		require.Error(t, err)
	})
}

func TestAFreshPullerBeginsWhereItIsTold(t *testing.T) {
	inWorld(t, []string{"a"}, func(t *testing.T, w *world) {
		w.fill("T", "m", 8)
		for _, fresh := range []bool{false, true} {
			p, err := consumer.StartPull(t.Context(), &consumer.PullOptions{
				NameServers: []string{nameServer}, ClientOptions: consumer.ClientOptions{Dial: w.net.Dial}, Group: "VIEW", Fresh: fresh, NoSave: true,
			})
			require.NoError(t, err)
			all, err := p.Queues(t.Context(), "T")
			require.NoError(t, err)
			require.NoError(t, p.Assign(t.Context(), "*", all...))
			if fresh {
				require.Empty(t, polled(t, p), "from the end")
			} else {
				require.Len(t, polled(t, p), 8, "the broker says that the group is at the start of a queue that is whole")
			}
			require.NoError(t, p.Close(context.Background()))
		}
	})
}
