package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// canDrop says whether files can be taken out of the page cache.
const canDrop = true

// dropCache asks for it (POSIX_FADV_DONTNEED).
func dropCache(f *os.File) error {
	const dontNeed = 4
	if _, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0); errno != 0 {
		return fmt.Errorf("drop %s from the page cache: %w", f.Name(), errno)
	}
	return nil
}

// describe adds what Linux tells about the machine and the directory.
func (h *Host) describe(dir string) {
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		h.Kernel = "Linux " + strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range bytes.Lines(b) {
			if name, value, ok := strings.Cut(string(line), ":"); ok && strings.TrimSpace(name) == "model name" {
				h.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	h.FileSystem, h.Device = mountOf(dir)
	var stat syscall.Stat_t
	if syscall.Stat(dir, &stat) != nil {
		return
	}
	major, minor := stat.Dev>>8&0xfff, stat.Dev&0xff|stat.Dev>>12&0xfff00
	block := fmt.Sprintf("/sys/dev/block/%d:%d", major, minor)
	for _, queue := range []string{block + "/queue/rotational", block + "/../queue/rotational"} {
		if b, err := os.ReadFile(queue); err == nil {
			h.Kind = map[string]string{"0": "no spindle", "1": "spindle, or a virtual disk that does not say"}[strings.TrimSpace(string(b))]
			return
		}
	}
}

// mountOf finds the mount that holds a directory: the longest mount point that is a part of its path.
func mountOf(dir string) (fileSystem, device string) {
	path, err := filepath.EvalSymlinks(dir)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	f, openErr := os.Open("/proc/self/mounts")
	if err != nil || openErr != nil {
		return "", ""
	}
	defer func() { _ = f.Close() }() // only read
	best := ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 || len(fields[1]) < len(best) {
			continue
		}
		if point := fields[1]; point == "/" || path == point || strings.HasPrefix(path, point+"/") {
			best, device, fileSystem = point, fields[0], fields[2]
		}
	}
	return fileSystem, device
}
