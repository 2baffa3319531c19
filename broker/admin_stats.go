package broker

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rocketstore/rocketstore/internal/fastjson"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// figure finds what request 315 asks for by the names of the original; ok is false where nothing was counted.
func (b *Broker) figure(name, key string) (f *flow, value func(s *flowSample) int64, ok bool) {
	messages, bytes := func(s *flowSample) int64 { return s.messages }, func(s *flowSample) int64 { return s.bytes }
	topic, group, grouped := strings.Cut(key, "@")
	k := flowKey{topic: topic, group: group}
	switch value = messages; name {
	case "BROKER_PUT_NUMS":
		return b.flows.whole, value, key == b.opts.Cluster
	case "BROKER_GET_NUMS":
		return b.flows.pulled, value, key == b.opts.Cluster
	case "TOPIC_PUT_NUMS", "TOPIC_PUT_SIZE":
		k, grouped = flowKey{topic: key}, true
	case "GROUP_GET_NUMS", "GROUP_GET_SIZE":
	case "SNDBCK_PUT_NUMS":
		k.back = true
	default:
		return nil, nil, false
	}
	if strings.HasSuffix(name, "SIZE") {
		value = bytes
	}
	b.flows.mu.RLock()
	defer b.flows.mu.RUnlock()
	f = b.flows.byKey[k]
	return f, value, f != nil && grouped
}

// viewStats serves 315: how many messages, or bytes, of a topic or a group there were in the last minute, hour and day.
func (b *Broker) viewStats(_ context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	name, key := f.Text("statsName"), f.Text("statsKey")
	if err := f.Err(); err != nil {
		return nil, err
	}
	flow, value, ok := b.figure(name, key)
	if !ok {
		return req.Refuse(remoting.SystemError, "The stats <%s> <%s> not exist", name, key), nil
	}
	minute, hour, day, last := b.flows.windows(flow, time.Now())
	o := fastjson.OpenObject(nil)
	for _, window := range []struct {
		name  string
		first flowSample
	}{{"statsDay", day}, {"statsHour", hour}, {"statsMinute", minute}} {
		sum, calls := value(&last)-value(&window.first), last.calls-window.first.calls
		perCall := 0.0
		if calls > 0 {
			perCall = float64(sum) / float64(calls)
		}
		item := fastjson.OpenObject(o.Key(window.name))
		item.B = appendDouble(item.Key("avgpt"), perCall)
		item.Int("sum", sum)
		item.B = appendDouble(item.Key("tps"), rate(sum, window.first.at, last.at))
		o.B = item.Close()
	}
	return withBody(req, o.Close())
}

// appendDouble appends a number as Java prints a double: with a fraction.
func appendDouble(text []byte, v float64) []byte {
	at := len(text)
	text = strconv.AppendFloat(text, v, 'f', -1, 64)
	if !slices.Contains(text[at:], '.') {
		text = append(text, ".0"...)
	}
	return text
}

// brokerConsumeStats serves 317: the progress of all groups, of ordered topics only if that is asked for.
func (b *Broker) brokerConsumeStats(ctx context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	ordered := req.Fields.Reader().OptBool("isOrder")
	topics := map[string]map[string]bool{} // by group
	for _, p := range b.store.ConsumerOffsets() {
		if topics[p.Group] == nil {
			topics[p.Group] = map[string]bool{}
		}
		topics[p.Group][p.Topic] = true
	}
	o := fastjson.OpenObject(nil)
	o.Text("brokerAddr", b.host.Load().String())
	list := append(o.Key("consumeStatsList"), '[')
	behind := int64(0)
	for i, group := range b.groups.names() {
		if i > 0 {
			list = append(list, ',')
		}
		g := fastjson.OpenObject(list)
		stats := append(g.Key(group), '[')
		for _, name := range slices.Sorted(maps.Keys(topics[group])) {
			t, known := b.topics.get(name)
			if !known || ordered && !t.order || !b.subscribes(group, name) {
				continue
			}
			queues, states, err := b.consumeStates(ctx, group, name, t.writeQueues)
			if err != nil {
				return nil, err
			}
			for _, s := range states {
				behind += s.end - s.offset
			}
			if stats[len(stats)-1] != '[' {
				stats = append(stats, ',')
			}
			stats = b.appendConsumeStats(stats, b.flows.perSecond(name, group), queues, states)
		}
		g.B = append(stats, ']')
		list = g.Close()
	}
	o.B = append(list, ']')
	o.Int("totalDiff", behind)
	return withBody(req, o.Close())
}

// names are those of all groups, sorted.
func (g *groups) names() (names []string) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for name := range g.table.Table.All() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
