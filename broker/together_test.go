package broker_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
	"github.com/rocketstore/rocketstore/namesrv"
)

func TestSeveralServersLiveInOneProcess(t *testing.T) { // R-F-01, R-F-18: on loopback, any port
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	names, err := namesrv.New(nil)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- names.Serve(context.Background(), l) }()
	var brokers []*broker.Broker
	for _, name := range []string{"broker-a", "broker-b"} {
		o := small("4.9")
		o.Name, o.NameServers = name, []string{l.Addr().String()}
		b := onLoopback(t, o)
		require.Equal(t, 1, b.Stats().Registered) // clients find it from now on
		brokers = append(brokers, b)
	}
	c := newClient(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	addrs := map[string]bool{}
	for _, b := range brokers {
		resp, err := c.Call(ctx, b.Addr(), outgoing{topic: "T", body: "x"}.request(remoting.SendMessageV2))
		require.NoError(t, err)
		require.Equal(t, remoting.Success, resp.Code, resp.Remark)
		addrs[b.Addr()] = true
	}
	require.Eventually(t, func() bool {
		resp, err := c.Call(ctx, l.Addr().String(), remoting.NewRequest(remoting.GetRouteByTopic, remoting.String("topic", "T")))
		if err != nil || resp.Code != remoting.Success {
			return false
		}
		r, err := route.ParseTopic(resp.Body)
		require.NoError(t, err)
		found := 0
		for _, d := range r.Brokers {
			if addrs[d.SelectAddr()] {
				found++
			}
		}
		return found == 2
	}, time.Minute, 5*time.Millisecond)
	for _, b := range brokers {
		require.NoError(t, b.Shutdown(context.Background()))
	}
	require.NoError(t, names.Shutdown(context.Background()))
	require.NoError(t, <-served)
}

func TestADirectoryHasOneBroker(t *testing.T) { // R-F-19
	o := small("4.9")
	o.Store.FS, o.Dir = nil, t.TempDir()
	first := onLoopback(t, o)
	o.Port = -1
	_, err := broker.Start(t.Context(), &o)
	require.ErrorContains(t, err, "lock")
	require.True(t, first.Ready())
}

func TestAStartEndsWithItsContext(t *testing.T) { // R-G-11
	o := small("4.9")
	o.Port = -1
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := broker.Start(ctx, &o)
	require.ErrorIs(t, err, context.Canceled)
	onLoopback(t, o) // nothing was left behind
}

func TestWhatAdministratorsChangeIsLogged(t *testing.T) { // R-G-36, R-G-04: and no bodies
	var log bytes.Buffer
	o := small("4.9")
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		p.admin(remoting.Success, remoting.CreateTopic, "", append(topicFields("T", 1, 1, 6), remoting.String(remoting.FieldAccessKey, "someone"))...)
		require.Equal(t, remoting.Success, p.put(outgoing{topic: "T", body: "a secret body"}).Code)
		p.admin(remoting.Success, remoting.UpdateBrokerConfig, "traceOn=false\n")
		p.admin(remoting.Success, remoting.CreateSubscriptionGroup, `{"groupName":"CG"}`)
		p.admin(remoting.Success, remoting.CloneGroupOffset, "", remoting.String("srcGroup", "CG"), remoting.String("destGroup", "Other"))
		p.admin(remoting.Success, remoting.DeleteSubscriptionGroup, "", remoting.String("groupName", "CG"))
		p.admin(remoting.Success, remoting.DeleteTopicInBroker, "", remoting.String("topic", "T"))
		w.stop()
		for _, want := range []string{
			`msg="admin: topic put" code=17 peer=`, `accessKey=someone topic=T read=1 write=1 perm=6`, `msg="admin: configuration changed" code=25`,
			`properties="traceOn=false"`, `msg="admin: group put"`, `msg="admin: offsets cloned"`, `msg="admin: group deleted"`, `msg="admin: topic deleted"`,
		} {
			require.Contains(t, log.String(), want)
		}
		require.NotContains(t, log.String(), "a secret body")
	})
}
