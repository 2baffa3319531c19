package mappedfile

// BootID names the present run of the machine's system: as long as it stays the same, no power cut has taken what was written
// and not synced. It is empty where that cannot be known; a file layer that can tell has a BootID of its own.
func BootID(fsys FS) string {
	if b, ok := fsys.(interface{ BootID() string }); ok {
		return b.BootID()
	}
	return ""
}

// BootID is that of the kernel.
func (*osFS) BootID() string { return bootID() }
