package config

import (
	"cmp"
	"slices"
)

// kind is what a JSON value is.
type kind int

const (
	literal kind = iota // a number, true, false or null, as it is spelt
	text
	array
	object
)

// value is one JSON value with all that is needed to write it as it was.
type value struct {
	kind    kind
	text    string // of a literal or a text
	items   []value
	spread  bool // an array with each item on a line of its own
	members []member
}

// member is an entry of an object.
type member struct {
	name  string
	bare  bool // an integer key without quotes
	value value
}

// get gives the member of a name; of several the last one counts, as for the broker.
func (v *value) get(name string) *value {
	for i := range slices.Backward(v.members) {
		if v.members[i].name == name {
			return &v.members[i].value
		}
	}
	return nil
}

// set replaces the member of a name, or adds it at the end.
func (v *value) set(name string, to value) {
	if at := v.get(name); at != nil {
		*at = to
		return
	}
	v.members = append(v.members, member{name: name, value: to})
}

// sort puts the members in the order of their names, as an object (and not a map) has them.
func (v *value) sort() {
	slices.SortStableFunc(v.members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
}

// clone copies v so far that setting its members does not change the original.
func (v value) clone() value {
	v.members = slices.Clone(v.members)
	return v
}
