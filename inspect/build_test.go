package inspect_test

import (
	"fmt"
	"io/fs"
	"net/netip"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/message"
)

// tree is a store directory that a test builds.
type tree struct{ fstest.MapFS }

func newTree() tree { return tree{fstest.MapFS{"checkpoint": {Data: make([]byte, 4096)}}} }

func (s tree) put(name string, b []byte) { s.MapFS[name] = &fstest.MapFile{Data: b} }

// log adds a commit log file of size bytes that begins with the given parts.
func (s tree) log(start int64, size int, parts ...[]byte) {
	s.put(fmt.Sprintf("commitlog/%020d", start), file(size, parts...))
}

// queue adds a consume queue file of n units that begins with the given parts.
func (s tree) queue(topic string, id int32, start int64, n int, parts ...[]byte) {
	s.put(fmt.Sprintf("consumequeue/%s/%d/%020d", topic, id, start), file(n*consumequeue.UnitSize, parts...))
}

func file(size int, parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return append(b, make([]byte, size-len(b))...)
}

// record is a record at a physical offset, 100 bytes and more.
func record(off int64, body string, properties ...string) []byte {
	host := message.HostFrom(netip.MustParseAddrPort("10.0.0.1:10911"))
	p, err := message.NewProperties(properties...)
	if err != nil {
		panic(err)
	}
	r := commitlog.Record{
		Magic: commitlog.MagicV1, PhysicalOffset: off, BornHost: host, StoreHost: host, BornTimestamp: 1700000000000,
		StoreTimestamp: 1700000000000 + off, Topic: []byte("TopicA"), Body: []byte(body), BodyCRC: message.CRC([]byte(body)),
		Properties: []byte(p),
	}
	return r.AppendTo(nil)
}

// records are n records one behind the other from a physical offset on.
func records(off int64, n int) []byte {
	var b []byte
	for range n {
		b = append(b, record(off+int64(len(b)), "body")...)
	}
	return b
}

// recordSize is the length of a record with the body "body".
const recordSize = 91 + 4 + 6

// blank fills a file from used bytes on.
func blank(size, used int) []byte { return commitlog.AppendBlank(nil, size-used) }

func unit(off int64, size int32) []byte {
	return consumequeue.Unit{PhysicalOffset: off, Size: size, TagsCode: 7}.AppendTo(nil)
}

// offsets walks the log and gives the physical offsets of its records.
func offsets(t *testing.T, fsys fs.FS, r inspect.LogRange) ([]int64, *collector) {
	t.Helper()
	d, err := inspect.Open(fsys)
	require.NoError(t, err)
	c := &collector{}
	var got []int64
	for r, err := range d.Log(t.Context(), r, c.add) {
		require.NoError(t, err)
		got = append(got, r.PhysicalOffset)
	}
	return got, c
}

// indexes walks the queues and gives the indexes of their units.
func indexes(t *testing.T, fsys fs.FS) ([]int64, *collector) {
	t.Helper()
	d, err := inspect.Open(fsys)
	require.NoError(t, err)
	c := &collector{}
	var got []int64
	for u, err := range d.Queues(t.Context(), inspect.QueueFilter{}, c.add) {
		require.NoError(t, err)
		got = append(got, u.Index)
	}
	return got, c
}
