package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
)

// A tail sees records as they come, waits for what is half written, goes over files and damage, and starts anew behind a cut.
func TestTailFollowsAMovingEnd(t *testing.T) {
	s := newTree()
	s.log(0, 4096, records(0, 2))
	second := records(2*recordSize, 1)
	errEnough := errors.New("enough")
	var c collector
	var got []int64
	steps := []func(){
		func() { s.log(0, 4096, records(0, 2), second[:50]) }, // half of it
		func() { s.log(0, 4096, records(0, 3)) },
		func() { s.log(0, 4096, records(0, 3), blank(4096, 3*recordSize)) }, // the next file is not there yet
		func() { s.log(4096, 4096) },
		func() { s.log(4096, 4096, records(4096, 1)) },
		func() { // damage with a record behind it
			s.log(4096, 4096, records(4096, 1), make([]byte, 30), records(4096+recordSize+30, 1))
		},
		func() {},
		func() { delete(s.MapFS, "commitlog/00000000000000004096") }, // the log was cut
		func() {},
		func() { s.log(4096, 4096, records(4096, 1)) },
		func() { // retention took what would come next
			delete(s.MapFS, "commitlog/00000000000000000000")
			delete(s.MapFS, "commitlog/00000000000000004096")
			s.log(12288, 4096, records(12288, 1))
		},
	}
	wait := func(context.Context) error {
		if len(steps) == 0 {
			return errEnough
		}
		steps[0]()
		steps = steps[1:]
		return nil
	}
	for r, err := range mustOpen(s).Tail(t.Context(), inspect.TailOptions{Wait: wait, Patience: 2}, c.add) {
		if errors.Is(err, errEnough) {
			break
		}
		require.NoError(t, err)
		got = append(got, r.PhysicalOffset)
	}
	const size = recordSize
	require.Equal(t, []int64{0, size, 2 * size, 4096, 4096 + size + 30, 4096, 12288}, got)
	require.Equal(t, []string{
		"zeros with data behind them|commitlog/00000000000000004096|101",
		"gap|commitlog/00000000000000012288|0",
	}, c.brief())
}

func TestTailBeginsBehindTheLastRecord(t *testing.T) {
	s := newTree()
	s.log(0, 4096, records(0, 3))
	ctx, stop := context.WithCancel(t.Context())
	waits := 0
	wait := func(context.Context) error {
		if waits++; waits == 1 {
			s.log(0, 4096, records(0, 4))
			return nil
		}
		stop()
		return ctx.Err()
	}
	var got []int64
	for r, err := range mustOpen(s).Tail(ctx, inspect.TailOptions{From: -1, Wait: wait}, func(inspect.Finding) {}) {
		require.NoError(t, err)
		got = append(got, r.PhysicalOffset)
	}
	require.Equal(t, []int64{3 * recordSize}, got)
}

func ExampleDir_Tail() {
	once := inspect.TailOptions{Wait: func(context.Context) error { return context.Canceled }} // without one it goes on for ever
	for r, err := range mustOpen(exampleStore()).Tail(context.Background(), once, func(inspect.Finding) {}) {
		if err != nil {
			break
		}
		fmt.Println(r.PhysicalOffset)
	}
	// Output: 0
}
