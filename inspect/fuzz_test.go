package inspect_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/redolog"
	"github.com/rocketstore/rocketstore/txstate"
)

// small is a store with a file of every kind, of a few hundred bytes each.
func small() tree {
	s := newTree()
	s.log(0, 1024, records(0, 3), blank(1024, 3*recordSize))
	s.log(1024, 1024, record(1024, "x", "KEYS", "Aa", "UNIQ_KEY", "u"), record(1024+116, "y"))
	s.queue("TopicA", 0, 0, 5, unit(0, 101), unit(101, 101), unit(202, 101))
	s.put("consumequeue_ext/TopicA/0/00000000000000000000", file(64, []byte{0, 20}, make([]byte, 18), []byte{0xFF, 0xFF}))
	s.put("batchconsumequeue/TopicB/0/00000000000000000000", file(92, []byte{11: 9, 37: 2, 45: 0}))
	s.put("index/20240101000000000", indexFile([]string{"Aa", "BB", "k"}, []int64{1024, 1024, 1140}))
	s.put("transaction/statetable/00000000000000000000", file(48, txstate.Record{CommitOffset: 1, Size: 101, State: txstate.Prepared}.AppendTo(nil)))
	s.put("transaction/redolog/TRANSACTION_REDOLOG_TOPIC_XXXX/0/00000000000000000000", file(40, redolog.Unit{Size: 101, TagsCode: -1}.AppendTo(nil)))
	s.put("config/topics.json", []byte(`{"topicConfigTable":{"T":{"attributes":{}}}}`))
	s.put("config/rocketstore.json", []byte(`{"dialect":"3.1","transactionEngine":"x"}`))
	return s
}

// FuzzDir changes, cuts and lengthens the files of a small store and looks at all of it. Whatever the bytes are, no walk may
// panic or run for ever, and what is given as undamaged must be.
func FuzzDir(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 0, 4, 0})                    // no magic
	f.Add([]byte{1, 0, 90, 7, 2, 0, 85, 0x7F})   // a body, a length
	f.Add([]byte{7, 0, 60, 3, 7, 0, 83, 2})      // chains
	f.Add([]byte{0x81, 3, 0, 0, 0x82, 5, 0, 0})  // cut, lengthened
	f.Add([]byte{3, 0, 20, 0xFF, 4, 0, 0, 0x7F}) // units
	f.Fuzz(func(t *testing.T, changes []byte) {
		s := small()
		names := slices.Sorted(maps.Keys(s.MapFS))
		for len(changes) >= 4 {
			m := s.MapFS[names[int(changes[0]&0x7F)%len(names)]]
			pos := int(changes[1])<<8 | int(changes[2])
			switch {
			case changes[0]&0x80 != 0 && pos < len(m.Data):
				m.Data = m.Data[:pos]
			case changes[0]&0x80 != 0:
				m.Data = append(m.Data, make([]byte, min(pos, 4096))...)
			case len(m.Data) > 0:
				m.Data[pos%len(m.Data)] = changes[3]
			}
			changes = changes[4:]
		}
		look(t, s)
	})
}

// look walks everything.
func look(t *testing.T, s tree) {
	t.Helper()
	d, err := inspect.Open(s)
	require.NoError(t, err)
	c := &collector{}
	for r, err := range d.Log(t.Context(), inspect.LogRange{}, c.add) {
		require.NoError(t, err)
		if r.Damaged == "" {
			require.NoError(t, r.CheckBody())
			require.Equal(t, int(r.Size), r.EncodedSize())
		}
		for _, err := range d.ByID(t.Context(), r.ID(), "", c.add) {
			require.NoError(t, err)
		}
	}
	for _, err := range d.Queues(t.Context(), inspect.QueueFilter{}, c.add) {
		require.NoError(t, err)
	}
	for x, err := range d.IndexFiles(t.Context(), c.add) {
		require.NoError(t, err)
		for _, err := range x.Slots() {
			require.NoError(t, err)
		}
		for _, err := range x.Entries() {
			require.NoError(t, err)
		}
	}
	for r, err := range d.ByKey(t.Context(), "TopicA", "Aa", c.add) {
		require.NoError(t, err)
		require.Equal(t, "TopicA", string(r.Topic))
	}
	id, err := d.Identify(t.Context())
	require.NoError(t, err)
	require.Contains(t, []string{"3.1", "4.9", "5.3"}, id.Dialect)
	for f, err := range d.Check(t.Context(), inspect.CheckOptions{}) {
		require.NoError(t, err)
		require.NotEmpty(t, f.File)
	}
	for name, m := range s.MapFS {
		for at := 0; at < len(m.Data); at += 1 + len(m.Data)/5 {
			if x, err := d.Explain(name, int64(at)); err == nil {
				require.LessOrEqual(t, x.Start, int64(at))
			}
		}
	}
	_ = d.Require(inspect.Sizes{CommitLog: 1024, Queue: 100, IndexSlots: testSlots, IndexEntries: testEntries})
}
