package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// R-E-101: what is exported and imported is the same but for its places, in a store that is whole; the source is untouched.
func TestExportAndImportKeepAllButThePlaces(t *testing.T) {
	for name, dialect := range map[string]string{"rocketmq-3.1.4/clean": "3.1", "rocketmq-4.9.7/clean": "4.9", "rocketmq-5.3.3/crc": "5.3", "rocketmq-4.9.7/ipv6": "4.9"} {
		t.Run(name, func(t *testing.T) {
			dir, to := golden.Unpack(t, name), filepath.Join(golden.TempDir(t), "new")
			before := golden.Snapshot(t, dir)
			var out, problems bytes.Buffer
			require.Zero(t, run(t.Context(), []string{"export", dir}, &out, &problems), problems.String())
			require.Equal(t, before, golden.Snapshot(t, dir))
			lines := filepath.Join(golden.TempDir(t), "lines")
			require.NoError(t, os.WriteFile(lines, out.Bytes(), 0o600))
			require.Zero(t, run(t.Context(), []string{"import", "--segment-size", "100000", "--queue-segment-size", "1000", "--index-slots", "100", "--index-entries", "400", "--dialect", dialect, to, lines}, &out, &problems), problems.String())

			want, got := logOf(t, dir), logOf(t, to)
			require.Equal(t, want, got)
			var verdict bytes.Buffer
			require.Zero(t, run(t.Context(), []string{"check", to}, &verdict, &problems), verdict.String())
		})
	}
}

// logOf is all records of a store without what their places decide.
func logOf(t *testing.T, dir string) (all []commitlog.Record) {
	d, err := inspect.Open(os.DirFS(dir))
	require.NoError(t, err)
	for r, err := range d.Log(t.Context(), inspect.LogRange{}, func(f inspect.Finding) { t.Fatal(f) }) {
		require.NoError(t, err)
		r.PhysicalOffset, r.PreparedTransactionOffset = 0, 0
		r.Body, r.Topic = bytes.Clone(r.Body), bytes.Clone(r.Topic)
		r.Properties = bytes.Clone(r.Properties)
		if _, _, ok := commitlog.PropertyCRC(r.AppendTo(nil)); ok {
			r.Properties = r.Properties[:len(r.Properties)-commitlog.PropertyCRCSize]
		}
		all = append(all, r.Record)
	}
	return all
}
