package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/report"
)

func (a *app) report() *cobra.Command {
	var r reading
	var to string
	cmd := &cobra.Command{
		Use:   "report DIR -o PAGE.html",
		Short: "Write one HTML page about a directory: findings, segments, topics, lag, index, open transactions",
		Long: `Write one HTML page about a directory, which loads nothing from elsewhere: findings, segments by time and who fills
them, topics, hours, holes, lag of the groups, fill of the index and open transactions. It holds no message bodies,
but names of topics, groups and files. The exit status is that of check.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.with(args[0], func(d *inspect.Dir) error {
				data, err := report.Collect(cmd.Context(), d, filepath.ToSlash(args[0]))
				if err != nil {
					return err
				}
				if len(data.Findings) > 0 {
					a.status = max(a.status, statusFindings)
				}
				for _, text := range data.Errors {
					a.trouble(errors.New(text))
				}
				return a.writePage(to, data)
			})
		},
	}
	r.flags(cmd)
	cmd.Flags().StringVarP(&to, "output", "o", "", "file to write; - is the standard output")
	_ = cmd.MarkFlagRequired("output")
	return cmd
}

// writePage writes a page to a file.
func (a *app) writePage(to string, data *report.Data) (err error) {
	if to == "-" {
		return report.Write(a.out, data)
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	return errors.Join(report.Write(w, data), w.Flush())
}

func (a *app) serve() *cobra.Command {
	var r reading
	var addr string
	cmd := &cobra.Command{
		Use:   "serve DIR",
		Short: "Show a directory in a browser: the page of report, live, with records, queues, transactions and bytes",
		Long: `Show a directory in a browser, on loopback only: the page of report, made again when it is asked for and older than
half a minute, and from there on records with their bodies, queues, open transactions and annotated bytes. Nothing is
changed; a store that a broker works on can be looked at. It ends with Ctrl-C.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.with(args[0], func(d *inspect.Dir) error {
				s, err := report.NewServer(d, filepath.ToSlash(args[0]))
				if err != nil {
					return err
				}
				return a.serving(cmd.Context(), s.HTTPServer(), addr)
			})
		},
	}
	r.flags(cmd)
	cmd.Flags().StringVar(&addr, "listen", "127.0.0.1:8810", "address on loopback, port 0 for any")
	return cmd
}

// serving answers until ctx ends.
func (a *app) serving(ctx context.Context, s *http.Server, addr string) error {
	l, err := report.Listen(ctx, addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "http://%s/\n", l.Addr())
	if err := a.out.Flush(); err != nil {
		return errors.Join(err, l.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
