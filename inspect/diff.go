package inspect

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
)

// The kinds of what [Diff] finds.
const (
	// OnlyHere: something that the second store does not have. File and Offset are those in the first.
	OnlyHere Kind = "only in the first"
	// OnlyThere: something that the first store does not have. File and Offset are those in the second.
	OnlyThere Kind = "only in the second"
	// Differs: something that both have, with other content. File and Offset are those in the first.
	Differs Kind = "different"
)

// DiffOptions steer [Diff].
type DiffOptions struct {
	// Max bounds how many differences of one sort are given one by one; of the rest only the number is, as a finding of kind
	// [More]. Default 1000; negative: 1048576.
	Max int
}

// Fingerprint is the content of one queue: two queues with equal ones hold the same.
type Fingerprint struct {
	Queue string `json:"queue"` // "topic/id"; for other structures their name
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes"`
	First int64  `json:"first"` // the lowest number, of a queue the queue offset
	End   int64  `json:"end"`   // behind the highest
	// Sum is the sum of the xxhash of each item's content, so that the order in the log does not matter.
	Sum uint64 `json:"sum"`
}

// DiffResult says what two stores have in common.
type DiffResult struct {
	At    int64 `json:"at"` // moment of looking, ms
	Equal int   `json:"equal"`
	// Different are the fingerprints that differ, in the first store and in the second.
	Different [][2]Fingerprint `json:"different"`
	// Compared names the structures that both have.
	Compared []string `json:"compared"`
	// Findings counts the differences, without those of severity Info.
	Findings int64 `json:"findings"`
	// Files are the files under config, and the checkpoint, that are not the same.
	Files []FileDiff `json:"files"`
}

// diffBuckets is how many buckets the items of all queues are spread over, so that the second pass keeps only those that may
// differ.
const diffBuckets = 1 << 16

// maxDiffItems bounds how many items that may differ are kept of each store.
const maxDiffItems = 1 << 20

// item is one message, unit or record as it is compared.
type item struct {
	queue  string
	number int64 // queue offset, index of the unit, number of the record
	hash   uint64
	bytes  int64
	file   string
	offset int64
}

// structure is one thing that two stores are compared by.
type structure struct {
	name  string
	items func(context.Context, *Dir, func(item) error) error
	has   func(*Dir) bool
}

// Diff compares two stores by content, each structure that both have: the messages of the logs by queue and queue offset,
// whatever their place in the log, store time and host; the units of the queues, the entries of the index, state table and
// redo log; and the places in the log that those point to, unless both have a log and the same messages lie at other places in
// it. Of the files under config and the checkpoint, if both have them, the values are compared; what moves all the time (progress of
// consumers, checkpoint) is of severity Info. First the fingerprints of the queues are compared, then those that differ item by item. Damage in either is reported
// with the differences.
//
// Memory: some hundred bytes for each queue, and for each of at most 1048576 items that may differ.
func Diff(ctx context.Context, a, b *Dir, o DiffOptions, report func(Finding)) (*DiffResult, error) {
	switch {
	case o.Max == 0:
		o.Max = 1000
	case o.Max < 0:
		o.Max = maxDiffItems
	}
	d := &differ{a: a, b: b, o: o, report: report, told: make(map[toldIn]bool), out: &DiffResult{At: time.Now().UnixMilli(), Different: [][2]Fingerprint{}, Compared: []string{}, Files: []FileDiff{}}}
	places := true
	if a.exists(commitLogDir) && b.exists(commitLogDir) {
		if err := d.compare(ctx, messages(d.damage)); err != nil {
			return nil, err
		}
		var err error
		if places, err = d.samePlaces(); err != nil {
			return nil, err
		}
	}
	// A store with a log has all that is made from it, or lost it: then what the other has is a difference.
	inLog := a.HasStateTable() || b.HasStateTable()
	for _, s := range []structure{queueUnits(places), indexEntries(places), stateRecords(places, inLog), redoUnits(places, inLog)} {
		if s.has(a) && s.has(b) {
			if err := d.compare(ctx, s); err != nil {
				return nil, err
			}
		}
	}
	return d.out, d.files(ctx)
}

// differ is one run of Diff.
type differ struct {
	a, b   *Dir
	o      DiffOptions
	report func(Finding)
	out    *DiffResult
	last   [2]item // of the log of either
	told   map[toldIn]bool
}

// toldIn is a finding about one of the stores.
type toldIn struct {
	dir     *Dir
	finding Finding
}

// damage gives what reading one of the logs comes upon, once, though it is read several times, and says in which it is.
func (d *differ) damage(dir *Dir) func(Finding) {
	return func(f Finding) {
		key := toldIn{dir, f}
		if d.told[key] || len(d.told) >= maxFindings {
			return
		}
		d.told[key] = true
		in := "in the second: "
		if dir == d.a {
			in = "in the first: "
		}
		f.Text = in + f.Text
		d.report(f)
	}
}

// prints are the fingerprints of one structure of one store.
type prints struct {
	queues  map[string]*Fingerprint
	buckets [diffBuckets]uint64
	last    item
}

func bucketOf(i *item) uint64 {
	return (xxhash.Sum64String(i.queue) + uint64(i.number)>>6*0x9E3779B97F4A7C15) >> 48 % diffBuckets
}

// fingerprints reads a structure.
func fingerprints(ctx context.Context, d *Dir, s structure) (*prints, error) {
	p := &prints{queues: make(map[string]*Fingerprint)}
	return p, s.items(ctx, d, func(i item) error {
		f := p.queues[i.queue]
		if f == nil {
			f = &Fingerprint{Queue: i.queue, First: i.number}
			p.queues[i.queue] = f
		}
		f.Count++
		f.Bytes += i.bytes
		f.First, f.End = min(f.First, i.number), max(f.End, i.number+1)
		f.Sum += i.hash
		p.buckets[bucketOf(&i)] += i.hash
		p.last = i
		return nil
	})
}

// compare compares one structure.
func (d *differ) compare(ctx context.Context, s structure) error {
	d.out.Compared = append(d.out.Compared, s.name)
	here, err := fingerprints(ctx, d.a, s)
	if err != nil {
		return err
	}
	there, err := fingerprints(ctx, d.b, s)
	if err != nil {
		return err
	}
	if s.name == logMessages {
		d.last = [2]item{here.last, there.last}
	}
	names := make(map[string]bool)
	for name := range here.queues {
		names[name] = true
	}
	for name := range there.queues {
		names[name] = true
	}
	differ := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		pair := [2]Fingerprint{{Queue: name}, {Queue: name}}
		if f := here.queues[name]; f != nil {
			pair[0] = *f
		}
		if f := there.queues[name]; f != nil {
			pair[1] = *f
		}
		if pair[0] == pair[1] {
			d.out.Equal++
			continue
		}
		differ[name] = true
		d.out.Different = append(d.out.Different, pair)
	}
	if len(differ) == 0 {
		return nil
	}
	suspect := func(i *item) bool {
		return differ[i.queue] && here.buckets[bucketOf(i)] != there.buckets[bucketOf(i)]
	}
	return d.items(ctx, s, suspect)
}

// items compares what may differ item by item.
func (d *differ) items(ctx context.Context, s structure, suspect func(*item) bool) error {
	left, more, err := suspects(ctx, d.a, s, suspect)
	if err != nil {
		return err
	}
	right, moreRight, err := suspects(ctx, d.b, s, suspect)
	if err != nil {
		return err
	}
	found := make(map[Kind]int)
	give := func(k Kind, i *item, text string) {
		d.out.Findings++
		if found[k]++; found[k] <= d.o.Max {
			d.report(Finding{Kind: k, Severity: Warning, File: i.file, Offset: i.offset, Text: fmt.Sprintf("%s: %s", itemName(s.name, i), text)})
		}
	}
	for len(left) > 0 || len(right) > 0 {
		order := 0
		switch {
		case len(left) == 0:
			order = 1
		case len(right) == 0:
			order = -1
		default:
			order = byPlace(left[0], right[0])
		}
		switch {
		case order < 0:
			give(OnlyHere, &left[0], "the second does not have it")
			left = left[1:]
		case order > 0:
			give(OnlyThere, &right[0], "the first does not have it")
			right = right[1:]
		default:
			if left[0].hash != right[0].hash {
				give(Differs, &left[0], fmt.Sprintf("other content in the second, at %s, offset %d", right[0].file, right[0].offset))
			}
			left, right = left[1:], right[1:]
		}
	}
	for _, k := range []Kind{OnlyHere, OnlyThere, Differs} {
		if n := found[k] - d.o.Max; n > 0 {
			d.report(Finding{Kind: More, Severity: Info, File: s.name, Text: fmt.Sprintf("%d more of kind %s", n, k)})
		}
	}
	if n := more + moreRight; n > 0 {
		d.out.Findings += n
		d.report(Finding{Kind: More, Severity: Warning, File: s.name, Text: fmt.Sprintf("%d more items that may differ were not compared one by one", n)})
	}
	return nil
}

func itemName(structure string, i *item) string {
	return fmt.Sprintf("%s %s, %d", structure, i.queue, i.number)
}

func byPlace(a, b item) int {
	return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.number, b.number))
}

// suspects collects the items that may differ, in order; more is how many there was no room for.
func suspects(ctx context.Context, d *Dir, s structure, suspect func(*item) bool) (found []item, more int64, err error) {
	err = s.items(ctx, d, func(i item) error {
		switch {
		case !suspect(&i):
		case len(found) == maxDiffItems:
			more++
		default:
			found = append(found, i)
		}
		return nil
	})
	slices.SortFunc(found, func(a, b item) int { return cmp.Or(byPlace(a, b), cmp.Compare(a.hash, b.hash)) })
	return found, more, err
}

// samePlaces says whether the messages lie at the same places in both logs, as in a replica: the last one of either does.
func (d *differ) samePlaces() (bool, error) {
	for _, try := range []struct {
		last item
		in   *Dir
	}{{d.last[0], d.b}, {d.last[1], d.a}} {
		if try.last.file == "" {
			return true, nil // there is nothing
		}
		start, _ := mappedfile.ParseSegmentName(path.Base(try.last.file))
		r, ok, err := try.in.RecordAt(start+try.last.offset, func(Finding) {})
		if err != nil {
			return false, err
		}
		if ok && queueOf(&r) == try.last.queue && r.QueueOffset == try.last.number {
			return true, nil
		}
	}
	return false, nil
}

// queueOf names the queue of a record as it is compared.
func queueOf(r *LogRecord) string {
	queue := string(r.Topic) + "/" + strconv.Itoa(int(r.QueueID))
	if !r.SysFlag.Queued() {
		queue += " (transactions)" // their numbers are those of the state table
	}
	return queue
}

// logMessages is the structure that is compared first.
const logMessages = "messages"

// messages are the records of the log.
func messages(report func(*Dir) func(Finding)) structure {
	var h xxhash.Digest
	var head []byte
	return structure{logMessages, func(ctx context.Context, d *Dir, f func(item) error) error {
		for r, err := range d.Log(ctx, LogRange{}, report(d)) {
			if err != nil {
				return err
			}
			if r.Damaged != "" {
				continue
			}
			head = head[:0]
			for _, n := range []int64{int64(r.Flag), int64(r.SysFlag), r.BornTimestamp, int64(r.ReconsumeTimes), int64(r.BodyCRC), int64(len(r.Body))} {
				head = binary.BigEndian.AppendUint64(head, uint64(n))
			}
			p := withoutCRC(r.Properties)
			h.Reset()
			_, _ = h.Write(head)
			_, _ = h.Write(r.Body)
			_, _ = h.Write(p)
			file, offset := r.place()
			if err := f(item{queueOf(&r), r.QueueOffset, h.Sum64(), int64(r.Size), file, offset}); err != nil {
				return err
			}
		}
		return nil
	}, func(d *Dir) bool { return d.exists(commitLogDir) }}
}

// withoutCRC is a property text without the CRC over the whole record at its end, which depends on the record's place.
func withoutCRC(p []byte) []byte {
	if n := len(p) - commitlog.PropertyCRCSize; n >= 0 && bytes.HasPrefix(p[n:], []byte(message.PropertyCRC32+"\x01")) {
		return p[:n]
	}
	return p
}

// hashOf is the hash of some numbers.
func hashOf(numbers ...int64) uint64 {
	var b [64]byte
	buf := b[:0]
	for _, n := range numbers {
		buf = binary.BigEndian.AppendUint64(buf, uint64(n))
	}
	return xxhash.Sum64(buf)
}

// placed is a place in the log if places are compared.
func placed(places bool, off int64) int64 {
	if places {
		return off
	}
	return 0
}

func queueUnits(places bool) structure {
	return structure{"queue units", func(ctx context.Context, d *Dir, f func(item) error) error {
		for u, err := range d.Queues(ctx, QueueFilter{}, func(Finding) {}) {
			if err != nil {
				return err
			}
			if u.IsFiller() {
				continue
			}
			hash := hashOf(placed(places, u.PhysicalOffset), int64(u.Size), u.TagsCode)
			if u.Batch != nil {
				hash += hashOf(u.Batch.BaseOffset, int64(u.Batch.BatchSize), u.Batch.StoreTime)
			}
			if err := f(item{u.Topic + "/" + strconv.Itoa(int(u.QueueID)), u.Index, hash, int64(u.Size), u.File, u.Offset}); err != nil {
				return err
			}
		}
		return nil
	}, func(d *Dir) bool { return d.exists(queueDir) || d.exists(batchQueueDir) }}
}

// indexEntries are numbered over all files, since a file begins where its maker began it.
func indexEntries(places bool) structure {
	return structure{"index entries", func(ctx context.Context, d *Dir, f func(item) error) error {
		n := int64(0)
		for x, err := range d.IndexFiles(ctx, func(Finding) {}) {
			if err != nil {
				return err
			}
			for e, err := range x.Entries() {
				if err != nil {
					return err
				}
				i := item{"index", n, hashOf(int64(e.KeyHash), placed(places, e.PhysicalOffset)), 20, x.File, x.entryPos(e.Number)}
				if err := f(i); err != nil {
					return err
				}
				n++
			}
		}
		return ctx.Err()
	}, func(d *Dir) bool { return d.exists(indexDir) }}
}

// hasTransactions says of a store whether its transactions of 3.1 are compared: inLog, also when it has nothing but the log.
func hasTransactions(inLog bool) func(*Dir) bool {
	return func(d *Dir) bool { return d.exists(transactionDir) || inLog && d.exists(commitLogDir) }
}

func stateRecords(places, inLog bool) structure {
	return structure{"state records", func(ctx context.Context, d *Dir, f func(item) error) error {
		for r, err := range d.StateTable(ctx, func(Finding) {}) {
			if err != nil {
				return err
			}
			hash := hashOf(placed(places, r.CommitOffset), int64(r.Size), int64(r.GroupHash), int64(r.State))
			if err := f(item{"state table", r.Number, hash, 24, r.File, r.Offset}); err != nil {
				return err
			}
		}
		return nil
	}, hasTransactions(inLog)}
}

func redoUnits(places, inLog bool) structure {
	return structure{"redo units", func(ctx context.Context, d *Dir, f func(item) error) error {
		for u, err := range d.RedoLog(ctx, func(Finding) {}) {
			if err != nil {
				return err
			}
			tags := u.TagsCode
			if at, ends := u.Resolves(); ends {
				tags = placed(places, at)
			}
			if err := f(item{"redo log", u.Index, hashOf(placed(places, u.PhysicalOffset), int64(u.Size), tags), 20, u.File, u.Offset}); err != nil {
				return err
			}
		}
		return nil
	}, hasTransactions(inLog)}
}
