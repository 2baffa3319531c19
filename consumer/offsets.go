package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/rocketstore/rocketstore/internal/client"
)

// offsetStore keeps the offsets of a group.
type offsetStore interface {
	// read gives the offset that is stored for a queue. client.ErrNoOffset says that there is none; any other error says
	// nothing about it, and the queue must not be begun anywhere.
	read(ctx context.Context, q Queue) (int64, error)
	// write stores offsets; with wait it returns when they are stored. Errors of single queues do not keep the others back.
	write(ctx context.Context, offsets map[Queue]int64, wait bool) error
}

// groupStore keeps the offsets with the brokers, where all members find them.
type groupStore struct {
	net   *client.Client
	group string
}

func (s *groupStore) read(ctx context.Context, q Queue) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, offsetTimeout)
	defer cancel()
	return s.net.Offset(ctx, q, s.group)
}

// offsetTimeout limits one question for an offset, as in the original.
const offsetTimeout = 5 * time.Second

func (s *groupStore) write(ctx context.Context, offsets map[Queue]int64, wait bool) error {
	var errs []error
	var mu sync.Mutex
	var all sync.WaitGroup
	for q, offset := range offsets {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, offsetTimeout)
			defer cancel()
			if err := s.net.CommitOffset(ctx, q, s.group, offset, wait); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("offset %d of queue %v: %w", offset, q, err))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// broadcastStore keeps the offsets of this member alone, in a file.
type broadcastStore struct {
	files   *localOffsets
	mu      sync.Mutex
	offsets map[Queue]int64
}

func openBroadcastStore(files *localOffsets) (*broadcastStore, error) {
	offsets, err := files.load()
	if err != nil {
		return nil, fmt.Errorf("offsets of a broadcast consumer: %w", err)
	}
	return &broadcastStore{files: files, offsets: offsets}, nil
}

func (s *broadcastStore) read(_ context.Context, q Queue) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	offset, ok := s.offsets[q]
	if !ok {
		return 0, client.ErrNoOffset
	}
	return offset, nil
}

// write keeps the offsets of queues that are not held now: they may come back.
func (s *broadcastStore) write(_ context.Context, offsets map[Queue]int64, _ bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.offsets, offsets)
	return s.files.save(s.offsets)
}

// save stores the offsets of all queues that are held.
func (c *Consumer) save(ctx context.Context) {
	offsets := map[Queue]int64{}
	for _, p := range c.held() {
		if at := p.at.Load(); at >= 0 {
			offsets[p.queue] = at
		}
	}
	if len(offsets) == 0 {
		return
	}
	if err := c.store.write(ctx, offsets, false); err != nil {
		c.failed("offsets not stored", err)
	}
}

// noOffset says whether an error is that the group has no offset.
func noOffset(err error) bool { return errors.Is(err, client.ErrNoOffset) }

// startOffset is where a queue that this member gets is begun. A place that is computed is stored at once: were the process killed
// before the first save, another member would compute it anew, and with FromLast skip what came between.
func (c *Consumer) startOffset(ctx context.Context, q Queue) (int64, error) {
	offset, stored, err := c.beginning(ctx, q)
	if err != nil || stored {
		return offset, err
	}
	return offset, c.store.write(ctx, map[Queue]int64{q: offset}, true)
}

// beginning is where a queue is begun: at the offset that is stored, or else at the computed place.
func (c *Consumer) beginning(ctx context.Context, q Queue) (offset int64, stored bool, err error) {
	if !c.fresh {
		if offset, err = c.store.read(ctx, q); err == nil || !noOffset(err) {
			return offset, err == nil, err
		}
	}
	offset, err = c.firstOffset(ctx, q)
	return offset, false, err
}

// firstOffset is where the group begins a queue that it has no offset of.
func (c *Consumer) firstOffset(ctx context.Context, q Queue) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, offsetTimeout)
	defer cancel()
	retry := q.Topic == c.retry
	switch {
	case c.opts.From == FromFirst, c.opts.From == FromLast && retry:
		return 0, nil // where the queue begins later, the answer to the pull says so
	case c.opts.From == FromLast, retry:
		return c.net.MaxOffset(ctx, q)
	default:
		return c.net.OffsetAt(ctx, q, c.opts.Since.UnixMilli())
	}
}
