package route

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rocketstore/rocketstore/internal/fastjson"
)

// DataVersion tells two states of a table apart. Two are equal when all members are.
type DataVersion struct {
	StateVersion int64 // 5.x
	Timestamp    int64 // Unix milliseconds
	Counter      int64
}

// AppendJSON appends the version; misspelt writes the member timestatmp of 3.x and 4.0 instead of timestamp.
func (v DataVersion) AppendJSON(b []byte, misspelt bool) []byte {
	o := fastjson.OpenObject(b)
	o.Int("counter", v.Counter)
	if v.StateVersion != 0 {
		o.Int("stateVersion", v.StateVersion)
	}
	name := "timestamp"
	if misspelt {
		name = "timestatmp"
	}
	o.Int(name, v.Timestamp)
	return o.Close()
}

func readDataVersion(r *fastjson.Reader) (v DataVersion) {
	r.Object(func(key string) {
		switch key {
		case "counter":
			v.Counter = r.Int64()
		case "stateVersion":
			v.StateVersion = r.Int64()
		case "timestamp", "timestatmp":
			v.Timestamp = r.Int64()
		}
	})
	return v
}

// ParseDataVersion reads a version. An error matches fastjson.ErrSyntax.
func ParseDataVersion(b []byte) (DataVersion, error) {
	r := fastjson.NewReader(string(b))
	v := readDataVersion(r)
	return v, r.End()
}

// TopicConfig is one topic of a broker.
type TopicConfig struct {
	Name                                         string
	ReadQueueNums, WriteQueueNums, Perm, SysFlag int32
	FilterType                                   string // SINGLE_TAG or MULTI_TAG
	Order                                        bool
	Attributes                                   map[string]string // 5.x
}

// defaultTopicConfig has the values that Java gives to absent members.
func defaultTopicConfig(name string) TopicConfig {
	return TopicConfig{Name: name, ReadQueueNums: 16, WriteQueueNums: 16, Perm: PermRead | PermWrite, FilterType: "SINGLE_TAG"}
}

// AppendJSON appends the configuration.
func (t *TopicConfig) AppendJSON(b []byte) []byte {
	o := fastjson.OpenObject(b)
	if t.Attributes != nil {
		o.B = appendMap(o.Key("attributes"), t.Attributes, fastjson.AppendString)
	}
	o.Bool("order", t.Order)
	o.Int("perm", int64(t.Perm))
	o.Int("readQueueNums", int64(t.ReadQueueNums))
	o.Text("topicFilterType", t.FilterType)
	o.Text("topicName", t.Name)
	o.Int("topicSysFlag", int64(t.SysFlag))
	o.Int("writeQueueNums", int64(t.WriteQueueNums))
	return o.Close()
}

func readTopicConfig(r *fastjson.Reader, name string) TopicConfig {
	t := defaultTopicConfig(strings.Clone(name))
	r.Object(func(key string) {
		switch key {
		case "topicName":
			if s := r.Text(); s != "" && s != t.Name {
				t.Name = strings.Clone(s)
			}
		case "readQueueNums":
			t.ReadQueueNums = r.Int32()
		case "writeQueueNums":
			t.WriteQueueNums = r.Int32()
		case "perm":
			t.Perm = r.Int32()
		case "topicFilterType":
			if s := r.Text(); s != t.FilterType {
				t.FilterType = strings.Clone(s)
			}
		case "topicSysFlag":
			t.SysFlag = r.Int32()
		case "order":
			t.Order = r.Bool()
		case "attributes":
			t.Attributes = readAttributes(r)
		}
	})
	return t
}

func readAttributes(r *fastjson.Reader) map[string]string {
	if r.Null() {
		return nil
	}
	m := map[string]string{}
	r.Object(func(key string) { m[strings.Clone(key)] = r.Clone() })
	return m
}

// appendText appends the form of a compressed registration: the fields with one space between. Order and SysFlag are
// not in it.
func (t *TopicConfig) appendText(b []byte) []byte {
	b = append(append(b, t.Name...), ' ')
	for _, n := range []int32{t.ReadQueueNums, t.WriteQueueNums, t.Perm} {
		b = append(strconv.AppendInt(b, int64(n), 10), ' ')
	}
	b = append(b, t.FilterType...)
	if t.Attributes != nil {
		b = appendMap(append(b, ' '), t.Attributes, fastjson.AppendString)
	}
	return b
}

// parseTopicText reads the form of appendText.
func parseTopicText(s string) (TopicConfig, error) {
	part := strings.Split(s, " ")
	if len(part) < 5 {
		return TopicConfig{}, fmt.Errorf("topic %q has less than five fields", s)
	}
	t := TopicConfig{Name: strings.Clone(part[0]), FilterType: strings.Clone(part[4])}
	for i, n := range []*int32{&t.ReadQueueNums, &t.WriteQueueNums, &t.Perm} {
		v, err := strconv.ParseInt(part[i+1], 10, 32)
		if err != nil {
			return TopicConfig{}, fmt.Errorf("topic %q: %w", s, err)
		}
		*n = int32(v)
	}
	if len(part) > 5 {
		r := fastjson.NewReader(strings.Join(part[5:], " "))
		t.Attributes = readAttributes(r)
		if err := r.End(); err != nil {
			return TopicConfig{}, fmt.Errorf("topic %q: attributes: %w", t.Name, err)
		}
	}
	return t, nil
}
