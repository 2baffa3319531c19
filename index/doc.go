// Package index finds messages by topic and key. It owns the directory index: files of one fixed size, each a hash table on
// disk whose chains hold the newest entry first (formats.md 6).
//
//	offset                    size       content
//	0                         40         [Header]
//	40                        4 × slots  number of the newest entry of each chain; 0: none
//	40 + 4·slots              20         entry 0, never used
//	40 + 4·slots + 20·n       20         [Entry] n, from 1 on
//
// A file is named by time, yyyyMMddHHmmssSSS. It holds entries-1 keys; then the next one is made. An entry holds the hash of
// topic#key, not the key: whoever queries compares each hit with the record that it points at.
//
// What is durable: everything put before a [Index.Sync] that succeeded. Nothing tells a torn file from a whole one, so after an
// unclean stop only files that were full and synced by the checkpoint's index time are kept ([Index.DropAfterTime]); the
// rest is made again from the commit log.
//
// One goroutine puts; any number query, list and sync meanwhile.
package index
