package producer

import (
	"context"
	"errors"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/rocketstore/rocketstore/internal/client"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// Stats are a producer's figures since it was made.
type Stats struct {
	// Begun counts sends by mode, Sent those that were stored (of oneway ones: handed to the network), Failed those with an error, by
	// kind. Refused are asynchronous ones that found no permit; they count nowhere else.
	Begun        [3]int64
	Sent, Failed int64
	Errors       map[string]int64
	Refused      int64
	// NotStored counts sends with another status than [OK], Tries requests of all sends.
	NotStored, Tries int64
	// Messages and Bytes are what was sent: a batch counts as its messages, bodies as they went over the wire.
	Messages, Bytes int64
	// InFlight is how many sends are under way.
	InFlight int64
	// Checks counts checks of transactions.
	Checks int64
	// TraceDiscarded counts trace records that were dropped.
	TraceDiscarded int64
	// Connects counts connects that the client instance began.
	Connects int64
	// Latency is how long sends took that were answered.
	Latency Latencies
}

// Latencies is a histogram: bucket i counts what took less than 2^i microseconds and no less than half of that.
type Latencies = remoting.Latencies

// The kinds by which errors are counted.
const (
	kindConnect = iota
	kindSend
	kindTimeout
	kindFlow
	kindBroker
	kindRoute
	kindOther
	kinds
)

func kindNames() [kinds]string {
	return [...]string{"connect", "send", "timeout", "too many requests", "broker", "route", "other"}
}

// stats are the counters; adding takes no lock.
type stats struct {
	begun                                                    [3]atomic.Int64
	errors                                                   [kinds]atomic.Int64
	sent, failed, refused, notStored, tries, messages, bytes atomic.Int64
	checks                                                   atomic.Int64
	latency                                                  remoting.LatencyCounter
}

func (s *stats) begin(mode Mode) { s.begun[mode].Add(1) }

func (s *stats) end(x *send, took time.Duration, err error) {
	s.tries.Add(int64(x.tries))
	if err != nil {
		s.failed.Add(1)
		s.errors[kindOf(err)].Add(1)
		return
	}
	s.sent.Add(1)
	s.bytes.Add(int64(len(x.prepared.body)))
	n := int64(1)
	for i := range len(x.prepared.id) {
		if x.prepared.id[i] == ',' {
			n++
		}
	}
	s.messages.Add(n)
	if x.mode != Oneway {
		s.latency.Add(took)
	}
}

// kindOf is under which kind an error counts.
func kindOf(err error) int {
	switch {
	case errors.Is(err, ErrTooManyRequests):
		return kindFlow
	case errors.Is(err, ErrTimeout):
		return kindTimeout
	case errors.Is(err, ErrConnect) || errors.Is(err, client.ErrNoBroker):
		return kindConnect
	case errors.Is(err, ErrNotSent) || errors.Is(err, ErrDisconnected):
		return kindSend
	case errors.Is(err, ErrNoRoute) || errors.Is(err, ErrNoNameServer):
		return kindRoute
	}
	if _, ok := errors.AsType[*BrokerError](err); ok {
		return kindBroker
	}
	return kindOther
}

// Stats returns the figures of now.
func (p *Producer) Stats() Stats {
	s := Stats{
		Sent: p.stats.sent.Load(), Failed: p.stats.failed.Load(), Refused: p.stats.refused.Load(), NotStored: p.stats.notStored.Load(),
		Tries: p.stats.tries.Load(), Messages: p.stats.messages.Load(), Bytes: p.stats.bytes.Load(), InFlight: p.sends.Load(),
		Checks: p.stats.checks.Load(), Connects: p.client.Connects(), Errors: map[string]int64{},
	}
	for i := range p.stats.begun {
		s.Begun[i] = p.stats.begun[i].Load()
	}
	for i, name := range kindNames() {
		s.Errors[name] = p.stats.errors[i].Load()
	}
	s.Latency = p.stats.latency.Load()
	if d, ok := p.tracer.(interface{ Discarded() int64 }); ok {
		s.TraceDiscarded = d.Discarded()
	}
	return s
}

// Probe measures the way to a broker's master and back, by a heartbeat.
func (p *Producer) Probe(ctx context.Context, brokerName string) (time.Duration, error) {
	addr, err := p.client.Master(brokerName)
	if err != nil {
		return 0, err
	}
	req := remoting.NewRequest(remoting.Heartbeat)
	req.Body = p.client.HeartbeatBody()
	began := time.Now()
	_, err = p.client.Do(ctx, addr, req)
	return time.Since(began), err
}

// GCPause is the time below which a share, such as 0.99, of this process's garbage collection pauses lay: it tells a slow broker from
// a process that stood still.
func GCPause(share float64) time.Duration {
	sample := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return 0
	}
	h := sample[0].Value.Float64Histogram()
	var all, seen uint64
	for _, n := range h.Counts {
		all += n
	}
	for i, n := range h.Counts {
		if seen += n; seen > 0 && float64(seen) >= share*float64(all) {
			return time.Duration(h.Buckets[i+1] * float64(time.Second))
		}
	}
	return 0
}
