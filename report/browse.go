package report

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/message"
)

// Bounds of what one page of a list shows, and looks at.
const (
	pageRows  = 100
	pageBytes = 64 << 20 // of the log, when a topic is asked for
	pageBody  = 64 << 10
	pageFiles = 1000
)

// recordRow is one row of the list of records.
type recordRow struct {
	PhysicalOffset int64
	Size           int32
	Topic          string
	QueueID        int32
	QueueOffset    int64
	StoreTimestamp int64
	Damaged        string
}

// recordList is the content of the list.
type recordList struct {
	From     int64
	Topic    string
	Rows     []recordRow
	Next     int64
	NextLink string
}

// records lists records in log order.
func (s *Server) records(r *http.Request) (string, *view, error) {
	from, err := number(r, "from", 64)
	if err != nil {
		return "", nil, err
	}
	list := recordList{From: from, Topic: r.URL.Query().Get("topic")}
	begun := int64(-1)
	for rec, err := range s.dir.Log(r.Context(), inspect.LogRange{From: from}, func(inspect.Finding) {}) {
		if err != nil {
			return "", nil, err
		}
		if begun < 0 {
			begun = rec.PhysicalOffset
		}
		if len(list.Rows) == pageRows || rec.PhysicalOffset-begun > pageBytes {
			list.Next = rec.PhysicalOffset
			list.NextLink = "/records?" + url.Values{"from": {strconv.FormatInt(list.Next, 10)}, "topic": {list.Topic}}.Encode()
			break
		}
		if list.Topic == "" || list.Topic == string(rec.Topic) {
			list.Rows = append(list.Rows, recordRow{
				rec.PhysicalOffset, rec.Size, printable(string(rec.Topic)), rec.QueueID, rec.QueueOffset, rec.StoreTimestamp, rec.Damaged,
			})
		}
	}
	return "records", newView("Records", true, list), nil
}

// named is a name and its value.
type named struct{ Name, Value, Link string }

// oneRecord is the content of a record's page.
type oneRecord struct {
	Fields     []named
	Properties []named
	Body       string
	BodySize   int
	Cut        bool
}

// record shows one record.
func (s *Server) record(r *http.Request) (string, *view, error) {
	off, err := number(r, "offset", 64)
	if err != nil {
		return "", nil, err
	}
	rec, ok, err := s.dir.RecordAt(off, func(inspect.Finding) {})
	if err == nil && !ok {
		err = fmt.Errorf("no record starts at %d: %w", off, inspect.ErrNothingThere)
	}
	if err != nil {
		return "", nil, err
	}
	one := oneRecord{}
	add := func(name string, value any, link string) {
		one.Fields = append(one.Fields, named{name, printable(fmt.Sprint(value)), link})
	}
	start := int64(0)
	if n, err := strconv.ParseInt(path.Base(rec.File), 10, 64); err == nil {
		start = n
	}
	add("File", rec.File, hexLink(rec.File, off-start))
	add("Physical offset", rec.PhysicalOffset, "")
	add("Bytes", rec.Size, "")
	add("Topic", string(rec.Topic), "")
	add("Queue", rec.QueueID, "/queue?"+url.Values{"topic": {string(rec.Topic)}, "id": {strconv.Itoa(int(rec.QueueID))}, "from": {strconv.FormatInt(max(rec.QueueOffset, 0), 10)}}.Encode())
	add("Queue offset", rec.QueueOffset, "")
	add("Message id", rec.ID(), "")
	add("Born", clock(rec.BornTimestamp)+" at "+fmt.Sprint(rec.BornHost), "")
	add("Stored", clock(rec.StoreTimestamp)+" at "+fmt.Sprint(rec.StoreHost), "")
	add("Flags", fmt.Sprintf("flag %d, sys flag %d", rec.Flag, rec.SysFlag), "")
	add("Consumed again", rec.ReconsumeTimes, "")
	if rec.PreparedTransactionOffset != 0 {
		add("Prepared message at", rec.PreparedTransactionOffset, "/record?offset="+strconv.FormatInt(max(rec.PreparedTransactionOffset, 0), 10))
	}
	if rec.Damaged != "" {
		add("Damaged", rec.Damaged, "")
	}
	for name, value := range message.Properties(rec.Properties).All() {
		one.Properties = append(one.Properties, named{printable(name), printable(value), ""})
	}
	body, err := inspect.PlainBody(&rec.Record)
	if err != nil {
		add("Body", err, "")
		body = rec.Body
	}
	one.BodySize = len(body)
	one.Cut = len(body) > pageBody
	one.Body = bodyText(body[:min(len(body), pageBody)])
	return "record", newView(fmt.Sprintf("Record at %d", off), true, one), nil
}

// bodyText is a body as text if it is one, else in hex.
func bodyText(b []byte) string {
	if utf8.Valid(b) && !strings.ContainsFunc(string(b), func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) }) {
		return string(b)
	}
	return hex.Dump(b)
}

// printable is s with control characters and what turns the direction of text written as Go writes them in a string.
func printable(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) < 0 {
		return s
	}
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// queueRow is one row of the list of queues.
type queueRow struct {
	inspect.QueueFiles
	First int64
}

// queueList is the content of the list of queues.
type queueList struct {
	Rows   []queueRow
	More   int
	Unread string // what could not be listed, "" for nothing
}

// queues lists the queues.
func (s *Server) queues(*http.Request) (string, *view, error) {
	all, err := s.dir.QueueFiles(inspect.QueueFilter{})
	if err != nil && len(all) == 0 {
		return "", nil, err
	}
	list := queueList{More: max(0, len(all)-pageFiles)}
	if err != nil {
		list.Unread = err.Error()
	}
	for _, q := range all[:min(len(all), pageFiles)] {
		row := queueRow{QueueFiles: q}
		if len(q.Segments) > 0 {
			row.First = q.Segments[0].Start / 20
		}
		list.Rows = append(list.Rows, row)
	}
	return "queues", newView("Queues", true, list), nil
}

// unitList is the content of a queue's page.
type unitList struct {
	Topic string
	Queue int32
	Rows  []inspect.QueueUnit
	Next  int64
}

// queue lists the units of a queue.
func (s *Server) queue(r *http.Request) (string, *view, error) {
	id, err := number(r, "id", 32)
	if err != nil {
		return "", nil, err
	}
	from, err := number(r, "from", 64)
	if err != nil {
		return "", nil, err
	}
	list := unitList{Topic: r.URL.Query().Get("topic"), Queue: int32(id)}
	for at := from; len(list.Rows) < pageRows; at++ {
		u, ok, err := s.dir.UnitAt(list.Topic, list.Queue, at)
		if err != nil {
			return "", nil, err
		}
		if !ok {
			break
		}
		list.Rows = append(list.Rows, u)
		list.Next = at + 1
	}
	if len(list.Rows) < pageRows {
		list.Next = 0
	}
	return "queue", newView(fmt.Sprintf("Queue %s/%d", printable(list.Topic), id), true, list), nil
}

// transactions lists the open transactions.
func (s *Server) transactions(r *http.Request) (string, *view, error) {
	data := &Data{Stat: &inspect.Stat{}}
	data.transactions(r.Context(), s.dir)
	if err := r.Context().Err(); err != nil {
		return "", nil, err
	}
	return "open", newView("Open transactions", true, newSummary(data, true)), nil
}

// hexRow is a line of bytes.
type hexRow struct {
	Offset      int64
	Hex, Text   string
	Name, Value string
	Here        bool
}

// hexView is the content of the page of bytes.
type hexView struct {
	File          string
	Offset        int64
	What          string
	Notes         []string
	Rows          []hexRow
	Before, After string
	Files         []string
}

// hex shows what the bytes around a place are.
func (s *Server) hex(r *http.Request) (string, *view, error) {
	off, err := number(r, "offset", 64)
	if err != nil {
		return "", nil, err
	}
	v := hexView{File: r.URL.Query().Get("file"), Offset: off}
	if v.File == "" {
		v.Files, err = s.dir.Files(r.Context(), pageFiles)
		return "hex", newView("Bytes", true, v), err
	}
	x, err := s.dir.Explain(v.File, off)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", v.File, err)
	}
	v.What = printable(fmt.Sprintf("%s: bytes %d to %d", x.What, x.Start, x.Start+x.Size-1))
	for _, n := range x.Notes {
		v.Notes = append(v.Notes, printable(n))
	}
	for i, f := range x.Fields {
		v.lines(x, f.Offset, f.Bytes, f.Name, f.Value)
		if i == x.Field && len(x.Around) > 0 {
			v.lines(x, x.AroundOffset, x.Around, "…", "")
		}
	}
	if x.Start > 0 {
		v.Before = hexLink(x.File, x.Start-1)
	}
	v.After = hexLink(x.File, x.Start+max(x.Size, 1))
	return "hex", newView("Bytes of "+printable(x.File), true, v), nil
}

// lines adds bytes of a field, 16 a line.
func (v *hexView) lines(x *inspect.Explanation, offset int64, b []byte, name, value string) {
	for at := 0; at < max(len(b), 1); at += 16 {
		line := b[at:min(at+16, len(b))]
		here := offset + int64(at)
		text := strings.Map(func(r rune) rune {
			if r < ' ' || r > '~' {
				return '.'
			}
			return r
		}, latin1(line))
		row := hexRow{Offset: here, Hex: fmt.Sprintf("% x", line), Text: text, Here: here <= x.Offset && x.Offset < here+int64(len(line))}
		if at == 0 {
			row.Name, row.Value = printable(name), printable(value)
		}
		v.Rows = append(v.Rows, row)
	}
}

// latin1 is bytes as characters, one each.
func latin1(b []byte) string {
	r := make([]rune, len(b))
	for i, c := range b {
		r[i] = rune(c)
	}
	return string(r)
}

// Timeouts of the server. A look at a large store takes its time, so writing has none.
const (
	readTimeout = 10 * time.Second
	idleTimeout = 2 * time.Minute
)

// HTTPServer is the server with the bounds that it needs.
func (s *Server) HTTPServer() *http.Server {
	return &http.Server{Handler: s, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 16 << 10}
}
