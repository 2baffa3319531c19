// Package inspect looks at a store directory as it lies and changes nothing: which line of RocketMQ wrote it, what its
// files hold, and which bytes cannot be believed. It is the library behind the reading verbs of storectl.
//
// It reads through io/fs ([Open]), so a directory (os.DirFS), a zip archive or any other file system will do. It takes no
// lock, needs no permission to write and works beside a running broker; what such a broker changes meanwhile may show as
// damage at the very end of a file. Each format is read by the one parser of its own package; this package only walks the
// files, goes on behind damage and puts together what several formats say.
//
// What cannot be believed is a [Finding]: it goes to the function that the caller gives, and the walk goes on. An error
// that an iterator yields means that something could not be read at all; the caller may go on behind it too.
//
// Memory is bounded by a window of a few MiB per file that is being read, plus a few hundred bytes for each file and each
// queue of the store, whatever the files say. A Dir may be used from many goroutines.
package inspect
