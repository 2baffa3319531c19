package golden_test

import (
	"crypto/md5"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/golden"
)

func TestEveryStoreUnpacksToTheFilesItsAccountLists(t *testing.T) {
	require.Len(t, golden.Names(), 45)
	require.Len(t, golden.Names("3.1.4"), 16)
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			e := golden.Load(t, name)
			dir := golden.Unpack(t, name)
			require.Equal(t, name, e.Name())
			files := 0
			for _, state := range golden.Snapshot(t, dir) {
				if state.Mode.IsRegular() {
					files++
				}
			}
			require.Len(t, e.Files(), files)
			for _, f := range e.Files() {
				b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f.Path)))
				require.NoError(t, err)
				sum := md5.Sum(b)
				require.Equal(t, golden.FileInfo{Path: f.Path, Size: int64(len(b)), MD5: hex.EncodeToString(sum[:])}, f)
			}
		})
	}
}

func TestBothFormsOfAccountsGiveTheSameView(t *testing.T) {
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			e := golden.Load(t, name)
			c := e.Config()
			require.Positive(t, c.CommitLogFileSize)
			require.Positive(t, c.QueueFileSize)
			require.Positive(t, c.IndexSlots)
			require.Positive(t, c.IndexEntries)
			require.NotEmpty(t, c.DelayLevels)
			require.NotEmpty(t, e.Records())
			require.NotEmpty(t, e.Segments())
			at := int64(0)
			for _, r := range e.Records() {
				require.GreaterOrEqual(t, r.PhysicalOffset, at)
				at = r.PhysicalOffset + int64(r.StoreSize)
				require.NotZero(t, r.Magic)
				require.True(t, r.BornHost.IsValid())
				require.NotEmpty(t, r.MsgID)
				require.NotEmpty(t, r.BodyMD5)
			}
			for _, f := range e.IndexFiles() {
				require.Len(t, f.Entries, int(f.IndexCount)-1)
				require.NotEmpty(t, f.Slots)
			}
			if e.Line() == "3.1" {
				require.NotNil(t, e.Derived())
				require.Positive(t, c.StateTableFileSize)
				require.Positive(t, c.RedoLogFileSize)
			}
			if after := e.AfterLoad(); after.Loaded {
				require.Positive(t, after.MaxOffset)
				require.NotEmpty(t, after.KeyQueries)
			}
		})
	}
}

func TestSpecialPartsOfAccounts(t *testing.T) {
	require.Len(t, golden.Load(t, "rocketmq-5.3.3/batchcq").BatchQueues(), 2)
	require.Len(t, golden.Load(t, "rocketmq-4.9.7/ext").ExtUnits()[0].Units[0].Bitmap, 14)
	clean := golden.Load(t, "rocketmq-3.1.4/clean")
	require.Len(t, clean.StateTable(), 54)
	require.Len(t, clean.RedoLog(), 100)
	require.Len(t, clean.Derived().OpenTransactions, 10)
	require.Equal(t, "%RETRY%CG_one", clean.Derived().Queues[0].Topic)
	require.Equal(t, int64(54), clean.AfterLoad().NextStateNumber)
	missing := golden.Load(t, "rocketmq-4.9.7/missing-cq")
	require.Equal(t, golden.Load(t, "rocketmq-4.9.7/clean").Records(), missing.Records(), "sameAs is followed")
	require.Empty(t, missing.Queues())
}

func TestUnpackKeepsTimesAndCopyKeepsAll(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-5.3.3/timer")
	before := golden.Snapshot(t, dir)
	require.Equal(t, time.Unix(1700000000, 0).UTC(), before["commitlog/00000000000000000000"].ModTime.UTC())
	require.Equal(t, time.Unix(1700000000, 0).UTC(), before["commitlog"].ModTime.UTC())
	require.EqualValues(t, 38707200, before["timerwheel"].Size)
	require.Equal(t, before, golden.Snapshot(t, golden.Copy(t, dir)))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "lock"), []byte("lock"), 0o600))
	require.NotEqual(t, before, golden.Snapshot(t, dir))
	require.DirExists(t, golden.Unpack(t, "rocketmq-4.9.7/abort.reopened"))
}

func TestEveryCaseLoads(t *testing.T) {
	require.Len(t, golden.Cases(), 16)
	for _, name := range golden.Cases() {
		c := golden.LoadCase(t, name)
		require.Equal(t, name, c.ID)
		require.NotEmpty(t, c.Expect)
		if c.Store != "" {
			require.EqualValues(t, 4096, c.Given.Config.CommitLogFileSize)
			require.DirExists(t, c.Store)
		}
	}
}
