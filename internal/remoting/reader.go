package remoting

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// FrameReader reads commands from a stream.
type FrameReader struct {
	src  io.Reader
	max  int
	buf  []byte // what was read and not yet taken is buf[r:w]
	r, w int
	full bool // the last read filled the buffer: there is more than fits
	// take is asked before a frame grows beyond its first step; a false ends the frame with errOverload.
	take  func(bytes int) bool
	taken int64 // bytes ever granted by take
	// room is asked before the buffer grows from one size to the other, and told when it shrinks. Nil: it never grows.
	room func(bytes int) bool
}

// Sizes of a reader's buffer, bytes: what every connection has, and what one gets that sends more at once.
const (
	smallRead = 4 << 10
	largeRead = 64 << 10
)

// NewFrameReader returns a reader of frames whose L is at most maxFrame, [MaxFrame] if that is 0.
func NewFrameReader(r io.Reader, maxFrame int) *FrameReader {
	if maxFrame <= 0 {
		maxFrame = MaxFrame
	}
	return &FrameReader{src: r, max: maxFrame, buf: make([]byte, smallRead)}
}

// Next reads one command. At the end of the stream it returns io.EOF between two frames and io.ErrUnexpectedEOF within
// one. Errors about the bytes match [ErrFrame].
func (f *FrameReader) Next() (*Command, error) {
	frame, lent, err := f.next()
	if err != nil {
		return nil, err
	}
	c, err := DecodeFrame(frame)
	if err == nil && lent {
		c.own()
	}
	return c, err
}

// own gives a command whose body lies in a reader's buffer a body of its own.
func (c *Command) own() { c.Body = bytes.Clone(c.Body) }

// wait returns when a byte is there.
func (f *FrameReader) wait() error { return f.fill(1) }

// fill reads until n bytes are there, which must fit the buffer.
func (f *FrameReader) fill(n int) error {
	for empty := 0; f.w-f.r < n; empty++ {
		if f.full && len(f.buf) < largeRead && f.room != nil && f.room(largeRead) {
			f.move(largeRead)
		} else if f.r > 0 {
			f.w, f.r = copy(f.buf, f.buf[f.r:f.w]), 0
		}
		got, err := f.src.Read(f.buf[f.w:])
		f.w += got
		f.full = f.w == len(f.buf)
		switch {
		case f.w-f.r >= n:
			return nil
		case err != nil:
			return err
		case got > 0:
			empty = 0
		case empty > maxEmptyReads:
			return io.ErrNoProgress
		}
	}
	return nil
}

// maxEmptyReads is how often a reader may give nothing in a row and say nothing.
const maxEmptyReads = 100

func (f *FrameReader) move(size int) {
	b := make([]byte, size)
	f.w = copy(b, f.buf[f.r:f.w])
	f.buf, f.r = b, 0
}

// leave leaves the buffer to whom a frame in it was lent, and goes on with another.
func (f *FrameReader) leave() { f.move(len(f.buf)) }

// shrink gives a large buffer back, if what it holds fits a small one.
func (f *FrameReader) shrink() {
	if len(f.buf) == largeRead && f.w-f.r <= smallRead {
		f.move(smallRead)
		f.room(-largeRead)
	}
}

// close gives back what a large buffer was counted as. Nothing is read any more.
func (f *FrameReader) close() {
	if len(f.buf) == largeRead {
		f.buf, f.r, f.w = nil, 0, 0
		f.room(-largeRead)
	}
}

// next reads the bytes behind one length. Lent ones are valid until the next read.
func (f *FrameReader) next() (frame []byte, lent bool, err error) {
	err = f.fill(4)
	switch {
	case errors.Is(err, io.EOF) && f.w > f.r:
		return nil, false, io.ErrUnexpectedEOF
	case err != nil:
		return nil, false, err
	}
	length := int32(binary.BigEndian.Uint32(f.buf[f.r:]))
	f.r += 4
	if length < 4 || int64(length) > int64(f.max) {
		return nil, false, fmt.Errorf("%w: length %d is not 4 to %d", ErrFrame, length, f.max)
	}
	if n := int(length); n <= len(f.buf) {
		if err := f.fill(n); err != nil {
			return nil, false, unexpected(err)
		}
		f.r += n
		return f.buf[f.r-n : f.r : f.r], true, nil
	}
	frame, err = f.body(int(length))
	return frame, false, err
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// firstStep is what a frame may allocate for its length alone. More is allocated as bytes come in.
const firstStep = 64 << 10

// errOverload says that the frames being read hold all the memory that they may.
var errOverload = errors.New("too many large frames at once")

// body reads a frame that does not fit the buffer.
func (f *FrameReader) body(length int) ([]byte, error) {
	b := make([]byte, min(length, firstStep))
	filled := copy(b, f.buf[f.r:f.w])
	f.r += filled
	for {
		n, err := io.ReadFull(f.src, b[filled:])
		filled += n
		if err != nil || filled == length {
			return b, unexpected(err)
		}
		more := min(length-filled, len(b))
		if f.take != nil && !f.take(more) {
			return nil, errOverload
		}
		f.taken += int64(more)
		b = append(make([]byte, 0, filled+more), b...)[:filled+more]
	}
}
