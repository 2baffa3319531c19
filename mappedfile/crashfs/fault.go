package crashfs

import (
	"errors"
	"math/rand/v2"
	"path"
	"slices"
)

// ErrCrashed is what every operation returns after the power was cut.
var ErrCrashed = errors.New("crashfs: the power is off")

// Op is a kind of operation.
type Op string

// The kinds. All but the last four change something, and are counted as steps.
const (
	OpCreate    Op = "create"   // OpenFile or Lock of a new name
	OpMkdir     Op = "mkdir"    // each directory that MkdirAll makes
	OpRename    Op = "rename"   //
	OpRemove    Op = "remove"   //
	OpWrite     Op = "write"    // File.WriteAt
	OpAllocate  Op = "allocate" //
	OpTruncate  Op = "truncate" //
	OpSync      Op = "sync"     // File.Sync
	OpSyncRange Op = "msync"    // Mapping.SyncRange
	OpSyncDir   Op = "syncdir"  //
	OpSyncAll   Op = "syncall"  //
	OpOpen      Op = "open"     // OpenFile of a name that exists
	OpRead      Op = "read"     // File.ReadAt
	OpReadDir   Op = "readdir"  //
	OpMap       Op = "map"      //
)

// Event is one step of the history.
type Event struct {
	Op      Op
	Name    string
	NewName string // of a rename
	Off, N  int64  // the range in bytes; of Truncate Off is the new length
}

// faults says what goes wrong, and keeps the history.
type faults struct {
	events  []Event
	rules   []rule
	limit   int // steps until the crash
	armed   bool
	crashed bool
}

type rule struct {
	op    Op
	match string
	err   error // nil: the operation says that all is well and does nothing
}

// Fail makes operations of the kind op fail with err, on files whose path matches the pattern (of package path; "" for
// all), until Fail is called with the same op and pattern and a nil error. They are steps, but have no effect; a failed
// sync loses pages, see the package comment.
func (c *FS) Fail(op Op, match string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rules = slices.DeleteFunc(c.rules, func(r rule) bool { return r.op == op && r.match == match })
	if err != nil {
		c.rules = append(c.rules, rule{op, match, err})
	}
}

// Ignore makes operations of the kind op do nothing and claim success, as if the caller had left them out: a planted bug.
// It has a meaning for syncs, removals and renames.
func (c *FS) Ignore(op Op, match string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rules = append(c.rules, rule{op, match, nil})
}

// Steps gives the number of changing operations so far.
func (c *FS) Steps() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.events)
}

// Events gives the history of changing operations.
func (c *FS) Events() []Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.events)
}

// CrashAfter cuts the power as soon as n steps are done, counted from New: every later operation fails with [ErrCrashed]
// and does nothing. Closing and unmapping still work. Writes through mappings that the program goes on making count as
// made before the cut, and are as lost or kept as any that was not synced.
func (c *FS) CrashAfter(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit, c.armed = n, true
}

// Crash cuts the power now.
func (c *FS) Crash() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crashed = true
}

// Writeback makes some of the dirty pages durable, chosen by seed, as the kernel does in its own time. What was made
// durable so is an old version of a page that is written again later.
func (c *FS) Writeback(seed uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.crashedErr(); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 0x77726974656261))
	return c.root.writeback(func() bool { return rng.IntN(2) == 0 })
}

// crashedErr says whether the power is off. The caller holds mu.
func (c *FS) crashedErr() error {
	if c.err != nil {
		return c.err
	}
	if c.crashed {
		return ErrCrashed
	}
	return nil
}

// begin is called by each operation before it does anything, with mu held: it counts the step, and says what goes wrong.
func (c *FS) begin(e Event) (ignored bool, err error) {
	switch e.Op {
	case OpOpen, OpRead, OpReadDir, OpMap:
		err = c.crashedErr()
	default:
		if c.armed && len(c.events) >= c.limit {
			c.crashed = true
		}
		if err = c.crashedErr(); err == nil {
			c.events = append(c.events, e)
		}
	}
	if err != nil {
		return false, err
	}
	for _, r := range c.rules {
		if r.op != e.Op {
			continue
		}
		if ok, _ := path.Match(r.match, e.Name); ok || r.match == "" {
			return r.err == nil, r.err
		}
	}
	return false, nil
}
