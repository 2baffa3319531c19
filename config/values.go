package config

import (
	"fmt"
	"strconv"
)

// maxValues bounds how many values of one file are told apart.
const maxValues = 1 << 20

// Values gives each literal and text of a file by its path from the top, "offsetTable.T@G.0", as it is spelt, a text as Go quotes it;
// an object or array without members is "{}" or "[]". Of several members of one name the last one counts, as for the broker. b is as the
// original or this module writes it. The error says what cannot be read, and is a [*DamageError] for name.
func Values(name string, b []byte) (map[string]string, error) {
	if len(b) > maxFile {
		return nil, damage(name, fmt.Errorf("%d bytes, more than %d", len(b), maxFile))
	}
	v, err := parse(string(b))
	if err != nil {
		return nil, damage(name, err)
	}
	out := make(map[string]string)
	if !v.flatten("", out) {
		return nil, damage(name, fmt.Errorf("more than %d values", maxValues))
	}
	return out, nil
}

// flatten adds the values below v, whose path is given, and says whether there were not too many.
func (v *value) flatten(path string, out map[string]string) bool {
	below := func(name string) string {
		if path == "" {
			return name
		}
		return path + "." + name
	}
	switch {
	case v.kind == object && len(v.members) > 0:
		for i := range v.members {
			if !v.members[i].value.flatten(below(v.members[i].name), out) {
				return false
			}
		}
		return true
	case v.kind == array && len(v.items) > 0:
		for i := range v.items {
			if !v.items[i].flatten(below(strconv.Itoa(i)), out) {
				return false
			}
		}
		return true
	}
	if len(out) >= maxValues {
		return false
	}
	switch v.kind {
	case object:
		out[path] = "{}"
	case array:
		out[path] = "[]"
	case text:
		out[path] = strconv.Quote(v.text)
	case literal:
		out[path] = v.text
	}
	return true
}
