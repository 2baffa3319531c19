// Package consumequeue holds the consume queues of a store: for each topic and queue id the list of the commit log
// records that belong to it, in queue order, 20 bytes each.
//
// It owns the directory consumequeue of a store:
//
//	consumequeue/<topic>/<queue id>/<name>
//
// where name is the byte offset in the queue of the file's first byte, 20 decimal digits. The layout of a unit is with
// [Unit]. It also reads the units of consumequeue_ext ([ExtUnit]) and of batchconsumequeue ([BatchUnit]); it never
// writes those.
//
// A [Table] is all queues of a store, a [Queue] is one. Units are durable after [Table.Sync] or [Queue.Sync] only; what a
// power cut takes is made again from the commit log. Opening neither recovers nor changes anything.
//
// One goroutine appends to a queue (the dispatcher), and also sets, truncates and deletes; any number read meanwhile,
// and a further one may call Sync. A reader never sees a unit before it is whole.
package consumequeue
