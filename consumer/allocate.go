package consumer

import (
	"crypto/md5" //nolint:gosec // not for security: the ring must be the one of the Java clients
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
)

// Strategy computes the share of one member of a group. Each member computes its own, so all must use the same strategy on the
// same sorted lists; then the shares are disjoint and cover all queues. A member that is not in the list has no share.
type Strategy interface {
	// Name is the original's, by which running info names it.
	Name() string
	// Allocate chooses from queues, which are those of one topic, for client self. Both lists are sorted and not changed.
	Allocate(group, self string, queues []Queue, clients []string) []Queue
}

// The strategies of the original. Average is the default, there and here.
var (
	_ Strategy = Average{}
	_ Strategy = Circle{}
	_ Strategy = Fixed{}
	_ Strategy = MachineRoom{}
	_ Strategy = NearbyRoom{}
	_ Strategy = ConsistentHash{}
)

// Average gives each member a run of neighbouring queues; the first ones get one more where the division leaves a rest
// (AllocateMessageQueueAveragely).
type Average struct{}

// Name implements [Strategy].
func (Average) Name() string { return "AVG" }

// Allocate implements [Strategy].
func (Average) Allocate(_, self string, queues []Queue, clients []string) []Queue {
	k := slices.Index(clients, self)
	if k < 0 || len(queues) == 0 {
		return nil
	}
	mod, n := len(queues)%len(clients), 1
	if len(queues) > len(clients) {
		n = len(queues) / len(clients)
		if k < mod {
			n++
		}
	}
	start := k * n
	if k >= mod {
		start += mod
	}
	if start >= len(queues) {
		return nil
	}
	return slices.Clone(queues[start : start+min(n, len(queues)-start)])
}

// Circle deals the queues out one by one (AllocateMessageQueueAveragelyByCircle).
type Circle struct{}

// Name implements [Strategy].
func (Circle) Name() string { return "AVG_BY_CIRCLE" }

// Allocate implements [Strategy].
func (Circle) Allocate(_, self string, queues []Queue, clients []string) (share []Queue) {
	k := slices.Index(clients, self)
	if k < 0 {
		return nil
	}
	for i := k; i < len(queues); i += len(clients) {
		share = append(share, queues[i])
	}
	return share
}

// Fixed gives this member the same queues always, whoever else is there (AllocateMessageQueueByConfig).
type Fixed struct{ Queues []Queue }

// Name implements [Strategy].
func (Fixed) Name() string { return "CONFIG" }

// Allocate implements [Strategy]. Queues of other topics are left out.
func (f Fixed) Allocate(_, _ string, queues []Queue, _ []string) (share []Queue) {
	for _, q := range queues {
		if slices.Contains(f.Queues, q) {
			share = append(share, q)
		}
	}
	return share
}

// MachineRoom uses only brokers named "room@name" whose room is in the list, and divides their queues evenly
// (AllocateMessageQueueByMachineRoom).
type MachineRoom struct{ Rooms []string }

// Name implements [Strategy].
func (MachineRoom) Name() string { return "MACHINE_ROOM" }

// Allocate implements [Strategy].
func (m MachineRoom) Allocate(_, self string, queues []Queue, clients []string) []Queue {
	k := slices.Index(clients, self)
	if k < 0 {
		return nil
	}
	var ours []Queue
	for _, q := range queues {
		if room, ok := roomOf(q.BrokerName); ok && slices.Contains(m.Rooms, room) {
			ours = append(ours, q)
		}
	}
	n, rest := len(ours)/len(clients), len(ours)%len(clients)
	share := slices.Clone(ours[k*n : (k+1)*n])
	if k < rest {
		share = append(share, ours[k+n*len(clients)])
	}
	return share
}

// roomOf reads "room@name"; as Java's split has it, what follows a second @ must be empty.
func roomOf(broker string) (string, bool) {
	part := strings.Split(strings.TrimRight(broker, "@"), "@")
	if len(part) != 2 {
		return "", false
	}
	return part[0], true
}

// NearbyRoom divides the queues of each room among the members in that room, and those of rooms without a member among
// all (AllocateMachineRoomNearby).
type NearbyRoom struct {
	// Within divides what belongs to one room. Default [Average].
	Within Strategy
	// QueueRoom and ClientRoom say where a broker and a member are; "" is a room as well. Both are needed.
	QueueRoom  func(Queue) string
	ClientRoom func(id string) string
}

// Name implements [Strategy].
func (n NearbyRoom) Name() string { return "MACHINE_ROOM_NEARBY-" + n.within().Name() }

func (n NearbyRoom) within() Strategy {
	if n.Within == nil {
		return Average{}
	}
	return n.Within
}

// Allocate implements [Strategy].
func (n NearbyRoom) Allocate(group, self string, queues []Queue, clients []string) (share []Queue) {
	if !slices.Contains(clients, self) {
		return nil
	}
	queuesIn, clientsIn := map[string][]Queue{}, map[string][]string{}
	var rooms []string
	for _, q := range queues {
		room := n.QueueRoom(q)
		if _, known := queuesIn[room]; !known {
			rooms = append(rooms, room)
		}
		queuesIn[room] = append(queuesIn[room], q)
	}
	for _, c := range clients {
		room := n.ClientRoom(c)
		clientsIn[room] = append(clientsIn[room], c)
	}
	own := n.ClientRoom(self)
	share = n.within().Allocate(group, self, queuesIn[own], clientsIn[own])
	slices.SortFunc(rooms, compareText)
	for _, room := range rooms {
		if len(clientsIn[room]) == 0 {
			share = append(share, n.within().Allocate(group, self, queuesIn[room], clients)...)
		}
	}
	return share
}

// ConsistentHash moves few queues when members come and go: each member has points on a ring, and a queue belongs to the
// next point (AllocateMessageQueueConsistentHash).
type ConsistentHash struct {
	// Points are those of each member. Default 10.
	Points int
}

// Name implements [Strategy].
func (ConsistentHash) Name() string { return "CONSISTENT_HASH" }

// point is a place on the ring.
type point struct {
	hash   uint32
	client string
}

// Allocate implements [Strategy].
func (c ConsistentHash) Allocate(_, self string, queues []Queue, clients []string) (share []Queue) {
	if !slices.Contains(clients, self) {
		return nil
	}
	ring := c.ring(clients)
	for _, q := range queues {
		at, _ := slices.BinarySearchFunc(ring, ringHash(javaName(q)), func(p point, h uint32) int {
			if p.hash < h {
				return -1
			}
			return 1 // the first that is not below
		})
		if ring[at%len(ring)].client == self {
			share = append(share, q)
		}
	}
	return share
}

// ring is the points by hash; of two that fall together the later one stays, as in Java's map.
func (c ConsistentHash) ring(clients []string) []point {
	const usual = 10
	n := c.Points
	if n <= 0 {
		n = usual
	}
	byHash := make(map[uint32]string, n*len(clients))
	for _, id := range clients {
		for i := range n {
			byHash[ringHash(id+"-"+strconv.Itoa(i))] = id
		}
	}
	ring := make([]point, 0, len(byHash))
	for h, id := range byHash {
		ring = append(ring, point{h, id})
	}
	slices.SortFunc(ring, func(a, b point) int {
		if a.hash < b.hash {
			return -1
		}
		return 1
	})
	return ring
}

// ringHash is the first four bytes of the MD5 sum.
func ringHash(s string) uint32 {
	sum := md5.Sum([]byte(s)) //nolint:gosec // as above
	return binary.BigEndian.Uint32(sum[:])
}
