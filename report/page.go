package report

import (
	"crypto/sha256"
	_ "embed" // the page and its style
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/rocketstore/rocketstore/inspect"
)

// pageText and styleText are constants that lie in files of their own.
var (
	//go:embed page.html
	pageText string
	//go:embed style.css
	styleText string
)

// pages are the templates, parsed.
func pages() (*template.Template, error) {
	return template.New("").Funcs(template.FuncMap{
		"time": clock, "bytes": bytesText, "percent": percent, "ratio": ratio,
		"todo":        func(f inspect.Finding) string { _, todo := f.Advice(); return todo },
		"recordlink":  func(off int64) string { return "/record?offset=" + strconv.FormatInt(off, 10) },
		"recordslink": func(off int64) string { return "/records?from=" + strconv.FormatInt(off, 10) },
		"hexlink":     hexLink,
		"queuelink": func(topic string, id int32, from int64) string {
			return "/queue?" + url.Values{"topic": {topic}, "id": {strconv.Itoa(int(id))}, "from": {strconv.FormatInt(from, 10)}}.Encode()
		},
	}).Parse(pageText)
}

func hexLink(file string, offset int64) string {
	return "/hex?" + url.Values{"file": {file}, "offset": {strconv.FormatInt(offset, 10)}}.Encode()
}

// styleHash is how a Content-Security-Policy names the one style that is allowed.
func styleHash() string {
	sum := sha256.Sum256([]byte(styleText))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// view is what a template gets.
type view struct {
	Title   string
	Style   template.CSS
	Live    bool
	Content any
}

func newView(title string, live bool, content any) *view {
	return &view{title, template.CSS(styleText), live, content} //nolint:gosec // it is a file of this package
}

// Write writes the page of a store, which stands alone: it loads nothing and has no link to anything but itself.
func Write(w io.Writer, data *Data) error {
	t, err := pages()
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(w, "report", newView(data.Dir, false, newSummary(data, false)))
}

// summary is the data of the page with what is worked out for showing.
type summary struct {
	*Data
	Live           bool
	Timeline       []bar
	TimelineHeight int
	From, Until    int64 // store times, ms
	ShownSegments  []Segment
	MoreSegments   int
	Topics, Hours  []share
	Lags           []inspect.GroupLag
}

// bar is one of the bars of the timeline.
type bar struct {
	X, Y, W int
	Name    string
}

// share is one row of a table of shares.
type share struct {
	inspect.Share
	Part  float64
	Width int // of a bar, in hundredths
}

func newSummary(data *Data, live bool) *summary {
	s := &summary{Data: data, Live: live, Topics: shares(data.Stat.Topics), Hours: shares(data.Stat.Hours), Lags: data.Stat.Lags}
	s.Lags = s.Lags[:min(len(s.Lags), maxRows)]
	s.MoreSegments = max(0, len(data.Segments)-maxSegments)
	s.ShownSegments = data.Segments[s.MoreSegments:]
	for _, seg := range s.ShownSegments {
		if seg.Records > 0 && (s.From == 0 || seg.First < s.From) {
			s.From = seg.First
		}
		s.Until = max(s.Until, seg.Last)
	}
	// The times are the store's own, so their difference may be any number.
	span := float64(s.Until) - float64(s.From)
	for _, seg := range s.ShownSegments {
		if seg.Records == 0 {
			continue
		}
		b := bar{W: 1000, Y: 16 + 10*len(s.Timeline), Name: seg.File}
		if span > 0 {
			b.X = int(1000 * (float64(seg.First) - float64(s.From)) / span)
			b.W = max(2, int(1000*(float64(seg.Last)-float64(seg.First))/span))
		}
		b.X = min(b.X, 1000-2)
		b.W = min(b.W, 1000-b.X)
		s.Timeline = append(s.Timeline, b)
	}
	s.TimelineHeight = 20 + 10*len(s.Timeline)
	return s
}

// Healthy says whether nothing from severity warning on was found, and all was read.
func (s *summary) Healthy() bool { return s.Errs()+s.Warnings() == 0 && len(s.Errors) == 0 }

// Errs is how many errors there are.
func (s *summary) Errs() int64 { return s.Check.Findings[inspect.Error] }

// Warnings is how many warnings there are.
func (s *summary) Warnings() int64 { return s.Check.Findings[inspect.Warning] }

// OpenMore is how many open transactions are not shown.
func (s *summary) OpenMore() int64 { return s.OpenAll - int64(len(s.Open)) }

// shares are the rows of a table, the first ones.
func shares(all []inspect.Share) []share {
	var total int64
	for _, s := range all {
		total += s.Bytes
	}
	rows := make([]share, 0, min(len(all), maxRows))
	for _, s := range all[:min(len(all), maxRows)] {
		part := float64(s.Bytes) / float64(max(total, 1))
		rows = append(rows, share{s, part, int(100 * part)})
	}
	return rows
}

// clock is a time in ms, in UTC.
func clock(ms int64) string {
	if ms == 0 {
		return "-"
	}
	if ms < 0 || ms > 253402300799999 {
		return strconv.FormatInt(ms, 10)
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.000Z")
}

// bytesText is a number of bytes for people.
func bytesText(n int64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	f, u := float64(n)/(1<<10), 0
	for f >= 1<<10 && u < len(units)-1 {
		f, u = f/(1<<10), u+1
	}
	return fmt.Sprintf("%.1f %s", f, units[u])
}

func percent(part, all int64) string { return ratio(float64(part) / float64(max(all, 1))) }

func ratio(f float64) string { return fmt.Sprintf("%.1f%%", 100*f) }
