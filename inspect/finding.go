package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	// Info: what a healthy store may have, such as what a running or killed broker has not come to yet.
	Info Severity = "info"
	// Warning: something to know; all bytes that are there can be believed.
	Warning Severity = "warning"
	// Error: bytes that cannot be believed, or not be read.
	Error Severity = "error"
)

// Kind is the class of a finding, in words.
type Kind string

// The kinds.
const (
	// ForeignFile: a name that no file of that folder can have, or no regular file. It is passed over.
	ForeignFile Kind = mappedfile.ForeignFile
	// EmptySegment: the last file has no bytes, left by a crash between making and sizing it.
	EmptySegment Kind = mappedfile.EmptySegment
	// ShortSegment: the last file is shorter than the others.
	ShortSegment Kind = mappedfile.ShortSegment
	// WrongSize: a file whose length or name does not go with the size of the others.
	WrongSize Kind = "wrong file size"
	// Gap: files are missing between two others; From and To bound what is missing.
	Gap Kind = mappedfile.Gap
	// Overlap: a file starts before the end of the one before it.
	Overlap Kind = "overlap"
	// BadMagic: bytes where a record should start are none.
	BadMagic Kind = "wrong magic"
	// BadSize: the lengths in a record do not add up, or reach beyond the file.
	BadSize Kind = "lengths do not add up"
	// BadPlace: a whole record that states another physical offset than where it lies: left over from an earlier life.
	BadPlace Kind = "record at another place than it says"
	// BadCRC: a record's body does not match its CRC, or the whole record that in its last property.
	BadCRC Kind = "wrong CRC"
	// BadBlank: the blank at the end of a commit log file states another length than what is left of the file.
	BadBlank Kind = "blank of another length than what is left"
	// Zeros: zeros where a record or unit should be, with further ones behind.
	Zeros Kind = "zeros with data behind them"
	// BadUnit: a queue unit that cannot be one.
	BadUnit Kind = "impossible queue unit"
	// BadIndex: an index file whose header, slots or chains contradict one another.
	BadIndex Kind = "damaged index file"
	// BadFile: another file of the store that cannot be read as what its name says.
	BadFile Kind = "damaged file"
	// NotRead: data of a kind that is recognised but not read.
	NotRead Kind = "not read"
	// More: there are further findings that were not kept.
	More Kind = "more findings"
	// Unreadable: reading failed, or the file went away meanwhile.
	Unreadable Kind = "unreadable"
)

// Finding is something about the store that is not as it should be.
type Finding struct {
	Kind     Kind     `json:"kind"`
	Severity Severity `json:"severity"`
	// File is the path inside the store directory, with forward slashes.
	File string `json:"file"`
	// Offset is in bytes from the start of File.
	Offset int64 `json:"offset"`
	// From and To bound what is missing or passed over, in the addresses of the structure (for the commit log, physical
	// offsets): from From on, up to and without To. Both are 0 when the finding is about no range.
	From int64  `json:"fromOffset,omitempty"`
	To   int64  `json:"toOffset,omitempty"`
	Text string `json:"text"`
	// Expected and Found are what should stand at Offset and what does, in words; "" where that says nothing.
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
}

// String is the finding on one line.
func (f Finding) String() string {
	if strings.Contains(f.Text, string(f.Kind)) {
		return fmt.Sprintf("%s: %s: offset %d: %s", f.Severity, f.File, f.Offset, f.Text)
	}
	return fmt.Sprintf("%s: %s: offset %d: %s: %s", f.Severity, f.File, f.Offset, f.Kind, f.Text)
}

// unreadable are the findings about what could not be read, in the named file or folder if the error does not say which.
func unreadable(where string, err error) []Finding {
	var all []Finding
	for _, err := range apart(err) {
		f := Finding{Kind: Unreadable, Severity: Error, File: where, Text: err.Error()}
		if at, ok := errors.AsType[*fs.PathError](err); ok && fs.ValidPath(at.Path) {
			f.File = at.Path
		}
		all = append(all, f)
	}
	return all
}
