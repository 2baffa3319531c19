package broker

import (
	"sync/atomic"
	"time"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

// Latencies is a histogram: bucket i counts what took less than 2^i microseconds and no less than half of that.
type Latencies = remoting.Latencies

// Stats are a broker's figures.
type Stats struct {
	// Topics and Groups are how many are configured; ProducerGroups and ConsumerGroups how many are connected.
	Topics, Groups, ProducerGroups, ConsumerGroups int
	// Connections is how many are open; Accepted and Refused count them ever, FrameErrors those closed for what they sent.
	Connections                    int
	Accepted, Refused, FrameErrors int64
	// BytesWaiting are those that clients have not taken yet.
	BytesWaiting int64
	// Requests counts requests by code; -1 stands for all that are not served.
	Requests map[int32]int64
	// Sent counts messages that were stored, SentBytes their bodies, SendsRefused requests that stored nothing. Sends is how
	// many are under way.
	Sent, SentBytes, SendsRefused, Sends int64
	// Puts is how long sends took here that stored something, the wait for the disk included; PutTime is the sum. A producer whose sends
	// take much longer looks for the rest on the way, or in its own pauses.
	Puts    Latencies
	PutTime time.Duration
	// Pulled counts messages that were handed out, PulledBytes their records. Held is how many pulls wait for a message.
	Pulled, PulledBytes, Held int64
	// Busy counts requests that were refused because there was too much to do.
	Busy int64
	// Denied counts requests that the access rules refused.
	Denied int64
	// Registered is how many name servers took the last registration, of NameServers.
	NameServers, Registered int
	// LogStart and LogEnd are the physical offsets between which the store's log lies.
	LogStart, LogEnd int64
}

// figures are what is counted while serving.
type figures struct {
	sent, sentBytes, sendsRefused, pulled, pulledBytes, busy, denied atomic.Int64

	puts     remoting.LatencyCounter
	requests [maxCountedCode]atomic.Int64 // by code
	others   atomic.Int64                 // of codes that are not served
}

// maxCountedCode is above every code that is served.
const maxCountedCode = 1024

func (f *figures) count(code int32, served bool) {
	if served && code >= 0 && code < maxCountedCode {
		f.requests[code].Add(1)
		return
	}
	f.others.Add(1)
}

// byCode are the requests so far.
func (f *figures) byCode() map[int32]int64 {
	counts := map[int32]int64{}
	for code := range f.requests {
		if n := f.requests[code].Load(); n > 0 {
			counts[int32(code)] = n
		}
	}
	if n := f.others.Load(); n > 0 {
		counts[-1] = n
	}
	return counts
}

// Stats returns the figures of now.
func (b *Broker) Stats() Stats {
	n := b.net.Stats()
	s := Stats{
		Topics: b.topics.count(), Groups: b.groups.count(), Connections: n.Connections, Accepted: n.Accepted, Refused: n.Refused,
		FrameErrors: n.FrameErrors, BytesWaiting: n.BytesWaiting,
		Sent: b.figures.sent.Load(), SentBytes: b.figures.sentBytes.Load(), SendsRefused: b.figures.sendsRefused.Load(), Sends: b.sends.Load(),
		Pulled: b.figures.pulled.Load(), PulledBytes: b.figures.pulledBytes.Load(), Held: b.held.count.Load(), Busy: b.figures.busy.Load(), Denied: b.figures.denied.Load(),
		Puts: b.figures.puts.Load(), PutTime: b.figures.puts.Sum(),
		NameServers: len(b.names.servers), Registered: b.names.registered(),
	}
	s.ProducerGroups, s.ConsumerGroups = b.clients.counts()
	s.LogStart, s.LogEnd = b.store.Bounds()
	s.Requests = b.figures.byCode()
	return s
}
