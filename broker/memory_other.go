//go:build !linux

package broker

// machineMemory is what is taken for the memory of the machine, bytes.
func machineMemory() int64 { return fallbackMemory }
