package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/config"
)

func TestNewEntriesHaveTheMembersOfTheirLine(t *testing.T) {
	for line, want := range map[string]string{
		"3.1": `{
	"dataVersion":{
		"counter":1,
		"timestatmp":1700000000000
	},
	"topicConfigTable":{
		"T":{
			"perm":6,
			"readQueueNums":4,
			"topicFilterType":"SINGLE_TAG",
			"topicName":"T",
			"writeQueueNums":4
		}
	}
}`,
		"": `{
	"dataVersion":{
		"counter":1,
		"timestamp":1700000000000
	},
	"topicConfigTable":{
		"T":{
			"order":false,
			"perm":6,
			"readQueueNums":4,
			"topicFilterType":"SINGLE_TAG",
			"topicName":"T",
			"topicSysFlag":0,
			"writeQueueNums":4
		}
	}
}`,
		"5.3": `{
	"dataVersion":{
		"counter":1,
		"stateVersion":0,
		"timestamp":1700000000000
	},
	"topicConfigTable":{
		"T":{
			"attributes":{},
			"order":false,
			"perm":6,
			"readQueueNums":4,
			"topicFilterType":"SINGLE_TAG",
			"topicName":"T",
			"topicSysFlag":0,
			"writeQueueNums":4
		}
	}
}`,
	} {
		topics := &config.Topics{Header: config.Header{Line: line, Version: new(config.DataVersion)}}
		topic := config.NewTopic("T")
		topic.ReadQueues, topic.WriteQueues = 4, 4
		topics.Table.Set("T", topic)
		topics.Version.Advance(1700000000000)
		require.Equal(t, want, string(config.Encode(topics)), line)
	}
}

func TestNewGroupHasTheMembersOfItsLine(t *testing.T) {
	groups := &config.SubscriptionGroups{Header: config.Header{Line: "5.3"}}
	groups.Table.Set("G", config.NewGroup("G"))
	requireText(t, `{
	"subscriptionGroupTable":{
		"G":{
			"attributes":{},
			"brokerId":0,
			"consumeBroadcastEnable":true,
			"consumeEnable":true,
			"consumeFromMinEnable":true,
			"consumeMessageOrderly":false,
			"consumeTimeoutMinute":15,
			"groupName":"G",
			"groupRetryPolicy":{
				"type":"CUSTOMIZED"
			},
			"groupSysFlag":0,
			"notifyConsumerIdsChangedEnable":true,
			"retryMaxTimes":16,
			"retryQueueNums":1,
			"whichBrokerWhenConsumeSlowly":1
		}
	}
}`, string(config.Encode(groups)))
	groups.Line = "3.1"
	require.NotContains(t, string(config.Encode(groups)), "notifyConsumerIdsChangedEnable")
}

func TestWhatIsNotKnownIsKept(t *testing.T) {
	const text = `{
	"aNewThing":[1,{
		"x":null
	}],
	"dataVersion":{
		"counter":3,
		"more":true,
		"timestatmp":5
	},
	"topicConfigTable":{
		"Z":{
			"future":"yes",
			"perm":6,
			"topicName":"Z"
		},
		"A":{
			"perm":2
		}
	}
}`
	topics := &config.Topics{Header: config.Header{Line: "5.3"}}
	require.NoError(t, config.Decode([]byte(text), topics))
	requireText(t, text, string(config.Encode(topics)))
	require.EqualValues(t, 5, topics.Version.Timestamp, "the old spelling")

	z, _ := topics.Table.Get("Z")
	require.EqualValues(t, 16, z.ReadQueues, "the broker's default")
	z.Order = true
	z.Attributes.Set("queue.type", "BatchCQ")
	topics.Table.Delete("A")
	topics.Table.Delete("no such topic")
	topics.Version.Advance(7)
	requireText(t, `{
	"aNewThing":[1,{
		"x":null
	}],
	"dataVersion":{
		"counter":4,
		"more":true,
		"timestatmp":7
	},
	"topicConfigTable":{
		"Z":{
			"attributes":{
				"queue.type":"BatchCQ"
			},
			"future":"yes",
			"order":true,
			"perm":6,
			"topicName":"Z"
		}
	}
}`, string(config.Encode(topics)))
}

func TestOffsetsAreSetAndRead(t *testing.T) {
	offsets := new(config.ConsumerOffsets)
	offsets.Set("T", "g", 0, 5)
	offsets.Set("T", "g", 3, 7)
	offsets.Set("%RETRY%g", "g", 0, 1)
	offsets.Set("T", "g", 0, 6)
	requireText(t, "{\n\t\"offsetTable\":{\n\t\t\"T@g\":{0:6,3:7\n\t\t},\n\t\t\"%RETRY%g@g\":{0:1\n\t\t}\n\t}\n}", string(config.Encode(offsets)))
	topic, group := config.SplitKey("%RETRY%g@g")
	require.Equal(t, "%RETRY%g", topic)
	require.Equal(t, "g", group)
	topic, group = config.SplitKey("T")
	require.Equal(t, "T", topic)
	require.Empty(t, group)
}

func TestDecodeRejectsWrongTypes(t *testing.T) {
	for _, tt := range []struct {
		table      config.Table
		text, want string
	}{
		{new(config.Topics), `7`, "not an object"},
		{new(config.Topics), `{"topicConfigTable":7}`, "topicConfigTable: not an object"},
		{new(config.Topics), `{"topicConfigTable":{"T":7}}`, "topic T: not an object"},
		{new(config.Topics), `{"topicConfigTable":{"T":{"perm":"6"}}}`, "topic T: perm: not an integer"},
		{new(config.Topics), `{"topicConfigTable":{"T":{"perm":2147483648}}}`, "topic T: perm: not an integer that fits"},
		{new(config.Topics), `{"topicConfigTable":{"T":{"order":1}}}`, "topic T: order: not true or false"},
		{new(config.Topics), `{"topicConfigTable":{"T":{"topicName":1}}}`, "topic T: topicName: not a string"},
		{new(config.Topics), `{"topicConfigTable":{"T":{"attributes":[]}}}`, "topic T: attributes: not an object"},
		{new(config.Topics), `{"topicConfigTable":{"T":{"attributes":{"a":1}}}}`, "topic T: attributes: a: not a string"},
		{new(config.Topics), `{"dataVersion":[]}`, "dataVersion: not an object"},
		{new(config.Topics), `{"dataVersion":{"counter":1.5}}`, "dataVersion: counter: not an integer"},
		{new(config.Topics), `{"dataVersion":{"timestatmp":true}}`, "dataVersion: timestatmp: not an integer"},
		{new(config.SubscriptionGroups), `{"subscriptionGroupTable":{"G":[]}}`, "group G: not an object"},
		{new(config.SubscriptionGroups), `{"subscriptionGroupTable":{"G":{"brokerId":"x"}}}`, "group G: brokerId: not an integer"},
		{new(config.ConsumerOffsets), `{"offsetTable":{"T@g":[]}}`, "T@g: not an object"},
		{new(config.ConsumerOffsets), `{"offsetTable":{"T@g":{0:"1"}}}`, "T@g: 0: not an integer"},
		{new(config.ConsumerOffsets), `{"offsetTable":{"T@g":{4294967296:1}}}`, "not a queue id"},
	} {
		require.ErrorContains(t, config.Decode([]byte(tt.text), tt.table), tt.want, tt.text)
	}
	require.NoError(t, config.Decode([]byte(`{"topicConfigTable":{"T":{"order":null}}}`), new(config.Topics)))
}

func TestOfAKeyThatIsThereTwiceTheLastCounts(t *testing.T) {
	offsets := new(config.DelayOffsets)
	require.NoError(t, config.Decode([]byte(`{"offsetTable":{1:4,2:5,"1":6}}`), offsets))
	requireText(t, "{\n\t\"offsetTable\":{1:6,2:5\n\t}\n}", string(config.Encode(offsets)))
	version := new(config.Topics)
	require.NoError(t, config.Decode([]byte(`{"dataVersion":{"counter":1,"counter":2}}`), version))
	require.EqualValues(t, 2, version.Version.Counter)
}
