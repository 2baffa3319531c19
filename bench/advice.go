package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Advice is what the figures say about one setting.
type Advice struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
	Why     string `json:"why"` // the figures that say so, and the rule that they were judged by
}

// results by name.
type results []Result

// best is the result with the highest rate of those whose name begins so; false without one.
func (r results) best(prefix string) (Result, bool) {
	var found results
	for _, x := range r {
		if strings.HasPrefix(x.Name, prefix) && x.Rate > 0 {
			found = append(found, x)
		}
	}
	if len(found) == 0 {
		return Result{}, false
	}
	return slices.MaxFunc(found, func(a, b Result) int { return cmp.Compare(a.Rate, b.Rate) }), true
}

func (r results) get(name string) (Result, bool) {
	i := slices.IndexFunc(r, func(x Result) bool { return x.Name == name })
	if i < 0 || r[i].Rate == 0 {
		return Result{}, false
	}
	return r[i], true
}

// Advise reads the results of a run (R-E-090). What was not measured gets no advice.
func Advise(all []Result) []Advice {
	r := results(all)
	var advice []Advice
	for _, f := range []func(results) (Advice, bool){adviseFlush, adviseWrite, advisePages, advisePreallocation, adviseAhead} {
		if a, ok := f(r); ok {
			advice = append(advice, a)
		}
	}
	return advice
}

func perSecond(rate float64) string {
	switch {
	case rate >= 1e6:
		return fmt.Sprintf("%.2f M/s", rate/1e6)
	case rate >= 1e3:
		return fmt.Sprintf("%.1f k/s", rate/1e3)
	}
	return fmt.Sprintf("%.0f/s", rate)
}

func rounded(d time.Duration) time.Duration {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= 10*unit {
			return d.Round(unit)
		}
		if d >= unit {
			return d.Round(unit / 100)
		}
	}
	return d
}

// adviseFlush says what acknowledging after the sync costs.
func adviseFlush(r results) (Advice, bool) {
	loose, ok1 := r.best("store/op=put/sync=interval/body=1024/")
	one, ok2 := r.get("store/op=put/sync=group/body=1024/writers=1")
	crowd, ok3 := r.best("store/op=put/sync=group/body=1024/")
	if !ok1 || !ok2 || !ok3 {
		return Advice{}, false
	}
	a := Advice{Setting: "Sync (flush policy)", Value: "SyncInterval, FlushEvery at its default of half a second"}
	const bearable, quick = 20, 2 * time.Millisecond
	if crowd.Rate*bearable >= loose.Rate || one.P99 < quick {
		a.Value = "SyncGroup where the loss of the last half second in a power cut matters, else SyncInterval"
	}
	a.Why = fmt.Sprintf("messages of 1 KiB: %s without waiting (%s); waiting for the disk %s from one producer (p50 %v, p99 %v), %s at best (%s); waiting is bearable at a %dth of the first rate or with a p99 below %v",
		perSecond(loose.Rate), lastPart(loose.Name), perSecond(one.Rate), rounded(one.P50), rounded(one.P99), perSecond(crowd.Rate), lastPart(crowd.Name), bearable, quick)
	return a, true
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

func part(name, key string) string {
	for p := range strings.SplitSeq(name, "/") {
		if v, ok := strings.CutPrefix(p, key+"="); ok {
			return v
		}
	}
	return ""
}

// adviseWrite chooses the way of writing for both policies. A process that is killed loses what is staged, so staged has to be
// much faster to be worth it.
func adviseWrite(r results) (Advice, bool) {
	const stagedPays = 2
	a := Advice{Setting: "Write (how bytes reach the file)"}
	var values, why []string
	for _, p := range []string{"interval", "group"} {
		var best Result
		var figures []string
		for _, mode := range []string{"mapped", "pwrite", "staged"} {
			x, ok := r.best("append/write=" + mode + "/sync=" + p + "/body=1024/")
			if !ok {
				continue
			}
			figures = append(figures, mode+" "+perSecond(x.Rate))
			if least := best.Rate * 1.05; x.Rate > least && (mode != "staged" || p == "group" || x.Rate > stagedPays*best.Rate) {
				best = x
			}
		}
		if best.Name == "" {
			return a, false
		}
		values = append(values, part(best.Name, "write")+" for sync="+p)
		why = append(why, "sync="+p+": "+strings.Join(figures, ", "))
	}
	a.Value, a.Why = strings.Join(values, ", "), strings.Join(why, "; ")+fmt.Sprintf(
		"; what is staged is lost when the process is killed, so without waiting it has to be more than %d times as fast; a put that waits is answered when all is on the disk", stagedPays)
	return a, true
}

// advisePages finds the least number of pages that reaches most of the disk's rate.
func advisePages(r results) (Advice, bool) {
	top := 0.0
	var runs results
	for _, x := range r {
		if strings.HasPrefix(x.Name, "sync/write=mapped/") {
			runs = append(runs, x)
			top = max(top, x.Bytes)
		}
	}
	const most = 0.8
	for _, x := range runs {
		if x.Bytes >= most*top && top > 0 {
			return Advice{
				Setting: "FlushPages (flushCommitLogLeastPages)", Value: part(x.Name, "pages"),
				Why: fmt.Sprintf("a sync of so many mapped pages reaches %.0f MB/s of %.0f MB/s at best, in %v; it is the least number that reaches %.0f %%",
					x.Bytes/1e6, top/1e6, rounded(x.P50), 100*most),
			}, true
		}
	}
	return Advice{}, false
}

// advisePreallocation compares blocks that were only reserved with those that were written before.
func advisePreallocation(r results) (Advice, bool) {
	reserved, ok1 := r.get("device/how=pwrite/blocks=reserved/size=65536")
	zeroed, ok2 := r.get("device/how=pwrite/blocks=zeroed/size=65536")
	if !ok1 || !ok2 {
		return Advice{}, false
	}
	a := Advice{Setting: "Reserve (preallocation of segments)", Value: "ReserveWhole"}
	const worthIt = 1.3
	if zeroed.Rate > worthIt*reserved.Rate {
		a.Value = "ReserveZero for SyncGroup, else ReserveWhole"
	}
	a.Why = fmt.Sprintf("64 KiB written and synced: %s into reserved blocks (p50 %v), %s into blocks written before (p50 %v), which pay for writing them twice from %.1f times the rate on",
		perSecond(reserved.Rate), rounded(reserved.P50), perSecond(zeroed.Rate), rounded(zeroed.P50), worthIt)
	return a, true
}

// adviseAhead says what making the next segment ahead spares the put that rolls.
func adviseAhead(r results) (Advice, bool) {
	without, ok1 := r.get("roll/reserve=whole/ahead=false")
	with, ok2 := r.get("roll/reserve=whole/ahead=true")
	if !ok1 || !ok2 {
		return Advice{}, false
	}
	a := Advice{Setting: "Ahead (next segment made in the background)", Value: "on"}
	if with.P999 > without.P999 && with.Rate < without.Rate {
		a.Value = "of no use here"
	}
	a.Why = fmt.Sprintf("appends of 64 KiB, p999: %v without, %v with; %s and %s; of no use when it is worse in both", rounded(without.P999), rounded(with.P999), perSecond(without.Rate), perSecond(with.Rate))
	return a, true
}
