package inspect

func (d *Dir) is31() bool { return d.exists("transaction") }
