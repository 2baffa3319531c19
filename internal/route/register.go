package route

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/rocketstore/rocketstore/internal/fastjson"
)

// wrapperSince is the version ordinal (3.0.11) from which a registration's body has more than the topics.
const wrapperSince = 37

// ErrRegistration is the class of what is wrong with the body of a registration.
var ErrRegistration = errors.New("bad registration body")

// Registration is the body of REGISTER_BROKER.
type Registration struct {
	DataVersion   DataVersion
	Topics        []TopicConfig
	FilterServers []string
}

// RegistrationForm says which of its forms a registration has on the wire.
type RegistrationForm struct {
	// Version is the sender's version ordinal. Below 37 the body is written as the topics' table alone; both are read.
	Version int32
	// Compressed is the extension field of that name: zlib of a form of its own instead of JSON.
	Compressed bool
	// Misspelt writes the member timestatmp, which 3.x and 4.0 know. Reading takes both.
	Misspelt bool
	// MaxBytes limits what a compressed body may grow to. Default 64 MiB.
	MaxBytes int64
}

// Checksum is the extension field bodyCrc32 of a body as it is sent.
func Checksum(body []byte) int32 { return int32(crc32.ChecksumIEEE(body) & 0x7FFFFFFF) }

// ParseRegistration reads a body. An empty one has no topics and a zero version. Errors match [ErrRegistration].
func ParseRegistration(body []byte, f RegistrationForm) (*Registration, error) {
	var g Registration
	var err error
	switch {
	case len(body) == 0:
	case f.Compressed:
		err = g.readCompressed(body, f.MaxBytes)
	default:
		err = g.readJSON(string(body))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRegistration, err)
	}
	return &g, nil
}

// readJSON reads both forms, whatever version the sender says it has: a broker that is embedded, not started by its own
// program, says 0 and sends the newer one.
func (g *Registration) readJSON(s string) error {
	r := fastjson.NewReader(s)
	r.Object(func(key string) {
		switch key {
		case "topicConfigSerializeWrapper":
			r.Object(func(key string) { g.readMember(r, key) })
		case "filterServerList":
			g.FilterServers = readTexts(r)
		default:
			g.readMember(r, key)
		}
	})
	return r.End()
}

func (g *Registration) readMember(r *fastjson.Reader, key string) {
	switch key {
	case "dataVersion":
		g.DataVersion = readDataVersion(r)
	case "topicConfigTable":
		r.Object(func(name string) {
			if !r.Null() {
				g.Topics = append(g.Topics, readTopicConfig(r, name))
			}
		})
	}
}

// Append appends the body in the given form.
func (g *Registration) Append(b []byte, f RegistrationForm) ([]byte, error) {
	switch {
	case f.Compressed:
		return g.appendCompressed(b)
	case f.Version < wrapperSince:
		return g.appendTopics(b, f.Misspelt), nil
	}
	o := fastjson.OpenObject(b)
	o.B = appendTexts(o.Key("filterServerList"), g.FilterServers)
	o.B = g.appendTopics(o.Key("topicConfigSerializeWrapper"), f.Misspelt)
	return o.Close(), nil
}

func (g *Registration) appendTopics(b []byte, misspelt bool) []byte {
	o := fastjson.OpenObject(b)
	o.B = g.DataVersion.AppendJSON(o.Key("dataVersion"), misspelt)
	table := fastjson.OpenObject(o.Key("topicConfigTable"))
	for i := range g.Topics {
		table.B = g.Topics[i].AppendJSON(table.Key(g.Topics[i].Name))
	}
	o.B = table.Close()
	return o.Close()
}

// The compressed form is a zlib stream of
//
//	size  field
//	4+n   data version, JSON
//	4     number of topics, for each of them
//	4+n   the topic's fields, see appendText
//	4+n   filter servers, a JSON array
//	4     (5.x) number of queue mappings, for each 4+n JSON; the stream may end before this
func (g *Registration) appendCompressed(b []byte) ([]byte, error) {
	var plain []byte
	plain = appendSized(plain, func(b []byte) []byte { return g.DataVersion.AppendJSON(b, false) })
	plain = binary.BigEndian.AppendUint32(plain, uint32(len(g.Topics)))
	for i := range g.Topics {
		plain = appendSized(plain, g.Topics[i].appendText)
	}
	plain = appendSized(plain, func(b []byte) []byte { return appendTexts(b, g.FilterServers) })
	buf := bytes.NewBuffer(b)
	w := zlib.NewWriter(buf)
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// appendSized appends four bytes of length and what content appends.
func appendSized(b []byte, content func(b []byte) []byte) []byte {
	at := len(b)
	b = content(append(b, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

func (g *Registration) readCompressed(body []byte, limit int64) error {
	plain, err := inflate(body, limit)
	if err != nil {
		return err
	}
	c := &sizedReader{rest: plain}
	r := fastjson.NewReader(c.next())
	g.DataVersion = readDataVersion(r)
	if err := errors.Join(c.err, r.End()); err != nil {
		return fmt.Errorf("data version: %w", err)
	}
	n := c.count()
	if n < 0 {
		return fmt.Errorf("%d topics", n)
	}
	for ; n > 0; n-- {
		text := c.next()
		if c.err != nil {
			break
		}
		t, err := parseTopicText(text)
		if err != nil {
			return err
		}
		g.Topics = append(g.Topics, t)
	}
	r = fastjson.NewReader(c.next())
	g.FilterServers = readTexts(r)
	if err := errors.Join(c.err, r.End()); err != nil {
		return fmt.Errorf("topics or filter servers: %w", err)
	}
	return nil
}

const defaultMaxBytes = 64 << 20

func inflate(body []byte, limit int64) ([]byte, error) {
	if limit <= 0 {
		limit = defaultMaxBytes
	}
	z, err := zlib.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(z, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(plain)) > limit {
		return nil, fmt.Errorf("more than %d bytes when inflated", limit)
	}
	return plain, nil
}

// sizedReader reads texts that have their length before them, and keeps its first error.
type sizedReader struct {
	rest []byte
	err  error
}

var errCutShort = errors.New("the stream ends too early")

func (c *sizedReader) count() int32 {
	if c.err == nil && len(c.rest) < 4 {
		c.err = errCutShort
	}
	if c.err != nil {
		return 0
	}
	n := int32(binary.BigEndian.Uint32(c.rest))
	c.rest = c.rest[4:]
	return n
}

func (c *sizedReader) next() string {
	n := c.count()
	if c.err == nil && (n < 0 || int(n) > len(c.rest)) {
		c.err = errCutShort
	}
	if c.err != nil {
		return ""
	}
	s := string(c.rest[:n])
	c.rest = c.rest[n:]
	return s
}
