package trace

import (
	"context"
	"fmt"
	"strings"
)

// Topic is the default topic of trace messages.
const Topic = "RMQ_SYS_TRACE_TOPIC"

// DefaultRegion stands where a broker names no region.
const DefaultRegion = "DefaultRegion"

// Limits of one trace message: what a producer may send at most, and what the records in it have at most, bytes.
const (
	MaxMessage = 128_000
	MaxRecords = MaxMessage - 10_000
)

// Kind is what a context tells of.
type Kind int

// The kinds.
const (
	Pub Kind = iota
	SubBefore
	SubAfter
	EndTransaction
	Recall
)

func kindNames() [5]string {
	return [...]string{"Pub", "SubBefore", "SubAfter", "EndTransaction", "Recall"}
}

// String is the kind's name in the records.
func (k Kind) String() string {
	if names := kindNames(); k >= 0 && int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// MessageType is what kind of message was sent, as the ordinal of Java's MessageType.
type MessageType int

// The message types.
const (
	Normal MessageType = iota
	Half
	Commit
	Delay
)

// Codes of a SubAfter context, as the ordinals of Java's ConsumeReturnType.
const (
	CodeSuccess   = 0
	CodeTimeout   = 1
	CodeException = 2
	CodeNull      = 3
	CodeFailed    = 4
)

// Names of a transaction's outcome.
const (
	StateCommit   = "COMMIT_MESSAGE"
	StateRollback = "ROLLBACK_MESSAGE"
	StateUnknown  = "UNKNOW"
)

// Context is one note: of one send, of one call of a listener, or of the end of a transaction.
type Context struct {
	Kind Kind
	// Time is when it began, ms since 1970.
	Time int64
	// Region is that of the broker.
	Region string
	// Group is that of the producer or consumer.
	Group string
	// Cost is how long it took for each bean, ms.
	Cost    int64
	Success bool
	// RequestID pairs SubBefore and SubAfter.
	RequestID string
	// Code is one of the codes of a SubAfter context.
	Code int
	// Beans are the messages. A send has one, also when it is a batch.
	Beans []Bean
}

// Bean is what a context says of one message.
type Bean struct {
	Topic, MessageID, OffsetID, Tags, Keys string
	// StoreHost is the broker's address, ClientHost that of who traces.
	StoreHost, ClientHost string
	// StoreTime is an estimate, the context's time and half of its cost, ms since 1970. Records do not hold it.
	StoreTime int64
	// BodyLength is that of the body as it was sent, so compressed where that was done, bytes.
	BodyLength int
	Type       MessageType
	RetryTimes int
	// TransactionID, State and FromCheck belong to EndTransaction.
	TransactionID, State string
	FromCheck            bool
}

// Keys gives the texts by which a trace message is found: the ids and keys of the context's messages.
func (c *Context) Keys(yield func(string) bool) {
	for i := range c.Beans {
		b := &c.Beans[i]
		for id := range strings.SplitSeq(b.MessageID, ",") { // of a batch
			if id != "" && !yield(id) {
				return
			}
		}
		for key := range strings.FieldsSeq(b.Keys) {
			if !yield(key) {
				return
			}
		}
	}
}

// Dispatcher takes contexts and brings them to where they are kept. The asynchronous one is in package producer; a test may have
// its own.
type Dispatcher interface {
	// Start begins; what was appended before is kept. Starting twice is starting once.
	Start(ctx context.Context) error
	// Append hands over a context, which must not be changed any more. It does not wait; false says that it was discarded.
	Append(c *Context) bool
	// Flush waits until what was appended has been sent, but not for long.
	Flush(ctx context.Context)
	// Shutdown flushes and ends. A second call does nothing; after it Append discards.
	Shutdown(ctx context.Context) error
}
