package rocketstore_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/internal/invariant"
	"github.com/rocketstore/rocketstore/message"
)

// allocsOf gives the allocations of one call of f, those of the background included, on average and rounded down: what a
// thousand calls allocate together, as growing tables do, is none.
func allocsOf(f func()) float64 {
	for range 2000 { // pools and tables warm up
		f()
	}
	return testing.AllocsPerRun(2000, f)
}

// A put, a get and a transaction allocate nothing, whatever the policy, the way of writing and the size up to 4 KiB (R-E-091).
func TestPutsGetsAndTransactionsAllocateNothing(t *testing.T) {
	if invariant.Enabled {
		t.Log("the checks of this build, and its race detector, allocate; the calls are made all the same")
	}
	none := func(what string, f func()) {
		t.Helper()
		if got := allocsOf(f); !invariant.Enabled {
			require.Zero(t, got, what)
		}
	}
	for _, size := range []int{0, 128, 4 << 10} {
		for _, policy := range []commitlog.SyncPolicy{commitlog.SyncInterval, commitlog.SyncGroup} {
			if policy == commitlog.SyncGroup && size != 128 {
				continue // the disk is waited for
			}
			s := open(t, golden.TempDir(t), &rocketstore.Options{SegmentSize: 64 << 20, IndexSlots: 1 << 16, IndexEntries: 1 << 16, Sync: policy, Sparse: true})
			p, err := message.NewProperties(message.PropertyTags, "tag", message.PropertyKeys, "key another", message.PropertyUniqueKey, "7F0000013E445FFD2B27949CC9BD0125")
			require.NoError(t, err)
			m := &message.Message{Topic: "T", Body: make([]byte, size), Properties: p}
			none("put", func() {
				_, err := s.Put(t.Context(), m)
				require.NoError(t, err)
			})
			for _, trust := range []commitlog.Trust{commitlog.TrustNothing, commitlog.TrustBodies, commitlog.TrustAll} {
				at := int64(0)
				none("get", func() {
					res, err := s.Get(t.Context(), rocketstore.GetRequest{Topic: "T", Offset: at, Trust: trust})
					require.NoError(t, err)
					require.Equal(t, rocketstore.Found, res.Status)
					at = res.Next % 3000
					res.Release()
				})
			}
			require.NoError(t, s.Close(t.Context()))
		}
	}
	s := open(t, golden.TempDir(t), &rocketstore.Options{Dialect: "3.1", SegmentSize: 64 << 20, IndexSlots: 1 << 16, IndexEntries: 1 << 16, Sparse: true})
	p, err := message.NewProperties(message.PropertyTransactionPrepared, "true", message.PropertyProducerGroup, "group")
	require.NoError(t, err)
	m := &message.Message{Topic: "T", SysFlag: message.FlagPrepared, Body: make([]byte, 1024), Properties: p}
	for _, commit := range []bool{true, false} {
		none("transaction", func() {
			r, err := s.Put(t.Context(), m)
			require.NoError(t, err)
			_, err = s.EndTransaction(t.Context(), rocketstore.TransactionEnd{
				ProducerGroup: "group", PreparedOffset: r.PhysicalOffset, Number: r.QueueOffset, Commit: commit,
			})
			require.NoError(t, err)
		})
	}
}

// counter counts questions, and tells when many were asked.
type counter struct {
	asked atomic.Int64
	on    atomic.Bool
	round chan struct{}
}

func (c *counter) Check(context.Context, rocketstore.CheckRequest) error {
	if c.asked.Add(1)%1000 == 0 {
		c.round <- struct{}{}
	}
	return nil
}

// A step of the check-back allocates nothing: what a round of 1000 questions allocates is its own, less than one for ten of
// them.
func TestCheckBackStepsAllocateNothing(t *testing.T) {
	c := &counter{round: make(chan struct{})}
	s := open(t, golden.TempDir(t), &rocketstore.Options{
		Dialect: "3.1", SegmentSize: 64 << 20, Sparse: true,
		Checks: rocketstore.Checks{Checker: c, Every: time.Millisecond, MinAge: time.Nanosecond, Enabled: c.on.Load},
	})
	p, err := message.NewProperties(message.PropertyTransactionPrepared, "true", message.PropertyProducerGroup, "group")
	require.NoError(t, err)
	for range 1000 {
		_, err := s.Put(t.Context(), &message.Message{Topic: "T", SysFlag: message.FlagPrepared, Body: make([]byte, 100), Properties: p})
		require.NoError(t, err)
	}
	c.on.Store(true)
	<-c.round
	allocs := testing.AllocsPerRun(20, func() { <-c.round })
	c.on.Store(false)
	go func() {
		for range c.round { // a round may be under way
		}
	}()
	require.NoError(t, s.Close(t.Context()))
	close(c.round)
	if !invariant.Enabled {
		require.Less(t, allocs, 100.0)
	}
}
