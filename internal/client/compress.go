package client

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/rocketstore/rocketstore/message"
)

// ErrCompressed says that a compressed body cannot be read.
var ErrCompressed = errors.New("compressed body")

// Decompress returns the plain form of a body whose flags say how it is compressed; without [message.FlagCompressed] that
// is the body itself. More than limit bytes are refused. Errors match [ErrCompressed].
func Decompress(body []byte, flag message.SysFlag, limit int) ([]byte, error) {
	var r io.Reader
	var err error
	kind := flag.Compression()
	switch kind {
	case "":
		return body, nil
	case "zlib":
		r, err = zlib.NewReader(bytes.NewReader(body))
	case "lz4":
		r = lz4.NewReader(bytes.NewReader(body))
	case "zstd":
		var z *zstd.Decoder
		z, err = zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(limit)+1))
		if err == nil {
			defer z.Close()
		}
		r = z
	default:
		err = fmt.Errorf("sysFlag %#x", int32(flag))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCompressed, kind, err)
	}
	plain, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCompressed, kind, err)
	}
	if len(plain) > limit {
		return nil, fmt.Errorf("%w: %s: more than %d bytes", ErrCompressed, kind, limit)
	}
	return plain, nil
}
