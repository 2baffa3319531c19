package rocketstore_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/txstate"
)

// expectation is the part of a case's "expect" that opening for writing decides.
type expectation struct {
	Open             string
	Messages         *int
	TruncatedAt      json.RawMessage
	MaxPhysical      *int64
	MaxPhysicalOneOf []int64
	Error            *struct{ MustName []string }
	Queues           map[string]struct{ Min, Max, Readable int64 }
	Append           *struct{ Physical, QueueOffset int64 }
	Warnings         []struct {
		Kind, File           string
		FromOffset, ToOffset int64
	}
	Lost []struct {
		Topic                              string
		QueueID                            int32 `json:"queueId"`
		FromOffset, ToOffset, NextReadable int64
	}
	FilesUntouched json.RawMessage
	Records        []struct {
		Physical, StoreTimestamp int64
		StoreHost, BornHost      string
	}
	KeyQuery []struct {
		Topic, Key string
		Physical   []int64
	}
	Pull *struct {
		Status                    string
		NextBeginOffset, Min, Max int64
		Found                     int
	}
	StateTable []struct {
		Unit, CommitLogOffset, Seconds int64
		Size, GroupHash                int32
		State                          string
	}
	NextStateTableIndex *int64
	ToCheck             []int64
	GroupOffset         *struct {
		Topic   string
		QueueID int32 `json:"queueId"`
		Stored  int64
	}
}

// TestCases opens each case's directory for writing and compares with what the case says (R-E-008, R-E-009, R-E-067 to R-E-071).
func TestCases(t *testing.T) {
	for _, id := range golden.Cases() {
		t.Run(id, func(t *testing.T) {
			c := golden.LoadCase(t, id)
			var want expectation
			require.NoError(t, json.Unmarshal(c.Expect, &want))
			if c.Store == "" || want.Open == "" {
				return // asked of the API or of package config, in tests of their own
			}
			runCase(t, c, &want)
		})
	}
}

func caseOptions(c *golden.Case) *rocketstore.Options {
	g := c.Given.Config
	o := &rocketstore.Options{
		StateSegmentSize: g.StateTableFileSize, RedoSegmentSize: g.RedoLogFileSize,
		SegmentSize: g.CommitLogFileSize, QueueSegmentSize: g.ConsumeQueueFileSize, IndexSlots: g.IndexSlots, IndexEntries: g.IndexEntries,
	}
	switch {
	case strings.HasPrefix(c.Given.Dialect, "3."):
		o.Dialect = "3.1"
	case strings.HasPrefix(c.Given.Dialect, "4."):
		o.Dialect = "4.9"
	}
	return o
}

func runCase(t *testing.T, c *golden.Case, want *expectation) {
	before := golden.Snapshot(t, c.Store)
	s, err := rocketstore.Open(c.Store, caseOptions(c))
	if want.Open == "refuse" {
		require.Error(t, err)
		for _, text := range want.Error.MustName {
			require.ErrorContains(t, err, text)
		}
		after := golden.Snapshot(t, c.Store)
		for _, own := range []string{".", recovery.LockFile} { // the lock has to be taken to find out
			delete(before, own)
			delete(after, own)
		}
		require.Equal(t, before, after)
		return
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Abandon() })
	checkReport(t, s, want)
	checkContent(t, s, want)
	checkUntouched(t, before, golden.Snapshot(t, c.Store), want)
	if want.Append != nil {
		body := strings.Repeat("a", 120)
		var r rocketstore.PutResult
		r, err = s.Put(t.Context(), msg("TopicA", 0, body, "", ""))
		require.NoError(t, err)
		require.Equal(t, want.Append.Physical, r.PhysicalOffset)
		require.Equal(t, want.Append.QueueOffset, r.QueueOffset)
	}
	if want.ToCheck != nil {
		open := []int64{}
		for _, tx := range openSet(t, s) {
			open = append(open, tx.PhysicalOffset)
		}
		require.Equal(t, want.ToCheck, open)
	}
	if want.NextStateTableIndex != nil {
		info, ok := s.StateTableInfo()
		require.True(t, ok)
		require.Equal(t, *want.NextStateTableIndex, info.Next)
	}
	require.NoError(t, s.Close(t.Context()))
	checkStateTable(t, c, want)
}

// checkStateTable reads the table's file, as it lies, after the store was closed.
func checkStateTable(t *testing.T, c *golden.Case, want *expectation) {
	t.Helper()
	if len(want.StateTable) == 0 {
		return
	}
	b, err := os.ReadFile(filepath.Join(c.Store, txstate.Dir, mappedfile.SegmentName(0)))
	require.NoError(t, err)
	n := 0
	for e, err := range txstate.Scan("statetable", 0, bytes.NewReader(b), int64(len(b))) {
		require.NoError(t, err)
		w := want.StateTable[n]
		require.Equal(t, w.Unit, e.Number)
		require.Equal(t, w.CommitLogOffset, e.CommitOffset)
		require.Equal(t, w.State, e.State.String())
		if w.Size != 0 {
			require.Equal(t, w.Size, e.Size)
			require.Equal(t, w.Seconds, e.Seconds())
			require.Equal(t, w.GroupHash, e.GroupHash)
		}
		n++
	}
	require.Len(t, want.StateTable, n)
}

func checkReport(t *testing.T, s *rocketstore.Store, want *expectation) {
	t.Helper()
	r := s.Report()
	switch string(want.TruncatedAt) {
	case "":
	case "null":
		require.EqualValues(t, -1, r.TruncatedAt)
	default:
		require.Equal(t, string(want.TruncatedAt), strconv.FormatInt(r.TruncatedAt, 10))
	}
	for _, w := range want.Warnings {
		n := 0
		for _, got := range r.Warnings {
			if got.Kind == w.Kind && (w.File == "" || got.File == w.File) && (w.ToOffset == 0 || got.From == w.FromOffset && got.To == w.ToOffset) {
				n++
			}
		}
		require.Equal(t, 1, n, "%+v in %+v", w, r.Warnings)
	}
	for _, l := range want.Lost {
		require.Contains(t, r.Lost, recovery.Lost{Topic: l.Topic, QueueID: l.QueueID, From: l.FromOffset, To: l.ToOffset, NextReadable: l.NextReadable})
	}
}

func checkContent(t *testing.T, s *rocketstore.Store, want *expectation) {
	t.Helper()
	start, end := s.Bounds()
	if want.MaxPhysical != nil {
		require.Equal(t, *want.MaxPhysical, end)
	}
	if len(want.MaxPhysicalOneOf) > 0 {
		require.Contains(t, want.MaxPhysicalOneOf, end)
	}
	n := 0
	for r, err := range s.Records(start) {
		require.NoError(t, err)
		if n < len(want.Records) {
			w := want.Records[n]
			require.Equal(t, w.Physical, r.PhysicalOffset)
			require.Equal(t, w.StoreTimestamp, r.StoreTimestamp)
			require.Equal(t, w.StoreHost, r.StoreHost.String())
			require.Equal(t, w.BornHost, r.BornHost.String())
		}
		n++
	}
	if want.Messages != nil {
		require.Equal(t, *want.Messages, n)
	}
	if len(want.Queues) > 0 {
		seen := 0
		read := readQueues(t, s)
		for q, err := range s.Queues(t.Context()) {
			require.NoError(t, err)
			name := fmt.Sprintf("%s/%d", q.Topic, q.QueueID)
			w, ok := want.Queues[name]
			require.True(t, ok, name)
			require.Equal(t, w.Min, q.Min, name)
			require.Equal(t, w.Max, q.Max, name)
			require.Len(t, read[name], int(w.Readable), name)
			seen++
		}
		require.Len(t, want.Queues, seen)
	}
	for _, k := range want.KeyQuery {
		got := []int64{}
		for r, err := range s.Query(t.Context(), rocketstore.QueryRequest{Topic: k.Topic, Key: k.Key}) {
			require.NoError(t, err)
			got = append(got, r.PhysicalOffset)
		}
		require.ElementsMatch(t, k.Physical, got)
	}
	if want.Pull != nil {
		g, err := s.Get(t.Context(), rocketstore.GetRequest{Topic: want.GroupOffset.Topic, QueueID: want.GroupOffset.QueueID, Offset: want.GroupOffset.Stored})
		require.NoError(t, err)
		require.Equal(t, want.Pull.Status, g.Status.String())
		require.Equal(t, want.Pull.NextBeginOffset, g.Next)
		require.Equal(t, want.Pull.Min, g.Min)
		require.Equal(t, want.Pull.Max, g.Max)
		require.Len(t, g.Records, want.Pull.Found)
	}
}

func checkUntouched(t *testing.T, before, after map[string]golden.State, want *expectation) {
	t.Helper()
	var names []string
	if len(want.FilesUntouched) == 0 || json.Unmarshal(want.FilesUntouched, &names) != nil {
		return
	}
	for _, n := range names {
		require.Equal(t, before[n].Hash, after[n].Hash, n)
		require.Equal(t, before[n].Size, after[n].Size, n)
	}
}

// TestCasePropertiesTooLong appends messages whose properties fit in characters but not in bytes (R-E-025).
func TestCasePropertiesTooLong(t *testing.T) {
	dir := golden.TempDir(t)
	s := open(t, dir, &rocketstore.Options{SegmentSize: 1 << 20})
	put := func(value string) (rocketstore.PutResult, error) {
		p, err := message.NewProperties("K", value)
		require.NoError(t, err)
		return s.Put(t.Context(), &message.Message{Topic: "TopicA", Body: []byte("x"), Properties: p})
	}
	_, err := put(strings.Repeat("汉", 12000))
	require.ErrorContains(t, err, "message illegal: properties: 36003 bytes, the limit is 32767")
	r, err := put(strings.Repeat("a", 32764))
	require.NoError(t, err)
	require.Zero(t, r.PhysicalOffset)
	require.Zero(t, r.QueueOffset)
	_, err = put(strings.Repeat("a", 32765))
	require.ErrorContains(t, err, "32768")
	require.NoError(t, s.Close(t.Context()))
	s = open(t, dir, nil)
	n := 0
	for _, err := range s.Records(0) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 1, n)
}
