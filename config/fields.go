package config

import (
	"errors"
	"fmt"
	"strconv"
)

// Lines of RocketMQ, as package dialect names them. A later one is greater.
const (
	line31 = "3.1"
	line49 = "4.9"
	line53 = "5.3"
)

// field ties a member of an object to a variable. The variable's value before reading is the default.
type field struct {
	name  string
	since string // the line that has it
	at    any    // *bool, *int32, *int64, *string, *Map[string, string], or a value that is only written in new objects
}

// decodeFields reads the members that are there and leaves the other variables alone.
func decodeFields(o *value, fields []field) error {
	for _, f := range fields {
		v := o.get(f.name)
		if v == nil || v.kind == literal && v.text == "null" {
			continue
		}
		if err := decodeField(v, f.at); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

var (
	errNoObject  = errors.New("not an object")
	errNoText    = errors.New("not a string")
	errNoBool    = errors.New("not true or false")
	errNoInteger = errors.New("not an integer that fits")
)

func decodeField(v *value, at any) error {
	switch at := at.(type) {
	case *bool:
		if v.kind != literal || v.text != "true" && v.text != "false" {
			return errNoBool
		}
		*at = v.text == "true"
	case *int32:
		n, err := v.integer(32)
		*at = int32(n)
		return err
	case *int64:
		n, err := v.integer(64)
		*at = n
		return err
	case *string:
		if v.kind != text {
			return errNoText
		}
		*at = v.text
	case *Map[string, string]:
		if v.kind != object {
			return errNoObject
		}
		for i := range v.members {
			m := &v.members[i]
			if m.value.kind != text {
				return fmt.Errorf("%s: %w", m.name, errNoText)
			}
			at.Set(m.name, m.value.text)
		}
	}
	return nil
}

func (v *value) integer(bits int) (int64, error) {
	n, err := strconv.ParseInt(v.text, 10, bits)
	if err != nil || v.kind != literal {
		return 0, errNoInteger
	}
	return n, nil
}

// encodeFields makes an object of fields: with the members of the object that was read, known or not, and of the others
// those that have not their default; without one (kind 0), with all that its line has. The members are in order.
func encodeFields(read value, line string, fields, defaults []field) value {
	o := read.clone()
	fresh := o.kind != object
	o.kind = object
	for i, f := range fields {
		v := encodeField(f.at)
		standard := encodeField(defaults[i].at)
		if o.get(f.name) != nil {
			if _, constant := f.at.(value); !constant {
				o.set(f.name, v)
			}
		} else if fresh && f.since <= line || !v.equal(&standard) {
			o.set(f.name, v)
		}
	}
	o.sort()
	return o
}

func encodeField(at any) value {
	switch at := at.(type) {
	case *bool:
		return value{text: strconv.FormatBool(*at)}
	case *int32:
		return integer(int64(*at))
	case *int64:
		return integer(*at)
	case *string:
		return value{kind: text, text: *at}
	case *Map[string, string]:
		o := value{kind: object}
		for name, v := range at.All() {
			o.members = append(o.members, member{name: name, value: value{kind: text, text: v}})
		}
		return o
	case value:
		return at
	}
	panic(fmt.Sprintf("config: a field of type %T", at))
}

func integer(n int64) value { return value{text: strconv.FormatInt(n, 10)} }

// equal compares two values with all their parts.
func (v *value) equal(w *value) bool {
	if v.kind != w.kind || v.text != w.text || len(v.items) != len(w.items) || len(v.members) != len(w.members) {
		return false
	}
	for i := range v.items {
		if !v.items[i].equal(&w.items[i]) {
			return false
		}
	}
	for i := range v.members {
		if v.members[i].name != w.members[i].name || !v.members[i].value.equal(&w.members[i].value) {
			return false
		}
	}
	return true
}
