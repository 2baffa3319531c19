package fastjson

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxDepth is how deep objects and arrays may be nested.
const MaxDepth = 64

// ErrSyntax is the class of every error of a [Reader].
var ErrSyntax = errors.New("not JSON")

// Reader walks one JSON text. The first error is kept: after it every method does nothing and returns a zero value, so
// that a decoder may look at [Reader.Err] once at its end. The methods consume one value each. Strings are parts of the
// text where they hold no escape; clone what must outlive it.
type Reader struct {
	s     string
	pos   int
	depth int
	err   error
}

// NewReader returns a reader at the start of s. Bytes that are not UTF-8 are read as U+FFFD.
func NewReader(s string) *Reader { return &Reader{s: valid(s)} } // small enough to be inlined: the reader stays on the stack

func valid(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return s
}

// Err is the first error, or nil. It matches [ErrSyntax].
func (r *Reader) Err() error { return r.err }

// End makes it an error when anything but white space follows, and returns [Reader.Err].
func (r *Reader) End() error {
	if r.peek(); r.err == nil && r.pos < len(r.s) {
		r.fail("text after the end")
	}
	return r.err
}

// Fail makes err the reader's error if it has none yet; it then matches [ErrSyntax] and err.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: offset %d: %w", ErrSyntax, r.pos, err)
	}
}

func (r *Reader) fail(text string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: offset %d: %s", ErrSyntax, r.pos, text)
	}
}

// peek skips white space and returns the byte there, 0 at the end or after an error.
func (r *Reader) peek() byte {
	if r.err != nil {
		return 0
	}
	for r.pos < len(r.s) {
		switch c := r.s[r.pos]; c {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

// take consumes c if it is next.
func (r *Reader) take(c byte) bool {
	if r.peek() != c || r.err != nil {
		return false
	}
	r.pos++
	return true
}

func (r *Reader) enter() bool {
	if r.depth >= MaxDepth {
		r.fail("nested too deep")
		return false
	}
	r.depth++
	return true
}

// Object reads an object and calls member for each of its members, with the reader before the value. A value that
// member does not consume is skipped. The key of a bare integer is its digits, that of an object its text. A null is an
// object without members.
func (r *Reader) Object(member func(key string)) {
	if r.Null() {
		return
	}
	if !r.take('{') {
		r.fail("an object is expected")
		return
	}
	if !r.enter() {
		return
	}
	for first := true; r.err == nil; first = false {
		if r.take('}') {
			break
		}
		if !first && !r.take(',') {
			r.fail("a comma is expected")
			return
		}
		key := r.key()
		if !r.take(':') {
			r.fail("a colon is expected")
			return
		}
		r.peek()
		if at := r.pos; r.err == nil {
			if member(key); r.pos == at {
				r.Skip()
			}
		}
	}
	r.depth--
}

// Array reads an array and calls element before each of its values, like [Reader.Object].
func (r *Reader) Array(element func()) {
	if r.Null() {
		return
	}
	if !r.take('[') {
		r.fail("an array is expected")
		return
	}
	if !r.enter() {
		return
	}
	for first := true; r.err == nil; first = false {
		if r.take(']') {
			break
		}
		if !first && !r.take(',') {
			r.fail("a comma is expected")
			return
		}
		r.peek()
		if at := r.pos; r.err == nil {
			if element(); r.pos == at {
				r.Skip()
			}
		}
	}
	r.depth--
}

// key reads a member's key in any of the forms that fastjson writes.
func (r *Reader) key() string {
	switch r.peek() {
	case '"', '\'':
		return r.quoted()
	case '{':
		at := r.pos
		r.Skip()
		return r.s[at:r.pos]
	default:
		return r.literal()
	}
}

// Null consumes a null if it is next.
func (r *Reader) Null() bool {
	if r.peek() != 'n' || r.err != nil {
		return false
	}
	if at := r.pos; r.literal() != "null" {
		r.pos = at
		r.fail("unknown word")
		return false
	}
	return true
}

// Text reads a string; a number or a boolean is returned as it is written, a null as "".
func (r *Reader) Text() string {
	switch r.peek() {
	case '"', '\'':
		return r.quoted()
	case '{', '[':
		r.fail("a string is expected")
		return ""
	}
	if r.Null() {
		return ""
	}
	return r.literal()
}

// Clone is [Reader.Text] with a copy of its own, for what outlives the text.
func (r *Reader) Clone() string { return strings.Clone(r.Text()) }

// Int64 reads a whole number; like fastjson it also takes one in quotes. A null is 0.
func (r *Reader) Int64() int64 {
	if r.Null() {
		return 0
	}
	at := r.pos
	n, err := strconv.ParseInt(r.Text(), 10, 64)
	if r.err == nil && err != nil {
		r.pos = at
		r.fail("a whole number is expected")
	}
	return n
}

// Int32 is [Reader.Int64] for 32 bits.
func (r *Reader) Int32() int32 {
	at := r.pos
	n := r.Int64()
	if r.err == nil && int64(int32(n)) != n {
		r.pos = at
		r.fail("the number needs more than 32 bits")
	}
	return int32(n)
}

// Bool reads true or false, in quotes or not. A null is false.
func (r *Reader) Bool() bool {
	at := r.pos
	switch r.Text() {
	case "true":
		return true
	case "false", "":
		return false
	}
	r.pos = at
	r.fail("true or false is expected")
	return false
}

// Skip passes over one value.
func (r *Reader) Skip() {
	switch r.peek() {
	case '{':
		r.Object(func(string) {})
	case '[':
		r.Array(func() {})
	default:
		r.Text()
	}
}

// Raw passes over one value and returns its text.
func (r *Reader) Raw() string {
	r.peek()
	at := r.pos
	r.Skip()
	if r.err != nil {
		return ""
	}
	return r.s[at:r.pos]
}

// literal reads a word or a number: what stands without quotes.
func (r *Reader) literal() string {
	if r.peek(); r.err != nil {
		return ""
	}
	at := r.pos
	for r.pos < len(r.s) && isWord(r.s[r.pos]) {
		r.pos++
	}
	if r.pos == at {
		r.fail("a value is expected")
	}
	return r.s[at:r.pos]
}

func isWord(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '+' || c == '.' ||
		c == '_' || c == '$'
}
