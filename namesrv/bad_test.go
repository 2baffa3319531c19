package namesrv_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
	"github.com/rocketstore/rocketstore/namesrv"
)

func TestNamesThatCannotBeAreRefusedClearly(t *testing.T) {
	long := strings.Repeat("x", 256)
	for name, tt := range map[string]struct {
		harm func(b *broker)
		want string
	}{
		"control character in the broker name":  {func(b *broker) { b.name = "a\x07" }, `brokerName "a\a" has character U+0007 at 1`},
		"line break in the cluster name":        {func(b *broker) { b.cluster = "c\n1" }, "clusterName"},
		"zero byte in a topic":                  {func(b *broker) { b.topics[1].Name = "T\x00" }, `topic "T\x00"`},
		"escape sequence in a topic":            {func(b *broker) { b.topics[0].Name = "\x1b[31mT" }, "U+001B"},
		"bytes that are no text":                {func(b *broker) { b.name = "\xff" }, "U+FFFD"},
		"empty broker name":                     {func(b *broker) { b.name = "" }, "brokerName is empty"},
		"empty topic":                           {func(b *broker) { b.topics[0].Name = "" }, "topic is empty"},
		"too long":                              {func(b *broker) { b.topics[0].Name = long }, "256 bytes"},
		"address without a port":                {func(b *broker) { b.addr = "10.0.0.1" }, "not host:port"},
		"address with a port that is none":      {func(b *broker) { b.addr = "10.0.0.1:99999" }, "not host:port"},
		"address that would cut a client's map": {func(b *broker) { b.addr = `h:1,"1":"evil:2` }, "not host:port"},
		"control character in the HA address":   {func(b *broker) { b.extra = remoting.Fields{{Name: "haServerAddr", Value: "h\t:1"}} }, "haServerAddr"},
		"negative queues":                       {func(b *broker) { b.topics[0].ReadQueueNums = -4 }, "-4 read"},
		"broker id that is none":                {func(b *broker) { b.extra = remoting.Fields{{Name: "brokerId", Value: "zero"}} }, `brokerId is no number: "zero"`},
		"checksum that is none":                 {func(b *broker) { b.extra = remoting.Fields{{Name: "bodyCrc32", Value: "1e9"}} }, "bodyCrc32"},
		"compressed that is not":                {func(b *broker) { b.extra = remoting.Fields{{Name: "compressed", Value: "true"}} }, "zlib"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, nil, func(t *testing.T, w *world) {
				b := brokerA()
				tt.harm(&b)
				resp := w.peer().send(b.registration(t))
				require.Equal(t, remoting.SystemError, resp.Code)
				require.Contains(t, resp.Remark, tt.want)
				require.Empty(t, w.server.LiveAddrs())
				require.Zero(t, w.server.Stats().Topics)
			})
		})
	}
}

func TestABombIsNotInflated(t *testing.T) {
	inWorld(t, &namesrv.Options{MaxInflated: 1 << 20}, func(t *testing.T, w *world) {
		b := brokerA()
		b.compressed = true
		for i := range 50_000 {
			b.topics = append(b.topics, topic(fmt.Sprintf("topic-%d", i), 4, 6))
		}
		resp := w.peer().send(b.registration(t))
		require.Equal(t, remoting.SystemError, resp.Code)
		require.Contains(t, resp.Remark, "more than 1048576 bytes when inflated")
	})
}

func TestBadBodiesAreRefused(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p, b := w.peer(), brokerA()
		p.register(b)
		for _, req := range []*remoting.Command{
			remoting.NewRequest(remoting.QueryDataVersion, b.fields()...),
			remoting.NewRequest(remoting.RegisterTopic, remoting.String("topic", "T")),
			remoting.NewRequest(remoting.RegisterTopic, remoting.String("topic", "T\n")),
		} {
			req.Body = []byte(`{"counter":`)
			require.Equal(t, remoting.SystemError, p.send(req).Code)
		}
	})
}

func TestAThousandIdleAndAHundredHostileConnectionsHarmNobody(t *testing.T) { // R-G-14
	inWorld(t, nil, func(t *testing.T, w *world) {
		good := w.peer()
		good.register(brokerA())
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range 1000 {
			nc, err := w.pipe.Dial(t.Context(), "idle")
			require.NoError(t, err)
			defer nc.Close()
		}
		head := binary.BigEndian.AppendUint32(nil, remoting.MaxFrame)
		for range 100 { // each claims 16 MiB, sends a little and falls silent
			nc, err := w.pipe.Dial(t.Context(), "half open")
			require.NoError(t, err)
			defer nc.Close()
			_, err = nc.Write(append(head, 0, 0, 0, 0))
			require.NoError(t, err)
		}
		synctest.Wait()
		runtime.GC()
		runtime.ReadMemStats(&after)
		require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(64<<20))
		require.Equal(t, 1101, w.server.Stats().Connections)
		require.NotNil(t, w.route("T1"))
		time.Sleep(30 * time.Second) // the half-open ones have had their time
		synctest.Wait()
		good.register(brokerA())
		require.Equal(t, 1002, w.server.Stats().Connections)
		time.Sleep(91 * time.Second) // and the silent ones theirs
		synctest.Wait()
		require.Equal(t, 1, w.server.Stats().Connections)
		require.NotNil(t, w.route("T1"))
	})
}

func TestAFloodOfUnknownCodesFromManyPeers(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		good := w.peer()
		good.register(brokerA())
		for range 20 {
			p := w.peer()
			for i := range 100 {
				require.NoError(t, p.c.Async(t.Context(), "namesrv", remoting.NewRequest(int32(5000+i)), new(remoting.Pending), remoting.WaiterFunc(func(*remoting.Command, error) {})))
			}
		}
		require.NotNil(t, w.route("T1"))
		synctest.Wait()
		require.Equal(t, int64(2000), w.server.Stats().Requests[-1])
		require.Len(t, w.server.Stats().Requests, 3) // the flood does not fill the table of figures
	})
}

// FuzzHandler sends any command to a server with one broker: there is always an answer, and the tables stay consistent.
func FuzzHandler(f *testing.F) {
	b := brokerA()
	g := route.Registration{Topics: b.topics}
	body, err := g.Append(nil, route.RegistrationForm{Version: 407})
	require.NoError(f, err)
	for _, code := range []int32{100, 101, 102, 103, 104, 105, 106, 205, 206, 216, 217, 219, 224, 304, 311, 318, 319, 322, 327, 901, 904, 7} {
		f.Add(code, int32(407), "clusterName", "c1", "brokerName", "a", "brokerAddr", "h:1", "topic", "T1", body)
	}
	f.Fuzz(func(t *testing.T, code, version int32, n1, v1, n2, v2, n3, v3, n4, v4 string, body []byte) {
		inWorld(t, nil, func(t *testing.T, w *world) {
			p := w.peer()
			p.register(brokerA())
			req := remoting.NewRequest(code, remoting.String(n1, v1), remoting.String(n2, v2), remoting.String(n3, v3), remoting.String(n4, v4),
				remoting.Int("brokerId", 1), remoting.String("haServerAddr", ""))
			req.Version, req.Body = version, body
			p.send(req)
		})
	})
}
