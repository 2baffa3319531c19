package mappedfile

import (
	"os"

	"golang.org/x/sys/unix"
)

func fileSystemUsage(f *os.File) (Usage, error) {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Fstatfs(int(f.Fd()), &st) }); err != nil {
		return Usage{}, &os.PathError{Op: "fstatfs", Path: f.Name(), Err: err}
	}
	block := int64(st.Frsize) //nolint:unconvert // its width depends on the architecture
	used := int64(st.Blocks-st.Bfree) * block
	return Usage{Used: used, Total: used + int64(st.Bavail)*block}, nil
}
