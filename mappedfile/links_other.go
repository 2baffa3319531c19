//go:build !unix

package mappedfile

import "io/fs"

// links is how many names a file has, as far as the system tells.
func links(fs.FileInfo) uint64 { return 1 }
