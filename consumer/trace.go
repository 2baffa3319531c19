package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/trace"
)

// tracer notes each call of a listener, before and after it, in the form of the message trace.
type tracer struct {
	c  *Consumer
	to trace.Dispatcher
}

// Properties by which a broker says whether and for which region messages are traced.
const (
	propertyTraceOn = "TRACE_ON"
	propertyRegion  = "MSG_REGION"
)

// before notes that a listener is called. It returns nil when nothing of the batch is to be traced.
func (t *tracer) before(b *Batch) *trace.Context {
	note := &trace.Context{Kind: trace.SubBefore, Group: t.c.opts.Group}
	for _, m := range b.Messages {
		if on, _ := m.Properties.Get(propertyTraceOn); on == "false" {
			continue
		}
		keys, _ := m.Properties.Get(message.PropertyKeys)
		note.Region, _ = m.Properties.Get(propertyRegion)
		note.Beans = append(note.Beans, trace.Bean{
			Topic: m.Topic, MessageID: m.ID(), OffsetID: m.OffsetID(), Tags: m.Tag(), Keys: keys, StoreHost: m.StoreHost.String(),
			StoreTime: m.StoreTimestamp, BodyLength: int(m.StoreSize), RetryTimes: int(m.ReconsumeTimes),
		})
	}
	if len(note.Beans) == 0 {
		return nil
	}
	note.RequestID, note.Time, note.Success = t.c.net.UniqueID(), time.Now().UnixMilli(), true
	t.to.Append(note)
	return note
}

// after notes how the call ended.
func (t *tracer) after(before *trace.Context, err error, took time.Duration) {
	if before == nil {
		return
	}
	note := *before
	note.Kind, note.Success = trace.SubAfter, err == nil
	note.Cost = took.Milliseconds() / int64(len(note.Beans))
	switch {
	case errors.Is(err, ErrPanic):
		note.Code = trace.CodeException
	case took >= t.c.opts.ConsumeTimeout:
		note.Code = trace.CodeTimeout
	case err != nil:
		note.Code = trace.CodeFailed
	}
	t.to.Append(&note)
}

// close sends what was noted.
func (t *tracer) close(ctx context.Context) error { return t.to.Shutdown(ctx) }
