package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
)

// How far recovery is stands on a line of its own while it runs, begins anew with each phase, and is taken away (R-E-079).
func TestProgressOfRecoveryIsShown(t *testing.T) {
	var stderr bytes.Buffer
	a := newApp(&bytes.Buffer{}, &stderr)
	var o rocketstore.Options
	bar := a.watch(&o)
	o.Recovery.Progress("check", 1<<20, 4<<20)
	require.Empty(t, stderr.String(), "no terminal")
	bar.on = true
	o.Recovery.Progress("check", 1<<20, 4<<20)
	require.Contains(t, stderr.String(), " 25%")
	before := bar.bar
	o.Recovery.Progress("replay", 1, 2)
	require.NotSame(t, before, bar.bar)
	require.Contains(t, stderr.String(), " 50%")
	bar.clear()
	require.Regexp(t, "\x1b\\[2?K\r?$", stderr.String())
}
