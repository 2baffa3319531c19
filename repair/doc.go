// Package repair changes what is wrong in a store directory, with a way back. Package inspect finds and never writes; what
// writes is here, apart from it, and only on a store that nobody has open.
//
// A repair is a row of steps that are decided before the first one is done: bytes are written over, files are moved aside
// or put in place, a file gets another length. Its journal is a folder of its own, lost+found/repair.<number>:
//
//	journal.json   the steps and the state: begun, done, undoing, undone
//	old.<n>        the bytes that step n writes over
//	new.<n>        the bytes that it writes, or the file that it puts in place
//	aside/…        files that were moved out of the way, under the paths that they had
//
// The journal is durable before the first step, and each step before the next. A step can be done twice, and undone twice,
// so a repair that a crash ended goes on where it was ([Repair.Finish]) or back ([Repair.Undo]); until then no other repair
// begins. Undo brings every byte back that the repair changed, newest repair first, as long as nobody wrote to the store
// in between; it does not look whether somebody did.
package repair
