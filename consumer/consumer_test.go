package consumer_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumer"
)

func TestAGroupOfOneGetsEverythingOnceAndGoesOnWhereItWas(t *testing.T) { // R-G-28, R-G-29
	inWorld(t, []string{"a", "b"}, func(t *testing.T, w *world) {
		want := w.fill("T", "m", 100)
		s := &seen{}
		c := w.consume(w.options("one", s, "T"))
		settle(2 * time.Second)
		require.ElementsMatch(t, want, s.bodies())
		settle(time.Minute)             // the retry topic's route may have been asked for when one broker only had it
		require.Len(t, c.Queues(), 8+2) // those of the retry topic too
		more := w.fill("T", "live", 8)  // the pulls that wait are answered
		settle(time.Second)
		require.ElementsMatch(t, append(want, more...), s.bodies())
		require.NoError(t, c.Close(context.Background()))
		require.Equal(t, "14", w.stored("a", "CG", "T", 0))

		last := w.fill("T", "last", 4)
		again := &seen{}
		w.consume(w.options("two", again, "T"))
		settle(2 * time.Second)
		require.ElementsMatch(t, last, again.bodies())
	})
}

// held are the queues of topic T that a member has.
func held(c *consumer.Consumer) (list []consumer.Queue) {
	for _, q := range c.Queues() {
		if q.Topic == "T" {
			list = append(list, q)
		}
	}
	return list
}

func TestMembersShareTheQueuesWithoutGapOrDouble(t *testing.T) { // R-G-28
	inWorld(t, []string{"a", "b"}, func(t *testing.T, w *world) {
		want := w.fill("T", "m", 16)
		s := &seen{}
		var members []*consumer.Consumer
		for i := range 3 {
			members = append(members, w.consume(w.options("i"+strconv.Itoa(i), s, "T")))
			settle(time.Second)
		}
		require.Subset(t, s.bodies(), want) // one may come again when a queue goes over before its offset is stored
		s.forget()
		shares := func(list ...*consumer.Consumer) (all []consumer.Queue) {
			for _, c := range list {
				share := held(c)
				require.GreaterOrEqual(t, len(share), 8/len(list))
				all = append(all, share...)
			}
			return all
		}
		require.Len(t, shares(members...), 8)
		require.ElementsMatch(t, shares(members...), slices.Compact(slices.SortedFunc(slices.Values(shares(members...)), consumer.CompareQueues)))
		more := w.fill("T", "three", 40)
		settle(time.Second)
		require.ElementsMatch(t, more, s.bodies())
		s.forget()

		require.NoError(t, members[1].Close(context.Background())) // it says goodbye: no waiting
		settle(time.Second)
		require.Len(t, shares(members[0], members[2]), 8)
		last := w.fill("T", "two", 40)
		settle(time.Second)
		require.ElementsMatch(t, last, s.bodies())
	})
}

func TestOnlyTheTagsOfTheSubscriptionCome(t *testing.T) { // R-G-28
	inWorld(t, []string{"a"}, func(t *testing.T, w *world) {
		for i, tag := range []string{"Aa", "BB", "", "C", "Aa"} { // the first two have one hash
			w.send("a", "T", 0, tag, "m"+strconv.Itoa(i))
		}
		s := &seen{}
		c := w.consume(w.options("one", s, "T:Aa || C"))
		settle(time.Second)
		require.ElementsMatch(t, []string{"m0", "m3", "m4"}, s.bodies())
		require.Equal(t, int64(1), c.Stats().Filtered)
		w.send("a", "T", 0, "BB", "passed over")
		settle(time.Second)
		require.NoError(t, c.Subscribe(t.Context(), "T", "BB"))
		w.send("a", "T", 0, "BB", "wanted now")
		settle(time.Second)
		require.ElementsMatch(t, []string{"m0", "m3", "m4", "wanted now"}, s.bodies())
		require.NoError(t, c.Close(context.Background()))
		require.Equal(t, "7", w.stored("a", "CG", "T", 0))
	})
}

// A new group with FromLast begins behind what is there; the broker says itself that it has everything in memory, so the messages
// are deleted first. R-G-29.
func TestWhereANewGroupBegins(t *testing.T) {
	for _, tt := range []struct {
		name string
		from consumer.From
		want []string
	}{
		{"last", consumer.FromLast, []string{"new"}},
		{"first", consumer.FromFirst, []string{"old", "recent", "new"}},
		{"time", consumer.FromTime, []string{"recent", "new"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, nil, func(t *testing.T, w *world) {
				f := newFake(w, 1)
				f.put(0, "old")
				time.Sleep(time.Hour)
				f.put(0, "recent")
				s := &seen{}
				o := w.options("one", s, "T")
				o.From, o.Since = tt.from, time.Now().Add(-time.Minute)
				w.consume(o)
				settle(time.Second)
				f.put(0, "new")
				settle(time.Second)
				require.ElementsMatch(t, tt.want, s.bodies())
			})
		})
	}
}
