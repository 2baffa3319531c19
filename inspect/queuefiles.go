package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// QueueFiles is one queue's files.
type QueueFiles struct {
	Topic    string
	QueueID  int32
	Dir      string // path inside the store directory
	Segments []Segment
}

// name is how texts call the queue.
func (q QueueFiles) name() string { return q.Topic + "/" + strconv.FormatInt(int64(q.QueueID), 10) }

// QueueFilter chooses queues. The zero value takes all.
type QueueFilter struct {
	Topic string // "": any
	Queue *int32 // nil: any
}

func (f QueueFilter) match(topic string, id int32) bool {
	return (f.Topic == "" || f.Topic == topic) && (f.Queue == nil || *f.Queue == id)
}

// queueTree lists the queues under one of the three trees, by topic and queue id, and gives the size that all their
// files were made with. Foreign names and what is wrong with the files of the chosen queues are reported. With an error it gives
// the queues of the folders that could be listed.
func (d *Dir) queueTree(root string, q QueueFilter, report func(Finding)) ([]QueueFiles, int64, error) {
	topics, err := d.list(root)
	if err != nil {
		return nil, 0, err
	}
	if isRocksDB(topics) {
		report(Finding{Kind: NotRead, Severity: Warning, File: root, Text: "a RocksDB database, not files of queue units"})
		return nil, 0, nil
	}
	var queues []QueueFiles
	var all []Segment
	var failed []error
	for _, topic := range topics {
		dir := path.Join(root, topic.name)
		if !topic.info.IsDir() {
			report(foreign(dir, "the folder of a topic is expected here"))
			continue
		}
		silent := func(f Finding) {
			if q.Topic == "" || q.Topic == topic.name {
				report(f)
			}
		}
		found, err := d.topicQueues(dir, topic.name, silent)
		if err != nil {
			failed = append(failed, apart(err)...)
		}
		for _, files := range found {
			all = append(all, files.Segments...)
			if q.match(files.Topic, files.QueueID) {
				queues = append(queues, files)
			}
		}
	}
	size := inferSize(all)
	for _, files := range queues {
		checkRun(files.Segments, size, d.zeroFile, report)
	}
	return queues, size, errors.Join(failed...)
}

// apart gives the errors that were joined into one. Others have several causes too, but a text of their own.
func apart(err error) []error {
	j, ok := err.(interface{ Unwrap() []error })
	if !ok || err.Error() != errors.Join(j.Unwrap()...).Error() {
		return []error{err}
	}
	return j.Unwrap()
}

// topicQueues lists the queues of one topic by id. With an error it gives those whose folders could be listed.
func (d *Dir) topicQueues(dir, topic string, report func(Finding)) ([]QueueFiles, error) {
	ids, err := d.list(dir)
	if err != nil {
		return nil, err
	}
	var queues []QueueFiles
	var failed []error
	for _, e := range ids {
		name := path.Join(dir, e.name)
		id, ok := queueID(e.name)
		_, segment := mappedfile.ParseSegmentName(e.name)
		switch {
		case segment && e.info.Mode().IsRegular():
			report(foreign(name, fmt.Sprintf("a queue file in the place of a queue's folder; RocketMQ 3.1 makes such a one as queue %s of the empty topic, from a torn record", topic)))
			continue
		case !ok || !e.info.IsDir():
			report(foreign(name, "a folder named by a queue id is expected here"))
			continue
		}
		segs, err := d.segmentsIn(name, report)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		queues = append(queues, QueueFiles{topic, id, name, segs})
	}
	slices.SortFunc(queues, func(a, b QueueFiles) int { return cmp.Compare(a.QueueID, b.QueueID) })
	return queues, errors.Join(failed...)
}

// queueID reads the name of a queue's folder: a decimal number as Java prints it.
func queueID(name string) (int32, bool) {
	id, err := strconv.ParseInt(name, 10, 32)
	return int32(id), err == nil && id >= 0 && strconv.FormatInt(id, 10) == name
}

// isRocksDB says whether a folder is a RocksDB database (formats.md 5.7).
func isRocksDB(entries []entry) bool {
	for _, e := range entries {
		if e.info.IsDir() {
			continue
		}
		if e.name == "CURRENT" || strings.HasPrefix(e.name, "MANIFEST-") || strings.HasSuffix(e.name, ".sst") {
			return true
		}
	}
	return false
}

// zeroFile says whether a file is all zeros.
func (d *Dir) zeroFile(seg Segment) bool {
	f, err := d.open(seg.File)
	if err != nil {
		return false
	}
	defer f.close()
	at, err := nextByte(f, 0, seg.Length)
	return err == nil && at >= seg.Length
}

// QueueFiles lists the files of the consume queues, by topic and queue id.
func (d *Dir) QueueFiles(q QueueFilter) ([]QueueFiles, error) {
	queues, _, err := d.queueTree(queueDir, q, func(Finding) {})
	return queues, err
}

// Files lists regular files of the store by their paths, at most so many.
func (d *Dir) Files(ctx context.Context, most int) ([]string, error) {
	var names []string
	err := fs.WalkDir(d.fsys, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case len(names) == most:
			return fs.SkipAll
		case err == nil && e.Type().IsRegular():
			names = append(names, name)
		}
		return nil // what cannot be listed is left out
	})
	return names, err
}
