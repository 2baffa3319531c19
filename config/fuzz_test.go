package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/config"
)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		goodOffsets, "{\n\t\"offsetTable\":{\n\t\t\"T@g\":{0:5,3:7\n\t\t}\n\t}\n}", `{"dataVersion":{"counter":1,"timestatmp":2},"topicConfigTable":{"T":{"perm":6}}}`,
		`{"subscriptionGroupTable":{"G":{"groupName":"G","attributes":{}}}}`, "[\n1,[],\"\\u0001\\v\\x0b\\ud83d\"]", "\x00\x00", "{{}:1}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		once, err := config.Rewrite(b)
		if err != nil {
			return
		}
		twice, err := config.Rewrite(once)
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
		for _, table := range []config.Table{new(config.Topics), new(config.SubscriptionGroups), new(config.ConsumerOffsets), new(config.DelayOffsets)} {
			if config.Decode(b, table) != nil {
				continue
			}
			first := config.Encode(table)
			require.NoError(t, config.Decode(first, table))
			require.Equal(t, string(first), string(config.Encode(table)))
		}
	})
}
