package namesrv_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
	"github.com/rocketstore/rocketstore/namesrv"
)

// bigTables runs a server on loopback with 16 brokers that all have so many topics, and returns how to ask it.
func bigTables(t testing.TB, count int) (ask func(req *remoting.Command) *remoting.Command, registrations []*remoting.Command) {
	t.Helper()
	s, err := namesrv.New(nil)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), l) }()
	c, err := remoting.NewClient(nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		c.Close()
		require.NoError(t, s.Shutdown(context.Background()))
		require.NoError(t, <-served)
	})
	ask = func(req *remoting.Command) *remoting.Command {
		resp, err := c.Call(context.Background(), l.Addr().String(), req)
		require.NoError(t, err)
		require.Equal(t, remoting.Success, resp.Code, resp.Remark)
		return resp
	}
	var topics []route.TopicConfig
	for i := range count {
		topics = append(topics, topic(fmt.Sprintf("topic-of-some-length-%05d", i), 8, 6))
	}
	for i := range 16 {
		b := broker{cluster: "c", name: fmt.Sprintf("broker-%02d", i), addr: fmt.Sprintf("10.0.0.%d:10911", i+1), topics: topics}
		ask(b.registration(t))
		b.version++
		registrations = append(registrations, b.registration(t))
	}
	return ask, registrations
}

func TestTenThousandTopicsOnSixteenBrokers(t *testing.T) { // R-C-25: what it takes in time, the benchmarks below say
	type work struct{ lookup, registration float64 } // allocations
	of := func(count int) (w work) {
		ask, registrations := bigTables(t, count)
		i := 0
		w.lookup = testing.AllocsPerRun(20, func() {
			i++
			ask(remoting.NewRequest(remoting.GetRouteByTopic, remoting.String("topic", fmt.Sprintf("topic-of-some-length-%05d", i*37%count))))
		})
		i = 0
		w.registration = testing.AllocsPerRun(3, func() {
			ask(registrations[i])
			i++
		})
		return w
	}
	few, many := of(100), of(10_000)
	t.Logf("100 topics %+v, 10 000 topics %+v", few, many)
	require.InEpsilon(t, few.lookup, many.lookup, 0.2) // a look-up makes the same of any number of topics
	// A registration reads each topic once: its work per topic does not grow.
	require.Less(t, many.registration/10_000, 1.5*few.registration/100)
}

func BenchmarkLookup(b *testing.B) {
	ask, _ := bigTables(b, 10_000)
	req := remoting.NewRequest(remoting.GetRouteByTopic, remoting.String("topic", "topic-of-some-length-05000"))
	b.ReportAllocs()
	for b.Loop() {
		ask(req)
	}
}

func BenchmarkRegistration(b *testing.B) {
	ask, registrations := bigTables(b, 10_000)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		ask(registrations[i%len(registrations)])
		i++
	}
}
