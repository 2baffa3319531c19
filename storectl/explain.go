package main

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
)

func (a *app) explain() *cobra.Command {
	var r reading
	cmd := &cobra.Command{
		Use:   "explain DIR FILE OFFSET",
		Short: "Say what the byte at a place of a file belongs to, decoded",
		Long: `Say which record, unit, slot or entry the byte at an offset of a file belongs to, and which of its fields,
with all fields in hex and decoded. FILE is the path inside DIR, as findings name it; OFFSET is decimal, or
hexadecimal with 0x. The line with the byte is marked with ">".

It knows the files of the commit log, of queues, batch queues and extensions, of the index, of the transactions of
3.1, of the timer of 5.x, the checkpoint, and those under config.`,
		Args: cobra.ExactArgs(3),
		RunE: func(_ *cobra.Command, args []string) error {
			offset, err := strconv.ParseInt(args[2], 0, 64)
			if err != nil {
				return fmt.Errorf("OFFSET %s: want a number", args[2])
			}
			return r.with(args[0], func(d *inspect.Dir) error {
				x, err := d.Explain(filepath.ToSlash(args[1]), offset)
				if err != nil {
					return err
				}
				if a.json {
					return a.line(x)
				}
				a.explained(x)
				return nil
			})
		},
	}
	r.flags(cmd)
	return cmd
}

// bytesPerLine is how many bytes a line of hex has.
const bytesPerLine = 16

// explained prints an explanation as text.
func (a *app) explained(x *inspect.Explanation) {
	fmt.Fprintf(a.out, "%s, offset %d: %s, bytes %d to %d\n", printable(x.File), x.Offset, printable(x.What), x.Start, x.Start+x.Size-1)
	for _, note := range x.Notes {
		fmt.Fprintln(a.out, "  "+printable(note))
	}
	for i, f := range x.Fields {
		a.field(x, i)
		if i == x.Field && len(x.Around) > 0 {
			fmt.Fprintf(a.out, "  %10s  …\n", "")
			a.hexLines(x, x.AroundOffset, x.Around, "", "")
			if n := f.Offset + f.Size - x.AroundOffset - int64(len(x.Around)); n > 0 {
				fmt.Fprintf(a.out, "  %10s  and %d bytes more\n", "", n)
			}
		} else if n := f.Size - int64(len(f.Bytes)); n > 0 {
			fmt.Fprintf(a.out, "  %10s  and %d bytes more\n", "", n)
		}
	}
}

// field prints the first bytes of a field, with its name and value.
func (a *app) field(x *inspect.Explanation, i int) {
	f := x.Fields[i]
	if len(f.Bytes) == 0 {
		fmt.Fprintf(a.out, "  %10d  %-*s  %-30s %s\n", f.Offset, 3*bytesPerLine-1, "", printable(f.Name), printable(f.Value))
	}
	a.hexLines(x, f.Offset, f.Bytes, f.Name, f.Value)
}

// hexLines prints bytes that lie at an offset of the file, and marks the line with the byte that was asked for.
func (a *app) hexLines(x *inspect.Explanation, offset int64, b []byte, name, value string) {
	for at := 0; at < len(b); at += bytesPerLine {
		line := b[at:min(at+bytesPerLine, len(b))]
		here := offset + int64(at)
		mark := " "
		if x.Offset >= here && x.Offset < here+int64(len(line)) {
			mark = ">"
		}
		text := value
		if text == "" || at > 0 && name != "" {
			text = ascii(line)
		}
		if at > 0 && value != "" {
			text = ""
		}
		fmt.Fprintf(a.out, "%s %10d  %-*s  %-30s %s\n", mark, here, 3*bytesPerLine-1, spaced(line), printable(name), printable(text))
		name = ""
	}
}

// spaced is b in hex with blanks between the bytes.
func spaced(b []byte) string {
	words := make([]string, len(b))
	for i := range b {
		words[i] = hex.EncodeToString(b[i : i+1])
	}
	return strings.Join(words, " ")
}

// ascii is b with a dot for what is no letter.
func ascii(b []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '.'
		}
		return r
	}, string(b))
}
