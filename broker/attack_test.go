package broker_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// with is a request with fields given as name and value in turn.
func with(code int32, pairs ...string) *remoting.Command {
	req := remoting.NewRequest(code)
	for i := 0; i < len(pairs); i += 2 {
		req.Fields = append(req.Fields, remoting.String(pairs[i], pairs[i+1]))
	}
	return req
}

// changed is a good request with some fields that are not; without a value they are left out.
func changed(req *remoting.Command, pairs ...string) *remoting.Command {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			req.Fields.Delete(pairs[i])
			continue
		}
		req.Fields.Set(pairs[i], pairs[i+1])
	}
	return req
}

func withText(req *remoting.Command, body string) *remoting.Command {
	req.Body = []byte(body)
	return req
}

// Values that no number of its kind can be are refused with 1, as where the original's parser throws; those that can be get the
// code of what they mean. The remark says which field it was (protocol.md 4.2, 5.5, R-D-134, R-G-14).
func TestFieldsThatLie(t *testing.T) {
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a", "b")
		p.ask(remoting.CreateTopic, with(0, "topic", "Closed", "defaultTopic", "TBW102", "readQueueNums", "0", "writeQueueNums", "0", "perm", "6").Fields...)
		send := func(pairs ...string) *remoting.Command {
			return changed(outgoing{topic: "T", body: "x"}.request(remoting.SendMessageV2), pairs...)
		}
		pull := func(pairs ...string) *remoting.Command {
			return changed(pulling{topic: "T", flags: subscribes}.request(), pairs...)
		}
		for name, tt := range map[string]struct {
			req    *remoting.Command
			code   int32
			remark string
		}{
			"queue id of 33 bits":          {send("e", "4294967296"), remoting.SystemError, "e is no number"},
			"queue id that is none":        {send("e", "zero"), remoting.SystemError, `e is no number: "zero"`},
			"largest queue id":             {send("e", "2147483647"), remoting.SystemError, "queueId[2147483647]"},
			"smallest queue id":            {send("e", "-2147483648"), remoting.Success, ""},
			"no queue id":                  {send("e", ""), remoting.SystemError, "e is missing"},
			"no topic":                     {send("b", ""), remoting.SystemError, "b is missing"},
			"flags of another size":        {send("f", "1e3"), remoting.SystemError, "f is no number"},
			"addresses that are not IPv6":  {send("f", "48"), remoting.Success, ""},
			"an inner batch":               {send("f", "128"), remoting.MessageIllegal, "batch"},
			"a rollback":                   {send("f", "12"), remoting.MessageIllegal, "END_TRANSACTION"},
			"all flags":                    {send("f", "2147483647"), remoting.MessageIllegal, ""},
			"a topic in another case":      {send("b", "t\x00"), remoting.SystemError, "illegal characters"},
			"a topic of a mebibyte":        {send("b", strings.Repeat("t", 1<<20)), remoting.SystemError, "longer"},
			"a new topic without queues":   {send("b", "New", "d", "0", "e", "-1"), remoting.SystemError, "would have 0 queues"},
			"a new topic with less":        {send("b", "New", "d", "-7", "e", "-1"), remoting.SystemError, "would have -7 queues"},
			"any queue of a topic of none": {send("b", "Closed", "e", "-1"), remoting.SystemError, "no queue"},
			"a topic that is its default":  {send("b", "New", "c", "New"), remoting.TopicNotExist, "New"},
			"delay that is no number":      {send("i", "DELAY\x01soon\x02"), remoting.SystemError, `"soon"`},
			"delay of 33 bits":             {send("i", "DELAY\x014294967299\x02"), remoting.SystemError, "DELAY"},
			"delay of nothing":             {send("i", "DELAY\x01\x02"), remoting.Success, ""}, // which is no property, as in the original
			"delay below none":             {send("i", "DELAY\x01-3\x02"), remoting.Success, ""},
			"properties without a value":   {send("i", "TAGS\x02\x01\x02\x01"), remoting.Success, ""},
			"a count below none":           {send("j", "-1"), remoting.Success, ""},
			"a retry of no group":          {send("b", "%RETRY%"), remoting.SubscriptionGroupNotExist, "group not exist"},
			"offset beyond all ends":       {pull("queueOffset", "9223372036854775807"), remoting.PullOffsetMoved, ""},
			"offset before all":            {pull("queueOffset", "-9223372036854775808"), remoting.PullOffsetMoved, ""},
			"offset of 64 bits":            {pull("queueOffset", "9223372036854775808"), remoting.SystemError, "queueOffset is no number"},
			"queue before the first":       {pull("queueId", "-1"), remoting.SystemError, "queueId[-1]"},
			"no messages":                  {pull("maxMsgNums", "0"), remoting.Success, ""},
			"less than no messages":        {pull("maxMsgNums", "-2147483648"), remoting.Success, ""},
			"all messages":                 {pull("maxMsgNums", "2147483647"), remoting.Success, ""},
			"a group that is a path":       {pull("consumerGroup", "../../etc"), remoting.SubscriptionGroupNotExist, ".."},
			"a group of a mebibyte":        {pull("consumerGroup", strings.Repeat("g", 1<<20)), remoting.SubscriptionGroupNotExist, "ggg"},
			"no group":                     {pull("consumerGroup", ""), remoting.SystemError, "consumerGroup is missing"},
			"an unknown way to filter":     {pull("expressionType", "XPATH"), remoting.SystemError, "filter"},
			"a wait for ever":              {pull("suspendTimeoutMillis", "9223372036854775807", "sysFlag", "6"), remoting.Success, ""},
			"a wait below none":            {pull("suspendTimeoutMillis", "-1", "sysFlag", "6", "queueOffset", "99"), remoting.PullOffsetMoved, ""},
			"end of an absent queue":       {with(remoting.GetMaxOffset, "topic", "T", "queueId", "-5"), remoting.Success, ""},
			"time of an absent queue":      {with(remoting.SearchOffsetByTimestamp, "topic", "../T", "queueId", "7", "timestamp", "-9223372036854775808"), remoting.Success, ""},
			"last time there is":           {with(remoting.SearchOffsetByTimestamp, "topic", "T", "queueId", "0", "timestamp", "9223372036854775807", "boundaryType", "UPPER"), remoting.Success, ""},
			"a record before the log":      {with(remoting.ViewMessageByID, "offset", "-1"), remoting.SystemError, "can not find message by the offset, -1"},
			"a record behind the log":      {with(remoting.ViewMessageByID, "offset", "9223372036854775807"), remoting.SystemError, "can not find message"},
			"the middle of a record":       {with(remoting.ViewMessageByID, "offset", "7"), remoting.SystemError, "can not find message"},
			"no keys":                      {with(remoting.QueryMessage, "topic", "T", "key", "", "maxNum", "-1", "beginTimestamp", "9", "endTimestamp", "-9"), remoting.QueryNotFound, "can not find"},
			"sent back from nowhere":       {with(remoting.ConsumerSendMessageBack, "offset", "-1", "group", "TOOLS_CONSUMER", "delayLevel", "0"), remoting.SystemError, "look message by offset failed, -1"},
			"sent back from a record":      {with(remoting.ConsumerSendMessageBack, "offset", "3", "group", "TOOLS_CONSUMER", "delayLevel", "0"), remoting.SystemError, "look message by offset failed, 3"},
			"sent back by nobody":          {with(remoting.ConsumerSendMessageBack, "offset", "0", "group", "../x", "delayLevel", "0"), remoting.SubscriptionGroupNotExist, "../x"},
			"committed behind all":         {with(remoting.UpdateConsumerOffset, "topic", "T", "consumerGroup", "CG", "queueId", "0", "commitOffset", "-1"), remoting.SystemError, "offset -1"},
			"committed for a path":         {with(remoting.UpdateConsumerOffset, "topic", "T", "consumerGroup", "a/b", "queueId", "0", "commitOffset", "1"), remoting.SystemError, "a/b"},
			"a transaction that is none":   {with(remoting.EndTransaction, "producerGroup", "PG", "tranStateTableOffset", "0", "commitLogOffset", "0", "commitOrRollback", "8"), remoting.SystemError, ""},
			"a transaction behind the log": {with(remoting.EndTransaction, "producerGroup", "PG", "tranStateTableOffset", "0", "commitLogOffset", "9223372036854775807", "commitOrRollback", "12"), remoting.SystemError, ""},
			"a topic of two milliard":      {with(remoting.CreateTopic, "topic", "Huge", "readQueueNums", "2147483647", "writeQueueNums", "1", "perm", "6"), remoting.SystemError, "2147483647 read"},
			"a topic of less than none":    {with(remoting.CreateTopic, "topic", "Huge", "readQueueNums", "1", "writeQueueNums", "-1", "perm", "6"), remoting.SystemError, "-1 write"},
			"a topic with all permissions": {with(remoting.CreateTopic, "topic", "Huge", "readQueueNums", "1", "writeQueueNums", "1", "perm", "255"), remoting.SystemError, "perm 255"},
			"a heartbeat of another kind":  {withText(with(remoting.Heartbeat), `{"clientID":"c","consumerDataSet":{}}`), remoting.SystemError, "an array is expected"},
			"a heartbeat of nothing":       {with(remoting.Heartbeat), remoting.SystemError, "not JSON"},
			"a heartbeat of holes":         {withText(with(remoting.Heartbeat), `{"clientID":null,"producerDataSet":[null],"consumerDataSet":[null,{"groupName":null}]}`), remoting.Success, ""},
			"a heartbeat of a pit":         {withText(with(remoting.Heartbeat), `{"x":`+strings.Repeat("[", 1<<19)), remoting.SystemError, "nested too deep"},
			"locks of another kind":        {withText(with(remoting.LockBatchQueues), `{"consumerGroup":"G","clientId":"c","mqSet":[7]}`), remoting.SystemError, "an object is expected"},
			"locks of no queue that is":    {withText(with(remoting.LockBatchQueues), `{"consumerGroup":"G","clientId":"c","mqSet":[{"topic":"T","queueId":-1},{}]}`), remoting.Success, ""},
			"a group of another kind":      {withText(with(remoting.CreateSubscriptionGroup), `[]`), remoting.SystemError, "an object is expected"},
			"settings that are none":       {withText(with(remoting.UpdateBrokerConfig), "\x00\xff=\n=\n"), remoting.SystemError, ""},
			"a permission between":         {withText(with(remoting.UpdateBrokerConfig), "brokerPermission=5\n"), remoting.SystemError, "permission 5"},
			"a question to nobody":         {with(remoting.GetConsumerRunningInfo, "consumerGroup", "CG", "clientId", "c"), remoting.SystemError, "not online"},
			"a code below all":             {with(-1), remoting.RequestCodeNotSupported, "request type -1 not supported"},
			"the last code":                {with(math.MaxInt32), remoting.RequestCodeNotSupported, "not supported"},
		} {
			resp := p.send(tt.req)
			require.Equal(t, tt.code, resp.Code, "%s: %s", name, resp.Remark)
			require.Contains(t, resp.Remark, tt.remark, name)
			require.NotContains(t, resp.Remark, "internal error", name)
			require.Less(t, len(resp.Remark), 4<<10, name)
		}
		require.Equal(t, remoting.TopicNotExist, p.pull(pulling{topic: "New"}).Code) // nothing was made by what was refused
	})
}

// Batches whose lengths lie are refused whole (protocol.md 4.5).
func TestBatchesThatLie(t *testing.T) {
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "before")
		good := batchBody("one", "TAGS\x01a\x02", "two", "")
		put := func(at int, v uint32) []byte {
			b := bytes.Clone(good)
			binary.BigEndian.PutUint32(b[at:], v)
			return b
		}
		for name, body := range map[string][]byte{
			"a size of nothing":         put(0, 0),
			"a size without the rest":   put(0, 21),
			"a size below none":         put(0, 0x80000000),
			"a size beyond the end":     put(0, 1<<30),
			"a size of all":             put(0, uint32(len(good))),
			"a body below none":         put(16, 0xffffffff),
			"a body beyond its message": put(16, 4),
			"a body of 2 GiB":           put(16, math.MaxInt32),
			"an end too early":          good[:len(good)-1],
			"a beginning of another":    append(bytes.Clone(good), 0, 0, 0, 22),
			"one of a transaction":      batchBody("one", "TRAN_MSG\x01true\x02"),
			"one too large":             batchBody("one", "", strings.Repeat("x", 4<<20+1), ""),
			"properties too large":      batchBody("one", "k\x01"+strings.Repeat("v", 32760)+"\x02"),
		} {
			for _, flag := range []message.SysFlag{0, message.FlagCompressed | message.FlagZSTD} {
				resp := p.send(outgoing{topic: "T", sysFlag: flag, body: string(body)}.request(remoting.SendBatchMessage))
				require.Equal(t, remoting.MessageIllegal, resp.Code, "%s: %s", name, resp.Remark)
				require.NotEmpty(t, resp.Remark, name)
			}
		}
		many := bytes.Repeat(batchBody("", ""), 1<<16+1)
		require.Equal(t, remoting.MessageIllegal, p.send(outgoing{topic: "T", body: string(many)}.request(remoting.SendBatchMessage)).Code)
		require.Equal(t, []string{"before"}, bodies(t, p.pull(pulling{topic: "T"}))) // of none is a part there
	})
}

// A body that is marked as compressed and is not goes through as it is: the broker does not look into it (protocol.md 4.3).
func TestBodiesThatAreNotCompressedPassThrough(t *testing.T) {
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		for i, flag := range []message.SysFlag{message.FlagCompressed, message.FlagCompressed | message.FlagLZ4, message.FlagCompressed | 0x700} {
			body := fmt.Sprintf("\x78\x9c lie %d", i)
			resp := p.put(outgoing{topic: "T", sysFlag: flag, body: body})
			require.Equal(t, remoting.Success, resp.Code, resp.Remark)
			got := records(t, p.pull(pulling{topic: "T", offset: int64(i)}))
			require.Equal(t, body, string(got[0].Body))
			require.Equal(t, flag, got[0].SysFlag)
		}
	})
}

// A pull stores the offset that it carries, whether or not it would wait (protocol.md 5.5).
func TestAPullThatDoesNotWaitCommitsToo(t *testing.T) {
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a", "b")
		p.pull(pulling{topic: "T", flags: subscribes | 1, commit: 1})
		at, ok := w.broker.Store().ConsumerOffset("T", "CG", 0)
		require.True(t, ok)
		require.Equal(t, int64(1), at)
		p.pull(pulling{topic: "T", flags: subscribes | 1, commit: -1})
		at, _ = w.broker.Store().ConsumerOffset("T", "CG", 0)
		require.Equal(t, int64(1), at)
	})
}

// What a request quotes is neither answered nor logged at its full length (R-G-14).
func TestRefusalsAreShort(t *testing.T) {
	var log bytes.Buffer
	o := small("4.9")
	o.Logger = slog.New(slog.NewTextHandler(&lockedWriter{w: &log}, nil))
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		long := strings.Repeat("ü", 2<<20)
		for _, req := range []*remoting.Command{
			with(remoting.GetMaxOffset, "topic", "T", "queueId", long), with(remoting.PullMessage, "topic", "T", "consumerGroup", long),
			with(remoting.DeleteTopicInBroker, "topic", ""), withText(with(remoting.UpdateBrokerConfig), long+"=1\n"),
			changed(outgoing{topic: "T"}.request(remoting.SendMessageV2), "i", "DELAY\x01"+long+"\x02"),
		} {
			resp := p.send(req)
			require.NotEqual(t, remoting.Success, resp.Code)
			require.Less(t, len(resp.Remark), 4<<10)
			require.NotContains(t, resp.Remark, "\uFFFD")
		}
		_, err := p.c.Call(context.Background(), "broker", with(remoting.QueryConsumerOffset, "topic", "T", "consumerGroup", "CG", "queueId", long))
		require.ErrorIs(t, err, remoting.ErrClosed)
	})
	require.Less(t, log.Len(), 64<<10)
}

type lockedWriter struct {
	mu sync.Mutex
	w  *bytes.Buffer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// rawFrame is a frame with a header of the given codec and lengths as they are claimed, -1 for the right ones.
func rawFrame(codec byte, length, header int, head, body string) []byte {
	if header == -1 {
		header = len(head)
	}
	if length == -1 {
		length = 4 + len(head) + len(body)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(length))
	b = binary.BigEndian.AppendUint32(b, uint32(codec)<<24|uint32(header))
	return append(append(b, head...), body...)
}

// binaryHead is a binary header of request 30 with its parts as they are given.
func binaryHead(remark int32, fields ...string) string {
	b := []byte{0, 30, 0, 1, 0x97, 0, 0, 0, 9, 0, 0, 0, 0}
	b = binary.BigEndian.AppendUint32(b, uint32(remark))
	all := strings.Join(fields, "")
	b = binary.BigEndian.AppendUint32(b, uint32(len(all)))
	return string(b) + all
}

// pair is a field of a binary header with the lengths that it claims.
func pair(nameLength int16, name string, valueLength int32, value string) string {
	b := append(binary.BigEndian.AppendUint16(nil, uint16(nameLength)), name...)
	return string(append(binary.BigEndian.AppendUint32(b, uint32(valueLength)), value...))
}

// Frames that cannot be end their connection and nothing else; those that only look odd are answered, with their own number. At the
// end no goroutine is left of any of them (R-G-14, protocol.md 1).
func TestFramesThatLie(t *testing.T) {
	o := small("4.9")
	b := onLoopback(t, o)
	resp, err := newClient(t).Call(t.Context(), b.Addr(), outgoing{topic: "T", body: "x"}.request(remoting.SendMessageV2))
	require.NoError(t, err)
	require.Equal(t, remoting.Success, resp.Code)
	topic, queue := pair(5, "topic", 1, "T"), pair(7, "queueId", 1, "0")
	head := func(members string) string {
		return `{"opaque":9,"extFields":{"topic":"T","queueId":"0"},` + members + `}`
	}
	const closes = int32(-1)
	for name, tt := range map[string]struct {
		frame []byte
		code  int32
	}{
		"plain":                        {rawFrame(0, -1, -1, head(`"code":30`), ""), remoting.Success},
		"numbers in quotes":            {rawFrame(0, -1, -1, head(`"code":"30","flag":"0","version":"407"`), ""), remoting.Success},
		"fields that are numbers":      {rawFrame(0, -1, -1, `{"code":30,"opaque":9,"extFields":{"topic":"T","queueId":0,"x":true,"y":null}}`, ""), remoting.Success},
		"members that are null":        {rawFrame(0, -1, -1, head(`"code":30,"flag":null,"language":null,"version":null,"remark":null,"body":null`), ""), remoting.Success},
		"a language of the future":     {rawFrame(0, -1, -1, head(`"code":30,"language":"KLINGON"`), ""), remoting.Success},
		"members nobody knows":         {rawFrame(0, -1, -1, head(`"code":30,"serializeTypeCurrentRPC":"JSON","z":{"a":[1,{}]}`), ""), remoting.Success},
		"a code twice":                 {rawFrame(0, -1, -1, head(`"code":9999,"code":30`), ""), remoting.Success},
		"no code":                      {rawFrame(0, -1, -1, head(`"flag":0`), ""), remoting.RequestCodeNotSupported},
		"no fields":                    {rawFrame(0, -1, -1, `{"code":30,"opaque":9}`, ""), remoting.SystemError},
		"fields that are null":         {rawFrame(0, -1, -1, `{"code":30,"opaque":9,"extFields":null}`, ""), remoting.SystemError},
		"a body nobody wants":          {rawFrame(0, -1, -1, head(`"code":30`), strings.Repeat("b", 1<<20)), remoting.Success},
		"a code that is a word":        {rawFrame(0, -1, -1, head(`"code":"pull"`), ""), closes},
		"a code of 33 bits":            {rawFrame(0, -1, -1, head(`"code":4294967306`), ""), closes},
		"a code that is an object":     {rawFrame(0, -1, -1, head(`"code":{}`), ""), closes},
		"fields that are a list":       {rawFrame(0, -1, -1, `{"code":30,"extFields":["topic"]}`, ""), closes},
		"a header that is a list":      {rawFrame(0, -1, -1, `[30]`, ""), closes},
		"a header that is null":        {rawFrame(0, -1, -1, `null`, ""), closes},
		"no header":                    {rawFrame(0, -1, -1, ``, ""), closes},
		"half a header":                {rawFrame(0, -1, 7, head(`"code":30`), ""), closes},
		"a header longer than all":     {rawFrame(0, -1, 1<<24-1, head(`"code":30`), ""), closes},
		"a header with the body in it": {rawFrame(0, -1, len(head(`"code":30`))+3, head(`"code":30`), "abc"), closes},
		"a length of nothing":          {rawFrame(0, 0, -1, head(`"code":30`), ""), closes},
		"a length of three":            {rawFrame(0, 3, -1, head(`"code":30`), ""), closes},
		"a length below none":          {rawFrame(0, math.MinInt32, -1, head(`"code":30`), ""), closes},
		"a length beyond the limit":    {rawFrame(0, remoting.MaxFrame+1, -1, head(`"code":30`), ""), closes},
		"a codec of the future":        {rawFrame(2, -1, -1, head(`"code":30`), ""), closes},
		"a pit":                        {rawFrame(0, -1, -1, `{"z":`+strings.Repeat("[", 1<<20), ""), closes},
		"a pit of keys":                {rawFrame(0, -1, -1, strings.Repeat("{", 1<<20), ""), closes},
		"two thousand fields":          {rawFrame(0, -1, -1, `{"extFields":{`+strings.Repeat(`"a":"b",`, 2000)+`"a":"b"}}`, ""), closes},
		"binary":                       {rawFrame(1, -1, -1, binaryHead(0, topic, queue), ""), remoting.Success},
		"binary without fields":        {rawFrame(1, -1, -1, binaryHead(0), ""), remoting.SystemError},
		"binary, a field twice":        {rawFrame(1, -1, -1, binaryHead(0, pair(7, "queueId", 1, "x"), topic, queue), ""), remoting.Success},
		"binary, a remark beyond all":  {rawFrame(1, -1, -1, binaryHead(math.MaxInt32, topic, queue), ""), closes},
		"binary, a remark below none":  {rawFrame(1, -1, -1, binaryHead(-1, topic, queue), ""), closes},
		"binary, a name beyond all":    {rawFrame(1, -1, -1, binaryHead(0, pair(math.MaxInt16, "topic", 1, "T"), queue), ""), closes},
		"binary, a name below none":    {rawFrame(1, -1, -1, binaryHead(0, pair(-5, "topic", 1, "T"), queue), ""), closes},
		"binary, a value beyond all":   {rawFrame(1, -1, -1, binaryHead(0, pair(5, "topic", math.MaxInt32, "T"), queue), ""), closes},
		"binary, a value below none":   {rawFrame(1, -1, -1, binaryHead(0, pair(5, "topic", -1, "T"), queue), ""), closes},
		"binary, cut":                  {rawFrame(1, -1, -1, binaryHead(0, topic, queue)[:30], ""), closes},
		"binary, more behind it":       {rawFrame(1, -1, -1, binaryHead(0, topic, queue)+"x", ""), closes},
		"binary that is JSON":          {rawFrame(1, -1, -1, head(`"code":30`), ""), closes},
		"JSON that is binary":          {rawFrame(0, -1, -1, binaryHead(0, topic, queue), ""), closes},
	} {
		t.Run(name, func(t *testing.T) {
			nc, err := net.Dial("tcp", b.Addr())
			require.NoError(t, err)
			defer func() { _ = nc.Close() }()
			require.NoError(t, nc.SetDeadline(time.Now().Add(20*time.Second)))
			_, _ = nc.Write(tt.frame) // which it may have closed before all of it was read
			answer, err := remoting.NewFrameReader(nc, 0).Next()
			if tt.code == closes {
				require.Error(t, err)
				require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.code, answer.Code, answer.Remark)
			require.Equal(t, int32(9), answer.Opaque)
			require.True(t, answer.IsResponse())
			require.Equal(t, remoting.Codec(tt.frame[4]), answer.Codec)
		})
	}
	require.Eventually(t, func() bool { return b.Stats().Connections <= 1 }, time.Minute, time.Millisecond)
}

// Requests that come one behind the other, with numbers twice, answers that nobody asked for and oneways between them: each that
// wants an answer gets one with its number (protocol.md 1.3).
func TestPipelinedRequestsAreAnsweredOneByOne(t *testing.T) {
	b := onLoopback(t, small("4.9"))
	nc, err := net.Dial("tcp", b.Addr())
	require.NoError(t, err)
	defer func() { _ = nc.Close() }()
	var text []byte
	want := map[int32]int{}
	add := func(opaque, flag int32, req *remoting.Command) {
		req.Opaque, req.Flag = opaque, flag
		if text, err = remoting.AppendFrame(text, req); err != nil {
			t.Fatal(err)
		}
		if flag == 0 {
			want[opaque]++
		}
	}
	const rounds = 300
	for i := range int32(rounds) {
		add(i, 0, outgoing{topic: "T", body: "x"}.request(remoting.SendMessageV2))
		add(i, 0, with(4711))                                 // the same number again
		add(i, remoting.FlagResponse, with(remoting.Success)) // an answer to nothing
		add(-i-1, remoting.FlagOneway, with(4711))            // never answered
	}
	done := make(chan error, 1)
	go func() {
		_, err := nc.Write(text)
		done <- err
	}()
	require.NoError(t, nc.SetReadDeadline(time.Now().Add(time.Minute)))
	frames := remoting.NewFrameReader(nc, 0)
	for range 2 * rounds {
		answer, err := frames.Next()
		require.NoError(t, err)
		want[answer.Opaque]--
	}
	require.NoError(t, <-done)
	for opaque, left := range want {
		require.Zero(t, left, opaque)
	}
}

// Clients that come and go at once, with heartbeats, farewells and lost connections in any order, leave nothing behind (R-F-11).
func TestClientsThatComeAndGoAtOnceLeaveNothing(t *testing.T) {
	b := onLoopback(t, small("4.9"))
	before := runtime.NumGoroutine()
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			c, err := remoting.NewClient(nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for round := range 20 {
				beat := remoting.NewRequest(remoting.Heartbeat)
				beat.Body = heartbeat(fmt.Sprintf("c%d", i), "CG", "CLUSTERING", int64(round%3), "T", "*", fmt.Sprintf("T%d", round%2), "a")
				bye := with(remoting.UnregisterClient, "clientID", fmt.Sprintf("c%d", i), "consumerGroup", "CG", "producerGroup", "PG")
				for _, req := range []*remoting.Command{beat, with(remoting.GetConsumerListByGroup, "consumerGroup", "CG"), bye} {
					if _, err := c.Call(context.Background(), b.Addr(), req); err != nil {
						t.Errorf("client %d: %v", i, err)
						return
					}
					if round%4 == i%4 {
						c.Disconnect(b.Addr())
						break
					}
				}
			}
		})
	}
	all.Wait()
	require.Eventually(t, func() bool {
		s := b.Stats()
		return s.ConsumerGroups == 0 && s.ProducerGroups == 0 && s.Connections == 0 && runtime.NumGoroutine() <= before+64
	}, time.Minute, 10*time.Millisecond)
}
