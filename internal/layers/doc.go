// Package layers holds the table of which package of this module may import which, and the test that enforces it. It
// has no other code. Imports point downwards only; a package that the table does not know fails the test, so that
// whoever adds one says where it belongs.
package layers
