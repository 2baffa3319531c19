package message_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rocketstore/rocketstore/message"
)

type pair struct{ name, value string }

func all(p message.Properties) []pair {
	var pairs []pair
	for name, value := range p.All() {
		pairs = append(pairs, pair{name, value})
	}
	return pairs
}

func old(p message.Properties) []pair {
	var pairs []pair
	for name, value := range p.Old() {
		pairs = append(pairs, pair{name, value})
	}
	return pairs
}

func TestPropertiesAreReadByTheRulesOfBothLines(t *testing.T) {
	for _, tt := range []struct {
		name     string
		text     message.Properties
		all, old []pair
	}{
		{"nothing", "", nil, nil},
		{"last 0x02", "a\x011\x02b\x012\x02", []pair{{"a", "1"}, {"b", "2"}}, []pair{{"a", "1"}, {"b", "2"}}},
		{"no last 0x02", "a\x011\x02b\x012", []pair{{"a", "1"}, {"b", "2"}}, []pair{{"a", "1"}, {"b", "2"}}},
		{"twice", "a\x011\x02a\x012\x02", []pair{{"a", "1"}, {"a", "2"}}, []pair{{"a", "1"}, {"a", "2"}}},
		{"0x01 in the value", "a\x011\x012\x02b\x013", []pair{{"a", "1\x012"}, {"b", "3"}}, []pair{{"b", "3"}}},
		{"0x01 behind the value", "a\x011\x01\x02", []pair{{"a", "1\x01"}}, []pair{{"a", "1"}}},
		{"empty value", "a\x01\x02b\x013\x02", []pair{{"b", "3"}}, []pair{{"b", "3"}}},
		{"empty name", "\x011\x02b\x013\x02", []pair{{"b", "3"}}, []pair{{"", "1"}, {"b", "3"}}},
		{"no 0x01", "word\x02\x02\x02b\x013\x02", []pair{{"b", "3"}}, []pair{{"b", "3"}}},
		{"only separators", "\x01\x02\x01\x01\x02\x02", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.all, all(tt.text))
			require.Equal(t, tt.old, old(tt.text))
		})
	}
}

func TestOfSeveralValuesTheLastCounts(t *testing.T) {
	p := message.Properties("a\x011\x02b\x012\x02a\x013")
	got, ok := p.Get("a")
	require.True(t, ok)
	require.Equal(t, "3", got)
	require.Equal(t, "3", string(message.Lookup([]byte(p), "a")))
	require.Equal(t, map[string]string{"a": "3", "b": "2"}, p.Map())
	_, ok = p.Get("c")
	require.False(t, ok)
	require.Nil(t, message.Lookup([]byte(p), "c"))
}

func TestSetKeepsThePlaceAndTheRestOfTheText(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"the last one", "a\x011\x02b\x012", "a\x011\x02b\x01X"},
		{"the first one", "b\x011\x02a\x012", "b\x01X\x02a\x012"},
		{"several", "b\x011\x02a\x012\x02b\x013", "b\x01X\x02a\x012\x02"},
		{"a new one", "a\x011\x02", "a\x011\x02b\x01X\x02"},
		{"a new one behind an open end", "a\x011", "a\x011\x02b\x01X\x02"},
		{"the only one", "", "b\x01X\x02"},
		{"behind what is no pair", "junk", "junk\x02b\x01X\x02"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := message.Properties(tt.text).Set("b", "X")
			require.NoError(t, err)
			require.Equal(t, message.Properties(tt.want), p)
		})
	}
}

func TestDeleteTakesEveryPairOfTheName(t *testing.T) {
	p := message.Properties("b\x011\x02a\x012\x02b\x013\x02junk\x02c\x014")
	require.Equal(t, message.Properties("a\x012\x02junk\x02c\x014"), p.Delete("b"))
	require.Equal(t, p, p.Delete("x"))
	require.Equal(t, message.Properties(""), message.Properties("b\x011").Delete("b"))
}

func TestWhatHasNoEscapeIsRefused(t *testing.T) {
	for _, tt := range []pair{{"", "v"}, {"n", ""}, {"n\x01", "v"}, {"n", "v\x02"}, {"\x02", "v"}} {
		_, err := message.Properties("").Set(tt.name, tt.value)
		require.ErrorIs(t, err, message.ErrProperty)
		_, err = message.NewProperties(tt.name, tt.value)
		require.ErrorIs(t, err, message.ErrProperty)
	}
	_, err := message.NewProperties("name without a value")
	require.ErrorIs(t, err, message.ErrProperty)
}

func TestKeysAreTheWordsBetweenSpaces(t *testing.T) {
	require.Equal(t, []string{"k1", "k2", "汉\tx"}, slices.Collect(message.Keys("  k1 k2   汉\tx ")))
	require.Empty(t, slices.Collect(message.Keys("  ")))
	for range message.Keys("a b") {
		break
	}
}

func TestTagIsAProperty(t *testing.T) {
	p, err := message.NewProperties(message.PropertyTags, "TagA")
	require.NoError(t, err)
	require.Equal(t, "TagA", (&message.Message{Properties: p}).Tag())
	require.Empty(t, (&message.Message{}).Tag())
}

// The model is a list of pairs, kept in the way that the comments of Set and Delete say.
func TestPropertiesFollowASimpleModel(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b", "KEYS", "TAGS", "汉"})
	values := rapid.StringMatching(`[a-z 汉]{1,6}`)
	rapid.Check(t, func(t *rapid.T) {
		var p message.Properties
		var model []pair
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				require.Equal(t, model, all(p))
				require.Equal(t, model, old(p))
				m := p.Map()
				for _, name := range []string{"a", "b", "KEYS", "TAGS", "汉"} {
					got, ok := p.Get(name)
					value, inMap := m[name]
					at := slices.IndexFunc(model, func(p pair) bool { return p.name == name })
					require.Equal(t, at >= 0, ok)
					require.Equal(t, ok, inMap)
					require.Equal(t, got, value)
					require.Equal(t, got, string(message.Lookup([]byte(p), name)))
					if ok {
						require.Equal(t, model[at].value, got)
					}
				}
			},
			"set": func(t *rapid.T) {
				name, value := names.Draw(t, "name"), values.Draw(t, "value")
				next, err := p.Set(name, value)
				require.NoError(t, err)
				p = next
				if at := slices.IndexFunc(model, func(p pair) bool { return p.name == name }); at >= 0 {
					model[at].value = value
				} else {
					model = append(model, pair{name, value})
				}
			},
			"delete": func(t *rapid.T) {
				name := names.Draw(t, "name")
				p = p.Delete(name)
				model = slices.DeleteFunc(model, func(p pair) bool { return p.name == name })
				if len(model) == 0 {
					model = nil
				}
			},
			"lose the last separator": func(*rapid.T) { p = message.Properties(strings.TrimSuffix(string(p), "\x02")) },
		})
	})
}

func TestNewPropertiesKeepsTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringMatching(`[A-Za-z_ #汉]{1,8}`)).Draw(t, "words")
		words = words[:len(words)-len(words)%2]
		p, err := message.NewProperties(words...)
		require.NoError(t, err)
		var got []string
		for name, value := range p.All() {
			got = append(got, name, value)
		}
		require.Len(t, got, len(words))
		require.True(t, slices.Equal(words, got))
	})
}

func TestReadingPropertiesDoesNotAllocate(t *testing.T) {
	p := message.Properties("UNIQ_KEY\x017F00\x02TAGS\x01TagA\x02KEYS\x01k1 k2\x02")
	b := []byte(p)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		tag, ok := p.Get("TAGS")
		n := 0
		for range p.All() {
			n++
		}
		for range message.Keys("k1 k2") {
			n++
		}
		if !ok || tag != "TagA" || n != 5 || message.Lookup(b, "KEYS") == nil {
			t.Fatal("wrong")
		}
	}))
}

func FuzzProperties(f *testing.F) {
	f.Add("a\x011\x02b\x012\x02", "b", "x")
	f.Add("\x01\x02\x01\x01\x02junk", "junk", "x")
	f.Fuzz(func(t *testing.T, text, name, value string) {
		p := message.Properties(text)
		want, ok := "", false
		for n, v := range p.All() {
			require.NotEmpty(t, n)
			require.NotEmpty(t, v)
			if n == name {
				want, ok = v, true
			}
		}
		got, found := p.Get(name)
		require.Equal(t, ok, found)
		require.Equal(t, want, got)
		require.Equal(t, want, string(message.Lookup([]byte(text), name)))

		gone := p.Delete(name)
		_, found = gone.Get(name)
		require.False(t, found)
		set, err := p.Set(name, value)
		if err != nil {
			require.ErrorIs(t, err, message.ErrProperty)
			return
		}
		got, found = set.Get(name)
		require.True(t, found)
		require.Equal(t, value, got)
		require.Equal(t, all(gone), all(set.Delete(name)))
	})
}

func BenchmarkPropertiesGet(b *testing.B) {
	p := message.Properties("UNIQ_KEY\x017F0000013E445FFD2B27949CBE450000\x02CLUSTER\x01Default\x02KEYS\x01k1 k2\x02TAGS\x01TagA")
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		p.Get(message.PropertyTags)
	}
}

// Rewrite is Delete and then the new pairs behind, byte for byte, whatever the list looks like.
func TestRewriteIsDeleteAndAppend(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	pieces := []string{"WAIT", "KEYS", "true", "\x01", "\x01", "\x02", "\x02", "WAIT\x01true\x02", "XWAIT\x01y\x02", ""}
	more, err := message.NewProperties("CLUSTER", "c", "TRACE_ON", "true")
	require.NoError(t, err)
	for range 20_000 {
		var b strings.Builder
		for range random.IntN(8) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		text := b.String()
		p := message.Properties(text)
		require.Equal(t, p.Delete("WAIT"), p.Rewrite("WAIT", ""), "%q", text)
		want := string(p.Delete("WAIT"))
		if want != "" && !strings.HasSuffix(want, "\x02") {
			want += "\x02"
		}
		require.Equal(t, want+string(more), string(p.Rewrite("WAIT", more)), "%q", text)
		require.Equal(t, p, p.Rewrite("", ""))
		require.Equal(t, strings.Contains(text, "WAIT"), p.Mentions("WAIT"))
	}
}
