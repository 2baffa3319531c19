//go:build !race

package namesrv_test

const raceEnabled = false
