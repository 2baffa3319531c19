package golden

import (
	"encoding/json"
	"net/netip"
	"sync"
	"testing"
)

// Record is one record of the commit log as the real decoder read it.
type Record struct {
	File                      string // commitlog/<20 digits>
	PhysicalOffset            int64
	StoreSize                 int32 // bytes, as its size field says
	Magic                     uint32
	Topic                     string
	QueueID                   int32
	QueueOffset               int64
	Flag, SysFlag             int32
	BornTimestamp             int64 // ms
	BornHost                  netip.AddrPort
	StoreTimestamp            int64 // ms
	StoreHost                 netip.AddrPort
	ReconsumeTimes            int32
	PreparedTransactionOffset int64
	BodyCRC                   uint32
	BodyLength                int32
	BodyMD5                   string // lower-case hex, of the body as stored
	MsgID                     string
	Properties                map[string]string // as the real decoder made them
	RecordMD5                 string            // of all StoreSize bytes; "" for 3.1.4

	CRCWrong bool // the body does not match BodyCRC
	// DecodedBytes is not 0 where the fields add up to another length than StoreSize: a torn record that 3.1.4 takes.
	DecodedBytes int32
	// PlainLength and PlainMD5 are of the body after decompression; 0 and "" for a body that is not compressed.
	PlainLength int32
	PlainMD5    string
}

// Whole says whether the record is undamaged.
func (r *Record) Whole() bool { return !r.CRCWrong && !r.Torn() }

// Torn says whether the record's lengths do not add up to its size, since what follows its body was lost: all that is
// sure of it is that it is damaged. A record that is neither torn nor whole has a wrong CRC only.
func (r *Record) Torn() bool { return r.DecodedBytes != 0 || r.Topic == "" }

// Blank is a filler at the end of a commit log file.
type Blank struct {
	PhysicalOffset int64
	Size           int32 // as its size field says: all that was left of the file
}

// Segment is what a plain scan of one commit log file came to. It checks no CRC, so it goes past damage.
type Segment struct {
	File string // commitlog/<20 digits>
	End  int64  // physical offset behind the last record
	Why  string // "blank record", "zero size" or, for a file that was cut short, another text
}

// Unit is a consume queue unit or an entry of the redo log.
type Unit struct {
	Index          int64
	PhysicalOffset int64
	Size           int32 // 0x7FFFFFFF for filler
	TagsCode       int64
}

// Queue is what the files of one consume queue hold. Units that are all zero are left out.
type Queue struct {
	Topic   string
	QueueID int32
	Units   []Unit
}

// BatchUnit is a unit of a batch queue.
type BatchUnit struct {
	Index           int64
	PhysicalOffset  int64
	Size            int32
	TagsCode        int64
	StoreTime       int64
	BaseOffset      int64
	BatchSize       int16
	CompactedOffset int32
	Reserved        int32
}

// BatchQueue is what the files of one batch queue hold.
type BatchQueue struct {
	Topic   string
	QueueID int32
	Units   []BatchUnit
}

// ExtUnit is a unit of a queue extension.
type ExtUnit struct {
	Offset    int64 // byte in the extension
	Size      int16
	TagsCode  int64
	StoreTime int64
	Bitmap    []byte
	End       bool // the mark that ends a file; it has only an Offset
}

// ExtQueue is what the extension files of one queue hold.
type ExtQueue struct {
	Topic   string
	QueueID int32
	Units   []ExtUnit
}

// Slot is a used slot of an index file.
type Slot struct{ Slot, Entry int32 }

// IndexEntry is one entry of an index file.
type IndexEntry struct {
	Number         int32 // from 1 on
	KeyHash        int32
	PhysicalOffset int64
	TimeDiff       int32 // seconds
	Previous       int32
}

// IndexFile is what one index file holds.
type IndexFile struct {
	Name                         string // 17 digits
	BeginTimestamp, EndTimestamp int64
	BeginOffset, EndOffset       int64
	SlotCount, IndexCount        int32
	Slots                        []Slot // used ones, by slot number
	Entries                      []IndexEntry
}

// StateRecord is one record of the transaction state table of 3.1.
type StateRecord struct {
	Number         int64 // its place in the table
	PhysicalOffset int64
	Size           int32
	StoredAt       int32 // seconds
	GroupHash      int32
	State          int32 // 4 prepared, 8 committed, 12 rolled back
}

// Checkpoint is the content of the file checkpoint. The last two are 0 before 5.x.
type Checkpoint struct {
	PhysicTimestamp, LogicsTimestamp, IndexTimestamp int64
	MasterFlushedOffset, ConfirmOffset               int64
}

// OpenTransaction is a prepared message that nothing ended.
type OpenTransaction struct{ PhysicalOffset, Number int64 }

// Derived is what follows from the commit log of a 3.1.4 store alone, by rules that 3.1.4 itself breaks at times.
type Derived struct {
	LogEnd           int64
	OpenTransactions []OpenTransaction
	OpenByRedoLog    []int64 // physical offsets
	Queues           []Queue // without tags codes
}

// QueueRange is what the real store says of a queue after loading.
type QueueRange struct {
	Topic    string
	QueueID  int32
	Min, Max int64 // queue offsets; Max is behind the last
	Batch    bool
}

// KeyQuery is what the real store answered to a query by key, newest first.
type KeyQuery struct {
	Topic, Key      string
	PhysicalOffsets []int64
}

// AfterLoad is what the real store says after load and recovery of a copy, its faults included.
type AfterLoad struct {
	Loaded bool // false: it refused; the rest is empty then
	// MinOffset and MaxOffset bound the commit log.
	MinOffset, MaxOffset int64
	Queues               []QueueRange
	// KeyQueries were asked after start in 4.9.7 and 5.3.3, after load in 3.1.4.
	KeyQueries []KeyQuery
	// 3.1.4 only: the number of the next prepared message, and the table as it is then.
	NextStateNumber int64
	StateTable      []StateRecord
}

// Config is how the store's files were shaped. What a version does not have is 0.
type Config struct {
	CommitLogFileSize, QueueFileSize                       int64 // bytes
	QueueExtFileSize, BatchQueueFileSize, TimerLogFileSize int64 // bytes
	StateTableFileSize, RedoLogFileSize                    int64 // bytes
	IndexSlots, IndexEntries                               int32
	MaxMessageSize                                         int32 // bytes
	DelayLevels                                            string
	QueueExt, PropertyCRC, LightQueues                     bool
}

// FileInfo is one file of the store.
type FileInfo struct {
	Path string // inside the store, with forward slashes
	Size int64
	MD5  string
}

// Expected is all that is known of a store. Each part is decoded when it is first asked for.
type Expected struct {
	tb            testing.TB
	name, version string
	raw           map[string]json.RawMessage // members of the whole
	parts         map[string]json.RawMessage // members of "raw" or "onDisk"
	mu            sync.Mutex
	loaded        map[string]bool // guarded by mu, like what follows
	config        Config
	abort         bool
	files         []FileInfo
	records       []Record
	blanks        []Blank
	segments      []Segment
	queues        []Queue
	batchQueues   []BatchQueue
	extQueues     []ExtQueue
	indexFiles    []IndexFile
	stateTable    []StateRecord
	redoLog       []Unit
	checkpoint    Checkpoint
	derived       *Derived
	afterLoad     AfterLoad
}

// Name is the name as [Names] gives it.
func (e *Expected) Name() string { return e.name }

// Version is "3.1.4", "4.9.7" or "5.3.3".
func (e *Expected) Version() string { return e.version }

// Line is the line of the version, as package dialect names it: "3.1", "4.9" or "5.3".
func (e *Expected) Line() string { return e.version[:3] }

// Config is how the files were shaped.
func (e *Expected) Config() Config {
	return e.config
}

// Abort says whether the file abort is there.
func (e *Expected) Abort() bool {
	e.need("abort", e.loadAbort)
	return e.abort
}

// Files lists the store's files by path.
func (e *Expected) Files() []FileInfo {
	e.need("files", e.loadFiles)
	return e.files
}

// Records are the commit log's records in log order, those behind damage included as far as a plain scan sees them.
func (e *Expected) Records() []Record {
	e.need("log", e.loadLog)
	return e.records
}

// Blanks are the fillers in log order.
func (e *Expected) Blanks() []Blank {
	e.need("log", e.loadLog)
	return e.blanks
}

// Segments are the commit log's files in order.
func (e *Expected) Segments() []Segment {
	e.need("log", e.loadLog)
	return e.segments
}

// Queues are the consume queues by topic and queue id.
func (e *Expected) Queues() []Queue {
	e.need("queues", e.loadQueues)
	return e.queues
}

// BatchQueues are the batch queues (5.3.3).
func (e *Expected) BatchQueues() []BatchQueue {
	e.need("batchQueues", e.loadBatchQueues)
	return e.batchQueues
}

// ExtUnits are the queue extensions (4.9.7, 5.3.3).
func (e *Expected) ExtUnits() []ExtQueue {
	e.need("extQueues", e.loadExt)
	return e.extQueues
}

// IndexFiles are the index files by name.
func (e *Expected) IndexFiles() []IndexFile {
	e.need("index", e.loadIndex)
	return e.indexFiles
}

// StateTable is the transaction state table (3.1.4).
func (e *Expected) StateTable() []StateRecord {
	e.need("stateTable", e.loadStateTable)
	return e.stateTable
}

// RedoLog is the transaction redo log (3.1.4).
func (e *Expected) RedoLog() []Unit {
	e.need("redoLog", e.loadRedoLog)
	return e.redoLog
}

// Checkpoint is the content of the checkpoint.
func (e *Expected) Checkpoint() Checkpoint {
	e.need("checkpoint", e.loadCheckpoint)
	return e.checkpoint
}

// Derived is what follows from the commit log; nil for 4.9.7 and 5.3.3.
func (e *Expected) Derived() *Derived {
	e.need("derived", e.loadDerived)
	return e.derived
}

// AfterLoad is what the real store says once it has loaded a copy.
func (e *Expected) AfterLoad() AfterLoad {
	e.need("afterLoad", e.loadAfterLoad)
	return e.afterLoad
}

// Raw is a top-level member of expected.json, for what has no typed view ("opened", "raw", "afterRealOpen").
func (e *Expected) Raw(member string) json.RawMessage { return e.raw[member] }
