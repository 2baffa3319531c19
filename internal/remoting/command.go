package remoting

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Codec is the form of a header, the fifth byte of a frame.
type Codec byte

// The two header codecs.
const (
	JSON   Codec = 0
	Binary Codec = 1
)

// Bits of [Command.Flag].
const (
	FlagResponse int32 = 1
	FlagOneway   int32 = 2
)

// Command is one request or response.
type Command struct {
	// Code is the request's kind or the response's outcome.
	Code int32
	// Language and Version say what the sender is.
	Language Language
	Version  int32
	// Opaque is the number that the requester gave; a response repeats it. It is set when a request is sent.
	Opaque int32
	// Flag holds FlagResponse and FlagOneway.
	Flag int32
	// Remark is the text of an error; "" is the same as none.
	Remark string
	// Fields are the ext fields, the typed header. A nil slice is written as no member at all, an empty one as an empty object,
	// which a Java producer needs in the response to a send.
	Fields Fields
	// Body is what follows the header. A decoded command owns it.
	Body []byte
	// Codec is the form that the header came in and the one that it is written in.
	Codec Codec
}

// NewRequest returns a request of ours: language JAVA (which every peer decodes), JSON header, [Version].
func NewRequest(code int32, fields ...Field) *Command {
	return &Command{Code: code, Version: Version, Fields: fields}
}

// Reply returns a response to c: the same opaque and codec, ext fields empty but there.
func (c *Command) Reply(code int32, fields ...Field) *Command {
	if fields == nil {
		fields = Fields{}
	}
	return &Command{Code: code, Version: Version, Opaque: c.Opaque, Flag: FlagResponse, Fields: fields, Codec: c.Codec}
}

// maxRemark bounds the text of a refusal, bytes: it may quote what was sent, which may be as long as a frame.
const maxRemark = 2 << 10

// Refuse returns a response to c with an error code and its text, which is cut where it is longer than anybody would read.
func (c *Command) Refuse(code int32, format string, args ...any) *Command {
	r := c.Reply(code)
	if r.Remark = fmt.Sprintf(format, args...); len(r.Remark) > maxRemark {
		r.Remark = strings.ToValidUTF8(r.Remark[:maxRemark], "") + "…"
	}
	return r
}

// IsResponse says whether the command answers one.
func (c *Command) IsResponse() bool { return c.Flag&FlagResponse != 0 }

// IsOneway says whether the sender wants no answer. The Go client never sets the bit, so only an answer may depend on
// it, not a meaning.
func (c *Command) IsOneway() bool { return c.Flag&FlagOneway != 0 }

// Field is one ext field.
type Field struct{ Name, Value string }

// String makes a field.
func String(name, value string) Field { return Field{name, value} }

// Int makes a field of a number.
func Int(name string, value int64) Field { return Field{name, strconv.FormatInt(value, 10)} }

// Bool makes a field of a truth value.
func Bool(name string, value bool) Field { return Field{name, strconv.FormatBool(value)} }

// Fields are ext fields in the order in which they were given or read. Of two with one name the last counts, as in
// Java's map.
type Fields []Field

// Lookup finds a field.
func (f Fields) Lookup(name string) (value string, ok bool) {
	for _, field := range slices.Backward(f) {
		if field.Name == name {
			return field.Value, true
		}
	}
	return "", false
}

// Get is Lookup where absent and empty are one.
func (f Fields) Get(name string) string {
	value, _ := f.Lookup(name)
	return value
}

// Set replaces a field or appends it.
func (f *Fields) Set(name, value string) {
	f.Delete(name)
	*f = append(*f, Field{name, value})
}

// Delete removes a field.
func (f *Fields) Delete(name string) {
	*f = slices.DeleteFunc(*f, func(g Field) bool { return g.Name == name })
}

// ErrField says that an ext field is missing or is not what it should be.
var ErrField = errors.New("bad header field")

// FieldReader reads typed fields and keeps the first error. Methods that begin with Opt return their default for an
// absent field; all others make it an error. Errors match [ErrField] and name the field.
type FieldReader struct {
	fields Fields
	err    error
}

// Reader starts a [FieldReader].
func (f Fields) Reader() *FieldReader { return &FieldReader{fields: f} }

// Err is the first error, or nil.
func (r *FieldReader) Err() error { return r.err }

func (r *FieldReader) fail(name, text string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s %s", ErrField, name, text)
	}
}

func (r *FieldReader) required(name string) (string, bool) {
	v, ok := r.fields.Lookup(name)
	if !ok {
		r.fail(name, "is missing")
	}
	return v, ok
}

// Text reads a string, which may be empty.
func (r *FieldReader) Text(name string) string {
	v, _ := r.required(name)
	return v
}

// Int64 reads a number.
func (r *FieldReader) Int64(name string) int64 {
	if v, ok := r.required(name); ok {
		return r.number(name, v, 64)
	}
	return 0
}

// Int32 reads a number of 32 bits.
func (r *FieldReader) Int32(name string) int32 {
	if v, ok := r.required(name); ok {
		return int32(r.number(name, v, 32))
	}
	return 0
}

// OptInt64 reads a number that may be absent or empty.
func (r *FieldReader) OptInt64(name string, absent int64) int64 {
	if v := r.fields.Get(name); v != "" {
		return r.number(name, v, 64)
	}
	return absent
}

// OptInt32 reads a number of 32 bits that may be absent or empty.
func (r *FieldReader) OptInt32(name string, absent int32) int32 {
	if v := r.fields.Get(name); v != "" {
		return int32(r.number(name, v, 32))
	}
	return absent
}

// OptBool reads a truth value; as in Java everything but "true" is false.
func (r *FieldReader) OptBool(name string) bool { return r.fields.Get(name) == "true" }

func (r *FieldReader) number(name, v string, bits int) int64 {
	n, err := strconv.ParseInt(v, 10, bits)
	if err != nil {
		r.fail(name, "is no number: "+strconv.Quote(v))
	}
	return n
}
