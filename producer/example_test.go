package producer_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/rocketstore/rocketstore/internal/mqtest"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/producer"
	"github.com/rocketstore/rocketstore/trace"
)

// exampleNet is a name server with one broker in memory, for the examples to send to.
func exampleNet() (dial func(context.Context, string) (net.Conn, error), end func()) {
	var tb exampleTB
	n := mqtest.New(&tb)
	names := n.ServeNames("127.0.0.1:9876")
	b := &fakeBroker{name: "a", addr: "10.0.0.1:10911"}
	n.Serve(b.addr, b.handle)
	for _, topic := range []string{"orders", trace.Topic} {
		names.Set(topic, 4, b.name, b.addr)
	}
	return n.Dial, tb.end
}

// exampleTB is what mqtest needs of a test.
type exampleTB struct {
	testing.TB
	cleanups []func()
}

func (tb *exampleTB) Cleanup(f func()) { tb.cleanups = append(tb.cleanups, f) }

func (tb *exampleTB) end() {
	for _, f := range tb.cleanups {
		f()
	}
}

// exampleProducer is started, and shut down by end.
func exampleProducer(o producer.Options) (p *producer.Producer, end func()) {
	dial, stop := exampleNet()
	o.Group, o.NameServers, o.ClientOptions.Dial = "shop", []string{"127.0.0.1:9876"}, dial
	p, err := producer.New(&o)
	if err == nil {
		err = p.Start(context.Background())
	}
	if err != nil {
		panic(err)
	}
	return p, func() {
		if err := p.Shutdown(context.Background()); err != nil {
			panic(err)
		}
		stop()
	}
}

func Example() {
	dial, stop := exampleNet() // a real program leaves Dial out
	defer stop()
	ctx := context.Background()
	p, err := producer.New(&producer.Options{
		Group: "shop", NameServers: []string{"127.0.0.1:9876"}, ClientOptions: producer.ClientOptions{Dial: dial},
	})
	if err != nil {
		panic(err)
	}
	if err := p.Start(ctx); err != nil {
		panic(err)
	}
	r, err := p.Send(ctx, &message.Message{Topic: "orders", Body: []byte("paid")})
	fmt.Println(r.Status, r.Queue.BrokerName, err)
	fmt.Println(p.Shutdown(ctx))
	// Output:
	// SEND_OK a <nil>
	// <nil>
}

func ExampleProducer_Send() {
	p, end := exampleProducer(producer.Options{})
	defer end()
	m := &message.Message{Topic: "orders", Body: []byte("paid")}
	if err := m.SetKeys("order-1"); err != nil {
		panic(err)
	}
	r, err := p.Send(context.Background(), m)
	fmt.Println(r.Status, len(r.MessageID), err)
	// Output: SEND_OK 32 <nil>
}

func ExampleProducer_Async() {
	p, end := exampleProducer(producer.Options{})
	defer end()
	done := make(chan struct{})
	err := p.Async(context.Background(), &message.Message{Topic: "orders", Body: []byte("paid")}, func(r producer.Result, err error) {
		fmt.Println(r.Status, err)
		close(done)
	})
	if err != nil {
		panic(err) // producer.ErrTooManyRequests: slow down
	}
	<-done
	// Output: SEND_OK <nil>
}

func ExampleProducer_Oneway() {
	p, end := exampleProducer(producer.Options{})
	defer end()
	fmt.Println(p.Oneway(context.Background(), &message.Message{Topic: "orders", Body: []byte("seen")}))
	// Output: <nil>
}

func ExampleProducer_SendTo() {
	p, end := exampleProducer(producer.Options{})
	defer end()
	q := producer.Queue{Topic: "orders", BrokerName: "a", QueueID: 2}
	r, err := p.SendTo(context.Background(), &message.Message{Topic: "orders", Body: []byte("paid")}, q)
	fmt.Println(r.Queue, err)
	// Output: orders@a:2 <nil>
}

func ExampleProducer_SendSelect() {
	p, end := exampleProducer(producer.Options{})
	defer end()
	for _, body := range []string{"made", "paid", "sent"} { // all of order 4711 in one queue, in this order
		r, err := p.SendSelect(context.Background(), &message.Message{Topic: "orders", Body: []byte(body)}, producer.ByKey, 4711)
		fmt.Println(r.Queue, err)
	}
	// Output:
	// orders@a:3 <nil>
	// orders@a:3 <nil>
	// orders@a:3 <nil>
}

func ExampleProducer_SendBatch() {
	p, end := exampleProducer(producer.Options{})
	defer end()
	var all []*message.Message
	for i := range 1000 {
		all = append(all, &message.Message{Topic: "orders", Body: fmt.Append(nil, "order ", i)})
	}
	for batch := range producer.Split(all, 64<<10) {
		r, err := p.SendBatch(context.Background(), batch)
		fmt.Println(len(batch), r.Status, err)
	}
	// Output:
	// 790 SEND_OK <nil>
	// 210 SEND_OK <nil>
}

func ExampleProducer_Send_delayed() {
	p, end := exampleProducer(producer.Options{})
	defer end()
	m := &message.Message{Topic: "orders", Body: []byte("still not paid?")}
	m.SetDelayLevel(16) // 30 minutes
	r, err := p.Send(context.Background(), m)
	fmt.Println(r.Status, err)
	// Output: SEND_OK <nil>
}

// books is a local transaction.
type books struct{}

func (books) Execute(context.Context, *message.Message, producer.Result, any) (producer.TransactionState, error) {
	return producer.Commit, nil // after the row was written
}

func (books) Check(context.Context, *message.Received) (producer.TransactionState, error) {
	return producer.Rollback, nil // when the row is not there
}

func ExampleProducer_SendInTransaction() {
	p, end := exampleProducer(producer.Options{Listener: books{}})
	defer end()
	r, err := p.SendInTransaction(context.Background(), &message.Message{Topic: "orders", Body: []byte("paid")}, nil)
	fmt.Println(r.Status, r.State, err)
	// Output: SEND_OK COMMIT_MESSAGE <nil>
}

func ExampleReply() {
	asked := &message.Received{} // what a consumer got
	asked.Properties, _ = message.NewProperties("CLUSTER", "DefaultCluster", "CORRELATION_ID", "1", "REPLY_TO_CLIENT", "127.0.0.1@p")
	m, err := producer.Reply(asked, []byte("42"))
	fmt.Println(m.Topic, err)
	// Output: DefaultCluster_REPLY_TOPIC <nil>
}

func ExampleProducer_Stats() {
	p, end := exampleProducer(producer.Options{Trace: true})
	defer end()
	if _, err := p.Send(context.Background(), &message.Message{Topic: "orders", Body: []byte("paid")}); err != nil {
		panic(err)
	}
	s := p.Stats()
	fmt.Println(s.Sent, s.Failed, s.Tries, s.TraceDiscarded)
	// Output: 1 0 1 0
}
