package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/message"
)

// MaxPlainBody is the greatest body that [PlainBody] unpacks, in bytes: four times what brokers take at most by default, in
// case one was set up for more.
const MaxPlainBody = 16 << 20

// ErrBody says that a compressed body could not be unpacked.
var ErrBody = errors.New("the compressed body cannot be unpacked")

// PlainBody is a record's body as its producer gave it: unpacked when the record says that it is compressed (zlib, lz4 or
// zstd), else the record's own bytes. What unpacks to more than [MaxPlainBody] is an error; errors match [ErrBody]. Memory is
// bounded by that and the 8 MiB that a zstd frame may refer back to.
func PlainBody(r *commitlog.Record) ([]byte, error) {
	kind := r.SysFlag.Compression()
	if kind == "" {
		return r.Body, nil
	}
	src := bytes.NewReader(r.Body)
	var plain io.Reader
	switch kind {
	case "zlib":
		z, err := zlib.NewReader(src)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrBody, kind, err)
		}
		plain = z
	case "lz4":
		plain = lz4.NewReader(src)
	case "zstd":
		z, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrBody, kind, err)
		}
		defer z.Close()
		plain = z
	default:
		return nil, fmt.Errorf("%w: no version writes the compression bits of flag %d", ErrBody, r.SysFlag)
	}
	b, err := io.ReadAll(io.LimitReader(plain, MaxPlainBody+1))
	if err == nil && len(b) > MaxPlainBody {
		err = fmt.Errorf("it has more than %d bytes", MaxPlainBody)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBody, kind, err)
	}
	return b, nil
}

// RedactedBody stands for a body that is to stay private: its size and its xxhash, by which equal ones are still known.
func RedactedBody(body []byte) []byte {
	return fmt.Appendf(nil, "redacted: %d bytes, xxh64 %016x", len(body), xxhash.Sum64(body))
}

// WithPlainBody is a record's bytes with another body, which is not compressed. Its lengths and CRCs fit; all else stays.
func WithPlainBody(r *commitlog.Record, body []byte) []byte {
	const packing = message.FlagCompressed | message.FlagZLIB | 0x400
	_, _, signed := commitlog.PropertyCRC(r.AppendTo(nil))
	n := *r
	n.Body, n.BodyCRC, n.SysFlag = body, message.CRC(body), r.SysFlag&^packing
	b := n.AppendTo(nil)
	if signed {
		b = commitlog.AppendPropertyCRC(b[:len(b)-commitlog.PropertyCRCSize])
	}
	return b
}
