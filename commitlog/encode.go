package commitlog

import (
	"errors"
	"fmt"
	"math"

	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/message"
)

// ErrMessageIllegal is the class of every [LimitError]: the message cannot be stored, and no byte of it was.
var ErrMessageIllegal = errors.New("message illegal")

// LimitError says which part of a message is beyond what the format or the store allows.
type LimitError struct {
	What        string // "topic", "properties", "body", "record", "queue id", …
	Size, Limit int64  // bytes
	Text        string // instead of the sizes, where they mean nothing
}

func (e *LimitError) Error() string {
	if e.Text != "" {
		return fmt.Sprintf("message illegal: %s: %s", e.What, e.Text)
	}
	return fmt.Sprintf("message illegal: %s: %d bytes, the limit is %d", e.What, e.Size, e.Limit)
}

// Is makes a LimitError match ErrMessageIllegal.
func (e *LimitError) Is(target error) bool { return target == ErrMessageIllegal }

// recordAllowance is what a record may have beyond the body's limit where that limit is on the body.
const recordAllowance = 64 << 10

// AppendMessage appends the record of a message to b. Queue offset, physical offset and store time are left for
// [Log.Append] to fill in. Of the system flag the two host bits follow the hosts. The limits are the dialect's, with
// maxMessageSize (bytes) in place of its default unless that is 0. Errors match ErrMessageIllegal, and b is then returned as it was.
func AppendMessage(b []byte, m *message.Message, d *dialect.Dialect, maxMessageSize int32) ([]byte, error) {
	r := Record{
		Magic: MagicV1, QueueID: m.QueueID, Flag: m.Flag, BornTimestamp: m.BornTimestamp, BornHost: m.BornHost,
		StoreHost: m.StoreHost, ReconsumeTimes: m.ReconsumeTimes, PreparedTransactionOffset: m.PreparedTransactionOffset,
		Body: m.Body, BodyCRC: message.CRC(m.Body),
		SysFlag: m.SysFlag &^ (message.FlagBornHostIPv6 | message.FlagStoreHostIPv6),
	}
	if m.BornHost.Is6() {
		r.SysFlag |= message.FlagBornHostIPv6
	}
	if m.StoreHost.Is6() {
		r.SysFlag |= message.FlagStoreHostIPv6
	}
	if len(m.Topic) > math.MaxInt8 && d.WritesV2 {
		r.Magic = MagicV2
	}
	size := r.EncodedSize() + len(m.Topic) + len(m.Properties) // two strings, which a Record cannot hold without a copy
	if err := checkLimits(m, size, d, maxMessageSize); err != nil {
		return b, err
	}
	return appendTexts(r.appendHead(b, size), r.Magic, m.Topic, m.Properties), nil
}

func checkLimits(m *message.Message, size int, d *dialect.Dialect, maxMessageSize int32) error {
	limit := int64(maxMessageSize)
	if limit == 0 {
		limit = int64(d.MaxMessageSize)
	}
	most := d.MaxTopicLength
	if len(m.Topic) > len(retryPrefix) && m.Topic[:len(retryPrefix)] == retryPrefix {
		most = d.MaxRetryTopicLength
	}
	switch {
	case m.Topic == "":
		return &LimitError{What: "topic", Text: "it is empty"}
	case len(m.Topic) > most:
		return &LimitError{What: "topic", Size: int64(len(m.Topic)), Limit: int64(most)}
	case len(m.Properties) > math.MaxInt16:
		return &LimitError{What: "properties", Size: int64(len(m.Properties)), Limit: math.MaxInt16}
	case m.QueueID < 0:
		return &LimitError{What: "queue id", Text: fmt.Sprintf("%d is negative", m.QueueID)}
	case !d.HasIPv6 && (m.BornHost.Is6() || m.StoreHost.Is6()):
		return &LimitError{What: "host", Text: "dialect " + d.Name + " has no IPv6 addresses"}
	case d.LimitsWholeRecord && int64(size) > limit:
		return &LimitError{What: "record", Size: int64(size), Limit: limit}
	case !d.LimitsWholeRecord && int64(len(m.Body)) > limit:
		return &LimitError{What: "body", Size: int64(len(m.Body)), Limit: limit}
	case !d.LimitsWholeRecord && int64(size) > limit+recordAllowance:
		return &LimitError{What: "record", Size: int64(size), Limit: limit + recordAllowance}
	}
	return nil
}

const retryPrefix = "%RETRY%"
