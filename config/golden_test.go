package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// tableOf makes an empty table for a file, nil for one that has none.
func tableOf(file string) config.Table {
	switch strings.TrimSuffix(filepath.Base(file), ".bak") {
	case "topics.json":
		return new(config.Topics)
	case "subscriptionGroup.json":
		return new(config.SubscriptionGroups)
	case "consumerOffset.json":
		return new(config.ConsumerOffsets)
	case "delayOffset.json":
		return new(config.DelayOffsets)
	}
	return nil
}

// R-E-064: the files of the three lines are read and written again byte for byte, in their own order.
func TestEveryGoldenFileIsWrittenAsItWasRead(t *testing.T) {
	seen := map[string]int{}
	for _, name := range golden.Names() {
		store := golden.Unpack(t, name)
		for _, f := range golden.Load(t, name).Files() {
			if !strings.HasPrefix(f.Path, "config/") || !strings.HasSuffix(strings.TrimSuffix(f.Path, ".bak"), ".json") {
				continue
			}
			want, err := os.ReadFile(filepath.Join(store, filepath.FromSlash(f.Path)))
			require.NoError(t, err)
			got, err := config.Rewrite(want)
			require.NoError(t, err, f.Path)
			require.Equal(t, string(want), string(got), "%s %s", name, f.Path)
			if table := tableOf(f.Path); table != nil {
				require.NoError(t, config.Decode(want, table))
				require.Equal(t, string(want), string(config.Encode(table)), "%s %s", name, f.Path)
			}
			seen[name[:strings.IndexByte(name, '/')]+" "+strings.TrimSuffix(filepath.Base(f.Path), ".bak")]++
		}
	}
	for _, want := range []string{
		"rocketmq-3.1.4 delayOffset.json", "rocketmq-4.9.7 topics.json", "rocketmq-4.9.7 subscriptionGroup.json",
		"rocketmq-4.9.7 consumerOffset.json", "rocketmq-5.3.3 topics.json", "rocketmq-5.3.3 subscriptionGroup.json",
		"rocketmq-5.3.3 consumerOffset.json", "rocketmq-5.3.3 delayOffset.json",
	} {
		require.Positive(t, seen[want], want)
	}
}

func TestGoldenTablesSayWhatTheFilesSay(t *testing.T) {
	fsys := open(t, golden.Unpack(t, "rocketmq-4.9.7/clean"))
	var offsets config.ConsumerOffsets
	require.Nil(t, load(t, fsys, &offsets))
	got, ok := offsets.At("GoldenNormal", "GoldenNormalGroup", 1)
	require.True(t, ok)
	require.EqualValues(t, 102, got)
	_, ok = offsets.At("GoldenNormal", "GoldenNormalGroup", 2)
	require.False(t, ok)
	_, ok = offsets.At("GoldenNormal", "NoGroup", 0)
	require.False(t, ok)
	require.Nil(t, offsets.Version)

	var delays config.DelayOffsets
	require.Nil(t, load(t, fsys, &delays))
	level1, ok := delays.Table.Get(1)
	require.True(t, ok)
	require.EqualValues(t, 8, level1)

	fsys = open(t, golden.Unpack(t, "rocketmq-5.3.3/batchcq"))
	var topics config.Topics
	require.Nil(t, load(t, fsys, &topics))
	require.EqualValues(t, 2, topics.Version.Counter)
	require.EqualValues(t, 1795984725208, topics.Version.Timestamp)
	topic, ok := topics.Table.Get("GoldenBcq")
	require.True(t, ok)
	queueType, ok := topic.Attributes.Get("queue.type")
	require.True(t, ok)
	require.Equal(t, "BatchCQ", queueType)
	require.EqualValues(t, config.PermRead|config.PermWrite, topic.Perm)

	var groups config.SubscriptionGroups
	require.Nil(t, load(t, fsys, &groups))
	group, ok := groups.Table.Get("SELF_TEST_C_GROUP")
	require.True(t, ok)
	require.EqualValues(t, 16, group.RetryMaxTimes)
	require.EqualValues(t, 15, group.ConsumeTimeoutMinutes)
	require.True(t, group.ConsumeEnable)
}
