package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// IdleQueuesFile is our own note of queues without files; RocketMQ ignores it.
const IdleQueuesFile = "config/rocketstoreQueues.json"

// IdleQueues remembers, by "topic@queueId", the queue offset at which a queue goes on whose files retention removed because
// all its records are gone from the log.
type IdleQueues map[string]int64

// IdleKey is how [IdleQueues] names a queue.
func IdleKey(topic string, queueID int32) string { return fmt.Sprintf("%s@%d", topic, queueID) }

// LoadIdleQueues reads the note. A missing one has no queues; for one that cannot be read damaged says why, and has none
// either: its queues begin at offset 0 again, as those of RocketMQ do.
func LoadIdleQueues[F File](fsys FS[F]) (q IdleQueues, damaged, err error) {
	f, err := fsys.OpenFile(IdleQueuesFile, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return IdleQueues{}, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return nil, nil, err
	}
	const most = 64 << 20
	b := make([]byte, min(size, most))
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	var note struct {
		Queues IdleQueues `json:"queues"`
	}
	if err := json.Unmarshal(b[:n], &note); err != nil {
		return IdleQueues{}, fmt.Errorf("%s: %w", IdleQueuesFile, err), nil
	}
	for key, at := range note.Queues {
		if at < 0 {
			delete(note.Queues, key)
		}
	}
	if note.Queues == nil {
		note.Queues = IdleQueues{}
	}
	return note.Queues, nil, nil
}

// SaveIdleQueues writes the note durably, so that after a crash either the old or the new one is there.
func SaveIdleQueues[F File](fsys FS[F], q IdleQueues) error {
	b, err := json.MarshalIndent(map[string]IdleQueues{"queues": q}, "", "\t")
	if err != nil {
		return err
	}
	return saveAside(fsys, IdleQueuesFile, b)
}
