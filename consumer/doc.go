// Package consumer receives messages from RocketMQ brokers, ours and real ones of the lines 3.1 to 5.3, over the remoting
// protocol. Its members share groups with the Java and the Go clients.
//
// A [Consumer] is a member of a group: it rebalances the queues of its topics among all members, pulls ahead of
// the listener within limits, and stores the group's offsets with the broker every few seconds, or in broadcast mode in a file as Java
// keeps it. Messages go to a [Listener], on a number of workers or in the order of each queue under the broker's lock, or are taken
// one by one from [Consumer.Messages]. What a listener fails to consume comes again after a while, and after too many times goes
// to the group's dead letter queue.
//
// A [Puller] (pull consumer) reads the queues that it is assigned, from where it is told to.
//
// # What is promised
//
// At least once: the stored offset of a queue never passes a message that was not consumed, sent back to the broker, or refused by
// the subscription. A message may come again after a crash, when a queue goes to another member, and when the answer to a
// send-back is lost. An error of a broker is never taken for "no offset stored", so nothing is skipped while one starts or stops.
//
// Compatibility of a group needs that all members compute the same shares: queues and client ids are sorted as Java sorts them,
// and the strategies are exactly Java's ([Average] is the default).
//
// # Goroutines
//
// A consumer has one goroutine for each queue that it holds, the workers, and three that rebalance, store offsets and look
// after locks and listeners that hang. [Consumer.Close] ends them all.
package consumer
