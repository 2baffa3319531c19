// Package dialect holds what differs between the lines of RocketMQ, as data: 3.1 (Alibaba), 4.9 and 5.3 (Apache).
// A field is named after what differs, so that no other package compares version numbers. docs/formats.md says where
// each value comes from.
package dialect

import "fmt"

// Dialect is one line's constants and rules. The three are made by [V31], [V49] and [V53]; treat them as read-only.
type Dialect struct {
	// Name is "3.1", "4.9" or "5.3".
	Name string

	// MaxMessageSize is the default limit in bytes (formats.md 4.6).
	MaxMessageSize int32
	// LimitsWholeRecord: the limit is on the record; else on the body, with 64 KiB more for the record.
	LimitsWholeRecord bool
	// MaxTopicLength is the longest topic in bytes, MaxRetryTopicLength the longest that begins with %RETRY%.
	MaxTopicLength, MaxRetryTopicLength int
	// WritesV2: topics of more than 127 bytes are written as records of version 2.
	WritesV2 bool
	// HasIPv6: hosts may be IPv6 (4.6+).
	HasIPv6 bool
	// EndsProperties: a property list that the broker makes ends with 0x02.
	EndsProperties bool

	// KeepsSignedKeyHash: index entries hold the signed hash; else its absolute value.
	KeepsSignedKeyHash bool
	// CountsEveryIndexEntry: the index header's slot count grows with each entry; else with each slot first used.
	CountsEveryIndexEntry bool
	// ClampsIndexMillis: an index entry's time difference is bounded in milliseconds, before it becomes seconds; else after.
	ClampsIndexMillis bool
	// CountsEmptyIndex: a stop writes the index count 1 into an index file without entries; else it stays 0.
	CountsEmptyIndex bool
	// IndexesUniqueKey: UNIQ_KEY is indexed, before KEYS.
	IndexesUniqueKey bool
	// IndexesCommits: commit records are indexed.
	IndexesCommits bool

	// CheckpointMargin is taken off the checkpoint's time before a start is chosen, milliseconds.
	CheckpointMargin int64
	// AbortHoldsPID: the abort file holds the process id.
	AbortHoldsPID bool
	// KeepsConfirmOffset: the checkpoint's bytes 24 to 39 are in use.
	KeepsConfirmOffset bool
	// HasStateTable: transactions live in the state table and the redo log; else in the half-message topic.
	HasStateTable bool
	// NamesTransaction: a half message gets the property __transactionId__ with its UNIQ_KEY.
	NamesTransaction bool
	// RefusesLateEnds: a half message with CHECK_IMMUNITY_TIME_IN_SECONDS is ended after that time by the answer to a check only.
	RefusesLateEnds bool
	// CheckIntervalMillis is the time between two rounds of the check of open transactions.
	CheckIntervalMillis int
	// DelayLevels is the default of messageDelayLevel.
	DelayLevels string
	// AsyncFlushMillis is the period of the asynchronous flush.
	AsyncFlushMillis int
	// NamesCluster: the broker adds the property CLUSTER to what it stores of a producer.
	NamesCluster bool
	// DropsWait: it takes WAIT out of a single plain message.
	DropsWait bool
	// NamesRegion: it adds MSG_REGION and TRACE_ON, and UNIQ_KEY where there is none.
	NamesRegion bool
	// RenewsStoreHost: a message that is sent back gets the broker's own address; else it keeps that of its record.
	RenewsStoreHost bool
	// ClientMaxBody is the largest body that a producer of that line sends, bytes.
	ClientMaxBody int
	// ClientMaxAsync and ClientMaxOneway are how many such requests a client of that line has in flight at most.
	ClientMaxAsync, ClientMaxOneway int
	// ClientAsyncRetries is how often its producer repeats an async send.
	ClientAsyncRetries int
	// ClientRetriesBusy: it sends to another broker after SYSTEM_BUSY and GO_AWAY.
	ClientRetriesBusy bool
	// ClientShortNames: it sends with code 310, whose fields have names of one letter; else with code 10.
	ClientShortNames bool
	// ClientNamesCompressor: it says in the flags how a body is compressed.
	ClientNamesCompressor bool
	// TimestampKey is the spelling of a data version's time in JSON.
	TimestampKey string
}

const delayLevels16 = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m"

// V31 is Alibaba RocketMQ 3.1.
func V31() *Dialect {
	return &Dialect{
		Name: "3.1", MaxMessageSize: 512 << 10, LimitsWholeRecord: true, MaxTopicLength: 127, MaxRetryTopicLength: 127,
		EndsProperties: true, KeepsSignedKeyHash: true, CountsEveryIndexEntry: true, ClampsIndexMillis: true, HasStateTable: true,
		CheckIntervalMillis: 60_000, DelayLevels: delayLevels16, AsyncFlushMillis: 1000, TimestampKey: "timestatmp",
		ClientMaxBody: 128 << 10, ClientMaxAsync: 128, ClientMaxOneway: 256,
	}
}

// V49 is Apache RocketMQ 4.9 (4.9.4 and later).
func V49() *Dialect {
	return &Dialect{
		Name: "4.9", MaxMessageSize: 4 << 20, MaxTopicLength: 127, MaxRetryTopicLength: 127, HasIPv6: true,
		IndexesUniqueKey: true, IndexesCommits: true, CheckpointMargin: 3000,
		NamesCluster: true, DropsWait: true,
		CheckIntervalMillis: 60_000, DelayLevels: delayLevels16 + " 1h 2h", AsyncFlushMillis: 500, TimestampKey: "timestamp",
		ClientMaxBody: 4 << 20, ClientMaxAsync: 65_535, ClientMaxOneway: 65_535, ClientAsyncRetries: 2, ClientShortNames: true,
		ClientNamesCompressor: true,
	}
}

// V53 is Apache RocketMQ 5.3.
func V53() *Dialect {
	d := V49()
	d.Name, d.MaxRetryTopicLength = "5.3", 255
	d.WritesV2, d.EndsProperties, d.AbortHoldsPID, d.KeepsConfirmOffset = true, true, true, true
	d.CheckIntervalMillis = 30_000
	d.NamesTransaction, d.CountsEmptyIndex, d.RefusesLateEnds = true, true, true
	d.DropsWait, d.NamesRegion = false, true
	d.RenewsStoreHost, d.ClientRetriesBusy = true, true
	return d
}

// Parse gives the dialect of a name: "3.1", "4.9" or "5.3".
func Parse(name string) (*Dialect, error) {
	switch name {
	case "3.1":
		return V31(), nil
	case "4.9":
		return V49(), nil
	case "5.3":
		return V53(), nil
	}
	return nil, fmt.Errorf("unknown dialect %q: want 3.1, 4.9 or 5.3", name)
}
