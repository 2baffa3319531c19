package golden

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
)

type rowQueue[T any] struct {
	Topic   string
	QueueID int32 `json:"queueId"`
	Entries []T
}

func (e *Expected) log4() error {
	var log struct {
		Files []struct {
			File, Why string
			ScanEnd   int64
		}
		Blanks  []Blank
		Records []struct {
			commonRecord
			PhysicalOffset  int64
			Magic           string
			RecordMd5       string
			BodyCRCWrong    bool `json:"bodyCrcWrong"`
			PlainBodyLength int32
			PlainBodyMd5    string
		}
	}
	if err := e.part("commitLog", &log); err != nil {
		return err
	}
	e.blanks = log.Blanks
	for _, f := range log.Files {
		e.segments = append(e.segments, Segment{File: "commitlog/" + f.File, End: f.ScanEnd, Why: f.Why})
	}
	for i := range log.Records {
		it := &log.Records[i]
		file := fmt.Sprintf("commitlog/%020d", it.PhysicalOffset-it.PhysicalOffset%e.config.CommitLogFileSize)
		r, err := it.record(file, it.PhysicalOffset)
		if err != nil {
			return err
		}
		magic, err := strconv.ParseUint(it.Magic, 16, 32)
		if err != nil {
			return err
		}
		r.Magic, r.RecordMD5, r.CRCWrong = uint32(magic), it.RecordMd5, it.BodyCRCWrong
		r.PlainLength, r.PlainMD5 = it.PlainBodyLength, it.PlainBodyMd5
		e.records = append(e.records, r)
	}
	return nil
}

func (e *Expected) queues4() error {
	var queues []rowQueue[[]int64]
	if err := e.part("consumeQueues", &queues); err != nil {
		return err
	}
	for _, q := range queues {
		e.queues = append(e.queues, Queue{Topic: q.Topic, QueueID: q.QueueID, Units: unitsOf(q.Entries)})
	}
	return nil
}

func (e *Expected) loadBatchQueues() error {
	var batches []rowQueue[[]int64]
	if err := e.part("batchConsumeQueues", &batches); err != nil {
		return err
	}
	for _, q := range batches {
		batch := BatchQueue{Topic: q.Topic, QueueID: q.QueueID}
		for _, r := range q.Entries {
			batch.Units = append(batch.Units, BatchUnit{
				Index: r[0], PhysicalOffset: r[1], Size: int32(r[2]), TagsCode: r[3], StoreTime: r[4],
				BaseOffset: r[5], BatchSize: int16(r[6]), CompactedOffset: int32(r[7]), Reserved: int32(r[8]),
			})
		}
		e.batchQueues = append(e.batchQueues, batch)
	}
	return nil
}

// loadExt reads rows of [offset, size, tagsCode, storeTime, bitmap size, bitmap in hex] or [offset, "end"].
func (e *Expected) loadExt() error {
	var queues []rowQueue[[]json.RawMessage]
	if err := e.part("consumeQueueExt", &queues); err != nil {
		return err
	}
	for _, q := range queues {
		ext := ExtQueue{Topic: q.Topic, QueueID: q.QueueID}
		for _, row := range q.Entries {
			u := ExtUnit{End: len(row) == 2}
			into := []any{&u.Offset, &u.Size, &u.TagsCode, &u.StoreTime, new(int16), new(string)}
			if u.End {
				into = []any{&u.Offset, new(string)}
			}
			for i, v := range into {
				if err := json.Unmarshal(row[i], v); err != nil {
					return fmt.Errorf("consumeQueueExt: %w", err)
				}
			}
			if !u.End {
				var err error
				if u.Bitmap, err = hex.DecodeString(*into[5].(*string)); err != nil {
					return err
				}
			}
			ext.Units = append(ext.Units, u)
		}
		e.extQueues = append(e.extQueues, ext)
	}
	return nil
}

func (e *Expected) index4() error {
	var files []struct {
		File                         string
		BeginTimestamp, EndTimestamp int64
		BeginPhyOffset, EndPhyOffset int64
		HashSlotCount, IndexCount    int32
		Slots                        [][2]int32
		Entries                      [][5]int64
	}
	if err := e.part("indexFiles", &files); err != nil {
		return err
	}
	for _, f := range files {
		file := IndexFile{
			Name: f.File, BeginTimestamp: f.BeginTimestamp, EndTimestamp: f.EndTimestamp,
			BeginOffset: f.BeginPhyOffset, EndOffset: f.EndPhyOffset, SlotCount: f.HashSlotCount, IndexCount: f.IndexCount,
		}
		for _, s := range f.Slots {
			file.Slots = append(file.Slots, Slot{s[0], s[1]})
		}
		for _, r := range f.Entries {
			file.Entries = append(file.Entries, IndexEntry{int32(r[0]), int32(r[1]), r[2], int32(r[3]), int32(r[4])})
		}
		e.indexFiles = append(e.indexFiles, file)
	}
	return nil
}

func (e *Expected) afterLoad4() error {
	var o struct {
		LoadReturned bool
		AfterLoad    struct {
			MinPhyOffset, MaxPhyOffset int64
			Queues                     []struct {
				Topic                string
				QueueID              int32 `json:"queueId"`
				CQType               string
				MinOffset, MaxOffset int64
			}
		}
		AfterStart struct{ QueryMessage []KeyQuery }
	}
	if err := json.Unmarshal(e.raw["opened"], &o); err != nil {
		return err
	}
	e.afterLoad = AfterLoad{
		Loaded: o.LoadReturned, MinOffset: o.AfterLoad.MinPhyOffset, MaxOffset: o.AfterLoad.MaxPhyOffset,
		KeyQueries: o.AfterStart.QueryMessage,
	}
	for _, q := range o.AfterLoad.Queues {
		e.afterLoad.Queues = append(e.afterLoad.Queues, QueueRange{q.Topic, q.QueueID, q.MinOffset, q.MaxOffset, q.CQType == "BatchCQ"})
	}
	return nil
}
