package broker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// relayTimeout bounds what a relayed request waits for the client's answer.
const relayTimeout = 10 * time.Second

// relaySince is the version ordinal (3.1.8) from which clients answer 307 and 309.
const relaySince = 62

// relay serves 307 and 309: it hands the request to one client of a group, and the client's answer back.
func (b *Broker) relay(ctx context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	group, id := f.Text("consumerGroup"), f.Text("clientId")
	if err := f.Err(); err != nil {
		return nil, err
	}
	client, version := b.clients.find(group, id)
	switch {
	case client == nil:
		return req.Refuse(remoting.SystemError, "The Consumer <%s> <%s> not online", group, id), nil
	case version < relaySince:
		return req.Refuse(remoting.SystemError, "The Consumer <%s> Version <%d> too low to finish, please upgrade it to V3_1_8_SNAPSHOT", id, version), nil
	}
	asked := remoting.NewRequest(req.Code, slices.Clone(req.Fields)...)
	for _, name := range []string{remoting.FieldAccessKey, remoting.FieldSignature, remoting.FieldSecurityToken} {
		asked.Fields.Delete(name) // they are for us alone
	}
	if req.Code == remoting.ConsumeMessageDirectly {
		_, offset, err := message.ParseOffsetID(req.Fields.Get("msgId"))
		if err != nil {
			return nil, err
		}
		if asked.Body, err = b.store.RawAt(offset); err != nil {
			return nil, err
		}
		asked.Fields.Set("brokerName", b.opts.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, relayTimeout)
	defer cancel()
	answer, err := client.Call(ctx, asked)
	if errors.Is(err, remoting.ErrTimeout) {
		return req.Refuse(remoting.ConsumeMessageTimeout, "consumer <%s> <%s> does not answer", group, id), nil
	}
	if err != nil {
		return nil, err
	}
	resp := req.Reply(answer.Code, answer.Fields...)
	resp.Remark, resp.Body = answer.Remark, answer.Body
	return resp, nil
}

// find gives the connection of a client of a consumer group, nil if it is not there, and its version.
func (k *clients) find(group, id string) (client *remoting.Conn, version int32) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if g := k.consumers[group]; g != nil {
		return connOf(g.members, id)
	}
	return nil, 0
}

// producer gives the connection of a client that is in any producer group.
func (k *clients) producer(id string) *remoting.Conn {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, members := range k.producers {
		if c, _ := connOf(members, id); c != nil {
			return c
		}
	}
	return nil
}

func connOf(members map[*remoting.Conn]*member, id string) (*remoting.Conn, int32) {
	for c, m := range members {
		if m.id == id {
			return c, m.version
		}
	}
	return nil, 0
}
