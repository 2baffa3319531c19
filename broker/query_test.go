package broker_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

func keyFields(topic, key string, most, begin, end int64, more ...remoting.Field) []remoting.Field {
	return append([]remoting.Field{
		remoting.String("topic", topic), remoting.String("key", key), remoting.Int("maxNum", most),
		remoting.Int("beginTimestamp", begin), remoting.Int("endTimestamp", end),
	}, more...)
}

func TestMessagesAreFoundByKeyAndById(t *testing.T) { // R-G-34, protocol.md 6, 16
	for _, dialect := range []string{"3.1", "4.9", "5.3"} {
		inWorld(t, small(dialect), func(t *testing.T, w *world) {
			p := w.peer()
			began := time.Now().UnixMilli()
			var ids []string
			for i := range 5 {
				resp := p.put(outgoing{topic: "T", body: "b" + strconv.Itoa(i), properties: message.Properties("KEYS\x01k all\x02UNIQ_KEY\x01U" + strconv.Itoa(i) + "\x02")})
				require.Equal(t, remoting.Success, resp.Code)
				ids = append(ids, resp.Fields.Get("msgId"))
				time.Sleep(time.Minute)
			}
			ask := func(more ...remoting.Field) *remoting.Command { return p.ask(remoting.QueryMessage, more...) }
			const forever = 1 << 62
			require.ElementsMatch(t, []string{"b0", "b1", "b2", "b3", "b4"}, bodies(t, ask(keyFields("T", "all", 64, 0, forever)...)))
			require.Len(t, bodies(t, ask(keyFields("T", "k", 2, 0, forever)...)), 2)
			resp := ask(keyFields("T", "k", 64, began+60_000, began+120_000)...)
			require.ElementsMatch(t, []string{"b1", "b2"}, bodies(t, resp))
			require.Equal(t, strconv.FormatInt(began+240_000, 10), resp.Fields.Get("indexLastUpdateTimestamp"))
			_, last, err := message.ParseOffsetID(ids[4])
			require.NoError(t, err)
			require.Equal(t, strconv.FormatInt(last, 10), resp.Fields.Get("indexLastUpdatePhyoffset"))
			if dialect != "3.1" { // which does not index it
				require.Equal(t, []string{"b3"}, bodies(t, ask(keyFields("T", "U3", 0, 0, forever, remoting.Bool("_UNIQUE_KEY_QUERY", true))...)))
			}
			for _, none := range [][]remoting.Field{
				keyFields("T", "x", 64, 0, forever), keyFields("Other", "k", 64, 0, forever), keyFields("T", "k", 64, 0, 0), keyFields("T", "k", -1, 0, forever),
				keyFields("T", "k", 64, 5, 4), keyFields("T", "", 64, 0, forever), keyFields("T", "k", 64, began+time.Hour.Milliseconds(), forever),
			} {
				require.Equal(t, remoting.QueryNotFound, ask(none...).Code, "%v", none)
			}
			require.Equal(t, remoting.SystemError, ask(remoting.String("topic", "T")).Code)
			for i, id := range ids {
				_, offset, err := message.ParseOffsetID(id)
				require.NoError(t, err)
				resp := p.ask(remoting.ViewMessageByID, remoting.Int("offset", offset))
				require.Equal(t, []string{"b" + strconv.Itoa(i)}, bodies(t, resp))
			}
			for _, wrong := range []int64{-1, 1, 1 << 60} {
				resp := p.ask(remoting.ViewMessageByID, remoting.Int("offset", wrong))
				require.Equal(t, remoting.SystemError, resp.Code)
				require.Contains(t, resp.Remark, "can not find message by the offset")
			}
			require.Equal(t, remoting.SystemError, p.ask(remoting.ViewMessageByID).Code)
		})
	}
}

func TestAnAnswerToAQueryIsBounded(t *testing.T) {
	o := small("4.9")
	o.Store.SegmentSize = 64 << 20
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		for range 70 {
			require.Equal(t, remoting.Success, p.put(outgoing{topic: "T", properties: "KEYS\x01few\x02"}).Code)
		}
		for range 6 {
			require.Equal(t, remoting.Success, p.put(outgoing{topic: "T", body: string(make([]byte, 1<<20)), properties: "KEYS\x01big\x02"}).Code)
		}
		require.Len(t, bodies(t, p.ask(remoting.QueryMessage, keyFields("T", "few", 1<<30, 0, 1<<62)...)), 64)
		require.Len(t, bodies(t, p.ask(remoting.QueryMessage, keyFields("T", "big", 64, 0, 1<<62)...)), 3)
	})
}
