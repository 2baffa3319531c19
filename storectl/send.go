package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/producer"
)

// network are the flags of the verbs that talk to brokers.
type network struct {
	namesrv, accessKey, secretKey string
}

func (n *network) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&n.namesrv, "namesrv", "n", "127.0.0.1:9876", "the name servers, HOST:PORT;…")
	f.StringVar(&n.accessKey, "access-key", "", "account to sign requests with")
	f.StringVar(&n.secretKey, "secret-key", "", "its secret; better in the environment as ROCKETSTORE_SECRET_KEY")
}

func (n *network) options() producer.ClientOptions {
	o := producer.ClientOptions{NameServers: producer.ParseNameServers(n.namesrv)}
	if n.accessKey != "" {
		secret := n.secretKey
		if secret == "" {
			secret = os.Getenv("ROCKETSTORE_SECRET_KEY")
		}
		o.Credentials = &producer.Credentials{AccessKey: n.accessKey, SecretKey: secret}
	}
	return o
}

// sending are the flags of send.
type sending struct {
	network
	topic, key, tag, group, file string
	delay, count                 int
	rate                         float64
	timeout                      time.Duration
	trace, quiet                 bool
}

func (a *app) send() *cobra.Command {
	var s sending
	cmd := &cobra.Command{
		Use:   "send -t TOPIC [BODY]",
		Short: "Send messages to brokers",
		Long: `Send a message to a broker of the topic and print where it is. With --file each line of a file is a message (- is the
standard input); with --count the message is sent so many times. Several are sent side by side, at most --rate a second,
with a bar that shows how far it is; then a line says how many were stored and how long that took. The exit status is 2
when one was not.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (s.file == "") == (len(args) == 0) {
				return errors.New("either a BODY or --file is wanted")
			}
			if s.count < 1 || s.rate < 0 {
				return errors.New("--count is at least 1, --rate not negative")
			}
			return a.sendAll(cmd.Context(), &s, cmd.InOrStdin(), args)
		},
	}
	network := &s.network
	network.flags(cmd)
	f := cmd.Flags()
	f.StringVarP(&s.topic, "topic", "t", "", "topic of the messages")
	f.StringVarP(&s.key, "key", "k", "", "their key")
	f.StringVar(&s.tag, "tag", "", "their tag")
	f.StringVarP(&s.group, "group", "g", "storectl", "the producer group")
	f.StringVar(&s.file, "file", "", "send each line of this file")
	f.IntVar(&s.delay, "delay", 0, "delay level")
	f.IntVar(&s.count, "count", 1, "how often each message is sent")
	f.Float64Var(&s.rate, "rate", 0, "messages a second at most; 0 is no limit")
	f.DurationVar(&s.timeout, "timeout", 3*time.Second, "time budget of one send")
	f.BoolVar(&s.trace, "trace", false, "leave a trace of each send")
	f.BoolVar(&s.quiet, "quiet", false, "no bar")
	_ = cmd.MarkFlagRequired("topic")
	return cmd
}

// message makes one of a body.
func (s *sending) message(body string) (*message.Message, error) {
	m := &message.Message{Topic: s.topic, Body: []byte(body)}
	var keys []string
	if s.key != "" {
		keys = []string{s.key}
	}
	m.SetDelayLevel(s.delay)
	return m, errors.Join(m.SetTag(s.tag), m.SetKeys(keys...))
}

// bodies yields the body of each message, as often as it is wanted.
func (s *sending) bodies(stdin io.Reader, args []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if s.file == "" {
			for range s.count {
				if !yield(args[0], nil) {
					return
				}
			}
			return
		}
		in := stdin
		if s.file != "-" {
			f, err := os.Open(s.file)
			if err != nil {
				yield("", err)
				return
			}
			defer func() { _ = f.Close() }() // it was only read
			in = f
		}
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, 8<<20)
		for lines.Scan() {
			for range s.count {
				if !yield(lines.Text(), nil) {
					return
				}
			}
		}
		if err := lines.Err(); err != nil {
			yield("", err)
		}
	}
}

func (a *app) sendAll(ctx context.Context, s *sending, stdin io.Reader, args []string) (err error) {
	p, err := producer.New(&producer.Options{Group: s.group, ClientOptions: s.options(), SendTimeout: s.timeout, Trace: s.trace})
	if err != nil {
		return err
	}
	if err := p.Start(ctx); err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout+time.Second)
		defer cancel()
		err = errors.Join(err, p.Shutdown(end))
	}()
	if s.file == "" && s.count == 1 {
		m, err := s.message(args[0])
		if err != nil {
			return err
		}
		r, err := p.Send(ctx, m)
		if err != nil {
			return err
		}
		return a.sentRow(r)
	}
	return a.sendMany(ctx, p, s, s.bodies(stdin, args))
}

// sentRow prints where one message is.
func (a *app) sentRow(r producer.Result) error {
	return a.table(column{"STATUS", 20}, column{"BROKER", 12}, column{"QUEUE", -6}, column{"QOFFSET", -9}, column{"ID", 33}, column{"OFFSET ID", 32}).row(struct {
		Status      string `json:"status"`
		Broker      string `json:"broker"`
		QueueID     int32  `json:"queueId"`
		QueueOffset int64  `json:"queueOffset"`
		MsgID       string `json:"msgId"`
		OffsetMsgID string `json:"offsetMsgId"`
	}{r.Status.String(), r.Queue.BrokerName, r.Queue.QueueID, r.QueueOffset, r.MessageID, r.OffsetID},
		r.Status, r.Queue.BrokerName, r.Queue.QueueID, r.QueueOffset, r.MessageID, r.OffsetID)
}

// maxSending is how many sends are under way at most.
const maxSending = 256

// sendMany sends what comes, side by side, and prints one line at the end.
func (a *app) sendMany(ctx context.Context, p *producer.Producer, s *sending, bodies iter.Seq2[string, error]) error {
	bar := a.sendBar(s)
	slots := make(chan struct{}, maxSending)
	var mu sync.Mutex // guards first
	var first error
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if first == nil {
			first = err
		}
	}
	began, n := time.Now(), 0
	for body, err := range bodies {
		if err == nil {
			err = pace(ctx, began, n, s.rate)
		}
		var m *message.Message
		if err == nil {
			m, err = s.message(body)
		}
		if err != nil {
			fail(err)
			break
		}
		slots <- struct{}{}
		n++
		err = p.Async(ctx, m, func(_ producer.Result, err error) {
			if err != nil {
				fail(err)
			}
			_ = bar.Add(1) // a terminal that is gone stops no message
			<-slots
		})
		if err != nil {
			fail(err)
			<-slots
			break
		}
	}
	for range maxSending { // all have called back
		slots <- struct{}{}
	}
	_ = bar.Finish()
	took := time.Since(began)
	stats := p.Stats()
	return errors.Join(first, a.sentSummary(stats, took))
}

func (a *app) sentSummary(stats producer.Stats, took time.Duration) error {
	rate := float64(stats.Sent) / max(took.Seconds(), 1e-6)
	p50, p99 := stats.Latency.Percentile(0.5), stats.Latency.Percentile(0.99)
	return a.table(column{"SENT", -9}, column{"FAILED", -7}, column{"SECONDS", -8}, column{"PER SECOND", -11}, column{"P50", -9}, column{"P99", -9}).row(struct {
		Sent      int64   `json:"sent"`
		Failed    int64   `json:"failed"`
		Seconds   float64 `json:"seconds"`
		PerSecond float64 `json:"perSecond"`
		P50Micros int64   `json:"p50Micros"`
		P99Micros int64   `json:"p99Micros"`
	}{stats.Sent, stats.Failed, took.Seconds(), rate, p50.Microseconds(), p99.Microseconds()},
		stats.Sent, stats.Failed, fmt.Sprintf("%.2f", took.Seconds()), fmt.Sprintf("%.0f", rate), p50, p99)
}

// pace waits until message n is due.
func pace(ctx context.Context, began time.Time, n int, rate float64) error {
	if rate <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(time.Until(began.Add(time.Duration(float64(n) / rate * float64(time.Second)))))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sendBar is the bar on the standard error; of a file it is not known how long it will be.
func (a *app) sendBar(s *sending) *progressbar.ProgressBar {
	total := int64(s.count)
	if s.file != "" {
		total = -1
	}
	w := a.errOut
	if s.quiet || a.json {
		w = io.Discard
	}
	return progressbar.NewOptions64(total, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription("sent"),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish())
}
