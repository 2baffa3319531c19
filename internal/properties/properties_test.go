package properties_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/properties"
)

func TestParseReadsWhatJavaReads(t *testing.T) { // R-C-08, R-G-01
	text := "# comment\r\n! another\n\n  rocketmqHome = /opt/mq\nlistenPort:9876\nempty=\nalone\nspaced  value with = in it\n" +
		"path=C:\\\\data\\\\x\nlong=one,\\\n   two,\\\n   three\nodd\\=name=v\nsmile=\\ud83d\\ude00\\u0041!\ntab=a\\tb\nlast=end\\"
	pairs, err := properties.Parse(text)
	require.NoError(t, err)
	require.Equal(t, []properties.Pair{
		{Name: "rocketmqHome", Value: "/opt/mq", Line: 4, End: 4},
		{Name: "listenPort", Value: "9876", Line: 5, End: 5},
		{Name: "empty", Line: 6, End: 6},
		{Name: "alone", Line: 7, End: 7},
		{Name: "spaced", Value: "value with = in it", Line: 8, End: 8},
		{Name: "path", Value: `C:\data\x`, Line: 9, End: 9},
		{Name: "long", Value: "one,two,three", Line: 10, End: 12},
		{Name: "odd=name", Value: "v", Line: 13, End: 13},
		{Name: "smile", Value: "😀A!", Line: 14, End: 14},
		{Name: "tab", Value: "a\tb", Line: 15, End: 15},
		{Name: "last", Value: "end", Line: 16, End: 16},
	}, pairs)
}

func TestParseNamesTheLineOfABadEscape(t *testing.T) {
	for _, text := range []string{"a=1\nb=\\u12", "a=1\nb=\\uzzzz"} {
		_, err := properties.Parse(text)
		require.ErrorIs(t, err, properties.ErrSyntax)
		require.ErrorContains(t, err, "line 2")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a=b", "a b", "\\u0041=\\", "x=\\\ny", "#c\n!d", " = "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		pairs, err := properties.Parse(text)
		if err != nil {
			return
		}
		var again []byte
		for _, p := range pairs {
			again = properties.Append(again, p.Name, p.Value)
		}
		back, err := properties.Parse(string(again))
		require.NoError(t, err)
		require.Len(t, back, len(pairs))
		for i := range back {
			require.Equal(t, pairs[i].Name, back[i].Name)
			require.Equal(t, pairs[i].Value, back[i].Value)
		}
	})
}

func ExampleParse() {
	pairs, err := properties.Parse("listenPort = 9876\n# a comment\n")
	fmt.Println(pairs[0].Name, pairs[0].Value, err)
	// Output: listenPort 9876 <nil>
}

func ExampleAppend() {
	fmt.Printf("%s", properties.Append(nil, "rocketmqHome", `C:\mq`))
	// Output: rocketmqHome=C:\\mq
}

func TestEditChangesValuesAndKeepsTheRest(t *testing.T) { // R-G-02
	for _, tt := range []struct{ name, text, want string }{
		{"comments and order stay", "# mine\nsize = 7\n\n! other\nname:x\n", "# mine\nsize=9\n\n! other\nname:x\nnew=a b\n"},
		{"no end of line", "name=x\nsize=7", "name=x\nsize=9\nnew=a b\n"},
		{"of Windows", "size=7\r\nname=x\r\n", "size=9\nname=x\r\nnew=a b\n"},
		{"over several lines", "size=7\\\n  8\\\n  9\nname=x", "size=9\nname=x\nnew=a b\n"},
		{"twice", "size=7\nname=x\nsize=8\n", "size=9\nname=x\nsize=9\nnew=a b\n"},
		{"an open end", "size=7\nname=x\\", "size=9\nname=x\\\n\nnew=a b\n"},
		{"nothing", "", "size=9\nnew=a b\n"},
	} {
		got, err := properties.Edit(tt.text, []properties.Pair{{Name: "size", Value: "8"}, {Name: "new", Value: "a b"}, {Name: "size", Value: "9"}})
		require.NoError(t, err, tt.name)
		require.Equal(t, tt.want, got, tt.name)
	}
	_, err := properties.Edit("a=\\u1", nil)
	require.ErrorIs(t, err, properties.ErrSyntax)
}

func FuzzEdit(f *testing.F) {
	f.Add("a=b\nc=d\\", "c", "e")
	f.Add("\r\ra\\=1\r\n#", "a=", "\\\n")
	f.Add("\ra\\\r", "a=", "b")
	f.Fuzz(func(t *testing.T, text, name, value string) {
		before, err := properties.Parse(text)
		got, editErr := properties.Edit(text, []properties.Pair{{Name: name, Value: value}})
		require.Equal(t, err == nil, editErr == nil)
		if err != nil || strings.TrimSpace(name) == "" {
			return
		}
		after, err := properties.Parse(got)
		require.NoError(t, err)
		found := false
		for i, p := range after {
			if p.Name == name {
				found = true
				require.Equal(t, value, p.Value)
			} else {
				require.Equal(t, before[i].Name+"="+before[i].Value, p.Name+"="+p.Value)
			}
		}
		require.True(t, found)
	})
}

func ExampleEdit() {
	text, err := properties.Edit("# mine\nlistenPort = 9876\n", []properties.Pair{{Name: "listenPort", Value: "9877"}})
	fmt.Printf("%s%v\n", text, err)
	// Output:
	// # mine
	// listenPort=9877
	// <nil>
}
