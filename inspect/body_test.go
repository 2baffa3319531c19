package inspect_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/message"
)

// packed is a body as a client compresses it, and the record's flags for that.
func packed(t testing.TB, kind string, body []byte) *commitlog.Record {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	r := &commitlog.Record{Magic: commitlog.MagicV1, Topic: []byte("T"), SysFlag: message.FlagCompressed}
	switch kind {
	case "zlib":
		w = zlib.NewWriter(&b)
	case "zlib, named":
		w = zlib.NewWriter(&b)
		r.SysFlag |= message.FlagZLIB
	case "lz4":
		w = lz4.NewWriter(&b)
		r.SysFlag |= message.FlagLZ4
	case "zstd":
		z, err := zstd.NewWriter(&b)
		require.NoError(t, err)
		w = z
		r.SysFlag |= message.FlagZSTD
	}
	_, err := w.Write(body)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	r.Body = b.Bytes()
	r.BodyCRC = message.CRC(r.Body)
	return r
}

// R-E-093: bodies are decompressed on demand, whatever packed them.
func TestBodiesOfAllCompressorsAreUnpacked(t *testing.T) {
	body := bytes.Repeat([]byte("some words "), 1000)
	for _, kind := range []string{"zlib", "zlib, named", "lz4", "zstd"} {
		r := packed(t, kind, body)
		got, err := inspect.PlainBody(r)
		require.NoError(t, err, kind)
		require.Equal(t, body, got, kind)

		plain, err := commitlog.Decode(inspect.WithPlainBody(r, got))
		require.NoError(t, err, kind)
		require.NoError(t, plain.CheckBody())
		require.Zero(t, plain.SysFlag, kind)
		require.Equal(t, body, plain.Body)
	}
	r := packed(t, "zlib", body)
	r.SysFlag |= 0x400
	_, err := inspect.PlainBody(r)
	require.ErrorIs(t, err, inspect.ErrBody)
}

func TestABodyThatUnpacksToTooMuchIsRefused(t *testing.T) {
	for _, kind := range []string{"zlib", "lz4", "zstd"} {
		_, err := inspect.PlainBody(packed(t, kind, make([]byte, inspect.MaxPlainBody+1)))
		require.ErrorIs(t, err, inspect.ErrBody, kind)
		got, err := inspect.PlainBody(packed(t, kind, make([]byte, inspect.MaxPlainBody)))
		require.NoError(t, err, kind)
		require.Len(t, got, inspect.MaxPlainBody)
	}
}

func FuzzPlainBody(f *testing.F) {
	for i, kind := range []string{"zlib", "lz4", "zstd"} {
		f.Add(packed(f, kind, []byte("a body")).Body, int32(i+1)<<8)
	}
	f.Fuzz(func(t *testing.T, body []byte, flags int32) {
		got, err := inspect.PlainBody(&commitlog.Record{Body: body, SysFlag: message.SysFlag(flags) | message.FlagCompressed})
		if err == nil {
			require.LessOrEqual(t, len(got), inspect.MaxPlainBody)
		}
	})
}

func ExamplePlainBody() {
	r := commitlog.Record{Body: []byte("as it is")}
	body, err := inspect.PlainBody(&r)
	fmt.Println(string(body), err)
	fmt.Println(string(inspect.RedactedBody(body)))
	// Output:
	// as it is <nil>
	// redacted: 8 bytes, xxh64 09f1beee1d2f9d30
}

func ExampleWithPlainBody() {
	r := commitlog.Record{Magic: commitlog.MagicV1, Topic: []byte("T"), Body: []byte("secret")}
	b := inspect.WithPlainBody(&r, inspect.RedactedBody(r.Body))
	redacted, err := commitlog.Decode(b)
	fmt.Println(len(redacted.Body), err)
	// Output: 41 <nil>
}
