package golden

import (
	"encoding/json"
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
	e, err := load(name)
	if err != nil {
		tb.Fatalf("golden: %v", err)
	}
	return e
}

func load(name string) (*Expected, error) {
	raw, err := readExpected(name)
	if err != nil {
		return nil, err
	}
	folder, _, _ := strings.Cut(name, "/")
	e := &Expected{name: name, version: strings.TrimPrefix(folder, "rocketmq-"), raw: raw}
	if err := e.loadConfig(); err != nil {
		return nil, fmt.Errorf("%s: config: %w", name, err)
	}
	if _, old := raw["onDisk"]; old {
		err = e.load31()
	} else {
		err = e.load4()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	slices.SortFunc(e.files, func(a, b FileInfo) int { return strings.Compare(a.Path, b.Path) })
	return e, nil
}

func readExpected(name string) (map[string]json.RawMessage, error) {
	b, err := os.ReadFile(filepath.Join(root(), "stores", filepath.FromSlash(name)+expectedSuffix))
	if err != nil {
		return nil, err
	}
	raw := make(map[string]json.RawMessage)
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return raw, nil
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

// segmentFile is the name of the commit log file that holds a physical offset.
func (e *Expected) segmentFile(offset int64) string {
	return fmt.Sprintf("commitlog/%020d", offset-offset%e.config.CommitLogFileSize)
}

// host reads a host as Java prints it: an IPv6 address in full, in brackets.
func host(s string) (netip.AddrPort, error) { return netip.ParseAddrPort(s) }

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
	var err error
	if r.BornHost, err = host(c.BornHost); err != nil {
		return r, err
	}
	r.StoreHost, err = host(c.StoreHost)
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
