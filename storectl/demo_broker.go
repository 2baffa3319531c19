package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/consumer"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/namesrv"
	"github.com/rocketstore/rocketstore/producer"
)

// demoTime bounds what the step over the network may take.
const demoTime = 30 * time.Second

// serve starts a name server and a broker in this process, and sends and consumes through them as any program does.
func (d *demo) serve(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, demoTime)
	defer cancel()
	d.title("A name server and a broker, in this process, on loopback")
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	names, err := namesrv.New(nil)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	served := make(chan error, 1)
	go func() { served <- names.Serve(context.WithoutCancel(ctx), l) }()
	defer func() { err = errors.Join(err, names.Shutdown(ctx), <-served) }()
	o := &broker.Options{Name: "demo", Port: -1, NameServers: []string{l.Addr().String()}, Dir: d.dir + "-broker"}
	o.Store = d.opts
	o.Store.SegmentSize = 1 << 20
	b, err := broker.Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Shutdown(ctx)) }()
	d.say("name server on %s, broker on %s; its store is in %s", l.Addr(), b.Addr(), o.Dir)
	return d.exchange(ctx, l.Addr().String())
}

// exchange sends with a producer and ends with a consumer, as any program does.
func (d *demo) exchange(ctx context.Context, namesrvAddr string) error {
	const topic, sends = "Greetings", 3
	names := []string{namesrvAddr}
	if err := d.greet(ctx, names, topic, sends); err != nil {
		return err
	}
	c, err := consumer.Start(ctx, &consumer.Options{
		NameServers: names, Group: demoGroup, From: consumer.FromFirst, Topics: map[string]string{topic: "hello"},
	})
	if err != nil {
		return err
	}
	n := 0
	reading, enough := context.WithCancel(ctx)
	defer enough()
	for m, err := range c.Messages(reading) {
		if err != nil {
			d.say("not yet: %v", err) // a consumer goes on trying
			continue
		}
		d.say("consumed %q: queue %d, offset %d", m.Body, m.QueueID, m.QueueOffset)
		if n++; n == sends {
			enough() // what was consumed counts when the loop comes for the next one
		}
	}
	if n < sends {
		err = fmt.Errorf("%d of %d messages came: %w", n, sends, ctx.Err())
	}
	return errors.Join(err, c.Close(ctx))
}

// greet sends the messages as soon as the broker is known to the name server.
func (d *demo) greet(ctx context.Context, names []string, topic string, sends int) error {
	p, err := producer.New(&producer.Options{Group: demoGroup, NameServers: names})
	if err != nil {
		return err
	}
	if err := p.Start(ctx); err != nil {
		return err
	}
	for i := 0; i < sends; {
		m := &message.Message{Topic: topic, Body: fmt.Appendf(nil, "hello %d", i)}
		if err := m.SetTag("hello"); err != nil {
			return errors.Join(err, p.Shutdown(ctx))
		}
		result, err := p.Send(ctx, m)
		switch {
		case errors.Is(err, producer.ErrNoRoute): // the broker has not registered yet
			select {
			case <-time.After(10 * time.Millisecond):
				continue
			case <-ctx.Done():
			}
			fallthrough
		case err != nil:
			return errors.Join(err, p.Shutdown(ctx))
		}
		d.say("sent %q: queue %d, offset %d, id %s", m.Body, result.Queue.QueueID, result.QueueOffset, result.MessageID)
		i++
	}
	return p.Shutdown(ctx)
}
