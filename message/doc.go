// Package message holds what a RocketMQ message is, apart from any file or wire: the [Message] itself, its ordered
// [Properties] and their text form, the system flags, hosts, ids, tag and key rules and the two hashes of the format.
//
// Everything here is a value or a pure function; nothing needs a lock. Layouts are in docs/formats.md, sections 4.3 to 4.6.
package message
