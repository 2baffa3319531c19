package config

import "strings"

// format writes a value as fastjson does with pretty printing.
func format(v *value) []byte { return appendValue(nil, v, 0) }

func appendValue(b []byte, v *value, depth int) []byte {
	switch v.kind {
	case text:
		return appendText(b, v.text)
	case array:
		return appendArray(b, v, depth)
	case object:
		return appendObject(b, v, depth)
	}
	return append(b, v.text...)
}

func appendLine(b []byte, depth int) []byte {
	b = append(b, '\n')
	for range depth {
		b = append(b, '\t')
	}
	return b
}

func appendObject(b []byte, v *value, depth int) []byte {
	b = append(b, '{')
	for i := range v.members {
		m := &v.members[i]
		if i > 0 {
			b = append(b, ',')
		}
		if m.bare {
			b = append(b, m.name...)
		} else {
			b = appendText(appendLine(b, depth+1), m.name)
		}
		b = append(b, ':')
		b = appendValue(b, &m.value, depth+1)
	}
	if len(v.members) > 0 {
		b = appendLine(b, depth)
	}
	return append(b, '}')
}

// appendArray writes a Java list with each item on a line of its own, and a set or an array of numbers on one line.
func appendArray(b []byte, v *value, depth int) []byte {
	inner := depth
	if v.spread {
		inner++
	}
	b = append(b, '[')
	for i := range v.items {
		if i > 0 {
			b = append(b, ',')
		}
		if v.spread {
			b = appendLine(b, inner)
		}
		b = appendValue(b, &v.items[i], inner)
	}
	if v.spread {
		b = appendLine(b, depth)
	}
	return append(b, ']')
}

// appendText writes a string with the escapes that JSON needs, and no others.
func appendText(b []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	b = append(b, '"')
	for i := range len(s) {
		c := s[i]
		switch at := strings.IndexByte("\"\\\b\f\n\r\t", c); {
		case at >= 0:
			b = append(b, '\\', `"\bfnrt`[at])
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
