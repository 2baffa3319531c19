package redolog_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/redolog"
)

// Any run of calls gives what a plain slice gives.
func TestLogAgreesWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fsys := memfs.New()
		log, err := redolog.Open(fsys, redolog.Dir, small())
		require.NoError(t, err)
		var units []redolog.Unit
		first := int64(0)
		end := func() int64 { // a commit log offset behind all units
			if len(units) == 0 {
				return 0
			}
			return units[len(units)-1].PhysicalOffset + 1
		}
		check := func(t *rapid.T) {
			var got []redolog.Unit
			for e, err := range log.Replay(0) {
				require.NoError(t, err)
				require.Equal(t, first+int64(len(got)), e.Index)
				got = append(got, e.Unit)
			}
			require.Equal(t, units, got)
			lo, next := log.Bounds()
			require.Equal(t, [2]int64{first, first + int64(len(units))}, [2]int64{lo, next})
			last, ok := log.Last()
			require.Equal(t, len(units) > 0, ok)
			if ok {
				require.Equal(t, units[len(units)-1], last)
			}
		}
		appendOne := func(t *rapid.T) {
			u := redolog.Unit{
				PhysicalOffset: max(0, end()+rapid.Int64Range(-3, 9).Draw(t, "ahead")),
				Size:           rapid.Int32Range(1, 1<<20).Draw(t, "size"),
				TagsCode:       rapid.Int64Range(-1, 99).Draw(t, "tags"),
			}
			appended, err := log.Append(u)
			require.NoError(t, err)
			require.Equal(t, u.PhysicalOffset >= end(), appended)
			if appended {
				units = append(units, u)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"append":            appendOne,
			"append again":      appendOne,
			"append once again": appendOne,
			"truncate": func(t *rapid.T) {
				cut := rapid.Int64Range(0, end()+2).Draw(t, "cut")
				keep := slices.IndexFunc(units, func(u redolog.Unit) bool { return u.PhysicalOffset >= cut })
				if keep < 0 {
					keep = len(units)
				}
				removed, err := log.TruncateFrom(cut)
				require.NoError(t, err)
				require.Equal(t, int64(len(units)-keep), removed)
				if units = units[:keep:keep]; keep == 0 {
					units, first = nil, 0
				}
			},
			"delete": func(t *rapid.T) {
				logStart := rapid.Int64Range(0, end()+2).Draw(t, "log start")
				_, err := log.DeleteBefore(logStart)
				require.NoError(t, err)
				for len(units) > perFile && units[perFile-1].PhysicalOffset < logStart {
					units, first = units[perFile:], first+perFile
				}
			},
			"reopen": func(t *rapid.T) {
				require.NoError(t, log.Sync(0))
				require.NoError(t, log.Close())
				log, err = redolog.Open(fsys, redolog.Dir, small())
				require.NoError(t, err)
			},
			"check": check,
		})
		check(t)
		require.NoError(t, log.Abandon())
	})
}
