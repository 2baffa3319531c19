package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/rocketstore/rocketstore/inspect"
)

// checkCursor keeps how far a check came in a file.
type checkCursor struct {
	file string // "": none is kept
	err  error  // the first of writing it
}

// open takes up what an earlier check noted, if there is something.
func (c *checkCursor) open(o *inspect.CheckOptions) error {
	if c.file == "" {
		return nil
	}
	o.Save = c.save
	b, err := os.ReadFile(c.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	s := &inspect.CheckState{}
	if err := json.Unmarshal(b, s); err != nil {
		return fmt.Errorf("%s: no note of a check: %w", c.file, err)
	}
	o.Resume = s
	return nil
}

// save replaces the note in one step, so that a kill leaves the old or the new one.
func (c *checkCursor) save(s *inspect.CheckState) {
	b, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(c.file+".tmp", append(b, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(c.file+".tmp", c.file)
	}
	if c.err == nil {
		c.err = err
	}
}

// close removes the note of a check that is through. Of one that was stopped it gives the error, and where to go on.
func (c *checkCursor) close(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		if c.file != "" && c.err == nil {
			err = fmt.Errorf("%w; the same call goes on with it (%s)", err, c.file)
		}
		return errors.Join(err, c.err)
	}
	if c.file == "" {
		return nil
	}
	if err := os.Remove(c.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return c.err
}
