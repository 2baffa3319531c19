// Package recovery brings the parts of a store into agreement after a stop of any kind: it finds out where the commit
// log ends, cuts what lies behind, and replays the log into whatever is derived from it: consume queues and the index.
//
// It owns two files in the root of the store.
//
// checkpoint, 4096 bytes, all fields big-endian:
//
//	offset  size  field
//	0       8     Physic: store time, ms, of the last record known to be durable in the log
//	8       8     Logics: store time of the last record whose queue units are durable
//	16      8     Index: end time of the last index file that was filled and is durable
//	24      8     master flushed offset (5.x)
//	32      8     confirm offset (5.x)
//
// abort, there while a store is open for writing; its content has no meaning. What is there at opening tells of an unclean stop.
//
// [Plan] only looks and decides; [Run] does what Plan decided. Replay and live dispatch are the same loop, [Dispatcher].
// docs/recovery.md has the decision tables.
package recovery
