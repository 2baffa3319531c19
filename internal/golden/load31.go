package golden

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strconv"
)

type entry31 struct {
	Index, Offset int64
	Size          int32
	TagsCode      int64
}

func units31(entries []entry31) []Unit {
	var units []Unit
	for _, e := range entries {
		units = append(units, Unit{Index: e.Index, PhysicalOffset: e.Offset, Size: e.Size, TagsCode: e.TagsCode})
	}
	return units
}

type state31 struct {
	Index, ClOffset                   int64
	Size, Timestamp, GroupHash, State int32
}

func states31(rows []state31) []StateRecord {
	var records []StateRecord
	for _, r := range rows {
		records = append(records, StateRecord{
			Number: r.Index, PhysicalOffset: r.ClOffset, Size: r.Size, StoredAt: r.Timestamp, GroupHash: r.GroupHash, State: r.State,
		})
	}
	return records
}

func (e *Expected) log31() error {
	var log struct {
		Items []struct {
			commonRecord
			Kind, File         string
			PhysicOffset       int64
			Size               int32
			BodyCRCMismatch    *int64 `json:"bodyCrcMismatch"`
			DecodedBytes       int32
			UncompressedLength int32
			UncompressedMd5    string
		}
	}
	if err := e.part("commitLog", &log); err != nil {
		return err
	}
	for i := range log.Items {
		it := &log.Items[i]
		if n := len(e.segments); n == 0 || e.segments[n-1].File != it.File {
			e.segments = append(e.segments, Segment{File: it.File})
		}
		segment := &e.segments[len(e.segments)-1]
		switch it.Kind {
		case "message":
			r, err := it.record(it.File, it.PhysicOffset)
			if err != nil {
				return err
			}
			r.Magic = 0xDAA320A7
			r.CRCWrong, r.DecodedBytes = it.BodyCRCMismatch != nil, it.DecodedBytes
			r.PlainLength, r.PlainMD5 = it.UncompressedLength, it.UncompressedMd5
			e.records = append(e.records, r)
			segment.End, segment.Why = r.PhysicalOffset+int64(r.StoreSize), "end of file"
		case "blank":
			e.blanks = append(e.blanks, Blank{PhysicalOffset: it.PhysicOffset, Size: it.Size})
			segment.End, segment.Why = it.PhysicOffset, "blank record"
		default:
			segment.End, segment.Why = it.PhysicOffset, "zero size"
		}
	}
	return nil
}

func (e *Expected) queues31() error {
	var queues struct {
		Queues []struct {
			Topic   string
			QueueID int32 `json:"queueId"`
			Entries []entry31
		}
	}
	if err := e.part("consumeQueues", &queues); err != nil {
		return err
	}
	for _, q := range queues.Queues {
		e.queues = append(e.queues, Queue{Topic: q.Topic, QueueID: q.QueueID, Units: units31(q.Entries)})
	}
	return nil
}

func (e *Expected) loadStateTable() error {
	var table struct{ Records []state31 }
	err := e.part("stateTable", &table)
	e.stateTable = states31(table.Records)
	return err
}

func (e *Expected) loadRedoLog() error {
	var log struct{ Entries []entry31 }
	err := e.part("redoLog", &log)
	e.redoLog = units31(log.Entries)
	return err
}

func (e *Expected) index31() error {
	var index struct {
		Files []struct {
			File                         string
			BeginTimestamp, EndTimestamp int64
			BeginPhyOffset, EndPhyOffset int64
			HashSlotCount, IndexCount    int32
			Slots                        map[string]int32
			Entries                      [][]int64 `json:"entriesFrom1_keyHash_phyOffset_timeDiff_prev"`
		}
	}
	if err := e.part("index", &index); err != nil {
		return err
	}
	for _, f := range index.Files {
		file := IndexFile{
			Name: path.Base(f.File), BeginTimestamp: f.BeginTimestamp, EndTimestamp: f.EndTimestamp,
			BeginOffset: f.BeginPhyOffset, EndOffset: f.EndPhyOffset, SlotCount: f.HashSlotCount, IndexCount: f.IndexCount,
		}
		for slot, n := range f.Slots {
			number, err := strconv.ParseInt(slot, 10, 32)
			if err != nil {
				return err
			}
			file.Slots = append(file.Slots, Slot{int32(number), n})
		}
		slices.SortFunc(file.Slots, func(a, b Slot) int { return cmp.Compare(a.Slot, b.Slot) })
		for i, row := range f.Entries {
			file.Entries = append(file.Entries, IndexEntry{
				Number: int32(i + 1), KeyHash: int32(row[0]), PhysicalOffset: row[1], TimeDiff: int32(row[2]), Previous: int32(row[3]),
			})
		}
		e.indexFiles = append(e.indexFiles, file)
	}
	return nil
}

func (e *Expected) loadDerived() error {
	if !e.old() {
		return nil
	}
	var d struct {
		LogEnd    int64
		Open      [][2]int64 `json:"openTransactionsByLog_clOffset_queueOffset"`
		OpenRedo  []int64    `json:"openTransactionsByRedoLog_clOffset"`
		QueuesLog []struct {
			Queue string
			Units [][]int64 `json:"index_offset_size"`
		} `json:"consumeQueuesByLog"`
	}
	if err := json.Unmarshal(e.raw["derived"], &d); err != nil {
		return err
	}
	e.derived = &Derived{LogEnd: d.LogEnd, OpenByRedoLog: d.OpenRedo}
	for _, o := range d.Open {
		e.derived.OpenTransactions = append(e.derived.OpenTransactions, OpenTransaction{o[0], o[1]})
	}
	for _, q := range d.QueuesLog {
		topic, id, err := splitQueue(q.Queue)
		if err != nil {
			return err
		}
		e.derived.Queues = append(e.derived.Queues, Queue{Topic: topic, QueueID: id, Units: unitsOf(q.Units)})
	}
	return nil
}

func (e *Expected) afterLoad31() error {
	var a struct {
		LoadResult                 bool
		MinPhyOffset, MaxPhyOffset int64
		ConsumeQueues              struct {
			Queues []struct {
				Topic                string
				QueueID              int32 `json:"queueId"`
				MinOffset, MaxOffset int64
			}
		}
		TranStateTableOffset int64
		StateTable           struct{ Records []state31 }
		QueryByKey           struct {
			Results []struct {
				Topic, Key    string
				PhysicOffsets []int64
			}
		}
	}
	if err := json.Unmarshal(e.raw["afterRealOpen"], &a); err != nil {
		return err
	}
	e.afterLoad = AfterLoad{
		Loaded: a.LoadResult, MinOffset: a.MinPhyOffset, MaxOffset: a.MaxPhyOffset,
		NextStateNumber: a.TranStateTableOffset, StateTable: states31(a.StateTable.Records),
	}
	for _, q := range a.ConsumeQueues.Queues {
		e.afterLoad.Queues = append(e.afterLoad.Queues, QueueRange{Topic: q.Topic, QueueID: q.QueueID, Min: q.MinOffset, Max: q.MaxOffset})
	}
	for _, q := range a.QueryByKey.Results {
		e.afterLoad.KeyQueries = append(e.afterLoad.KeyQueries, KeyQuery{q.Topic, q.Key, q.PhysicOffsets})
	}
	return nil
}
