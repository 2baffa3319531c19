package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

func TestTransactionsEndAsTheirProducerSays(t *testing.T) { // R-F-13, protocol.md 7
	for _, dialect := range []string{"3.1", "4.9", "5.3"} {
		inWorld(t, small(dialect), func(t *testing.T, w *world) {
			p := w.peer()
			prepare := func(body string) (number, offset int64) {
				resp := p.put(outgoing{topic: "T", queue: 1, body: body, sysFlag: message.FlagPrepared, properties: "TRAN_MSG\x01true\x02PGROUP\x01PG\x02WAIT\x01true\x02"})
				require.Equal(t, remoting.Success, resp.Code, resp.Remark)
				require.Equal(t, "1", resp.Fields.Get("queueId")) // the producer's own
				_, offset, err := message.ParseOffsetID(resp.Fields.Get("msgId"))
				require.NoError(t, err)
				f := resp.Fields.Reader()
				return f.Int64("queueOffset"), offset
			}
			end := func(number, offset int64, how int64) *remoting.Command {
				return remoting.NewRequest(remoting.EndTransaction, remoting.String("producerGroup", "PG"), remoting.Int("tranStateTableOffset", number),
					remoting.Int("commitLogOffset", offset), remoting.Int("commitOrRollback", how), remoting.String("msgId", ""))
			}
			n, at := prepare("kept")
			require.Equal(t, remoting.Success, p.send(end(n, at, 8)).Code)
			require.Equal(t, remoting.Success, p.send(end(n, at, 8)).Code) // twice is once
			n, at = prepare("dropped")
			require.Equal(t, remoting.Success, p.send(end(n, at, 12)).Code)
			n, at = prepare("open")
			require.Equal(t, remoting.SystemError, p.send(end(n+100, at, 8)).Code)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			_, err := p.c.Call(ctx, "broker", end(n, at, 0))
			require.ErrorIs(t, err, remoting.ErrTimeout) // no answer at all (trap 8)
			require.Equal(t, []string{"kept"}, bodies(t, p.pull(pulling{topic: "T", queue: 1})))
		})
	}
}

// A producer that asked to be left alone for a time ends its transaction within it, or by the answer to a check: 5.3 refuses
// other ends with a code of their own. protocol.md E13, R-D-118.
func TestLateEndsAreRefusedWhereTheRealBrokerRefusesThem(t *testing.T) {
	for _, tt := range []struct {
		dialect, immunity string
		wait              time.Duration
		asked             bool
		want              int32
	}{
		{"5.3", "30", 31 * time.Second, false, remoting.IllegalOperation},
		{"5.3", "30", 31 * time.Second, true, remoting.Success},
		{"5.3", "30", 29 * time.Second, false, remoting.Success},
		{"5.3", "soon", 7 * time.Second, false, remoting.IllegalOperation}, // no number: transactionTimeOut
		{"5.3", "soon", 5 * time.Second, false, remoting.Success},
		{"5.3", "", 61 * time.Second, false, remoting.Success},
		{"4.9", "30", 31 * time.Second, false, remoting.Success},
		{"3.1", "30", 31 * time.Second, false, remoting.Success},
	} {
		for _, how := range []int64{8, 12} {
			o := small(tt.dialect)
			o.NoTransactionChecks = true
			inWorld(t, o, func(t *testing.T, w *world) {
				p := w.peer()
				properties := "TRAN_MSG\x01true\x02PGROUP\x01PG\x02"
				if tt.immunity != "" {
					properties += "CHECK_IMMUNITY_TIME_IN_SECONDS\x01" + tt.immunity + "\x02"
				}
				resp := p.put(outgoing{topic: "T", body: "x", sysFlag: message.FlagPrepared, properties: message.Properties(properties)})
				_, offset, err := message.ParseOffsetID(resp.Fields.Get("msgId"))
				require.NoError(t, err)
				time.Sleep(tt.wait)
				end := remoting.NewRequest(remoting.EndTransaction, remoting.String("producerGroup", "PG"), remoting.Int("tranStateTableOffset", 0),
					remoting.Int("commitLogOffset", offset), remoting.Int("commitOrRollback", how), remoting.Bool("fromTransactionCheck", tt.asked))
				resp = p.send(end)
				require.Equal(t, tt.want, resp.Code, "%+v: %s", tt, resp.Remark)
				stored := p.pull(pulling{topic: "T"}).Code == remoting.Success
				require.Equal(t, tt.want == remoting.Success && how == 8, stored, "%+v", tt)
			})
		}
	}
}
