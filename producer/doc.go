// Package producer sends messages to RocketMQ brokers: ours, and the real ones of the lines 3.1 to 5.3.
//
// # Modes
//
// [Producer.Send] waits for the broker's answer and, where that fails, tries other brokers within one time budget: for what must not
// be lost. [Producer.Async] returns at once and calls back when the same is done: for throughput. [Producer.Oneway] hands the message
// to the network and learns nothing of its fate: for logs, metrics, and notices that may be lost. Each can send to one queue (…To) or
// let a [Selector] choose it (…Select); such sends stay on that queue and are not tried elsewhere. [Producer.SendBatch] sends many
// messages of one topic in one request that is stored as a whole. [Producer.SendInTransaction] sends a message that consumers see
// when a local transaction is committed. [Producer.Request] sends a message and waits for a consumer's reply.
//
// Order is promised to sends of one goroutine that wait for each other (Send) and go to one queue; a [Selector] such as [ByKey] sends
// each key to its own. When a topic's number of queues changes, keys move; an order configuration at the name servers keeps the
// list fixed.
//
// # What a caller can rely on
//
// A message that is given to a producer is not changed. Its body is compressed for the way where that is worth it. It gets a
// unique id, which all tries share; as an answer may be lost, a message can be stored more than once, and the id tells. A send that
// returns a [Result] was stored; the statuses other than [OK] say that it may not survive a crash of its broker. Errors match one of
// the sentinels of this package or hold a [*BrokerError]; a [*SendError] around them says what was tried.
//
// Nothing waits without a bound: a send has a time budget, the asynchronous ones in flight are limited, and beyond the limit a
// caller is told so by [ErrTooManyRequests], which is the sign to slow down, to use batches, or to raise the limit.
//
// # Advice
//
// Bodies below 1 MB for sends that wait, else parted ([Split] parts batches) or compressed; raise the limit at the producer and at
// the broker together. Time budgets below 10 s, three to five tries. Alarm levels that have proved useful: 99th percentile of the
// latency above 500 ms, more than 0.1 % of sends failed, more than 1000 requests without an answer, more than 100 ms to a broker and
// back ([Producer.Probe]); [Producer.Stats] has the figures.
//
// # Where to look when debugging
//
// [Producer.Send] is the default send and [Producer.SendTo] the one of the API; both go through send.run, one try through
// send.attempt, an answer through readResult. [Producer.SendInTransaction] decides in endTransaction, checks come to
// Producer.CheckTransaction. The connection's side is remoting.Client.Call. A [Producer] has a client instance (connections, routes,
// heartbeats), which several may share; selectors, hooks and a [TransactionListener] are the user's.
//
// What a producer does is logged at debug level by Options.Logger and what the network does by ClientOptions.Logger, so each can be
// switched on by itself. Texts that stay: "send result", "no permit for an async send", "no permit for a oneway send", "bad send
// response".
package producer
