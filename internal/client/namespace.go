package client

import "strings"

// Prefixes of the names that belong to a group.
const (
	RetryPrefix = "%RETRY%"
	DLQPrefix   = "%DLQ%"
)

// BrokersOwn says whether a topic is one to which only brokers write.
func BrokersOwn(topic string) bool {
	switch topic {
	case "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC",
		"SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT":
		return true
	}
	return false
}

// SystemTopic says whether a topic belongs to the brokers or the clients themselves; a namespace does not touch it.
func SystemTopic(topic string) bool {
	switch topic {
	case "TBW102", "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC":
		return true
	}
	return BrokersOwn(topic) || strings.HasPrefix(topic, "rmq_sys_")
}

// Namespace is put before topics and groups; "" changes nothing.
type Namespace string

// Wrap puts the namespace before a topic's or group's name: NS%T, %RETRY%NS%G. A name that has it stays.
func (n Namespace) Wrap(name string) string {
	if n == "" || name == "" || SystemTopic(name) || strings.HasPrefix(name, "CID_RMQ_SYS_") {
		return name
	}
	prefix, rest := splitPrefix(name)
	if strings.HasPrefix(rest, string(n)+"%") {
		return name
	}
	return prefix + string(n) + "%" + rest
}

// Unwrap takes the namespace away.
func (n Namespace) Unwrap(name string) string {
	if n == "" {
		return name
	}
	prefix, rest := splitPrefix(name)
	if rest, ok := strings.CutPrefix(rest, string(n)+"%"); ok {
		return prefix + rest
	}
	return name
}

func splitPrefix(name string) (prefix, rest string) {
	for _, prefix := range []string{RetryPrefix, DLQPrefix} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return prefix, rest
		}
	}
	return "", name
}
