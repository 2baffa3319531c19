//go:build interop

package interop_test

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/message"
)

// sent is a message and where it went.
type sent struct {
	*message.Message
	PhysicalOffset, QueueOffset, StoreTimestamp int64
}

// book is what a store must hold: every message that was acknowledged, by whichever side, in log order.
type book struct {
	dialect *dialect.Dialect
	sent    []sent
}

func newBook(t *testing.T, l line) *book {
	t.Helper()
	d, err := dialect.Parse(l.dialect)
	require.NoError(t, err)
	return &book{dialect: d}
}

func (b *book) add(more []sent) { b.sent = append(b.sent, more...) }

// queueName is a topic and a queue id.
type queueName struct {
	topic string
	id    int32
}

// queues gives the messages of each queue in order.
func (b *book) queues() map[queueName][]sent {
	all := make(map[queueName][]sent)
	for _, s := range b.sent {
		name := queueName{s.Topic, s.QueueID}
		all[name] = append(all[name], s)
	}
	return all
}

// keys gives the physical offsets of each key that the line indexes, in log order.
func (b *book) keys() map[topicKey][]int64 {
	all := make(map[topicKey][]int64)
	for _, s := range b.sent {
		unique, _ := s.Properties.Get(message.PropertyUniqueKey)
		words, _ := s.Properties.Get(message.PropertyKeys)
		list := slices.Collect(message.Keys(words))
		if b.dialect.IndexesUniqueKey {
			list = append(list, unique)
		}
		for _, key := range list {
			name := topicKey{s.Topic, key}
			all[name] = append(all[name], s.PhysicalOffset)
		}
	}
	return all
}

// keeps says which records a search by key must find, by physical offset.
type keeps func(offset int64) bool

func everyKey(int64) bool { return true }

func md5Hex(b []byte) string {
	sum := md5.Sum(b)
	return hex.EncodeToString(sum[:])
}

// checkJava compares what the real store reads in a directory with the book: each record once and in order, by offset,
// by queue and by key.
func (b *book) checkJava(t *testing.T, j *jvm, s shape, keep keeps) {
	t.Helper()
	d := j.dump(t, s)
	require.GreaterOrEqual(t, len(d.Records), len(b.sent), "records in the real store")
	require.Empty(t, d.Records[len(b.sent):], "records in the real store that nobody put")
	offsets := make([]int64, len(b.sent))
	for i, want := range b.sent {
		b.checkRecord(t, want, d.Records[i])
		offsets[i] = want.PhysicalOffset
	}
	require.Zero(t, d.MinPhysical)
	for i, r := range j.at(t, offsets) {
		require.Equal(t, &d.Records[i], r, "the record found by its offset")
	}
	b.checkJavaQueues(t, d)
	b.checkJavaKeys(t, j, keep)
}

func (b *book) checkRecord(t *testing.T, want sent, got javaRecord) {
	t.Helper()
	magic := "daa320a7"
	if b.dialect.WritesV2 && len(want.Topic) > 127 {
		magic = "daa320ab"
	}
	flags := want.SysFlag
	if want.BornHost.Is6() {
		flags |= message.FlagBornHostIPv6
	}
	if want.StoreHost.Is6() {
		flags |= message.FlagStoreHostIPv6
	}
	require.Equal(t, javaRecord{
		PhysicalOffset: want.PhysicalOffset, StoreSize: got.StoreSize, Magic: magic, Topic: want.Topic,
		QueueID: want.QueueID, QueueOffset: want.QueueOffset, Flag: want.Flag, SysFlag: int32(flags),
		BornTimestamp: want.BornTimestamp, BornHost: want.BornHost.String(),
		StoreTimestamp: want.StoreTimestamp, StoreHost: want.StoreHost.String(),
		ReconsumeTimes: want.ReconsumeTimes, BodyCRC: message.CRC(want.Body), BodyLength: int32(len(want.Body)),
		BodyMD5: md5Hex(want.Body), MsgID: message.OffsetID(want.StoreHost, want.PhysicalOffset),
		Properties: want.Properties.Map(), RecordMD5: got.RecordMD5,
	}, normal(t, got))
}

// normal writes the hosts of a record as net/netip does; Java spells the zeros of IPv6 out.
func normal(t *testing.T, r javaRecord) javaRecord {
	t.Helper()
	for _, host := range []*string{&r.BornHost, &r.StoreHost} {
		a, err := netip.ParseAddrPort(*host)
		require.NoError(t, err)
		*host = a.String()
	}
	return r
}

func (b *book) checkJavaQueues(t *testing.T, d javaDump) {
	t.Helper()
	sizes := make(map[int64]int32)
	for _, r := range d.Records {
		sizes[r.PhysicalOffset] = r.StoreSize
	}
	want := b.queues()
	for _, q := range d.Queues {
		name := queueName{q.Topic, q.QueueID}
		messages := want[name]
		delete(want, name)
		if len(messages) == 0 && len(q.Units) == 0 && q.Max == 0 {
			continue // 4.9.7 makes a queue of each delay level when it loads
		}
		var units []javaUnit
		var got []int64
		for i, m := range messages {
			require.EqualValues(t, i, m.QueueOffset, "queue offset in %v", name)
			units = append(units, javaUnit{int64(i), m.PhysicalOffset, sizes[m.PhysicalOffset], message.TagsCode(m.Tag())})
			got = append(got, m.PhysicalOffset)
		}
		require.Equal(t, [2]int64{0, int64(len(messages))}, [2]int64{q.Min, q.Max}, "bounds of %v", name)
		require.Equal(t, units, q.Units, "units of %v", name)
		require.Equal(t, got, q.Got, "messages got from %v", name)
	}
	require.Empty(t, want, "queues that the real store does not know")
}

func (b *book) checkJavaKeys(t *testing.T, j *jvm, keep keeps) {
	t.Helper()
	want := b.keys()
	var keys []topicKey
	for key := range want {
		keys = append(keys, key)
	}
	for i, hits := range j.query(t, keys) {
		checkHits(t, "the real store", keys[i], want[keys[i]], hits, keep)
	}
}

// checkHits wants the kept records to be found, and nothing that does not have the key.
func checkHits(t *testing.T, who string, key topicKey, want, hits []int64, keep keeps) {
	t.Helper()
	for _, offset := range want {
		if keep(offset) {
			require.Contains(t, hits, offset, "%s does not find %v", who, key)
		}
	}
	require.Subset(t, want, hits, "%s finds %v where it is not", who, key)
}

// checkOurs compares what our store reads with the book, in the same three ways.
func (b *book) checkOurs(t *testing.T, s *rocketstore.Store, keep keeps) {
	t.Helper()
	i := 0
	for r, err := range s.Records(0) {
		require.NoError(t, err)
		require.Less(t, i, len(b.sent), "a record too many at %d", r.PhysicalOffset)
		b.checkOwn(t, b.sent[i], *r)
		i++
	}
	require.Len(t, b.sent, i, "records in our store")

	want := b.queues()
	for q, err := range s.Queues(t.Context()) {
		require.NoError(t, err)
		name := queueName{q.Topic, q.QueueID}
		require.Equal(t, [2]int64{0, int64(len(want[name]))}, [2]int64{q.Min, q.Max}, "bounds of %v", name)
		at := 0
		for r, err := range s.Messages(q.Topic, q.QueueID, 0) {
			require.NoError(t, err)
			b.checkOwn(t, want[name][at], r)
			at++
		}
		require.Len(t, want[name], at, "messages of %v", name)
		delete(want, name)
	}
	require.Empty(t, want, "queues that our store does not know")

	for key, offsets := range b.keys() {
		checkHits(t, "our store", key, offsets, ourHits(t, s, key), keep)
	}
	for _, m := range b.sent {
		got, offset, err := s.Lookup(message.OffsetID(m.StoreHost, m.PhysicalOffset))
		require.NoError(t, err)
		require.Equal(t, m.PhysicalOffset, offset)
		require.Equal(t, m.Topic, got.Topic)
	}
}

func (b *book) checkOwn(t *testing.T, want sent, r commitlog.Record) {
	t.Helper()
	m := r.Message()
	got := sent{m, r.PhysicalOffset, r.QueueOffset, r.StoreTimestamp}
	require.Equal(t, [3]int64{want.PhysicalOffset, want.QueueOffset, want.StoreTimestamp},
		[3]int64{got.PhysicalOffset, got.QueueOffset, got.StoreTimestamp}, "place of a record")
	require.Equal(t, []any{want.Topic, want.QueueID, want.Flag, want.BornTimestamp, want.ReconsumeTimes},
		[]any{m.Topic, m.QueueID, m.Flag, m.BornTimestamp, m.ReconsumeTimes})
	require.Equal(t, [2]string{want.BornHost.String(), want.StoreHost.String()}, [2]string{m.BornHost.String(), m.StoreHost.String()})
	require.Equal(t, md5Hex(want.Body), md5Hex(m.Body), "body")
	require.Equal(t, want.Properties.Map(), m.Properties.Map(), "properties")
}

func ourHits(t *testing.T, s *rocketstore.Store, key topicKey) []int64 {
	t.Helper()
	var hits []int64
	for r, err := range s.Query(context.Background(), rocketstore.QueryRequest{Topic: key.Topic, Key: key.Key}) {
		require.NoError(t, err)
		hits = append(hits, r.PhysicalOffset)
	}
	return hits
}
