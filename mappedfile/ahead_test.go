package mappedfile_test

import (
	"bytes"
	"io/fs"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// R-E-010: the next segment lies ready under its own name, all zero, before it is needed.
func TestSegmentAheadIsReadyBeforeItIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := crashfs.New(memfs.New())
		q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page, Ahead: true, Populate: page, Reserve: mappedfile.ReserveWhole})
		put(t, q, "abc")
		synctest.Wait()
		require.Equal(t, make([]byte, page), readFile(t, fsys, "log/"+seg(page)))
		require.Equal(t, make([]byte, page), readFile(t, fsys.Image(0), "log/"+seg(page)), "durable already")
		require.Len(t, q.Segments(), 1, "not part of the queue yet")

		require.NoError(t, q.Fill([]byte("b")))
		require.NoError(t, q.Sync(0))
		steps := fsys.Steps()
		fsys.CrashAfter(steps) // the roll needs nothing of the disk
		put(t, q, "next")
		require.Equal(t, mappedfile.Stats{Segments: 2, Mapped: 2, MappedBytes: 2 * page, Syncs: 1, Made: 2, MadeAhead: 1}, q.Stats())
		require.NoError(t, q.Abandon())
	})
}

// writes tells of each WriteAt.
type writes struct {
	mappedfile.FS
	tell func(name string, off int64, b []byte)
}

func (w *writes) OpenFile(name string, flag int, perm fs.FileMode) (mappedfile.File, error) {
	f, err := w.FS.OpenFile(name, flag, perm)
	return &writesTo{f, name[len(name)-len(seg(0)):], w.tell}, err
}

type writesTo struct {
	mappedfile.File
	name string
	tell func(name string, off int64, b []byte)
}

func (f *writesTo) WriteAt(b []byte, off int64) (int, error) {
	f.tell(f.name, off, b)
	return f.File.WriteAt(b, off)
}

// The blocks that the next appends go to have been written before and are on the device, so that a sync of them changes no
// metadata; what was appended is not touched, and the last page of a segment is the last that is written (R-E-090).
func TestZerosAreWrittenAheadOfTheEndAndNeverOverWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zeroed := map[string][]int64{} // file -> pages
		fsys := &writes{memfs.New(), func(name string, off int64, b []byte) {
			if bytes.Count(b, []byte{0}) == len(b) {
				require.Zero(t, off%page+int64(len(b))%page)
				for ; len(b) > 0; b = b[page:] {
					zeroed[name] = append(zeroed[name], off/page)
					off += page
				}
			}
		}}
		q := open(t, fsys, "log", mappedfile.Options{
			SegmentSize: 8 * page, Mode: mappedfile.Pwrite, Ahead: true, ZeroAhead: 4 * page, Reserve: mappedfile.ReserveWhole,
		})
		first, second := seg(0), seg(8*page)
		put(t, q, "abc")
		synctest.Wait()
		require.Equal(t, map[string][]int64{first: {1, 2, 3}, second: {0, 1, 2, 3}}, zeroed)
		put(t, q, strings.Repeat("x", 5*page))
		synctest.Wait()
		require.Equal(t, map[string][]int64{first: {1, 2, 3, 6, 7}, second: {0, 1, 2, 3, 4, 5, 6, 7}}, zeroed, "the next one as a whole")
		require.Equal(t, "abc"+strings.Repeat("x", 5*page), string(readFile(t, fsys, "log/"+first)[:5*page+3]))

		require.NoError(t, q.Fill([]byte("blank")))
		put(t, q, "in the next one")
		put(t, q, strings.Repeat("y", 3*page))
		synctest.Wait()
		require.Equal(t, []int64{0, 1, 2, 3, 4, 5, 6, 7}, zeroed[second], "not once more")
		require.Equal(t, "in the next one"+strings.Repeat("y", 3*page), string(readFile(t, fsys, "log/"+second)[:15+3*page]))
		require.NoError(t, q.Close())
	})
}

// A segment that is taken while zeros are written over it has them before the first append, and none come later.
func TestASegmentIsTakenBetweenItsZeros(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 64 * page
		zeroing, goOn := make(chan struct{}), make(chan struct{})
		held := false
		fsys := &writes{memfs.New(), func(name string, off int64, b []byte) {
			if name == seg(size) && off == 16*page && !held {
				held = true
				close(zeroing)
				<-goOn
			}
		}}
		q := open(t, fsys, "log", mappedfile.Options{
			SegmentSize: size, Mode: mappedfile.Pwrite, Ahead: true, ZeroAhead: 16 * page, Reserve: mappedfile.ReserveWhole,
		})
		put(t, q, strings.Repeat("x", 20*page))
		<-zeroing
		require.NoError(t, q.Fill([]byte("blank")))
		done := make(chan struct{})
		var err error
		go func() {
			defer close(done)
			_, err = q.Append(bytes.Repeat([]byte("y"), 24*page))
		}()
		synctest.Wait()
		select {
		case <-done:
			require.Fail(t, "appended while zeros are on their way there")
		default:
		}
		close(goOn)
		<-done
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, strings.Repeat("y", 24*page), string(readFile(t, fsys, "log/"+seg(size))[:24*page]))
		require.NoError(t, q.Close())
	})
}

// The end of a segment is not passed while zeros are on their way there: none come over what is written next, in the next segment or over what
// was filled.
func TestASegmentIsFilledWhenItsZerosAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 16 * page
		lastZeros, goOn := make(chan struct{}), make(chan struct{})
		waited := false
		fsys := &writes{memfs.New(), func(name string, off int64, b []byte) {
			if name == seg(0) && bytes.Count(b, []byte{0}) == len(b) && off+int64(len(b)) == size && !waited {
				waited = true
				close(lastZeros)
				<-goOn
			}
		}}
		q := open(t, fsys, "log", mappedfile.Options{
			SegmentSize: size, Mode: mappedfile.Pwrite, Ahead: true, ZeroAhead: 4 * page, Reserve: mappedfile.ReserveWhole,
		})
		put(t, q, "abc")
		synctest.Wait()
		put(t, q, strings.Repeat("x", 12*page))
		<-lastZeros
		done := make(chan struct{})
		var errs [3]error
		go func() {
			defer close(done)
			errs[0] = q.Fill([]byte("blank"))
			errs[1] = q.WriteAt([]byte("over what was filled"), size-100)
			_, errs[2] = q.Append([]byte("in the next one"))
		}()
		synctest.Wait()
		close(goOn)
		<-done
		require.Equal(t, [3]error{}, errs)
		synctest.Wait()
		require.Equal(t, "over what was filled", string(readFile(t, fsys, "log/"+seg(0))[size-100:][:20]))
		require.Equal(t, "in the next one", string(readFile(t, fsys, "log/"+seg(size))[:15]))
		require.NoError(t, q.Close())
	})
}

// populates has mappings that call a function in place of faulting pages in.
type populates struct {
	mappedfile.FS
	in func(bytes int)
}

func (p *populates) OpenFile(name string, flag int, perm fs.FileMode) (mappedfile.File, error) {
	f, err := p.FS.OpenFile(name, flag, perm)
	return &populatesFile{f, p.in}, err
}

type populatesFile struct {
	mappedfile.File
	in func(int)
}

func (f *populatesFile) Map(size int64, access mappedfile.Access) (mappedfile.Mapping, error) {
	m, err := f.File.Map(size, access)
	return &populatesMapping{m, f.in}, err
}

type populatesMapping struct {
	mappedfile.Mapping
	in func(int)
}

func (m *populatesMapping) Advise(_, n int, a mappedfile.Advice) error {
	if a == mappedfile.Populate {
		m.in(n)
	}
	return nil
}

// The zeros of the segment made ahead come few at a time, however large a part of it the appends call for in the end.
func TestZerosOfTheNextSegmentComeFewAtATime(t *testing.T) {
	const size, line = 4 << 20, 16 << 10
	synctest.Test(t, func(t *testing.T) {
		since, most, all := 0, 0, 0
		fsys := &writes{memfs.New(), func(name string, _ int64, b []byte) {
			if name == seg(size) {
				since, all = since+len(b), all+len(b)
				most = max(most, since)
			}
		}}
		q := open(t, fsys, "log", mappedfile.Options{
			SegmentSize: size, Mode: mappedfile.Pwrite, Ahead: true, ZeroAhead: 1 << 20, Reserve: mappedfile.ReserveWhole,
		})
		for range size / line {
			since = 0
			_, err := q.Append(bytes.Repeat([]byte("y"), line))
			require.NoError(t, err)
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		require.Equal(t, size, all)
		require.LessOrEqual(t, most, 128<<10)
		require.NoError(t, q.Close())
	})
}

// What is ready never goes back: the last pages of a segment may come when an append goes on in the next one, and no zeros are written over it then.
func TestTheNextSegmentIsBegunBesideTheLastPagesOfTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 16 * page
		line := strings.Repeat("y", 6*page)
		appending, over := false, false
		fsys := &populates{&writes{memfs.New(), func(name string, off int64, b []byte) {
			switch zeros := bytes.Count(b, []byte{0}) == len(b); {
			case name == seg(size) && !zeros:
				appending = true
				time.Sleep(time.Second) // the background comes to rest
				appending = false
			case name == seg(size) && off < int64(len(line)):
				over = over || appending
			}
		}}, func(int) { time.Sleep(5 * time.Millisecond) }}
		q := open(t, fsys, "log", mappedfile.Options{
			SegmentSize: size, Mode: mappedfile.Pwrite, Ahead: true, Populate: 4 * page, ZeroAhead: 8 * page, Reserve: mappedfile.ReserveWhole,
		})
		put(t, q, "abc")
		time.Sleep(time.Second)
		put(t, q, strings.Repeat("x", 12*page))
		time.Sleep(time.Millisecond) // the background faults in the last pages, which takes longer
		require.NoError(t, q.Fill([]byte("blank")))
		put(t, q, line)
		synctest.Wait()
		require.False(t, over, "zeros over what is being appended")
		require.Equal(t, line, string(readFile(t, fsys, "log/"+seg(size))[:len(line)]))
		require.NoError(t, q.Close())
	})
}

// Pages are faulted in a part at a time, however quickly the appends go on behind each part.
func TestPagesAreFaultedInAPartAtATime(t *testing.T) {
	const size, ahead, line = 4 << 20, 1 << 20, 1000
	synctest.Test(t, func(t *testing.T) {
		calls, in := 0, 0
		fsys := &populates{memfs.New(), func(n int) {
			calls, in = calls+1, in+n
			time.Sleep(5 * time.Microsecond)
		}}
		q := open(t, fsys, "log", mappedfile.Options{SegmentSize: size, Ahead: true, Populate: ahead})
		for range size / line {
			_, err := q.Append(make([]byte, line))
			require.NoError(t, err)
			time.Sleep(time.Microsecond)
		}
		time.Sleep(time.Millisecond)
		require.NoError(t, q.Close())
		require.InDelta(t, size+ahead, in, ahead/4, "all of the segment but what the first appends were quicker with, and the start of the next")
		require.LessOrEqual(t, calls, (size+ahead)/(ahead/4))
	})
}

// Where pages come slower than the appends need them, zeros are written ahead of a mapped end, and over nothing that was appended.
func TestZerosAreWrittenWherePagesComeSlowly(t *testing.T) {
	const size, chunk = 64 << 20, 100_000
	for _, reserve := range []mappedfile.Reserve{mappedfile.ReserveWhole, mappedfile.ReserveStep} {
		synctest.Test(t, func(t *testing.T) {
			zeros := 0
			fsys := &populates{
				&writes{memfs.New(), func(_ string, _ int64, b []byte) { zeros += bytes.Count(b, []byte{0}) }},
				func(int) { time.Sleep(5 * time.Millisecond) },
			}
			q := open(t, fsys, "log", mappedfile.Options{SegmentSize: size, Ahead: true, Populate: 8 << 20, Reserve: reserve})
			line := bytes.Repeat([]byte("y"), chunk)
			for range size/chunk + 100 {
				if q.Remaining() < chunk {
					require.NoError(t, q.Fill([]byte("blank")))
				}
				_, err := q.Append(line)
				require.NoError(t, err)
				time.Sleep(100 * time.Microsecond)
			}
			synctest.Wait()
			if reserve == mappedfile.ReserveStep { // whose blocks may not be there
				require.Zero(t, zeros)
			} else {
				require.Greater(t, zeros, 32<<20)
			}
			first, second := readFile(t, fsys, "log/"+seg(0)), readFile(t, fsys, "log/"+seg(size))
			require.Equal(t, size/chunk*chunk, bytes.Count(first, []byte("y")))
			require.Equal(t, 100*chunk, bytes.Count(second, []byte("y")))
			require.NoError(t, q.Close())
		})
	}
}

func TestUnusedSegmentAheadIsRemovedByCloseAndKeptByACrash(t *testing.T) {
	for _, crash := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			fsys := memfs.New()
			q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page, Ahead: true})
			put(t, q, "abc")
			synctest.Wait()
			want := 1
			if crash {
				require.NoError(t, q.Abandon())
				want = 2
			} else {
				require.NoError(t, q.Close())
			}
			entries, err := fsys.ReadDir("log")
			require.NoError(t, err)
			require.Len(t, entries, want)
			require.Zero(t, fsys.Mappings())

			// What a crash left is used again.
			q = open(t, fsys, "log", mappedfile.Options{SegmentSize: page, Ahead: true})
			require.NoError(t, q.SetEnd(3))
			require.NoError(t, q.Fill([]byte("b")))
			put(t, q, "next")
			require.NoError(t, q.Close())
			require.Len(t, q.Segments(), 2)
		})
	}
}

// Also in a queue that was there before.
func TestSegmentAheadIsMadeAfterReopening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := memfs.New()
		require.NoError(t, fsys.WriteFile("log/"+seg(0), make([]byte, page)))
		q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page, Ahead: true})
		require.NoError(t, q.SetEnd(3))
		put(t, q, "abc")
		synctest.Wait()
		require.Len(t, readFile(t, fsys, "log/"+seg(page)), page)
		require.NoError(t, q.TruncateAfter(4))
		require.Error(t, second(fsys.OpenFile("log/"+seg(page), 0, 0)))
		put(t, q, "abc")
		synctest.Wait()
		require.Len(t, readFile(t, fsys, "log/"+seg(page)), page)
		require.NoError(t, q.Close())
	})
}

// A disk that is full in the background is no error until the segment is needed.
func TestFailureToMakeASegmentAheadHarmsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := crashfs.New(memfs.New())
		q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page, Ahead: true, Reserve: mappedfile.ReserveWhole})
		put(t, q, "abc")
		synctest.Wait()
		fsys.Fail(crashfs.OpAllocate, "", syscall.ENOSPC)
		put(t, q, strings.Repeat("x", page-3))
		put(t, q, "takes the one that was made before")
		synctest.Wait()
		require.NoError(t, q.Fill([]byte("b")))
		require.ErrorIs(t, second(q.Append([]byte("x"))), syscall.ENOSPC)
		entries, err := fsys.ReadDir("log")
		require.NoError(t, err)
		require.Len(t, entries, 2, "nothing half made is left")
		fsys.Fail(crashfs.OpAllocate, "", nil)
		require.Equal(t, int64(2*page), put(t, q, "room again"))
		require.NoError(t, q.Sync(0))
		require.NoError(t, q.Close())
	})
}

// The kernel may have dropped other names with it.
func TestFailedSyncOfTheDirectoryInTheBackgroundIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := crashfs.New(memfs.New())
		q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page, Ahead: true})
		fsys.Fail(crashfs.OpSyncDir, "", syscall.EIO)
		put(t, q, "abc")
		synctest.Wait()
		fsys.Fail(crashfs.OpSyncDir, "", nil)
		require.ErrorIs(t, q.Sync(0), syscall.EIO)
		require.ErrorIs(t, second(q.Append([]byte("x"))), syscall.EIO)
		require.NoError(t, q.Abandon())
	})
}

func TestNoGoroutineIsLeftAfterClose(t *testing.T) {
	before := runtime.NumGoroutine()
	for i := range 50 {
		q := open(t, memfs.New(), "log", mappedfile.Options{SegmentSize: page, Ahead: true, Mode: mappedfile.Staged, Populate: page})
		for range 5 {
			put(t, q, strings.Repeat("x", page))
		}
		if i%2 == 0 {
			require.NoError(t, q.Close())
		} else {
			require.NoError(t, q.Abandon())
		}
		// Close waits for it, so it is gone now and not soon; its very last instructions may still run.
		for runtime.NumGoroutine() > before {
			runtime.Gosched()
		}
	}
}

// On a full disk the blocks of a segment made ahead are of use to others, and the queue does without it (R-E-010).
func TestSegmentAheadCanBeGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := memfs.New()
		q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page, Ahead: true, Reserve: mappedfile.ReserveWhole})
		dropped, err := q.DropAhead()
		require.NoError(t, err)
		require.False(t, dropped)
		put(t, q, "abc")
		synctest.Wait()
		require.EqualValues(t, 2*page, fsys.Used())
		dropped, err = q.DropAhead()
		require.NoError(t, err)
		require.True(t, dropped)
		require.EqualValues(t, page, fsys.Used())
		require.NoError(t, q.Fill([]byte("b")))
		put(t, q, "next")
		require.Len(t, q.Segments(), 2)
		require.NoError(t, q.Close())
	})
}
