package producer

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/rocketstore/rocketstore/internal/client"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/trace"
)

// maxTopic is what every line's store takes, bytes.
const maxTopic = 127

// maxProperties is what a record has room for, bytes.
const maxProperties = 32_767

// checkTopic says whether users may send to a topic. The name is the one with the namespace.
func (p *Producer) checkTopic(topic string) error {
	switch {
	case strings.TrimSpace(topic) == "":
		return fmt.Errorf("%w: the topic is blank", ErrInvalidMessage)
	case len(topic) > maxTopic:
		return fmt.Errorf("%w: topic of %d bytes, at most %d are allowed", ErrInvalidMessage, len(topic), maxTopic)
	case !message.ValidTopic(topic):
		return fmt.Errorf("%w: topic %q has other characters than letters, digits and %% | - _", ErrInvalidMessage, topic)
	case topic == p.opts.DefaultTopic:
		return fmt.Errorf("%w: topic %s only says who creates topics", ErrInvalidMessage, topic)
	case client.BrokersOwn(topic):
		return fmt.Errorf("%w: topic %s is the system's own", ErrInvalidMessage, topic)
	}
	return nil
}

func (p *Producer) checkBody(body []byte) error {
	if len(body) == 0 {
		return fmt.Errorf("%w: the body is empty", ErrInvalidMessage)
	}
	if len(body) > p.opts.MaxMessageSize {
		return tooLarge("body of %d bytes, this producer sends at most %d (MaxMessageSize; the broker has a limit of its own)",
			len(body), p.opts.MaxMessageSize)
	}
	return nil
}

func tooLarge(format string, args ...any) error {
	return fmt.Errorf("%w: %w: %s", ErrInvalidMessage, ErrTooLarge, fmt.Sprintf(format, args...))
}

// prepared is a message made ready for the wire.
type prepared struct {
	topic      string // with the namespace
	body       []byte
	sysFlag    message.SysFlag
	flag       int32
	properties string
	id         string // unique ids, joined by commas
	reconsumed string // header fields of a message to a retry topic, else ""
	maxTries   string
	batch      bool
	reply      bool
	kind       trace.MessageType
}

// prepare checks a message and makes it ready. add are properties that are set on top of the user's.
func (p *Producer) prepare(m *message.Message, sysFlag message.SysFlag, add ...string) (*prepared, error) {
	if m == nil {
		return nil, fmt.Errorf("%w: no message", ErrInvalidMessage)
	}
	r := &prepared{topic: p.client.Namespace().Wrap(m.Topic), flag: m.Flag, kind: typeOf(m, add)}
	if err := p.checkTopic(r.topic); err != nil {
		return nil, err
	}
	if err := p.checkBody(m.Body); err != nil {
		return nil, err
	}
	r.reply = m.Property(message.PropertyMessageType) == replyType
	text, err := p.properties(m, r, add)
	if err != nil {
		return nil, err
	}
	r.properties = text
	r.body, r.sysFlag, err = p.compress(m.Body)
	r.sysFlag |= sysFlag
	return r, err
}

// typeOf is a message's type for the trace.
func typeOf(m *message.Message, add []string) trace.MessageType {
	switch {
	case len(add) == 0 && (m.Property(message.PropertyDelay) != "" || m.Property(message.PropertyStartDeliverTime) != ""):
		return trace.Delay
	case slices.Contains(add, message.PropertyTransactionPrepared) || m.Property(message.PropertyTransactionPrepared) == "true":
		return trace.Half
	}
	return trace.Normal
}

// properties makes the property text: the user's in their order, without those that add replaces or that travel in the header, then
// add, the unique id and WAIT where they are missing.
func (p *Producer) properties(m *message.Message, r *prepared, add []string) (string, error) {
	b := make([]byte, 0, len(m.Properties)+128)
	wait := false
	toRetry := strings.HasPrefix(r.topic, client.RetryPrefix)
	prepares := len(add) > 0
	for name, value := range m.Properties.All() {
		switch name {
		case message.PropertyUniqueKey:
			r.id = value // the last one counts
			continue
		case message.PropertyWait:
			wait = true
		case message.PropertyReconsumeTime:
			if toRetry {
				r.reconsumed = value
				continue
			}
		case message.PropertyMaxReconsumeTimes:
			if toRetry {
				r.maxTries = value
				continue
			}
		case message.PropertyDelay:
			if prepares { // a broker would lose it
				continue
			}
		}
		if prepares && slices.Contains(add, name) {
			continue
		}
		b = appendProperty(b, name, value)
	}
	for i := 0; i+1 < len(add); i += 2 {
		b = appendProperty(b, add[i], add[i+1])
	}
	if r.id == "" {
		r.id = p.client.UniqueID()
	}
	b = appendProperty(b, message.PropertyUniqueKey, r.id)
	if !wait && !r.reply {
		b = appendProperty(b, message.PropertyWait, "true")
	}
	if len(b) > maxProperties {
		return "", tooLarge("properties of %d bytes, a record has room for %d", len(b), maxProperties)
	}
	return string(b), nil
}

// appendProperty appends a pair; pairs are parted by 0x02, with none at the end, as 4.9 has it.
func appendProperty(b []byte, name, value string) []byte {
	if len(b) > 0 {
		b = append(b, 0x02)
	}
	b = append(b, name...)
	b = append(b, 0x01)
	return append(b, value...)
}

// compressors are kept for reuse: making one costs more than compressing a message.
type compressors struct {
	zlib, lz4 sync.Pool
	zstd      *zstd.Encoder
}

// compress returns what is sent of a body, and the flags that say so. The body itself is not changed.
func (p *Producer) compress(body []byte) ([]byte, message.SysFlag, error) {
	if p.opts.CompressFrom < 0 || len(body) < p.opts.CompressFrom {
		return body, 0, nil
	}
	flag := message.FlagCompressed
	var out []byte
	var err error
	switch p.opts.Compression {
	case LZ4:
		flag |= message.FlagLZ4
		out, err = p.stream(&p.compressors.lz4, body, func(w io.Writer) resetWriter { return lz4.NewWriter(w) })
	case ZSTD:
		flag |= message.FlagZSTD
		out = p.compressors.zstd.EncodeAll(body, nil)
	default:
		if p.opts.Dialect.ClientNamesCompressor {
			flag |= message.FlagZLIB
		}
		out, err = p.stream(&p.compressors.zlib, body, func(w io.Writer) resetWriter {
			z, err := zlib.NewWriterLevel(w, max(p.opts.CompressLevel, 0))
			if err != nil {
				panic("the options' check let a bad level through: " + err.Error())
			}
			return z
		})
	}
	if err != nil {
		return nil, 0, fmt.Errorf("compress: %w", err)
	}
	if p.opts.KeepLarger && len(out) >= len(body) {
		return body, 0, nil
	}
	return out, flag, nil
}

// resetWriter is what the compressors have in common.
type resetWriter interface {
	io.WriteCloser
	Reset(w io.Writer)
}

func (p *Producer) stream(kept *sync.Pool, body []byte, create func(w io.Writer) resetWriter) ([]byte, error) {
	var out bytes.Buffer
	w, ok := kept.Get().(resetWriter)
	if ok {
		w.Reset(&out)
	} else {
		w = create(&out)
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	kept.Put(w)
	return out.Bytes(), nil
}
