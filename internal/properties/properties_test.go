package properties_test

import (
	"fmt"
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
		{Name: "rocketmqHome", Value: "/opt/mq", Line: 4},
		{Name: "listenPort", Value: "9876", Line: 5},
		{Name: "empty", Line: 6},
		{Name: "alone", Line: 7},
		{Name: "spaced", Value: "value with = in it", Line: 8},
		{Name: "path", Value: `C:\data\x`, Line: 9},
		{Name: "long", Value: "one,two,three", Line: 10},
		{Name: "odd=name", Value: "v", Line: 13},
		{Name: "smile", Value: "😀A!", Line: 14},
		{Name: "tab", Value: "a\tb", Line: 15},
		{Name: "last", Value: "end", Line: 16},
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
