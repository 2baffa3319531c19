package inspect

import (
	"fmt"
	"math"

	"github.com/rocketstore/rocketstore/message"
)

// knownFlags are the bits of the system flag that some line of RocketMQ uses.
const knownFlags = message.FlagCompressed | message.FlagMultiTags | message.FlagRollback | message.FlagBornHostIPv6 | message.FlagStoreHostIPv6 |
	message.FlagNeedUnwrap | message.FlagInnerBatch | message.FlagZLIB | 0x400 // the last of the three bits of the compression

// fields reports what no record can have in its header. No checksum covers that, so it is all that shows of damage there.
func (c *checker) fields(r *LogRecord) {
	if r.QueueOffset|r.PreparedTransactionOffset|r.StoreTimestamp >= 0 && r.QueueID|r.ReconsumeTimes >= 0 &&
		r.SysFlag&^knownFlags == 0 && uint32(r.BornHost.Port|r.StoreHost.Port) <= math.MaxUint16 {
		return
	}
	for _, f := range []struct {
		what, expected string
		value          int64
		wrong          bool
	}{
		{"queue id", "0 or more", int64(r.QueueID), r.QueueID < 0},
		{"queue offset", "0 or more", r.QueueOffset, r.QueueOffset < 0},
		{"system flag", fmt.Sprintf("bits of %#x", int32(knownFlags)), int64(r.SysFlag), r.SysFlag&^knownFlags != 0},
		{"port of the born host", "0 to 65535", int64(r.BornHost.Port), uint32(r.BornHost.Port) > math.MaxUint16},
		{"store time", "0 or more", r.StoreTimestamp, r.StoreTimestamp < 0},
		{"port of the store host", "0 to 65535", int64(r.StoreHost.Port), uint32(r.StoreHost.Port) > math.MaxUint16},
		{"number of times consumed again", "0 or more", int64(r.ReconsumeTimes), r.ReconsumeTimes < 0},
		{"place of the prepared message", "0 or more", r.PreparedTransactionOffset, r.PreparedTransactionOffset < 0},
	} {
		if f.wrong {
			c.wrongField(r, f.what, f.expected, f.value)
		}
	}
}

// wrongField reports a field of a record's header.
func (c *checker) wrongField(r *LogRecord, what, expected string, value int64) {
	f := Finding{Kind: WrongField, Severity: Error, Expected: expected, Found: decimal(value), Text: fmt.Sprintf("the record's %s is %d", what, value)}
	f.File, f.Offset = r.place()
	f.From, f.To = r.PhysicalOffset, r.PhysicalOffset+int64(r.Size)
	c.report(f)
}

// farOff reports a queue offset for which too few bytes lie between the record and the one before it in its queue, whose
// successor would be next: each offset takes a record.
func (c *checkQueues) farOff(r *LogRecord, q *queueCheck, index, next int64) {
	c.wrongField(r, "queue offset in "+q.name(), fmt.Sprintf("about %d", next), index)
}
