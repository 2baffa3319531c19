// Package commitlog is the append-only log of all messages of a store: the records and their codec, appending with group
// commit, reading and scanning.
//
// It owns the directory commitlog/ with segment files of one size, named by the 20-digit physical offset of their first
// byte. A record never spans two segments: one that does not fit leaves a blank (8 bytes: what is left, and the magic
// CBD43194) and goes to the next segment. The layout of a record is at [Record].
//
// Durable is what [Log.Flushed] says; an append under [SyncGroup] returns after that. One goroutine at a time appends
// (the log's own lock sees to it), any number read meanwhile: they see only whole records.
package commitlog
