package broker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rocketstore/rocketstore/internal/properties"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
)

// updateConfig serves 25: all of the properties are taken, or none; where they cannot be written to the broker's file, none.
func (b *Broker) updateConfig(_ context.Context, c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	b.configMu.Lock()
	defer b.configMu.Unlock()
	was := b.live()
	changed := *was
	err := properties.Change(&changed, settings(), string(req.Body))
	if err == nil {
		err = errors.Join(changed.check()...)
	}
	if errors.Is(err, properties.ErrNotLive) {
		return req.Refuse(remoting.NoPermission, "%v", err), nil
	}
	if err != nil {
		return nil, err
	}
	if err := b.saveConfig(string(req.Body)); err != nil {
		return nil, err
	}
	b.current.Store(&changed)
	b.audit(c, req, "configuration changed", "properties", strings.TrimSpace(string(req.Body)))
	if err := b.topics.begin(&changed, b.rules); err != nil { // TBW102 comes or goes
		return nil, err
	}
	if changed.Permission != was.Permission {
		err = b.topics.touch()
	}
	b.names.changed()
	if err != nil {
		return nil, err
	}
	return req.Reply(remoting.Success), nil
}

// saveConfig writes what was changed into the file that the settings came from, so that it outlives a restart. All else in it
// stays: the original writes all of its settings there, which would also keep those that flags or defaults gave.
func (b *Broker) saveConfig(changes string) error {
	file := b.opts.ConfigFile
	if file == "" {
		return nil
	}
	live, err := properties.LivePairs(settings(), changes)
	if err != nil || len(live) == 0 {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	edited, err := properties.Edit(string(text), live)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return properties.SaveFile(file, []byte(edited))
}

// getConfig serves 26.
func (b *Broker) getConfig(_ context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	resp := req.Reply(remoting.Success)
	v := b.topics.version()
	version := route.DataVersion{Timestamp: v.Timestamp, Counter: v.Counter}
	resp.Fields.Set("version", string(version.AppendJSON(nil, false)))
	resp.Body = []byte(properties.Print(b.live(), settings()))
	return resp, nil
}

// runtimeInfo serves 28. The names are those that the tools of the original look for (protocol.md 16); times that mean a queue of
// threads there are 0 here, where no request waits for one.
func (b *Broker) runtimeInfo(_ context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	put, got := b.meter.read()
	s := b.Stats()
	o := b.live()
	table := map[string]string{
		"bootTimestamp":                         strconv.FormatInt(b.began.UnixMilli(), 10),
		"startAcceptSendRequestTimeStamp":       "0",
		"runtime":                               fmt.Sprintf("[ %s ]", time.Since(b.began).Round(time.Second)),
		"brokerVersion":                         strconv.Itoa(int(remoting.Version)),
		"brokerVersionDesc":                     "V4_9_7",
		"putTps":                                put.rates(),
		"getTransferedTps":                      got.rates(),
		"getFoundTps":                           got.rates(),
		"msgPutTotalYesterdayMorning":           strconv.FormatInt(put.yesterday, 10),
		"msgPutTotalTodayMorning":               strconv.FormatInt(put.today, 10),
		"msgPutTotalTodayNow":                   strconv.FormatInt(put.now, 10),
		"msgGetTotalYesterdayMorning":           strconv.FormatInt(got.yesterday, 10),
		"msgGetTotalTodayMorning":               strconv.FormatInt(got.today, 10),
		"msgGetTotalTodayNow":                   strconv.FormatInt(got.now, 10),
		"putMessageTimesTotal":                  strconv.FormatInt(s.Sent, 10),
		"putMessageSizeTotal":                   strconv.FormatInt(s.SentBytes, 10),
		"sendThreadPoolQueueSize":               strconv.FormatInt(s.Sends, 10),
		"sendThreadPoolQueueCapacity":           strconv.FormatInt(o.MaxSends, 10),
		"pullThreadPoolQueueSize":               "0",
		"pullThreadPoolQueueCapacity":           strconv.FormatInt(o.MaxHeld, 10),
		"queryThreadPoolQueueSize":              "0",
		"sendThreadPoolQueueHeadWaitTimeMills":  "0",
		"pullThreadPoolQueueHeadWaitTimeMills":  "0",
		"queryThreadPoolQueueHeadWaitTimeMills": "0",
		"pageCacheLockTimeMills":                "0",
		"remainHowManyDataToFlush":              "0 bytes",
		"earliestMessageTimeStamp":              strconv.FormatInt(b.earliest(s.LogStart), 10),
		"commitLogMinOffset":                    strconv.FormatInt(s.LogStart, 10),
		"commitLogMaxOffset":                    strconv.FormatInt(s.LogEnd, 10),
		"dispatchBehindBytes":                   "0",
		"connections":                           strconv.Itoa(s.Connections),
		"heldPulls":                             strconv.FormatInt(s.Held, 10),
	}
	if use, err := b.store.DiskUse(); err == nil {
		text := strconv.FormatFloat(use, 'f', 4, 64)
		table["commitLogDiskRatio"], table["consumeQueueDiskRatio"] = text, text
	}
	offsets := b.store.DelayOffsets()
	for _, level := range slices.Sorted(maps.Keys(offsets)) {
		table[fmt.Sprintf("scheduleMessageOffset_%d", level)] = fmt.Sprintf("%d,%d", offsets[level], b.scheduled(level))
	}
	return withBody(req, route.AppendTable(nil, table))
}

// earliest is the store time of the log's first message, ms; -1 when there is none.
func (b *Broker) earliest(start int64) int64 {
	for r, err := range b.store.Records(start) {
		if err != nil {
			break
		}
		return r.StoreTimestamp
	}
	return -1
}

// scheduled is the end of a delay level's queue; 0 when it is not known.
func (b *Broker) scheduled(level int32) int64 {
	_, end, err := b.bounds(b.ctx, scheduleTopic, level-1)
	if err != nil {
		return 0
	}
	return end
}
