package txstate

// SetEnd makes a test's table end at a number without writing what comes before, so that files of the real size stay
// sparse.
func (t *Table) SetEnd(number int64) error { return t.q.SetEnd(number * RecordSize) }
