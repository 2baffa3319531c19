package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
)

func (a *app) check() *cobra.Command {
	var r reading
	var o inspect.CheckOptions
	var all bool
	var cursor string
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Compare everything in a directory with its commit log, and say what is wrong where",
		Long: `Compare everything in a directory with its commit log, in one pass over the log: consume queues, batch
queues and extensions, the index, the checkpoint, the files under config, and the transactions of 3.1 and 4.x.
Damage does not end it, and nothing is changed; a store that a broker works on can be checked.

Each finding says in which file and at which offset, what should be there and what is; the summary says what its
kind means and what to do. What a killed or running broker leaves (queues behind the log, files made ahead) is of
severity "info", and left out without --all. The exit status is 1 from severity "warning" on.

With --cursor FILE a check that is stopped (Ctrl-C, or killed) goes on when it is called again, at the end of the last
file of the log that was compared or later; what was found before is counted and not printed again. The file is removed
when the check is through. A store with the transactions of 3.1, or with batch queues, is checked from its start.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.with(args[0], func(d *inspect.Dir) error {
				stats := &inspect.CheckStats{}
				o.Stats = stats
				bar := a.progress()
				o.Progress = bar.update
				place := &checkCursor{file: cursor}
				if err := place.open(&o); err != nil {
					return err
				}
				began := time.Now()
				kinds := make(map[advised]*kindCount)
				for f, err := range d.Check(cmd.Context(), o) {
					bar.clear()
					switch {
					case err != nil && cmd.Context().Err() != nil:
						continue // close says so
					case err != nil:
						a.trouble(err)
						continue
					}
					if err := a.checked(f, all, kinds); err != nil {
						return err
					}
				}
				bar.clear()
				if err := place.close(cmd.Context()); err != nil {
					return err
				}
				a.seen(d, began)
				return a.summary(stats, kinds, began)
			})
		},
	}
	r.flags(cmd)
	f := cmd.Flags()
	f.BoolVar(&all, "all", false, "print findings of severity info as well")
	f.IntVar(&o.Max, "max", 100, "findings of one kind in one file that are printed; -1: all")
	f.StringVar(&cursor, "cursor", "", "file to note in how far the check came when it is stopped, and to go on from")
	f.StringVar(&o.DelayLevels, "delay-levels", "", "messageDelayLevel of the broker, by which delivery times are computed")
	return cmd
}

// kindCount is how often a kind was found.
type kindCount struct {
	Kind     inspect.Kind     `json:"kind"`
	Severity inspect.Severity `json:"severity"` // the worst
	Count    int64            `json:"count"`
	Means    string           `json:"means"`
	Todo     string           `json:"todo"`
}

// advised is what findings are counted by: what to do may differ within a kind.
type advised struct {
	kind inspect.Kind
	todo string
}

// rank orders severities.
func rank(s inspect.Severity) int {
	return slices.Index([]inspect.Severity{inspect.Info, inspect.Warning, inspect.Error}, s)
}

// checked prints and counts a finding.
func (a *app) checked(f inspect.Finding, all bool, kinds map[advised]*kindCount) error {
	means, todo := f.Advice()
	at := advised{f.Kind, todo}
	k := kinds[at]
	if k == nil {
		k = &kindCount{Kind: f.Kind, Severity: f.Severity, Means: means, Todo: todo}
		kinds[at] = k
	}
	k.Count++
	if rank(f.Severity) > rank(k.Severity) {
		k.Severity = f.Severity
	}
	if f.Severity != inspect.Info {
		a.found(f)
	} else if !all {
		return nil
	}
	if a.json {
		return a.line(struct {
			Finding inspect.Finding `json:"finding"`
		}{f})
	}
	fmt.Fprintln(a.out, printable(f.String()))
	if f.Expected != "" || f.Found != "" {
		fmt.Fprintln(a.out, "    expected", printable(cmp.Or(f.Expected, "-")+", found "+cmp.Or(f.Found, "-")))
	}
	return nil
}

// maxKinds bounds the summary, which has to fit a screen.
const maxKinds = 8

// summary prints what was looked at, and each kind of finding with what to do.
func (a *app) summary(s *inspect.CheckStats, kinds map[advised]*kindCount, at time.Time) error {
	list := make([]*kindCount, 0, len(kinds))
	for _, k := range kinds {
		list = append(list, k)
	}
	slices.SortFunc(list, func(x, y *kindCount) int {
		return cmp.Or(cmp.Compare(rank(y.Severity), rank(x.Severity)), cmp.Compare(y.Count, x.Count), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Todo, y.Todo))
	})
	if a.json {
		return a.line(struct {
			Summary *inspect.CheckStats `json:"summary"`
			Kinds   []*kindCount        `json:"kinds"`
			At      int64               `json:"at"` // moment of looking, ms
		}{s, list, at.UnixMilli()})
	}
	say := func(what, format string, args ...any) {
		fmt.Fprintf(a.out, "%-13s %s\n", what, printable(fmt.Sprintf(format, args...)))
	}
	stopped := "stopped cleanly"
	if !s.Clean {
		stopped = "not stopped cleanly, or running"
	}
	say("store", "line %s, %s", s.Line, stopped)
	damaged := fmt.Sprintf("%d damaged", s.Damaged)
	if s.PassedOver > 0 {
		damaged = fmt.Sprintf("places where damage is passed over: %d", s.PassedOver)
		if s.Damaged > 0 {
			damaged = fmt.Sprintf("%d damaged, %s", s.Damaged, damaged)
		}
	}
	say("commit log", "%d to %d, %d records (%s)", s.LogStart, s.LogEnd, s.Records, damaged)
	say("queues", "%d queues, %d units, %d extension units", s.Queues, s.Units, s.ExtUnits)
	say("index", "%d files, %d entries", s.IndexFiles, s.Entries)
	if s.StateRecords+s.RedoUnits > 0 {
		say("transactions", "%d state records, %d redo units", s.StateRecords, s.RedoUnits)
	}
	for i, k := range list {
		if i == maxKinds {
			say("", "and %d more kinds", len(list)-maxKinds)
			break
		}
		say(string(k.Severity), "%s (%d): %s", k.Kind, k.Count, k.Means)
		if k.Severity != inspect.Info {
			say("", "  to do: %s", k.Todo)
		}
	}
	n := s.Findings
	verdict := "healthy"
	if n[inspect.Warning]+n[inspect.Error] > 0 {
		verdict = "not healthy"
	}
	switch {
	case a.status != statusTrouble:
	case verdict == "healthy":
		verdict = "not known, since not all could be read"
	default:
		verdict += ", and not all could be read"
	}
	say("verdict", "%s: %d errors, %d warnings, %d infos", verdict, n[inspect.Error], n[inspect.Warning], n[inspect.Info])
	return nil
}
