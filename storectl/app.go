package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// The exit statuses.
const (
	statusFine = iota
	statusFindings
	statusTrouble
)

// app is one run of the program: where it prints to, and what it came upon.
type app struct {
	out    *bufio.Writer
	errOut io.Writer
	json   bool           // print JSON lines
	status int            // grows
	verb   *cobra.Command // the one that runs
	shown  map[inspect.Finding]bool
}

func newApp(stdout, stderr io.Writer) *app {
	return &app{out: bufio.NewWriterSize(stdout, 64<<10), errOut: stderr}
}

// group is a sort of verbs in the help.
type group struct {
	id, title string
	verbs     []*cobra.Command
}

// groups are the commands, one file each, in the order of the help. A new one is a word here.
func (a *app) groups() []group {
	return []group{
		{"look", "Look at a store, and change nothing:", []*cobra.Command{
			a.identify(), a.check(), a.explain(), a.stat(), a.top(), a.diff(), a.queues(), a.index(), a.tx(), a.plan(), a.report(), a.serve(),
		}},
		{"find", "Find messages:", []*cobra.Command{a.cat(), a.get(), a.why(), a.trace(), a.tail()}},
		{"take", "Take messages out, and in again:", []*cobra.Command{a.export(), a.importRecords(), a.carve(), a.snapshot()}},
		{"mend", "Make files anew, and mend:", []*cobra.Command{a.rebuild(), a.swap(), a.repair(), a.recover(), a.expire()}},
		{"run", "Run and use brokers:", []*cobra.Command{a.namesrv(), a.broker(), a.put(), a.send(), a.consume(), a.demo(), a.bench()}},
	}
}

// run runs the program and gives its exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a := newApp(stdout, stderr)
	root := &cobra.Command{
		Use:   "storectl",
		Short: "Look at store directories of RocketMQ and work on them",
		Long: `Look at store directories of RocketMQ and work on them.

The exit status is 0 when all is well, 1 when there are findings or what was asked
for is not there, 2 when the call is wrong or the directory or a file of it could not
be looked at. Findings go to the standard error, with --json as lines {"finding":{…}};
the offset in a finding is that in the file it names.

DIR is the broker's storePathRootDir, the folder that holds commitlog; for the verbs
that only read, except plan and expire --dry-run, a zip or tar archive of it will do.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON, one object per line")
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) { a.verb = cmd }
	root.SetArgs(args)
	root.SetOut(a.out)
	root.SetErr(stderr)
	for _, g := range a.groups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, verb := range g.verbs {
			verb.GroupID = g.id
		}
		root.AddCommand(g.verbs...)
	}
	err := root.ExecuteContext(ctx)
	if err = errors.Join(err, a.out.Flush()); err != nil {
		a.trouble(err)
	}
	return a.status
}

// finding prints a finding.
func (a *app) finding(f inspect.Finding) {
	a.found(f)
	if a.shown == nil {
		a.shown = make(map[inspect.Finding]bool)
	}
	if a.shown[f] {
		return // a verb that looks twice finds the same
	}
	if len(a.shown) < maxShown {
		a.shown[f] = true
	}
	a.show(f)
}

// maxShown bounds the findings that are known to have been printed.
const maxShown = 1 << 12

// show prints a finding that changes no exit status.
func (a *app) show(f inspect.Finding) {
	if a.json {
		a.note(struct {
			Finding inspect.Finding `json:"finding"`
		}{f})
		return
	}
	fmt.Fprintln(a.errOut, printable(f.String()))
}

// found notes that there was a finding. What could not be read is trouble: nothing is known about it.
func (a *app) found(f inspect.Finding) {
	if f.Kind == inspect.Unreadable {
		a.status = statusTrouble
	}
	a.status = max(a.status, statusFindings)
}

// trouble prints an error: something could not be done or looked at.
func (a *app) trouble(err error) {
	a.status = statusTrouble
	a.complain(err)
}

// missing notes that what was asked for is not there.
func (a *app) missing(err error) {
	a.status = max(a.status, statusFindings)
	a.complain(err)
}

// problem is an error in JSON.
type problem struct {
	File   string `json:"file,omitempty"` // path inside the store directory
	Offset int64  `json:"offset,omitempty"`
	Text   string `json:"text"`
}

// stopped is the text of an error, in which the end of the program's context is what the user did.
func stopped(err error) string {
	if !errors.Is(err, context.Canceled) {
		return err.Error()
	}
	return strings.ReplaceAll(err.Error(), context.Canceled.Error(), "stopped before the end")
}

// complain prints an error on the standard error.
func (a *app) complain(err error) {
	p := problem{Text: inFlags(stopped(err), a.verb)}
	if c, ok := errors.AsType[*mappedfile.CorruptError](err); ok {
		p.File, p.Offset = c.File, c.Offset
	}
	if a.json {
		a.note(struct {
			Error problem `json:"error"`
		}{p})
		return
	}
	for line := range strings.SplitSeq(p.Text, "\n") {
		fmt.Fprintln(a.errOut, "storectl:", printable(line))
	}
}
