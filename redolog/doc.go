// Package redolog is the transaction redo log of RocketMQ 3.1: one fixed unit for each prepared message, commit and
// rollback, in commit log order. Folding it gives the transactions that are open, which is how they outlive a crash.
//
// It owns transaction/redolog/TRANSACTION_REDOLOG_TOPIC_XXXX/0. The files have equal length, by default 2 000 000 units of
// 20 bytes, and are named by the 20-digit byte offset of their first byte; retention removes the first ones, so the log
// need not start at 0. [Unit] has the layout, which is that of a consume queue.
//
// Appending is idempotent: a unit whose commit log offset is not above the last one's is skipped (R-B-24), so dispatching
// the commit log again from an earlier place is harmless. The price is that units at or past the commit log's end must go
// when it is cut, or they would swallow later ones ([Log.TruncateFrom], R-B-54). Written units are durable after
// [Log.Sync]. There is no checksum, and a unit may lie across two disk sectors: after a power cut one that was not synced
// may be half there and still look like one. Recovery therefore cuts what was not durable, or compares it with the commit
// log ([Log.Find]).
//
// All methods of a [Log] may be called from many goroutines; an [OpenSet] belongs to one.
package redolog
