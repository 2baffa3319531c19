package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

// names are the name servers. One is used until it fails, then the next.
type names struct {
	client *Client

	mu      sync.Mutex
	servers []string
	current int // index of the one in use
}

func newNames(c *Client, servers []string) *names {
	n := &names{client: c, servers: servers}
	if len(servers) > 0 {
		n.current = rand.IntN(len(servers))
	}
	return n
}

// order are the name servers, beginning with the one in use.
func (n *names) order() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Concat(n.servers[n.current:], n.servers[:n.current])
}

// use keeps the one that answered.
func (n *names) use(addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := slices.Index(n.servers, addr); i >= 0 {
		n.current = i
	}
}

// replace takes another list; the one in use stays if it is in it.
func (n *names) replace(servers []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var used string
	if len(n.servers) > 0 {
		used = n.servers[n.current]
	}
	n.servers = servers
	if n.current = slices.Index(servers, used); n.current < 0 {
		n.current = rand.IntN(len(servers))
	}
}

// call asks the name servers in turn until one answers with one of the codes that are wanted.
func (n *names) call(ctx context.Context, req *remoting.Command, wanted ...int32) (*remoting.Command, error) {
	errs := []error{ErrNoNameServer}
	servers := n.order()
	if len(servers) == 0 { // the first look at the address server has not come yet
		errs = append(errs, n.fetchList(ctx, http.DefaultClient))
		servers = n.order()
	}
	for _, addr := range servers {
		if ctx.Err() != nil {
			errs = append(errs, ctx.Err())
			break
		}
		one, cancel := context.WithTimeout(ctx, n.client.opts.CallTimeout)
		resp, err := n.client.Call(one, addr, req)
		cancel()
		if err == nil && slices.Contains(wanted, resp.Code) {
			n.use(addr)
			return resp, nil
		}
		if err == nil {
			err = success(addr, req, resp)
		}
		errs = append(errs, err)
		n.client.opts.Logger.Debug("name server", "addr", addr, "err", err)
	}
	return nil, errors.Join(errs...)
}

// How often the page with the list is read, how long that may take, and how long it may be.
const (
	addressEvery   = 2 * time.Minute
	addressTimeout = 3 * time.Second
	addressLimit   = 64 << 10
)

// followAddressServer keeps the list as the address server has it.
func (n *names) followAddressServer(ctx context.Context, web *http.Client) {
	remoting.Every(n.client.ctx, 0, addressEvery, nil, func() {
		if err := n.fetchList(ctx, web); err != nil && ctx.Err() == nil {
			n.client.opts.Logger.Warn("list of name servers", "url", n.client.opts.AddressServer, "err", err)
		}
	})
}

func (n *names) fetchList(ctx context.Context, web *http.Client) error {
	if n.client.opts.AddressServer == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, addressTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.client.opts.AddressServer, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := web.Do(req)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, addressLimit))
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	servers := ParseNameServers(string(text))
	if resp.StatusCode != http.StatusOK || len(servers) == 0 {
		return fmt.Errorf("status %d, %d name servers", resp.StatusCode, len(servers))
	}
	n.replace(servers)
	return nil
}
