//go:build amd64 || arm64

package prefetch

// lines asks for each line of 64 bytes of which one of n bytes from p on is a part. n is positive.
//
//go:noescape
func lines(p *byte, n int)
