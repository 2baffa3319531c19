package remoting

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
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
	c := &Command{}
	if err := c.decode(b, make(Fields, 0, usualFields)); err != nil {
		return nil, err
	}
	return c, nil
}

// usualFields is how many ext fields a request has at most, as a rule.
const usualFields = 16

// decode is DecodeFrame into c, with fields as the place for its ext fields while they are enough.
func (c *Command) decode(b []byte, fields Fields) error {
	if len(b) < 4 {
		return fmt.Errorf("%w: %d bytes, shorter than the header's length", ErrFrame, len(b))
	}
	word := binary.BigEndian.Uint32(b)
	codec, header := Codec(word>>24), int(word&maxHeader)
	if b = b[4:]; header > len(b) {
		return fmt.Errorf("%w: header of %d bytes in a frame with %d left", ErrFrame, header, len(b))
	}
	*c = Command{Codec: codec, Body: b[header:]}
	var err error
	switch codec {
	case JSON:
		err = decodeJSON(c, string(b[:header]), fields)
	case Binary:
		err = decodeBinary(c, string(b[:header]), fields)
	default:
		err = fmt.Errorf("unknown header codec %d", codec)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFrame, err)
	}
	if len(c.Body) == 0 {
		c.Body = nil
	}
	return nil
}

// scratch is where the frames of one connection are decoded, one after the other: who keeps a command takes it.
type scratch struct {
	cmd    Command
	fields [usualFields]Field
}

func (s *scratch) decode(frame []byte) (*Command, error) {
	err := s.cmd.decode(frame, s.fields[:0])
	return &s.cmd, err
}

// taken is a command of its own with what was decoded. Body says that its body lies where the next frame will be.
func (s *scratch) taken(lent bool) *Command {
	c := s.cmd
	c.Fields = slices.Clone(c.Fields)
	if lent {
		c.own()
	}
	return &c
}

// clear forgets what was decoded, whose header may be large.
func (s *scratch) clear() { *s = scratch{} }
