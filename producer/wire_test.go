package producer_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/internal/client"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/producer"
)

// captured are the requests of a real client with one code.
func captured(t *testing.T, file string, code int32) (found []*remoting.Command) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", "wire", file))
	require.NoError(t, err)
	var list struct {
		Frames []struct{ Kind, Hex string }
	}
	require.NoError(t, json.Unmarshal(text, &list))
	for _, f := range list.Frames {
		b, err := hex.DecodeString(f.Hex)
		require.NoError(t, err)
		c, err := remoting.DecodeFrame(b[4:])
		require.NoError(t, err)
		if f.Kind != "response" && c.Code == code {
			found = append(found, c)
		}
	}
	require.NotEmpty(t, found)
	return found
}

// shape is a request without what differs from one send to the next: ids, times, the queue, and the order of fields and properties.
func shape(t *testing.T, c *remoting.Command) map[string]any {
	t.Helper()
	fields := map[string]any{}
	for _, f := range c.Fields {
		switch f.Name {
		case "g", "bornTimestamp", "e", "queueId", "msgId", "commitLogOffset", "tranStateTableOffset":
			fields[f.Name] = "masked"
		case "i", "properties":
			fields[f.Name] = masked(message.Properties(f.Value))
		default:
			fields[f.Name] = f.Value
		}
	}
	flag := message.SysFlag(c.Fields.Reader().OptInt32("f", c.Fields.Reader().OptInt32("sysFlag", 0)))
	body, err := client.Decompress(c.Body, flag, 1<<20) // two compressors make different bytes of one body
	require.NoError(t, err)
	out := map[string]any{"fields": fields, "flag": c.Flag, "remark": c.Remark, "body": string(body)}
	if c.Code == remoting.SendBatchMessage {
		var entries []any
		for _, m := range readBatch(t, c.Body) {
			entries = append(entries, []any{string(m.Body), m.Flag, masked(m.Properties)})
		}
		out["body"] = entries
	}
	return out
}

func masked(p message.Properties) map[string]string {
	m := p.Map()
	if _, ok := m[message.PropertyUniqueKey]; ok {
		m[message.PropertyUniqueKey] = "masked"
	}
	return m
}

// replay makes of a captured request the message that was sent.
func replay(t *testing.T, c *remoting.Command, body []byte, p message.Properties, drop ...string) *message.Message {
	t.Helper()
	for _, name := range append(drop, message.PropertyUniqueKey, message.PropertyWait) {
		p = p.Delete(name)
	}
	topic := c.Fields.Get("b")
	if topic == "" {
		topic = c.Fields.Get("topic")
	}
	return &message.Message{Topic: topic, Body: body, Properties: p}
}

func TestRequestsAreThoseOfTheRealClient(t *testing.T) { // R-D-020, R-D-030, R-D-051, R-D-052
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.broker("broker-a")
		w.topic("TopicA", 4, b)
		w.topic("TopicTx", 4, b)
		p := w.start(producer.Options{Group: "PG_J"})
		latest := func(code int32) *remoting.Command {
			synctest.Wait()
			all := b.got(code)
			return all[len(all)-1]
		}
		compressed := 0
		for _, want := range captured(t, "java497_send.json", remoting.SendMessageV2) {
			flag := message.SysFlag(want.Fields.Reader().OptInt32("f", 0))
			body, err := client.Decompress(want.Body, flag, 1<<20)
			require.NoError(t, err)
			m := replay(t, want, body, message.Properties(want.Fields.Get("i")))
			if want.IsOneway() {
				require.NoError(t, p.Oneway(t.Context(), m))
			} else {
				_, err := p.Send(t.Context(), m)
				require.NoError(t, err)
			}
			got := latest(remoting.SendMessageV2)
			if flag.Has(message.FlagCompressed) {
				compressed++
				require.Equal(t, "zlib", flag.Compression())
				require.GreaterOrEqual(t, len(body), 4096)
				require.Less(t, len(got.Body), len(body)/10)
			}
			require.Equal(t, shape(t, want), shape(t, got))
		}
		require.Equal(t, 1, compressed)
		want := captured(t, "java497_send.json", remoting.SendBatchMessage)[0]
		var batch []*message.Message
		for _, e := range readBatch(t, want.Body) {
			batch = append(batch, replay(t, want, e.Body, e.Properties))
		}
		_, err := p.SendBatch(t.Context(), batch)
		require.NoError(t, err)
		require.Equal(t, shape(t, want), shape(t, latest(remoting.SendBatchMessage)))

		tx := w.start(producer.Options{Group: "PG_TX"})
		want = captured(t, "java497_transaction.json", remoting.SendMessageV2)[0]
		m := replay(t, want, want.Body, message.Properties(want.Fields.Get("i")), message.PropertyTransactionPrepared, message.PropertyProducerGroup)
		_, err = tx.SendInTransactionBy(t.Context(), m, func(context.Context, *message.Message, producer.Result, any) (producer.TransactionState, error) {
			return producer.Commit, nil
		}, nil)
		require.NoError(t, err)
		require.Equal(t, shape(t, want), shape(t, latest(remoting.SendMessageV2)))
		require.Equal(t, shape(t, captured(t, "java497_transaction.json", remoting.EndTransaction)[0]), shape(t, latest(remoting.EndTransaction)))
	})
}

func TestTheLongFormIsThatOfTheOldestClient(t *testing.T) { // R-D-052
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.broker("broker-a")
		w.topic("TopicA", 4, b)
		b.answers(func(req *remoting.Command) *remoting.Command {
			if req.Code == remoting.SendMessageV2 {
				return remoting.NotSupported(req)
			}
			return nil
		})
		p := w.start(producer.Options{Group: "PG_J"})
		want := captured(t, "java314_producer.json", remoting.SendMessage)[0]
		_, err := p.Send(t.Context(), replay(t, want, want.Body, message.Properties(want.Fields.Get("properties"))))
		require.NoError(t, err)
		got := b.got(remoting.SendMessage)[0]
		for _, name := range []string{"reconsumeTimes", "unitMode", "batch", "bname"} { // what later lines added, which old ones pass over
			got.Fields.Delete(name)
		}
		old, now := shape(t, want), shape(t, got)
		properties := now["fields"].(map[string]any)["properties"].(map[string]string)
		delete(properties, message.PropertyUniqueKey) // the same
		require.Equal(t, old, now)
	})
}

func TestRequestsAreThoseOfTheNewestClient(t *testing.T) { // R-D-051, R-D-052
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.broker("broker-a")
		w.topic("Topic5", 4, b)
		p := w.start(producer.Options{Group: "PG_5", Dialect: dialect.V53()})
		latest := func(code int32) *remoting.Command {
			synctest.Wait()
			all := b.got(code)
			return all[len(all)-1]
		}
		for _, want := range captured(t, "java533_client.json", remoting.SendMessageV2) {
			text := message.Properties(want.Fields.Get("i"))
			m := replay(t, want, want.Body, text, message.PropertyTransactionPrepared, message.PropertyProducerGroup)
			var err error
			if _, half := text.Get(message.PropertyTransactionPrepared); half {
				_, err = p.SendInTransactionBy(t.Context(), m, func(context.Context, *message.Message, producer.Result, any) (producer.TransactionState, error) {
					return producer.Commit, nil
				}, nil)
			} else {
				_, err = p.Send(t.Context(), m)
			}
			require.NoError(t, err)
			require.Equal(t, shape(t, want), shape(t, latest(remoting.SendMessageV2)))
		}
		want, got := captured(t, "java533_client.json", remoting.EndTransaction)[0], latest(remoting.EndTransaction)
		want.Fields.Delete("topic")         // its brokers find the message by its offset
		want.Fields.Delete("transactionId") // the same as msgId
		require.Equal(t, shape(t, want), shape(t, got))

		want = captured(t, "java533_client.json", remoting.SendBatchMessage)[0]
		var batch []*message.Message
		for _, e := range readBatch(t, want.Body) {
			batch = append(batch, replay(t, want, e.Body, e.Properties))
		}
		_, err := p.SendBatch(t.Context(), batch)
		require.NoError(t, err)
		all, _ := want.Fields.Lookup("i")
		want.Fields.Set("i", string(message.Properties(all).Delete(message.PropertyUniqueKey))) // an id of the batch, which no broker reads
		require.Equal(t, shape(t, want), shape(t, latest(remoting.SendBatchMessage)))
	})
}
