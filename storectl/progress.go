package main

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress is a line on a terminal that says how far something is, how fast it goes and how long it still takes.
type progress struct {
	app *app
	on  bool
	bar *progressbar.ProgressBar // nil until there is something to show
}

// progress makes one that shows nothing unless the standard error is a terminal.
func (a *app) progress() *progress {
	p := &progress{app: a}
	if f, ok := a.errOut.(*os.File); ok {
		info, err := f.Stat()
		p.on = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// update shows how many bytes of all are done.
func (p *progress) update(done, total int64) {
	if !p.on || total <= 0 {
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(p.app.errOut), progressbar.OptionShowBytes(true), progressbar.OptionUseIECUnits(true),
			progressbar.OptionSetPredictTime(true), progressbar.OptionSetWidth(20), progressbar.OptionThrottle(200*time.Millisecond),
			progressbar.OptionUseANSICodes(true), progressbar.OptionClearOnFinish())
	}
	if p.bar.GetMax64() != total {
		p.bar.ChangeMax64(total)
	}
	_ = p.bar.Set64(min(done, total)) // a terminal that is gone shows nothing
}

// clear takes the line away, for other lines; the next update shows it again.
func (p *progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

// again begins a new count, of something else.
func (p *progress) again() {
	p.clear()
	p.bar = nil
}
