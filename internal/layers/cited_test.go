package layers_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// citation is how a comment names a section of a document: "formats.md 5.4", "design.md section 4", "protocol.md §§4".
// The E numbers are the rows of the protocol's list of corrections.
var (
	document = regexp.MustCompile(`\b([a-z][a-z-]*\.md)\b`)
	citation = regexp.MustCompile(`\b([a-z]+\.md),? (?:§§?|sections? )?(E?[0-9]+(?:\.[0-9]+)?)`)
)

// Comments lean on the documents in docs/: each document and section they name is there.
func TestCommentsCiteSectionsThatExist(t *testing.T) {
	root := filepath.Join("..", "..")
	texts := map[string]string{}
	cited := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || filepath.Base(path) == "cited_test.go" {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range document.FindAllStringSubmatch(string(source), -1) {
			if _, known := texts[m[1]]; !known {
				texts[m[1]] = documentText(root, m[1])
			}
			if texts[m[1]] == "" {
				t.Errorf("%s names %s, which is not in docs", path, m[1])
			}
		}
		for _, m := range citation.FindAllStringSubmatch(string(source), -1) {
			cited++
			if !hasSection(texts[m[1]], m[2]) {
				t.Errorf("%s names section %s of %s, which has none", path, m[2], m[1])
			}
		}
		return nil
	}))
	require.Greater(t, cited, 50)
}

// documentText is a document of docs/ or of the root of the repository, or "".
func documentText(root, name string) string {
	for _, path := range []string{filepath.Join(root, "docs", name), filepath.Join(root, name)} {
		if text, err := os.ReadFile(path); err == nil {
			return string(text)
		}
	}
	return ""
}

// hasSection says whether a text has a heading, or a row of a table or a list item, with that number.
func hasSection(text, number string) bool {
	quoted := regexp.QuoteMeta(number)
	heading := regexp.MustCompile(`(?m)^(#+ ` + quoted + `\.? |\| ` + quoted + ` \|)`)
	if heading.MatchString(text) {
		return true
	}
	// "4.3" may be point 3 of the numbered list in section 4.
	section, item, found := strings.Cut(number, ".")
	if !found {
		return false
	}
	from := regexp.MustCompile(`(?m)^## ` + regexp.QuoteMeta(section) + `\. `).FindStringIndex(text)
	if from == nil {
		return false
	}
	body, _, _ := strings.Cut(text[from[1]:], "\n## ")
	return regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(item) + `\. `).MatchString(body)
}
