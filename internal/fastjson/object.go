package fastjson

import "strconv"

// Object appends the members of one object and sets the commas. Begin it with [OpenObject]; B is the text so far, and what
// a member's value is appended to after Key.
type Object struct {
	B     []byte
	empty bool
}

// OpenObject begins an object behind b.
func OpenObject(b []byte) Object { return Object{append(b, '{'), true} }

// Key appends a member's key and gives the text, which the caller assigns to B with the value behind it.
func (o *Object) Key(name string) []byte {
	o.Comma()
	return AppendKey(o.B, name)
}

// Comma begins a member whose key is not a string: the caller appends key, colon and value to B.
func (o *Object) Comma() {
	if !o.empty {
		o.B = append(o.B, ',')
	}
	o.empty = false
}

// Text appends a member that is a string.
func (o *Object) Text(name, value string) { o.B = AppendString(o.Key(name), value) }

// Int appends a member that is a number.
func (o *Object) Int(name string, value int64) { o.B = strconv.AppendInt(o.Key(name), value, 10) }

// Bool appends a member that is true or false.
func (o *Object) Bool(name string, value bool) { o.B = strconv.AppendBool(o.Key(name), value) }

// Close gives the whole text.
func (o *Object) Close() []byte { return append(o.B, '}') }

// AppendArray appends an array with one element per item.
func AppendArray[T any](b []byte, items []T, element func(b []byte, item T) []byte) []byte {
	b = append(b, '[')
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = element(b, item)
	}
	return append(b, ']')
}
