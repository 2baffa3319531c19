package producer

import "github.com/rocketstore/rocketstore/trace"

// TracingHook is the hook that a traced producer has.
func TracingHook(d trace.Dispatcher) SendHook { return &tracing{to: d, topic: trace.Topic} }
