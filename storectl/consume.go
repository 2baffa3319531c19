package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/consumer"
	"github.com/rocketstore/rocketstore/message"
)

// consuming is the verb consume.
type consuming struct {
	*app
	network  network
	topic    string
	group    string
	tags     string
	from     string
	count    int
	lagEvery time.Duration
	logLevel string
	options  consumer.Options // as the flags have it
	seen     int
	rows     *table
	said     quieted

	mu      sync.Mutex      // guards printed
	printed map[place]int64 // by queue, the offset behind the last message that was printed
}

// place is a queue of the topic.
type place struct {
	broker string
	queue  int32
}

// asks gives the progress of all queues of a topic, as the brokers have it now.
type asks func(ctx context.Context, topic string) ([]consumer.Progress, error)

// viewGroup is the group under which queues are read for nobody: no offset is stored for it. The original's tools use it too.
const viewGroup = "TOOLS_CONSUMER"

// closeTime is what the goodbye may take.
const closeTime = 10 * time.Second

func (a *app) consume() *cobra.Command {
	c := &consuming{app: a, printed: map[place]int64{}}
	cmd := &cobra.Command{
		Use:   "consume -t TOPIC [-g GROUP]",
		Short: "Print the messages of a topic as they come",
		Long: `Print the messages of a topic as they come, until Ctrl-C or SIGTERM, or --count of them. With --group it is a member of that
group: it gets its share of the queues, and what it has printed counts as consumed. Without, it reads all queues and leaves
no offset behind. --from says where to begin: at the end (last), at the first message there is (first), or at a time such as
2026-01-31T08:00:00Z or milliseconds since 1970; a group that has an offset goes on there. A new group begins a queue of which
the broker still has everything at its first message, whatever --from says: so brokers answer the question for its offset.

A group waits for a topic that is not there yet and for name servers that do not answer, and says so; without a group that is
an error. A message about trouble that comes again and again is printed at growing intervals.

Now and then, and at the end, the standard error says how many messages of the topic, in all its queues, are not consumed yet
(lag): what lies between the last one printed, else the group's offset, and the end that the brokers tell.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.network.flags(cmd)
	f := cmd.Flags()
	f.StringVarP(&c.topic, "topic", "t", "", "the topic")
	f.StringVarP(&c.group, "group", "g", "", "consume as a member of this group")
	f.StringVar(&c.tags, "tag", "*", `the tags to take, "a || b"`)
	f.StringVar(&c.from, "from", "last", "first, last or a time")
	f.IntVar(&c.count, "count", 0, "stop after so many messages; 0: do not stop")
	f.DurationVar(&c.lagEvery, "lag-every", 10*time.Second, "how often the lag is told; 0: at the end only")
	f.StringVar(&c.logLevel, "log-level", "error", "debug, info, warn or error")
	_ = cmd.MarkFlagRequired("topic") // it is there
	return cmd
}

func (c *consuming) run(ctx context.Context) error {
	if err := c.prepare(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	c.rows = c.table(column{"queue", 24}, column{"offset", -8}, column{"stored", 24}, column{"tag", 10}, column{"key", 16}, column{"body", 0})
	if c.group == "" {
		return c.view(ctx)
	}
	return c.join(ctx)
}

// prepare makes the options of the flags.
func (c *consuming) prepare() (err error) {
	o := &c.options
	if o.From, o.Since, err = parseFrom(c.from); err != nil {
		return err
	}
	if o.Logger, err = newLogger(c.errOut, c.logLevel, "text"); err != nil {
		return err
	}
	if c.count < 0 || c.lagEvery < 0 {
		return errors.New("--count and --lag-every must not be negative")
	}
	o.ClientOptions = c.network.options()
	o.Group, o.Topics = c.group, map[string]string{c.topic: c.tags}
	return nil
}

// parseFrom reads --from.
func parseFrom(text string) (consumer.From, time.Time, error) {
	switch strings.ToLower(text) {
	case "last":
		return consumer.FromLast, time.Time{}, nil
	case "first":
		return consumer.FromFirst, time.Time{}, nil
	}
	var at moment
	if err := at.Set(text); err != nil {
		return 0, time.Time{}, fmt.Errorf("--from %q: first, last, or %w", text, err)
	}
	return consumer.FromTime, time.UnixMilli(int64(at)), nil
}

// join consumes as a member of a group.
func (c *consuming) join(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	member, err := consumer.Start(ctx, &c.options)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, c.goodbye(ctx, member.Close))
	}()
	told := c.tell(ctx, member.TopicProgress)
	for m, err := range member.Messages(ctx) {
		if err != nil {
			c.grumble(err)
			continue
		}
		if err := c.print(m); err != nil {
			return err
		}
		if c.seen == c.count {
			cancel() // and the loop goes on once more, so that this one counts
		}
	}
	<-told
	return c.lastLag(ctx, member.TopicProgress)
}

// view reads all queues for nobody.
func (c *consuming) view(ctx context.Context) (err error) {
	o := &c.options
	p, err := consumer.StartPull(ctx, &consumer.PullOptions{
		ClientOptions: o.ClientOptions, Group: viewGroup, From: o.From, Since: o.Since, Fresh: true, NoSave: true, Logger: o.Logger,
	})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, c.goodbye(ctx, p.Close))
	}()
	queues, err := p.Queues(ctx, c.topic)
	if err == nil {
		err = p.Assign(ctx, c.tags, queues...)
	}
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	told := c.tell(inner, p.TopicProgress)
	if err := c.poll(ctx, p); err != nil {
		return err
	}
	cancel()
	<-told
	return c.lastLag(ctx, p.TopicProgress)
}

// poll prints what a puller gives, until ctx ends or it is enough.
func (c *consuming) poll(ctx context.Context, p *consumer.Puller) error {
	for c.count == 0 || c.seen < c.count {
		list, err := p.Poll(ctx)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			c.grumble(err)
			continue
		}
		for _, m := range list {
			if err := c.print(m); err != nil {
				return err
			}
			if c.seen == c.count {
				break
			}
		}
	}
	return nil
}

// goodbye gives what ends here some time, also after a signal.
func (c *consuming) goodbye(ctx context.Context, end func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	return end(ctx)
}

// consumed is a message in JSON. A body that is not UTF-8 is in base64.
type consumed struct {
	Topic      string            `json:"topic"`
	Broker     string            `json:"broker"`
	Queue      int32             `json:"queue"`
	Offset     int64             `json:"offset"`
	ID         string            `json:"id"`
	Stored     string            `json:"stored"`
	Tries      int32             `json:"tries,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
	Body       string            `json:"body,omitempty"`
	Bytes      []byte            `json:"bytes,omitempty"`
}

// print prints a message, and lets it be seen at once.
func (c *consuming) print(m *message.Received) error {
	c.seen++
	c.passed(m)
	v := consumed{
		Topic: m.Topic, Broker: m.BrokerName, Queue: m.QueueID, Offset: m.QueueOffset, ID: m.ID(), Stored: clock(m.StoreTimestamp),
		Tries: m.ReconsumeTimes, Properties: m.Properties.Map(),
	}
	if utf8.Valid(m.Body) {
		v.Body = string(m.Body)
	} else {
		v.Bytes = m.Body
	}
	keys, _ := m.Properties.Get(message.PropertyKeys)
	err := c.rows.row(v, fmt.Sprintf("%s/%s/%d", m.Topic, m.BrokerName, m.QueueID), m.QueueOffset, clock(m.StoreTimestamp), m.Tag(), keys, string(m.Body))
	return errors.Join(err, c.out.Flush())
}

// passed remembers that a message is printed. One that comes again comes from a queue of the retry topic.
func (c *consuming) passed(m *message.Received) {
	c.said.forget()
	if _, again := m.Properties.Get(message.PropertyRetryTopic); again {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := place{m.BrokerName, m.QueueID}
	c.printed[at] = max(c.printed[at], m.QueueOffset+1)
}

// tell prints the lag now and then, until ctx ends; then it closes the channel.
func (c *consuming) tell(ctx context.Context, ask asks) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c.lagEvery == 0 {
			return
		}
		ticker := time.NewTicker(c.lagEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if err := c.lag(ctx, ask); err != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return done
}

// lastLag prints the lag at the end, also after a signal.
func (c *consuming) lastLag(ctx context.Context, ask asks) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	c.said.forget() // the last word is said again
	return c.lag(ctx, ask)
}

// lag prints on the standard error how much is not consumed. That brokers do not tell it is no error: they may be down.
func (c *consuming) lag(ctx context.Context, ask asks) error {
	list, err := ask(ctx, c.topic)
	if ctx.Err() != nil && err != nil {
		return ctx.Err()
	}
	if err != nil {
		c.grumble(fmt.Errorf("lag not known: %w", err))
		return nil
	}
	var lag int64
	c.mu.Lock()
	for _, p := range list {
		p.Committed = max(p.Committed, c.printed[place{p.Queue.BrokerName, p.Queue.QueueID}])
		lag += p.Lag()
	}
	c.mu.Unlock()
	if c.json {
		c.note(map[string]int64{"lag": lag, "queues": int64(len(list))})
		return nil
	}
	_, err = fmt.Fprintf(c.errOut, "lag %d in %d queues\n", lag, len(list))
	return err
}

// grumble complains of what went wrong, unless that was said not long ago.
func (c *consuming) grumble(err error) {
	if c.said.due(stopped(err), time.Now()) {
		c.complain(err)
	}
}
