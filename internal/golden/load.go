package golden

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Load reads the expected.json of a store.
func Load(tb testing.TB, name string) *Expected {
	tb.Helper()
	raw, err := readExpected(name)
	if err != nil {
		tb.Fatalf("golden: %v", err)
	}
	folder, _, _ := strings.Cut(name, "/")
	e := &Expected{tb: tb, name: name, version: strings.TrimPrefix(folder, "rocketmq-"), raw: raw, loaded: make(map[string]bool)}
	if err := e.loadConfig(); err != nil {
		tb.Fatalf("golden: %s: config: %v", name, err)
	}
	part := "raw"
	if e.old() {
		part = "onDisk"
	}
	if e.parts, err = split(raw[part]); err != nil {
		tb.Fatalf("golden: %s: %s: %v", name, part, err)
	}
	return e
}

// old says whether the account has the form of the 3.1.4 stores.
func (e *Expected) old() bool { return e.version == "3.1.4" }

// need decodes a part that was not asked for before.
func (e *Expected) need(part string, load func() error) {
	e.tb.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.loaded[part] {
		return
	}
	e.loaded[part] = true
	if err := load(); err != nil {
		e.tb.Fatalf("golden: %s: %s: %v", e.name, part, err)
	}
}

func readExpected(name string) (map[string]json.RawMessage, error) {
	b, err := os.ReadFile(filepath.Join(root(), "stores", filepath.FromSlash(name)+expectedSuffix))
	if err != nil {
		return nil, err
	}
	members, err := split(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return members, nil
}

var errNoObject = errors.New("not a JSON object")

// split parts an object into its members without looking into them: the accounts are large, and a test needs a few parts.
func split(b []byte) (map[string]json.RawMessage, error) {
	members := make(map[string]json.RawMessage)
	depth, quoted := 0, false
	start, key := 0, "" // of the name or value that is being read
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case quoted:
			if c == '\\' {
				i++
			}
			quoted = c != '"'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			if depth++; depth == 1 {
				start = i + 1
			}
		case depth == 1 && c == ':' && key == "":
			if err := json.Unmarshal(b[start:i], &key); err != nil {
				return nil, err
			}
			start = i + 1
		case depth == 1 && (c == ',' || c == '}'):
			if key != "" {
				members[key] = b[start:i]
			}
			start, key = i+1, ""
			if c == '}' {
				return members, nil
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil, errNoObject
}

// part decodes a member of "raw" or "onDisk". Where it says sameAs it is that of another store of the version.
func (e *Expected) part(member string, into any) error {
	data, ok := e.parts[member]
	if !ok {
		return nil
	}
	if len(data) < 100 && strings.Contains(string(data), `"sameAs"`) {
		var same struct{ SameAs string }
		if err := json.Unmarshal(data, &same); err != nil {
			return err
		}
		folder, _, _ := strings.Cut(e.name, "/")
		other, err := readExpected(folder + "/" + same.SameAs)
		if err != nil {
			return err
		}
		parts, err := split(other["raw"])
		if err != nil {
			return err
		}
		data = parts[member]
	}
	return json.Unmarshal(data, into)
}

func (e *Expected) loadAbort() error { return e.part("abortFile", &e.abort) }

func (e *Expected) loadFiles() error {
	var err error
	if e.old() {
		err = json.Unmarshal(e.raw["files"], &e.files)
	} else {
		err = e.part("files", &e.files)
	}
	e.files = slices.DeleteFunc(e.files, func(f FileInfo) bool { return strings.HasSuffix(f.Path, "/") }) // folders
	slices.SortFunc(e.files, func(a, b FileInfo) int { return strings.Compare(a.Path, b.Path) })
	return err
}

func (e *Expected) loadCheckpoint() error {
	var c struct{ PhysicMsgTimestamp, LogicsMsgTimestamp, IndexMsgTimestamp, MasterFlushedOffset, ConfirmPhyOffset int64 }
	err := e.part("checkpoint", &c)
	e.checkpoint = Checkpoint{c.PhysicMsgTimestamp, c.LogicsMsgTimestamp, c.IndexMsgTimestamp, c.MasterFlushedOffset, c.ConfirmPhyOffset}
	return err
}

func (e *Expected) loadLog() error {
	if e.old() {
		return e.log31()
	}
	return e.log4()
}

func (e *Expected) loadQueues() error {
	if e.old() {
		return e.queues31()
	}
	return e.queues4()
}

func (e *Expected) loadIndex() error {
	if e.old() {
		return e.index31()
	}
	return e.index4()
}

func (e *Expected) loadAfterLoad() error {
	if e.old() {
		return e.afterLoad31()
	}
	return e.afterLoad4()
}

func (e *Expected) loadConfig() error {
	var c struct {
		MapedFileSizeCommitLog, MappedFileSizeCommitLog        int64
		MapedFileSizeConsumeQueue, MappedFileSizeConsumeQueue  int64
		TranStateTableMapedFileSize, TranRedoLogMapedFileSize  int64
		MappedFileSizeConsumeQueueExt, MappedFileSizeTimerLog  int64
		MapperFileSizeBatchConsumeQueue                        int64
		MaxHashSlotNum, MaxIndexNum, MaxMessageSize            int32
		MessageDelayLevel                                      string
		EnableConsumeQueueExt, EnabledAppendPropCRC, EnableLmq bool
	}
	if err := json.Unmarshal(e.raw["config"], &c); err != nil {
		return err
	}
	e.config = Config{
		CommitLogFileSize:  c.MapedFileSizeCommitLog + c.MappedFileSizeCommitLog,
		QueueFileSize:      c.MapedFileSizeConsumeQueue + c.MappedFileSizeConsumeQueue,
		QueueExtFileSize:   c.MappedFileSizeConsumeQueueExt,
		BatchQueueFileSize: c.MapperFileSizeBatchConsumeQueue,
		TimerLogFileSize:   c.MappedFileSizeTimerLog,
		StateTableFileSize: c.TranStateTableMapedFileSize,
		RedoLogFileSize:    c.TranRedoLogMapedFileSize,
		IndexSlots:         c.MaxHashSlotNum, IndexEntries: c.MaxIndexNum, MaxMessageSize: c.MaxMessageSize,
		DelayLevels: c.MessageDelayLevel,
		QueueExt:    c.EnableConsumeQueueExt, PropertyCRC: c.EnabledAppendPropCRC, LightQueues: c.EnableLmq,
	}
	return nil
}

// commonRecord holds the members that both forms spell alike.
type commonRecord struct {
	StoreSize                 int32
	Topic                     string
	QueueID                   int32 `json:"queueId"`
	QueueOffset               int64
	Flag, SysFlag             int32
	BornTimestamp             int64
	BornHost                  string
	StoreTimestamp            int64
	StoreHost                 string
	ReconsumeTimes            int32
	PreparedTransactionOffset int64
	BodyCRC                   uint32
	BodyLength                int32
	BodyMd5                   string
	MsgID                     string `json:"msgId"`
	Properties                map[string]string
}

func (c *commonRecord) record(file string, physicalOffset int64) (Record, error) {
	r := Record{
		File: file, PhysicalOffset: physicalOffset, StoreSize: c.StoreSize, Topic: c.Topic, QueueID: c.QueueID,
		QueueOffset: c.QueueOffset, Flag: c.Flag, SysFlag: c.SysFlag, BornTimestamp: c.BornTimestamp,
		StoreTimestamp: c.StoreTimestamp, ReconsumeTimes: c.ReconsumeTimes,
		PreparedTransactionOffset: c.PreparedTransactionOffset, BodyCRC: c.BodyCRC, BodyLength: c.BodyLength,
		BodyMD5: c.BodyMd5, MsgID: c.MsgID, Properties: c.Properties,
	}
	// Java prints an IPv6 address in full, in brackets.
	var err error
	if r.BornHost, err = netip.ParseAddrPort(c.BornHost); err != nil {
		return r, err
	}
	r.StoreHost, err = netip.ParseAddrPort(c.StoreHost)
	return r, err
}

// unitsOf turns rows of [index, offset, size, tagsCode] into units; without a tags code it is 0.
func unitsOf(rows [][]int64) []Unit {
	units := make([]Unit, 0, len(rows))
	for _, row := range rows {
		u := Unit{Index: row[0], PhysicalOffset: row[1], Size: int32(row[2])}
		if len(row) > 3 {
			u.TagsCode = row[3]
		}
		units = append(units, u)
	}
	return units
}

// splitQueue parts "topic-id".
func splitQueue(s string) (topic string, id int32, err error) {
	i := strings.LastIndexByte(s, '-')
	if i < 0 {
		return "", 0, fmt.Errorf("queue %q", s)
	}
	n, err := strconv.ParseInt(s[i+1:], 10, 32)
	return s[:i], int32(n), err
}
