package rocketstore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// Which transactions are open is said by the queues of the half and of the op topic. Whatever became of the files of either,
// the log has them made again, so none that was ended is open and none that is open is forgotten (R-E-045, R-E-072).
func TestDamagedQueuesOfHalfAndOpTopicChangeNoTransaction(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{"RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"} {
		other := map[bool]string{true: "RMQ_SYS_TRANS_OP_HALF_TOPIC", false: "RMQ_SYS_TRANS_HALF_TOPIC"}[topic == "RMQ_SYS_TRANS_HALF_TOPIC"]
		for name, harm := range map[string]func(t *testing.T, dir string){
			"folder missing": func(t *testing.T, dir string) {
				require.NoError(t, os.RemoveAll(filepath.Join(dir, "consumequeue", topic)))
			},
			"first file missing":  func(t *testing.T, dir string) { remove(t, queueFile(dir, topic+"/0", 0)) },
			"middle file missing": func(t *testing.T, dir string) { remove(t, queueFile(dir, topic+"/0", 1)) },
			"last file missing":   func(t *testing.T, dir string) { remove(t, queueFile(dir, topic+"/0", 2)) },
			"last file zeroed": func(t *testing.T, dir string) {
				require.NoError(t, os.WriteFile(queueFile(dir, topic+"/0", 2), make([]byte, 400), 0o600))
			},
			"last file cut short":             func(t *testing.T, dir string) { require.NoError(t, os.Truncate(queueFile(dir, topic+"/0", 2), 50)) },
			"two files in each other's place": func(t *testing.T, dir string) { swap(t, queueFile(dir, topic+"/0", 0), queueFile(dir, topic+"/0", 1)) },
			"a file of the other topic": func(t *testing.T, dir string) {
				copyFile(t, queueFile(dir, other+"/0", 1), queueFile(dir, topic+"/0", 1))
			},
		} {
			for _, clean := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/clean=%t", topic, name, clean), func(t *testing.T) {
					dir, open := halfStore(t, clean)
					harm(t, dir)
					for range 2 { // what was made again is found
						s, err := rocketstore.Open(dir, halfOptions())
						require.NoError(t, err)
						require.Equal(t, open, openSet(t, s))
						require.NoError(t, s.Abandon())
					}
				})
			}
		}
	}
}

func halfOptions() *rocketstore.Options {
	o := small()
	o.Dialect, o.HoldDelayed = "4.9", true
	return o
}

// halfStore makes a store with 50 transactions, of which every sixth is open, and gives those.
func halfStore(t *testing.T, clean bool) (dir string, open []golden.OpenTransaction) {
	t.Helper()
	dir = golden.TempDir(t)
	s, err := rocketstore.Open(dir, halfOptions())
	require.NoError(t, err)
	for i := range 60 {
		r, err := s.Put(t.Context(), transactional(t, fmt.Sprint("body ", i)))
		require.NoError(t, err)
		if i%6 == 5 {
			open = append(open, golden.OpenTransaction{PhysicalOffset: r.PhysicalOffset, Number: r.QueueOffset})
			continue
		}
		_, err = s.EndTransaction(t.Context(), endOf(r, i%3 == 0))
		require.NoError(t, err)
	}
	_, end := s.Bounds()
	require.NoError(t, s.WaitDispatched(t.Context(), end))
	require.Equal(t, open, openSet(t, s))
	if clean {
		require.NoError(t, s.Close(t.Context()))
	} else {
		require.NoError(t, s.Abandon())
	}
	return dir, open
}
