package inspect

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/recovery"
)

// The kinds of what [Diff] finds in the files beside the data.
const (
	// ConfigDiffers: a file under config that both stores have, with other values.
	ConfigDiffers Kind = "config differs"
	// CheckpointDiffers: the checkpoints name other times.
	CheckpointDiffers Kind = "checkpoint differs"
)

// FileDiff is a file beside the data that is not the same in both stores.
type FileDiff struct {
	File string `json:"file"`
	// Only says which store has it, "first" or "second"; "" when both do.
	Only string `json:"only,omitempty"`
	// Values are the values that differ, by their paths, at most 100; Count is how many there are, 0 when the files can only be compared
	// as bytes.
	Values []ValueDiff `json:"values,omitempty"`
	Count  int         `json:"count"`
}

// ValueDiff is one value that differs; "" where a store does not have it.
type ValueDiff struct {
	Path   string `json:"path"`
	First  string `json:"first"`
	Second string `json:"second"`
}

// How many values that differ are kept of a file, and named in its finding.
const (
	maxValueDiffs   = 100
	maxValuesInText = 3
)

// configFiles are the names of the JSON files under config, without the notes that this module's own store leaves there.
func (d *Dir) configFiles() ([]string, error) {
	entries, err := d.list(configDir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name := path.Join(configDir, e.name)
		if strings.HasSuffix(e.name, ".json") && e.info.Mode().IsRegular() && name != config.MarkerFile && name != config.IdleQueuesFile {
			names = append(names, name)
		}
	}
	return names, nil
}

// files compares the files under config, if both stores have some, and the checkpoint.
func (d *differ) files(ctx context.Context) error {
	here, err := d.a.configFiles()
	if err != nil {
		return err
	}
	there, err := d.b.configFiles()
	if err != nil {
		return err
	}
	if len(here) > 0 && len(there) > 0 {
		for _, name := range slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(here), there...)))) {
			if err := ctx.Err(); err != nil {
				return err
			}
			d.configFile(name, slices.Contains(here, name), slices.Contains(there, name))
		}
	}
	if d.a.exists(recovery.CheckpointFile) && d.b.exists(recovery.CheckpointFile) {
		return d.checkpoints()
	}
	return nil
}

// configFile compares one file under config. Progress moves all the time, and what only one store has may not have been needed in the
// other: that is of severity Info.
func (d *differ) configFile(name string, here, there bool) {
	f := Finding{Kind: ConfigDiffers, Severity: Warning, File: name}
	switch {
	case !there:
		f.Kind, f.Severity, f.Text = OnlyHere, Info, "the second does not have the file"
		d.file(f, FileDiff{File: name, Only: "first"})
		return
	case !here:
		f.Kind, f.Severity, f.Text = OnlyThere, Info, "the first does not have the file"
		d.file(f, FileDiff{File: name, Only: "second"})
		return
	}
	first, err := d.a.small(name)
	if err != nil {
		f.Kind, f.Severity, f.Text = Unreadable, Error, "in the first: "+err.Error()
		d.file(f, FileDiff{File: name})
		return
	}
	second, err := d.b.small(name)
	if err != nil {
		f.Kind, f.Severity, f.Text = Unreadable, Error, "in the second: "+err.Error()
		d.file(f, FileDiff{File: name})
		return
	}
	if bytes.Equal(first, second) {
		return
	}
	out := FileDiff{File: name}
	left, wrong := config.Values(name, first)
	right, err := config.Values(name, second)
	switch {
	case wrong != nil:
		f.Found = wrong.Error()
		f.Text = "the first cannot be read, so that only the bytes are known to differ: " + f.Found
	case err != nil:
		f.Found = err.Error()
		f.Text = "the second cannot be read, so that only the bytes are known to differ: " + f.Found
	default:
		out.compare(left, right)
		if out.Count == 0 {
			return // only order, spaces or the counter of changes
		}
		f.Text = out.text()
	}
	switch name {
	case (&config.ConsumerOffsets{}).File(), (&config.DelayOffsets{}).File():
		if out.Count > 0 {
			f.Severity = Info
		}
	}
	d.file(f, out)
}

// file notes that a file differs.
func (d *differ) file(f Finding, diff FileDiff) {
	d.out.Files = append(d.out.Files, diff)
	if f.Severity != Info {
		d.out.Findings++
	}
	d.report(f)
}

// maxSmall bounds what is read of a file as a whole.
const maxSmall = 64 << 20

// small is a file's content.
func (d *Dir) small(name string) ([]byte, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if f.size > maxSmall {
		return nil, fmt.Errorf("%s: %d bytes, more than %d", name, f.size, maxSmall)
	}
	b, err := io.ReadAll(io.NewSectionReader(f, 0, f.size))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

// compare notes the values that differ. What counts the changes of a file says nothing of its content.
func (f *FileDiff) compare(left, right map[string]string) {
	paths := maps.Clone(left)
	maps.Copy(paths, right)
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		if left[p] == right[p] || strings.HasPrefix(p, "dataVersion.") {
			continue
		}
		if f.Count++; len(f.Values) < maxValueDiffs {
			f.Values = append(f.Values, ValueDiff{p, left[p], right[p]})
		}
	}
}

// text names the first values that differ.
func (f *FileDiff) text() string {
	var b strings.Builder
	b.WriteString(countText(int64(f.Count), "value differs", "values differ"))
	for i, v := range f.Values[:min(len(f.Values), maxValuesInText)] {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%s%s (%s, in the second %s)", sep, v.Path, cmp.Or(v.First, "not there"), cmp.Or(v.Second, "not there"))
	}
	if more := f.Count - maxValuesInText; more > 0 {
		fmt.Fprintf(&b, ", and %d more", more)
	}
	return b.String()
}

// checkpoints compares the checkpoints. That they differ is usual.
func (d *differ) checkpoints() error {
	var points [2]recovery.Checkpoint
	for i, dir := range []*Dir{d.a, d.b} {
		p, damaged, err := recovery.ReadCheckpoint(dir.mapped())
		if err != nil {
			return err
		}
		if f, ok := corruption(damaged, BadFile); ok {
			f.Severity, f.Text = Warning, fmt.Sprintf("in the %s store: %s", []string{"first", "second"}[i], f.Text)
			d.file(f, FileDiff{File: recovery.CheckpointFile})
			return nil
		}
		points[i] = p
	}
	out := FileDiff{File: recovery.CheckpointFile}
	out.compare(checkpointValues(points[0]), checkpointValues(points[1]))
	if out.Count > 0 {
		d.file(Finding{Kind: CheckpointDiffers, Severity: Info, File: recovery.CheckpointFile, Text: out.text()}, out)
	}
	return nil
}

func checkpointValues(p recovery.Checkpoint) map[string]string {
	return map[string]string{
		"log": timeText(p.Physic), "queues": timeText(p.Logics), "index": timeText(p.Index),
		"masterFlushed": decimal(p.MasterFlushed), "confirmOffset": decimal(p.ConfirmOffset),
	}
}
