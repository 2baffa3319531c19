package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/message"
)

// A clean stop is believed, so damage in the middle shows neither in plan nor in recover. Both say so, and check finds it.
func TestPlanAndRecoverSayWhatTheyDoNotLookAt(t *testing.T) {
	dir := filepath.Join(golden.TempDir(t), "store")
	s, err := rocketstore.Open(dir, &rocketstore.Options{SegmentSize: 64 << 10})
	require.NoError(t, err)
	for range 20 {
		_, err := s.Put(t.Context(), &message.Message{Topic: "T", Body: []byte("hello")})
		require.NoError(t, err)
	}
	require.NoError(t, s.Close(t.Context()))
	log := filepath.Join(dir, "commitlog", "00000000000000000000")
	b, err := os.ReadFile(log)
	require.NoError(t, err)
	b[89]++ // in the first body
	require.NoError(t, os.WriteFile(log, b, 0o600))

	const believed = `(?m)^believed +the log from 0 to \d+ and what is made of it, since the last stop was clean: damage there does not show here; storectl check looks at everything$`
	status, out, _ := call(t, "plan", dir)
	require.Equal(t, statusFine, status)
	require.Regexp(t, believed, out)
	status, out, _ = call(t, "plan", "--json", dir)
	require.Equal(t, statusFine, status)
	require.Regexp(t, `"believed":[1-9]\d+,`, out)
	status, out, _ = call(t, "check", dir)
	require.Equal(t, statusFindings, status)
	require.Contains(t, out, "offset 0: wrong CRC")
	status, out, _ = call(t, "recover", dir)
	require.Equal(t, statusFine, status)
	require.Regexp(t, believed, out)

	// Where all is looked at there is nothing to say.
	status, out, _ = call(t, "plan", golden.Unpack(t, "rocketmq-4.9.7/clean"))
	require.Equal(t, statusFine, status)
	require.NotContains(t, out, "believed")
}
