package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
)

// importCursor is what was sent of an input: all before record Records, and behind it those of Sent.
type importCursor struct {
	Records int64   `json:"records"`
	Sent    []int64 `json:"sent,omitempty"` // numbers from 0, in order
	First   string  `json:"first"`          // hash of the input's first record, by which another input is known

	mu   sync.Mutex // guards sent
	sent map[int64]bool
}

// load reads what an earlier call noted, if there is something.
func (c *importCursor) load(file string) error {
	c.sent = make(map[int64]bool)
	if file == "" {
		return nil
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(b, c)
	}
	if err == nil && (c.Records < 0 || c.First == "") {
		err = errors.New("no note of an import")
	}
	if err != nil {
		return fmt.Errorf("cursor %s: %w", file, err)
	}
	for _, n := range c.Sent {
		c.sent[n] = true
	}
	return nil
}

// see takes note of record n of the input: of the first one, whether it is the input that the cursor is of.
func (c *importCursor) see(n int64, b []byte) error {
	if n > 0 {
		return nil
	}
	h := fnv.New64a()
	_, _ = h.Write(b) // a hash takes all
	first := fmt.Sprintf("%016x", h.Sum64())
	if c.First != "" && c.First != first {
		return errors.New("the cursor is of another input, that begins with another record")
	}
	c.First = first
	return nil
}

// has says whether record n was sent.
func (c *importCursor) has(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return n < c.Records || c.sent[n]
}

// add notes that record n was sent.
func (c *importCursor) add(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent[n] = true
}

// through notes that all before record n is dealt with.
func (c *importCursor) through(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Records = max(c.Records, n)
	clear(c.sent)
}

// save writes the cursor, if one is kept and something was read.
func (c *importCursor) save(file string) error {
	if file == "" || c.First == "" {
		return nil
	}
	c.mu.Lock()
	c.Sent = slices.Sorted(maps.Keys(c.sent))
	c.mu.Unlock()
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return writeAside(file, b)
}
