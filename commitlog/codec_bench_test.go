package commitlog_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rocketstore/rocketstore/commitlog"
)

func BenchmarkRecord(b *testing.B) {
	for _, size := range []int{128, 1024, 4096} {
		r := sample(b, commitlog.MagicV1, ip4, ip4, "TopicTest", strings.Repeat("x", size))
		raw := r.AppendTo(nil)
		b.Run(fmt.Sprintf("op=decode/body=%d", size), func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := commitlog.Decode(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("op=encode/body=%d", size), func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				r.AppendTo(raw[:0])
			}
		})
	}
}

func BenchmarkScan(b *testing.B) {
	for _, size := range []int{128, 1024, 4096} {
		var log []byte
		for len(log) < 4<<20 {
			log = append(log, at(b, segmentBase+int64(len(log)), strings.Repeat("x", size))...)
		}
		for _, crc := range []bool{true, false} {
			for _, source := range []string{"memory", "file"} {
				b.Run(fmt.Sprintf("source=%s/crc=%t/body=%d", source, crc, size), func(b *testing.B) {
					s := scanBytes(log)
					if source == "file" {
						s = commitlog.NewScanner(segmentFile, segmentBase, bytes.NewReader(log), int64(len(log)))
					}
					s.CheckCRC = crc
					b.SetBytes(int64(len(log)))
					b.ReportAllocs()
					for b.Loop() {
						s.SeekTo(segmentBase)
						for s.Next() {
						}
						if s.Err() != nil {
							b.Fatal(s.Err())
						}
					}
				})
			}
		}
	}
}
