//go:build invariants || race

package invariant

// Enabled says whether checks are made.
const Enabled = true
