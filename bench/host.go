package bench

import (
	"runtime"
)

// Host is where something was measured. Empty: it could not be found out.
type Host struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	Kernel     string `json:"kernel"`
	FileSystem string `json:"fileSystem"`
	Device     string `json:"device"`
	Kind       string `json:"deviceKind"`
	Go         string `json:"go"`
}

// HostOf describes the machine and the file system of a directory.
func HostOf(dir string) Host {
	h := Host{Cores: runtime.GOMAXPROCS(0), Kernel: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	h.describe(dir)
	return h
}

// Lines gives names and values, in the order in which they are printed.
func (h *Host) Lines() [][2]string {
	return [][2]string{{"filesystem", h.FileSystem}, {"device", h.Device}, {"device-kind", h.Kind}, {"kernel", h.Kernel}, {"go", h.Go}}
}
