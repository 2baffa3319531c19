package repair

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// InUse gives the id of another process that has a file of a directory open or mapped, 0 when none is seen. RocketMQ 3.1
// takes no lock, so nothing else tells that it runs; processes of other users are seen by root only.
func InUse(dir string) (int, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return 0, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return 0, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, nil // no such system here
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// An error is that the process ended meanwhile, or is somebody else's.
		if used, err := uses(filepath.Join("/proc", e.Name()), dir+"/"); err == nil && used {
			return pid, nil
		}
	}
	return 0, nil
}

// uses says whether a process has a file below a directory open or mapped.
func uses(proc, dir string) (bool, error) {
	links, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		return false, err
	}
	for _, l := range links {
		if to, err := os.Readlink(filepath.Join(proc, "fd", l.Name())); err == nil && strings.HasPrefix(to, dir) {
			return true, nil
		}
	}
	f, err := os.Open(filepath.Join(proc, "maps"))
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // it was only read
	for s := bufio.NewScanner(f); s.Scan(); {
		if _, name, ok := strings.Cut(s.Text(), "/"); ok && strings.HasPrefix("/"+name, dir) {
			return true, nil
		}
	}
	return false, nil
}
