package consumer

import (
	"cmp"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/rocketstore/rocketstore/internal/client"
)

// Queue names one queue of a topic on one broker (MessageQueue).
type Queue = client.Queue

// javaName is a queue as Java prints it. The consistent hash strategy computes with it.
func javaName(q Queue) string {
	return "MessageQueue [topic=" + q.Topic + ", brokerName=" + q.BrokerName + ", queueId=" + strconv.FormatInt(int64(q.QueueID), 10) + "]"
}

// CompareQueues orders queues as the original does: by topic, broker, id, the names by UTF-16 code units. All members of a
// group must agree on this order, else they compute shares that overlap.
func CompareQueues(q, r Queue) int {
	return cmp.Or(compareText(q.Topic, r.Topic), compareText(q.BrokerName, r.BrokerName), cmp.Compare(q.QueueID, r.QueueID))
}

// compareText compares as Java's String.compareTo does, by UTF-16 code units: a character beyond U+FFFF comes before those
// from U+E000 on, unlike in the order of bytes.
func compareText(s, t string) int {
	i := 0
	for i < len(s) && i < len(t) && s[i] == t[i] {
		i++
	}
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) { // back to where the characters that differ begin
		i--
	}
	if i == len(s) || i == len(t) {
		return cmp.Compare(len(s), len(t))
	}
	a, _ := utf8.DecodeRuneInString(s[i:])
	b, _ := utf8.DecodeRuneInString(t[i:])
	return cmp.Or(cmp.Compare(firstUnit(a), firstUnit(b)), cmp.Compare(a, b))
}

// firstUnit is the first UTF-16 code unit of a character.
func firstUnit(r rune) rune {
	const surrogates, beyond, bits = 0xD800, 0x10000, 10
	if r < beyond {
		return r
	}
	return surrogates + (r-beyond)>>bits
}

// sortQueues sorts and takes out doubles.
func sortQueues(queues []Queue) []Queue {
	slices.SortFunc(queues, CompareQueues)
	return slices.Compact(queues)
}

// sortClients sorts client ids and takes out doubles.
func sortClients(ids []string) []string {
	slices.SortFunc(ids, compareText)
	return slices.Compact(ids)
}
