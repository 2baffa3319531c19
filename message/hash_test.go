package message_test

import (
	"math"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rocketstore/rocketstore/message"
)

// The numbers are what Java prints for the same text. R-E-041, R-E-052.
func TestHashStringIsJavasHashCode(t *testing.T) {
	for text, want := range map[string]int32{
		"": 0, "A": 65, "TagA": 2598919, "T#k1": 2539445, "Aa": 2112, "BB": 2112, "AaTopicUser#Aa": 86207529,
		"汉": 27721, "😀": 1772899, "a#b😀": 92491299, "polygenelubricants": math.MinInt32,
	} {
		require.Equal(t, want, message.HashString(text), text)
		require.Equal(t, want, message.HashMore(0, []byte(text)), text)
	}
}

// What Java makes of new String(bytes, UTF_8).hashCode() for bytes that are no UTF-8.
func TestHashStringReplacesMalformedBytesAsJavaDoes(t *testing.T) {
	for text, want := range map[string]int32{
		"\xE6\xB1": 65533, "\xE6\xB1\xE6\xB1\x89": 2059244, "\xED\xA0\x80": 65533, "\xF0\x9F\x98": 65533, "\xFF": 65533,
		"\xC0\x80": 2097056, "\xE0\x80\x80": 65074269, "\xF4\x90\x80\x80": 2017367872, "\xC3": 65533, "\xC3\x28": 2031563,
		"\xE6\xB1\x41": 2031588, "\xF0\x9F\x41": 2031588, "\xF0\x90\x80\x41": 2031588, "\xED\xBF\xBF\x41": 2031588,
		"\xE0\xA0": 65533, "\xF0\x9F\x98\x80\xF0\x9F": 55025402,
	} {
		require.Equal(t, want, message.HashString(text), "%x", text)
	}
}

func TestHashMoreGoesOnWithAHash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		require.Equal(t, message.HashString(a+b), message.HashMore(message.HashString(a), b))
	})
}

func TestHashStringWorksOnUTF16Units(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		var h int32
		for _, unit := range utf16.Encode([]rune(s)) {
			h = 31*h + int32(unit)
		}
		require.Equal(t, h, message.HashString(s))
	})
}

func TestAbsHashOfTheSmallestIntegerIsZero(t *testing.T) {
	require.Equal(t, int32(0), message.AbsHash(message.HashString("polygenelubricants")))
	require.Equal(t, int32(279940930), message.AbsHash(-279940930))
	require.Equal(t, int32(math.MaxInt32), message.AbsHash(math.MinInt32+1))
	require.Equal(t, int32(7), message.AbsHash(7))
}

func TestTagsCodeIsSignExtended(t *testing.T) {
	require.Equal(t, int64(0x27A807), message.TagsCode("TagA"))
	require.Equal(t, int64(0), message.TagsCode(""))
	require.Equal(t, int64(math.MinInt32), message.TagsCode("polygenelubricants"))
}

func TestCRCHasNoTopBit(t *testing.T) { // R-D-019
	require.Equal(t, uint32(0x3610A686), message.CRC([]byte("hello")))
	require.Equal(t, uint32(0x0CDC1683), message.CRC([]byte("x")), "CRC-32 is 8CDC1683")
	require.Zero(t, message.CRC(nil))
}

func TestHashingDoesNotAllocate(t *testing.T) {
	text := []byte("TopicA#key-汉-😀-\xFF")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if message.HashMore(0, text) == 0 {
			t.Fatal("hash 0")
		}
	}))
}

func BenchmarkHash(b *testing.B) {
	for name, key := range map[string]string{"ascii": "TopicTest#7F0000013E445FFD2B27949CBE450000", "han": "主题测试#订单号"} {
		b.Run("text="+name, func(b *testing.B) {
			b.SetBytes(int64(len(key)))
			for b.Loop() {
				message.HashString(key)
			}
		})
	}
}
