package mappedfile

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Guard runs f so that a fault in mapped memory becomes an error that matches [ErrFault] and names file: the file was cut
// short by somebody else, the device failed, or the disk is full under a hole. Without it the process would be killed.
// Every other panic goes on. It costs a few nanoseconds and does not allocate.
func Guard(file string, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = faultError(file, r)
		}
	}()
	return f()
}

// copyGuarded copies src to the start of dst, which is as long or longer; the first head bytes after the others.
func copyGuarded(file string, dst, src []byte, head int) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = faultError(file, r)
		}
	}()
	copy(dst[head:len(src)], src[head:])
	copy(dst[:head], src[:head])
	return nil
}

// faultError makes an error of a recovered memory fault and panics again with anything else.
func faultError(file string, r any) error {
	// Only faults at an address that the runtime does not know have Addr; a nil pointer has not.
	var fault interface {
		runtime.Error
		Addr() uintptr
	}
	if err, ok := r.(error); !ok || !errors.As(err, &fault) {
		panic(r)
	}
	return fmt.Errorf("%w: %s", ErrFault, file)
}
