package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/recovery"
)

// planned is what plan prints as JSON.
type planned struct {
	Open        string       `json:"open"` // "ok" or "refuse"
	Unclean     bool         `json:"unclean"`
	Start       int64        `json:"start"`  // where the check of the log begins
	Reason      string       `json:"reason"` // why there
	LogStart    int64        `json:"logStart"`
	LogEnd      int64        `json:"logEnd"`
	TruncatedAt *int64       `json:"truncatedAt"` // null: nothing is cut
	CutBytes    int64        `json:"cutBytes"`
	CutRecords  int64        `json:"cutRecords"`
	Records     int64        `json:"records"`  // checked
	Believed    int64        `json:"believed"` // bytes at the log's start that opening does not look at
	Changes     []changeRow  `json:"changes"`
	Lost        []lostRow    `json:"lost,omitempty"`
	Warnings    []warningRow `json:"warnings"`
	EstimateMs  int64        `json:"estimateMs"` // of the time that opening takes
	Error       *warningRow  `json:"error"`
}

type changeRow struct {
	File string `json:"file"`
	What string `json:"what"`
}

func (a *app) plan() *cobra.Command {
	var w writing
	cmd := &cobra.Command{
		Use:   "plan DIR",
		Short: "Say what opening a directory for writing would do, and do nothing",
		Long: `Say what opening a directory for writing would do to it: where the check of the log begins and why,
where the log would be cut, which files would change. It runs the code that opening runs, up to
the first change, and changes nothing. Exit status 1: opening would be refused, or would cut.

A clean stop is believed, and a checkpoint after an unclean one: opening looks at the end of the log only,
or, after a clean stop of its own, at none of it. Damage before that is not seen here; the line
"believed" says which part that is. "storectl check" looks at everything.

Opening may warn of more than this: units of queues that are wrong, queue offsets that two records have, and
holes in queues show only when the log is put into the queues again. "storectl check" finds them as well.

It takes no lock: beside a running writer it says what opening would do after that one's death.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.must(args[0]); err != nil {
				return err
			}
			bar := a.watch(&w.opts)
			d, changes, err := rocketstore.Plan(cmd.Context(), args[0], &w.opts)
			bar.clear()
			if err != nil && !refusal(err) {
				return err
			}
			p := plannedOf(d, changes, err)
			a.inFlags(p.Warnings, p.Error)
			if p.Error != nil || p.TruncatedAt != nil {
				a.status = max(a.status, statusFindings)
			}
			if a.json {
				return a.line(p)
			}
			a.planned(p)
			return nil
		},
	}
	w.flags(cmd)
	w.choiceFlags(cmd)
	return cmd
}

func plannedOf(d *recovery.Decision, changes []recovery.Change, err error) *planned {
	p := &planned{Open: "ok", Changes: []changeRow{}, Warnings: []warningRow{}}
	if err != nil {
		p.Open, p.Error = "refuse", refusalRow(err)
		return p
	}
	var out outcome
	out.report(&d.Report)
	p.Unclean, p.Start, p.Reason, p.LogStart, p.LogEnd = d.Unclean, d.Start, d.Reason, d.LogStart, d.LogEnd
	p.Believed = unseen(&d.Report)
	p.Records, p.Lost, p.Warnings = d.Records, out.Lost, append(p.Warnings, out.Warnings...)
	if d.Refused != nil { // nothing is cut or changed
		p.Open, p.Error = "refuse", refusalRow(d.Refused)
		return p
	}
	p.TruncatedAt, p.CutBytes = out.TruncatedAt, out.CutBytes
	p.CutRecords, _ = d.Cut()
	for _, c := range changes {
		p.Changes = append(p.Changes, changeRow(c))
	}
	p.EstimateMs = estimate(d).Milliseconds()
	return p
}

// What opening takes beside reading the log: files are made, synced and renamed; and what the replay takes, with what the
// check takes longer when it keeps records for it, for each second of the plan: 1.3 in the median of eight openings of 300 MB of
// 1 KiB bodies on a busy machine, killed stores with queues and index and without.
const (
	fixedCost  = 50 * time.Millisecond
	replayCost = 1.3
)

// estimate is about how long opening takes: it checks as long as the plan did, and replays what it has checked.
func estimate(d *recovery.Decision) time.Duration {
	took := d.Planning + fixedCost
	if !d.Trusted {
		took += time.Duration(replayCost * float64(d.Planning))
	}
	return took.Round(10 * time.Millisecond)
}

func (a *app) planned(p *planned) {
	say := func(what, format string, args ...any) {
		fmt.Fprintf(a.out, "%-12s %s\n", what, printable(fmt.Sprintf(format, args...)))
	}
	if p.Reason == "" { // it was not even looked at the log
		say("refused", "%s", p.Error.Text)
		return
	}
	stop := "clean"
	if p.Unclean {
		stop = "unclean"
	}
	say("last stop", "%s", stop)
	say("check", "from %d: %s; %d records", p.Start, p.Reason, p.Records)
	say("commit log", "%d to %d", p.LogStart, p.LogEnd)
	if p.Believed > 0 {
		say("believed", "%s", believed(p.LogStart, p.Believed, p.Unclean))
	}
	if p.TruncatedAt != nil {
		say("cut", "at %d, %d bytes, %d whole records among them", *p.TruncatedAt, p.CutBytes, p.CutRecords)
	}
	for _, c := range p.Changes {
		say("change", "%s: %s", c.File, c.What)
	}
	for _, l := range p.Lost {
		say("lost", "%s/%d: %s, the next one is %d", l.Topic, l.QueueID, offsetsOf(l.FromOffset, l.ToOffset), l.NextReadable)
	}
	for _, w := range p.Warnings {
		say("warning", "%s: %s: offset %d: %s", w.Kind, w.File, w.Offset, w.Text)
	}
	if p.Error != nil {
		say("refused", "%s", p.Error.Text)
		return
	}
	say("estimate", "opening takes about %v", time.Duration(p.EstimateMs)*time.Millisecond)
}

// unseen is how many bytes at the log's start opening believes without a look.
func unseen(r *recovery.Report) int64 {
	if r.Trusted {
		return r.LogEnd - r.LogStart
	}
	return r.Start - r.LogStart
}

// believed says why opening does not look at so many bytes from from on, and who does.
func believed(from, bytes int64, unclean bool) string {
	why := "since the last stop was clean"
	if unclean {
		why = "since the checkpoint vouches for it"
	}
	return fmt.Sprintf("the log from %d to %d and what is made of it, %s: damage there does not show here; storectl check looks at everything", from, from+bytes, why)
}

// offsetsOf names queue offsets, the last one too.
func offsetsOf(from, to int64) string {
	if from == to {
		return fmt.Sprintf("queue offset %d", from)
	}
	return fmt.Sprintf("queue offsets %d to %d", from, to)
}
