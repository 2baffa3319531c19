package commitlog

// SetWindow makes a scanner over a file read n bytes at a time.
func (s *Scanner) SetWindow(n int64) { s.step = n }
