package remoting_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

// captured is one frame of testdata/wire.
type captured struct {
	Name          string
	SerializeType byte
	HeaderLength  int
	BodyLength    int
	Header        struct {
		Code, Version, Opaque, Flag int32
		Language                    string
		Remark                      *string
		ExtFields                   map[string]string
	}
	Hex string
}

func (c *captured) bytes(t testing.TB) []byte {
	t.Helper()
	b, err := hex.DecodeString(c.Hex)
	require.NoError(t, err)
	return b
}

// captures returns the frames of all files, keyed by file.
func captures(t testing.TB) map[string][]captured {
	t.Helper()
	files, err := filepath.Glob("../../testdata/wire/*.json")
	require.NoError(t, err)
	require.Len(t, files, 12)
	all := map[string][]captured{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var list struct{ Frames []captured }
		require.NoError(t, json.Unmarshal(text, &list))
		require.NotEmpty(t, list.Frames)
		all[filepath.Base(file)] = list.Frames
	}
	return all
}

// meaning is a command without what may differ between two encodings of it.
func meaning(c *remoting.Command) map[string]any {
	fields := map[string]string{}
	for _, f := range c.Fields {
		fields[f.Name] = f.Value
	}
	return map[string]any{
		"code": c.Code, "language": c.Language.String(), "version": c.Version, "opaque": c.Opaque, "flag": c.Flag,
		"remark": c.Remark, "fields": fields, "codec": c.Codec, "body": string(c.Body),
	}
}

func TestCapturedFramesDecodeToWhatTheyMean(t *testing.T) { // R-D-046, R-D-047, R-D-049, R-D-051
	for file, frames := range captures(t) {
		for i, fr := range frames {
			t.Run(fmt.Sprintf("%s/%d-%s", file, i, fr.Name), func(t *testing.T) {
				raw := fr.bytes(t)
				c, err := remoting.DecodeFrame(raw[4:])
				require.NoError(t, err)
				want := map[string]any{
					"code": fr.Header.Code, "language": fr.Header.Language, "version": fr.Header.Version,
					"opaque": fr.Header.Opaque, "flag": fr.Header.Flag, "remark": "", "fields": fr.Header.ExtFields,
					"codec": remoting.Codec(fr.SerializeType), "body": string(raw[8+fr.HeaderLength:]),
				}
				if fr.Header.Remark != nil {
					want["remark"] = *fr.Header.Remark
				}
				if fr.Header.ExtFields == nil {
					want["fields"] = map[string]string{}
				}
				require.Equal(t, want, meaning(c))
				require.Len(t, c.Body, fr.BodyLength)
			})
		}
	}
}

func TestCapturedFramesEncodeToTheSameMeaning(t *testing.T) { // R-D-048, R-D-051
	for file, frames := range captures(t) {
		for i, fr := range frames {
			t.Run(fmt.Sprintf("%s/%d-%s", file, i, fr.Name), func(t *testing.T) {
				raw := fr.bytes(t)
				c, err := remoting.DecodeFrame(raw[4:])
				require.NoError(t, err)
				ours, err := remoting.AppendFrame(nil, c)
				require.NoError(t, err)
				again, err := remoting.NewFrameReader(bytes.NewReader(ours), 0).Next()
				require.NoError(t, err)
				require.Equal(t, meaning(c), meaning(again))
				require.Equal(t, c.Fields == nil, again.Fields == nil) // no ext fields and empty ones stay apart
				if c.Codec == remoting.Binary {
					require.Equal(t, raw, ours) // this form has one encoding only
					return
				}
				headerOf := func(frame []byte) map[string]any {
					var h map[string]any
					require.NoError(t, json.Unmarshal(frame[8:len(frame)-len(c.Body)], &h))
					delete(h, "serializeTypeCurrentRPC")
					if h["remark"] == "" {
						delete(h, "remark")
					}
					return h
				}
				require.Equal(t, headerOf(raw), headerOf(ours))
			})
		}
	}
}

// threeFrames is a stream of a JSON request with a body, a binary response and a binary request.
func threeFrames(t testing.TB) (stream []byte, frames []captured) {
	t.Helper()
	all := captures(t)
	frames = []captured{all["java497_send.json"][0], all["java497_binary_acl_trace.json"][3], all["java497_binary_acl_trace.json"][4]}
	for _, f := range frames {
		stream = append(stream, f.bytes(t)...)
	}
	return stream, frames
}

// pieces is a reader that returns the parts of a stream one by one.
type pieces [][]byte

func (p *pieces) Read(b []byte) (int, error) {
	for len(*p) > 0 && len((*p)[0]) == 0 {
		*p = (*p)[1:]
	}
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	(*p)[0] = (*p)[0][n:]
	return n, nil
}

func TestEverySplitOfAStreamDecodesTheSame(t *testing.T) { // R-D-050
	stream, frames := threeFrames(t)
	for cut := range len(stream) + 1 {
		r := remoting.NewFrameReader(&pieces{stream[:cut], stream[cut:]}, 0)
		for i := range frames {
			c, err := r.Next()
			require.NoErrorf(t, err, "cut %d frame %d", cut, i)
			require.Equal(t, frames[i].Header.Opaque, c.Opaque)
			require.Len(t, c.Body, frames[i].BodyLength)
		}
		_, err := r.Next()
		require.ErrorIs(t, err, io.EOF)
	}
}

func TestAStreamByteByByteDecodesTheSame(t *testing.T) { // R-D-050
	stream, frames := threeFrames(t)
	var single pieces
	for i := range stream {
		single = append(single, stream[i:i+1])
	}
	r := remoting.NewFrameReader(&single, 0)
	for i := range frames {
		c, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, frames[i].Header.Code, c.Code)
	}
}

func TestAStreamCutShortIsNoFrame(t *testing.T) {
	stream, frames := threeFrames(t)
	ends := map[int]bool{0: true}
	at := 0
	for _, f := range frames {
		at += len(f.bytes(t))
		ends[at] = true
	}
	for cut := range stream {
		r := remoting.NewFrameReader(bytes.NewReader(stream[:cut]), 0)
		var err error
		for err == nil {
			_, err = r.Next()
		}
		if ends[cut] {
			require.Equal(t, io.EOF, err)
		} else {
			require.Equal(t, io.ErrUnexpectedEOF, err, "cut %d", cut)
		}
	}
}

func TestCapturedSignaturesAreOurs(t *testing.T) { // R-G-13
	signed := 0
	for _, fr := range captures(t)["java497_binary_acl_trace.json"] {
		c, err := remoting.DecodeFrame(fr.bytes(t)[4:])
		require.NoError(t, err)
		sent, ok := c.Fields.Lookup(remoting.FieldSignature)
		if !ok {
			continue
		}
		signed++
		require.Equal(t, sent, remoting.Signature(c, "12345678"))
		require.NoError(t, remoting.Verify(c, func(key string) (string, bool) { return "12345678", key == "RocketMQ" }))
		require.ErrorIs(t, remoting.Verify(c, func(string) (string, bool) { return "87654321", true }), remoting.ErrSignature)
		c.Body = append(c.Body, 'x')
		require.ErrorIs(t, remoting.Verify(c, func(string) (string, bool) { return "12345678", true }), remoting.ErrSignature)
	}
	require.Equal(t, 6, signed)
}
