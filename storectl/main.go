// Storectl looks at store directories of RocketMQ and works on them.
//
//	go run ./storectl VERB DIR [flags]
//
// Each verb is a thin file of this folder over a package that does the work: the reading verbs over inspect, which never
// writes. With --json a verb prints one JSON object per line, else a table.
//
// Findings (damage, foreign files, gaps, …) never stand between the rows on the standard output: they go to the standard
// error, a line each. With --json such a line is an object whose one key is "finding":
//
//	{"finding":{"kind":"gap","severity":"error","file":"commitlog/…","offset":0,"fromOffset":4096,"toOffset":8192,"text":"…"}}
//
// No row has that key, so the two can be told apart where both streams are merged (2>&1). The verb identify, whose result
// is one object, has its findings inside it.
//
// The exit status is 0 when all is well, 1 when there are findings or what was asked for is not there, and 2 when the
// directory or a file of it could not be looked at.
package main

import (
	"context"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends what does not come to its end
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
