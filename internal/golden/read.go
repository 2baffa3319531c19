package golden

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// ReadFile gives all bytes of a file.
func ReadFile(t testing.TB, fsys mappedfile.FS, name string) string {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	b, rerr := io.ReadAll(io.NewSectionReader(f, 0, size))
	if err := errors.Join(err, rerr, f.Close()); err != nil {
		t.Fatal(err)
	}
	return string(b)
}
