package consumer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rocketstore/rocketstore/message"
)

// ErrExpression says that a subscription expression is not one of tags.
var ErrExpression = errors.New("subscription expression")

// everything is the expression that takes all messages.
const everything = "*"

// Subscription is what a consumer wants of one topic.
type Subscription struct {
	Topic string
	// Expression is as it was given; "" has become "*".
	Expression string
	// Tags and Codes are the tags and their Java hash codes, in the order of the expression; none means all messages.
	Tags  []string
	Codes []int32
	// Version is when it was last changed, Unix milliseconds. The broker refuses a pull with a higher one than it knows.
	Version int64
}

// ParseSubscription reads "tag1 || tag2"; "*" and "" take everything. SQL92 expressions are not supported: one would be read
// as a tag. An error matches [ErrExpression]: no tag is left.
func ParseSubscription(topic, expression string) (*Subscription, error) {
	s := &Subscription{Topic: topic, Expression: expression}
	if expression == "" || expression == everything {
		s.Expression = everything
		return s, nil
	}
	for tag := range strings.SplitSeq(expression, "||") {
		tag = strings.TrimFunc(tag, func(r rune) bool { return r <= ' ' }) // Java's trim
		if tag != "" && !slices.Contains(s.Tags, tag) {
			s.Tags = append(s.Tags, tag)
			s.Codes = append(s.Codes, message.HashString(tag))
		}
	}
	if len(s.Tags) == 0 {
		return nil, fmt.Errorf("%w of topic %s: no tag in %q", ErrExpression, topic, expression)
	}
	return s, nil
}

// Takes says whether a message with that tag is wanted. The broker compares hash codes only, so the client looks again.
func (s *Subscription) Takes(tag string) bool {
	return len(s.Tags) == 0 || tag != "" && slices.Contains(s.Tags, tag)
}
