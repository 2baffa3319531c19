package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/golden"
)

func TestPrintableQuotesWhatATerminalWouldActOn(t *testing.T) {
	for s, want := range map[string]string{
		"plain 键 é":            "plain 键 é",
		`with "quotes" \ back`: `with "quotes" \ back`,
		"\x1b[31mred":          `\x1b[31mred`,
		"a\nb":                 `a\nb`,
		"bad \xff byte":        `bad \xff byte`,
		"\x00\"":               `\x00"`,
	} {
		require.Equal(t, want, printable(s))
	}
}

func TestTableMovesARowWhoseCellIsTooWide(t *testing.T) {
	var out bytes.Buffer
	a := newApp(&out, io.Discard)
	table := a.table(column{"NAME", 4}, column{"N", -3}, column{"", 0})
	require.NoError(t, table.row(nil, "a", 1, ""))
	require.NoError(t, table.row(nil, "much too wide", 22, "x"))
	require.NoError(t, a.out.Flush())
	require.Equal(t, "NAME   N\na      1\nmuch too wide  22 x\n", out.String())
}

// fullDisk takes some bytes and then none.
type fullDisk struct{ left int }

var errFull = errors.New("no space left on device")

func (f *fullDisk) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestOutputThatCannotBeWrittenIsTrouble(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	for _, args := range [][]string{{"cat", dir}, {"cat", "--json", dir}, {"queues", dir}, {"index", dir}, {"index", "--json", dir}, {"identify", dir}} {
		for _, left := range []int{0, 4096} {
			if args[0] == "identify" && left > 0 {
				continue // all of it fits
			}
			var stderr strings.Builder
			require.Equal(t, statusTrouble, run(t.Context(), args, &fullDisk{left}, &stderr), args)
			require.Contains(t, stderr.String(), errFull.Error())
		}
	}
}

func TestAZipArchiveOfAStoreIsRead(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-5.3.3/lmq")
	want, _, status := rows[recordRow](t, "cat", dir)
	require.Equal(t, statusFine, status)
	for name, root := range map[string]string{"with the folder": filepath.Dir(dir), "without": dir} {
		archive := filepath.Join(golden.TempDir(t), "store.zip")
		f, err := os.Create(archive)
		require.NoError(t, err)
		w := zip.NewWriter(f)
		require.NoError(t, w.AddFS(os.DirFS(root)))
		require.NoError(t, errors.Join(w.Close(), f.Close()))
		got, _, status := rows[recordRow](t, "cat", archive)
		require.Equal(t, statusFine, status, name)
		require.Equal(t, want, got, name)
	}
	var stderr strings.Builder
	require.Equal(t, statusTrouble, run(t.Context(), []string{"cat", filepath.Join(dir, "checkpoint")}, io.Discard, &stderr))
	require.Contains(t, stderr.String(), "neither a zip archive nor a tar archive")
}

func TestALogThatCannotBeReadIsTroubleToIdentify(t *testing.T) {
	archive := filepath.Join(golden.TempDir(t), "store.zip")
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	require.NoError(t, w.AddFS(os.DirFS(golden.Unpack(t, "rocketmq-4.9.7/clean"))))
	require.NoError(t, w.Close())
	harmed := b.Bytes()
	at := bytes.Index(harmed, []byte("commitlog/00000000000000262144")) + 200
	copy(harmed[at:], bytes.Repeat([]byte{0xFF}, 4096))
	require.NoError(t, os.WriteFile(archive, harmed, 0o600))
	for _, flag := range []string{"--json=false", "--json"} {
		var stderr strings.Builder
		require.Equal(t, statusTrouble, run(t.Context(), []string{"identify", archive, flag}, io.Discard, &stderr), stderr.String())
	}
}
