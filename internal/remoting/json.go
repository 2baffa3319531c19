package remoting

import (
	"errors"
	"strconv"

	"github.com/rocketstore/rocketstore/internal/fastjson"
)

// appendJSON appends the JSON header, members in the order of Java's encoder.
func appendJSON(b []byte, c *Command) []byte {
	b = append(b, `{"code":`...)
	b = strconv.AppendInt(b, int64(c.Code), 10)
	if c.Fields != nil {
		b = append(b, `,"extFields":{`...)
		for i, f := range c.Fields {
			if i > 0 {
				b = append(b, ',')
			}
			b = fastjson.AppendString(fastjson.AppendKey(b, f.Name), f.Value)
		}
		b = append(b, '}')
	}
	b = append(b, `,"flag":`...)
	b = strconv.AppendInt(b, int64(c.Flag), 10)
	b = append(b, `,"language":"`...)
	b = append(b, c.Language.String()...)
	b = append(b, `","opaque":`...)
	b = strconv.AppendInt(b, int64(c.Opaque), 10)
	if c.Remark != "" {
		b = fastjson.AppendString(append(b, `,"remark":`...), c.Remark)
	}
	b = append(b, `,"version":`...)
	b = strconv.AppendInt(b, int64(c.Version), 10)
	return append(b, '}')
}

// decodeJSON reads the JSON header. Members that it does not know are passed over, an ext field that is null is left
// out. The strings are parts of header. Fields is the place for the ext fields while they are enough.
func decodeJSON(c *Command, header string, fields Fields) error {
	r := fastjson.NewReader(header)
	if r.Null() {
		return errors.New("a header that is null")
	}
	r.Object(func(key string) {
		switch key {
		case "code":
			c.Code = r.Int32()
		case "language":
			c.Language = parseLanguage(r.Text())
		case "version":
			c.Version = r.Int32()
		case "opaque":
			c.Opaque = r.Int32()
		case "flag":
			c.Flag = r.Int32()
		case "remark":
			c.Remark = r.Text()
		case "extFields":
			c.Fields = readFields(r, fields)
		}
	})
	return r.End()
}

func readFields(r *fastjson.Reader, fields Fields) Fields {
	if r.Null() {
		return nil
	}
	fields = fields[:0] // of two such members the last counts
	r.Object(func(name string) {
		switch {
		case r.Null():
		case len(fields) == maxFields:
			r.Fail(errFields)
		default:
			fields = append(fields, Field{name, r.Text()})
		}
	})
	return fields
}
