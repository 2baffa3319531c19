package message

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// The other names that clients and brokers use themselves, besides those that the store knows.
const (
	PropertyMinOffset          = "MIN_OFFSET"
	PropertyMaxOffset          = "MAX_OFFSET"
	PropertyBuyerID            = "BUYER_ID"
	PropertyOriginMessageID    = "ORIGIN_MESSAGE_ID"
	PropertyTransferFlag       = "TRANSFER_FLAG"
	PropertyCorrectionFlag     = "CORRECTION_FLAG"
	PropertyMQ2Flag            = "MQ2_FLAG"
	PropertyReconsumeTime      = "RECONSUME_TIME"
	PropertyRegion             = "MSG_REGION"
	PropertyTraceSwitch        = "TRACE_ON"
	PropertyMaxReconsumeTimes  = "MAX_RECONSUME_TIMES"
	PropertyConsumeStartTime   = "CONSUME_START_TIME"
	PropertyExtendUniqueInfo   = "EXTEND_UNIQ_INFO"
	PropertyInstanceID         = "INSTANCE_ID"
	PropertyCorrelationID      = "CORRELATION_ID"
	PropertyReplyToClient      = "REPLY_TO_CLIENT"
	PropertyReplyTTL           = "TTL"
	PropertyReplyArriveTime    = "ARRIVE_TIME"
	PropertyPushReplyTime      = "PUSH_REPLY_TIME"
	PropertyMessageType        = "MSG_TYPE"
	PropertyStartDeliverTime   = "__STARTDELIVERTIME"
	PropertyTimerDelayMillis   = "TIMER_DELAY_MS"
	PropertyTimerDelaySeconds  = "TIMER_DELAY_SEC"
	PropertyTimerDeliverMillis = "TIMER_DELIVER_MS"
)

// SystemProperties are the names that a user's own properties must not have, sorted.
func SystemProperties() []string {
	names := []string{
		PropertyKeys, PropertyTags, PropertyWait, PropertyDelay, PropertyRetryTopic, PropertyRealTopic, PropertyRealQueueID,
		PropertyTransactionPrepared, PropertyProducerGroup, PropertyMinOffset, PropertyMaxOffset, PropertyBuyerID,
		PropertyOriginMessageID, PropertyTransferFlag, PropertyCorrectionFlag, PropertyMQ2Flag, PropertyReconsumeTime,
		PropertyRegion, PropertyTraceSwitch, PropertyUniqueKey, PropertyExtendUniqueInfo, PropertyMaxReconsumeTimes,
		PropertyConsumeStartTime, PropertyPreparedQueueOffset, PropertyTransactionCheckTimes, PropertyCheckImmunityTime,
		PropertyInstanceID, PropertyCorrelationID, PropertyReplyToClient, PropertyReplyTTL, PropertyReplyArriveTime,
		PropertyPushReplyTime, PropertyCluster, PropertyMessageType, PropertyInnerNum, PropertyInnerBase, PropertyMultiDispatch,
		PropertyMultiQueueOffset, PropertyTransactionID, PropertyCRC32, PropertyStartDeliverTime, PropertyTimerDelayMillis,
		PropertyTimerDelaySeconds, PropertyTimerDeliverMillis,
	}
	slices.Sort(names)
	return names
}

// ErrReserved says that a property's name belongs to the system.
var ErrReserved = errors.New("the property's name is reserved")

// SetProperty sets a property of the user's own. Errors match [ErrReserved] or [ErrProperty].
func (m *Message) SetProperty(name, value string) error {
	if slices.Contains(SystemProperties(), name) {
		return ErrReserved
	}
	return m.set(name, value)
}

// Property is the value of a property, "" when it is not there.
func (m *Message) Property(name string) string {
	value, _ := m.Properties.Get(name)
	return value
}

func (m *Message) set(name, value string) error {
	p, err := m.Properties.Set(name, value)
	if err == nil {
		m.Properties = p
	}
	return err
}

// SetTag sets the tag, by which consumers choose messages; "" takes it away.
func (m *Message) SetTag(tag string) error { return m.setOrDelete(PropertyTags, tag) }

// SetKeys sets the keys, by which a broker's index finds the message; none takes them away. A key must not hold a space, which parts
// them.
func (m *Message) SetKeys(keys ...string) error {
	for _, key := range keys {
		if key == "" || strings.Contains(key, " ") {
			return ErrProperty
		}
	}
	return m.setOrDelete(PropertyKeys, strings.Join(keys, " "))
}

func (m *Message) setOrDelete(name, value string) error {
	if value == "" {
		m.Properties = m.Properties.Delete(name)
		return nil
	}
	return m.set(name, value)
}

// SetDelayLevel has the broker deliver the message later: level 1 is 1 s, 2 5 s, 3 10 s, and so on as messageDelayLevel says; 0 is no
// delay.
func (m *Message) SetDelayLevel(level int) {
	if level <= 0 {
		m.Properties = m.Properties.Delete(PropertyDelay)
		return
	}
	_ = m.set(PropertyDelay, strconv.Itoa(level)) // digits are always storable
}

// DelayLevel is the level, 0 for none.
func (m *Message) DelayLevel() int {
	level, err := strconv.Atoi(m.Property(PropertyDelay))
	if err != nil {
		return 0
	}
	return level
}

// SetWait says whether the broker answers after the message is on the device and on its slaves, as far as it is set up for that. The
// default is true.
func (m *Message) SetWait(wait bool) { _ = m.set(PropertyWait, strconv.FormatBool(wait)) } // always storable

// Waits is what SetWait said.
func (m *Message) Waits() bool { return m.Property(PropertyWait) != "false" }

// Keys are the keys.
func (m *Message) Keys() []string { return slices.Collect(Keys(m.Property(PropertyKeys))) }

// TransactionID is the unique id of a message that is or was prepared, "" for any other.
func (m *Message) TransactionID() string {
	if id := m.Property(PropertyTransactionID); id != "" {
		return id
	}
	if m.Property(PropertyTransactionPrepared) == "true" {
		return m.Property(PropertyUniqueKey)
	}
	return ""
}
