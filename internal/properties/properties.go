// Package properties reads and writes Java .properties text, the form of RocketMQ's configuration files and of the bodies
// of the configuration requests (25, 26, 318, 319). Text is UTF-8.
package properties

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// ErrSyntax is the class of every parse error.
var ErrSyntax = errors.New("bad properties")

// Pair is one property.
type Pair struct {
	Name, Value string
	// Line is where it stands, End the last line of it, from 1.
	Line, End int
}

// Parse reads properties in the order of the text. A line that begins with # or ! is a comment; a backslash at its end
// joins the next line; name and value are split by the first =, : or white space; \t, \n, \r, \f and \uXXXX are
// escapes, before any other character a backslash is dropped. Java keeps the last of two properties with one name; all of them are
// returned. Errors match [ErrSyntax] and name the line.
func Parse(text string) ([]Pair, error) {
	var pairs []Pair
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
	for i := 0; i < len(lines); i++ {
		p := Pair{Line: i + 1}
		line := strings.TrimLeft(lines[i], " \t\f")
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		for continues(line) {
			line = line[:len(line)-1]
			if i++; i == len(lines) {
				break
			}
			line += strings.TrimLeft(lines[i], " \t\f")
		}
		name, value := split(line)
		p.End = min(i+1, len(lines))
		var err error
		if p.Name, err = unescape(name); err == nil {
			p.Value, err = unescape(value)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrSyntax, p.Line, err)
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}

// continues says whether the line ends with an odd number of backslashes.
func continues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// split cuts a line at the first separator that is not escaped.
func split(line string) (name, value string) {
	end := len(line)
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			i++
		} else if strings.IndexByte("=: \t\f", line[i]) >= 0 {
			end = i
			break
		}
	}
	value = strings.TrimLeft(line[end:], " \t\f")
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimLeft(value[1:], " \t\f")
	}
	return line[:end], value
}

func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var units []uint16 // of \uXXXX escapes in a row, which may be surrogate pairs
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && s[i+1] == 'u' {
			if i+6 > len(s) {
				return "", errors.New("an escape is cut short")
			}
			n, err := strconv.ParseUint(s[i+2:i+6], 16, 16)
			if err != nil {
				return "", fmt.Errorf("escape %q", s[i:i+6])
			}
			units = append(units, uint16(n))
			i += 5
			continue
		}
		b.WriteString(string(utf16.Decode(units)))
		units = units[:0]
		c := s[i]
		if c == '\\' && i+1 < len(s) {
			i++
			c = unescapeByte(s[i])
		}
		b.WriteByte(c)
	}
	b.WriteString(string(utf16.Decode(units)))
	return b.String(), nil
}

func unescapeByte(c byte) byte {
	switch c {
	case 't':
		return '\t'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 'f':
		return '\f'
	}
	return c
}

// Edit gives the text with other values for some properties, of two for one the last; those that it does not have come to its end.
// All else stays as it is, comments too. Errors are those of [Parse].
func Edit(text string, changes []Pair) (string, error) {
	pairs, err := Parse(text)
	if err != nil {
		return "", err
	}
	values := make(map[string]string, len(changes))
	for _, c := range changes {
		values[c.Name] = c.Value
	}
	lines, next := splitLines(text), 0
	var b []byte
	there := make(map[string]bool, len(changes))
	for _, p := range pairs {
		if value, ok := values[p.Name]; ok {
			there[p.Name] = true
			b = append(b, strings.Join(lines[next:p.Line-1], "")...)
			b = Append(b, p.Name, value)
			next = min(p.End, len(lines))
		}
	}
	rest := strings.Join(lines[next:], "")
	b = append(b, rest...)
	if rest != "" && !strings.HasSuffix(rest, "\n") && !strings.HasSuffix(rest, "\r") {
		b = append(b, '\n')
	}
	if continues(strings.TrimRight(rest, "\r\n")) { // it must not swallow what comes
		if strings.HasSuffix(rest, "\r") {
			b = append(b, '\n') // the two are one end of a line
		}
		b = append(b, '\n')
	}
	for _, c := range changes {
		if !there[c.Name] {
			there[c.Name] = true
			b = Append(b, c.Name, values[c.Name])
		}
	}
	return string(b), nil
}

// splitLines cuts a text behind the ends of its lines.
func splitLines(text string) (lines []string) {
	for text != "" {
		n := strings.IndexAny(text, "\r\n") + 1
		switch {
		case n == 0:
			n = len(text)
		case strings.HasPrefix(text[n-1:], "\r\n"):
			n++
		}
		lines, text = append(lines, text[:n]), text[n:]
	}
	return lines
}

// Append appends one property and a line feed, such that [Parse] gives it back.
func Append(b []byte, name, value string) []byte {
	b = appendEscaped(b, name, "=: #!")
	b = append(b, '=')
	b = appendEscaped(b, value, "")
	return append(b, '\n')
}

func appendEscaped(b []byte, s, special string) []byte {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			b = append(b, '\\', '\\')
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c == '\t':
			b = append(b, '\\', 't')
		case c == '\f':
			b = append(b, '\\', 'f')
		case strings.IndexByte(special, c) >= 0, i == 0 && c == ' ':
			b = append(b, '\\', c)
		default:
			b = append(b, c)
		}
	}
	return b
}
