package inspect

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/txstate"
)

// Topics of the transactions of 4.x.
const (
	halfTopic = "RMQ_SYS_TRANS_HALF_TOPIC"
	opTopic   = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
)

// tableRecord compares a record of the state table with its prepared message.
func (c *checkStates) tableRecord(s *StateRecord) error {
	f := Finding{Kind: WrongState, Severity: Error, File: s.File, Offset: s.Offset, Found: stateText(s.Record)}
	at := s.CommitOffset
	if at >= 0 && at < c.s.LogStart {
		return nil // its message was removed
	}
	rec, err := c.recordAt(at)
	switch {
	case err != nil:
		return err
	case rec == nil && c.inDamage(at):
		f.Severity, f.Text = Info, fmt.Sprintf("record %d of the state table: the log is damaged at %d", s.Number, at)
	case rec == nil && at >= c.s.LogEnd:
		f.Kind, f.Severity, f.Text = Orphan, Warning, fmt.Sprintf("record %d of the state table points to %d, the log ends at %d", s.Number, at, c.s.LogEnd)
	case rec == nil:
		f.Text = fmt.Sprintf("record %d of the state table points to %d, where no record starts", s.Number, at)
	case rec.SysFlag.Transaction() != message.FlagPrepared:
		f.Text = fmt.Sprintf("record %d of the state table points to the record at %d, which is no prepared message", s.Number, at)
	case s.GroupHash == 0 && s.State == txstate.RolledBack && rec.QueueOffset != s.Number:
		return nil // it fills the place of one that is not known
	default:
		c.tableFields(s, rec)
		return nil
	}
	c.report(f)
	return nil
}

// tableFields compares the fields of a record of the table with its message.
func (c *checkStates) tableFields(s *StateRecord, rec *commitlog.Record) {
	wrong := func(kind Kind, severity Severity, offset int64, what string, want, have any) {
		c.report(Finding{
			Kind: kind, Severity: severity, File: s.File, Offset: s.Offset + offset, Expected: fmt.Sprint(want), Found: fmt.Sprint(have),
			Text: fmt.Sprintf("record %d of the state table, message at %d: %s", s.Number, rec.PhysicalOffset, what),
		})
	}
	if s.Size != rec.Size {
		wrong(WrongState, Error, 8, "size", rec.Size, s.Size)
	}
	if want := txstate.SecondsOf(rec.StoreTimestamp); s.StoredAt-want > 1 || s.StoredAt-want < -1 {
		wrong(WrongState, Error, 12, "store time in seconds", want, s.StoredAt)
	}
	if want := message.HashMore(0, message.Lookup(rec.Properties, message.PropertyProducerGroup)); want != s.GroupHash {
		wrong(WrongState, Error, 16, "hash of the producer group", want, s.GroupHash)
	}
	if rec.QueueOffset != s.Number {
		wrong(Renumbered, Warning, 0, "the message carries another number", rec.QueueOffset, s.Number)
	}
	ends := byte(0)
	if page := c.ended[s.Number/int64(len(endedPage{}))]; page != nil {
		ends = page[s.Number%int64(len(page))]
	}
	switch {
	case s.State == txstate.Prepared && ends != 0:
		wrong(StateBehind, c.late, 20, "the log has its end", endText(ends), s.State)
	case s.State == txstate.Committed && ends&1 == 0, s.State == txstate.RolledBack && ends&2 == 0:
		severity := Error
		if len(c.damaged) > 0 {
			severity = Warning // the end may be what was damaged
		}
		wrong(StateBehind, severity, 20, "the log has no such end", endText(ends), s.State)
	}
}

func endText(ends byte) string {
	switch ends {
	case 0:
		return txstate.Prepared.String()
	case 1:
		return txstate.Committed.String()
	case 2:
		return txstate.RolledBack.String()
	}
	return txstate.Committed.String() + " or " + txstate.RolledBack.String()
}

func stateText(s txstate.Record) string {
	return fmt.Sprintf("message at %d of %d bytes, %v", s.CommitOffset, s.Size, s.State)
}

// half looks at a half message or an op message of 4.x.
func (c *checkStates) half(r *LogRecord) {
	f := Finding{Kind: Orphan, Severity: Warning}
	switch string(r.Topic) {
	case halfTopic:
		if len(message.Lookup(r.Properties, message.PropertyRealTopic)) > 0 {
			return
		}
		f.Expected, f.Text = "property "+message.PropertyRealTopic, "the half message does not say which topic it is for"
	case opTopic:
		q := c.queues.byTopic[halfTopic][r.QueueID]
		if q == nil || !q.logged || r.SysFlag.Has(message.FlagCompressed) {
			return
		}
		bad, ok := opBeyond(string(r.Body), q.logEnd)
		if !ok {
			return
		}
		f.Expected, f.Found = fmt.Sprintf("queue offsets below %d", q.logEnd), bad
		f.Text = fmt.Sprintf("the op message ends the half message %s/%d/%s, which is not there", halfTopic, r.QueueID, bad)
	default:
		return
	}
	f.File, f.Offset = r.place()
	c.report(f)
}

// opBeyond gives the first queue offset in an op message's body that is none below end.
func opBeyond(body string, end int64) (string, bool) {
	for word := range strings.SplitSeq(body, ",") {
		if word == "" {
			continue
		}
		if n, err := strconv.ParseInt(word, 10, 64); err != nil || n < 0 || n >= end {
			return word, true
		}
	}
	return "", false
}
