package fastjson

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted reads a string in double or single quotes.
func (r *Reader) quoted() string {
	quote := r.s[r.pos]
	at := r.pos + 1
	for i := at; i < len(r.s); i++ {
		switch r.s[i] {
		case quote:
			r.pos = i + 1
			return r.s[at:i]
		case '\\':
			return r.escaped(at, i, quote)
		}
	}
	r.fail("a string without an end")
	return ""
}

// escaped reads the rest of a string that began at at and has its first backslash at i.
func (r *Reader) escaped(at, i int, quote byte) string {
	var b strings.Builder
	b.Grow(min(len(r.s)-at, 128)) // a message's properties fit, mostly
	b.WriteString(r.s[at:i])
	for i < len(r.s) {
		c := r.s[i]
		if c == quote {
			r.pos = i + 1
			return b.String()
		}
		if c != '\\' {
			end := i + 1
			for end < len(r.s) && r.s[end] != '\\' && r.s[end] != quote {
				end++
			}
			b.WriteString(r.s[i:end])
			i = end
			continue
		}
		ch, n := unescape(r.s[i:])
		if n == 0 {
			r.pos = i
			r.fail("an unknown escape")
			return ""
		}
		b.WriteRune(ch)
		i += n
	}
	r.fail("a string without an end")
	return ""
}

// unescape decodes the escape at the start of s and says how many bytes it took, 0 if it is none.
func unescape(s string) (rune, int) {
	if len(s) < 2 {
		return 0, 0
	}
	switch c := s[1]; c {
	case '"', '\\', '/', '\'':
		return rune(c), 2
	case 'b':
		return '\b', 2
	case 'f', 'F':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'v':
		return '\v', 2
	case '0', '1', '2', '3', '4', '5', '6', '7':
		return rune(c - '0'), 2
	case 'x':
		if ch, ok := hex(s, 2, 2); ok {
			return ch, 4
		}
	case 'u':
		return unescapeUnicode(s)
	}
	return 0, 0
}

// unescapeUnicode decodes one \uXXXX, or two that make a surrogate pair; half a pair is U+FFFD.
func unescapeUnicode(s string) (rune, int) {
	ch, ok := hex(s, 2, 4)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(ch) {
		return ch, 6
	}
	if len(s) > 7 && s[6] == '\\' && s[7] == 'u' {
		if low, ok := hex(s, 8, 4); ok {
			if pair := utf16.DecodeRune(ch, low); pair != utf8.RuneError {
				return pair, 12
			}
		}
	}
	return utf8.RuneError, 6
}

func hex(s string, from, digits int) (ch rune, ok bool) {
	if len(s) < from+digits {
		return 0, false
	}
	for _, c := range []byte(s[from : from+digits]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		ch = ch<<4 | rune(c)
	}
	return ch, true
}

const hexDigits = "0123456789abcdef"

// AppendString appends s to b as a JSON string in double quotes. Nothing but quotes, backslashes and control characters
// is escaped; bytes that are not UTF-8 become U+FFFD.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			ch, n := utf8.DecodeRuneInString(s[i:])
			if ch == utf8.RuneError && n == 1 {
				b = append(append(b, s[from:i]...), "\uFFFD"...)
				from = i + 1
			}
			i += n
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			b = appendEscape(append(b, s[from:i]...), c)
			from = i + 1
		}
		i++
	}
	return append(append(b, s[from:]...), '"')
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	default:
		return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
	}
}

// AppendKey appends a member's key and its colon.
func AppendKey(b []byte, key string) []byte { return append(AppendString(b, key), ':') }

// AppendIntKey appends an integer key and its colon; bare leaves the quotes away, as fastjson does.
func AppendIntKey(b []byte, key int64, bare bool) []byte {
	if bare {
		return append(strconv.AppendInt(b, key, 10), ':')
	}
	b = append(b, '"')
	return append(strconv.AppendInt(b, key, 10), '"', ':')
}
