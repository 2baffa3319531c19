package inspect_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// why follows a message of a directory.
func why(t *testing.T, dir string, q inspect.WhyRequest) *inspect.Why {
	t.Helper()
	d, err := inspect.Open(os.DirFS(dir))
	require.NoError(t, err)
	w, err := d.Why(t.Context(), q, func(inspect.Finding) {})
	require.NoError(t, err)
	return w
}

// Each planted fault is the step at which the message stops, with the file and the offset of the fault.
func TestWhyNamesTheFirstPlaceWhereTheWayBreaks(t *testing.T) {
	t.Parallel()
	const queue = "consumequeue/GoldenNormal/0/00000000000000000000"
	change := func(file string, at int64, b ...byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			f, err := os.OpenFile(filepath.Join(dir, filepath.FromSlash(file)), os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = f.WriteAt(b, at)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
	}
	write := func(file, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(file)), []byte(text), 0o600))
		}
	}
	for _, tt := range []struct {
		name   string
		harm   func(*testing.T, string)
		what   string
		file   string
		offset int64
	}{
		{"a byte of the body", change("commitlog/00000000000000000000", 33233+100, 0), "record", "commitlog/00000000000000000000", 33233},
		{"the unit points elsewhere", change(queue, 100, binary.BigEndian.AppendUint64(nil, 0)...), "queue unit", queue, 100},
		{"the unit has another size", change(queue, 108, 0, 0, 0, 9), "queue unit", queue, 108},
		{"the unit is zero", change(queue, 100, make([]byte, 20)...), "queue unit", queue, 100},
		{"another tags code", change(queue, 112, 1), "tags code", queue, 112},
		{"no queue files", func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "consumequeue", "GoldenNormal", "0")))
		}, "queue unit", "", 0},
		{"a topic that is not readable", write("config/topics.json", `{"topicConfigTable":{"GoldenNormal":{"perm":2,"readQueueNums":2,"topicName":"GoldenNormal"}}}`), "topic", "config/topics.json", 0},
		{"fewer queues for reading", write("config/topics.json", `{"topicConfigTable":{"GoldenNormal":{"perm":6,"readQueueNums":0,"topicName":"GoldenNormal"}}}`), "topic", "config/topics.json", 0},
		{"a group that may not consume", write("config/subscriptionGroup.json", `{"subscriptionGroupTable":{"GoldenNormalGroup":{"groupName":"GoldenNormalGroup","consumeEnable":false}}}`), "group", "config/subscriptionGroup.json", 0},
		{"a group that is behind", write("config/consumerOffset.json", `{"offsetTable":{"GoldenNormal@GoldenNormalGroup":{0:5}}}`), "group offset of GoldenNormalGroup", "config/consumerOffset.json", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
			q := inspect.WhyRequest{Topic: "GoldenNormal", QueueOffset: 5, Group: "GoldenNormalGroup"}
			require.Equal(t, -1, why(t, dir, q).Break)
			tt.harm(t, dir)
			w := why(t, dir, q)
			require.GreaterOrEqual(t, w.Break, 0)
			step := w.Steps[w.Break]
			require.Equal(t, []any{tt.what, tt.file, tt.offset}, []any{step.What, step.File, step.Offset}, step.Text)
		})
	}
}

// Of every message in every golden store something is said, and nothing in the directory changes.
func TestWhySaysSomethingOfEveryRecord(t *testing.T) {
	for _, name := range []string{"rocketmq-3.1.4/abort-torn", "rocketmq-4.9.7/ext", "rocketmq-5.3.3/batchcq", "rocketmq-5.3.3/timer"} {
		dir := golden.Unpack(t, name)
		before := golden.Snapshot(t, dir)
		d, err := inspect.Open(os.DirFS(dir))
		require.NoError(t, err)
		n := 0
		for r, err := range d.Log(t.Context(), inspect.LogRange{}, func(inspect.Finding) {}) {
			require.NoError(t, err)
			if n++; n%9 != 0 {
				continue
			}
			w := why(t, dir, inspect.WhyRequest{ID: r.ID()})
			require.NotEmpty(t, w.Steps)
			require.NotContains(t, w.Steps[0].Text, "no record has that id")
		}
		require.Equal(t, before, golden.Snapshot(t, dir))
	}
}

func ExampleDir_Why() {
	w, err := mustOpen(exampleStore()).Why(context.Background(), inspect.WhyRequest{ID: "0A00000100002A9F0000000000001000"}, func(inspect.Finding) {})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.Steps[w.Break].What, w.Steps[w.Break].State)
	// Output: queue unit broken
}
