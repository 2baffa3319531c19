package golden

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	archiveSuffix  = ".tar.gz"
	expectedSuffix = ".expected.json"
)

// root is the path of the module's testdata directory, found from where this file was compiled.
func root() string {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		panic("golden: built without file names")
	}
	return filepath.Join(filepath.Dir(file), "..", "..", "testdata")
}

// Names lists the stores that have an expected.json, as Unpack and Load take them: "rocketmq-4.9.7/clean". With versions
// ("4.9.7", "5.3.3", "3.1.4") only the stores of those. It is sorted.
func Names(versions ...string) []string {
	found, err := filepath.Glob(filepath.Join(root(), "stores", "*", "*"+expectedSuffix))
	if err != nil || len(found) == 0 {
		panic(fmt.Sprintf("golden: no stores in %s: %v", root(), err))
	}
	var names []string
	for _, path := range found {
		folder := filepath.Base(filepath.Dir(path))
		version := strings.TrimPrefix(folder, "rocketmq-")
		if len(versions) == 0 || slices.Contains(versions, version) {
			names = append(names, folder+"/"+strings.TrimSuffix(filepath.Base(path), expectedSuffix))
		}
	}
	slices.Sort(names)
	return names
}

// Unpack unpacks a store into a temporary directory of the test and gives the path of its folder "store". File times are
// those in the archive, and zeros are left as holes. Names are those of [Names]; an archive of what a real reopening
// changed is "rocketmq-4.9.7/abort.reopened".
func Unpack(tb testing.TB, name string) string {
	tb.Helper()
	dir := TempDir(tb)
	if err := unpack(dir, filepath.Join(root(), "stores", filepath.FromSlash(name)+archiveSuffix)); err != nil {
		tb.Fatalf("golden: unpack %s: %v", name, err)
	}
	return filepath.Join(dir, "store")
}

func unpack(dir, archive string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	to := tree{dir: dir, times: make(map[string]time.Time)}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return to.finish()
		}
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(h.Name, "/")
		switch h.Typeflag {
		case tar.TypeDir:
			err = to.mkdir(name, h.ModTime)
		case tar.TypeReg:
			err = to.file(name, t, h.ModTime)
		default:
			err = fmt.Errorf("%s: unexpected type %q", h.Name, h.Typeflag)
		}
		if err != nil {
			return err
		}
	}
}

// A tree is a directory that is being filled.
type tree struct {
	dir   string
	times map[string]time.Time // of its directories: set last, since making files in them changes them
}

func (t *tree) mkdir(name string, when time.Time) error {
	t.times[name] = when
	return os.MkdirAll(filepath.Join(t.dir, name), 0o755)
}

// file writes r to a new file, with holes where a block is zero.
func (t *tree) file(name string, r io.Reader, when time.Time) error {
	if parent := filepath.Dir(name); t.times[parent].IsZero() {
		if err := t.mkdir(parent, when); err != nil {
			return err
		}
	}
	path := filepath.Join(t.dir, name)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	var block, zeros [4096]byte
	for at := int64(0); ; {
		n, err := io.ReadFull(r, block[:])
		if n > 0 && !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := f.WriteAt(block[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			if err := f.Truncate(at); err != nil {
				return err
			}
			break
		}
		if err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Chtimes(path, when, when)
}

func (t *tree) finish() error {
	for name, when := range t.times {
		if err := os.Chtimes(filepath.Join(t.dir, name), when, when); err != nil {
			return err
		}
	}
	return nil
}
