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
	o := openObject(b)
	o.text("brokerName", q.BrokerName)
	o.int("perm", int64(q.Perm))
	o.int("readQueueNums", int64(q.ReadQueueNums))
	if f.BareKeys {
		o.int("topicSynFlag", int64(q.SysFlag))
	}
	o.int("topicSysFlag", int64(q.SysFlag))
	o.int("writeQueueNums", int64(q.WriteQueueNums))
	return o.close()
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
	o := openObject(b)
	for _, id := range slices.Sorted(maps.Keys(addrs)) {
		o.comma()
		o.b = fastjson.AppendString(fastjson.AppendIntKey(o.b, id, f.BareKeys), addrs[id])
	}
	return o.close()
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
	o := openObject(b)
	o.b = appendAddrs(o.key("brokerAddrs"), d.Addrs, f)
	o.text("brokerName", d.BrokerName)
	if d.Cluster != "" {
		o.text("cluster", d.Cluster)
	}
	if d.ActingMaster != nil {
		o.bool("enableActingMaster", *d.ActingMaster)
	}
	if d.Zone != "" {
		o.text("zoneName", d.Zone)
	}
	return o.close()
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
	o := openObject(b)
	o.b = appendArray(o.key("brokerDatas"), t.Brokers, func(b []byte, d BrokerData) []byte { return d.appendJSON(b, f) })
	o.b = appendMap(o.key("filterServerTable"), t.FilterServers, appendTexts)
	if t.OrderConf != "" {
		o.text("orderTopicConf", t.OrderConf)
	}
	o.b = appendArray(o.key("queueDatas"), t.Queues, func(b []byte, q QueueData) []byte { return q.appendJSON(b, f) })
	return o.close()
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
	o := openObject(b)
	o.b = appendMap(o.key("brokerAddrTable"), c.Brokers, func(b []byte, d BrokerData) []byte { return d.appendJSON(b, f) })
	o.b = appendMap(o.key("clusterAddrTable"), c.Clusters, appendTexts)
	return o.close()
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
	group := openObject(nil)
	group.b = appendAddrs(group.key("brokerAddrs"), d.Addrs, f)
	group.text("brokerName", d.BrokerName)
	group.text("cluster", d.Cluster)
	o := openObject(b)
	o.b = append(o.key("brokerMemberGroup"), group.close()...)
	return o.close()
}

// TopicList is a list of names.
type TopicList struct {
	Topics []string
	// BrokerAddr is the address of some broker, in the list of system topics; "" else.
	BrokerAddr string
}

// AppendJSON appends the list.
func (l *TopicList) AppendJSON(b []byte) []byte {
	o := openObject(b)
	if l.BrokerAddr != "" {
		o.text("brokerAddr", l.BrokerAddr)
	}
	o.b = appendTexts(o.key("topicList"), l.Topics)
	return o.close()
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
	o := openObject(b)
	o.b = appendMap(o.key("table"), table, fastjson.AppendString)
	return o.close()
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
