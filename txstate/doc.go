// Package txstate is the transaction state table of RocketMQ 3.1: one fixed record for each prepared message, which says
// where the message lies, whose it is and whether it was committed or rolled back.
//
// It owns transaction/statetable. The files have equal length, by default 2 000 000 records of 24 bytes, and are named by
// the 20-digit byte offset of their first byte. A record has a number: (file start + position) / 24. It is what the
// prepared message stores as its queue offset, so numbers are never given anew: a rebuilt table puts each record where the
// message says, and fills the slots between with records that count as rolled back ([Filler]). The first file need not
// start at 0. [Record] has the layout.
//
// A record is appended as prepared and resolved in place: the 4 bytes of its state are overwritten, once. Written bytes
// are durable after [Table.Sync]. The original never syncs them (R-B-56), so a table that it left, or any after a crash,
// is checked against the redo log and the commit log by package recovery, or made again from them. There is no checksum,
// and a record may lie across two disk sectors: after a power cut one that was not synced may be half there and still
// look like one. A record that was synced before stays whole, and its state is the old or the new.
//
// A Table keeps the numbers of the prepared records in an ordered set, so that a round of check-backs costs what is open
// and not what was ever prepared. The set is filled as it is needed, in steps that do not hold up appends for long.
// All methods of a [Table] may be called from many goroutines.
package txstate
