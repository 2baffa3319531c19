package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/repair"
)

func (a *app) repair() *cobra.Command {
	var undo, finish, list, dry, force bool
	kinds := []string{"cut", "skip", "drop", "restore"}
	cmd := &cobra.Command{
		Use:   "repair DIR cut [OFFSET] | skip | drop | restore | --undo | --finish | --list",
		Short: "Change what is wrong in a directory, with a journal that can take it back",
		Long: `Change what is wrong in a directory. What is moved aside and what is written over goes into a journal,
lost+found/repair.<number>, before anything changes; --undo brings every byte of it back. Undo comes before recover:
when the directory was opened for writing since the repair, --undo refuses unless --force is given too, since queues,
index and transactions then do not fit the log that comes back, and have to be made again (rebuild, or recover).

  cut [OFFSET]  end the commit log at the first damage, or at OFFSET, where a record begins or ends; with all that
                points behind it
  skip          pass over the damage in the middle of the log: what follows can be read again
  drop          drop queue and redo units that point behind the end of the log
  restore       put the .bak of damaged or missing files under config in their place

The directory must not be open: neither by a broker, nor by another program that writes. A repair that a crash ended
is gone on with by --finish or taken back by --undo. With --dry-run the steps are printed and nothing is changed.`,
		Args:      cobra.RangeArgs(1, 3),
		ValidArgs: kinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			modes := 0
			for _, on := range []bool{undo, finish, list, len(args) > 1} {
				if on {
					modes++
				}
			}
			switch {
			case modes != 1:
				return errors.New("want one of cut, skip, drop, restore, --undo, --finish, --list")
			case len(args) > 1 && !slices.Contains(kinds, args[1]):
				return fmt.Errorf("%q: want %s", args[1], strings.Join(kinds, ", "))
			case force && !undo:
				return errors.New("--force goes with --undo")
			case dry && len(args) < 2:
				return errors.New("--dry-run goes with cut, skip, drop and restore")
			case len(args) == 3 && args[1] != "cut":
				return fmt.Errorf("%s takes no offset", args[1])
			}
			return a.repairing(args[0], dry || list, func(r *repair.Repair) (*repair.Journal, error) {
				switch {
				case undo:
					r.Force = force
					return r.Undo()
				case finish:
					return r.Finish()
				case list:
					return nil, a.journals(r)
				}
				return repairOf(cmd.Context(), r, args[1:])
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&undo, "undo", false, "take the last repair back")
	f.BoolVar(&force, "force", false, "with --undo: also when the directory was opened for writing since")
	f.BoolVar(&finish, "finish", false, "do the rest of a repair that a crash ended")
	f.BoolVar(&list, "list", false, "list the repairs of the directory")
	f.BoolVar(&dry, "dry-run", false, "print the steps and change nothing")
	return cmd
}

// repairOf makes one repair; args is its name and, for a cut, an offset.
func repairOf(ctx context.Context, r *repair.Repair, args []string) (*repair.Journal, error) {
	switch args[0] {
	case "cut":
		at := int64(-1)
		if len(args) == 2 {
			var err error
			if at, err = strconv.ParseInt(args[1], 10, 64); err != nil || at < 0 {
				return nil, fmt.Errorf("%q is no physical offset", args[1])
			}
		}
		return r.Cut(ctx, at)
	case "skip":
		return r.Skip(ctx)
	case "drop":
		return r.Drop(ctx)
	}
	return r.RestoreConfig(ctx)
}

func (a *app) swap() *cobra.Command {
	var from string
	var dry bool
	cmd := &cobra.Command{
		Use:   "swap DIR --from NEW",
		Short: "Put what rebuild made in NEW in the place of what DIR has, with a journal that can take it back",
		Long: `Put what rebuild made in the directory NEW in the place of what DIR has. What DIR had is moved into the
journal, lost+found/repair.<number>; "storectl repair DIR --undo" brings it back. NEW is only read. What a rebuild made
of one topic or queue takes the place of that only; of a range of the log, its units are written into the queues.
The directory must not be open.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if same, err := sameFolder(args[0], from); err != nil {
				return err
			} else if same {
				return fmt.Errorf("--from %s is DIR itself; want the directory that rebuild --to made", from)
			}
			made, err := mappedfile.OpenDir(from, &mappedfile.DirOptions{ReadOnly: true})
			if err != nil {
				return err
			}
			return a.repairing(args[0], dry, func(r *repair.Repair) (*repair.Journal, error) {
				return r.Swap(cmd.Context(), made)
			})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "directory that rebuild made")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print the steps and change nothing")
	_ = cmd.MarkFlagRequired("from")
	return cmd
}

// sameFolder says whether two names lead to one folder.
func sameFolder(one, other string) (bool, error) {
	a, err := os.Stat(one)
	if err != nil {
		return false, err
	}
	b, err := os.Stat(other)
	if err != nil {
		return false, err
	}
	return os.SameFile(a, b), nil
}

// repairing opens a directory that nobody else has open, and prints the journal that f gives.
func (a *app) repairing(dir string, dry bool, f func(*repair.Repair) (*repair.Journal, error)) (err error) {
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	if pid, err := repair.InUse(dir); err != nil || pid != 0 {
		return errors.Join(err, fmt.Errorf("%s: process %d has files of it open: stop the broker first", dir, pid))
	}
	fsys, err := mappedfile.OpenDir(dir, nil)
	if err != nil {
		return err
	}
	open := repair.Open
	if dry {
		open = repair.OpenDry
	}
	r, err := open(fsys)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	j, err := f(r)
	if errors.Is(err, repair.ErrNothing) {
		fmt.Fprintln(a.errOut, "storectl:", err)
		return nil
	}
	if errors.Is(err, repair.ErrNoBackup) { // the other files are restored
		a.missing(err)
		err = nil
	}
	if err != nil || j == nil {
		return err
	}
	return a.journal(j, dry)
}

// journal prints what a repair did.
func (a *app) journal(j *repair.Journal, dry bool) error {
	if a.json {
		return a.line(j)
	}
	t := a.table(column{"STEP", -4}, column{"DOES", -7}, column{"FILE", 60}, column{"OFFSET", -12}, column{"BYTES", -10}, column{"WHY", 0})
	for i, s := range j.Steps {
		if i == maxSteps {
			fmt.Fprintf(a.out, "and %d more steps\n", len(j.Steps)-maxSteps)
			break
		}
		if err := t.row(s, i, s.Op, s.File, s.Offset, s.Length, s.Why); err != nil {
			return err
		}
	}
	if dry {
		fmt.Fprintln(a.out, "nothing was changed")
		return nil
	}
	fmt.Fprintf(a.out, "%s: %s, journal in %s\n", j.Kind, j.State, j.Dir())
	if j.State == repair.Done {
		fmt.Fprintln(a.out, "to do:", j.Next)
	}
	return nil
}

// maxSteps is how many steps are printed; the journal has them all.
const maxSteps = 40

// journals lists the repairs of a store.
func (a *app) journals(r *repair.Repair) error {
	all, err := r.Journals()
	if err != nil {
		return err
	}
	t := a.table(column{"NUMBER", -6}, column{"KIND", 8}, column{"STATE", 8}, column{"STEPS", -6}, column{"JOURNAL", 0})
	for _, j := range all {
		if err := t.row(j, j.Number, j.Kind, j.State, len(j.Steps), j.Dir()); err != nil {
			return err
		}
	}
	return nil
}

// partFlags adds the flags that bound a rebuild.
func partFlags(cmd *cobra.Command, p *inspect.RebuiltPart) *int32 {
	f := cmd.Flags()
	f.Int64Var(&p.From, "from", 0, "queues of the records from this physical offset on only")
	f.Int64Var(&p.To, "until", 0, "queues of the records before this physical offset only; 0: to the end")
	f.StringVar(&p.Topic, "topic", "", "queues of this topic only")
	return f.Int32("queue", -1, "with --topic: this queue only")
}
