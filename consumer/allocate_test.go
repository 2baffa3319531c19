package consumer_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rocketstore/rocketstore/consumer"
)

// at names a queue.
func at(topic, broker string, id int32) consumer.Queue {
	return consumer.Queue{Topic: topic, BrokerName: broker, QueueID: id}
}

// queues makes n queues of topic T over so many brokers, in order.
func queues(n, brokers int) (list []consumer.Queue) {
	for i := range n {
		list = append(list, consumer.Queue{Topic: "T", BrokerName: fmt.Sprintf("room%d@broker-%d", i%brokers, i%brokers), QueueID: int32(i / brokers)})
	}
	slices.SortFunc(list, consumer.CompareQueues)
	return list
}

func clients(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("10.0.0.%d@4711#%d", i, i*7))
	}
	slices.Sort(list)
	return list
}

func ids(list []consumer.Queue) (numbers []int32) {
	for _, q := range list {
		numbers = append(numbers, q.QueueID)
	}
	return numbers
}

// Protocol: the rule of mod, n and start, worked by hand. R-G-28.
func TestAverageSharesAreThoseOfTheRule(t *testing.T) {
	for _, tt := range []struct {
		queues, clients int
		want            [][]int32
	}{
		{4, 1, [][]int32{{0, 1, 2, 3}}},
		{4, 2, [][]int32{{0, 1}, {2, 3}}},
		{4, 3, [][]int32{{0, 1}, {2}, {3}}},
		{8, 3, [][]int32{{0, 1, 2}, {3, 4, 5}, {6, 7}}},
		{3, 5, [][]int32{{0}, {1}, {2}, nil, nil}},
		{0, 2, [][]int32{nil, nil}},
	} {
		var got [][]int32
		members := clients(tt.clients)
		for _, id := range members {
			got = append(got, ids(consumer.Average{}.Allocate("G", id, queues(tt.queues, 1), members)))
		}
		require.Equal(t, tt.want, got, "%d queues, %d clients", tt.queues, tt.clients)
	}
}

func TestCircleDealsOneByOne(t *testing.T) {
	members := clients(3)
	require.Equal(t, []int32{0, 3, 6}, ids(consumer.Circle{}.Allocate("G", members[0], queues(8, 1), members)))
	require.Equal(t, []int32{2, 5}, ids(consumer.Circle{}.Allocate("G", members[2], queues(8, 1), members)))
}

func TestOneWhoIsNotInTheListHasNoShare(t *testing.T) {
	for _, s := range strategies() {
		require.Empty(t, s.Allocate("G", "stranger", queues(8, 2), clients(3)), s.Name())
	}
}

// strategies are those that divide all queues of queues(n, 2).
func strategies() []consumer.Strategy {
	room := func(q consumer.Queue) string { return q.BrokerName[:len("room0")] }
	client := func(id string) string { return "room" + string(id[len("10.0.0.")]) }
	return []consumer.Strategy{
		consumer.Average{},
		consumer.Circle{},
		consumer.MachineRoom{Rooms: []string{"room0", "room1"}},
		consumer.ConsistentHash{},
		consumer.ConsistentHash{Points: 3},
		consumer.NearbyRoom{QueueRoom: room, ClientRoom: client},
		consumer.NearbyRoom{Within: consumer.Circle{}, QueueRoom: room, ClientRoom: client},
	}
}

// No gap and no double assignment, whatever the numbers are. R-G-28.
func TestSharesCoverAllQueuesOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := queues(rapid.IntRange(0, 60).Draw(t, "queues"), 2)
		members := clients(rapid.IntRange(1, 9).Draw(t, "clients"))
		for _, s := range strategies() {
			var got []consumer.Queue
			for _, id := range members {
				got = append(got, s.Allocate("G", id, slices.Clone(all), slices.Clone(members))...)
			}
			require.ElementsMatch(t, all, got, s.Name())
		}
	})
}

func TestFixedQueuesAreThoseOfTheTopicOnly(t *testing.T) {
	all := queues(4, 1)
	f := consumer.Fixed{Queues: []consumer.Queue{all[1], all[3], {Topic: "Other", BrokerName: "b", QueueID: 1}}}
	require.Equal(t, []int32{1, 3}, ids(f.Allocate("G", "whoever", all, nil)))
}

func TestQueuesAndNamesAreInTheOrderOfJava(t *testing.T) {
	list := []consumer.Queue{
		at("T", "b", 10), at("T", "b", 9), at("T", "a", 11), at("S", "z", 99), at("T\uFF5E", "b", 0), at("T\U0001F600", "b", 0), at("TT", "b", 0),
	}
	slices.SortFunc(list, consumer.CompareQueues)
	require.Equal(t, []consumer.Queue{
		at("S", "z", 99), at("T", "a", 11), at("T", "b", 9), at("T", "b", 10), at("TT", "b", 0), at("T\U0001F600", "b", 0), at("T\uFF5E", "b", 0),
	}, list, "a character beyond U+FFFF is two code units from D800 on, so before U+FF5E")
}

func ExampleAverage() {
	members := []string{"10.0.0.1@a", "10.0.0.1@b"}
	var all []consumer.Queue
	for id := range int32(3) {
		all = append(all, consumer.Queue{Topic: "T", BrokerName: "broker-a", QueueID: id})
	}
	for _, id := range members {
		fmt.Println(id, len(consumer.Average{}.Allocate("G", id, all, members)))
	}
	// Output:
	// 10.0.0.1@a 2
	// 10.0.0.1@b 1
}
