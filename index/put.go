package index

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// Keys are the keys of one record of the commit log. The slices are only read during the call.
type Keys struct {
	Topic     []byte
	UniqueKey []byte // the value of UNIQ_KEY; empty: none
	Keys      []byte // the value of KEYS: words parted by single spaces; empty: none

	PhysicalOffset int64 // where the record starts
	StoreTimestamp int64 // ms
}

// Put indexes one record: its unique key where the dialect has that, then each word of its keys (formats.md 6). It wants
// every record of the log in order, also those without keys or of a kind that is not indexed ([Indexed]; without their keys then):
// like Java it makes the next file at the first record after the last file is full. The name of that file is the store time of
// this record, so that making an index again from the log gives the same names.
//
// A record before the end offset of the last file is passed over. The record at that very offset is taken up where its keys
// end, so a replay may start there, and a put that failed may be repeated. (Java indexes that record's keys once more.)
//
// Errors: a full disk is one that matches syscall.ENOSPC; the keys before it stay, and a later call may succeed. A fault in
// mapped memory ([mappedfile.ErrFault]) and a failed sync are final: later calls give the same error. [mappedfile.ErrClosed],
// [mappedfile.ErrReadOnly]. It does not allocate unless it makes a file.
func (x *Index) Put(k Keys) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.hashes = x.AppendHashes(x.hashes[:0], k)
	return x.put(Hashed{Hashes: x.hashes, PhysicalOffset: k.PhysicalOffset, StoreTimestamp: k.StoreTimestamp})
}

// Hashed is one record with the hashes of its keys, which [Index.AppendHashes] makes. The slice is only read during the call.
type Hashed struct {
	Hashes         []int32
	PhysicalOffset int64 // where the record starts
	StoreTimestamp int64 // ms
}

// PutRun is [Index.Put] for records in order whose keys were hashed before, perhaps by another goroutine. It is done under one
// lock: queries wait for as long as it takes.
func (x *Index) PutRun(records []Hashed) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(records) > 0 {
		n, err := x.putBehind(records)
		if records = records[n:]; err != nil || len(records) == 0 {
			return err
		}
		if err := x.put(records[0]); err != nil {
			return err
		}
		records = records[1:]
	}
	return nil
}

// ahead is for how many records before it is put the slots of a record are brought from memory; those of the first records are at once.
const ahead = 8

// putBehind puts the first records, as long as they lie behind the last one and there are blocks for them in the last file.
func (x *Index) putBehind(records []Hashed) (n int, err error) {
	if err := x.writable(); err != nil || len(x.files) == 0 {
		return 0, err
	}
	f, touched := x.files[len(x.files)-1], int32(0)
	if f.damaged != nil {
		return 0, nil
	}
	err = mappedfile.Guard(f.path, func() error {
		for i := range min(ahead, len(records)) {
			touched |= f.touch(records[i].Hashes)
		}
		for ; n < len(records) && !f.full(); n++ {
			h := &records[n]
			if h.PhysicalOffset <= f.head.EndOffset || len(h.Hashes) > f.fit() {
				return nil
			}
			if next := n + ahead; next < len(records) {
				touched |= f.touch(records[next].Hashes)
			}
			for _, hash := range h.Hashes {
				f.put(x.rules, hash, h)
			}
		}
		return nil
	})
	runtime.KeepAlive(touched) // else the compiler leaves them out
	if err != nil {
		return n, x.fail(err)
	}
	return n, nil
}

// AppendHashes appends the hashes of a record's keys to dst, in the order and the form in which the index stores them. Any
// goroutine may call it at any time.
func (x *Index) AppendHashes(dst []int32, k Keys) []int32 {
	if !x.rules.uniqueKey {
		k.UniqueKey = nil
	}
	if len(k.UniqueKey)+len(k.Keys) == 0 {
		return dst
	}
	topic := topicHash(k.Topic)
	for word := k.next(); len(word) > 0; word = k.next() {
		dst = append(dst, x.rules.stored(keyHash(topic, word)))
	}
	return dst
}

// put is Put with the lock held.
func (x *Index) put(h Hashed) error {
	if err := x.writable(); err != nil {
		return err
	}
	if f := x.believed(); f != nil && h.PhysicalOffset <= f.head.EndOffset {
		if h.PhysicalOffset < f.head.EndOffset {
			return nil
		}
		done, err := x.already(h.PhysicalOffset)
		if err != nil {
			return err
		}
		if h.Hashes = h.Hashes[min(done, len(h.Hashes)):]; done > 0 && len(h.Hashes) == 0 {
			return nil
		}
	}
	if _, err := x.room(h.StoreTimestamp); err != nil {
		return err
	}
	for len(h.Hashes) > 0 {
		if err := x.putSome(&h); err != nil {
			return err
		}
	}
	return nil
}

// next takes the next key off k; empty: there is none.
func (k *Keys) next() []byte {
	if word := k.UniqueKey; len(word) > 0 {
		k.UniqueKey = nil
		return word
	}
	for len(k.Keys) > 0 {
		word := k.Keys
		if i := bytes.IndexByte(word, ' '); i >= 0 {
			word, k.Keys = word[:i], word[i+1:]
		} else {
			k.Keys = nil
		}
		if len(word) > 0 {
			return word
		}
	}
	return nil
}

// believed is the newest file whose header can be believed, nil if there is none.
func (x *Index) believed() *file {
	for _, f := range slices.Backward(x.files) {
		if f.damaged == nil {
			return f
		}
	}
	return nil
}

// already counts the entries at the end of the index that are of the record at an offset.
func (x *Index) already(physicalOffset int64) (n int, err error) {
	for _, f := range slices.Backward(x.files) {
		if f.damaged != nil {
			continue
		}
		more := true
		err := mappedfile.Guard(f.path, func() error {
			for number := f.head.Keys(); more && number > 0; number-- {
				if more = f.entry(number).PhysicalOffset == physicalOffset; more {
					n++
				}
			}
			return nil
		})
		if err != nil || !more {
			return n, err
		}
	}
	return n, nil
}

// putSome writes the entries of the first hashes, as many as there are blocks for in one file, and takes them off h.
func (x *Index) putSome(h *Hashed) error {
	f, err := x.room(h.StoreTimestamp)
	if err != nil {
		return err
	}
	if err := f.reserve(); err != nil {
		return err
	}
	n := min(len(h.Hashes), f.fit())
	err = mappedfile.Guard(f.path, func() error {
		for _, hash := range h.Hashes[:n] {
			f.put(x.rules, hash, h)
		}
		return nil
	})
	if err != nil {
		return x.fail(err)
	}
	h.Hashes = h.Hashes[n:]
	return nil
}

// room gives the file that takes the next entry, making it when the last one is full or cannot be believed.
func (x *Index) room(storeTime int64) (*file, error) {
	if n := len(x.files); n > 0 && x.files[n-1].damaged == nil && !x.files[n-1].full() {
		return x.files[n-1], nil
	}
	f, err := x.create(storeTime)
	if err != nil {
		return nil, err
	}
	x.files = append(x.files, f)
	x.newest = f.name
	x.opts.Logger.Info("new index file", "file", f.path)
	return f, nil
}

// create makes the next file, whose first record was stored at storeTime. When it returns, file and name are durable.
func (x *Index) create(storeTime int64) (*file, error) {
	name, err := nextName(storeTime, x.newest)
	if err != nil {
		return nil, err
	}
	if len(x.files) == 0 {
		if err := x.makeDir(); err != nil {
			return nil, err
		}
	}
	f := &file{name: name, path: path.Join(x.dir, name), shape: x.shape}
	if f.h, err = x.fsys.OpenFile(f.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, x.opts.FileMode); err != nil {
		return nil, err
	}
	if err := x.prepare(f); err != nil {
		return nil, errors.Join(err, f.close(), x.fsys.Remove(f.path))
	}
	return f, nil
}

// makeDir makes the directory and its name durable.
func (x *Index) makeDir() error {
	if err := x.fsys.MkdirAll(x.dir, x.opts.DirMode); err != nil {
		return err
	}
	for dir := path.Clean(x.dir); dir != "." && dir != "/"; {
		dir = path.Dir(dir)
		if err := x.fsys.SyncDir(dir); err != nil {
			return x.fail(fmt.Errorf("sync directory %s: %w", dir, err))
		}
	}
	return nil
}

// prepare gives a new file its length, blocks and header, and makes it durable. Its header begins with the end values of the
// file before it, as in Java: from these the first entry's time difference is counted.
func (x *Index) prepare(f *file) error {
	f.head.IndexCount = 1
	if last := x.believed(); last != nil {
		f.inherit(last.head)
	}
	if err := f.h.Truncate(f.shape.Size()); err != nil {
		return fmt.Errorf("make %s: %w", f.path, err)
	}
	if err := f.reserve(); err != nil {
		return err
	}
	if err := f.mapAll(); err != nil {
		return err
	}
	err := mappedfile.Guard(f.path, func() error {
		h := f.head
		h.IndexCount = 0 // as in Java until the first entry
		h.put(f.b)
		return f.m.SyncRange(0, HeaderSize)
	})
	if err == nil {
		err = f.h.Sync()
	}
	if err == nil {
		err = x.fsys.SyncDir(x.dir)
	}
	if err != nil {
		return x.fail(fmt.Errorf("sync %s: %w", f.path, err))
	}
	return nil
}

// inherit takes over the end values of the file before.
func (f *file) inherit(last Header) {
	if last.EndOffset > 0 {
		f.head.BeginOffset, f.head.EndOffset = last.EndOffset, last.EndOffset
	}
	if last.EndTimestamp > 0 {
		f.head.BeginTimestamp, f.head.EndTimestamp = last.EndTimestamp, last.EndTimestamp
	}
}
