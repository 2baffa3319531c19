package producer_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/internal/client"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/producer"
)

func TestBodiesAreCompressedFromTheThresholdOn(t *testing.T) { // R-D-020, R-D-030, R-D-031, R-D-033, R-D-090
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		for i, tt := range []struct {
			o    producer.Options
			flag message.SysFlag
		}{
			{producer.Options{}, message.FlagCompressed | message.FlagZLIB},
			{producer.Options{CompressLevel: 9}, message.FlagCompressed | message.FlagZLIB},
			{producer.Options{CompressLevel: -1}, message.FlagCompressed | message.FlagZLIB},
			{producer.Options{Compression: producer.LZ4}, message.FlagCompressed | message.FlagLZ4},
			{producer.Options{Compression: producer.ZSTD}, message.FlagCompressed | message.FlagZSTD},
			{producer.Options{Dialect: dialect.V31()}, message.FlagCompressed},
		} {
			tt.o.Group = "PG" + strconv.Itoa(i)
			p := w.start(tt.o)
			for range 2 { // the second one reuses the compressor
				before := len(a.got())
				long := strings.Repeat("x", 4096)
				m := msg("T", long)
				_, err := p.Send(t.Context(), m)
				require.NoError(t, err)
				require.Equal(t, long, string(m.Body))
				_, err = p.Send(t.Context(), msg("T", long[1:]))
				require.NoError(t, err)
				reqs := a.got()[before:]
				flags := reqs[0].Fields.Get("f")
				if flags == "" {
					flags = reqs[0].Fields.Get("sysFlag")
				}
				require.Equal(t, strconv.Itoa(int(tt.flag)), flags)
				plain, err := client.Decompress(reqs[0].Body, tt.flag, 5000)
				require.NoError(t, err)
				require.Equal(t, long, string(plain))
				require.Equal(t, long[1:], string(reqs[1].Body))
			}
		}
	})
}

func TestABodyThatDoesNotShrinkIsSentAsTheOptionSays(t *testing.T) { // R-D-034
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		random := make([]byte, 8192)
		r := rand.New(rand.NewPCG(1, 2))
		for i := range random {
			random[i] = byte(r.Uint32())
		}
		for i, keep := range []bool{false, true} {
			_, err := w.start(producer.Options{Group: "P" + strconv.Itoa(i), KeepLarger: keep}).Send(t.Context(), msg("T", string(random)))
			require.NoError(t, err)
		}
		require.Greater(t, len(a.got()[0].Body), len(random))
		require.Equal(t, random, a.got()[1].Body)
	})
}

func TestABatchIsOneRequest(t *testing.T) { // R-D-032, R-D-095
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		p := w.start(producer.Options{})
		batch := []*message.Message{msg("T", "one"), msg("T", strings.Repeat("2", 5000)), msg("T", "three")}
		require.NoError(t, batch[0].SetTag("A"))
		batch[2].Flag = 3
		r, err := p.SendBatch(t.Context(), batch)
		require.NoError(t, err)
		ids := strings.Split(r.MessageID, ",")
		require.Len(t, ids, 3)
		req := a.got()[0]
		require.Equal(t, remoting.SendBatchMessage, req.Code)
		require.Equal(t, "true", req.Fields.Get("m"))
		require.Equal(t, "0", req.Fields.Get("f"))
		require.Equal(t, map[string]string{"WAIT": "true"}, properties(req))
		entries := readBatch(t, req.Body)
		require.Len(t, entries, 3)
		for i, e := range entries {
			require.Equal(t, batch[i].Body, e.Body)
			require.Equal(t, batch[i].Flag, e.Flag)
			require.Equal(t, ids[i], e.Property("UNIQ_KEY"))
			require.Equal(t, "true", e.Property("WAIT"))
		}
		require.Equal(t, "A", entries[0].Tag())
		require.EqualValues(t, 3, p.Stats().Messages)
		done := make(chan outcome, 1)
		require.NoError(t, p.AsyncBatch(t.Context(), batch, into(done)))
		require.NoError(t, (<-done).err)
		_, err = p.SendBatchTo(t.Context(), batch, r.Queue)
		require.NoError(t, err)
		require.Len(t, a.got(remoting.SendBatchMessage), 3)
	})
}

// readBatch takes a batch's body apart.
func readBatch(t testing.TB, b []byte) (list []message.Message) {
	t.Helper()
	number := func(n int) int {
		v := 0
		for _, c := range b[:n] {
			v = v<<8 | int(c)
		}
		b = b[n:]
		return v
	}
	for len(b) > 0 {
		whole := len(b)
		size := number(4)
		require.Zero(t, number(8))
		m := message.Message{Flag: int32(number(4))}
		n := number(4)
		m.Body, b = b[:n], b[n:]
		n = number(2)
		m.Properties, b = message.Properties(b[:n]), b[n:]
		require.Equal(t, size, whole-len(b))
		list = append(list, m)
	}
	return list
}

func TestABatchThatCannotBeStoredAsOneIsRefused(t *testing.T) { // R-D-096
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.start(producer.Options{MaxMessageSize: 100})
		delayed, waits, prepared, retried := msg("T", "x"), msg("T", "x"), msg("T", "x"), msg("%RETRY%g", "x")
		delayed.SetDelayLevel(1)
		waits.SetWait(false)
		var err error
		prepared.Properties, err = message.NewProperties("TRAN_MSG", "true")
		require.NoError(t, err)
		for _, batch := range [][]*message.Message{
			nil,
			{msg("T", "x"), msg("U", "x")},
			{msg("T", "x"), delayed},
			{msg("T", "x"), waits},
			{prepared},
			{retried},
			{msg("T", "x"), nil},
			{nil},
			{msg("T", "x"), msg("T", "")},
			{msg("T", strings.Repeat("x", 60)), msg("T", strings.Repeat("x", 60))},
			{msg("a b", "x")},
		} {
			_, err := p.SendBatch(t.Context(), batch)
			require.ErrorIs(t, err, producer.ErrInvalidMessage)
			require.ErrorIs(t, p.AsyncBatch(t.Context(), batch, nil), producer.ErrInvalidMessage)
		}
		require.Zero(t, w.net.Dials("ns:9876"))
	})
}

func TestAListIsSplitIntoBatches(t *testing.T) { // R-D-098
	var list []*message.Message
	for i := range 10 {
		list = append(list, msg("T", strings.Repeat("x", i*100+1)))
	}
	var sizes []int
	var again []*message.Message
	for batch := range producer.Split(list, 1000) {
		sizes = append(sizes, len(batch))
		again = append(again, batch...)
	}
	require.Equal(t, list, again)
	require.Equal(t, []int{4, 1, 1, 1, 1, 1, 1}, sizes)
	for range producer.Split(list, 1000) {
		break
	}
	require.Empty(t, slices.Collect(producer.Split(nil, 10)))
}

func TestASelectorChoosesTheQueue(t *testing.T) { // R-D-042, R-D-106, R-D-108, R-D-110
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.broker("a"), w.broker("b")
		w.topic("T", 4, a, b)
		p := w.start(producer.Options{})
		where := map[string]producer.Queue{}
		for range 5 {
			for key := range 100 {
				r, err := p.SendSelect(t.Context(), msg("T", "x"), producer.ByKey, "key"+strconv.Itoa(key))
				require.NoError(t, err)
				if q, seen := where[strconv.Itoa(key)]; seen {
					require.Equal(t, q, r.Queue)
				}
				where[strconv.Itoa(key)] = r.Queue
			}
		}
		first := func(queues []producer.Queue, _ *message.Message, arg any) (producer.Queue, error) {
			q := queues[arg.(int)]
			clear(queues) // its own copy
			return q, nil
		}
		for range 2 {
			r, err := p.SendSelect(t.Context(), msg("T", "x"), first, 5)
			require.NoError(t, err)
			require.Equal(t, producer.Queue{Topic: "T", BrokerName: "b", QueueID: 1}, r.Queue)
		}
		done := make(chan outcome, 1)
		require.NoError(t, p.AsyncSelect(t.Context(), msg("T", "x"), first, 2, into(done)))
		require.EqualValues(t, 2, (<-done).result.Queue.QueueID)
		require.NoError(t, p.OnewaySelect(t.Context(), msg("T", "x"), first, 3))
		synctest.Wait()
		sent := len(a.got()) + len(b.got())
		for name, sel := range map[string]producer.Selector{
			"error": func([]producer.Queue, *message.Message, any) (producer.Queue, error) {
				return producer.Queue{}, errors.New("no")
			},
			"panic": func([]producer.Queue, *message.Message, any) (producer.Queue, error) { panic("no") },
			"none":  func([]producer.Queue, *message.Message, any) (producer.Queue, error) { return producer.Queue{}, nil },
		} {
			_, err := p.SendSelect(t.Context(), msg("T", "x"), sel, nil)
			require.ErrorIs(t, err, producer.ErrSelector, name)
		}
		require.Equal(t, sent, len(a.got())+len(b.got()))
	})
}

func TestBuiltInSelectorsTakeAnyArgument(t *testing.T) { // R-D-107
	queues := []producer.Queue{{QueueID: 0}, {QueueID: 1}, {QueueID: 2}}
	for _, tt := range []struct {
		arg  any
		want int32
	}{{7, 1}, {-7, 1}, {int32(-5), 2}, {int64(math.MinInt64), 0}, {int64(9), 0}} {
		q, err := producer.ByKey(queues, nil, tt.arg)
		require.NoError(t, err)
		require.Equal(t, tt.want, q.QueueID, "%v", tt.arg)
	}
	for _, sel := range []producer.Selector{producer.ByKey, producer.ByRandom} {
		q, err := sel(queues, nil, "text")
		require.NoError(t, err)
		require.Contains(t, queues, q)
	}
}

func TestAChosenQueueIsTriedOnce(t *testing.T) { // R-D-109
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.broker("a"), w.broker("b")
		w.topic("T", 4, a, b)
		a.refuses(remoting.SystemError)
		q := producer.Queue{Topic: "T", BrokerName: "a", QueueID: 2}
		sel := func([]producer.Queue, *message.Message, any) (producer.Queue, error) { return q, nil }
		p := w.start(producer.Options{})
		_, err := p.SendTo(t.Context(), msg("T", "x"), q)
		require.Error(t, err)
		_, err = p.SendSelect(t.Context(), msg("T", "x"), sel, nil)
		require.Error(t, err)
		require.Len(t, a.got(), 2)
		require.Empty(t, b.got())
		again := w.start(producer.Options{Group: "P2", RetrySameQueue: true})
		_, err = again.SendTo(t.Context(), msg("T", "x"), q)
		require.Error(t, err)
		_, err = again.SendSelect(t.Context(), msg("T", "x"), sel, nil)
		require.Error(t, err)
		require.Len(t, a.got(), 8)
		for _, req := range a.got() {
			require.Equal(t, "2", req.Fields.Get("e"))
		}
		_, err = p.SendTo(t.Context(), msg("T", "x"), producer.Queue{Topic: "U", BrokerName: "a"})
		require.ErrorIs(t, err, producer.ErrSelector)
		done := make(chan outcome, 1)
		require.NoError(t, p.AsyncTo(t.Context(), msg("T", "x"), q, into(done)))
		require.Error(t, (<-done).err)
		require.NoError(t, p.OnewayTo(t.Context(), msg("T", "x"), q))
		synctest.Wait()
		require.Len(t, a.got(), 10)
	})
}

func TestUsersPropertiesTravelUnchanged(t *testing.T) { // R-D-001, R-D-003, R-D-009, R-D-035
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		p := w.start(producer.Options{})
		m := msg("T", "x")
		m.Flag = math.MinInt32
		m.SetDelayLevel(3)
		m.SetWait(false)
		require.NoError(t, m.SetKeys("k1", "k2"))
		require.NoError(t, m.SetProperty("mine", "ä b"))
		var err error
		m.Properties, err = m.Properties.Set("UNIQ_KEY", "given")
		require.NoError(t, err)
		r, err := p.Send(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, "given", r.MessageID) // R-D-037
		require.Equal(t, map[string]string{"DELAY": "3", "WAIT": "false", "KEYS": "k1 k2", "mine": "ä b", "UNIQ_KEY": "given"}, properties(a.got()[0]))
		require.Equal(t, "-2147483648", a.got()[0].Fields.Get("h"))
	})
}

// recorder is a hook that notes what it sees.
type recorder struct {
	name string
	log  *[]string
	fail bool
}

func (h recorder) Name() string { return h.name }

func (h recorder) BeforeSend(c *producer.SendContext) error {
	*h.log = append(*h.log, h.name+" before "+c.Broker)
	if h.fail {
		panic("in the hook")
	}
	return nil
}

func (h recorder) AfterSend(c *producer.SendContext) error {
	*h.log = append(*h.log, fmt.Sprintf("%s after %v %v %d", h.name, c.Result != nil, c.Err != nil, c.Tries))
	if h.fail {
		return errors.New("of the hook")
	}
	return nil
}

func TestHooksRunInOrderAndHarmNothing(t *testing.T) { // R-A-09, R-A-40, R-D-125
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		var log []string
		p := w.start(producer.Options{Hooks: []producer.SendHook{recorder{"one", &log, true}, recorder{"two", &log, false}}})
		_, err := p.Send(t.Context(), msg("T", "x"))
		require.NoError(t, err)
		require.Equal(t, []string{"one before " + a.addr, "two before " + a.addr, "one after true false 1", "two after true false 1"}, log)
		log = nil
		a.refuses(remoting.SystemError)
		_, err = p.Send(t.Context(), msg("T", "x"))
		require.Error(t, err)
		require.Equal(t, []string{"one before " + a.addr, "two before " + a.addr, "one after false true 3", "two after false true 3"}, log)
		log = nil
		_, err = p.Send(t.Context(), msg("U", "x"))
		require.Error(t, err)
		require.Equal(t, []string{"one before ", "two before ", "one after false true 0", "two after false true 0"}, log)
		log = nil
		done := make(chan outcome, 1)
		require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
		require.Error(t, (<-done).err)
		require.Equal(t, []string{"one before " + a.addr, "two before " + a.addr, "one after false true 1", "two after false true 1"}, log)
	})
}
