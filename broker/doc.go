// Package broker is a broker: producers send to it, consumers pull from it, and all that is stored lies in a
// [github.com/rocketstore/rocketstore.Store]. Real clients of the lines 3.1 to 5.3 and the Go client work with it unchanged, and
// real name servers and brokers stand beside it.
//
// It holds no storage logic. Its own are what lives between the network and the store: which topics and groups there are
// (config/topics.json and config/subscriptionGroup.json, in the real form), which clients are connected, who reads which
// queue, the pulls that wait for a message, and the registration with name servers.
//
// A broker begins in this order: its tables and the store with recovery, the network, the timers, the registration. It ends in the
// opposite one: it unregisters, stops reading requests and answers those that were read, ends the timers, writes the
// consumers' progress and closes the store, which leaves a directory that a real broker opens as cleanly stopped.
//
// Where an answer with an error would do harm there is none: the question for a consumer's progress (14) is answered or its
// connection closed, since old clients take any error for "nothing stored" and skip to the end of the queue.
package broker
