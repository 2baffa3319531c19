package crashfs

import "encoding/binary"

// The functions here read bytes that the program under test may be writing through a mapping, as the kernel does when it
// writes pages back: at any moment and under no lock. The race detector must not see that, nor does it see the kernel. Each
// 8 bytes are read whole.

//go:norace
func liveCopy(dst, src []byte) {
	n := min(len(dst), len(src))
	i := 0
	for ; i+8 <= n; i += 8 {
		binary.NativeEndian.PutUint64(dst[i:], binary.NativeEndian.Uint64(src[i:]))
	}
	for ; i < n; i++ {
		dst[i] = src[i]
	}
}

//go:norace
func liveEqual(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	i := 0
	for ; i+8 <= len(a); i += 8 {
		if binary.NativeEndian.Uint64(a[i:]) != binary.NativeEndian.Uint64(b[i:]) {
			return false
		}
	}
	for ; i < len(a); i++ {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

//go:norace
func liveZero(b []byte) bool {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		if binary.NativeEndian.Uint64(b[i:]) != 0 {
			return false
		}
	}
	for ; i < len(b); i++ {
		if b[i] != 0 {
			return false
		}
	}
	return true
}
