package consumer_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumer"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/trace"
)

// notebook is a dispatcher that keeps what it gets.
type notebook struct {
	mu              sync.Mutex
	notes           []*trace.Context
	started, closed bool
}

func (n *notebook) Start(context.Context) error { n.started = true; return nil }

func (n *notebook) Append(c *trace.Context) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notes = append(n.notes, c)
	return true
}

func (n *notebook) Flush(context.Context) {}

func (n *notebook) Shutdown(context.Context) error { n.closed = true; return nil }

func TestEachCallOfAListenerIsTraced(t *testing.T) { // R-A-08, R-A-65
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		property := func(text string) func(m *message.Message) {
			return func(m *message.Message) { m.Properties = message.Properties(text) }
		}
		b.put(0, "good", property("UNIQ_KEY\x01ID1\x02KEYS\x01k1 k2\x02MSG_REGION\x01R\x02TRACE_ON\x01true\x02"))
		b.put(0, "untraced", property("UNIQ_KEY\x01ID2\x02TRACE_ON\x01false\x02"))
		b.put(0, "bad", property("UNIQ_KEY\x01ID3\x02"))
		n := &notebook{}
		s := &seen{fail: failing("bad")}
		o := w.options("one", nil, "T")
		o.BatchSize, o.Workers, o.Trace = 2, 1, n
		o.Listener = func(ctx context.Context, batch *consumer.Batch) error {
			time.Sleep(10 * time.Millisecond)
			if batch.Messages[0].QueueOffset > 1 {
				defer panic("ouch")
			}
			return s.listen(ctx, batch)
		}
		c := w.consume(o)
		require.True(t, n.started)
		settle(time.Second)
		require.NoError(t, c.Close(context.Background()))
		require.True(t, n.closed)
		var text []byte
		for _, note := range n.notes {
			text = note.AppendTo(text)
		}
		rows := strings.Split(strings.ReplaceAll(string(text), "\x01", "·"), "\x02")
		require.Len(t, rows, 5)
		first, last := n.notes[0], n.notes[2]
		require.NotEqual(t, first.RequestID, last.RequestID)
		require.Equal(t, []string{
			"SubBefore·946684800000·R·CG·" + first.RequestID + "·ID1·0·k1 k2",
			"SubAfter·" + first.RequestID + "·ID1·10·true·k1 k2·0·946684800000·CG",
			"SubBefore·946684800010·null·CG·" + last.RequestID + "·ID3·0·null",
			"SubAfter·" + last.RequestID + "·ID3·10·false·null·2·946684800010·CG",
			"",
		}, rows)
	})
}
