package main

import (
	"errors"
	"iter"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
)

var (
	errGet      = errors.New("say what to get: --topic T --key K, or --id MSGID [--topic T], or --offset N")
	errNoRecord = errors.New("no such record")
)

func (a *app) get() *cobra.Command {
	var r reading
	var topic, key, id, body string
	var offset int64
	cmd := &cobra.Command{
		Use:   "get DIR --topic T --key K | --id MSGID | --offset N",
		Short: "Print the records with a key, with a message id, or at a physical offset",
		Long: `Print the records with a key, with a message id, or at a physical offset.

A key is looked for in the index files, and what they lead to is compared with the
record itself. Where they lead to nothing the whole log is read. The message id is
that of the broker (store host and physical offset) or that of a client of 4.x and
later (UNIQ_KEY). The exit status is 1 when there is no such record.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			byOffset := cmd.Flags().Changed("offset")
			byKey, byID := key != "", id != ""
			if byKey && byID || byOffset == (byKey || byID) || byKey && topic == "" || byOffset && topic != "" {
				return errGet
			}
			return r.with(args[0], func(d *inspect.Dir) error {
				p, err := a.records(d, body)
				if err != nil {
					return err
				}
				found := d.ByKey(cmd.Context(), topic, key, a.finding)
				switch {
				case byID:
					found = d.ByID(cmd.Context(), id, topic, a.finding)
				case byOffset:
					found = a.at(d, offset)
				}
				return a.print(p, found)
			})
		},
	}
	r.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&topic, "topic", "", "topic of the key")
	f.StringVar(&key, "key", "", "key: a word of KEYS, or UNIQ_KEY")
	f.StringVar(&id, "id", "", "message id")
	f.Int64Var(&offset, "offset", 0, "physical offset")
	f.StringVar(&body, "body", "", "print the body as stored: text or base64")
	return cmd
}

// at is the record at a physical offset, if there is one.
func (a *app) at(d *inspect.Dir, offset int64) iter.Seq2[inspect.LogRecord, error] {
	return func(yield func(inspect.LogRecord, error) bool) {
		if r, ok, err := d.RecordAt(offset, a.finding); ok || err != nil {
			yield(r, err)
		}
	}
}

// print prints what was found.
func (a *app) print(p *records, found iter.Seq2[inspect.LogRecord, error]) error {
	n := 0
	for r, err := range found {
		if err != nil {
			a.trouble(err)
			continue
		}
		n++
		if err := p.print(&r); err != nil {
			return err
		}
	}
	if n == 0 {
		a.missing(errNoRecord)
	}
	return nil
}
