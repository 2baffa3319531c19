// Package prefetch asks the processor for memory that is read soon, so that it comes while something else is worked on.
package prefetch

// Bytes asks for the cache lines of b. It does not wait for them, touches nothing, and so cannot fault: where b is not in
// memory, nothing happens. On processors other than amd64 and arm64 it does nothing.
func Bytes(b []byte) {
	if len(b) > 0 {
		lines(&b[0], len(b))
	}
}
