package layers_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/requirements-coverage.md anew")

// requirement is one row of testdata/requirements.txt.
type requirement struct{ number, priority, words string }

const requirementCount = 536

func requirements(t *testing.T) (list []requirement) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "requirements.txt"))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		number, rest, _ := strings.Cut(line, " ")
		priority, words, _ := strings.Cut(rest, " ")
		require.NotEmpty(t, words, line)
		list = append(list, requirement{number, priority, words})
	}
	require.Len(t, list, requirementCount)
	return list
}

// cited are the numbers in a comment, ranges such as "R-F-06 to R-F-11" and "R-D-089 … R-D-094" included.
var (
	citedRange  = regexp.MustCompile(`R-([A-G])-(\d+) ?(?:to|…|\.\.\.|–|-) ?R-([A-G])-(\d+)`)
	citedSingle = regexp.MustCompile(`R-[A-G]-\d+`)
)

func cited(comment string) []string {
	found := map[string]bool{}
	for _, number := range citedSingle.FindAllString(comment, -1) {
		found[number] = true
	}
	for _, m := range citedRange.FindAllStringSubmatch(comment, -1) {
		first, _ := strconv.Atoi(m[2])
		last, _ := strconv.Atoi(m[4])
		for n := first; m[1] == m[3] && n <= last && n-first < requirementCount; n++ {
			found[fmt.Sprintf("R-%s-%0*d", m[1], len(m[2]), n)] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// coverage gives the tests by the numbers that the comments before and in them cite.
func coverage(t *testing.T, root string) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		pkg := path.Base(filepath.ToSlash(rel))
		if pkg == "." {
			pkg = path.Base(module)
		}
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") && !strings.HasPrefix(fn.Name.Name, "Fuzz") {
				continue
			}
			for _, number := range cited(commentsOf(files, f, fn)) {
				tests[number] = append(tests[number], pkg+"."+fn.Name.Name)
			}
		}
		return nil
	})
	require.NoError(t, err)
	for _, names := range tests {
		slices.Sort(names)
	}
	return tests
}

// commentsOf is the text of the comments that belong to a function: its own, those in it, and those on the line of its last brace.
func commentsOf(files *token.FileSet, f *ast.File, fn *ast.FuncDecl) string {
	begin, end := fn.Pos(), files.Position(fn.End()).Line
	if fn.Doc != nil {
		begin = fn.Doc.Pos()
	}
	var b strings.Builder
	for _, c := range f.Comments {
		if c.Pos() >= begin && files.Position(c.Pos()).Line <= end {
			for _, line := range c.List { // Text would join words of two lines without a space where one ends with a dash
				b.WriteString(line.Text + " ")
			}
		}
	}
	return b.String()
}

// TestTheCoverageOfRequirementsIsWrittenDown writes the document with -update. Else it checks that the document has every
// requirement, and names no test that does not cite what it is said to cover; new citations need no new document.
func TestTheCoverageOfRequirementsIsWrittenDown(t *testing.T) {
	root := filepath.Join("..", "..")
	list, tests := requirements(t), coverage(t, root)
	known := map[string]bool{}
	for _, r := range list {
		known[r.number] = true
	}
	for number, names := range tests {
		require.True(t, known[number], "%s is cited by %v, but there is no such requirement", number, names)
	}
	file := filepath.Join(root, "docs", "requirements-coverage.md")
	if *update {
		require.NoError(t, os.WriteFile(file, coverageDoc(list, tests), 0o600))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	row := regexp.MustCompile(`(?m)^\| (R-[A-G]-\d+) \| . \| .* \| (.*) \|$`)
	rows := row.FindAllStringSubmatch(string(text), -1)
	require.Len(t, rows, requirementCount, "run go test ./internal/layers -update")
	for _, m := range rows {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(m[2], -1) {
			require.Contains(t, tests[m[1]], name[1], "%s in docs/requirements-coverage.md: run go test ./internal/layers -update", m[1])
		}
	}
}

func groupNames() map[byte]string {
	return map[byte]string{
		'A': "Message trace", 'B': "Transaction files and check-back", 'C': "Name server", 'D': "Producer", 'E': "Storage engine",
		'F': "Broker and name server as packages", 'G': "What users expect besides",
	}
}

// coverageDoc is the document's text.
func coverageDoc(list []requirement, tests map[string][]string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Requirements and their tests\n\nMade by `go test ./internal/layers -update` from the comments of the tests and `internal/layers/testdata/requirements.txt`;\n"+
		"M is a must, S should, C could be. The tests of package `interop` run real RocketMQ.\n\n")
	fmt.Fprint(&b, "| group | requirements | with a test | musts | with a test |\n|---|---|---|---|---|\n")
	for _, group := range []byte("ABCDEFG") {
		var all, covered, musts, mustsCovered int
		for _, r := range list {
			if r.number[2] != group {
				continue
			}
			has := len(tests[r.number]) > 0
			all++
			if has {
				covered++
			}
			if r.priority == "M" {
				musts++
				if has {
					mustsCovered++
				}
			}
		}
		fmt.Fprintf(&b, "| %c %s | %d | %d | %d | %d |\n", group, groupNames()[group], all, covered, musts, mustsCovered)
	}
	group := byte(0)
	for _, r := range list {
		if r.number[2] != group {
			group = r.number[2]
			fmt.Fprintf(&b, "\n## %c. %s\n\n| number | | in a few words | tests |\n|---|---|---|---|\n", group, groupNames()[group])
		}
		names := "–"
		if len(tests[r.number]) > 0 {
			names = "`" + strings.Join(tests[r.number], "`, `") + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.number, r.priority, strings.ReplaceAll(r.words, "|", `\|`), names)
	}
	return b.Bytes()
}
