package namesrv

import (
	"maps"
	"sync"
	"sync/atomic"
)

// figures count what happened since the start.
type figures struct {
	events [BrokerExpired + 1]atomic.Int64 // by kind
	routes atomic.Int64                    // asked for
	absent atomic.Int64                    // of these, not found

	mu       sync.Mutex
	requests map[int32]int64 // by request code, unknown ones as -1
}

func (f *figures) count(code int32, known bool) {
	if !known {
		code = -1
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.requests == nil {
		f.requests = map[int32]int64{}
	}
	f.requests[code]++
}

// Stats are a server's figures.
type Stats struct {
	// Topics, BrokerNames, Clusters and Brokers are the lengths of the tables; Brokers counts addresses.
	Topics, BrokerNames, Clusters, Brokers int
	// Connections is how many are open; Accepted and Refused count them ever, FrameErrors those closed for what they sent.
	Connections                    int
	Accepted, Refused, FrameErrors int64
	// Requests counts requests by code; -1 stands for all that are not served.
	Requests map[int32]int64
	// Registered, Unregistered, Lost and Expired count the events.
	Registered, Unregistered, Lost, Expired int64
	// Routes counts questions for a route, RoutesAbsent those without an answer.
	Routes, RoutesAbsent int64
}

// Stats returns the figures of now.
func (s *Server) Stats() Stats {
	n := s.net.Stats()
	st := Stats{
		Connections: n.Connections, Accepted: n.Accepted, Refused: n.Refused, FrameErrors: n.FrameErrors,
		Registered: s.figures.events[BrokerRegistered].Load(), Unregistered: s.figures.events[BrokerUnregistered].Load(),
		Lost: s.figures.events[BrokerLost].Load(), Expired: s.figures.events[BrokerExpired].Load(),
		Routes: s.figures.routes.Load(), RoutesAbsent: s.figures.absent.Load(),
	}
	st.Topics, st.BrokerNames, st.Clusters, st.Brokers = s.tables.sizes()
	s.figures.mu.Lock()
	st.Requests = maps.Clone(s.figures.requests)
	s.figures.mu.Unlock()
	return st
}
