package consumer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rocketstore/rocketstore/internal/fastjson"
	"github.com/rocketstore/rocketstore/internal/properties"
)

// The files of a broadcast consumer below <directory>/<client id>/<group>, as Java names them. The second is the first as it was
// before it was last written.
const (
	localOffsetsFile   = "offsets.json"
	localOffsetsBackup = "offsets.json.bak"
	localOffsetsPerm   = 0o640
)

// maxLocalOffsets bounds how long such a file may be, bytes; a real one has a line per queue.
const maxLocalOffsets = 64 << 20

// AppendOffsets appends the JSON form in which Java keeps the offsets of a broadcast consumer: an object whose keys are the
// queues as objects themselves.
func AppendOffsets(b []byte, offsets map[Queue]int64) []byte {
	queues := make([]Queue, 0, len(offsets))
	for q := range offsets {
		queues = append(queues, q)
	}
	b = append(b, "{\n\t\"offsetTable\":{"...)
	for i, q := range sortQueues(queues) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, "{\n\t\t\t\"brokerName\":"...)
		b = fastjson.AppendString(b, q.BrokerName)
		b = append(b, ",\n\t\t\t\"queueId\":"...)
		b = strconv.AppendInt(b, int64(q.QueueID), 10)
		b = append(b, ",\n\t\t\t\"topic\":"...)
		b = fastjson.AppendString(b, q.Topic)
		b = append(b, "\n\t\t}:"...)
		b = strconv.AppendInt(b, offsets[q], 10)
	}
	return append(b, "\n\t}\n}"...)
}

// ParseOffsets reads that form; what 5.x adds is skipped. An error matches fastjson.ErrSyntax.
func ParseOffsets(b []byte) (map[Queue]int64, error) {
	offsets := map[Queue]int64{}
	r := fastjson.NewReader(string(b))
	r.Object(func(key string) {
		if key != "offsetTable" {
			return
		}
		r.Object(func(key string) {
			q, err := parseQueue(key)
			if err != nil {
				r.Fail(err)
				return
			}
			if offset := r.Int64(); offset >= 0 {
				offsets[q] = offset
			}
		})
	})
	return offsets, r.End()
}

// parseQueue reads a queue in its JSON form.
func parseQueue(text string) (Queue, error) {
	r := fastjson.NewReader(text)
	q := readQueue(r)
	return q, r.End()
}

func readQueue(r *fastjson.Reader) (q Queue) {
	r.Object(func(key string) {
		switch key {
		case "topic":
			q.Topic = r.Clone()
		case "brokerName":
			q.BrokerName = r.Clone()
		case "queueId":
			q.QueueID = r.Int32()
		}
	})
	return q
}

// localOffsets keeps the offsets of a broadcast consumer in a file.
type localOffsets struct{ dir string }

// newLocalOffsets names the folder of a client and group below dir; with "" that is ~/.rocketmq_offsets, where Java has it. Neither
// name may lead out of it.
func newLocalOffsets(dir, clientID, group string) (*localOffsets, error) {
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(home, ".rocketmq_offsets")
	}
	for _, name := range []string{clientID, group} {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\`+"\x00") {
			return nil, fmt.Errorf("%q cannot be a folder of broadcast offsets", name)
		}
	}
	return &localOffsets{filepath.Join(dir, clientID, group)}, nil
}

// load reads the file, or its backup when the file is not there, empty or damaged. Neither of them is the start of a new
// consumer.
func (l *localOffsets) load() (map[Queue]int64, error) {
	var errs []error
	for _, name := range []string{localOffsetsFile, localOffsetsBackup} {
		offsets, err := l.read(filepath.Join(l.dir, name))
		if err == nil {
			return offsets, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return map[Queue]int64{}, errors.Join(errs...)
}

func (l *localOffsets) read(name string) (map[Queue]int64, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxLocalOffsets {
		return nil, fmt.Errorf("%s: %d bytes, at most %d are expected", name, info.Size(), maxLocalOffsets)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(string(b)) == "" {
		return nil, fmt.Errorf("%s: the file is empty", name)
	}
	offsets, err := ParseOffsets(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return offsets, nil
}

// save writes the file aside, keeps the old one as backup and puts the new one in its place, so that a crash at any moment
// leaves one that is whole.
func (l *localOffsets) save(offsets map[Queue]int64) error {
	if err := os.MkdirAll(l.dir, 0o750); err != nil {
		return err
	}
	name := filepath.Join(l.dir, localOffsetsFile)
	old, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b := AppendOffsets(nil, offsets)
	if slices.Equal(old, b) {
		return nil
	}
	if len(old) > 0 {
		if _, err := ParseOffsets(old); err == nil { // a damaged file must not replace a backup that is sound
			if err := properties.ReplaceFile(filepath.Join(l.dir, localOffsetsBackup), old, localOffsetsPerm); err != nil {
				return err
			}
		}
	}
	return properties.ReplaceFile(name, b, localOffsetsPerm)
}
