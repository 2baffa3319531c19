package message

import (
	"hash/crc32"
	"math"
	"unicode/utf16"
	"unicode/utf8"
)

// HashString is Java's String.hashCode of s: h = 31·h + c over the UTF-16 code units, wrapping at 32 bits.
// Bytes that are no UTF-8 count as Java decodes them: one U+FFFD for each longest piece that begins like a character.
func HashString(s string) int32 { return HashMore(0, s) }

// HashMore goes on with a hash: HashMore(HashString(a), b) == HashString(a+b) where a does not end inside a character.
func HashMore[T string | []byte](h int32, s T) int32 {
	i := 0
	for ; len(s)-i >= 4 && s[i]|s[i+1]|s[i+2]|s[i+3] < utf8.RuneSelf; i += 4 { // one step of the chain for four characters
		h = 31*31*31*31*h + 31*31*31*int32(s[i]) + 31*31*int32(s[i+1]) + 31*int32(s[i+2]) + int32(s[i+3])
	}
	for i < len(s) {
		if c := s[i]; c < utf8.RuneSelf {
			h = 31*h + int32(c)
			i++
			continue
		}
		r, n := decodeRune(s[i:])
		i += n
		if r >= 0x10000 {
			hi, lo := utf16.EncodeRune(r)
			h = 31*h + hi
			r = lo
		}
		h = 31*h + r
	}
	return h
}

func decodeRune[T string | []byte](s T) (rune, int) {
	// A rune has at most four bytes; the array keeps this free of allocation for both kinds.
	var b [utf8.UTFMax]byte
	n := copy(b[:], s)
	r, size := utf8.DecodeRune(b[:n])
	if size == 1 { // one byte that is no character
		size = malformed(b[:n])
	}
	return r, size
}

// malformed is the number of bytes at the start of b that Java replaces by one U+FFFD: the longest beginning of a
// character, and all three bytes of a surrogate half.
func malformed(b []byte) int {
	whole, low, high := 1, byte(0x80), byte(0xBF) // length of the character, bounds of its second byte
	switch c := b[0]; {
	case c >= 0xC2 && c <= 0xDF:
		whole = 2
	case c == 0xE0:
		whole, low = 3, 0xA0
	case c >= 0xE1 && c <= 0xEF:
		whole = 3
	case c == 0xF0:
		whole, low = 4, 0x90
	case c >= 0xF1 && c <= 0xF3:
		whole = 4
	case c == 0xF4:
		whole, high = 4, 0x8F
	}
	n := 1
	for n < whole && n < len(b) && b[n] >= low && b[n] <= high {
		low, high = 0x80, 0xBF
		n++
	}
	return n
}

// AbsHash is the absolute value of a hash as 4.x and 5.x store it in the index; the smallest integer becomes 0.
func AbsHash(h int32) int32 {
	if h == math.MinInt32 {
		return 0
	}
	if h < 0 {
		return -h
	}
	return h
}

// CRC is the BODYCRC of a record: CRC-32 (IEEE) without its top bit; 0 for an empty body.
func CRC(b []byte) uint32 { return crc32.ChecksumIEEE(b) & 0x7FFFFFFF }

// TagsCode is the third field of a consume queue unit for a tag: its hash, sign-extended; 0 for no tag.
func TagsCode(tag string) int64 { return int64(HashString(tag)) }
