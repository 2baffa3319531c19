package layers_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// testName is how a document names a test: the last part of its package's path, a dot, the function.
var testName = regexp.MustCompile("`([a-z0-9]+)\\.((?:Test|Fuzz)[A-Za-z0-9_]+)`")

func TestDocsNameTestsThatExist(t *testing.T) {
	root := filepath.Join("..", "..")
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	named, tests := 0, testsByPackage(t, root)
	for _, doc := range docs {
		text, err := os.ReadFile(doc)
		require.NoError(t, err)
		for _, m := range testName.FindAllStringSubmatch(string(text), -1) {
			named++
			if !tests[m[1]+"."+m[2]] {
				t.Errorf("%s names %s.%s, which is not there", filepath.Base(doc), m[1], m[2])
			}
		}
	}
	require.Greater(t, named, 50)
}

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

// testsByPackage are the functions of the test files of each folder where a package may lie, by package and name.
func testsByPackage(t *testing.T, root string) map[string]bool {
	t.Helper()
	tests := make(map[string]bool)
	for _, pattern := range []string{".", "*", filepath.Join("internal", "*"), filepath.Join("mappedfile", "*")} {
		files, err := filepath.Glob(filepath.Join(root, pattern, "*_test.go"))
		require.NoError(t, err)
		for _, file := range files {
			pkg := filepath.Base(filepath.Dir(file))
			if pattern == "." {
				pkg = path.Base(module)
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range testFunction.FindAllSubmatch(text, -1) {
				tests[pkg+"."+string(m[1])] = true
			}
		}
	}
	return tests
}

// kindName is a kind of a warning, a notice or a refusal as the code defines it.
var kindName = regexp.MustCompile(`(?m)^\t(?:Kind\w+|ForeignFile|EmptySegment|ShortSegment|Gap|BackupUsed)\s+= "([^"]+)"|^const BackupUsed = "([^"]+)"`)

func TestRecoveryDocNamesEveryKind(t *testing.T) {
	root := filepath.Join("..", "..")
	doc, err := os.ReadFile(filepath.Join(root, "docs", "recovery.md"))
	require.NoError(t, err)
	named := 0
	for _, file := range []string{"recovery/report.go", "mappedfile/notice.go", "config/file.go"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		for _, m := range kindName.FindAllStringSubmatch(string(text), -1) {
			named++
			// In a table's first column, alone or in a list.
			row := regexp.MustCompile(`(?m)^\| ([^|]+, )?` + regexp.QuoteMeta(m[1]+m[2]) + `(, [^|]+)? \|`)
			if !row.Match(doc) {
				t.Errorf("docs/recovery.md has no row for the kind %q of %s", m[1]+m[2], file)
			}
		}
	}
	require.Greater(t, named, 25)
}
