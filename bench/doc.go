// Package bench measures what a disk and a machine give, and what the store makes of it: which settings suit them. Its cases
// run as benchmarks (go test -bench . ./bench) and in a program ("storectl bench").
//
// A case is named by keys and values, "append/write=mapped/sync=group/body=1024/writers=16", so that benchstat can turn its
// figures by them. What comes first in a name is the group:
//
//	device   what the disk gives without a store: write, then make durable
//	append   the commit log, by way of writing, policy, body and writers
//	sync     making a number of pages durable that lie together
//	roll     the step to the next segment, by how it is reserved and whether it is made ahead
//	read     the log's bytes, mapped or by pread, warm or dropped from the page cache before
//	codec    encoding, decoding, checksums
//	queue    consume queues
//	index    the key index
//	tx       state table and redo log
//	store    messages through the whole store, from the put to the get
package bench
