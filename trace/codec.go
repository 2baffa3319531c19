package trace

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// ErrRecord says that a record cannot be read.
var ErrRecord = errors.New("bad trace record")

const (
	fieldEnd  = 0x01
	recordEnd = 0x02
	null      = "null"
)

// AppendTo appends the context's records: one for each bean.
func (c *Context) AppendTo(b []byte) []byte {
	for i := range c.Beans {
		w := writer{b}
		w.b = append(w.b, c.Kind.String()...)
		switch bean := &c.Beans[i]; c.Kind {
		case Pub:
			c.pub(&w, bean)
		case SubBefore:
			w.int(c.Time)
			w.text(c.Region, c.Group, c.RequestID, bean.MessageID)
			w.int(int64(bean.RetryTimes))
			w.text(bean.Keys)
		case SubAfter:
			w.text(c.RequestID, bean.MessageID)
			w.int(c.Cost)
			w.bool(c.Success)
			w.text(bean.Keys)
			w.int(int64(c.Code))
			w.int(c.Time)
			w.text(c.Group)
		case EndTransaction:
			w.int(c.Time)
			w.text(c.Region, c.Group, bean.Topic, bean.MessageID, bean.Tags, bean.Keys, bean.StoreHost)
			w.int(int64(bean.Type))
			w.text(bean.TransactionID, bean.State)
			w.bool(bean.FromCheck)
		case Recall:
			w.int(c.Time)
			w.text(c.Region, c.Group, bean.Topic, bean.MessageID)
			w.bool(c.Success)
		}
		b = append(w.b, recordEnd)
	}
	return b
}

func (c *Context) pub(w *writer, bean *Bean) {
	w.int(c.Time)
	w.text(c.Region, c.Group, bean.Topic, bean.MessageID, bean.Tags, bean.Keys, bean.StoreHost)
	w.int(int64(bean.BodyLength))
	w.int(c.Cost)
	w.int(int64(bean.Type))
	w.text(bean.OffsetID)
	w.bool(c.Success)
}

// writer appends fields, each behind its 0x01.
type writer struct{ b []byte }

func (w *writer) text(fields ...string) {
	for _, s := range fields {
		w.b = append(w.b, fieldEnd)
		if s == "" {
			s = null
		}
		for i := range len(s) {
			if s[i] != fieldEnd && s[i] != recordEnd { // there is no escape; names and properties cannot hold them
				w.b = append(w.b, s[i])
			}
		}
	}
}

func (w *writer) int(n int64) { w.b = strconv.AppendInt(append(w.b, fieldEnd), n, 10) }
func (w *writer) bool(v bool) { w.b = strconv.AppendBool(append(w.b, fieldEnd), v) }

// Decode yields the records of a trace message's body, each as a context with one bean. A record that is not what its kind must be
// gives an error that matches [ErrRecord], and the sequence goes on; records of unknown kinds are passed over, and so are further
// fields behind the known ones, which later versions add.
func Decode(body []byte) iter.Seq2[Context, error] {
	return func(yield func(Context, error) bool) {
		n := 0
		for line := range strings.SplitSeq(string(body), string(rune(recordEnd))) {
			n++
			if line == "" {
				continue
			}
			c, known, err := decode(strings.Split(line, string(rune(fieldEnd))))
			if err != nil {
				err = fmt.Errorf("%w: record %d: %w", ErrRecord, n, err)
			}
			if known && !yield(c, err) {
				return
			}
		}
	}
}

// fields reads the fields of one record and keeps the first error.
type fields struct {
	list []string
	at   int
	err  error
}

func (f *fields) next() string {
	if f.at >= len(f.list) {
		if f.err == nil {
			f.err = fmt.Errorf("%s has %d fields", f.list[0], len(f.list))
		}
		return ""
	}
	s := f.list[f.at]
	f.at++
	return s
}

func (f *fields) text() string {
	if s := f.next(); s != null {
		return s
	}
	return ""
}

func (f *fields) int() int64 {
	s := f.next()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("%s: field %d is no number: %q", f.list[0], f.at, s)
	}
	return n
}

func (f *fields) int32() int {
	n := f.int()
	if n != int64(int32(n)) && f.err == nil {
		f.err = fmt.Errorf("%s: field %d is out of range: %d", f.list[0], f.at, n)
	}
	return int(int32(n))
}

func (f *fields) bool() bool { return f.next() == "true" }

// left is how many fields were not read.
func (f *fields) left() int { return len(f.list) - f.at }

func decode(list []string) (c Context, known bool, err error) {
	f := &fields{list: list, at: 1}
	bean := Bean{}
	switch list[0] {
	case "Pub":
		c.Kind = Pub
		f.head(&c)
		f.message(&bean)
		bean.BodyLength = f.int32()
		c.Cost = f.int()
		bean.Type = MessageType(f.int32())
		if f.left() > 1 { // 4.3 and 4.4 had no offset id
			bean.OffsetID = f.text()
		}
		c.Success = f.bool()
		if f.left() > 0 {
			bean.ClientHost = f.text()
		}
	case "SubBefore":
		c.Kind = SubBefore
		f.head(&c)
		c.RequestID, bean.MessageID, bean.RetryTimes, bean.Keys = f.text(), f.text(), f.int32(), f.text()
		if f.left() > 0 {
			bean.ClientHost = f.text()
		}
	case "SubAfter":
		c.Kind = SubAfter
		c.RequestID, bean.MessageID, c.Cost, c.Success, bean.Keys = f.text(), f.text(), f.int(), f.bool(), f.text()
		if f.left() > 0 {
			c.Code = f.int32()
		}
		if f.left() > 1 {
			c.Time, c.Group = f.int(), f.text()
		}
	case "EndTransaction":
		c.Kind = EndTransaction
		f.head(&c)
		f.message(&bean)
		bean.Type = MessageType(f.int32())
		bean.TransactionID, bean.State, bean.FromCheck = f.text(), f.text(), f.bool()
	case "Recall":
		c.Kind = Recall
		f.head(&c)
		bean.Topic, bean.MessageID, c.Success = f.text(), f.text(), f.bool()
	default:
		return c, false, nil
	}
	c.Beans = []Bean{bean}
	return c, true, f.err
}

func (f *fields) head(c *Context) { c.Time, c.Region, c.Group = f.int(), f.text(), f.text() }

func (f *fields) message(b *Bean) {
	b.Topic, b.MessageID, b.Tags, b.Keys, b.StoreHost = f.text(), f.text(), f.text(), f.text(), f.text()
}
