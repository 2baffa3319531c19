package namesrv_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

// A topic that a broker adds by itself (217) is looked at like those of a registration.
func TestATopicOfLessThanNoQueuesIsRefused(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.peer()
		p.register(brokerA())
		for _, nums := range []string{`"readQueueNums":-4,"writeQueueNums":4`, `"readQueueNums":4,"writeQueueNums":-2147483648`} {
			req := remoting.NewRequest(remoting.RegisterTopic, remoting.String("topic", "New"))
			req.Body = []byte(`{"queueDatas":[{"brokerName":"a","perm":6,` + nums + `}]}`)
			resp := p.send(req)
			require.Equal(t, remoting.SystemError, resp.Code)
			require.Contains(t, resp.Remark, "topic New has")
			require.Nil(t, w.route("New"))
		}
	})
}

// Bodies and fields of another type than they should have register nothing.
func TestRegistrationsThatLieAboutTypes(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.peer()
		for name, body := range map[string]string{
			"a list of topics":            `{"topicConfigSerializeWrapper":{"topicConfigTable":[{"topicName":"T"}]}}`,
			"a topic that is a number":    `{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":7}}}`,
			"queues that are a word":      `{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":{"readQueueNums":"four"}}}}`,
			"queues of 33 bits":           `{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":{"readQueueNums":4294967300}}}}`,
			"a version that is a text":    `{"topicConfigSerializeWrapper":{"dataVersion":"1","topicConfigTable":{}}}`,
			"filter servers as an object": `{"filterServerList":{},"topicConfigSerializeWrapper":{}}`,
			"a wrapper that is a list":    `{"topicConfigSerializeWrapper":[]}`,
			"a pit":                       `{"topicConfigSerializeWrapper":` + strings.Repeat(`{"a":`, 1<<16),
			"an end too early":            `{"topicConfigSerializeWrapper":{"topicConfigTable":{"T":{"perm":6}}`,
			"two bodies":                  `{}{}`,
		} {
			req := brokerA().registration(t)
			req.Body = []byte(body)
			req.Fields.Delete("bodyCrc32")
			resp := p.send(req)
			require.Equal(t, remoting.SystemError, resp.Code, name)
			require.Contains(t, resp.Remark, "bad registration body", name)
			require.Empty(t, w.server.LiveAddrs(), name)
		}
		b := brokerA()
		b.extra = remoting.Fields{{Name: "__ZONE_NAME", Value: "z\n1"}}
		require.Equal(t, remoting.SystemError, p.send(b.registration(t)).Code)
	})
}

// What is kept of a registration keeps nothing of the header that it came in, and a refusal does not quote all of it (R-G-14).
func TestRegistrationsKeepNothingOfTheirHeaders(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.peer()
		heap := func() int64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		padding := strings.Repeat("p", 2<<20)
		p.register(brokerA())
		before := heap()
		for i := range 40 {
			b := brokerA()
			b.name, b.addr = fmt.Sprintf("b%d", i), fmt.Sprintf("10.0.1.%d:10911", i)
			b.extra = remoting.Fields{{Name: "padding", Value: padding}, {Name: "__ZONE_NAME", Value: "z"}}
			p.register(b)
		}
		require.Less(t, heap()-before, int64(30)<<20)
		require.Len(t, w.server.LiveAddrs(), 41)
		resp := p.ask(remoting.GetRouteByTopic, remoting.String("topic", padding))
		require.Equal(t, remoting.TopicNotExist, resp.Code)
		require.Less(t, len(resp.Remark), 4<<10)
	})
}

// Brokers that register and leave at once, over many connections, leave tables that agree; when all have left nothing is there.
func TestBrokersThatComeAndGoAtOnceLeaveNothing(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		var all sync.WaitGroup
		for i := range 12 {
			p := w.peer()
			b := brokerA()
			b.name, b.id, b.addr = fmt.Sprintf("b%d", i/3), int64(i%3), fmt.Sprintf("10.0.0.%d:10911", i)
			all.Go(func() {
				for round := range 40 {
					b.version = int64(round)
					reqs := []*remoting.Command{b.registration(t), remoting.NewRequest(remoting.GetRouteByTopic, remoting.String("topic", "T1"))}
					if round%2 == i%2 || round == 39 {
						reqs = append(reqs, remoting.NewRequest(remoting.UnregisterBroker, b.fields()...))
					}
					for _, req := range reqs {
						if _, err := p.c.Call(context.Background(), "namesrv", req); err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		all.Wait()
		require.Empty(t, w.server.LiveAddrs())
		require.Zero(t, w.server.Stats().Topics)
		require.Nil(t, w.route("T1"))
		w.peer().register(brokerA())
		require.NotNil(t, w.route("T1"))
	})
}
