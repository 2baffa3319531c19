package route

import (
	"slices"
	"strconv"

	"github.com/rocketstore/rocketstore/internal/fastjson"
)

// standardSince is the version ordinal (4.9.4) from which Java asks for standard JSON.
const standardSince = 401

// Form is how JSON is written for a peer. The zero value is standard JSON.
type Form struct {
	// BareKeys leaves the quotes of integer keys away, and adds topicSynFlag, the name that peers before 4.9 know.
	BareKeys bool
}

// FormFor is the form for a peer's version ordinal and its acceptStandardJsonOnly field.
func FormFor(version int32, standardOnly bool) Form {
	return Form{BareKeys: version < standardSince && !standardOnly}
}

// object appends members between braces and sets the commas.
type object struct {
	b     []byte
	empty bool
}

func openObject(b []byte) object { return object{append(b, '{'), true} }

func (o *object) key(name string) []byte {
	o.comma()
	return fastjson.AppendKey(o.b, name)
}

func (o *object) comma() {
	if !o.empty {
		o.b = append(o.b, ',')
	}
	o.empty = false
}

func (o *object) text(name, value string) { o.b = fastjson.AppendString(o.key(name), value) }
func (o *object) int(name string, value int64) {
	o.b = strconv.AppendInt(o.key(name), value, 10)
}
func (o *object) bool(name string, value bool) { o.b = strconv.AppendBool(o.key(name), value) }

func (o *object) close() []byte { return append(o.b, '}') }

// appendArray appends one element per item.
func appendArray[T any](b []byte, items []T, element func(b []byte, item T) []byte) []byte {
	b = append(b, '[')
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = element(b, item)
	}
	return append(b, ']')
}

// appendTexts appends an array of strings.
func appendTexts(b []byte, texts []string) []byte {
	return appendArray(b, texts, fastjson.AppendString)
}

// appendMap appends an object of a map, sorted by key.
func appendMap[T any](b []byte, m map[string]T, value func(b []byte, v T) []byte) []byte {
	o := openObject(b)
	for _, k := range sortedKeys(m) {
		o.b = value(o.key(k), m[k])
	}
	return o.close()
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// readTexts reads an array of strings.
func readTexts(r *fastjson.Reader) (texts []string) {
	r.Array(func() { texts = append(texts, r.Clone()) })
	return texts
}
