package namesrv

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
)

// operation answers one kind of request. An error is answered with SystemError and its text.
type operation func(s *Server, c *remoting.Conn, req *remoting.Command) (*remoting.Command, error)

// operationOf finds what serves a request code, nil if nothing does.
func operationOf(code int32) operation {
	switch code {
	case remoting.RegisterBroker:
		return (*Server).registerBroker
	case remoting.UnregisterBroker:
		return (*Server).unregisterBroker
	case remoting.BrokerHeartbeat:
		return (*Server).brokerHeartbeat
	case remoting.QueryDataVersion:
		return (*Server).queryDataVersion
	case remoting.GetRouteByTopic:
		return (*Server).getRoute
	case remoting.GetClusterInfo:
		return (*Server).getCluster
	case remoting.GetBrokerMemberGroup:
		return (*Server).getMemberGroup
	case remoting.GetAllTopics, remoting.GetTopicsByCluster, remoting.GetSystemTopics, remoting.GetUnitTopics,
		remoting.GetUnitSubTopics, remoting.GetUnitSubNotUnitTopics:
		return (*Server).listTopics
	case remoting.RegisterTopic:
		return (*Server).registerTopic
	case remoting.DeleteTopicInNameServer:
		return (*Server).deleteTopic
	case remoting.WipeWritePermission, remoting.AddWritePermission:
		return (*Server).setWritePermission
	case remoting.PutKVConfig:
		return (*Server).putKV
	case remoting.GetKVConfig:
		return (*Server).getKV
	case remoting.DeleteKVConfig:
		return (*Server).deleteKV
	case remoting.GetKVList:
		return (*Server).listKV
	case remoting.UpdateNameServerConfig:
		return (*Server).updateConfig
	case remoting.GetNameServerConfig:
		return (*Server).getConfig
	}
	return nil
}

// handle answers one request.
func (s *Server) handle(_ context.Context, c *remoting.Conn, req *remoting.Command) *remoting.Command {
	op := operationOf(req.Code)
	s.figures.count(req.Code, op != nil)
	if op == nil {
		return remoting.NotSupported(req)
	}
	resp, err := op(s, c, req)
	if err != nil {
		resp := req.Refuse(remoting.SystemError, "%v", err)
		s.opts.Logger.Warn("request refused", "code", req.Code, "peer", c.RemoteAddr(), "err", resp.Remark) // which is not as long as a frame
		return resp
	}
	return resp
}

// readIdentity reads the fields that all requests of a broker share, as copies: what is kept of a request must not keep its header,
// which may be as long as a frame.
func readIdentity(f *remoting.FieldReader) identity {
	text := func(name string) string { return strings.Clone(f.Text(name)) }
	return identity{cluster: text("clusterName"), name: text("brokerName"), addr: text("brokerAddr"), id: f.Int64("brokerId")}
}

func (who *identity) check() error {
	return errors.Join(checkName("clusterName", who.cluster), checkName("brokerName", who.name), checkAddr("brokerAddr", who.addr))
}

var errChecksum = errors.New("crc32 not match")

// registerBroker serves 103.
func (s *Server) registerBroker(c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	r, err := s.readReport(c, req)
	if err != nil {
		return nil, err
	}
	done := s.tables.register(s.opts.Now(), r)
	switch {
	case done.ignored:
		s.opts.Logger.Warn("registration of a deposed broker ignored", "broker", r.name, "id", r.id, "addr", r.addr)
	case done.first:
		s.tell(BrokerRegistered, r.identity)
	}
	resp := req.Reply(remoting.Success)
	if done.masterAddr != "" {
		resp.Fields = remoting.Fields{remoting.String("masterAddr", done.masterAddr), remoting.String("haServerAddr", done.haAddr)}
	}
	if order := s.kv.list(orderNamespace); len(order) > 0 {
		resp.Body = route.AppendTable(nil, order)
	}
	return resp, nil
}

// readReport decodes and checks a registration.
func (s *Server) readReport(c *remoting.Conn, req *remoting.Command) (*report, error) {
	f := req.Fields.Reader()
	r := &report{identity: readIdentity(f), haAddr: strings.Clone(f.Text("haServerAddr")), conn: c, zone: strings.Clone(req.Fields.Get("__ZONE_NAME"))}
	checksum := f.OptInt32("bodyCrc32", 0)
	r.timeout = millis(f.OptInt64("heartbeatTimeoutMillis", 0))
	if f.OptBool("enableActingMaster") || req.Fields.Get("enableActingMaster") == "false" {
		r.acting = new(f.OptBool("enableActingMaster"))
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	for _, v := range [][2]string{{"haServerAddr", r.haAddr}, {"__ZONE_NAME", r.zone}} {
		if v[1] == "" {
			continue
		}
		if err := checkName(v[0], v[1]); err != nil {
			return nil, err
		}
	}
	if checksum != 0 && checksum != route.Checksum(req.Body) {
		return nil, errChecksum
	}
	s.decoding <- struct{}{}
	defer func() { <-s.decoding }()
	body, err := route.ParseRegistration(req.Body, route.RegistrationForm{
		Version: req.Version, Compressed: f.OptBool("compressed"), MaxBytes: s.opts.MaxInflated,
	})
	if err != nil {
		return nil, err
	}
	r.body = body
	return r, checkTopics(body.Topics)
}

// unregisterBroker serves 104.
func (s *Server) unregisterBroker(_ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	who := readIdentity(f)
	if err := f.Err(); err != nil {
		return nil, err
	}
	if s.tables.unregister(who) {
		s.tell(BrokerUnregistered, who)
	}
	return req.Reply(remoting.Success), nil
}

// brokerHeartbeat serves 904, which is oneway.
func (s *Server) brokerHeartbeat(c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	addr := f.Text("brokerAddr")
	if err := f.Err(); err != nil {
		return nil, err
	}
	s.tables.refresh(s.opts.Now(), addr, c)
	return req.Reply(remoting.Success), nil
}

// queryDataVersion serves 322.
func (s *Server) queryDataVersion(c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	who := readIdentity(f)
	if err := f.Err(); err != nil {
		return nil, err
	}
	v, err := route.ParseDataVersion(req.Body)
	if err != nil {
		return nil, err
	}
	stored, changed := s.tables.compare(s.opts.Now(), who.addr, v, c)
	resp := req.Reply(remoting.Success, remoting.Bool("changed", changed))
	if stored != nil {
		resp.Body = stored.AppendJSON(nil, false)
	}
	return resp, nil
}

// formOf is the JSON that the asker understands.
func formOf(req *remoting.Command) route.Form {
	return route.FormFor(req.Version, req.Fields.Get("acceptStandardJsonOnly") == "true")
}

// getRoute serves 105.
func (s *Server) getRoute(_ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	topic := f.Text("topic")
	if err := f.Err(); err != nil {
		return nil, err
	}
	if !s.settled() {
		return req.Refuse(remoting.SystemError, "name server not ready"), nil
	}
	s.figures.routes.Add(1)
	r := s.tables.route(topic)
	if r == nil {
		s.figures.absent.Add(1)
		return req.Refuse(remoting.TopicNotExist, "No topic route info in name server for the topic: %s", topic), nil
	}
	if s.current().OrderMessages {
		r.OrderConf, _ = s.kv.get(orderNamespace, topic)
	}
	resp := req.Reply(remoting.Success)
	resp.Body = r.AppendJSON(nil, formOf(req))
	return resp, nil
}

// getCluster serves 106.
func (s *Server) getCluster(_ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	resp := req.Reply(remoting.Success)
	resp.Body = s.tables.cluster().AppendJSON(nil, formOf(req))
	return resp, nil
}

// getMemberGroup serves 901.
func (s *Server) getMemberGroup(_ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	cluster, name := f.Text("clusterName"), f.Text("brokerName")
	if err := f.Err(); err != nil {
		return nil, err
	}
	d := s.tables.broker(cluster, name)
	if d == nil {
		d = &route.BrokerData{Cluster: cluster, BrokerName: name}
	}
	resp := req.Reply(remoting.Success)
	resp.Body = route.AppendMemberGroup(nil, d, formOf(req))
	return resp, nil
}

// Bits of a topic's system flag.
const (
	flagUnit    int32 = 1
	flagUnitSub int32 = 2
)

// listTopics serves 206, 224, 304 and 311 to 313.
func (s *Server) listTopics(_ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	var l route.TopicList
	switch req.Code {
	case remoting.GetAllTopics:
		l.Topics = s.tables.topicsWhere(func(route.QueueData) bool { return true })
	case remoting.GetTopicsByCluster:
		f := req.Fields.Reader()
		cluster := f.Text("cluster")
		if err := f.Err(); err != nil {
			return nil, err
		}
		l.Topics = s.tables.topicsOf(cluster)
	case remoting.GetSystemTopics:
		l = s.tables.systemTopics()
	case remoting.GetUnitTopics:
		l.Topics = s.tables.topicsWhere(func(q route.QueueData) bool { return q.SysFlag&flagUnit != 0 })
	case remoting.GetUnitSubTopics:
		l.Topics = s.tables.topicsWhere(func(q route.QueueData) bool { return q.SysFlag&flagUnitSub != 0 })
	case remoting.GetUnitSubNotUnitTopics:
		l.Topics = s.tables.topicsWhere(func(q route.QueueData) bool { return q.SysFlag&(flagUnit|flagUnitSub) == flagUnitSub })
	}
	resp := req.Reply(remoting.Success)
	resp.Body = l.AppendJSON(nil)
	return resp, nil
}

// registerTopic serves 217.
func (s *Server) registerTopic(_ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	topic := f.Text("topic")
	if err := errors.Join(f.Err(), checkName("topic", topic)); err != nil {
		return nil, err
	}
	if len(req.Body) > 0 {
		r, err := route.ParseTopic(req.Body)
		if err != nil {
			return nil, err
		}
		for i := range r.Queues {
			if err := checkQueues(topic, r.Queues[i].ReadQueueNums, r.Queues[i].WriteQueueNums); err != nil {
				return nil, err
			}
		}
		s.tables.addTopic(topic, slices.Clip(r.Queues))
	}
	return req.Reply(remoting.Success), nil
}

// deleteTopic serves 216.
func (s *Server) deleteTopic(c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	topic, cluster := f.Text("topic"), req.Fields.Get("clusterName")
	if err := f.Err(); err != nil {
		return nil, err
	}
	s.tables.deleteTopic(topic, cluster)
	s.audit(c, "topic deleted", "topic", topic, "cluster", cluster)
	return req.Reply(remoting.Success), nil
}

// setWritePermission serves 205 and 327.
func (s *Server) setWritePermission(c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	name := f.Text("brokerName")
	if err := f.Err(); err != nil {
		return nil, err
	}
	field, change := "wipeTopicCount", func(perm int32) int32 { return perm &^ route.PermWrite }
	if req.Code == remoting.AddWritePermission {
		field, change = "addTopicCount", func(int32) int32 { return route.PermRead | route.PermWrite }
	}
	topics := s.tables.setPerm(name, change)
	s.audit(c, "write permission changed", "broker", name, "code", req.Code, "topics", topics)
	return req.Reply(remoting.Success, remoting.Int(field, int64(topics))), nil
}

// audit logs what an administrator did.
func (s *Server) audit(c *remoting.Conn, what string, args ...any) {
	s.opts.Logger.Info(what, append(args, "peer", c.RemoteAddr())...)
}
