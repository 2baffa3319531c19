package remoting_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

// frame builds a frame from its parts, with lengths that may lie.
func frame(length int32, word uint32, rest string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(length))
	b = binary.BigEndian.AppendUint32(b, word)
	return append(b, rest...)
}

func TestNextRejects(t *testing.T) { // R-D-049, R-D-050
	const minimal = `{"code":1}`
	for _, tt := range []struct {
		name, want string
		frame      []byte
	}{
		{"negative length", "length -1", frame(-1, 0, "")},
		{"length below 4", "length 3", frame(3, 0, "")},
		{"length above the limit", "length 1025 is not 4 to 1024", frame(1025, 0, "")},
		{"header longer than the frame", "header of 11", frame(4+10, 11, minimal)},
		{"header length that looks negative", "unknown header codec", frame(4+10, 0x8000000a, minimal)},
		{"unknown codec", "unknown header codec 2", frame(4+10, 0x0200000a, minimal)},
		{"empty header", "object is expected", frame(4, 0, "")},
		{"null header", "null", frame(4+4, 4, "null")},
		{"no object", "object is expected", frame(4+2, 2, "[]")},
		{"text behind the header", "text after", frame(4+4, 4, "{}{}")},
		{"code that is no number", "whole number", frame(4+12, 12, `{"code":"x"}`)},
		{"code of 64 bits", "32 bits", frame(4+19, 19, `{"code":4294967296}`)},
		{"ext field that is an object", "string is expected", frame(4+22, 22, `{"extFields":{"a":{}}}`)},
		{"binary header too short", "binary header", frame(4+20, 0x01000014, strings.Repeat("\x00", 20))},
		{"binary remark too long", "binary header", frame(4+21, 0x01000015, strings.Repeat("\x00", 13)+"\x00\x00\x00\x05\x00\x00\x00\x00")},
		{"binary remark of negative length", "binary header", frame(4+21, 0x01000015, strings.Repeat("\x00", 13)+"\xff\xff\xff\xff\x00\x00\x00\x00")},
		{"binary fields shorter than said", "binary header", frame(4+21, 0x01000015, strings.Repeat("\x00", 17)+"\x00\x00\x00\x01")},
		{"binary fields longer than said", "binary header", frame(4+22, 0x01000016, strings.Repeat("\x00", 22))},
		{"binary key of negative length", "binary header", frame(4+23, 0x01000017, strings.Repeat("\x00", 17)+"\x00\x00\x00\x02\xff\xff")},
		{"binary value cut off", "binary header", frame(4+26, 0x0100001a, strings.Repeat("\x00", 17)+"\x00\x00\x00\x05\x00\x01a\x00\x00")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := remoting.NewFrameReader(bytes.NewReader(tt.frame), 1024).Next()
			require.ErrorIs(t, err, remoting.ErrFrame)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestAHeaderHasABoundedNumberOfFields(t *testing.T) { // R-G-14: in memory a field is many times what the shortest is in a frame
	for _, codec := range []remoting.Codec{remoting.JSON, remoting.Binary} {
		req := remoting.NewRequest(10)
		req.Codec, req.Fields = codec, make(remoting.Fields, 1024)
		b, err := remoting.AppendFrame(nil, req)
		require.NoError(t, err)
		_, err = remoting.DecodeFrame(b[4:])
		require.NoError(t, err)
		req.Fields = append(req.Fields, remoting.Field{})
		b, err = remoting.AppendFrame(nil, req)
		require.NoError(t, err)
		_, err = remoting.DecodeFrame(b[4:])
		require.ErrorIs(t, err, remoting.ErrFrame)
		require.ErrorContains(t, err, "more than 1024 ext fields")
	}
}

func TestUnknownMembersAndLanguagesAreTolerated(t *testing.T) {
	header := `{"code":105,"language":"KLINGON","flag":0,"opaque":7,"version":999,"remark":null,"new":{"a":[1,{"b":null}]},` +
		`"extFields":{"topic":"T","n":5,"b":true,"gone":null,"topic":"T2"}}`
	c, err := remoting.DecodeFrame(frame(0, uint32(len(header)), header)[4:])
	require.NoError(t, err)
	require.Equal(t, remoting.Other, c.Language)
	require.Equal(t, "T2", c.Fields.Get("topic")) // the last one wins, as in Java's map
	require.Equal(t, "5", c.Fields.Get("n"))
	require.Equal(t, "true", c.Fields.Get("b"))
	_, there := c.Fields.Lookup("gone")
	require.False(t, there)
	require.Equal(t, int32(999), c.Version)
}

func TestBinaryFallsBackToJSONWhereItCannotHoldAValue(t *testing.T) {
	for _, c := range []*remoting.Command{
		{Code: 200050, Codec: remoting.Binary},
		{Code: 1, Version: 1 << 15, Codec: remoting.Binary},
		{Code: 1, Codec: remoting.Binary, Fields: remoting.Fields{{Name: strings.Repeat("k", 1<<15)}}},
	} {
		b, err := remoting.AppendFrame(nil, c)
		require.NoError(t, err)
		got, err := remoting.DecodeFrame(b[4:])
		require.NoError(t, err)
		require.Equal(t, remoting.JSON, got.Codec)
		require.Equal(t, c.Code, got.Code)
	}
}

func TestHeaderBeyond24BitsIsRefused(t *testing.T) {
	c := &remoting.Command{Remark: strings.Repeat("r", 1<<24)}
	b, err := remoting.AppendFrame([]byte("kept"), c)
	require.ErrorIs(t, err, remoting.ErrFrame)
	require.Equal(t, "kept", string(b))
}

func TestAClaimedLengthIsNotAllocated(t *testing.T) { // R-G-14
	head := frame(remoting.MaxFrame, 0, "and then nothing")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		_, err := remoting.NewFrameReader(bytes.NewReader(head), 0).Next()
		require.Equal(t, io.ErrUnexpectedEOF, err)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100*(128<<10)))
}

func TestLargeFramesArriveWhole(t *testing.T) {
	want := &remoting.Command{Code: 310, Version: 407, Fields: remoting.Fields{{Name: "a", Value: "g"}}, Body: bytes.Repeat([]byte("0123456789"), 200_000)}
	b, err := remoting.AppendFrame(nil, want)
	require.NoError(t, err)
	got, err := remoting.NewFrameReader(bytes.NewReader(b), 0).Next()
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestRepliesRepeatWhatARequesterNeeds(t *testing.T) {
	req := &remoting.Command{Code: 310, Opaque: 42, Codec: remoting.Binary, Language: remoting.Go, Version: 317}
	resp := req.Refuse(remoting.SystemError, "broken %s", "disk")
	require.Equal(t, &remoting.Command{
		Code: remoting.SystemError, Language: remoting.Java, Version: remoting.Version, Opaque: 42, Flag: remoting.FlagResponse,
		Remark: "broken disk", Fields: remoting.Fields{}, Codec: remoting.Binary,
	}, resp)
}

func TestFieldReaderNamesTheFirstBadField(t *testing.T) {
	f := remoting.Fields{{Name: "id", Value: "7"}, {Name: "n", Value: "x"}, {Name: "big", Value: "4294967296"}, {Name: "yes", Value: "true"}, {Name: "empty"}}
	r := f.Reader()
	require.Equal(t, int64(7), r.Int64("id"))
	require.Equal(t, int32(7), r.Int32("id"))
	require.Equal(t, int64(7), r.OptInt64("id", 1))
	require.Equal(t, int32(3), r.OptInt32("empty", 3))
	require.Equal(t, int64(3), r.OptInt64("absent", 3))
	require.Equal(t, int32(7), r.OptInt32("id", 1))
	require.True(t, r.OptBool("yes"))
	require.False(t, r.OptBool("id"))
	require.NoError(t, r.Err())
	require.Empty(t, r.Text("gone"))
	r.Int64("n")
	require.ErrorIs(t, r.Err(), remoting.ErrField)
	require.ErrorContains(t, r.Err(), "gone is missing")

	r = f.Reader()
	r.Int32("big")
	require.ErrorContains(t, r.Err(), `big is no number: "4294967296"`)
}

func FuzzDecodeFrame(f *testing.F) {
	for _, frames := range captures(f) {
		for i := range min(len(frames), 8) {
			f.Add(frames[i].bytes(f)[4:])
		}
	}
	f.Add(frame(0, 0x01000015, strings.Repeat("\x00", 21))[4:])
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := remoting.DecodeFrame(b)
		if err != nil {
			require.ErrorIs(t, err, remoting.ErrFrame)
			return
		}
		again, err := remoting.AppendFrame(nil, c)
		require.NoError(t, err)
		back, err := remoting.DecodeFrame(again[4:])
		require.NoError(t, err)
		require.Equal(t, meaning(c), meaning(back))
	})
}

func FuzzFrameReader(f *testing.F) {
	stream, _ := threeFrames(f)
	f.Add(stream)
	f.Add(frame(1<<24, 0, "x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := remoting.NewFrameReader(bytes.NewReader(b), 1<<20)
		for range len(b)/8 + 1 {
			if _, err := r.Next(); err != nil {
				return
			}
		}
		t.Fatal("more frames than bytes allow")
	})
}

func ExampleAppendFrame() {
	req := remoting.NewRequest(remoting.GetRouteByTopic, remoting.String("topic", "TopicA"))
	b, err := remoting.AppendFrame(nil, req)
	fmt.Printf("%q %v\n", b[8:], err)
	c, err := remoting.NewFrameReader(bytes.NewReader(b), 0).Next()
	fmt.Println(c.Code, c.Fields.Get("topic"), err)
	// Output:
	// "{\"code\":105,\"extFields\":{\"topic\":\"TopicA\"},\"flag\":0,\"language\":\"JAVA\",\"opaque\":0,\"version\":407}" <nil>
	// 105 TopicA <nil>
}

func ExampleCredentials_Sign() {
	req := remoting.NewRequest(remoting.GetRouteByTopic, remoting.String("topic", "TopicA"))
	(&remoting.Credentials{AccessKey: "RocketMQ", SecretKey: "12345678"}).Sign(req)
	fmt.Println(remoting.Verify(req, func(string) (string, bool) { return "12345678", true }))
	req.Fields.Set("topic", "TopicB")
	fmt.Println(remoting.Verify(req, func(string) (string, bool) { return "12345678", true }))
	// Output:
	// <nil>
	// signature refused: the signature of access key "RocketMQ" does not fit the request
}
