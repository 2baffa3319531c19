package bench_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/rocketstore/rocketstore/bench"
)

var (
	wide    = flag.Bool("bench.wide", false, "more body sizes, writers and queues; takes half an hour")
	dir     = flag.String("bench.dir", "", "directory on the disk to measure; default: the one for temporary files")
	segment = flag.Int64("bench.seg", 64<<20, "length of the files in bytes")
	pages   = flag.String("bench.pages", "", "pages of 4096 bytes that a ranged sync covers, with commas between; default 1,4,16,64,256")
)

// TestMain prints where the figures are from, in the form that benchstat reads and keeps.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.bench"); f != nil && f.Value.String() != "" {
		at := *dir
		if at == "" {
			at = os.TempDir()
		}
		h := bench.HostOf(at)
		for _, l := range h.Lines() {
			fmt.Printf("%s: %s\n", l[0], l[1])
		}
		fmt.Printf("segment: %d\n", *segment)
	}
	os.Exit(m.Run())
}

// newDir is an empty directory on the disk to measure.
func newDir(b *testing.B) string {
	b.Helper()
	if *dir == "" {
		return b.TempDir()
	}
	d, err := os.MkdirTemp(*dir, "rocketstore-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(d) })
	return d
}

func options(b *testing.B) *bench.Options {
	b.Helper()
	o := &bench.Options{SegmentSize: *segment, Wide: *wide}
	for text := range strings.SplitSeq(*pages, ",") {
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 {
			b.Fatalf("-bench.pages: %q is no number of pages", text)
		}
		o.Pages = append(o.Pages, n)
	}
	return o
}

// group runs the cases of one group (R-E-085 to R-E-087). ns/op and B/op are of one step; of the cases whose steps are many
// operations, ns/each is of one of them.
func group(b *testing.B, name string) {
	for _, c := range bench.Cases(options(b)) {
		if c.Group() != name {
			continue
		}
		b.Run(strings.TrimPrefix(c.Name, name+"/"), func(b *testing.B) {
			run, err := c.Open(b.Context(), newDir(b))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(c.Bytes * c.Ops)
			b.ReportAllocs()
			b.ResetTimer()
			res, err := c.Drive(run, func(begun int64) bool { return begun < int64(b.N) })
			b.StopTimer()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(res.P50.Nanoseconds()), "p50-ns")
			b.ReportMetric(float64(res.P99.Nanoseconds()), "p99-ns")
			b.ReportMetric(float64(res.P999.Nanoseconds()), "p999-ns")
			if c.Ops > 1 {
				b.ReportMetric(res.Seconds*1e9/float64(res.Ops), "ns/each")
			}
			if run.Syncs != nil {
				b.ReportMetric(res.Syncs, "syncs/op")
			}
			if err := run.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func BenchmarkDevice(b *testing.B) { group(b, "device") }
func BenchmarkAppend(b *testing.B) { group(b, "append") }
func BenchmarkSync(b *testing.B)   { group(b, "sync") }
func BenchmarkRoll(b *testing.B)   { group(b, "roll") }
func BenchmarkRead(b *testing.B)   { group(b, "read") }
func BenchmarkCodec(b *testing.B)  { group(b, "codec") }
func BenchmarkQueue(b *testing.B)  { group(b, "queue") }
func BenchmarkIndex(b *testing.B)  { group(b, "index") }
func BenchmarkTx(b *testing.B)     { group(b, "tx") }
func BenchmarkStore(b *testing.B)  { group(b, "store") }
