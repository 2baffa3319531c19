//go:build interop

package interop_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
)

// cell is one thing that a client does with a server. The tests prove cells; docs/compatibility.md shows them.
type cell struct{ client, kind, server string }

// The servers of the matrix.
const (
	ours49 = "our broker in a directory of 4.9, our name server"
	ours31 = "our broker in a directory of 3.1, our name server"
	ours53 = "our broker in a directory of 5.3, our name server"
	mixed  = "our broker beside a real one of 4.9.7, under real name servers of 4.9.7 and 5.3.3"
)

// goClient is the column of the Go client.
const goClient = "client-go v2"

func clients() []string { return []string{"3.1.4", "4.9.7", "5.3.3", goClient} }

func servers() []string { return []string{ours49, ours31, ours53, mixed} }

// sending and consuming are the kinds of a whole flow.
func sending(client string) []string {
	kinds := []string{"send sync", "send async", "send oneway", "send ordered", "send compressed"}
	if client != "3.1.4" { // which has none
		kinds = append(kinds, "send batch")
	}
	return kinds
}

func consuming() []string {
	return []string{"push", "push with tags", "push in order", "push broadcast", "pull", "offset queries", "offsets kept over a restart"}
}

const (
	joinAndLeave = "two instances join and leave"
	compressions = "zlib, lz4, zstd pass through"
	adminTool    = "mqadmin"
	signing      = "requests signed and permitted (ACL)"
	encryption   = "TLS"
	requestReply = "request and reply"
	takingTurns  = "a directory goes from a real 4.9.7 broker to ours and back"
	deadLetter   = "retries to the dead letters"
	delays       = "delayed messages"
)

// transacting is what the test of transactions proves: committed, rolled back, unknown and then asked, the producer gone and another asked.
func transacting(e rocketstore.Engine) string {
	if e == rocketstore.StateTable {
		return "transactions in the state table"
	}
	return "transactions in the half topic"
}

// matrix are all cells; deep ones are proved with INTEROP=all only.
func matrix() (cells map[cell]bool) {
	cells = map[cell]bool{}
	for _, client := range clients() {
		for _, kind := range append(sending(client), consuming()...) {
			cells[cell{client, kind, ours49}] = false
			cells[cell{client, kind, ours31}], cells[cell{client, kind, ours53}] = true, true
		}
		cells[cell{client, joinAndLeave, ours49}] = client != "4.9.7" && client != goClient
	}
	for _, kind := range []string{"send sync", "push with tags"} {
		for _, client := range clients() {
			cells[cell{client, kind, mixed}] = client != "4.9.7" && client != goClient
		}
	}
	for _, client := range clients() {
		for _, kind := range []string{deadLetter, delays, transacting(rocketstore.HalfTopic), transacting(rocketstore.StateTable)} {
			cells[cell{client, kind, ours49}] = true
		}
	}
	cells[cell{"4.9.7", adminTool, mixed}] = true
	cells[cell{"4.9.7", compressions, ours49}] = false
	cells[cell{"4.9.7", takingTurns, ours49}] = false
	cells[cell{goClient, requestReply, ours49}] = false
	cells[cell{goClient, signing, ours49}], cells[cell{"4.9.7", encryption, ours49}] = false, false
	cells[cell{"4.9.7", signing, ours49}] = false
	return cells
}

// everything says whether the deep cells are to be proved too.
func everything() bool { return os.Getenv("INTEROP") == "all" }

// required says whether a test that cannot run is a failure.
func required() bool { return os.Getenv("INTEROP") == "required" || everything() }

// provedVariable names the file in which all processes of a run note what was proved.
const provedVariable = "ROCKETSTORE_INTEROP_PROVED"

// proved notes that a client did all of that with a server.
func proved(t *testing.T, client, server string, kinds ...string) {
	t.Helper()
	cells := matrix()
	var text []byte
	for _, kind := range kinds {
		c := cell{client, kind, server}
		_, known := cells[c]
		require.True(t, known, "not in the matrix: %+v", c)
		text = fmt.Appendf(text, "%s\n", c)
	}
	f, err := os.OpenFile(os.Getenv(provedVariable), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	_, err = f.Write(text)
	require.NoError(t, err)
}

func (c cell) String() string { return c.client + "|" + c.kind + "|" + c.server }

// runSuite runs the tests and wants each cell of the matrix proved, unless only some tests were asked for.
func runSuite(m *testing.M) int {
	if os.Getenv(innerEnv) != "" {
		return m.Run()
	}
	f, err := os.CreateTemp("", "proved")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.Remove(f.Name()) }()
	defer func() { _ = f.Close() }()
	if err := os.Setenv(provedVariable, f.Name()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	for _, name := range []string{"test.run", "test.list"} { // what the continuous integration skips proves no cell
		if flag.Lookup(name).Value.String() != "" {
			return code
		}
	}
	if code == 0 && required() {
		return unproved(f.Name())
	}
	return code
}

// unproved says which cells no test has proved.
func unproved(file string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	done := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		done[strings.TrimSuffix(line, "\n")] = true
	}
	code := 0
	for c, deep := range matrix() {
		if !done[c.String()] && (!deep || everything()) {
			fmt.Fprintln(os.Stderr, "docs/compatibility.md promises what no test has proved:", c)
			code = 1
		}
	}
	return code
}

// TestTheCompatibilityTableIsFresh compares docs/compatibility.md with the matrix; INTEROP_UPDATE=1 writes it. R-G-39.
func TestTheCompatibilityTableIsFresh(t *testing.T) {
	file := filepath.Join("..", "docs", "compatibility.md")
	want := compatibility()
	if os.Getenv("INTEROP_UPDATE") == "1" {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o600))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	sources, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	var all []byte
	for _, name := range sources {
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		all = append(all, source...)
	}
	for _, p := range otherProofs() {
		require.Contains(t, string(all), "\nfunc "+p[1]+"(t *testing.T)")
	}
	require.Equal(t, want, string(text), "INTEROP_UPDATE=1 go test -tags interop -run TestTheCompatibilityTableIsFresh . writes it anew")
}

const compatibilityHead = `# What works with what

Written by the interop tests (` + "`interop/matrix_test.go`" + `); do not edit. Each mark is proved by a run of the real client against the server:
● in every run of the continuous integration, ○ with ` + "`INTEROP=all`" + ` besides. A run in which a mark is not proved fails.
– means that the client has no such thing; an empty place that no test tries it.
`

// compatibility is the text of the document.
func compatibility() string {
	b := []byte(compatibilityHead)
	cells := matrix()
	for _, server := range servers() {
		b = fmt.Appendf(b, "\n## %s%s\n\n| | %s |\n|---|%s\n", strings.ToUpper(server[:1]), server[1:], strings.Join(clients(), " | "), strings.Repeat("---|", len(clients())))
		for _, kind := range kindsOf(cells, server) {
			b = fmt.Appendf(b, "| %s |", kind)
			for _, client := range clients() {
				deep, known := cells[cell{client, kind, server}]
				mark := " "
				switch {
				case known && deep:
					mark = " ○ "
				case known:
					mark = " ● "
				case kind == "send batch" && client == "3.1.4":
					mark = " – "
				}
				b = fmt.Appendf(b, "%s|", mark)
			}
			b = append(b, '\n')
		}
	}
	b = append(b, "\n## Directories and name servers\n\nWith 3.1.4, 4.9.7 and 5.3.3, unless a line says otherwise.\n\n| what | test |\n|---|---|\n"...)
	for _, p := range otherProofs() {
		b = fmt.Appendf(b, "| %s | `%s` |\n", p[0], p[1])
	}
	return string(b)
}

// otherProofs are what tests outside of the matrix show, and their names.
func otherProofs() [][2]string {
	return [][2]string{
		{"a directory written by the real store, continued by ours, back to the real one", "TestContinuedRealStoreGoesBack"},
		{"a directory of ours to the real store and back, stopped and killed (3.1.4 after a kill only by hand: two of its threads race then)", "TestOursGoesToTheRealStoreAndBack"},
		{"open transactions, of the state table and the half topic, to the real store and back", "TestTransactionsGoToTheRealStoreAndBack"},
		{"a directory after retention to the real store (3.1.4 after a kill only by hand)", "TestExpiredStoreGoesToTheRealOne"},
		{"real brokers and clients of each line under our name servers", "TestRealBrokersAndClientsUseOurNameServers"},
		{"mqadmin 4.9.7 with our name server", "TestMqadminWorksWithOurNameServer"},
	}
}

// kindsOf are the kinds that some client does with a server, in the order of a flow.
func kindsOf(cells map[cell]bool, server string) (kinds []string) {
	order := append(append(sending(""), consuming()...), joinAndLeave, compressions, requestReply, signing, encryption, deadLetter, delays,
		transacting(rocketstore.HalfTopic), transacting(rocketstore.StateTable), takingTurns, adminTool)
	for c := range cells {
		if c.server == server && !slices.Contains(kinds, c.kind) {
			kinds = append(kinds, c.kind)
		}
	}
	slices.SortFunc(kinds, func(a, b string) int { return cmp.Compare(slices.Index(order, a), slices.Index(order, b)) })
	return kinds
}
