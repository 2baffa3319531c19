package remoting

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// MaxFrame is the default limit of L, the length that a frame claims for itself, as in 4.x and 5.x (8 MiB in 3.1).
const MaxFrame = 16 << 20

// ErrFrame is the class of everything that cannot be a frame. The connection that sent it is closed, since nothing says
// where the next one would begin.
var ErrFrame = errors.New("bad frame")

const maxHeader = 1<<24 - 1

// maxFields bounds the ext fields of one header. Real ones have less than forty; in memory a field is many times as large as the
// shortest one is in a frame, and each look at one passes over all.
const maxFields = 1024

var errFields = fmt.Errorf("a header of more than %d ext fields", maxFields)

// AppendFrame appends the whole frame of c. It falls back to JSON where the binary header cannot hold a value: a code or
// version above 32767, a field name of that length.
func AppendFrame(b []byte, c *Command) ([]byte, error) {
	start := len(b)
	codec := c.Codec
	if codec != Binary || !fitsBinary(c) {
		codec = JSON
	}
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	if codec == Binary {
		b = appendBinary(b, c)
	} else {
		b = appendJSON(b, c)
	}
	header := len(b) - start - 8
	if header > maxHeader {
		return b[:start], fmt.Errorf("%w: a header of %d bytes", ErrFrame, header)
	}
	b = append(b, c.Body...)
	length := len(b) - start - 4
	if length > math.MaxInt32 {
		return b[:start], fmt.Errorf("%w: %d bytes", ErrFrame, length)
	}
	binary.BigEndian.PutUint32(b[start:], uint32(length))
	binary.BigEndian.PutUint32(b[start+4:], uint32(codec)<<24|uint32(header))
	return b, nil
}

// DecodeFrame decodes what follows a frame's first four bytes: the word with codec and header length, the header, the
// body. The command's Body is the rest of b. Errors match [ErrFrame].
func DecodeFrame(b []byte) (*Command, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("%w: %d bytes, shorter than the header's length", ErrFrame, len(b))
	}
	word := binary.BigEndian.Uint32(b)
	codec, header := Codec(word>>24), int(word&maxHeader)
	if b = b[4:]; header > len(b) {
		return nil, fmt.Errorf("%w: header of %d bytes in a frame with %d left", ErrFrame, header, len(b))
	}
	c := &Command{Codec: codec, Body: b[header:]}
	var err error
	switch codec {
	case JSON:
		err = decodeJSON(c, string(b[:header]))
	case Binary:
		err = decodeBinary(c, string(b[:header]))
	default:
		err = fmt.Errorf("unknown header codec %d", codec)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	if len(c.Body) == 0 {
		c.Body = nil
	}
	return c, nil
}

// FrameReader reads commands from a stream.
type FrameReader struct {
	r   *bufio.Reader
	max int
	// take is asked before a buffer grows beyond its first step; a false ends the frame with errOverload.
	take  func(bytes int) bool
	taken int64 // bytes ever granted by take
}

// NewFrameReader returns a reader of frames whose L is at most maxFrame, [MaxFrame] if that is 0.
func NewFrameReader(r io.Reader, maxFrame int) *FrameReader {
	if maxFrame <= 0 {
		maxFrame = MaxFrame
	}
	return &FrameReader{r: bufio.NewReaderSize(r, 4096), max: maxFrame}
}

// Next reads one command. At the end of the stream it returns io.EOF between two frames and io.ErrUnexpectedEOF within
// one. Errors about the bytes match [ErrFrame].
func (f *FrameReader) Next() (*Command, error) {
	frame, err := f.next()
	if err != nil {
		return nil, err
	}
	return DecodeFrame(frame)
}

// wait returns when a byte is there.
func (f *FrameReader) wait() error {
	_, err := f.r.Peek(1)
	return err
}

// next reads the bytes behind one length.
func (f *FrameReader) next() ([]byte, error) {
	head, err := f.r.Peek(4)
	switch {
	case err == io.EOF && len(head) > 0:
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	}
	length := int32(binary.BigEndian.Uint32(head))
	if _, err := f.r.Discard(len(head)); err != nil {
		return nil, err
	}
	if length < 4 || int64(length) > int64(f.max) {
		return nil, fmt.Errorf("%w: length %d is not 4 to %d", ErrFrame, length, f.max)
	}
	return f.body(int(length))
}

// firstStep is what a frame may allocate for its length alone. More is allocated as bytes come in.
const firstStep = 64 << 10

// errOverload says that the frames being read hold all the memory that they may.
var errOverload = errors.New("too many large frames at once")

func (f *FrameReader) body(length int) ([]byte, error) {
	b := make([]byte, min(length, firstStep))
	for filled := 0; ; {
		n, err := io.ReadFull(f.r, b[filled:])
		filled += n
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil || filled == length {
			return b, err
		}
		more := min(length-filled, len(b))
		if f.take != nil && !f.take(more) {
			return nil, errOverload
		}
		f.taken += int64(more)
		b = append(make([]byte, 0, filled+more), b...)[:filled+more]
	}
}
