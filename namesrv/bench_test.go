package namesrv_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
	"github.com/rocketstore/rocketstore/namesrv"
)

// bigTables runs a server on loopback with 16 brokers that all have 10 000 topics, and returns how to ask it.
func bigTables(t testing.TB) (ask func(req *remoting.Command) *remoting.Command, registrations []*remoting.Command) {
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
	for i := range 10_000 {
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

// fastest is the least time of n runs: what the machine's other work adds does not count.
func fastest(n int, f func(i int)) time.Duration {
	var times []time.Duration
	for i := range n {
		began := time.Now()
		f(i)
		times = append(times, time.Since(began))
	}
	return slices.Min(times)
}

func TestTenThousandTopicsOnSixteenBrokers(t *testing.T) { // R-C-25
	if raceEnabled {
		return // the race detector's own cost is many times the limits
	}
	ask, registrations := bigTables(t)
	lookup := fastest(200, func(i int) {
		ask(remoting.NewRequest(remoting.GetRouteByTopic, remoting.String("topic", fmt.Sprintf("topic-of-some-length-%05d", i*37))))
	})
	registration := fastest(len(registrations), func(i int) { ask(registrations[i]) })
	t.Logf("look-up %v, registration %v", lookup, registration)
	require.Less(t, lookup, time.Millisecond)
	require.Less(t, registration, 50*time.Millisecond)
}

func BenchmarkLookup(b *testing.B) {
	ask, _ := bigTables(b)
	req := remoting.NewRequest(remoting.GetRouteByTopic, remoting.String("topic", "topic-of-some-length-05000"))
	b.ReportAllocs()
	for b.Loop() {
		ask(req)
	}
}

func BenchmarkRegistration(b *testing.B) {
	ask, registrations := bigTables(b)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		ask(registrations[i%len(registrations)])
		i++
	}
}
