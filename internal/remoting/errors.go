package remoting

import "errors"

// Why a request has no answer. A caller that sends again needs the difference: after ErrConnect, ErrNotSent and
// ErrTooManyRequests the peer has not seen the request, after ErrClosed and ErrTimeout it may have carried it out.
var (
	// ErrConnect says that no connection could be made.
	ErrConnect = errors.New("connect failed")
	// ErrNotSent says that the connection ended before the request was handed to the network.
	ErrNotSent = errors.New("not sent")
	// ErrTimeout says that the context's deadline passed while waiting for the answer. The context's error is matched too.
	ErrTimeout = errors.New("no answer in time")
	// ErrClosed says that the connection, the client or the server is closed.
	ErrClosed = errors.New("closed")
	// ErrTooManyRequests says that the limit of async or oneway requests in flight is reached: slow down.
	ErrTooManyRequests = errors.New("too many requests in flight")
)

// Why a connection was closed, for [Conn.Err]; besides io.EOF and what the network says.
var (
	// ErrIdle says that nothing was read or written for the idle time.
	ErrIdle = errors.New("idle for too long")
	// ErrSlow says that the peer did not take, or not finish, what it should have.
	ErrSlow = errors.New("peer too slow")
	// errDraining ends reading when a connection is to be closed after its requests are answered.
	errDraining = errors.New("shutting down")
)
