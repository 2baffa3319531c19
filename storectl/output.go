package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// line prints v as one line of JSON on the standard output.
func (a *app) line(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// note prints v as one line of JSON on the standard error.
func (a *app) note(v any) {
	e := json.NewEncoder(a.errOut)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // there is nowhere to tell that to
}

// table prints rows as they come: JSON lines, or columns of a given width under a heading. It holds nothing back, so a
// cell that is too wide moves the rest of its row.
type table struct {
	app     *app
	columns []column
	begun   bool
}

// column has a heading and a width; negative: the cells stand to the right.
type column struct {
	head  string
	width int
}

func (a *app) table(columns ...column) *table { return &table{app: a, columns: columns} }

// row prints one row: v in JSON, else the cells.
func (t *table) row(v any, cells ...any) error {
	if t.app.json {
		return t.app.line(v)
	}
	if !t.begun {
		t.begun = true
		heads := make([]any, len(t.columns))
		for i, c := range t.columns {
			heads[i] = c.head
		}
		if err := t.print(heads); err != nil {
			return err
		}
	}
	return t.print(cells)
}

func (t *table) print(cells []any) error {
	var b strings.Builder
	for i, cell := range cells {
		text := printable(fmt.Sprint(cell))
		if i > 0 {
			b.WriteByte(' ')
		}
		pad := strings.Repeat(" ", max(0, max(t.columns[i].width, -t.columns[i].width)-utf8.RuneCountInString(text)))
		if t.columns[i].width < 0 {
			text, pad = pad, text
		}
		b.WriteString(text + pad)
	}
	_, err := fmt.Fprintln(t.app.out, strings.TrimRight(b.String(), " "))
	return err
}

// printable is s with what a terminal would act on written as Go writes it in a string.
func printable(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) < 0 {
		return s
	}
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// clock is a time in ms for people, in UTC.
func clock(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}
