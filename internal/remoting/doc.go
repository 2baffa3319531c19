// Package remoting is RocketMQ's wire protocol: frames, the two header codecs, connections that carry requests of both
// sides, a server, a client with one connection per address, TLS and the ACL signature. It is exact for Java peers of
// the lines 3.1, 3.2, 4.9 and 5.3 and for the Go client; captured frames of all of them are in testdata/wire.
//
// One frame, all integers big-endian:
//
//	offset  size  field
//	0       4     L, the number of bytes that follow
//	4       1     header codec: 0 JSON, 1 ROCKETMQ binary
//	5       3     length of the header
//	8       …     header
//	…       …     body, the rest of L
//
// The JSON header is an object with the members code, language, version, opaque, flag (bit 0 response, bit 1 oneway),
// remark and extFields (an object of strings). The binary one is
//
//	size  field
//	2     code
//	1     language
//	2     version
//	4     opaque
//	4     flag
//	4+n   length and text of the remark, n = 0 for none
//	4+m   length of the ext fields, then until m bytes are used: 2+key length, key, 4+value length, value
//
// Each frame is decoded by its own codec byte. A reply has the codec of its request, since a 3.x peer knows JSON only.
//
// # Connections
//
// A [Conn] has one goroutine that reads and one that writes. What is sent is encoded into the connection's buffer before
// the call returns, so the caller's body may be reused, and frames leave in the order of those calls. Requests that come in
// go to a [Handler], in order on the reading goroutine or each on one of its own. Of the first kind the answers to what came in one
// read leave in one write, and when such a handler takes long, another goroutine reads on ([Place]). A connection is closed when nothing
// went either way for the idle time, when a frame that began does not end in time, when the peer does not read what it
// asked for, and at the first byte that cannot be a frame. Memory per connection is bounded: a claimed length is not
// allocated before its bytes came.
package remoting
