package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/producer"
	"github.com/rocketstore/rocketstore/recovery"
)

// importHelp is what the help of import says of brokers.
const importHelp = `

With --namesrv the records are sent to brokers instead: "storectl import -n HOST:PORT [FILE]". Topic, queue id, tags, keys,
all other properties, the unique key, the flag, the born time and the body stay (a compressed body is packed anew); a record
without a unique key gets its old message id as one. A broker gives what is its own: queue offset, place in the log and the
message id made of it, store time and host, the born host, and the count of tries but in %RETRY% topics. Messages of one queue
keep their order. Left out and counted: what belongs to the broker's own topics, prepared messages and rollbacks of 3.1,
replies, batches of 5.x; and of a message that was delayed or part of a transaction the marks of that, since it is done. --delayed
sends those under the schedule topic to their own topic with their delay level anew: choose those that still waited.

It stops at the first record that no broker takes, and names it. With --cursor FILE the next call with the same input goes
on behind what was sent; one that was killed may send up to 256 records again. With --keep-going such records are named and
passed over, and the exit status is 1.`

// importSend are the flags of an import into brokers.
type importSend struct {
	network
	broker, group, cursor        string
	rate                         float64
	timeout                      time.Duration
	anyQueue, keepGoing, delayed bool
	queues                       int32
}

func (s *importSend) flags(cmd *cobra.Command) {
	s.network.flags(cmd)
	f := cmd.Flags()
	n := f.Lookup("namesrv")
	n.Usage, n.DefValue, s.namesrv = "send the records to the brokers that these name servers know, HOST:PORT;…", "", ""
	f.StringVar(&s.broker, "broker", "", "send to the broker of this name (default: the first one that has the queue)")
	f.StringVarP(&s.group, "group", "g", "storectl", "the producer group")
	f.StringVar(&s.cursor, "cursor", "", "file that keeps what was sent: the next call with it goes on there")
	f.Float64Var(&s.rate, "rate", 0, "messages a second at most; 0 is no limit")
	f.DurationVar(&s.timeout, "timeout", 3*time.Second, "time budget of one send")
	f.BoolVar(&s.anyQueue, "any-queue", false, "send what has a queue id that the topic lacks to another queue of it")
	f.BoolVar(&s.keepGoing, "keep-going", false, "pass over records that no broker takes")
	f.BoolVar(&s.delayed, "delayed", false, "send what lies under the schedule topic too, with its delay anew")
	f.Int32Var(&s.queues, "queues", 8, "queues of a topic that is not there yet, as far as the broker allows")
}

// check says which flags do not go together: those of a new store and those of brokers.
func (s *importSend) check(cmd *cobra.Command) error {
	f := cmd.Flags()
	wrong, why := []string{"broker", "group", "cursor", "rate", "timeout", "any-queue", "keep-going", "delayed", "queues", "access-key", "secret-key"}, "is for brokers, and wants --namesrv"
	if f.Changed("namesrv") {
		wrong, why = []string{
			"segment-size", "queue-segment-size", "state-segment-size", "redo-segment-size", "index-slots", "index-entries", "max-message-size", "dialect",
		}, "is for a new store, and does not go with --namesrv"
	}
	for _, name := range wrong {
		if f.Changed(name) {
			return fmt.Errorf("--%s %s", name, why)
		}
	}
	if s.rate < 0 || s.queues < 1 {
		return errors.New("--rate is not negative, --queues at least 1")
	}
	return nil
}

// brokerImport is one import into brokers.
type brokerImport struct {
	*importSend
	app     *app
	p       *producer.Producer
	began   time.Time
	paced   atomic.Int64 // sends that were let through
	done    importCursor
	skipped map[string]int64 // records that are left out, by why
	unsafe  atomic.Int64     // stored, but not as safe as the broker is set up to make it

	mu     sync.Mutex // guards failed and the program's output
	failed int64
}

// toBrokers sends what in holds.
func (a *app) toBrokers(ctx context.Context, s *importSend, in io.Reader) (err error) {
	i := &brokerImport{importSend: s, app: a, skipped: make(map[string]int64)}
	if err := i.done.load(s.cursor); err != nil {
		return err
	}
	i.p, err = producer.New(&producer.Options{
		Group: s.group, ClientOptions: s.options(), SendTimeout: s.timeout, RetrySameQueue: true, KeepBorn: true,
		MaxMessageSize: inspect.MaxPlainBody, DefaultTopicQueues: s.queues,
	})
	if err != nil {
		return err
	}
	if err := i.p.Start(ctx); err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout+time.Second)
		defer cancel()
		err = errors.Join(err, i.p.Shutdown(end))
	}()
	i.began = time.Now()
	err = i.run(ctx, in)
	return errors.Join(err, i.end())
}

// An import reads so many records, or so many bytes of them, before it sends them: those of one queue in order, queues side by
// side.
const (
	importChunk      = 256
	importChunkBytes = 16 << 20
	importQueues     = 32
)

// outgoing is a record on its way to a broker.
type outgoing struct {
	number int64 // in the input, from 0
	name   string
	queue  int32
	msg    *message.Message
}

// run reads the input and sends it, a chunk at a time.
func (i *brokerImport) run(ctx context.Context, in io.Reader) error {
	var chunk []outgoing
	n, size := int64(0), 0
	for b, err := range exportedRecords(in) {
		var o *outgoing
		if err == nil {
			err = i.done.see(n, b)
		}
		if err == nil && n >= i.done.Records {
			o, err = i.take(n, b)
		}
		if err != nil {
			return errors.Join(i.send(ctx, chunk, n), fmt.Errorf("record %d: %w", n+1, err))
		}
		n++
		if o != nil {
			chunk = append(chunk, *o)
			size += len(b)
		}
		if len(chunk) == importChunk || size >= importChunkBytes {
			if err := i.send(ctx, chunk, n); err != nil {
				return err
			}
			chunk, size = chunk[:0], 0
		}
	}
	if n < i.done.Records {
		return fmt.Errorf("%s: %d records are sent, the input has %d: it is not the one that the cursor is of", i.cursor, i.done.Records, n)
	}
	return i.send(ctx, chunk, n)
}

// take makes a message of a record; nil when it is left out, or was sent before.
func (i *brokerImport) take(n int64, b []byte) (*outgoing, error) {
	r, err := commitlog.Decode(b)
	if err == nil {
		err = r.CheckBody()
	}
	if err != nil || i.done.has(n) {
		return nil, err
	}
	o := &outgoing{number: n, name: fmt.Sprintf("record %d (%s/%d/%d at %d)", n+1, r.Topic, r.QueueID, r.QueueOffset, r.PhysicalOffset)}
	why := ""
	if o.msg, o.queue, why = i.message(&r); why != "" {
		i.skipped[why]++
		return nil, nil
	}
	if o.msg.Body, err = inspect.PlainBody(&r); err != nil {
		return nil, i.refuse(o, err)
	}
	o.msg.Body = slices.Clone(o.msg.Body) // the record is valid until the next only
	return o, nil
}

// refuse notes that a record cannot be sent, and gives the error that ends the import, if it does.
func (i *brokerImport) refuse(o *outgoing, err error) error {
	err = fmt.Errorf("%s: %w", o.name, err)
	if !i.keepGoing {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.failed++
	i.app.missing(err)
	return nil
}

// send sends the messages of a chunk, and notes that all of the input before record next is dealt with.
func (i *brokerImport) send(ctx context.Context, chunk []outgoing, next int64) error {
	byQueue := make(map[string][]*outgoing)
	for k := range chunk {
		o := &chunk[k]
		q := o.msg.Topic + "/" + strconv.Itoa(int(o.queue))
		byQueue[q] = append(byQueue[q], o)
	}
	var all sync.WaitGroup
	slots, failed := make(chan struct{}, importQueues), make(chan error, len(byQueue))
	for _, queue := range byQueue {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			failed <- i.inOrder(ctx, queue)
		})
	}
	all.Wait()
	close(failed)
	var err error
	for e := range failed { // one is enough, as with Ctrl-C all have the same
		err = cmp.Or(err, e)
	}
	if err == nil {
		i.done.through(next)
	}
	return errors.Join(err, i.done.save(i.cursor))
}

// inOrder sends the messages of one queue one by one, up to the first that fails.
func (i *brokerImport) inOrder(ctx context.Context, queue []*outgoing) error {
	for _, o := range queue {
		if err := pace(ctx, i.began, int(i.paced.Add(1)-1), i.rate); err != nil {
			return err
		}
		// What is under way ends: it would be sent again else.
		r, err := i.p.SendSelect(context.WithoutCancel(ctx), o.msg, i.choose, o.queue)
		if err != nil {
			if err := i.refuse(o, err); err != nil {
				return err
			}
			continue
		}
		if r.Status != producer.OK {
			i.unsafe.Add(1)
		}
		i.done.add(o.number)
	}
	return nil
}

// choose is the selector: the queue of that id, of the broker that was named or else of the first that has it.
func (i *brokerImport) choose(queues []producer.Queue, m *message.Message, arg any) (producer.Queue, error) {
	var brokers []producer.Queue
	for _, q := range queues {
		if i.broker != "" && q.BrokerName != i.broker {
			continue
		}
		if q.QueueID == arg.(int32) {
			return q, nil
		}
		brokers = append(brokers, q)
	}
	switch {
	case len(brokers) == 0:
		return producer.Queue{}, fmt.Errorf("topic %s has no queue that can be written at broker %s", m.Topic, cmp.Or(i.broker, "(any)"))
	case i.anyQueue:
		return brokers[int(max(arg.(int32), 0))%len(brokers)], nil
	}
	return producer.Queue{}, fmt.Errorf("topic %s has no queue %d, only %d: make the topic with more, or say --any-queue", m.Topic, arg, len(brokers))
}

// end prints what was done.
func (i *brokerImport) end() error {
	a := i.app
	stats, took, left := i.p.Stats(), time.Since(i.began), int64(0)
	for _, n := range i.skipped {
		left += n
	}
	if n := i.unsafe.Load(); n > 0 {
		a.missing(fmt.Errorf("%d messages are stored, but not known to be as safe as the broker is to make them (disk or slave too slow)", n))
	}
	err := a.table(column{"SENT", -9}, column{"FAILED", -7}, column{"LEFT OUT", -9}, column{"SECONDS", -8}).row(struct {
		Sent    int64            `json:"sent"`
		Failed  int64            `json:"failed"`
		LeftOut map[string]int64 `json:"leftOut"`
		Unsafe  int64            `json:"unsafe"`
		Seconds float64          `json:"seconds"`
	}{stats.Sent, i.failed, i.skipped, i.unsafe.Load(), took.Seconds()}, stats.Sent, i.failed, left, fmt.Sprintf("%.2f", took.Seconds()))
	if err != nil || a.json {
		return err
	}
	for _, why := range slices.Sorted(maps.Keys(i.skipped)) {
		fmt.Fprintf(a.out, "left out: %d of %s\n", i.skipped[why], why)
	}
	return nil
}

// Why a record is left out.
const (
	ofSystem   = "a topic of the broker's own"
	ofPrepared = "a transaction that is not committed"
	ofReply    = "replies"
	ofBatch    = "batches of 5.x"
)

// ownTopics are the topics that only a broker writes to.
func ownTopics() []string {
	return []string{
		recovery.ScheduleTopic, rocketstore.HalfTopicName, rocketstore.OpTopicName, rocketstore.GiveUpTopicName, "SELF_TEST_TOPIC",
		"OFFSET_MOVED_EVENT", "TBW102",
	}
}

// doneMarks are properties that would make a broker do again what was done to the message, or that it makes itself.
func doneMarks() []string {
	return []string{
		message.PropertyDelay, message.PropertyTransactionPrepared, message.PropertyRealTopic, message.PropertyRealQueueID,
		message.PropertyTimerDelayMillis, message.PropertyTimerDelaySeconds, message.PropertyTimerDeliverMillis, "TIMER_OUT_MS", "TIMER_ENQUEUE_MS",
		"TIMER_DEQUEUE_MS", "TIMER_ROLL_TIMES", message.PropertyCRC32, message.PropertyMultiQueueOffset,
		message.PropertyTransactionCheckTimes, message.PropertyPreparedQueueOffset,
	}
}

// message is a record as a producer sends it, without its body, and the queue for it; or why it is left out.
func (i *brokerImport) message(r *commitlog.Record) (m *message.Message, queue int32, why string) {
	m = &message.Message{Topic: string(r.Topic), Flag: r.Flag, BornTimestamp: r.BornTimestamp, Properties: message.Properties(r.Properties)}
	queue = r.QueueID
	level := m.Property(message.PropertyDelay)
	if m.Topic == recovery.ScheduleTopic && i.delayed {
		id, err := strconv.ParseInt(m.Property(message.PropertyRealQueueID), 10, 32)
		if topic := m.Property(message.PropertyRealTopic); topic != "" && err == nil {
			m.Topic, queue = topic, int32(id)
		}
	} else {
		level = ""
	}
	switch {
	case slices.Contains(ownTopics(), m.Topic), strings.HasPrefix(m.Topic, "rmq_sys_"):
		return m, queue, ofSystem
	case !r.SysFlag.Queued():
		return m, queue, ofPrepared
	case m.Property(message.PropertyMessageType) == "reply":
		return m, queue, ofReply
	case r.SysFlag.Has(message.FlagInnerBatch):
		return m, queue, ofBatch
	}
	for _, name := range doneMarks() {
		m.Properties = m.Properties.Delete(name)
	}
	set := func(name, value string) { m.Properties, _ = m.Properties.Set(name, value) } // values without 0x01 and 0x02
	if level != "" {
		set(message.PropertyDelay, level)
	}
	if m.Property(message.PropertyUniqueKey) == "" {
		set(message.PropertyUniqueKey, r.ID())
	}
	if strings.HasPrefix(m.Topic, "%RETRY%") {
		set(message.PropertyReconsumeTime, strconv.Itoa(int(r.ReconsumeTimes)))
	}
	return m, queue, ""
}
