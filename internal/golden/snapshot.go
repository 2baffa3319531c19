package golden

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// State is what [Snapshot] keeps of one file or folder.
type State struct {
	Size    int64 // bytes; 0 for a folder
	ModTime time.Time
	Mode    fs.FileMode
	Hash    string // SHA-256 of the content in hex; "" for a folder
}

// Snapshot notes every file and folder under dir by its path inside dir, with forward slashes; "." is dir itself. Two
// equal snapshots prove that nothing was written in between, not even a file that was made and removed again.
func Snapshot(tb testing.TB, dir string) map[string]State {
	tb.Helper()
	states := make(map[string]State)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		s := State{ModTime: info.ModTime(), Mode: info.Mode()}
		if info.Mode().IsRegular() {
			s.Size = info.Size()
			if s.Hash, err = hashFile(path); err != nil {
				return err
			}
		}
		states[filepath.ToSlash(name)] = s
		return nil
	})
	if err != nil {
		tb.Fatalf("golden: snapshot: %v", err)
	}
	return states
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Copy copies a directory into a temporary directory of the test, file times kept and zeros as holes, and gives the path
// of the copy.
func Copy(tb testing.TB, dir string) string {
	tb.Helper()
	to := filepath.Join(TempDir(tb), filepath.Base(dir))
	if err := copyTree(dir, to); err != nil {
		tb.Fatalf("golden: copy %s: %v", dir, err)
	}
	return to
}

func copyTree(from, to string) error {
	into := tree{dir: to, times: make(map[string]time.Time)}
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return into.mkdir(name, info.ModTime())
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		return into.file(name, f, info.ModTime())
	})
	if err != nil {
		return err
	}
	return into.finish()
}
