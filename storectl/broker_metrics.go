package main

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rocketstore/rocketstore/broker"
)

// brokerCollector shows a broker's figures to Prometheus, from the time on when there is one.
type brokerCollector struct{ broker atomic.Pointer[broker.Broker] }

func (c *brokerCollector) serve(b *broker.Broker) { c.broker.Store(b) }

func (c *brokerCollector) ready() bool {
	b := c.broker.Load()
	return b != nil && b.Ready()
}

// brokerFigure is one figure that has no label.
type brokerFigure struct {
	name, help string
	kind       prometheus.ValueType
	value      func(s *broker.Stats) int64
}

func brokerFigures() []brokerFigure {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	return []brokerFigure{
		{"topics", "Topics that are configured.", gauge, func(s *broker.Stats) int64 { return int64(s.Topics) }},
		{"groups", "Consumer groups that are configured.", gauge, func(s *broker.Stats) int64 { return int64(s.Groups) }},
		{"producer_groups", "Producer groups that are connected.", gauge, func(s *broker.Stats) int64 { return int64(s.ProducerGroups) }},
		{"consumer_groups", "Consumer groups that are connected.", gauge, func(s *broker.Stats) int64 { return int64(s.ConsumerGroups) }},
		{"connections", "Open connections.", gauge, func(s *broker.Stats) int64 { return int64(s.Connections) }},
		{"connections_accepted_total", "Connections ever.", counter, func(s *broker.Stats) int64 { return s.Accepted }},
		{"connections_refused_total", "Connections closed because there were too many.", counter, func(s *broker.Stats) int64 { return s.Refused }},
		{"frame_errors_total", "Connections closed because of what they sent.", counter, func(s *broker.Stats) int64 { return s.FrameErrors }},
		{"bytes_waiting", "Bytes that clients have not taken yet.", gauge, func(s *broker.Stats) int64 { return s.BytesWaiting }},
		{"messages_sent_total", "Messages stored for producers.", counter, func(s *broker.Stats) int64 { return s.Sent }},
		{"messages_sent_bytes_total", "Bytes of their bodies.", counter, func(s *broker.Stats) int64 { return s.SentBytes }},
		{"sends_refused_total", "Sends that stored nothing.", counter, func(s *broker.Stats) int64 { return s.SendsRefused }},
		{"sends", "Sends under way.", gauge, func(s *broker.Stats) int64 { return s.Sends }},
		{"messages_pulled_total", "Messages handed to consumers.", counter, func(s *broker.Stats) int64 { return s.Pulled }},
		{"messages_pulled_bytes_total", "Bytes of their records.", counter, func(s *broker.Stats) int64 { return s.PulledBytes }},
		{"pulls_held", "Pulls that wait for a message.", gauge, func(s *broker.Stats) int64 { return s.Held }},
		{"busy_total", "Requests refused because there was too much to do.", counter, func(s *broker.Stats) int64 { return s.Busy }},
		{"denied_total", "Requests that the access rules refused.", counter, func(s *broker.Stats) int64 { return s.Denied }},
		{"name_servers", "Name servers to register with.", gauge, func(s *broker.Stats) int64 { return int64(s.NameServers) }},
		{"name_servers_registered", "Name servers that know the broker.", gauge, func(s *broker.Stats) int64 { return int64(s.Registered) }},
		{"log_start_offset", "Physical offset at which the commit log begins.", gauge, func(s *broker.Stats) int64 { return s.LogStart }},
		{"log_end_offset", "Physical offset at which it ends.", gauge, func(s *broker.Stats) int64 { return s.LogEnd }},
	}
}

const brokerPrefix = "rocketstore_broker_"

func (f *brokerFigure) desc() *prometheus.Desc {
	return prometheus.NewDesc(brokerPrefix+f.name, f.help, nil, nil)
}

func brokerRequests() *prometheus.Desc {
	return prometheus.NewDesc(brokerPrefix+"requests_total", "Requests by code; -1 is all that are not served.", []string{"code"}, nil)
}

func brokerPuts() *prometheus.Desc {
	return prometheus.NewDesc(brokerPrefix+"put_seconds", "How long sends took in the broker that stored something.", nil, nil)
}

// putBuckets are the buckets as Prometheus wants them: each with all that is below it. Those above a minute say no more than the last.
func putBuckets(s *broker.Stats) map[float64]uint64 {
	buckets, sum := map[float64]uint64{}, uint64(0)
	for i, n := range s.Puts {
		sum += uint64(n)
		if bound := s.Puts.Bound(i); bound <= 2*time.Minute {
			buckets[bound.Seconds()] = sum
		}
	}
	return buckets
}

func brokerLabelled() (behind, oldest, dead *prometheus.Desc) {
	of := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(brokerPrefix+name, help, labels, nil)
	}
	return of("consumer_lag_messages", "Messages that a consumer group has not consumed yet.", "group", "topic"),
		of("consumer_oldest_seconds", "Age of the oldest of them, 0 when there is none.", "group", "topic"),
		of("dead_letters", "Messages in the dead-letter topic of a consumer group.", "group")
}

// Describe implements prometheus.Collector.
func (c *brokerCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, f := range brokerFigures() {
		descs <- f.desc()
	}
	descs <- brokerRequests()
	descs <- brokerPuts()
	behind, oldest, dead := brokerLabelled()
	descs <- behind
	descs <- oldest
	descs <- dead
}

// Collect implements prometheus.Collector.
func (c *brokerCollector) Collect(metrics chan<- prometheus.Metric) {
	b := c.broker.Load()
	if b == nil {
		return
	}
	stats := b.Stats()
	for _, f := range brokerFigures() {
		metrics <- prometheus.MustNewConstMetric(f.desc(), f.kind, float64(f.value(&stats)))
	}
	for code, n := range stats.Requests {
		metrics <- prometheus.MustNewConstMetric(brokerRequests(), prometheus.CounterValue, float64(n), strconv.Itoa(int(code)))
	}
	metrics <- prometheus.MustNewConstHistogram(brokerPuts(), uint64(stats.Puts.Count()), stats.PutTime.Seconds(), putBuckets(&stats))
	collectLags(b, metrics)
}

// lagTime bounds what one look at all consumer groups may take.
const lagTime = 5 * time.Second

// collectLags shows how far consumers are behind. A broker that is being stopped shows nothing of it.
func collectLags(b *broker.Broker, metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), lagTime)
	defer cancel()
	behind, oldest, dead := brokerLabelled()
	lags, err := b.Lags(ctx)
	if err != nil {
		return
	}
	for _, l := range lags {
		age := 0.0
		if !l.Oldest.IsZero() {
			age = max(time.Since(l.Oldest).Seconds(), 0)
		}
		metrics <- prometheus.MustNewConstMetric(behind, prometheus.GaugeValue, float64(l.Messages), l.Group, l.Topic)
		metrics <- prometheus.MustNewConstMetric(oldest, prometheus.GaugeValue, age, l.Group, l.Topic)
	}
	letters, err := b.DeadLetters(ctx)
	if err != nil {
		return
	}
	for group, n := range letters {
		metrics <- prometheus.MustNewConstMetric(dead, prometheus.GaugeValue, float64(n), group)
	}
}
