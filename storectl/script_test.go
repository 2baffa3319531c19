package main

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rocketstore/rocketstore/internal/golden"
)

// TestScripts runs testdata/script. Two commands are added to those of testscript:
//
//	store NAME | case NAME    puts a fresh copy of a golden store, or of a case, into $STORE
//	storectl STATUS ARGS…     runs the program and expects an exit status
//
// "go test ./storectl -update" writes the golden output in the scripts anew.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		WorkdirRoot:   golden.TempDir(t), // where the stores are: no file can be linked or cloned from one file system to another
		UpdateScripts: *update,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"store": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Setenv("STORE", golden.Unpack(t, args[0]))
			},
			"case": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Setenv("STORE", golden.LoadCase(t, args[0]).Store)
			},
			"storectl": func(ts *testscript.TestScript, _ bool, args []string) {
				want, err := strconv.Atoi(args[0])
				ts.Check(err)
				var stderr bytes.Buffer
				got := run(t.Context(), args[1:], ts.Stdout(), &stderr)
				_, err = ts.Stderr().Write([]byte(withoutLooked(stderr.String()))) // the moment of looking differs each time
				ts.Check(err)
				if got != want {
					ts.Fatalf("exit status %d, want %d", got, want)
				}
			},
		},
	})
}
