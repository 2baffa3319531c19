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
	named := 0
	for _, doc := range docs {
		text, err := os.ReadFile(doc)
		require.NoError(t, err)
		for _, m := range testName.FindAllStringSubmatch(string(text), -1) {
			named++
			if !hasTest(t, root, m[1], m[2]) {
				t.Errorf("%s names %s.%s, which is not there", filepath.Base(doc), m[1], m[2])
			}
		}
	}
	require.Greater(t, named, 50)
}

// hasTest looks for a function in the test files of the packages with that name.
func hasTest(t *testing.T, root, pkg, name string) bool {
	t.Helper()
	patterns := []string{pkg, filepath.Join("internal", pkg), filepath.Join("mappedfile", pkg)}
	if pkg == path.Base(module) {
		patterns = []string{"."}
	}
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(root, pattern, "*_test.go"))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			if regexp.MustCompile(`(?m)^func ` + name + `\(`).Match(text) {
				return true
			}
		}
	}
	return false
}
