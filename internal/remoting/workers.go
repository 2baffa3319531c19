package remoting

import (
	"sync"
	"sync/atomic"
)

// workers run the handlers of a server's requests. A goroutine that has done one waits for the next, so that its stack, once
// grown, serves many: growing that of a new goroutine costs more than handling a small request.
type workers struct {
	jobs chan job
	idle atomic.Int32 // about how many wait
	stop chan struct{}
	once sync.Once
	all  sync.WaitGroup
}

// job is one request to handle.
type job struct {
	conn *Conn
	req  *Command
	held int64 // bytes of large frames
}

// maxIdleWorkers is how many wait at most.
const maxIdleWorkers = 128

func newWorkers() *workers { return &workers{jobs: make(chan job), stop: make(chan struct{})} }

// do handles a request in another goroutine. It never waits.
func (w *workers) do(j job) {
	if w == nil {
		first := j
		go first.run()
		return
	}
	select {
	case w.jobs <- j:
	default:
		first := j // of its own, so that a request that a waiting worker takes costs no memory
		w.all.Go(func() { w.work(first) })
	}
}

func (w *workers) work(j job) {
	for {
		j.run()
		j = job{} // an idle worker holds no memory of a request
		if w.idle.Add(1) > maxIdleWorkers {
			w.idle.Add(-1)
			return
		}
		select {
		case j = <-w.jobs:
			w.idle.Add(-1)
		case <-w.stop:
			return
		}
	}
}

func (j *job) run() {
	c := j.conn
	defer c.handlers.Done()
	c.serve(j.req)
	c.limits.requests.Add(-1)
	c.limits.bytes.Add(-j.held)
	<-c.slots
}

// close ends the workers, when no request comes any more. A second call waits for the same.
func (w *workers) close() {
	w.once.Do(func() { close(w.stop) })
	w.all.Wait()
}
