package route

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rocketstore/rocketstore/internal/fastjson"
)

// MasterID is the broker id of a master; all others are slaves.
const MasterID = 0

// Bits of a permission.
const (
	PermInherit int32 = 1
	PermWrite   int32 = 2
	PermRead    int32 = 4
)

// QueueData says how many queues of a topic one broker has.
type QueueData struct {
	BrokerName                                   string
	ReadQueueNums, WriteQueueNums, Perm, SysFlag int32
}

func (q QueueData) appendJSON(b []byte, f Form) []byte {
	o := fastjson.OpenObject(b)
	o.Text("brokerName", q.BrokerName)
	o.Int("perm", int64(q.Perm))
	o.Int("readQueueNums", int64(q.ReadQueueNums))
	if f.BareKeys {
		o.Int("topicSynFlag", int64(q.SysFlag))
	}
	o.Int("topicSysFlag", int64(q.SysFlag))
	o.Int("writeQueueNums", int64(q.WriteQueueNums))
	return o.Close()
}

func readQueueData(r *fastjson.Reader) (q QueueData) {
	r.Object(func(key string) {
		switch key {
		case "brokerName":
			q.BrokerName = r.Clone()
		case "readQueueNums":
			q.ReadQueueNums = r.Int32()
		case "writeQueueNums":
			q.WriteQueueNums = r.Int32()
		case "perm":
			q.Perm = r.Int32()
		case "topicSysFlag", "topicSynFlag":
			q.SysFlag = r.Int32()
		}
	})
	return q
}

// BrokerData says where the brokers of one name listen.
type BrokerData struct {
	Cluster, BrokerName string
	// Addrs are host:port by broker id.
	Addrs map[int64]string
	// ActingMaster is 5.x's enableActingMaster, nil if nobody said.
	ActingMaster *bool
	// Zone is 5.x's zoneName.
	Zone string
}

// Clone returns a copy that shares nothing.
func (d *BrokerData) Clone() BrokerData {
	c := *d
	c.Addrs = maps.Clone(d.Addrs)
	return c
}

// SelectAddr is the address of the master, else that of the lowest id; "" if there is none.
func (d *BrokerData) SelectAddr() string {
	if len(d.Addrs) == 0 {
		return ""
	}
	return d.Addrs[slices.Min(slices.Collect(maps.Keys(d.Addrs)))]
}

func appendAddrs(b []byte, addrs map[int64]string, f Form) []byte {
	o := fastjson.OpenObject(b)
	for _, id := range slices.Sorted(maps.Keys(addrs)) {
		o.Comma()
		o.B = fastjson.AppendString(fastjson.AppendIntKey(o.B, id, f.BareKeys), addrs[id])
	}
	return o.Close()
}

func readAddrs(r *fastjson.Reader) map[int64]string {
	addrs := map[int64]string{}
	r.Object(func(key string) {
		id, err := strconv.ParseInt(key, 10, 64)
		if err != nil {
			r.Fail(err)
			return
		}
		addrs[id] = r.Clone()
	})
	return addrs
}

func (d *BrokerData) appendJSON(b []byte, f Form) []byte {
	o := fastjson.OpenObject(b)
	o.B = appendAddrs(o.Key("brokerAddrs"), d.Addrs, f)
	o.Text("brokerName", d.BrokerName)
	if d.Cluster != "" {
		o.Text("cluster", d.Cluster)
	}
	if d.ActingMaster != nil {
		o.Bool("enableActingMaster", *d.ActingMaster)
	}
	if d.Zone != "" {
		o.Text("zoneName", d.Zone)
	}
	return o.Close()
}

func readBrokerData(r *fastjson.Reader) (d BrokerData) {
	r.Object(func(key string) {
		switch key {
		case "cluster":
			d.Cluster = r.Clone()
		case "brokerName":
			d.BrokerName = r.Clone()
		case "brokerAddrs":
			d.Addrs = readAddrs(r)
		case "enableActingMaster":
			if !r.Null() {
				d.ActingMaster = new(r.Bool())
			}
		case "zoneName":
			d.Zone = r.Clone()
		}
	})
	return d
}

// Topic is the route of one topic (TopicRouteData).
type Topic struct {
	// OrderConf is "broker:count;…" if the topic is ordered over all brokers; "" else.
	OrderConf     string
	Queues        []QueueData
	Brokers       []BrokerData
	FilterServers map[string][]string // by broker address
}

// AppendJSON appends the route.
func (t *Topic) AppendJSON(b []byte, f Form) []byte {
	o := fastjson.OpenObject(b)
	o.B = fastjson.AppendArray(o.Key("brokerDatas"), t.Brokers, func(b []byte, d BrokerData) []byte { return d.appendJSON(b, f) })
	o.B = appendMap(o.Key("filterServerTable"), t.FilterServers, appendTexts)
	if t.OrderConf != "" {
		o.Text("orderTopicConf", t.OrderConf)
	}
	o.B = fastjson.AppendArray(o.Key("queueDatas"), t.Queues, func(b []byte, q QueueData) []byte { return q.appendJSON(b, f) })
	return o.Close()
}

// ParseTopic reads a route. An error matches fastjson.ErrSyntax.
func ParseTopic(b []byte) (*Topic, error) {
	r, t := fastjson.NewReader(string(b)), &Topic{}
	r.Object(func(key string) {
		switch key {
		case "orderTopicConf":
			t.OrderConf = r.Clone()
		case "queueDatas":
			r.Array(func() { t.Queues = append(t.Queues, readQueueData(r)) })
		case "brokerDatas":
			r.Array(func() { t.Brokers = append(t.Brokers, readBrokerData(r)) })
		case "filterServerTable":
			t.FilterServers = map[string][]string{}
			r.Object(func(addr string) { t.FilterServers[strings.Clone(addr)] = readTexts(r) })
		}
	})
	if err := r.End(); err != nil {
		return nil, err
	}
	return t, nil
}

// Cluster is all brokers and clusters (ClusterInfo).
type Cluster struct {
	Brokers  map[string]BrokerData // by broker name
	Clusters map[string][]string   // broker names by cluster
}

// AppendJSON appends the cluster.
func (c *Cluster) AppendJSON(b []byte, f Form) []byte {
	o := fastjson.OpenObject(b)
	o.B = appendMap(o.Key("brokerAddrTable"), c.Brokers, func(b []byte, d BrokerData) []byte { return d.appendJSON(b, f) })
	o.B = appendMap(o.Key("clusterAddrTable"), c.Clusters, appendTexts)
	return o.Close()
}

// ParseCluster reads a cluster. An error matches fastjson.ErrSyntax.
func ParseCluster(b []byte) (*Cluster, error) {
	r, c := fastjson.NewReader(string(b)), &Cluster{Brokers: map[string]BrokerData{}, Clusters: map[string][]string{}}
	r.Object(func(key string) {
		switch key {
		case "brokerAddrTable":
			r.Object(func(name string) { c.Brokers[strings.Clone(name)] = readBrokerData(r) })
		case "clusterAddrTable":
			r.Object(func(name string) { c.Clusters[strings.Clone(name)] = readTexts(r) })
		}
	})
	if err := r.End(); err != nil {
		return nil, err
	}
	return c, nil
}

// AppendMemberGroup appends what answers request 901: the brokers of one name.
func AppendMemberGroup(b []byte, d *BrokerData, f Form) []byte {
	group := fastjson.OpenObject(nil)
	group.B = appendAddrs(group.Key("brokerAddrs"), d.Addrs, f)
	group.Text("brokerName", d.BrokerName)
	group.Text("cluster", d.Cluster)
	o := fastjson.OpenObject(b)
	o.B = append(o.Key("brokerMemberGroup"), group.Close()...)
	return o.Close()
}

// TopicList is a list of names.
type TopicList struct {
	Topics []string
	// BrokerAddr is the address of some broker, in the list of system topics; "" else.
	BrokerAddr string
}

// AppendJSON appends the list.
func (l *TopicList) AppendJSON(b []byte) []byte {
	o := fastjson.OpenObject(b)
	if l.BrokerAddr != "" {
		o.Text("brokerAddr", l.BrokerAddr)
	}
	o.B = appendTexts(o.Key("topicList"), l.Topics)
	return o.Close()
}

// ParseTopicList reads a list. An error matches fastjson.ErrSyntax.
func ParseTopicList(b []byte) (*TopicList, error) {
	r, l := fastjson.NewReader(string(b)), &TopicList{}
	r.Object(func(key string) {
		switch key {
		case "topicList":
			l.Topics = readTexts(r)
		case "brokerAddr":
			l.BrokerAddr = r.Clone()
		}
	})
	if err := r.End(); err != nil {
		return nil, err
	}
	return l, nil
}

// AppendTable appends a KVTable.
func AppendTable(b []byte, table map[string]string) []byte {
	o := fastjson.OpenObject(b)
	o.B = appendMap(o.Key("table"), table, fastjson.AppendString)
	return o.Close()
}

// ParseTable reads a KVTable. An error matches fastjson.ErrSyntax.
func ParseTable(b []byte) (map[string]string, error) {
	r, table := fastjson.NewReader(string(b)), map[string]string{}
	r.Object(func(key string) {
		if key == "table" {
			r.Object(func(name string) { table[strings.Clone(name)] = r.Clone() })
		}
	})
	if err := r.End(); err != nil {
		return nil, err
	}
	return table, nil
}
