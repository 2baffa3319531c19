package client_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/client"
	"github.com/rocketstore/rocketstore/internal/mqtest"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// A listener must not decide by a body that is not the one that was sent; the broker asks again. R-D-115.
func TestACheckWithADamagedBodyReachesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := mqtest.New(t)
		n.ServeNames("ns1:9876").Set("T", 1, "a", brokerA)
		conns := make(chan *remoting.Conn, 10)
		n.Serve(brokerA, func(_ context.Context, conn *remoting.Conn, req *remoting.Command) *remoting.Command {
			conns <- conn
			return req.Reply(remoting.Success)
		})
		c := newClient(t, n, client.Options{})
		m := &member{checks: make(chan *message.Received, 2)}
		require.NoError(t, c.RegisterProducer("PG", m))
		_, err := c.Route(t.Context(), "T", nil)
		require.NoError(t, err)
		conn := <-conns
		check := remoting.NewRequest(remoting.CheckTransactionState)
		check.Body = recordOf(t, "PGROUP", "PG")
		damaged := *check
		damaged.Body = append([]byte(nil), check.Body...)
		damaged.Body[88] ^= 1 // the body's first byte
		require.NoError(t, conn.Oneway(t.Context(), &damaged))
		synctest.Wait()
		require.Empty(t, m.checks)
		require.NoError(t, conn.Oneway(t.Context(), check))
		require.Equal(t, "body", string((<-m.checks).Body))
	})
}
