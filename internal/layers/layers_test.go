package layers_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/rocketstore/rocketstore"

// Short names of what the table repeats. "." is the root package.
var (
	formats   = []string{"commitlog", "consumequeue", "index", "txstate", "redolog"}
	machinery = []string{"internal/client", "internal/remoting", "internal/route", "internal/fastjson", "internal/properties", "internal/invariant"}
	network   = join(machinery, "message", "dialect", "config", "trace")
)

// layer is what one package may import besides the standard library.
type layer struct {
	module   []string // packages of this module
	external []string // modules from outside
}

// The dependencies from outside. The root package and what is below it use these four only.
const (
	mmap   = "github.com/edsrzf/mmap-go"
	xsys   = "golang.org/x/sys"
	btree  = "github.com/google/btree"
	xxhash = "github.com/cespare/xxhash/v2"

	cobra      = "github.com/spf13/cobra"
	prometheus = "github.com/prometheus/client_golang"
	progress   = "github.com/schollz/progressbar/v3"
	compress   = "github.com/klauspost/compress"
	lz4        = "github.com/pierrec/lz4/v4"
	xsync      = "golang.org/x/sync"
	xtime      = "golang.org/x/time"
)

var (
	below = []string{btree, xxhash}
	above = []string{btree, xxhash, compress, lz4, xsync, xtime}
	// testOnly may be imported by test files, besides what their package may import.
	testOnly = []string{
		"github.com/stretchr/testify", "pgregory.net/rapid", "github.com/rogpeppe/go-internal",
		"github.com/anishathalye/porcupine", "github.com/chromedp/chromedp", "github.com/chromedp/cdproto",
	}
)

// table has every package of the module. Test files may import any package of it: the compiler refuses cycles.
var table = map[string]layer{
	"message":             {},
	"dialect":             {},
	"config":              {},
	"internal/invariant":  {},
	"internal/prefetch":   {},
	"internal/fastjson":   {},
	"internal/properties": {},
	"trace":               {[]string{"message"}, nil},
	"mappedfile":          {[]string{"internal/invariant", "internal/prefetch"}, []string{mmap, xsys}},
	"mappedfile/memfs":    {[]string{"mappedfile"}, nil},
	"mappedfile/crashfs":  {[]string{"mappedfile", "mappedfile/memfs"}, nil},
	"commitlog":           {[]string{"message", "dialect", "mappedfile", "internal/invariant", "internal/prefetch"}, below},
	"index":               {[]string{"message", "dialect", "mappedfile", "internal/invariant"}, below},
	"consumequeue":        {[]string{"dialect", "mappedfile", "internal/invariant"}, below},
	"txstate":             {[]string{"dialect", "mappedfile", "internal/invariant"}, below},
	"redolog":             {[]string{"dialect", "mappedfile", "internal/invariant"}, below},
	"recovery":            {join(formats, "mappedfile", "dialect", "message"), below},
	".":                   {join(formats, "recovery", "mappedfile", "message", "dialect", "config"), below},
	"inspect":             {join(formats, "recovery", "mappedfile", "message", "dialect", "config", "trace"), above},
	"repair":              {join(formats, "inspect", "recovery", "mappedfile", "message", "dialect", "config"), above},
	"report":              {[]string{"inspect", "message"}, above},
	"internal/remoting":   {[]string{"message", "config", "internal/fastjson"}, above},
	"internal/route":      {[]string{"message", "internal/fastjson"}, above},
	"internal/client":     {[]string{"internal/remoting", "internal/route", "internal/fastjson", "message", "dialect"}, above},
	"namesrv":             {network, above},
	"producer":            {network, above},
	"consumer":            {network, above},
	"broker":              {join(network, "."), above},
	"bench":               {join(formats, ".", "recovery", "mappedfile", "mappedfile/memfs", "mappedfile/crashfs", "message", "dialect"), above},
	"storectl":            {[]string{"public"}, join(above, cobra, prometheus, progress)},
	"internal/golden":     {[]string{"mappedfile"}, nil}, // only test files import it and mqtest
	"internal/mqtest":     {[]string{"internal/remoting", "internal/route"}, nil},
	"internal/layers":     {},
}

func join(list []string, more ...string) []string { return append(slices.Clone(list), more...) }

// imported is one import clause.
type imported struct {
	pkg, file, path string
	test            bool
}

func TestImportsPointDownwardsOnly(t *testing.T) {
	clauses, packages := readImports(t, filepath.Join("..", ".."))
	for _, pkg := range packages {
		if _, known := table[pkg]; !known {
			t.Errorf("the table does not know package %s: say there what it may import", pkg)
		}
	}
	for _, c := range clauses {
		if err := check(c); err != nil {
			t.Error(err)
		}
	}
}

func TestForbiddenImportsAreFound(t *testing.T) {
	for _, tt := range []struct {
		name    string
		clause  imported
		allowed bool
	}{
		{"downwards", imported{pkg: "commitlog", path: module + "/message"}, true},
		{"standard library", imported{pkg: "message", path: "net/netip"}, true},
		{"between formats", imported{pkg: "commitlog", path: module + "/consumequeue"}, false},
		{"upwards to the root", imported{pkg: "inspect", path: module}, false},
		{"the root from the program", imported{pkg: "storectl", path: module}, true},
		{"internal from the program", imported{pkg: "storectl", path: module + "/internal/remoting"}, false},
		{"system calls outside of mappedfile", imported{pkg: "recovery", path: "golang.org/x/sys/unix"}, false},
		{"system calls in mappedfile", imported{pkg: "mappedfile", path: "golang.org/x/sys/unix"}, true},
		{"a name that only begins alike", imported{pkg: "mappedfile", path: "golang.org/x/system"}, false},
		{"golden outside of tests", imported{pkg: "storectl", path: module + "/internal/golden"}, false},
		{"golden in a test", imported{pkg: "message", path: module + "/internal/golden", test: true}, true},
		{"testify outside of tests", imported{pkg: "message", path: "github.com/stretchr/testify/require"}, false},
		{"testify in a test", imported{pkg: "message", path: "github.com/stretchr/testify/require", test: true}, true},
		{"an unknown module in a test", imported{pkg: "message", path: "example.org/other", test: true}, false},
		{"another module's package", imported{pkg: "storectl", path: module + "/interop"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := check(tt.clause); tt.allowed {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.clause.path)
			}
		})
	}
}

// check says what is wrong with an import.
func check(c imported) error {
	allowed := table[c.pkg]
	wrong := fmt.Errorf("%s: package %s must not import %s", c.file, c.pkg, c.path)
	if inside, ok := inModule(c.path); ok {
		if _, known := table[inside]; !known {
			return wrong
		}
		public := slices.Contains(allowed.module, "public") && !strings.HasPrefix(inside, "internal/")
		if c.test || public || slices.Contains(allowed.module, inside) {
			return nil
		}
		return wrong
	}
	if first, _, _ := strings.Cut(c.path, "/"); !strings.Contains(first, ".") {
		return nil // the standard library
	}
	external := allowed.external
	if c.test {
		external = join(external, testOnly...)
	}
	for _, m := range external {
		if c.path == m || strings.HasPrefix(c.path, m+"/") {
			return nil
		}
	}
	return wrong
}

// inModule gives the package's path inside the module.
func inModule(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// readImports parses the import clauses of all Go files of the module, whatever their build tags say. Folders with a
// go.mod of their own are other modules.
func readImports(t *testing.T, root string) (clauses []imported, packages []string) {
	t.Helper()
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			base := d.Name()
			if rel != "." && (base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || ownModule(name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if path.Ext(rel) != ".go" {
			return nil
		}
		pkg := path.Dir(rel)
		if !slices.Contains(packages, pkg) {
			packages = append(packages, pkg)
		}
		f, err := parser.ParseFile(files, name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			clauses = append(clauses, imported{pkg, rel, p, strings.HasSuffix(rel, "_test.go")})
		}
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, clauses)
	return clauses, packages
}

func ownModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}
