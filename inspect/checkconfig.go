package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// loadConfig reads one file.
func (c *checker) loadConfig(ctx context.Context, t config.Table) error {
	n, err := config.Load[mappedfile.File](c.dir.mapped(), t)
	if err == nil {
		if n != nil {
			c.report(Finding{Kind: BackupInUse, Severity: Warning, File: n.File, Text: n.Text})
			return nil
		}
		c.hasTable(t.File())
		return nil
	}
	for _, err := range apart(err) {
		if d, ok := errors.AsType[*config.DamageError](err); ok {
			c.report(Finding{Kind: BadFile, Severity: Error, File: d.File, Offset: d.Offset, Text: d.Err.Error()})
		} else if err := c.trouble(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// topicFields reports what no topic can have.
func (c *checker) topicFields(t *config.Topics) {
	var text []byte
	for name, topic := range t.Table.All() {
		f := Finding{Kind: BadFile, Severity: Warning, File: t.File()}
		const allPerms = 15 // the highest bit, priority, is of no use
		switch {
		case topic.Name != "" && topic.Name != name:
			f.Expected, f.Found, f.Text = name, topic.Name, fmt.Sprintf("topic %s has another name inside", name)
		case topic.ReadQueues < 0 || topic.WriteQueues < 0:
			f.Expected, f.Found = "0 or more", decimal(int64(min(topic.ReadQueues, topic.WriteQueues)))
			f.Text = fmt.Sprintf("topic %s has a number of queues that cannot be", name)
		case topic.Perm < 0 || topic.Perm > allPerms:
			f.Expected, f.Found, f.Text = "0 to 15", decimal(int64(topic.Perm)), fmt.Sprintf("topic %s has a permission that cannot be", name)
		default:
			continue
		}
		f.Offset = c.whereIn(&text, f.File, `"`+name+`"`)
		c.report(f)
	}
}

// otherConfig looks for files under config that a power cut left empty or full of NUL.
func (c *checker) otherConfig(ctx context.Context) error {
	entries, err := c.dir.list(configDir)
	if err != nil {
		return c.trouble(ctx, err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.name, ".json") || !e.info.Mode().IsRegular() || tableIn(e.name) != "" {
			continue
		}
		name := path.Join(configDir, e.name)
		f, err := c.dir.open(name)
		if err != nil {
			if err := c.trouble(ctx, err); err != nil {
				return err
			}
			continue
		}
		b := make([]byte, min(f.size, maxConfig))
		n, err := f.ReadAt(b, 0)
		f.close()
		b = bytes.TrimSpace(bytes.TrimPrefix(b[:n], []byte("\uFEFF")))
		bad := Finding{Kind: BadFile, Severity: Warning, File: name, Expected: "JSON"}
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			if err := c.trouble(ctx, err); err != nil {
				return err
			}
		case len(b) == 0 || b[0] == 0:
			bad.Found, bad.Text = "no bytes, or NUL bytes", "the file holds no JSON"
			c.report(bad)
		case b[0] != '{' && b[0] != '[' || f.size <= maxConfig && (len(b) == 1 || b[len(b)-1] != b[0]+2): // } and ] come two behind
			bad.Found, bad.Text = "text that does not begin or end as JSON", "the file holds no JSON, or lost its end"
			c.report(bad)
		}
	}
	return nil
}

// tableIn is the table for which a file under config is there, "" where it is none of those that are read.
func tableIn(name string) string {
	return map[string]string{
		"topics.json": "topicConfigTable", "subscriptionGroup.json": "subscriptionGroupTable", "consumerOffset.json": "offsetTable", "delayOffset.json": "offsetTable",
	}[name]
}

// hasTable reports a file under config that is JSON without the table for which it is there, as one that was exchanged for
// another. RocketMQ always writes the table.
func (c *checker) hasTable(name string) {
	table := tableIn(path.Base(name))
	var text []byte
	if at := c.whereIn(&text, name, `"`+table+`"`); at > 0 || len(text) == 0 || len(text) == maxConfig {
		return
	}
	if inside := bytes.Trim(bytes.TrimSpace(text), "{}"); len(bytes.TrimSpace(inside)) > 0 {
		c.report(Finding{
			Kind: BadFile, Severity: Warning, File: name, Expected: "the table " + table, Found: "other JSON",
			Text: "the file has no table " + table + ": was it exchanged for another one?",
		})
	}
}
