package consumequeue

import (
	"errors"
	"fmt"
)

// ErrHole says that a queue offset is so far behind the end of its queue that the units between are not filled.
var ErrHole = errors.New("queue offset too far behind the end of the queue")

// MismatchError says that a queue already has another unit where one was to be appended. Nothing was written.
type MismatchError struct {
	Topic      string
	ID         int32
	Index      int64 // queue offset
	Have, Want Unit
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("queue %s/%d: unit %d is offset %d, size %d, tags code %d; to be appended: offset %d, size %d, tags code %d",
		e.Topic, e.ID, e.Index, e.Have.PhysicalOffset, e.Have.Size, e.Have.TagsCode, e.Want.PhysicalOffset, e.Want.Size, e.Want.TagsCode)
}
