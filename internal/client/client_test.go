package client_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/client"
	"github.com/rocketstore/rocketstore/internal/mqtest"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
	"github.com/rocketstore/rocketstore/message"
)

const brokerA, brokerB = "10.0.0.1:10911", "10.0.0.2:10911"

// requests notes what brokers were asked.
type requests struct {
	mu   sync.Mutex
	list []*remoting.Command
	addr []string
}

func (r *requests) handler(addr string, answer func(conn *remoting.Conn, req *remoting.Command) *remoting.Command) remoting.Handler {
	return func(_ context.Context, conn *remoting.Conn, req *remoting.Command) *remoting.Command {
		r.mu.Lock()
		r.list, r.addr = append(r.list, req), append(r.addr, addr)
		r.mu.Unlock()
		if answer != nil {
			return answer(conn, req)
		}
		return req.Reply(remoting.Success)
	}
}

func (r *requests) of(code int32) (found []*remoting.Command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, req := range r.list {
		if req.Code == code {
			found = append(found, req)
		}
	}
	return found
}

func newClient(t *testing.T, n *mqtest.Net, o client.Options) *client.Client {
	t.Helper()
	o.Dial = n.Dial
	if o.NameServers == nil {
		o.NameServers = []string{"ns1:9876"}
	}
	c, err := client.New(&o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// member is a producer and a consumer that notes what comes.
type member struct {
	data    client.ConsumerData
	checks  chan *message.Received
	changes atomic.Int32
	replies bool
}

func (m *member) CheckTransaction(_ string, _ *remoting.Command, r *message.Received) { m.checks <- r }

func (m *member) TakeReply(*message.Received) bool { return m.replies }

func (m *member) Heartbeat() client.ConsumerData { return m.data }

func (m *member) MembersChanged() { m.changes.Add(1) }

func (m *member) Serve(_ context.Context, _ *remoting.Conn, req *remoting.Command) *remoting.Command {
	return req.Reply(remoting.Success, remoting.String("served", m.data.Group))
}

func TestManyCallersShareOneLookUp(t *testing.T) { // R-D-039
	synctest.Test(t, func(t *testing.T) {
		n := mqtest.New(t)
		names := n.ServeNames("ns1:9876")
		names.Set("T", 4, "b", brokerB, "a", brokerA)
		c := newClient(t, n, client.Options{})
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				r, err := c.Route(t.Context(), "T", nil)
				if err != nil || len(r.Write) != 8 || r.Write[0] != (client.Queue{Topic: "T", BrokerName: "a"}) {
					t.Errorf("%v %v", r, err)
				}
			})
		}
		all.Wait()
		_, err := c.Route(t.Context(), "T", nil)
		require.NoError(t, err)
		require.Equal(t, 1, names.Asked("T"))
		require.Equal(t, 1, n.Dials("ns1:9876"))
		addr, err := c.Master("b")
		require.NoError(t, err)
		require.Equal(t, brokerB, addr)
	})
}

func TestUnknownTopicGetsTheDefaultTopicsRouteUntilItIsKnown(t *testing.T) { // R-D-039, R-D-041, R-D-094
	synctest.Test(t, func(t *testing.T) {
		n := mqtest.New(t)
		names := n.ServeNames("ns1:9876")
		names.Set("TBW102", 8, "a", brokerA)
		c := newClient(t, n, client.Options{})
		require.NoError(t, c.RegisterProducer("PG", &member{}))
		_, err := c.Route(t.Context(), "T", nil)
		require.ErrorIs(t, err, client.ErrNoRoute)
		r, err := c.Route(t.Context(), "T", &client.Fallback{Topic: "TBW102", Queues: 4})
		require.NoError(t, err)
		require.True(t, r.Fallback)
		require.Len(t, r.Write, 4)
		_, err = c.Route(t.Context(), "T", nil) // a consumer's view
		require.ErrorIs(t, err, client.ErrNoRoute)
		names.Set("T", 6, "a", brokerA)
		time.Sleep(31 * time.Second)
		require.Len(t, c.Cached("T").Write, 6)
		require.False(t, c.Cached("T").Fallback)
	})
}

func TestOnlyWritableQueuesOfBrokersWithAMasterAreWritten(t *testing.T) { // R-D-040
	synctest.Test(t, func(t *testing.T) {
		n := mqtest.New(t)
		names := n.ServeNames("ns1:9876")
		names.SetRoute("T", &route.Topic{
			Queues: []route.QueueData{
				{BrokerName: "c", ReadQueueNums: 1, WriteQueueNums: 1, Perm: route.PermRead},
				{BrokerName: "b", ReadQueueNums: 1, WriteQueueNums: 1, Perm: 6},
				{BrokerName: "a", ReadQueueNums: 1, WriteQueueNums: 2, Perm: 6},
			},
			Brokers: []route.BrokerData{
				{BrokerName: "a", Addrs: map[int64]string{0: brokerA}},
				{BrokerName: "b", Addrs: map[int64]string{1: brokerB}},
				{BrokerName: "c", Addrs: map[int64]string{0: "10.0.0.3:10911"}},
			},
		})
		c := newClient(t, n, client.Options{})
		r, err := c.Route(t.Context(), "T", nil)
		require.NoError(t, err)
		require.Equal(t, []client.Queue{{Topic: "T", BrokerName: "a"}, {Topic: "T", BrokerName: "a", QueueID: 1}}, r.Write)
		require.Len(t, r.Read, 3)
		_, err = c.Master("b")
		require.ErrorIs(t, err, client.ErrNoBroker)
		addr, slave, err := c.Broker("b", 0)
		require.NoError(t, err)
		require.True(t, slave)
		require.Equal(t, brokerB, addr)
	})
}

func TestAnOrderConfigurationIsTheQueueList(t *testing.T) { // R-D-112
	synctest.Test(t, func(t *testing.T) {
		n := mqtest.New(t)
		n.ServeNames("ns1:9876").SetRoute("T", &route.Topic{
			OrderConf: "b:1;a:2",
			Queues:    []route.QueueData{{BrokerName: "a", ReadQueueNums: 8, WriteQueueNums: 8, Perm: 6}},
			Brokers:   []route.BrokerData{{BrokerName: "a", Addrs: map[int64]string{0: brokerA}}},
		})
		r, err := newClient(t, n, client.Options{}).Route(t.Context(), "T", nil)
		require.NoError(t, err)
		require.Equal(t, []client.Queue{{"T", "b", 0}, {"T", "a", 0}, {"T", "a", 1}}, r.Write)
	})
}

func TestNameServersAreTakenInTurn(t *testing.T) { // R-D-132
	synctest.Test(t, func(t *testing.T) {
		n := mqtest.New(t)
		names := n.ServeNames("ns3:9876")
		names.Set("T", 1, "a", brokerA)
		n.ServeNames("ns2:9876").Refuse(remoting.SystemError) // 5.x in its first seconds
		n.Silence("ns1:9876", true)
		c := newClient(t, n, client.Options{NameServers: client.ParseNameServers("ns1:9876;ns2:9876;ns3:9876")})
		_, err := c.Route(t.Context(), "T", nil)
		require.NoError(t, err)
		before := n.Dials("ns1:9876")
		_, err = c.Refresh(t.Context(), "T")
		require.NoError(t, err)
		require.Equal(t, before, n.Dials("ns1:9876")) // the one that answered is kept
		n.Kill("ns3:9876")
		_, err = c.Refresh(t.Context(), "T")
		require.ErrorIs(t, err, client.ErrNoNameServer)
		e, ok := errors.AsType[*client.BrokerError](err)
		require.True(t, ok)
		require.Equal(t, remoting.SystemError, e.Code)
	})
}

func TestACallersEndDoesNotEndTheLookUp(t *testing.T) { // R-D-088
	synctest.Test(t, func(t *testing.T) {
		n := mqtest.New(t)
		n.Silence("ns1:9876", true)
		c := newClient(t, n, client.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := c.Route(ctx, "T", nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
	})
}

func TestTheInstanceNameOfABroadcastConsumerStays(t *testing.T) { // R-G-33
	c, err := client.New(&client.Options{NameServers: []string{"ns1:9876"}, KeepInstanceName: true})
	require.NoError(t, err)
	defer c.Close()
	require.True(t, strings.HasSuffix(c.ID(), "@DEFAULT"), c.ID())
}

func TestHeartbeatsTellEveryBrokerOfTheGroups(t *testing.T) { // R-D-129, R-D-130, R-D-133
	synctest.Test(t, func(t *testing.T) {
		n := mqtest.New(t)
		n.ServeNames("ns1:9876").Set("T", 1, "a", brokerA, "b", brokerB)
		var seen requests
		n.Serve(brokerA, seen.handler(brokerA, nil))
		n.Serve(brokerB, seen.handler(brokerB, nil))
		c := newClient(t, n, client.Options{InstanceName: "i", Unit: "u"})
		require.True(t, strings.HasSuffix(c.ID(), "@i@u"), c.ID())
		require.NoError(t, c.RegisterProducer("PG", &member{}))
		require.ErrorIs(t, c.RegisterProducer("PG", &member{}), client.ErrDuplicateGroup)
		require.NoError(t, c.RegisterConsumer("PG", &member{data: client.ConsumerData{
			Group: "PG", Passive: true, Subscriptions: []client.Subscription{{Topic: "T", Expression: "A", Tags: []string{"A"}, Codes: []int32{65}, Version: 7}},
		}}))
		_, err := c.Route(t.Context(), "T", nil)
		require.NoError(t, err)
		synctest.Wait() // both are told at once, since they are new; and once more when the loop was still at it as the route came
		beats := seen.of(remoting.Heartbeat)
		told := len(beats)
		require.Contains(t, []int{2, 4}, told)
		require.JSONEq(t, `{"clientID":"`+c.ID()+`","producerDataSet":[{"groupName":"PG"}],"consumerDataSet":[{"groupName":"PG",
			"consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING","consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","unitMode":false,
			"subscriptionDataSet":[{"topic":"T","subString":"A","tagsSet":["A"],"codeSet":[65],"subVersion":7,"classFilterMode":false,
			"expressionType":"TAG"}]}]}`, string(beats[told-1].Body))
		require.Equal(t, remoting.Version, c.Version(brokerA))
		time.Sleep(31 * time.Second)
		require.Len(t, seen.of(remoting.Heartbeat), told+2)
		c.UnregisterConsumer(t.Context(), "PG")
		c.UnregisterProducer(t.Context(), "PG")
		c.UnregisterProducer(t.Context(), "PG")
		byes := seen.of(remoting.UnregisterClient)
		require.Len(t, byes, 4)
		require.Equal(t, "PG", byes[0].Fields.Get("consumerGroup"))
		require.Equal(t, "PG", byes[3].Fields.Get("producerGroup"))
		require.Equal(t, c.ID(), byes[3].Fields.Get("clientID"))
		c.Close()
		require.ErrorIs(t, c.RegisterProducer("PG", &member{}), client.ErrClosed)
		_, err = c.Refresh(t.Context(), "T")
		require.ErrorIs(t, err, client.ErrClosed)
	})
}

func TestABrokerThatLeftAllRoutesIsDisconnected(t *testing.T) { // R-D-131
	synctest.Test(t, func(t *testing.T) {
		n := mqtest.New(t)
		names := n.ServeNames("ns1:9876")
		names.Set("T", 1, "a", brokerA, "b", brokerB)
		var seen requests
		n.Serve(brokerA, seen.handler(brokerA, nil))
		ended := make(chan struct{})
		var first atomic.Bool
		n.Serve(brokerB, seen.handler(brokerB, func(conn *remoting.Conn, req *remoting.Command) *remoting.Command {
			if first.CompareAndSwap(false, true) { // a second heartbeat may follow
				go func() {
					<-conn.Done()
					close(ended)
				}()
			}
			return req.Reply(remoting.Success)
		}))
		c := newClient(t, n, client.Options{})
		require.NoError(t, c.RegisterProducer("PG", &member{}))
		_, err := c.Route(t.Context(), "T", nil)
		require.NoError(t, err)
		synctest.Wait()
		names.Set("T", 1, "a", brokerA)
		time.Sleep(29500 * time.Millisecond) // before the second heartbeat, after the refresh
		_, err = c.Refresh(t.Context(), "T")
		require.NoError(t, err)
		<-ended
		_, err = c.Master("b")
		require.ErrorIs(t, err, client.ErrNoBroker)
	})
}

func TestRequestsOfBrokersReachTheGroup(t *testing.T) { // R-D-115
	synctest.Test(t, func(t *testing.T) {
		n := mqtest.New(t)
		n.ServeNames("ns1:9876").Set("T", 1, "a", brokerA)
		conns := make(chan *remoting.Conn, 10)
		n.Serve(brokerA, func(_ context.Context, conn *remoting.Conn, req *remoting.Command) *remoting.Command {
			conns <- conn
			return req.Reply(remoting.Success)
		})
		c := newClient(t, n, client.Options{})
		m := &member{data: client.ConsumerData{Group: "CG"}, checks: make(chan *message.Received, 1)}
		require.NoError(t, c.RegisterProducer("PG", m))
		require.NoError(t, c.RegisterConsumer("CG", m))
		_, err := c.Route(t.Context(), "T", nil)
		require.NoError(t, err)
		conn := <-conns

		check := remoting.NewRequest(remoting.CheckTransactionState)
		check.Body = recordOf(t, "PGROUP", "PG")
		require.NoError(t, conn.Oneway(t.Context(), check))
		require.Equal(t, "body", string((<-m.checks).Body))
		check.Body = recordOf(t, "PGROUP", "other")
		require.NoError(t, conn.Oneway(t.Context(), check))
		check.Body = check.Body[:20]
		require.NoError(t, conn.Oneway(t.Context(), check))

		require.NoError(t, conn.Oneway(t.Context(), remoting.NewRequest(remoting.NotifyConsumerIDsChanged, remoting.String("consumerGroup", "CG"))))
		synctest.Wait()
		require.EqualValues(t, 1, m.changes.Load())
		require.Empty(t, m.checks)

		for _, tt := range []struct {
			code   int32
			fields remoting.Fields
			want   int32
		}{
			{remoting.GetConsumerRunningInfo, remoting.Fields{{Name: "consumerGroup", Value: "CG"}}, remoting.Success},
			{remoting.ResetConsumerOffset, remoting.Fields{{Name: "group", Value: "CG"}}, remoting.Success},
			{remoting.GetConsumerRunningInfo, remoting.Fields{{Name: "consumerGroup", Value: "no"}}, remoting.SystemError},
			{remoting.PushReplyMessage, remoting.Fields{{Name: "topic", Value: "T"}}, remoting.Success},
			{remoting.PushReplyMessage, nil, remoting.SystemError},
			{999, nil, remoting.RequestCodeNotSupported},
		} {
			resp, err := conn.Call(t.Context(), remoting.NewRequest(tt.code, tt.fields...))
			require.NoError(t, err)
			require.Equal(t, tt.want, resp.Code, "%d %v %s", tt.code, tt.fields, resp.Remark)
		}
	})
}

func TestOffsetsAndMembersOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := mqtest.New(t)
		n.ServeNames("ns1:9876").Set("T", 4, "a", brokerA)
		var seen requests
		n.Serve(brokerA, seen.handler(brokerA, func(_ *remoting.Conn, req *remoting.Command) *remoting.Command {
			switch req.Code {
			case remoting.GetConsumerListByGroup:
				resp := req.Reply(remoting.Success)
				resp.Body = []byte(`{"consumerIdList":["b","a","b"]}`)
				return resp
			case remoting.QueryConsumerOffset:
				if req.Fields.Get("queueId") == "3" {
					return req.Refuse(remoting.QueryNotFound, "none")
				}
			}
			return req.Reply(remoting.Success, remoting.Int("offset", int64(req.Code)))
		}))
		c := newClient(t, n, client.Options{})
		ids, err := c.Members(t.Context(), "T", "CG")
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, ids)
		q := client.Queue{Topic: "T", BrokerName: "a", QueueID: 2}
		for _, tt := range []struct {
			want int64
			ask  func() (int64, error)
		}{
			{14, func() (int64, error) { return c.Offset(t.Context(), q, "CG") }},
			{30, func() (int64, error) { return c.MaxOffset(t.Context(), q) }},
			{31, func() (int64, error) { return c.MinOffset(t.Context(), q) }},
			{29, func() (int64, error) { return c.OffsetAt(t.Context(), q, 5) }},
		} {
			got, err := tt.ask()
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		}
		_, err = c.Offset(t.Context(), client.Queue{Topic: "T", BrokerName: "a", QueueID: 3}, "CG")
		require.ErrorIs(t, err, client.ErrNoOffset)
		require.NoError(t, c.CommitOffset(t.Context(), q, "CG", 5, true))
		require.NoError(t, c.CommitOffset(t.Context(), q, "CG", 6, false))
		synctest.Wait()
		commits := seen.of(remoting.UpdateConsumerOffset)
		require.Len(t, commits, 2)
		require.False(t, commits[0].IsOneway())
		require.True(t, commits[1].IsOneway())
		require.Equal(t, "6", commits[1].Fields.Get("commitOffset"))
		require.ErrorIs(t, c.CommitOffset(t.Context(), client.Queue{BrokerName: "x"}, "CG", 5, true), client.ErrNoBroker)
	})
}

// hook adds a field and counts answers.
type hook struct{ answers atomic.Int32 }

func (h *hook) BeforeRequest(_ string, req *remoting.Command) { req.Fields.Set("hook", "x") }
func (h *hook) AfterResponse(string, *remoting.Command, *remoting.Command) {
	h.answers.Add(1)
}

func TestHooksAndTheSignatureSeeEveryRequest(t *testing.T) { // R-A-05
	synctest.Test(t, func(t *testing.T) {
		n := mqtest.New(t)
		n.ServeNames("ns1:9876").Set("T", 4, "a", brokerA)
		var seen requests
		n.Serve(brokerA, seen.handler(brokerA, nil))
		h := &hook{}
		c := newClient(t, n, client.Options{Hooks: []client.RPCHook{h}, Credentials: &client.Credentials{AccessKey: "ak", SecretKey: "sk"}})
		_, err := c.Route(t.Context(), "T", nil)
		require.NoError(t, err)
		req := remoting.NewRequest(1)
		_, err = c.Do(t.Context(), brokerA, req)
		require.NoError(t, err)
		done := make(chan error)
		require.NoError(t, c.Async(t.Context(), brokerA, req, new(remoting.Pending), remoting.WaiterFunc(func(_ *remoting.Command, err error) { done <- err })))
		require.NoError(t, <-done)
		require.NoError(t, c.Oneway(t.Context(), brokerA, req))
		synctest.Wait()
		require.Empty(t, req.Fields)
		require.EqualValues(t, 3, h.answers.Load())
		for _, r := range seen.of(1) {
			require.Equal(t, "x", r.Fields.Get("hook"))
			require.NoError(t, remoting.Verify(r, func(string) (string, bool) { return "sk", true }))
		}
		c.Close()
		_, err = c.Call(t.Context(), brokerA, req)
		require.ErrorIs(t, err, client.ErrClosed)
	})
}

func TestOptionsThatAreWrongAreNamed(t *testing.T) {
	_, err := client.New(nil)
	require.ErrorIs(t, err, client.ErrOptions)
	require.ErrorIs(t, err, client.ErrNoNameServer)
	_, err = client.New(&client.Options{NameServers: []string{"x"}, RouteEvery: -1})
	require.ErrorContains(t, err, "RouteEvery")
	require.ErrorContains(t, err, "missing port")
	require.Equal(t, []string{"a:1", "b:2"}, client.ParseNameServers(" a:1; b:2;"))
}

func TestNamesWithANamespace(t *testing.T) {
	ns := client.Namespace("NS")
	for name, want := range map[string]string{
		"T": "NS%T", "NS%T": "NS%T", "%RETRY%G": "%RETRY%NS%G", "%DLQ%G": "%DLQ%NS%G", "TBW102": "TBW102", "": "", "rmq_sys_x": "rmq_sys_x",
	} {
		require.Equal(t, want, ns.Wrap(name))
	}
	require.Equal(t, "T", ns.Unwrap("NS%T"))
	require.Equal(t, "%RETRY%G", ns.Unwrap("%RETRY%NS%G"))
	require.Equal(t, "Other%T", ns.Unwrap("Other%T"))
	require.Equal(t, "T", client.Namespace("").Wrap("T"))
	require.Equal(t, "N%T", client.Namespace("").Unwrap("N%T"))
}

func TestAQueryAsksEveryBrokerAndLeavesOutOtherKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := mqtest.New(t)
		n.ServeNames("ns1:9876").Set("T", 4, "a", brokerA, "b", brokerB)
		var seen requests
		n.Serve(brokerA, seen.handler(brokerA, func(_ *remoting.Conn, req *remoting.Command) *remoting.Command {
			resp := req.Reply(remoting.Success)
			resp.Body = append(recordOf(t, "KEYS", "x k"), recordOf(t, "KEYS", "kk")...)
			resp.Body = append(resp.Body, recordOf(t, "UNIQ_KEY", "k")...)
			return resp
		}))
		answer := remoting.QueryNotFound
		n.Serve(brokerB, seen.handler(brokerB, func(_ *remoting.Conn, req *remoting.Command) *remoting.Command {
			return req.Refuse(answer, "none")
		}))
		c := newClient(t, n, client.Options{})
		list, err := c.Query(t.Context(), "T", "k", 32, 0, 0)
		require.NoError(t, err)
		require.Len(t, list, 2)
		require.Equal(t, "a", list[0].BrokerName)
		answer = remoting.SystemError
		list, err = c.Query(t.Context(), "T", "k", 32, 0, 0)
		require.ErrorContains(t, err, "broker b")
		require.Len(t, list, 2)
		_, err = c.Query(t.Context(), "U", "k", 32, 0, 0)
		require.ErrorIs(t, err, client.ErrNoRoute)
	})
}
