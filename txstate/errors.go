package txstate

import (
	"errors"
	"fmt"
)

// Errors that callers branch on. Each comes wrapped with the record's number.
var (
	// ErrNotFound says that the table has no record of a number, not yet or not any more, or no open one of an offset
	// (R-B-16).
	ErrNotFound = errors.New("no such transaction record")
	// ErrOtherMessage says that the record of a number is another message's (R-B-14).
	ErrOtherMessage = errors.New("the record is another message's")
	// ErrOtherGroup says that the record is the message's, but another producer group's (R-B-14).
	ErrOtherGroup = errors.New("the record is another producer group's")
	// ErrGap says that a record's number lies so far behind the last that the slots between are not filled unasked.
	ErrGap = errors.New("too many numbers are missing before the record")
)

// MismatchError says that a record was to be appended under a number that another one has. Nothing was written.
type MismatchError struct {
	Number     int64
	Have, Want Record // what is there, what was to be appended
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("record %d is there already and differs: have %+v, want %+v", e.Number, e.Have, e.Want)
}
