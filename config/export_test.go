package config

// Rewrite reads a text as any file under config/ is read, and writes it again.
func Rewrite(text []byte) ([]byte, error) {
	v, err := parse(string(text))
	if err != nil {
		return nil, err
	}
	return format(&v), nil
}

// Decode fills a table from a text.
func Decode(text []byte, t Table) error {
	v, err := parse(string(text))
	if err != nil {
		return err
	}
	t.reset()
	return t.decode(&v)
}

// Encode gives a table's text.
func Encode(t Table) []byte {
	v := t.encode()
	return format(&v)
}
