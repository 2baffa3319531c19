package fastjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/fastjson"
)

func TestReaderTakesKeysWithoutQuotesAndObjectsAsKeys(t *testing.T) { // R-C-48
	got := map[string]string{}
	r := fastjson.NewReader(` { 0 : "10.0.0.1:10911", "1":'b', {"brokerName":"b","queueId":0}:{"x":[1,{}]}, -7:null } `)
	r.Object(func(key string) { got[key] = r.Raw() })
	require.NoError(t, r.End())
	require.Equal(t, map[string]string{
		"0": `"10.0.0.1:10911"`, "1": `'b'`, `{"brokerName":"b","queueId":0}`: `{"x":[1,{}]}`, "-7": "null",
	}, got)
}

func TestReaderSkipsWhatTheCallerDoesNotRead(t *testing.T) {
	r := fastjson.NewReader(`{"a":[1,2,{"b":"}"}],"n":5,"c":[true,[],"]"]}`)
	n := int64(0)
	r.Object(func(key string) {
		if key == "n" {
			n = r.Int64()
		}
	})
	require.NoError(t, r.End())
	require.Equal(t, int64(5), n)
}

func TestReaderReadsScalars(t *testing.T) {
	r := fastjson.NewReader(`["12",12,-3,null,true,"false",null,1.5,"x"]`)
	var got []any
	reads := []func(){
		func() { got = append(got, r.Int64()) }, func() { got = append(got, r.Int32()) },
		func() { got = append(got, r.Int64()) }, func() { got = append(got, r.Int64()) },
		func() { got = append(got, r.Bool()) }, func() { got = append(got, r.Bool()) },
		func() { got = append(got, r.Bool()) }, func() { got = append(got, r.Text()) },
		func() { got = append(got, r.Clone()) },
	}
	r.Array(func() { reads[len(got)]() })
	require.NoError(t, r.End())
	require.Equal(t, []any{int64(12), int32(12), int64(-3), int64(0), true, false, false, "1.5", "x"}, got)
}

func TestReaderTakesTheEscapesOfOldVersions(t *testing.T) {
	for text, want := range map[string]string{
		`"a\u0001b\u0002"`:   "a\x01b\x02",
		`"\"\\\/\'\b\f\n\r"`: "\"\\/'\b\f\n\r",
		`"\t\v\0\7\x41"`:     "\t\v\x00\x07A",
		`"\ud83d\ude00!"`:    "😀!",
		`"\ud83d!"`:          "\uFFFD!",
		"\"\xff\"":           "\uFFFD",
		`'it"s'`:             `it"s`,
	} {
		r := fastjson.NewReader(text)
		require.Equal(t, want, r.Text(), text)
		require.NoError(t, r.End())
	}
}

func TestReaderRejects(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":              ``,
		"open object":          `{`,
		"open array":           `[1`,
		"open string":          `"a`,
		"open escape":          `"a\`,
		"half unicode":         `"\u00`,
		"unknown escape":       `"\q"`,
		"member without colon": `{"a" 1}`,
		"member without value": `{"a":}`,
		"comma at the end":     `{"a":1,}`,
		"no comma":             `["a""b"]`,
		"text behind":          `{} {}`,
		"stray bracket":        `]`,
		"word like null":       `nul`,
		"too deep":             strings.Repeat("[", fastjson.MaxDepth+1),
		"too deep in a key":    strings.Repeat("{", fastjson.MaxDepth+1),
	} {
		t.Run(name, func(t *testing.T) {
			r := fastjson.NewReader(text)
			r.Skip()
			require.ErrorIs(t, r.End(), fastjson.ErrSyntax)
		})
	}
}

func TestReaderRejectsTheWrongKind(t *testing.T) {
	for name, read := range map[string]func(r *fastjson.Reader){
		"word for a number":   func(r *fastjson.Reader) { r.Int64() },
		"object for a number": func(r *fastjson.Reader) { r.Object(func(string) { r.Int64() }) },
		"number for a bool":   func(r *fastjson.Reader) { r.Array(func() { r.Bool() }) },
		"word for an object":  func(r *fastjson.Reader) { r.Object(func(string) {}) },
		"word for an array":   func(r *fastjson.Reader) { r.Array(func() {}) },
	} {
		t.Run(name, func(t *testing.T) {
			text := map[byte]string{'w': `word`, 'o': `{"a":{}}`, 'n': `[3]`}[name[0]]
			r := fastjson.NewReader(text)
			read(r)
			require.ErrorIs(t, r.End(), fastjson.ErrSyntax)
		})
	}
	r := fastjson.NewReader(`4294967296`)
	r.Int32()
	require.ErrorContains(t, r.End(), "32 bits")
}

func TestFirstErrorIsKept(t *testing.T) {
	r, mine := fastjson.NewReader(`{"a":1}`), errors.New("perm is not 0 to 7")
	r.Object(func(string) { r.Fail(mine) })
	r.Skip()
	require.ErrorIs(t, r.End(), mine)
	require.ErrorIs(t, r.Err(), fastjson.ErrSyntax)
}

func FuzzReader(f *testing.F) {
	for _, s := range []string{
		`{0:"a",1:"b"}`, `{{"a":1}:[2]}`, `"\ud83d\ude00"`, `[null,true,-1.5e3]`, `{"a":{"b":[{}]}}`, `'\x41'`, "{\"\xff\":1}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := fastjson.NewReader(s)
		r.Skip()
		err := r.End()
		if json.Valid([]byte(s)) && strings.Count(s, "[")+strings.Count(s, "{") <= fastjson.MaxDepth {
			require.NoError(t, err)
		}
		r = fastjson.NewReader(s)
		r.Object(func(string) { r.Array(func() { r.Int32() }) })
		_ = r.End()
	})
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", `a"b\c`, "\x00\x1f\n\t\r", "😀\xff\u2028", "KEYS\x01k\x02"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := string(fastjson.AppendString(nil, s))
		var std string
		require.NoError(t, json.Unmarshal([]byte(text), &std))
		r := fastjson.NewReader(text)
		require.Equal(t, std, r.Text())
		require.NoError(t, r.End())
		require.Equal(t, strings.ToValidUTF8(s, "\uFFFD") == s, std == s)
	})
}

func ExampleReader() {
	r := fastjson.NewReader(`{"brokerName":"broker-a","brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"}}`)
	r.Object(func(key string) {
		if key == "brokerAddrs" {
			r.Object(func(id string) { fmt.Println(id, r.Text()) })
		}
	})
	fmt.Println(r.End())
	// Output:
	// 0 10.0.0.1:10911
	// 1 10.0.0.2:10911
	// <nil>
}

func ExampleAppendIntKey() {
	b := fastjson.AppendIntKey([]byte("{"), 0, true)
	b = append(fastjson.AppendString(b, "10.0.0.1:10911"), '}')
	fmt.Printf("%s\n", b)
	// Output: {0:"10.0.0.1:10911"}
}

func ExampleObject() {
	o := fastjson.OpenObject(nil)
	o.Text("topic", `a"b`)
	o.Int("queueId", 3)
	o.Bool("order", true)
	o.B = fastjson.AppendArray(o.Key("tags"), []string{"a", "b"}, fastjson.AppendString)
	fmt.Println(string(o.Close()))
	// Output: {"topic":"a\"b","queueId":3,"order":true,"tags":["a","b"]}
}
