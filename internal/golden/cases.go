package golden

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Case is a store directory that was built to ask one question, with the answer.
type Case struct {
	ID    string
	Title string
	Kind  string
	// Given, When and Expect are as in case.json; each case has its own members.
	Given struct {
		Dialect string // "any", or a line or version: "4.x", "3.1.9"
		Text    string
		Config  struct {
			CommitLogFileSize    int64 // bytes
			ConsumeQueueFileSize int64 // bytes
			StateTableFileSize   int64 // bytes, 0 when the case has none
			RedoLogFileSize      int64 // bytes, 0 when the case has none
			IndexSlots           int32
			IndexEntries         int32
		}
	}
	When, Expect json.RawMessage
	// Raw is the whole case.json.
	Raw json.RawMessage `json:"-"`
	// Store is a writable copy of the case's directory; "" when the case has none.
	Store string `json:"-"`
}

// Cases lists the cases, sorted.
func Cases() []string {
	found, err := filepath.Glob(filepath.Join(root(), "cases", "*", "case.json"))
	if err != nil || len(found) == 0 {
		panic("golden: no cases in " + root())
	}
	names := make([]string, 0, len(found))
	for _, path := range found {
		names = append(names, filepath.Base(filepath.Dir(path)))
	}
	slices.Sort(names)
	return names
}

// LoadCase reads a case and copies its store into a temporary directory of the test.
func LoadCase(tb testing.TB, name string) *Case {
	tb.Helper()
	dir := filepath.Join(root(), "cases", name)
	raw, err := os.ReadFile(filepath.Join(dir, "case.json"))
	if err != nil {
		tb.Fatalf("golden: %v", err)
	}
	c := &Case{Raw: raw}
	if err := json.Unmarshal(raw, c); err != nil {
		tb.Fatalf("golden: case %s: %v", name, err)
	}
	store := filepath.Join(dir, "store")
	switch info, err := os.Stat(store); {
	case err == nil && info.IsDir():
		c.Store = Copy(tb, store)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		tb.Fatalf("golden: case %s: %v", name, err)
	}
	return c
}
