package namesrv

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rocketstore/rocketstore/internal/route"
)

// maxName bounds names and addresses, bytes.
const maxName = 255

// errName says that a name cannot be one.
var errName = errors.New("bad name")

// checkName refuses what would spoil logs, files and other peers' parsers: nothing, too much, control characters.
func checkName(kind, s string) error {
	switch {
	case s == "":
		return fmt.Errorf("%w: %s is empty", errName, kind)
	case len(s) > maxName:
		return fmt.Errorf("%w: %s has %d bytes, at most %d are allowed", errName, kind, len(s), maxName)
	}
	for i, c := range s {
		if unicode.IsControl(c) || c == utf8.RuneError {
			return fmt.Errorf("%w: %s %q has character %U at %d", errName, kind, s, c, i)
		}
	}
	return nil
}

// checkAddr refuses what is not host:port.
func checkAddr(kind, s string) error {
	if err := checkName(kind, s); err != nil {
		return err
	}
	colon := strings.LastIndexByte(s, ':')
	if colon <= 0 {
		return fmt.Errorf("%w: %s %q is not host:port", errName, kind, s)
	}
	if _, err := strconv.ParseUint(s[colon+1:], 10, 16); err != nil || strings.ContainsAny(s, " ,;\"") {
		return fmt.Errorf("%w: %s %q is not host:port", errName, kind, s)
	}
	return nil
}

// checkTopics looks at each topic of a registration.
func checkTopics(topics []route.TopicConfig) error {
	for i := range topics {
		t := &topics[i]
		if err := checkName("topic", t.Name); err != nil {
			return err
		}
		if err := checkQueues(t.Name, t.ReadQueueNums, t.WriteQueueNums); err != nil {
			return err
		}
	}
	return nil
}

// checkQueues refuses what clients could not count.
func checkQueues(topic string, read, write int32) error {
	if read < 0 || write < 0 {
		return fmt.Errorf("%w: topic %s has %d read and %d write queues", errName, topic, read, write)
	}
	return nil
}
