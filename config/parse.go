package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxNodes bounds how many values a file may have: each takes some hundred bytes of memory, and in a file as little as two.
const maxNodes = 4 << 20

// maxDepth is how deep values may be nested.
const maxDepth = 64

// syntaxError says where a text is not what it should be.
type syntaxError struct {
	offset int64
	text   string
}

func (e *syntaxError) Error() string { return e.text }

var (
	errEmpty = errors.New("the file is empty")
	errZeros = errors.New("the file holds zero bytes only")
)

// parse reads a whole file: JSON, and besides it what fastjson writes, that is bare integer keys and the escapes \v, \0
// to \7 and \xHH of its old versions.
func parse(s string) (value, error) {
	switch {
	case strings.Trim(s, " \t\r\n") == "":
		return value{}, errEmpty
	case strings.Trim(s, "\x00") == "":
		return value{}, errZeros
	}
	p := parser{s: s}
	v := p.value(0)
	if p.space(); p.err == nil && p.pos < len(s) {
		p.fail("more text behind the end")
	}
	if p.err != nil {
		return value{}, p.err
	}
	return v, nil
}

// parser walks a text; the first error is kept and ends it.
type parser struct {
	s     string
	pos   int
	nodes int
	err   error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = &syntaxError{int64(p.pos), fmt.Sprintf(format, args...)}
	}
	p.pos = len(p.s)
}

func (p *parser) space() {
	for p.pos < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.pos]) >= 0 {
		p.pos++
	}
}

// next is the next byte that is not white space, 0 at the end.
func (p *parser) next() byte {
	p.space()
	if p.pos == len(p.s) {
		return 0
	}
	return p.s[p.pos]
}

func (p *parser) expect(c byte) {
	switch got := p.next(); {
	case got == c && p.pos < len(p.s):
		p.pos++
	case p.pos == len(p.s):
		p.fail("the text ends where %q should follow", c)
	default:
		p.fail("%q where %q should follow", got, c)
	}
}

func (p *parser) value(depth int) value {
	if depth > maxDepth {
		p.fail("nested deeper than %d", maxDepth)
		return value{}
	}
	if p.nodes++; p.nodes > maxNodes {
		p.fail("more than %d values", maxNodes)
		return value{}
	}
	switch c := p.next(); c {
	case '{':
		return p.object(depth)
	case '[':
		return p.array(depth)
	case '"':
		return value{kind: text, text: p.quoted()}
	default:
		return value{text: p.literal()}
	}
}

func (p *parser) object(depth int) value {
	v := value{kind: object}
	p.expect('{')
	for p.err == nil && p.next() != '}' {
		if len(v.members) > 0 {
			p.expect(',')
		}
		var m member
		switch c := p.next(); {
		case c == '"':
			m.name = p.quoted()
		case c == '-' || c >= '0' && c <= '9':
			m.name, m.bare = p.integer(), true
		case p.pos == len(p.s):
			p.fail("the text ends where '}' should follow")
		default:
			p.fail("no name where a member should start")
		}
		p.expect(':')
		m.value = p.value(depth + 1)
		v.members = append(v.members, m)
	}
	p.expect('}')
	return v
}

func (p *parser) array(depth int) value {
	v := value{kind: array}
	p.expect('[')
	v.spread = p.pos < len(p.s) && p.s[p.pos] == '\n'
	for p.err == nil && p.next() != ']' {
		if len(v.items) > 0 {
			p.expect(',')
		}
		v.items = append(v.items, p.value(depth+1))
	}
	p.expect(']')
	return v
}

// integer reads a bare key.
func (p *parser) integer() string {
	start := p.pos
	if p.s[p.pos] == '-' {
		p.pos++
	}
	if p.digits() == 0 {
		p.fail("a key without digits")
		return ""
	}
	return p.s[start:p.pos]
}

func (p *parser) digits() (n int) {
	for p.pos < len(p.s) && p.s[p.pos] >= '0' && p.s[p.pos] <= '9' {
		p.pos++
		n++
	}
	return n
}

func (p *parser) literal() string {
	start := p.pos
	for _, word := range []string{"true", "false", "null"} {
		if strings.HasPrefix(p.s[p.pos:], word) {
			p.pos += len(word)
			return word
		}
	}
	if p.pos < len(p.s) && p.s[p.pos] == '-' {
		p.pos++
	}
	ok := p.digits() > 0
	if ok && p.pos < len(p.s) && p.s[p.pos] == '.' {
		p.pos++
		ok = p.digits() > 0
	}
	if ok && p.pos < len(p.s) && (p.s[p.pos] == 'e' || p.s[p.pos] == 'E') {
		p.pos++
		if p.pos < len(p.s) && (p.s[p.pos] == '+' || p.s[p.pos] == '-') {
			p.pos++
		}
		ok = p.digits() > 0
	}
	if !ok {
		p.pos = start
		if start == len(p.s) {
			p.fail("the text ends where a value should follow")
		} else {
			p.fail("%q where a value should follow", p.s[start])
		}
		return ""
	}
	return p.s[start:p.pos]
}

// quoted reads a string. Bytes that are no UTF-8 stay as they are: 3.1 writes in its platform's charset.
func (p *parser) quoted() string {
	p.pos++
	start := p.pos
	for p.pos < len(p.s) {
		switch c := p.s[p.pos]; {
		case c == '"':
			p.pos++
			return p.s[start : p.pos-1]
		case c == '\\':
			return p.escaped(start)
		case c < ' ':
			p.fail("control character %#02x inside of a string", c)
			return ""
		}
		p.pos++
	}
	p.fail("the text ends inside of a string")
	return ""
}

// escaped reads the rest of a string that has a backslash at the present place.
func (p *parser) escaped(start int) string {
	var b strings.Builder
	b.WriteString(p.s[start:p.pos])
	for p.pos < len(p.s) {
		c := p.s[p.pos]
		p.pos++
		switch {
		case c == '"':
			return b.String()
		case c < ' ':
			p.pos--
			p.fail("control character %#02x inside of a string", c)
		case c != '\\':
			b.WriteByte(c)
		default:
			p.escape(&b)
		}
	}
	p.fail("the text ends inside of a string")
	return ""
}

// The meaning of one-letter escapes stands at the same place as their letter.
const (
	escapeLetters = `"\/bfnrtv'`
	escapeMeaning = "\"\\/\b\f\n\r\t\v'"
)

// escape reads what follows a backslash.
func (p *parser) escape(b *strings.Builder) {
	if p.pos == len(p.s) {
		return
	}
	c := p.s[p.pos]
	if i := strings.IndexByte(escapeLetters, c); i >= 0 {
		p.pos++
		b.WriteByte(escapeMeaning[i])
		return
	}
	switch {
	case c >= '0' && c <= '7':
		p.pos++
		b.WriteByte(c - '0')
	case c == 'x':
		p.pos++
		b.WriteRune(p.hex(2))
	case c == 'u':
		p.pos++
		r := p.hex(4)
		if utf16.IsSurrogate(r) {
			low := rune(utf8.RuneError)
			if strings.HasPrefix(p.s[p.pos:], `\u`) {
				p.pos += 2
				low = p.hex(4)
			}
			r = utf16.DecodeRune(r, low)
		}
		b.WriteRune(r)
	default:
		p.fail("unknown escape \\%c", c)
	}
}

// hex reads n hex digits.
func (p *parser) hex(n int) (r rune) {
	for range n {
		c := byte(0)
		if p.pos < len(p.s) {
			c = p.s[p.pos]
		}
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			p.fail("a digit is missing in an escape")
			return 0
		}
		p.pos++
	}
	return r
}
