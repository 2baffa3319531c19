package producer

import (
	"fmt"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/trace"
)

// Status says how safely a message is stored.
type Status int

// The statuses. All mean that the broker has the message.
const (
	// OK: as safe as the broker is set up to make it.
	OK Status = iota
	// FlushDiskTimeout: not on the device in time.
	FlushDiskTimeout
	// FlushSlaveTimeout: not on a slave in time.
	FlushSlaveTimeout
	// SlaveNotAvailable: there is no slave to have it.
	SlaveNotAvailable
)

// String is the name in the original.
func (s Status) String() string {
	switch s {
	case OK:
		return "SEND_OK"
	case FlushDiskTimeout:
		return "FLUSH_DISK_TIMEOUT"
	case FlushSlaveTimeout:
		return "FLUSH_SLAVE_TIMEOUT"
	case SlaveNotAvailable:
		return "SLAVE_NOT_AVAILABLE"
	}
	return fmt.Sprintf("Status(%d)", int(s))
}

// statusOf is the status that a response code stands for.
func statusOf(code int32) (s Status, stored bool) {
	switch code {
	case remoting.Success:
		return OK, true
	case remoting.FlushDiskTimeout:
		return FlushDiskTimeout, true
	case remoting.FlushSlaveTimeout:
		return FlushSlaveTimeout, true
	case remoting.SlaveNotAvailable:
		return SlaveNotAvailable, true
	}
	return 0, false
}

// Result is what a broker says of a message that it stored.
type Result struct {
	Status Status
	// MessageID is the unique id that the producer made, OffsetID the one that the broker made. Those of a batch's messages are joined
	// by commas.
	MessageID, OffsetID string
	// Queue is where the message is for consumers, QueueOffset its place there; of a batch that of the first message, of a prepared
	// message its place in the broker's table of these.
	Queue       Queue
	QueueOffset int64
	// TransactionID is the broker's word for a prepared message, mostly the unique id or "".
	TransactionID string
	// Region is the broker's, TraceOn whether it wants sends traced.
	Region  string
	TraceOn bool
	// RecallHandle takes a timed message of 5.3 back.
	RecallHandle string
	// Broker is the address that answered.
	Broker string
}

// readResult reads the answer to a send.
func readResult(resp *remoting.Command, status Status, q Queue, addr string) (Result, error) {
	f := resp.Fields.Reader()
	r := Result{
		Status: status, OffsetID: f.Text("msgId"), Queue: q, QueueOffset: f.Int64("queueOffset"),
		TransactionID: resp.Fields.Get("transactionId"), Region: resp.Fields.Get("MSG_REGION"),
		TraceOn: resp.Fields.Get("TRACE_ON") != "false", RecallHandle: resp.Fields.Get("recallHandle"), Broker: addr,
	}
	r.Queue.QueueID = f.Int32("queueId")
	if r.Region == "" {
		r.Region = trace.DefaultRegion
	}
	if err := f.Err(); err != nil {
		return Result{}, fmt.Errorf("%w: broker %s: %w", ErrResponse, addr, err)
	}
	return r, nil
}
