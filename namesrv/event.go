package namesrv

// EventKind says what happened to a broker.
type EventKind int

// The kinds of events.
const (
	// BrokerRegistered is the first report of a broker.
	BrokerRegistered EventKind = iota + 1
	// BrokerUnregistered: it said goodbye.
	BrokerUnregistered
	// BrokerLost: the connection of its latest report ended.
	BrokerLost
	// BrokerExpired: it did not report for too long.
	BrokerExpired
)

// String names the kind.
func (k EventKind) String() string {
	switch k {
	case BrokerRegistered:
		return "registered"
	case BrokerUnregistered:
		return "unregistered"
	case BrokerLost:
		return "connection lost"
	case BrokerExpired:
		return "expired"
	}
	return "unknown"
}

// Event is a change of the brokers that are known.
type Event struct {
	Kind          EventKind
	Cluster, Name string
	ID            int64
	Addr          string
}

// tell reports a change to the log and to the embedder.
func (s *Server) tell(kind EventKind, who identity) {
	s.opts.Logger.Info("broker "+kind.String(), "cluster", who.cluster, "broker", who.name, "id", who.id, "addr", who.addr)
	s.figures.events[kind].Add(1)
	if s.opts.Events != nil {
		s.opts.Events(Event{Kind: kind, Cluster: who.cluster, Name: who.name, ID: who.id, Addr: who.addr})
	}
}
