package commitlog_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
)

// withPropertyCRC is a record that ends with the property.
func withPropertyCRC(t testing.TB, properties string) []byte {
	t.Helper()
	r := sample(t, commitlog.MagicV1, ip4, ip4, "T", "hello")
	r.Properties = []byte(properties + string(make([]byte, commitlog.PropertyCRCSize)))
	b := r.AppendTo(nil)
	return commitlog.AppendPropertyCRC(b[:len(b)-commitlog.PropertyCRCSize])
}

func TestPropertyCRCCoversTheRecordBeforeIt(t *testing.T) {
	for _, properties := range []string{"", "TAGS\x01TagA\x02"} {
		b := withPropertyCRC(t, properties)
		r, err := commitlog.Decode(b)
		require.NoError(t, err)
		require.Regexp(t, "^"+properties+"__CRC32#\x01[0-9]{10}\x02$", string(r.Properties))
		stored, computed, ok := commitlog.PropertyCRC(b)
		require.True(t, ok)
		require.Equal(t, computed, stored)
		require.LessOrEqual(t, computed, uint32(math.MaxInt32))

		b[20]++ // the queue offset
		stored, computed, ok = commitlog.PropertyCRC(b)
		require.True(t, ok)
		require.NotEqual(t, computed, stored)
	}
}

// The digits 4922267510 stand for 157622294 in a record of 5.3.3.
func TestPropertyCRCDigitsAreReversed(t *testing.T) {
	b := withPropertyCRC(t, "TAGS\x01TagA\x02")
	digits := b[len(b)-11 : len(b)-1]
	copy(digits, "4922267510")
	stored, _, ok := commitlog.PropertyCRC(b)
	require.True(t, ok)
	require.Equal(t, uint32(157622294), stored)

	for _, text := range []string{"492226751x", "9999999999", "4922267 10"} {
		copy(digits, text)
		stored, computed, ok := commitlog.PropertyCRC(b)
		require.True(t, ok)
		require.Equal(t, uint32(math.MaxUint32), stored)
		require.NotEqual(t, computed, stored)
	}
}

func TestPropertyCRCIsAbsent(t *testing.T) {
	plain := sample(t, commitlog.MagicV1, ip4, ip4, "T", "hello")
	inValue := plain
	inValue.Properties = []byte("a\x01b__CRC32#\x014922267510\x02")
	inTopic := plain
	inTopic.Properties, inTopic.Topic = nil, []byte("__CRC32#\x014922267510\x02")
	for name, b := range map[string][]byte{
		"nothing":           nil,
		"no property":       plain.AppendTo(nil),
		"inside of a value": inValue.AppendTo(nil),
		"topic":             inTopic.AppendTo(nil),
		"cut":               withPropertyCRC(t, "")[1:],
	} {
		_, _, ok := commitlog.PropertyCRC(b)
		require.False(t, ok, name)
	}
}

func FuzzPropertyCRC(f *testing.F) {
	f.Add(withPropertyCRC(f, "TAGS\x01TagA\x02"))
	f.Add(unhex(f, record497))
	f.Fuzz(func(t *testing.T, b []byte) {
		stored, computed, ok := commitlog.PropertyCRC(b)
		if !ok {
			return
		}
		require.Equal(t, uint32(len(b)), binary.BigEndian.Uint32(b))
		again := commitlog.AppendPropertyCRC(b[: len(b)-commitlog.PropertyCRCSize : len(b)-commitlog.PropertyCRCSize])
		_, _, ok = commitlog.PropertyCRC(again)
		require.True(t, ok)
		if stored == computed {
			require.Equal(t, b, again)
		}
	})
}
