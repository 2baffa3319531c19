package route

import (
	"slices"

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

// appendTexts appends an array of strings.
func appendTexts(b []byte, texts []string) []byte {
	return fastjson.AppendArray(b, texts, fastjson.AppendString)
}

// appendMap appends an object of a map, sorted by key.
func appendMap[T any](b []byte, m map[string]T, value func(b []byte, v T) []byte) []byte {
	o := fastjson.OpenObject(b)
	for _, k := range sortedKeys(m) {
		o.B = value(o.Key(k), m[k])
	}
	return o.Close()
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
