// Package invariant holds checks that are paid for only in builds with the tag `invariants` and under the race detector.
// A failed check is a bug of this module, never a property of the bytes on disk.
package invariant

// Check panics with msg when cond is false and checks are enabled. Guard costly conditions with [Enabled].
func Check(cond bool, msg string) {
	if Enabled && !cond {
		panic("broken invariant: " + msg)
	}
}
