package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/message"
)

// selection is which records of the log a verb is about, and where it goes on after it was stopped.
type selection struct {
	filter      inspect.Filter
	limits      inspect.LogRange
	queue       int32
	transaction string
	properties  []string
	limit       int64
	cursor      string
}

// flags adds the flags of a selection.
func (s *selection) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.filter.Topic, "topic", "", "only records of this topic")
	f.Int32Var(&s.queue, "queue", 0, "only records of this queue id")
	f.Int64Var(&s.limits.From, "from", 0, "only records that start at this physical offset or behind it")
	f.Int64Var(&s.limits.To, "to", 0, "only records that start before this physical offset")
	f.Int64Var(&s.filter.FromQueueOffset, "from-queue-offset", 0, "only records with this queue offset or a higher one")
	f.Int64Var(&s.filter.ToQueueOffset, "to-queue-offset", 0, "only records with a lower queue offset than this")
	f.StringVar(&s.filter.Key, "key", "", "only records with this key: a word of KEYS, or UNIQ_KEY")
	f.StringVar(&s.filter.Tag, "tag", "", "only records with this tag")
	f.StringVar(&s.filter.ID, "id", "", "only records with this message id, the broker's or the client's (UNIQ_KEY)")
	f.StringArrayVar(&s.properties, "property", nil, "only records with this property: NAME or NAME=VALUE; may be given more than once")
	f.Var((*moment)(&s.filter.Since), "since", "only records stored at this time or later: ms since 1970, or as 2006-01-02T15:04:05Z")
	f.Var((*moment)(&s.filter.Until), "until", "only records stored at this time or earlier")
	f.StringVar(&s.transaction, "transaction", "", "only records that are this to a transaction: none, prepared, commit or rollback")
	f.Int64Var(&s.limit, "limit", 0, "stop after so many records; 0: no limit")
	f.StringVar(&s.cursor, "cursor", "", "file that keeps how far the log was read: the next call with it goes on there")
}

// prepare makes the filter of the flags, and reads the cursor.
func (s *selection) prepare(cmd *cobra.Command) error {
	if cmd.Flags().Changed("queue") {
		s.filter.Queue = &s.queue
	}
	for _, p := range s.properties {
		name, value, _ := strings.Cut(p, "=")
		if s.filter.Properties == nil {
			s.filter.Properties = make(map[string]string)
		}
		s.filter.Properties[name] = value
	}
	var err error
	if s.filter.Transaction, err = transactionFlag(s.transaction); err != nil || s.cursor == "" {
		return err
	}
	b, err := os.ReadFile(s.cursor)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var c cursor
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		return fmt.Errorf("cursor %s: %w", s.cursor, err)
	}
	s.limits.From = max(s.limits.From, c.Next)
	return nil
}

// cursor is the content of a cursor file.
type cursor struct {
	Next int64 `json:"next"` // physical offset of the first byte that was not read
}

// each gives the chosen records to f. Records that were given are behind the cursor once f and flush did not fail.
func (s *selection) each(ctx context.Context, a *app, d *inspect.Dir, f func(*inspect.LogRecord) error) error {
	next, n := s.limits.From, int64(0)
	var failed error
	for r, err := range d.Log(ctx, s.limits, a.finding) {
		if ctx.Err() != nil {
			failed = s.stop(ctx)
			break
		}
		if err != nil {
			a.trouble(err)
			continue
		}
		if d.Match(&s.filter, &r) {
			if failed = f(&r); failed != nil {
				break
			}
			n++
		}
		if next = r.PhysicalOffset + int64(r.Size); s.limit > 0 && n == s.limit {
			break
		}
	}
	if (failed == nil || ctx.Err() != nil) && s.cursor != "" {
		err := a.out.Flush()
		if err == nil {
			err = s.keep(next)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// stop is the error of a walk that Ctrl-C ended.
func (s *selection) stop(ctx context.Context) error {
	if s.cursor != "" {
		return fmt.Errorf("%w; the same call goes on there (%s)", ctx.Err(), s.cursor)
	}
	return ctx.Err()
}

// keep writes the cursor; a stop leaves the old one or the new one.
func (s *selection) keep(next int64) error {
	b, err := json.Marshal(cursor{next})
	if err != nil {
		return err
	}
	return writeAside(s.cursor, b)
}

// writeAside makes b the content of a file in one step.
func writeAside(file string, b []byte) error {
	aside := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".tmp")
	if err := os.WriteFile(aside, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(aside, file)
}

// moment is a time in ms since 1970 as a flag.
type moment int64

// String implements pflag.Value.
func (m *moment) String() string { return strconv.FormatInt(int64(*m), 10) }

// Type implements pflag.Value.
func (m *moment) Type() string { return "time" }

// Set implements pflag.Value.
func (m *moment) Set(s string) error {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		*m = moment(n)
		return nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return errors.New("want ms since 1970, or a time as 2006-01-02T15:04:05Z")
	}
	*m = moment(t.UnixMilli())
	return nil
}

func transactionFlag(s string) (*message.SysFlag, error) {
	var t message.SysFlag
	switch s {
	case "":
		return nil, nil
	case "none":
	case "prepared":
		t = message.FlagPrepared
	case "commit":
		t = message.FlagCommit
	case "rollback":
		t = message.FlagRollback
	default:
		return nil, fmt.Errorf("--transaction %s: want none, prepared, commit or rollback", s)
	}
	return &t, nil
}
