package broker

import (
	"net/netip"
	"time"

	"github.com/rocketstore/rocketstore/message"
)

// What tests of this package see of its inside.

// ReadBatch, ReadHeartbeat and ReadLocks are the decoders of bodies; they say how much there was.
func ReadBatch(b []byte) (int, error) {
	items, err := readBatch(b)
	return len(items), err
}

func ReadHeartbeat(b []byte) (groups int, err error) {
	h, err := readHeartbeat(b)
	if err != nil {
		return 0, err
	}
	return len(h.producers) + len(h.consumers), nil
}

func ReadLocks(b []byte) (queues int, err error) {
	l, err := readLocks(b)
	if err != nil {
		return 0, err
	}
	return len(l.queues), nil
}

// LockTime is how long a queue stays locked.
func (b *Broker) LockTime() time.Duration { return b.opts.LockTimeout }

// Occupy counts so many sends and bytes of pulls as if they were under way.
func (b *Broker) Occupy(sends, pullBytes int64) {
	b.sends.Add(sends)
	b.pullBytes.Add(pullBytes)
}

// Rules are parsed access rules.
type Rules struct{ rules *rules }

// ParseRules reads a plain_acl.yml.
func ParseRules(text string) (Rules, error) {
	r, err := parseRules(text)
	return Rules{r}, err
}

// White says whether a list of addresses has one.
func White(list, ip string) (bool, error) {
	a, err := parseAddresses(list)
	return err == nil && a.has(netip.MustParseAddr(ip)), err
}

// Of are an account's rights on a topic and on a group.
func (r Rules) Of(key, topic, group string) string {
	a := r.rules.accounts[key]
	return a.of(topic, false).String() + " " + a.of(group, true).String()
}

// Secret is an account's secret key.
func (r Rules) Secret(key string) string { return r.rules.accounts[key].secretKey }

// ReadStatus decodes a client's answer to 221.
func ReadStatus(b []byte) (queues string, err error) { return readStatus(b) }

// TakeWorker takes a place of Options.SendWorkers until give is called.
func (b *Broker) TakeWorker() (give func()) {
	b.workers <- struct{}{}
	return func() { <-b.workers }
}

// Stored are the properties as the broker stores them without the name drop, in one copy where that is possible, and one by one.
func (b *Broker) Stored(p message.Properties, drop string) (quick, slow message.Properties, err error) {
	quick, err = b.storedWithout(p, drop)
	if err != nil || !b.rules.NamesCluster {
		return quick, p.Delete(drop), err
	}
	slow, err = b.storedSlowly(p.Delete(drop))
	return quick, slow, err
}
