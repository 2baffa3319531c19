package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/config"
)

func TestFormIsThatOfFastjson(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"empty object", ` { } `, `{}`},
		{"members", `{"b":1,"a":"x"}`, "{\n\t\"b\":1,\n\t\"a\":\"x\"\n}"},
		{"bare keys", `{"t":{0:5, -3:7}}`, "{\n\t\"t\":{0:5,-3:7\n\t}\n}"},
		{"objects below bare keys", `{1:{"a":{}}}`, "{1:{\n\t\t\"a\":{}\n\t}\n}"},
		{"list on one line", `{"a":[1, "x" ,[]]}`, "{\n\t\"a\":[1,\"x\",[]]\n}"},
		{"list on many lines", "[\n1,2]", "[\n\t1,\n\t2\n]"},
		{"literals", `[true,false,null,-1.5e+3,0]`, `[true,false,null,-1.5e+3,0]`},
		{"escapes", `"\"\\\/\b\f\n\r\t\u0001\u6c49\ud83d\ude00"`, `"\"\\/\b\f\n\r\t\u0001汉😀"`},
		{"escapes of old versions", `"\v\0\7\x0B\'"`, `"\u000B\u0000\u0007\u000B'"`},
		{"half of a pair", `"\ud83dx\ud83d\u0041"`, `"` + "�" + `x` + "�" + `"`},
		{"bytes that are no UTF-8", "\"\xD6\xD0\"", "\"\xD6\xD0\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := config.Rewrite([]byte(tt.text))
			require.NoError(t, err)
			require.Equal(t, tt.want, string(got))
			again, err := config.Rewrite(got)
			require.NoError(t, err)
			require.Equal(t, tt.want, string(again))
		})
	}
}

func TestParseRejects(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "empty"},
		{"\x00", "zero bytes"},
		{"{", "the text ends where '}' should follow"},
		{"[1", "the text ends where ',' should follow"},
		{`{"a"`, "the text ends where ':' should follow"},
		{`{"a":`, "the text ends where a value should follow"},
		{`{"a":1,}`, "no name where a member should start"},
		{`{a:1}`, "no name where a member should start"},
		{`{-:1}`, "a key without digits"},
		{`{"a":1 "b":2}`, `'"' where ',' should follow`},
		{`{"a" 1}`, "'1' where ':' should follow"},
		{`[1,]`, "']' where a value should follow"},
		{`nul`, "'n' where a value should follow"},
		{`-`, "'-' where a value should follow"},
		{`1.`, "'1' where a value should follow"},
		{`1e`, "'1' where a value should follow"},
		{`{} x`, "more text"},
		{"{}\x00\x00", "more text"},
		{`"abc`, "ends inside of a string"},
		{`"abc\n`, "ends inside of a string"},
		{`"abc\`, "ends inside of a string"},
		{"\"a\x00\"", "control character 0x00"},
		{"\"\\n\n\"", "control character 0x0a"},
		{`"\q"`, `unknown escape \q`},
		{`"\u12"`, "a digit is missing"},
		{`"\xg0"`, "a digit is missing"},
		{strings.Repeat("[", 100), "nested deeper than 64"},
	} {
		_, err := config.Rewrite([]byte(tt.text))
		require.ErrorContains(t, err, tt.want, "%q", tt.text)
	}
}
