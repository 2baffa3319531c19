package remoting

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"unicode/utf8"
)

// fitsBinary says whether the binary header can hold c.
func fitsBinary(c *Command) bool {
	if int32(int16(c.Code)) != c.Code || int32(int16(c.Version)) != c.Version {
		return false
	}
	for _, f := range c.Fields {
		if len(f.Name) > math.MaxInt16 {
			return false
		}
	}
	return true
}

func appendBinary(b []byte, c *Command) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(c.Code))
	b = append(b, byte(c.Language))
	b = binary.BigEndian.AppendUint16(b, uint16(c.Version))
	b = binary.BigEndian.AppendUint32(b, uint32(c.Opaque))
	b = binary.BigEndian.AppendUint32(b, uint32(c.Flag))
	b = binary.BigEndian.AppendUint32(b, uint32(len(c.Remark)))
	b = append(b, c.Remark...)
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	for _, f := range c.Fields {
		b = binary.BigEndian.AppendUint16(b, uint16(len(f.Name)))
		b = append(b, f.Name...)
		b = binary.BigEndian.AppendUint32(b, uint32(len(f.Value)))
		b = append(b, f.Value...)
	}
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

var errBinary = errors.New("a binary header that ends too early or too late")

// cursor reads integers and strings with checked lengths; after the first shortage everything is zero.
type cursor struct {
	s     string
	short bool
}

func (c *cursor) take(n int) string {
	if n < 0 || n > len(c.s) {
		c.s, c.short = "", true
		return ""
	}
	part := c.s[:n]
	c.s = c.s[n:]
	return part
}

func (c *cursor) uint(bytes int) (v uint32) {
	for _, x := range []byte(c.take(bytes)) {
		v = v<<8 | uint32(x)
	}
	return v
}

// text reads a string behind its length of the given size.
func (c *cursor) text(bytes int) string {
	n := int32(c.uint(bytes))
	if bytes == 2 {
		n = int32(int16(n))
	}
	s := c.take(int(n))
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return s
}

// decodeBinary reads the binary header, which must fill header exactly. The strings are parts of header. No ext fields
// at all are an empty list. Fields is the place for them while they are enough.
func decodeBinary(c *Command, header string, fields Fields) error {
	r := &cursor{s: header}
	c.Code = int32(int16(r.uint(2)))
	c.Language = Language(r.uint(1))
	c.Version = int32(int16(r.uint(2)))
	c.Opaque = int32(r.uint(4))
	c.Flag = int32(r.uint(4))
	c.Remark = r.text(4)
	size := int32(r.uint(4))
	if r.short || int(size) != len(r.s) {
		return errBinary
	}
	c.Fields = fields[:0]
	for r.s != "" {
		if len(c.Fields) == maxFields {
			return errFields
		}
		name := r.text(2)
		value := r.text(4)
		if r.short {
			return errBinary
		}
		c.Fields = append(c.Fields, Field{name, value})
	}
	return nil
}
