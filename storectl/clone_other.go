//go:build !linux

package main

import "errors"

// cloneFile has no portable form.
func cloneFile(string, string) error { return errors.ErrUnsupported }

// syncFolder has no portable form.
func syncFolder(string) error { return nil }
