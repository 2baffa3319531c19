package remoting

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// Pipe is a listener in memory: what [Pipe.Dial] returns is accepted at the other end. Tests run whole servers and
// clients on it inside a synctest bubble, where a socket cannot be.
type Pipe struct {
	queue  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewPipe returns a pipe that listens.
func NewPipe() *Pipe { return &Pipe{queue: make(chan net.Conn), closed: make(chan struct{})} }

// Dial connects; the address is not looked at. It waits until the connection is accepted.
func (p *Pipe) Dial(ctx context.Context, addr string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.queue <- far:
		return near, nil
	case <-p.closed:
		return nil, fmt.Errorf("dial %s: %w", addr, net.ErrClosed)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case nc := <-p.queue:
		return nc, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Connections stay.
func (p *Pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (p *Pipe) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
