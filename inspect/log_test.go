package inspect_test

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// collector keeps findings.
type collector struct{ all []inspect.Finding }

func (c *collector) add(f inspect.Finding) { c.all = append(c.all, f) }

// brief is each finding as "kind|file|offset".
func (c *collector) brief() []string {
	var out []string
	for _, f := range c.all {
		out = append(out, fmt.Sprintf("%s|%s|%d", f.Kind, f.File, f.Offset))
	}
	return out
}

func open(t testing.TB, dir string) *inspect.Dir {
	t.Helper()
	d, err := inspect.Open(os.DirFS(dir))
	require.NoError(t, err)
	return d
}

// TestEveryGoldenLogIsListedAsTheRealDecoderReadsIt compares all fields of all records of all stores (R-E-092).
func TestEveryGoldenLogIsListedAsTheRealDecoderReadsIt(t *testing.T) {
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			want, c := golden.Load(t, name), &collector{}
			d := open(t, golden.Unpack(t, name))
			var got []golden.Record
			for r, err := range d.Log(t.Context(), inspect.LogRange{}, c.add) {
				require.NoError(t, err)
				got = append(got, goldenRecord(t, d, &r))
			}
			require.Equal(t, listed(want), got)
			for _, f := range c.all {
				t.Log(f)
			}
		})
	}
}

// listed is what of the real decoder's records is to be listed: not those whose lengths do not add up although their CRC is right.
func listed(want *golden.Expected) []golden.Record {
	var out []golden.Record
	for _, r := range want.Records() {
		if r.DecodedBytes != 0 && !r.CRCWrong {
			continue
		}
		r.RecordMD5, r.PlainLength, r.PlainMD5, r.DecodedBytes = "", 0, "", 0
		if r.Properties == nil {
			r.Properties = map[string]string{}
		}
		out = append(out, r)
	}
	return out
}

func goldenRecord(t *testing.T, d *inspect.Dir, r *inspect.LogRecord) golden.Record {
	t.Helper()
	sum := md5.Sum(r.Body)
	g := golden.Record{
		File: r.File, PhysicalOffset: r.PhysicalOffset, StoreSize: r.Size, Magic: r.Magic, Topic: string(r.Topic), QueueID: r.QueueID,
		QueueOffset: r.QueueOffset, Flag: r.Flag, SysFlag: int32(r.SysFlag), BornTimestamp: r.BornTimestamp,
		StoreTimestamp: r.StoreTimestamp, ReconsumeTimes: r.ReconsumeTimes,
		PreparedTransactionOffset: r.PreparedTransactionOffset, BodyCRC: r.BodyCRC, BodyLength: int32(len(r.Body)),
		BodyMD5: hex.EncodeToString(sum[:]), MsgID: r.ID(), Properties: d.Properties(r.Record.Properties),
		CRCWrong: r.Damaged == inspect.DamagedCRC,
	}
	var err error
	g.BornHost, err = netip.ParseAddrPort(r.BornHost.String())
	require.NoError(t, err)
	g.StoreHost, err = netip.ParseAddrPort(r.StoreHost.String())
	require.NoError(t, err)
	return g
}
