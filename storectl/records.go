package main

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/message"
)

// recordRow is a record of the commit log in JSON.
type recordRow struct {
	File                      string            `json:"file"`
	PhysicalOffset            int64             `json:"physicalOffset"`
	StoreSize                 int32             `json:"storeSize"`
	Magic                     string            `json:"magic"` // 8 hex digits
	Topic                     string            `json:"topic"`
	QueueID                   int32             `json:"queueId"`
	QueueOffset               int64             `json:"queueOffset"`
	Flag                      int32             `json:"flag"`
	SysFlag                   int32             `json:"sysFlag"`
	BornTimestamp             int64             `json:"bornTimestamp"`
	BornHost                  string            `json:"bornHost"`
	StoreTimestamp            int64             `json:"storeTimestamp"`
	StoreHost                 string            `json:"storeHost"`
	ReconsumeTimes            int32             `json:"reconsumeTimes"`
	PreparedTransactionOffset int64             `json:"preparedTransactionOffset"`
	BodyCRC                   uint32            `json:"bodyCRC"`
	BodyLength                int               `json:"bodyLength"`
	BodyMD5                   string            `json:"bodyMd5"` // of the body as stored
	MsgID                     string            `json:"msgId"`
	Properties                map[string]string `json:"properties"`
	Body                      *string           `json:"body,omitempty"`
	Damaged                   string            `json:"damaged,omitempty"`
}

// records prints records of the commit log.
type records struct {
	*table
	dir  *inspect.Dir
	body string // how bodies are printed, "": not
}

var errBody = errors.New(`--body must be "text", "base64", "plain", "plain-base64" or "redacted"`)

// bodyFlag adds the flag that says how bodies are printed.
func bodyFlag(cmd *cobra.Command, body *string) {
	cmd.Flags().StringVar(body, "body", "", `print the body: as stored, "text" or "base64"; unpacked, "plain" or "plain-base64"; or "redacted" to size and hash`)
}

func (a *app) records(d *inspect.Dir, body string) (*records, error) {
	columns := []column{{"OFFSET", -12}, {"SIZE", -7}, {"TOPIC", 24}, {"QUEUE", -5}, {"QOFFSET", -9}, {"STORED", 24}, {"TAG", 10}, {"KEYS", 20}, {"STATE", 8}}
	switch body {
	case "":
	case "text", "base64", "plain", "plain-base64", "redacted":
		columns = append(columns, column{"BODY", 0})
	default:
		return nil, errBody
	}
	return &records{a.table(columns...), d, body}, nil
}

func (p *records) print(r *inspect.LogRecord) error {
	if p.app.json {
		return p.row(p.json(r))
	}
	return p.row(nil, p.cells(r)...)
}

// properties are a record's, by the rule of the line that wrote the store if that is known.
func (p *records) properties(r *inspect.LogRecord) map[string]string {
	if p.dir == nil {
		return message.Properties(r.Properties).Map()
	}
	return p.dir.Properties(r.Properties)
}

// cells are a record's columns.
func (p *records) cells(r *inspect.LogRecord) []any {
	properties := p.properties(r)
	keys := properties[message.PropertyKeys]
	if keys == "" {
		keys = properties[message.PropertyUniqueKey]
	}
	cells := []any{
		r.PhysicalOffset, r.Size, string(r.Topic), r.QueueID, r.QueueOffset, clock(r.StoreTimestamp),
		properties[message.PropertyTags], keys, state(r),
	}
	if p.body != "" {
		cells = append(cells, p.bodyOf(r))
	}
	return cells
}

// json is a record's row.
func (p *records) json(r *inspect.LogRecord) recordRow {
	sum := md5.Sum(r.Body)
	row := recordRow{
		File: r.File, PhysicalOffset: r.PhysicalOffset, StoreSize: r.Size, Magic: fmt.Sprintf("%08x", r.Magic),
		Topic: string(r.Topic), QueueID: r.QueueID, QueueOffset: r.QueueOffset, Flag: r.Flag, SysFlag: int32(r.SysFlag),
		BornTimestamp: r.BornTimestamp, BornHost: r.BornHost.String(), StoreTimestamp: r.StoreTimestamp,
		StoreHost: r.StoreHost.String(), ReconsumeTimes: r.ReconsumeTimes,
		PreparedTransactionOffset: r.PreparedTransactionOffset, BodyCRC: r.BodyCRC, BodyLength: len(r.Body),
		BodyMD5: hex.EncodeToString(sum[:]), MsgID: r.ID(), Properties: p.properties(r), Damaged: r.Damaged,
	}
	if p.body != "" {
		body := p.bodyOf(r)
		row.Body = &body
	}
	return row
}

// bodyOf is a record's body in the form that was asked for.
func (p *records) bodyOf(r *inspect.LogRecord) string {
	b := r.Body
	switch p.body {
	case "":
		return ""
	case "plain", "plain-base64":
		plain, err := inspect.PlainBody(&r.Record)
		if err == nil {
			b = plain
		} else if r.Damaged == "" {
			p.app.missing(fmt.Errorf("record at %d, its body is printed as stored: %w", r.PhysicalOffset, err))
		}
	case "redacted":
		b = inspect.RedactedBody(b)
	}
	if p.body == "base64" || p.body == "plain-base64" {
		return base64.StdEncoding.EncodeToString(b)
	}
	return string(b)
}

// state says in a word what is special about a record.
func state(r *inspect.LogRecord) string {
	switch {
	case r.Damaged != "":
		return "BAD " + r.Damaged
	case r.SysFlag.Transaction() == message.FlagPrepared:
		return "prepared"
	case r.SysFlag.Transaction() == message.FlagCommit:
		return "commit"
	case r.SysFlag.Transaction() == message.FlagRollback:
		return "rollback"
	case r.SysFlag.Has(message.FlagInnerBatch):
		return "batch"
	}
	return ""
}
