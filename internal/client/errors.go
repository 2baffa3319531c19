package client

import (
	"errors"
	"fmt"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

// Why something could not be done. Besides these an error may match one of package remoting's, or the context's.
var (
	// ErrClosed says that the client is closed.
	ErrClosed = errors.New("client closed")
	// ErrNoNameServer says that no name server is configured, or none answers.
	ErrNoNameServer = errors.New("no name server")
	// ErrNoRoute says that no name server knows the topic, or no broker that has it is alive.
	ErrNoRoute = errors.New("no route info of this topic")
	// ErrNoBroker says that no address is known for a broker.
	ErrNoBroker = errors.New("broker address unknown")
	// ErrDuplicateGroup says that a client has a producer or consumer of that group already.
	ErrDuplicateGroup = errors.New("group registered already in this client")
	// ErrNoOffset says that the group has no offset stored for a queue.
	ErrNoOffset = errors.New("no offset stored")
)

// BrokerError is an answer other than success, of a broker or a name server.
type BrokerError struct {
	// Code is a response code, Remark the server's text.
	Code   int32
	Remark string
	// Addr is who answered, Request the code of what was asked.
	Addr    string
	Request int32
}

// Error implements error.
func (e *BrokerError) Error() string {
	return fmt.Sprintf("request %d to %s: code %d: %s", e.Request, e.Addr, e.Code, e.Remark)
}

// success makes a [BrokerError] of an answer that is not SUCCESS.
func success(addr string, req, resp *remoting.Command) error {
	if resp.Code == remoting.Success {
		return nil
	}
	return &BrokerError{Code: resp.Code, Remark: resp.Remark, Addr: addr, Request: req.Code}
}
