// Package trace is the message trace: what producers and consumers note of each message, in the text form that RocketMQ's
// clients send to a topic of its own, and the timeline that the notes of one message make.
//
// A trace message is an ordinary message to RMQ_SYS_TRACE_TOPIC, or to a topic of the user's. Its KEYS are the ids and the keys of
// all messages that it tells of. Its body is one record after another; fields are parted by the byte 0x01, and each record ends with
// 0x02:
//
//	Pub             time region group topic id tags keys storeHost bodyLength cost type offsetID success [clientHost]
//	SubBefore       time region group requestID id retryTimes keys [clientHost]
//	SubAfter        requestID id cost success keys code [time group]
//	EndTransaction  time region group topic id tags keys storeHost type transactionID state fromCheck
//	Recall          time region group topic id success
//
// each after its name. An absent text is the four letters null, as Java writes it. Times and costs are milliseconds.
package trace
