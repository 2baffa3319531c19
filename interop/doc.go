// Package interop holds the tests that hand a store directory to and fro between this module and the real RocketMQ. They
// need Java 17 and Maven, which fetches the released artifacts, and are built only with the tag interop:
//
//	INTEROP=required go test -tags interop ./...
//
// INTEROP=all proves the deep cells of docs/compatibility.md, besides. Without either a machine without Java or Maven skips them and says so. The programs in java/ embed the real
// DefaultMessageStore of 3.1.4, 4.9.7 and 5.3.3; each test talks to one of them over its standard input and output, in a
// network namespace of its own where the system allows it.
package interop
