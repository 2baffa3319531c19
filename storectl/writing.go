package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// writing is what the verbs that write have in common: how the store is opened.
type writing struct {
	opts rocketstore.Options
}

// flags adds the flags that shape a new store, and must not contradict an old one.
func (w *writing) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Int64Var(&w.opts.SegmentSize, "segment-size", 0, "length of a commit log file in bytes")
	f.Int64Var(&w.opts.QueueSegmentSize, "queue-segment-size", 0, "length of a consume queue file in bytes")
	f.Int64Var(&w.opts.StateSegmentSize, "state-segment-size", 0, "length of a transaction state table file in bytes (3.1)")
	f.Int64Var(&w.opts.RedoSegmentSize, "redo-segment-size", 0, "length of a transaction redo log file in bytes (3.1)")
	f.Int32Var(&w.opts.IndexSlots, "index-slots", 0, "slots of an index file")
	f.Int32Var(&w.opts.IndexEntries, "index-entries", 0, "entries of an index file")
	f.Int32Var(&w.opts.MaxMessageSize, "max-message-size", 0, "limit of new messages in bytes")
	f.StringVar(&w.opts.Dialect, "dialect", "", "3.1, 4.9 or 5.3 (default: as the directory shows; a new one 4.9)")
}

// watch shows on a terminal how far the opening of a store is; clear takes that away.
func (a *app) watch(o *rocketstore.Options) *progress {
	bar := a.progress()
	phase := ""
	o.Recovery.Progress = func(now string, done, total int64) {
		if now != phase {
			phase = now
			bar.again()
		}
		bar.update(done, total)
	}
	return bar
}

// open opens a store and shows meanwhile how far that is.
func (a *app) open(ctx context.Context, dir string, o *rocketstore.Options) (*rocketstore.Store, error) {
	bar := a.watch(o)
	defer bar.clear()
	return rocketstore.OpenContext(ctx, dir, o)
}

// choiceFlags adds the flags that decide about what is refused else.
func (w *writing) choiceFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var((*onDamage)(&w.opts.Recovery.OnDamage), "on-damage",
		"with damage in the middle of the log: refuse; cut-and-keep, to end the log there; or skip, to keep the good records behind it")
	f.BoolVar(&w.opts.Recovery.StartAnew, "start-anew", false, "when the log is empty, drop queues, index and transactions that are not")
}

// onDamage is a flag's value.
type onDamage recovery.OnDamage

func onDamageNames() []string { return []string{"refuse", "cut-and-keep", "skip"} }

// String names the choice.
func (o *onDamage) String() string { return onDamageNames()[*o] }

// Type is what the help calls the value.
func (o *onDamage) Type() string { return "choice" }

// Set takes the name of a choice.
func (o *onDamage) Set(s string) error {
	i := slices.Index(onDamageNames(), s)
	if i < 0 {
		return fmt.Errorf("want one of %s", strings.Join(onDamageNames(), ", "))
	}
	*o = onDamage(i)
	return nil
}

// must says why dir is no store directory, if so: a verb that mends does not make one.
func (w *writing) must(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	fsys, err := mappedfile.OpenDir(dir, &mappedfile.DirOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	id, err := recovery.Identify(fsys)
	if errors.Is(err, mappedfile.ErrCorrupt) {
		return nil // there is a store; opening it says what is wrong
	}
	if err == nil && id.Empty {
		err = fmt.Errorf("%s: %w", dir, errors.New("no store: there is neither a commit log nor a queue"))
	}
	return err
}

// refusal says whether a store was not opened because of what is in its files.
func refusal(err error) bool {
	var refused *recovery.RefusedError
	return errors.As(err, &refused) || errors.Is(err, mappedfile.ErrCorrupt) && !errors.Is(err, fs.ErrPermission)
}
