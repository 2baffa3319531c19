package namesrv

import (
	"errors"
	"io/fs"
	"os"
)

// loadFile reads a file through parse. Where the file is missing or parse refuses it, the .bak stands in, and damage
// says why; damage is nil otherwise. Neither file: nothing is parsed. Both damaged, or not to be read: an error.
func loadFile(path string, parse func(content []byte) error) (damage, err error) {
	err = readInto(path, parse)
	if err == nil {
		return nil, nil
	}
	bakErr := readInto(path+".bak", parse)
	switch {
	case bakErr == nil:
		return err, nil
	case errors.Is(err, fs.ErrNotExist) && errors.Is(bakErr, fs.ErrNotExist):
		return nil, nil
	case errors.Is(bakErr, fs.ErrNotExist):
		return nil, err
	}
	return nil, errors.Join(err, bakErr)
}

func readInto(path string, parse func(content []byte) error) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := parse(b); err != nil {
		return &fs.PathError{Op: "parse", Path: path, Err: err}
	}
	return nil
}
