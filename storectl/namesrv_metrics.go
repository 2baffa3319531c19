package main

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rocketstore/rocketstore/namesrv"
)

// namesrvCollector shows a name server's figures to Prometheus.
type namesrvCollector struct{ server *namesrv.Server }

// namesrvFigure is one figure that has no label.
type namesrvFigure struct {
	name, help string
	kind       prometheus.ValueType
	value      func(s *namesrv.Stats) float64
}

func namesrvFigures() []namesrvFigure {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	return []namesrvFigure{
		{"topics", "Topics that have a route.", gauge, func(s *namesrv.Stats) float64 { return float64(s.Topics) }},
		{"broker_names", "Broker names that are known.", gauge, func(s *namesrv.Stats) float64 { return float64(s.BrokerNames) }},
		{"brokers", "Broker addresses that report.", gauge, func(s *namesrv.Stats) float64 { return float64(s.Brokers) }},
		{"clusters", "Clusters that are known.", gauge, func(s *namesrv.Stats) float64 { return float64(s.Clusters) }},
		{"connections", "Open connections.", gauge, func(s *namesrv.Stats) float64 { return float64(s.Connections) }},
		{"connections_accepted_total", "Connections ever.", counter, func(s *namesrv.Stats) float64 { return float64(s.Accepted) }},
		{"connections_refused_total", "Connections closed because there were too many.", counter, func(s *namesrv.Stats) float64 { return float64(s.Refused) }},
		{"frame_errors_total", "Connections closed because of what they sent.", counter, func(s *namesrv.Stats) float64 { return float64(s.FrameErrors) }},
		{"brokers_registered_total", "First reports of a broker.", counter, func(s *namesrv.Stats) float64 { return float64(s.Registered) }},
		{"brokers_unregistered_total", "Brokers that said goodbye.", counter, func(s *namesrv.Stats) float64 { return float64(s.Unregistered) }},
		{"brokers_lost_total", "Brokers whose connection ended.", counter, func(s *namesrv.Stats) float64 { return float64(s.Lost) }},
		{"brokers_expired_total", "Brokers that fell silent.", counter, func(s *namesrv.Stats) float64 { return float64(s.Expired) }},
		{"route_requests_total", "Questions for a route.", counter, func(s *namesrv.Stats) float64 { return float64(s.Routes) }},
		{"route_misses_total", "Questions for a route that is not known.", counter, func(s *namesrv.Stats) float64 { return float64(s.RoutesAbsent) }},
	}
}

const namesrvPrefix = "rocketstore_namesrv_"

func (f *namesrvFigure) desc() *prometheus.Desc {
	return prometheus.NewDesc(namesrvPrefix+f.name, f.help, nil, nil)
}

func namesrvRequests() *prometheus.Desc {
	return prometheus.NewDesc(namesrvPrefix+"requests_total", "Requests by code; -1 is all that are not served.", []string{"code"}, nil)
}

// Describe implements prometheus.Collector.
func (c namesrvCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, f := range namesrvFigures() {
		descs <- f.desc()
	}
	descs <- namesrvRequests()
}

// Collect implements prometheus.Collector.
func (c namesrvCollector) Collect(metrics chan<- prometheus.Metric) {
	stats := c.server.Stats()
	for _, f := range namesrvFigures() {
		metrics <- prometheus.MustNewConstMetric(f.desc(), f.kind, f.value(&stats))
	}
	for code, n := range stats.Requests {
		metrics <- prometheus.MustNewConstMetric(namesrvRequests(), prometheus.CounterValue, float64(n), strconv.Itoa(int(code)))
	}
}
