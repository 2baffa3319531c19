package producer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rocketstore/rocketstore/internal/client"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// Why a message was not sent, or is not known to be. After ErrConnect, ErrNotSent, ErrTooManyRequests, ErrNoRoute, ErrNoNameServer and
// the errors of a caller's fault no broker has it; after ErrTimeout and ErrDisconnected one may.
var (
	// ErrOptions is the class of what is wrong with options.
	ErrOptions = errors.New("producer options")
	// ErrState says that the producer is not started.
	ErrState = errors.New("producer not running")
	// ErrClosed says that the producer is shut down.
	ErrClosed = errors.New("producer closed")
	// ErrInvalidMessage says that no broker would take the message.
	ErrInvalidMessage = errors.New("invalid message")
	// ErrTooLarge says that a message or batch is larger than a limit; ErrInvalidMessage is matched too.
	ErrTooLarge = errors.New("message too large")
	// ErrSelector says that a selector chose no queue.
	ErrSelector = errors.New("no queue selected")
	// ErrNoListener says that a transaction has nobody to decide it.
	ErrNoListener = errors.New("no transaction listener")
	// ErrResponse says that a broker's answer cannot be read; it may have stored the message.
	ErrResponse = errors.New("bad send response")

	// ErrNoRoute says that no name server knows the topic, nor the default topic, or that no broker that has it is alive.
	ErrNoRoute = client.ErrNoRoute
	// ErrNoNameServer says that no name server is configured or none answers.
	ErrNoNameServer = client.ErrNoNameServer
	// ErrDuplicateGroup says that the client instance has a producer of the group.
	ErrDuplicateGroup = client.ErrDuplicateGroup
	// ErrConnect says that no connection to a broker could be made.
	ErrConnect = remoting.ErrConnect
	// ErrNotSent says that the connection ended before the request was handed to the network.
	ErrNotSent = remoting.ErrNotSent
	// ErrTimeout says that the time budget is spent.
	ErrTimeout = remoting.ErrTimeout
	// ErrDisconnected says that the connection ended before the answer came.
	ErrDisconnected = remoting.ErrClosed
	// ErrTooManyRequests says that the limit of sends in flight is reached: slow down, batch, or raise it.
	ErrTooManyRequests = remoting.ErrTooManyRequests
)

// BrokerError is a broker's refusal, with its code and text.
type BrokerError = client.BrokerError

// SendError is what became of a send that failed.
type SendError struct {
	Topic string
	// MessageID is the unique id that the message had, by which a copy that was stored after all can be found.
	MessageID string
	// Tries is how many requests were made, Brokers the names that they went to, Elapsed the time of all.
	Tries   int
	Brokers []string
	Elapsed time.Duration
	// Err is the last try's error.
	Err error
}

// Error implements error.
func (e *SendError) Error() string {
	return fmt.Sprintf("send to topic %s: %d tries in %d ms at [%s]: %v", e.Topic, e.Tries, e.Elapsed.Milliseconds(),
		strings.Join(e.Brokers, " "), e.Err)
}

// Unwrap gives the last try's error.
func (e *SendError) Unwrap() error { return e.Err }
