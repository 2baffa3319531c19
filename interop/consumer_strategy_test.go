//go:build interop

package interop_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumer"
)

// TestStrategiesAreThoseOfJava compares the shares of our strategies with those of the real classes of 4.9.7 and 5.3.3, on random lists.
// R-G-28.
func TestStrategiesAreThoseOfJava(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	room := func(s string) string { return strings.Split(s, "@")[0] }
	ours := map[string]consumer.Strategy{
		"average": consumer.Average{}, "circle": consumer.Circle{}, "hash": consumer.ConsistentHash{},
		"room":   consumer.MachineRoom{Rooms: []string{"r1", "r2"}},
		"nearby": consumer.NearbyRoom{QueueRoom: func(q consumer.Queue) string { return room(q.BrokerName) }, ClientRoom: room},
	}
	for _, l := range wireLines()[1:] {
		t.Run(l.version, func(t *testing.T) {
			p := l.startJava(t, t.TempDir(), true, "rocketstore.interop.StrategyDriver")
			random := rand.New(rand.NewPCG(1, 2))
			for range 60 {
				queues, clients := randomGroup(random)
				self := clients[random.IntN(len(clients))]
				var names []string
				for _, q := range queues {
					names = append(names, fmt.Sprintf("%s:%d", q.BrokerName, q.QueueID))
				}
				random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
				for name, s := range ours {
					want := p.do(t, "allocate", name, self, strings.Join(clients, ","), strings.Join(names, ","))
					var got []string
					for _, q := range s.Allocate("G", self, queues, clients) {
						got = append(got, fmt.Sprintf("%s:%d", q.BrokerName, q.QueueID))
					}
					require.Equal(t, want, got, "%s, self %s of %v, queues %v", name, self, clients, names)
				}
			}
		})
	}
}

// randomGroup makes sorted lists of queues and clients in up to four rooms.
func randomGroup(random *rand.Rand) (queues []consumer.Queue, clients []string) {
	for b := range 1 + random.IntN(4) {
		for id := range 1 + random.IntN(13) {
			queues = append(queues, consumer.Queue{Topic: "T", BrokerName: fmt.Sprintf("r%d@broker-%d", b, b%3), QueueID: int32(id)})
		}
	}
	for i := range 1 + random.IntN(6) {
		clients = append(clients, fmt.Sprintf("r%d@10.0.0.%d#%d", random.IntN(4), random.IntN(200), i))
	}
	slices.SortFunc(queues, consumer.CompareQueues)
	slices.Sort(clients)
	return queues, clients
}
