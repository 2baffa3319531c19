// Package client is what a producer and a consumer of one process share: the connections to name servers and brokers, the
// routes of topics, the heartbeats, and the requests that brokers send to clients.
//
// A [Client] is one client instance in the sense of RocketMQ: it has one id, which brokers and other members of a group
// know it by, and any number of producers and consumers, each with a group of its own. Its goroutines are one that
// refreshes routes, one that sends heartbeats, and those of its connections; [Client.Close] ends them all.
//
// Routes are looked up once for any number of callers, kept, and refreshed for all topics in use. Name servers are taken
// in turn from a random start; the one that answered last is kept until it fails.
package client
