package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
)

// statFlags are what stat and top have in common.
func statFlags(cmd *cobra.Command, o *inspect.StatOptions) {
	f := cmd.Flags()
	f.StringVar(&o.Filter.Topic, "topic", "", "only records of this topic")
	f.Var((*moment)(&o.Filter.Since), "since", "only records stored at this time or later: ms since 1970, or as 2006-01-02T15:04:05Z")
	f.Var((*moment)(&o.Filter.Until), "until", "only records stored at this time or earlier")
}

// stats reads the store.
func (a *app) stats(cmd *cobra.Command, d *inspect.Dir, o inspect.StatOptions) (*inspect.Stat, error) {
	bar := a.progress()
	o.Progress = bar.update
	s, err := d.Stat(cmd.Context(), o, func(f inspect.Finding) {
		bar.clear()
		a.finding(f)
	})
	bar.clear()
	return s, err
}

func (a *app) stat() *cobra.Command {
	var r reading
	var o inspect.StatOptions
	cmd := &cobra.Command{
		Use:   "stat DIR",
		Short: "Say what fills a store: log, queues, index, and who has how much of it",
		Long: `Say what fills a store: what the bytes of the log's files are used for, what the queues hold, how full the index
is, the largest topics, tags and hours, and the groups that are furthest behind. "storectl top" lists each in full.
The whole log is read once.

Blanks fill the ends of log files, slack is what lies behind the last record, zeros and damaged bytes are stretches
without a record that have one behind them. The lag is by the offsets that the groups have stored.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.with(args[0], func(d *inspect.Dir) error {
				s, err := a.stats(cmd, d, o)
				if err != nil {
					return err
				}
				if a.json {
					return a.line(s)
				}
				return a.statText(s)
			})
		},
	}
	r.flags(cmd)
	statFlags(cmd, &o)
	return cmd
}

// statTop is how many of each sort stat prints.
const statTop = 5

func (a *app) statText(s *inspect.Stat) error {
	say := func(what, format string, args ...any) {
		fmt.Fprintf(a.out, "%-12s %s\n", what, printable(fmt.Sprintf(format, args...)))
	}
	l, q := s.Log, s.Queues
	stopped := "stopped cleanly"
	if !s.Clean {
		stopped = "not stopped cleanly, or running; looked at " + clock(s.At)
	}
	say("store", "line %s, %s", s.Line, stopped)
	say("commit log", "%d files, %d bytes, offsets %d to %d; %d records counted", l.Files, l.Bytes, l.Start, l.End, s.Records)
	say("", "%d bytes records, %d blanks, %d slack, %d zeros, %d damaged, %d missing between files", l.Records, l.Blanks, l.Slack, l.Zeros, l.Damaged, l.Missing)
	say("queues", "%d queues, %d files, %d bytes; %d units, %d fillers, %d bytes slack, %d holes", q.Queues, q.Files, q.Bytes, q.Units, q.Fillers, q.Slack, q.Holes)
	for _, x := range s.Index {
		say("index", "%s: %d of %d keys (%.0f%%), %d of %d slots, longest chain %d", x.File, x.Keys, x.Room, 100*x.Fill, x.UsedSlots, x.Slots, x.LongestChain)
	}
	for _, part := range []struct {
		head   string
		shares []inspect.Share
	}{{"TOPIC", s.Topics}, {"TAG", s.Tags}, {"HOUR", bySize(s.Hours)}, {"BODY BYTES", s.Sizes}} {
		fmt.Fprintln(a.out)
		if err := a.shares(part.head, part.shares, statTop, l.Records); err != nil {
			return err
		}
	}
	if len(s.Lags) > 0 {
		fmt.Fprintln(a.out)
		return a.lags(s.Lags, statTop)
	}
	return nil
}

// bySize orders shares by bytes, the largest first.
func bySize(shares []inspect.Share) []inspect.Share {
	sorted := slices.Clone(shares)
	slices.SortStableFunc(sorted, func(x, y inspect.Share) int { return cmp.Compare(y.Bytes, x.Bytes) })
	return sorted
}

// shares prints the first n shares; 0: all.
func (a *app) shares(head string, shares []inspect.Share, n int, all int64) error {
	t := a.table(column{head, 36}, column{"RECORDS", -10}, column{"BYTES", -14}, column{"BODIES", -14}, column{"%", -5})
	for i, s := range shares {
		if i == n && n > 0 {
			fmt.Fprintf(a.out, "and %d more\n", len(shares)-n)
			break
		}
		part := fmt.Sprintf("%.1f", 100*float64(s.Bytes)/float64(max(all, 1)))
		if err := t.row(s, s.Name, s.Records, s.Bytes, s.BodyBytes, part); err != nil {
			return err
		}
	}
	return nil
}

// lags prints the first n lags; 0: all.
func (a *app) lags(lags []inspect.GroupLag, n int) error {
	t := a.table(column{"GROUP", 28}, column{"TOPIC", 32}, column{"QUEUE", -5}, column{"OFFSET", -10}, column{"END", -10}, column{"LAG", -10})
	for i, l := range lags {
		if i == n && n > 0 {
			fmt.Fprintf(a.out, "and %d more\n", len(lags)-n)
			break
		}
		if err := t.row(l, l.Group, l.Topic, l.QueueID, l.Offset, l.End, l.Lag); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) top() *cobra.Command {
	var r reading
	var o inspect.StatOptions
	var by string
	var n int
	sorts := []string{"topic", "queue", "hour", "size", "tag", "lag", "index"}
	cmd := &cobra.Command{
		Use:   "top DIR [--by topic|queue|hour|size|tag|lag|index]",
		Short: "List who fills the disk, the largest first",
		Long: `List who fills the disk, the largest first: topics, queues, hours of the store time, classes of body size, or tags;
or how far groups are behind (lag), or how full the index files are (index). The whole log is read once.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(sorts, by) {
				return fmt.Errorf("--by %s: want %s", by, strings.Join(sorts, ", "))
			}
			o.LogOnly = by != "index"
			return r.with(args[0], func(d *inspect.Dir) error {
				s, err := a.stats(cmd, d, o)
				if err != nil {
					return err
				}
				return a.topText(s, by, n)
			})
		},
	}
	r.flags(cmd)
	statFlags(cmd, &o)
	cmd.Flags().StringVar(&by, "by", "topic", strings.Join(sorts, ", "))
	cmd.Flags().IntVarP(&n, "number", "n", 20, "how many; 0: all")
	return cmd
}

func (a *app) topText(s *inspect.Stat, by string, n int) error {
	if a.json {
		n = 0
	}
	switch by {
	case "topic":
		return a.shares("TOPIC", s.Topics, n, s.Log.Records)
	case "queue":
		return a.shares("QUEUE", s.ByQueue, n, s.Log.Records)
	case "hour":
		return a.shares("HOUR", bySize(s.Hours), n, s.Log.Records)
	case "size":
		return a.shares("BODY BYTES", bySize(s.Sizes), n, s.Log.Records)
	case "tag":
		return a.shares("TAG", s.Tags, n, s.Log.Records)
	case "lag":
		return a.lags(s.Lags, n)
	}
	t := a.table(column{"FILE", 26}, column{"KEYS", -10}, column{"ROOM", -10}, column{"FILL %", -6}, column{"SLOTS", -10}, column{"USED", -10}, column{"CHAIN", -6})
	for _, x := range s.Index {
		if err := t.row(x, x.File, x.Keys, x.Room, fmt.Sprintf("%.1f", 100*x.Fill), x.Slots, x.UsedSlots, x.LongestChain); err != nil {
			return err
		}
	}
	return nil
}
