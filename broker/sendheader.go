package broker

import (
	"fmt"
	"strconv"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// sendRequest is the typed header of 10, 310 and 320.
type sendRequest struct {
	group, topic, defaultTopic string
	defaultQueues, queueID     int32
	sysFlag                    message.SysFlag
	born                       int64
	flag                       int32
	properties                 message.Properties
	reconsumeTimes             int32
	maxReconsumeTimes          int32 // -1: not given
	batch                      bool
}

// sendField is a field of that header, in the order of the letters that version 2 has for names.
type sendField int

const (
	sendGroup sendField = iota
	sendTopic
	sendDefaultTopic
	sendDefaultQueues
	sendQueueID
	sendSysFlag
	sendBorn
	sendFlag
	sendProperties
	sendReconsumeTimes
	sendUnitMode
	sendMaxReconsumeTimes
	sendBatch
	sendFieldCount
)

// longName is what version 1 calls a field.
func (f sendField) longName() string {
	return [...]string{
		"producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag", "bornTimestamp", "flag", "properties",
		"reconsumeTimes", "unitMode", "maxReconsumeTimes", "batch",
	}[f]
}

// isLong says whether a request code has the names of version 1.
func isLong(code int32) bool {
	return code == remoting.SendMessage || code == remoting.SendReplyMessage
}

// nameIn is what requests of a code call a field.
func (f sendField) nameIn(code int32) string {
	if isLong(code) {
		return f.longName()
	}
	return "abcdefghijklm"[f : f+1]
}

// sendHeader has the fields of a request by their kind, so that each of them is looked at once. The first error is kept.
type sendHeader struct {
	code   int32
	values [sendFieldCount]string
	there  [sendFieldCount]bool
	err    error
}

func (h *sendHeader) pick(req *remoting.Command) {
	h.code = req.Code
	long := isLong(req.Code)
	for i := range req.Fields { // of two with one name the last counts
		name := req.Fields[i].Name
		var f sendField
		switch {
		case long:
			f = longField(name)
		case len(name) == 1:
			f = sendField(name[0]) - 'a'
		default:
			continue
		}
		if f >= 0 && f < sendFieldCount {
			h.values[f], h.there[f] = req.Fields[i].Value, true
		}
	}
}

// longField is the field of that name, sendFieldCount if there is none.
func longField(name string) sendField {
	for f := range sendFieldCount {
		if f.longName() == name {
			return f
		}
	}
	return sendFieldCount
}

func (h *sendHeader) fail(f sendField, text string) {
	if h.err == nil {
		h.err = fmt.Errorf("%w: %s %s", remoting.ErrField, f.nameIn(h.code), text)
	}
}

func (h *sendHeader) text(f sendField) string {
	if !h.there[f] {
		h.fail(f, "is missing")
	}
	return h.values[f]
}

func (h *sendHeader) number(f sendField, bits int) int64 {
	v := h.text(f)
	n, err := strconv.ParseInt(v, 10, bits)
	if err != nil {
		h.fail(f, "is no number: "+strconv.Quote(v))
	}
	return n
}

func (h *sendHeader) int32(f sendField) int32 { return int32(h.number(f, 32)) }

// optional reads a number that may be absent or empty.
func (h *sendHeader) optional(f sendField, absent int32) int32 {
	if h.values[f] == "" {
		return absent
	}
	return h.int32(f)
}

// readSend reads the header. An error matches remoting.ErrField.
func readSend(req *remoting.Command) (*sendRequest, error) {
	var h sendHeader
	h.pick(req)
	s := &sendRequest{
		group: h.text(sendGroup), topic: h.text(sendTopic), defaultTopic: h.text(sendDefaultTopic), defaultQueues: h.int32(sendDefaultQueues),
		queueID: h.int32(sendQueueID), sysFlag: message.SysFlag(h.int32(sendSysFlag)), born: h.number(sendBorn, 64), flag: h.int32(sendFlag),
		properties:     message.Properties(h.values[sendProperties]),
		reconsumeTimes: h.optional(sendReconsumeTimes, 0), maxReconsumeTimes: h.optional(sendMaxReconsumeTimes, -1),
		batch: h.values[sendBatch] == "true" || req.Code == remoting.SendBatchMessage,
	}
	return s, h.err
}
