package commitlog_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
)

func FuzzDecode(f *testing.F) {
	f.Add(unhex(f, record497))
	for _, hosts := range [][2]string{{ip4, ip4}, {ip6, ip4}, {ip6, ip6}} {
		for _, magic := range []uint32{commitlog.MagicV1, commitlog.MagicV2} {
			r := sample(f, magic, hosts[0], hosts[1], "TopicTest", "hello")
			f.Add(r.AppendTo(nil))
		}
	}
	f.Add(withPropertyCRC(f, "TAGS\x01TagA\x02"))
	f.Add(commitlog.AppendBlank(nil, 100))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := commitlog.Decode(b)
		if err != nil {
			return
		}
		require.Equal(t, b[:r.Size], r.AppendTo(nil))
		require.Equal(t, int(r.Size), r.EncodedSize())
		_ = r.CheckBody()
		require.Len(t, r.Message().Body, len(r.Body))
	})
}

func FuzzScan(f *testing.F) {
	whole, starts := segment(f, 6)
	f.Add(whole, uint16(100))
	f.Add(append(bytes.Clone(whole), commitlog.AppendBlank(nil, 8)...), uint16(1))
	f.Add(append(bytes.Clone(whole), make([]byte, 200)...), uint16(4000))
	holed := bytes.Clone(whole)
	clear(holed[starts[2]:starts[3]])
	f.Add(holed, uint16(64))
	harmed := bytes.Clone(whole)
	harmed[starts[3]+88]++
	harmed[starts[4]]++
	f.Add(harmed, uint16(300))
	f.Fuzz(func(t *testing.T, b []byte, window uint16) {
		steps := walk(scanBytes(b))
		require.Equal(t, steps, walk(scanFile(b, int64(window))))
		at := int64(-1)
		for _, st := range steps {
			require.Greater(t, st.offset, at, "a scan moves on")
			at = st.offset
		}
	})
}
