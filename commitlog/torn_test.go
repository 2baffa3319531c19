package commitlog_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/message"
)

// ends scans a segment and gives the number of records, and why it ended.
func ends(b []byte, torn bool) (n int, err error) {
	s := commitlog.NewBytesScanner("commitlog/0", 0, b)
	s.CheckTorn = torn
	for s.Next() {
		n++
	}
	return n, s.Err()
}

// A sector of topic or properties that a power cut left as zeros is damage, though no checksum covers it (R-E-077).
func TestScanFindsSectorsThatWereNotWritten(t *testing.T) {
	const sector = 512
	r := commitlog.Record{Magic: commitlog.MagicV1, Topic: []byte("Topic"), Properties: []byte("KEYS\x01" + strings.Repeat("key ", 300) + "\x02")}
	whole := r.AppendTo(nil)
	n, err := ends(whole, true)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	for at := sector; at < len(whole); at += sector {
		torn := bytes.Clone(whole)
		clear(torn[at:min(at+sector, len(torn))])
		n, err := ends(torn, true)
		require.ErrorIs(t, err, commitlog.ErrTorn, at)
		require.Zero(t, n)
		n, err = ends(torn, false)
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	// The end of the topic alone, in front of properties of no length.
	long := commitlog.Record{Magic: commitlog.MagicV1, Body: make([]byte, sector-88-1-10), Topic: []byte("ten bytes here and more behind")}
	long.BodyCRC = message.CRC(long.Body)
	b := long.AppendTo(nil)
	_, err = ends(b, true)
	require.NoError(t, err)
	clear(b[sector:])
	_, err = ends(b, true)
	require.ErrorIs(t, err, commitlog.ErrTorn)
}

// Zero bytes in a property are the producer's, unless a whole sector's part of it is zero.
func TestZeroBytesInAPropertyAreNoDamage(t *testing.T) {
	r := commitlog.Record{Magic: commitlog.MagicV1, Topic: []byte("Topic"), Properties: []byte("K\x01" + strings.Repeat("\x00", 300) + "\x02L\x01v\x00")}
	n, err := ends(r.AppendTo(nil), true)
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

// Behind a torn record the scan goes on where its lengths say.
func TestScanResumesBehindATornRecord(t *testing.T) {
	r := commitlog.Record{Magic: commitlog.MagicV1, Topic: []byte("Topic"), Properties: []byte("KEYS\x01" + strings.Repeat("key ", 300) + "\x02")}
	b := r.AppendTo(nil)
	clear(b[512:1024])
	r.PhysicalOffset = int64(len(b))
	b = r.AppendTo(b)
	s := commitlog.NewBytesScanner("commitlog/0", 0, b)
	s.CheckTorn = true
	require.False(t, s.Next())
	require.True(t, s.Resume())
	require.True(t, s.Next())
	require.Equal(t, r.PhysicalOffset, s.Record().PhysicalOffset)
}
