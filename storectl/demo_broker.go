package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/namesrv"
)

// demoTime bounds what the step over the network may take.
const demoTime = 30 * time.Second

// serve starts a name server and a broker in this process, and sends and pulls through them as a client does.
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

// exchange asks the name server for the way, sends and pulls.
func (d *demo) exchange(ctx context.Context, namesrvAddr string) error {
	addr, err := demoRoute(ctx, namesrvAddr)
	if err != nil {
		return err
	}
	c, err := dialLean(ctx, addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.conn.Close() }()
	const topic, queue, sends = "Greetings", "0", 3
	for i := range sends {
		fields := map[string]string{
			"a": demoGroup, "b": topic, "c": "TBW102", "d": "1", "e": queue, "f": "0", "g": strconv.FormatInt(time.Now().UnixMilli(), 10), "h": "0",
			"i": "TAGS\x01hello\x02",
		}
		const sendMessageV2 = 310
		answer, err := c.call(sendMessageV2, fields, fmt.Appendf(nil, "hello %d", i))
		if err != nil {
			return err
		}
		d.say("sent %q: queue %s, offset %s, id %s", fmt.Sprintf("hello %d", i), answer.Fields["queueId"], answer.Fields["queueOffset"], answer.Fields["msgId"])
	}
	const getMaxOffset, pullMessage, subscription = 30, 11, "4"
	where := map[string]string{"topic": topic, "queueId": queue}
	end, err := c.call(getMaxOffset, where, nil) // when it is known all can be read
	if err != nil {
		return err
	}
	answer, err := c.call(pullMessage, map[string]string{
		"consumerGroup": demoGroup, "topic": topic, "queueId": queue, "queueOffset": "0", "maxMsgNums": end.Fields["offset"], "sysFlag": subscription,
		"commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "hello", "subVersion": "0",
	}, nil)
	if err != nil {
		return err
	}
	for b := answer.body; len(b) > 0; {
		r, err := commitlog.Decode(b)
		if err != nil {
			return err
		}
		d.say("pulled %q at queue offset %d", r.Body, r.QueueOffset)
		b = b[r.Size:]
	}
	return nil
}

// demoRoute asks a name server where new topics are made, and returns the address of a broker.
func demoRoute(ctx context.Context, namesrvAddr string) (string, error) {
	c, err := dialLean(ctx, namesrvAddr)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.conn.Close() }()
	for {
		const getRoute = 105
		answer, err := c.call(getRoute, map[string]string{"topic": "TBW102"}, nil)
		if err == nil {
			var route struct {
				BrokerDatas []struct{ BrokerAddrs map[string]string }
			}
			if err := json.Unmarshal(answer.body, &route); err != nil || len(route.BrokerDatas) == 0 {
				return "", fmt.Errorf("route %q: %w", answer.body, err)
			}
			return route.BrokerDatas[0].BrokerAddrs["0"], nil
		}
		if answer == nil { // the name server did not answer; otherwise the broker has not registered yet
			return "", err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// leanClient speaks the remoting protocol, one request at a time: a frame is its length, the length of a JSON header, the
// header and the body.
type leanClient struct {
	conn   net.Conn
	opaque int
}

// leanHeader is the header of a frame.
type leanHeader struct {
	Code     int               `json:"code"`
	Language string            `json:"language"`
	Version  int               `json:"version"`
	Opaque   int               `json:"opaque"`
	Flag     int               `json:"flag"`
	Remark   string            `json:"remark,omitempty"`
	Fields   map[string]string `json:"extFields,omitempty"`

	body []byte
}

func dialLean(ctx context.Context, addr string) (*leanClient, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	return &leanClient{conn: conn}, conn.SetDeadline(deadline)
}

// call sends a request and reads the answer. With an answer that is not success, it and an error are returned.
func (c *leanClient) call(code int, fields map[string]string, body []byte) (*leanHeader, error) {
	c.opaque++
	const version497 = 407
	header, err := json.Marshal(leanHeader{Code: code, Language: "JAVA", Version: version497, Opaque: c.opaque, Fields: fields})
	if err != nil {
		return nil, err
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
	frame = append(append(frame, header...), body...)
	if _, err := c.conn.Write(frame); err != nil {
		return nil, err
	}
	var lengths [8]byte
	if _, err := io.ReadFull(c.conn, lengths[:]); err != nil {
		return nil, err
	}
	size, headerSize := binary.BigEndian.Uint32(lengths[:]), binary.BigEndian.Uint32(lengths[4:])
	const most = 16 << 20
	if size < 4 || size > most || headerSize > size-4 {
		return nil, fmt.Errorf("a frame of %d bytes with a header of %d", size, headerSize)
	}
	text := make([]byte, size-4)
	if _, err := io.ReadFull(c.conn, text); err != nil {
		return nil, err
	}
	answer := &leanHeader{body: text[headerSize:]}
	if err := json.Unmarshal(text[:headerSize], answer); err != nil {
		return nil, err
	}
	if answer.Code != 0 {
		return answer, fmt.Errorf("request %d: answer %d: %s", code, answer.Code, answer.Remark)
	}
	return answer, nil
}
