package config_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// open takes a store directory's config folder into memory.
func open(t testing.TB, store string) *memfs.FS {
	t.Helper()
	fsys := memfs.New()
	found, err := filepath.Glob(filepath.Join(store, "config", "*"))
	require.NoError(t, err)
	for _, path := range found {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		write(t, fsys, "config/"+filepath.Base(path), string(b))
	}
	return fsys
}

func write(t testing.TB, fsys *memfs.FS, name, content string) {
	t.Helper()
	require.NoError(t, fsys.MkdirAll("config", 0o750))
	require.NoError(t, fsys.WriteFile(name, []byte(content)))
}

// read is a file's content, "" when there is none.
func read(t testing.TB, fsys mappedfile.FS, name string) string {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return golden.ReadFile(t, fsys, name)
}

// requireText compares byte for byte, also what is no JSON.
func requireText(t testing.TB, want, got string) {
	t.Helper()
	require.Equal(t, want, got)
}

func load(t testing.TB, fsys mappedfile.FS, table config.Table) *config.Notice {
	t.Helper()
	notice, err := config.Load[mappedfile.File](fsys, table)
	require.NoError(t, err)
	return notice
}

func save(t testing.TB, fsys mappedfile.FS, table config.Table) {
	t.Helper()
	require.NoError(t, config.Save[mappedfile.File](fsys, table))
}

// The case says for each of three damaged files whether the .bak is used or the file is refused by name.
func TestFilesDamagedByAPowerCut(t *testing.T) {
	c := golden.LoadCase(t, "config-json-nul")
	var expect struct {
		Results []struct {
			File    string
			Value   map[string]map[string]int64
			Warning *struct{ Kind, File string }
			Error   *struct{ MustName []string }
		}
	}
	require.NoError(t, json.Unmarshal(c.Expect, &expect))
	fsys := open(t, c.Store)
	for _, want := range expect.Results {
		table := tableOf(want.File)
		notice, err := config.Load[mappedfile.File](fsys, table)
		if want.Error != nil {
			require.Error(t, err)
			damage, ok := errors.AsType[*config.DamageError](err)
			require.True(t, ok)
			require.Equal(t, want.File, damage.File)
			for _, name := range want.Error.MustName {
				require.ErrorContains(t, err, name)
			}
			require.Nil(t, notice)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want.Warning.Kind, notice.Kind)
		require.Equal(t, want.Warning.File, notice.File)
		got := map[string]map[string]int64{}
		for key, offsets := range table.(*config.ConsumerOffsets).Table.All() {
			got[key] = map[string]int64{}
			for queue, offset := range offsets.All() {
				got[key][strconv.Itoa(int(queue))] = offset
			}
		}
		require.Equal(t, want.Value, got)
	}
}

func TestOffsetsOfTheCaseWithBareKeys(t *testing.T) {
	var offsets config.ConsumerOffsets
	require.Nil(t, load(t, open(t, golden.LoadCase(t, "offset-beyond-end").Store), &offsets))
	got, ok := offsets.At("TopicA", "GroupA", 0)
	require.True(t, ok)
	require.EqualValues(t, 15, got)
}

const (
	goodOffsets = "{\n\t\"offsetTable\":{1:4\n\t}\n}"
	oldOffsets  = "{\n\t\"offsetTable\":{1:3\n\t}\n}"
)

func TestLoadFallsBackToTheBackup(t *testing.T) {
	for _, tt := range []struct {
		name, file, bak string // "-": no such file
		want            int64  // of level 1; -1: the table is empty
		notice          string // what its text holds; "": no notice
		errs            []string
	}{
		{"both good", goodOffsets, oldOffsets, 4, "", nil},
		{"no backup", goodOffsets, "-", 4, "", nil},
		{"neither", "-", "-", -1, "", nil},
		{"an empty table", "{\n\t\"offsetTable\":{}\n}", "-", -1, "", nil},
		{"no table", "{}", oldOffsets, -1, "", nil},
		{"missing", "-", oldOffsets, 3, "missing", nil},
		{"empty", "", oldOffsets, 3, "is empty", nil},
		{"blanks", " \n", oldOffsets, 3, "is empty", nil},
		{"zeros", "\x00\x00\x00", oldOffsets, 3, "zero bytes", nil},
		{"cut", goodOffsets[:19], oldOffsets, 3, "offset 19: the text ends", nil},
		{"old text behind the end", goodOffsets + "\n\t}", oldOffsets, 3, "offset 28: more text", nil},
		{"zeros behind the end", goodOffsets + "\x00", oldOffsets, 3, "more text", nil},
		{"another type", "{\"offsetTable\":{1:\"4\"}}", oldOffsets, 3, "not an integer", nil},
		{"an offset too large", "{\"offsetTable\":{1:9223372036854775808}}", oldOffsets, 3, "not an integer", nil},
		{"a level that is none", "{\"offsetTable\":{\"one\":4}}", oldOffsets, 3, "not a queue id or level", nil},
		{"a list", "[1]", oldOffsets, 3, "not an object", nil},
		{"a list for the table", "{\"offsetTable\":[1]}", oldOffsets, 3, "not an object", nil},
		{"empty, no backup", "", "-", 0, "", []string{"config/delayOffset.json: offset 0: the file is empty"}},
		{"zeros, no backup", "\x00", "-", 0, "", []string{"config/delayOffset.json: offset 0: the file holds zero bytes only"}},
		{"both damaged", "{", "\x00", 0, "", []string{"config/delayOffset.json: offset 1", "config/delayOffset.json.bak: offset 0"}},
		{"missing, damaged backup", "-", "{", 0, "", []string{"config/delayOffset.json.bak: offset 1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := memfs.New()
			for name, content := range map[string]string{"config/delayOffset.json": tt.file, "config/delayOffset.json.bak": tt.bak} {
				if content != "-" {
					write(t, fsys, name, content)
				}
			}
			var table config.DelayOffsets
			table.Table.Set(9, 9)
			notice, err := config.Load[mappedfile.File](fsys, &table)
			if tt.errs != nil {
				for _, text := range tt.errs {
					require.ErrorContains(t, err, text)
				}
				require.Zero(t, table.Table.Len())
				return
			}
			require.NoError(t, err)
			if tt.notice == "" {
				require.Nil(t, notice)
			} else {
				require.Equal(t, config.BackupUsed, notice.Kind)
				require.Equal(t, "config/delayOffset.json", notice.File)
				require.Contains(t, notice.Text, tt.notice)
			}
			got, ok := table.Table.Get(1)
			require.Equal(t, tt.want >= 0, ok)
			require.Equal(t, max(tt.want, 0), got)
			_, ok = table.Table.Get(9)
			require.False(t, ok, "what was in the table before is gone")
		})
	}
}

func TestReadErrorIsNotTakenForDamage(t *testing.T) {
	inner := memfs.New()
	write(t, inner, "config/delayOffset.json", goodOffsets)
	write(t, inner, "config/delayOffset.json.bak", oldOffsets)
	fsys := crashfs.New(inner)
	broken := errors.New("input/output error")
	fsys.Fail(crashfs.OpOpen, "config/delayOffset.json", broken)
	_, err := config.Load[mappedfile.File](fsys, new(config.DelayOffsets))
	require.ErrorIs(t, err, broken)
}

func TestSaveKeepsThePreviousContentAsBackup(t *testing.T) {
	fsys := memfs.New()
	var table config.DelayOffsets
	for offset := range int64(3) {
		table.Table.Set(1, offset+2)
		save(t, fsys, &table)
	}
	requireText(t, goodOffsets, read(t, fsys, "config/delayOffset.json"))
	requireText(t, oldOffsets, read(t, fsys, "config/delayOffset.json.bak"))
	save(t, fsys, &table) // nothing changed, so nothing is written
	requireText(t, oldOffsets, read(t, fsys, "config/delayOffset.json.bak"))
	require.Empty(t, read(t, fsys, "config/delayOffset.json.tmp"))
}

func TestSaveDoesNotReplaceAGoodBackupByADamagedFile(t *testing.T) {
	for _, damaged := range []string{"", "\x00\x00", "{\"offsetTable\":{1:true}}", goodOffsets + "x"} {
		fsys := memfs.New()
		write(t, fsys, "config/delayOffset.json", damaged)
		write(t, fsys, "config/delayOffset.json.bak", oldOffsets)
		var table config.DelayOffsets
		require.NotNil(t, load(t, fsys, &table))
		table.Table.Set(1, 4)
		save(t, fsys, &table)
		requireText(t, goodOffsets, read(t, fsys, "config/delayOffset.json"))
		requireText(t, oldOffsets, read(t, fsys, "config/delayOffset.json.bak"))
	}
}

// Whenever the power goes, the next load gives the last table that was saved, or the one that was being saved.
func TestSaveSurvivesPowerCuts(t *testing.T) {
	steps := countSteps(t)
	require.Positive(t, steps)
	for n := range steps {
		inner := memfs.New()
		write(t, inner, "config/delayOffset.json", oldOffsets)
		write(t, inner, "config/delayOffset.json.bak", "{\"offsetTable\":{1:2}}")
		fsys := crashfs.New(inner)
		fsys.CrashAfter(n)
		var table config.DelayOffsets
		table.Table.Set(1, 4)
		err := config.Save[mappedfile.File](fsys, &table)
		for image := range fsys.Images(500) {
			var found config.DelayOffsets
			require.Nil(t, load(t, image.FS, &found), "step %d", n)
			offset, ok := found.Table.Get(1)
			require.True(t, ok)
			require.Contains(t, []int64{3, 4}, offset)
			if err == nil {
				require.EqualValues(t, 4, offset)
			}
			var bak config.DelayOffsets
			require.NoError(t, config.Decode([]byte(read(t, image.FS, "config/delayOffset.json.bak")), &bak))
		}
	}
}

// countSteps is the number of operations that a save takes.
func countSteps(t *testing.T) int {
	t.Helper()
	inner := memfs.New()
	write(t, inner, "config/delayOffset.json", oldOffsets)
	fsys := crashfs.New(inner)
	before := fsys.Steps()
	var table config.DelayOffsets
	table.Table.Set(1, 4)
	save(t, fsys, &table)
	return fsys.Steps() - before + 1
}

// The suite above must be able to see a save that syncs too little.
func TestPowerCutsShowAMissingSync(t *testing.T) {
	for _, op := range []crashfs.Op{crashfs.OpSync, crashfs.OpSyncDir} {
		inner := memfs.New()
		write(t, inner, "config/delayOffset.json", oldOffsets)
		fsys := crashfs.New(inner)
		fsys.Ignore(op, "")
		var table config.DelayOffsets
		table.Table.Set(1, 4)
		require.NoError(t, config.Save[mappedfile.File](fsys, &table))
		wrong := 0
		for image := range fsys.Images(2000) {
			var found config.DelayOffsets
			notice, err := config.Load[mappedfile.File](image.FS, &found)
			if offset, _ := found.Table.Get(1); err != nil || notice != nil || offset != 4 {
				wrong++
			}
		}
		require.Positive(t, wrong, op)
	}
}

func TestSaveFailsWhenTheDiskDoes(t *testing.T) {
	for _, op := range []crashfs.Op{crashfs.OpSync, crashfs.OpRename, crashfs.OpSyncDir, crashfs.OpWrite} {
		fsys := crashfs.New(memfs.New())
		broken := errors.New("no space left on device")
		fsys.Fail(op, "", broken)
		var table config.DelayOffsets
		table.Table.Set(1, 4)
		require.ErrorIs(t, config.Save[mappedfile.File](fsys, &table), broken)
	}
}

func TestMarkerComesBack(t *testing.T) {
	fsys := memfs.New()
	_, err := config.LoadMarker[mappedfile.File](fsys)
	require.ErrorIs(t, err, fs.ErrNotExist)
	want := &config.Marker{
		Dialect: "4.9", TransactionEngine: "half topic", SegmentSize: 65536, QueueSegmentSize: 1000, IndexSlots: 50, IndexEntries: 40,
		Clean: &config.CleanStop{LogEnd: 1 << 40, LastRecord: 77, Fingerprint: 1<<64 - 1, Dispatched: -1, Index: &config.IndexMark{File: "20261130163057383", Header: make([]byte, 40), Sum: 1<<64 - 2, State: []byte{1, 2}}},
	}
	require.NoError(t, config.SaveMarker[mappedfile.File](fsys, want))
	got, err := config.LoadMarker[mappedfile.File](fsys)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.True(t, json.Valid([]byte(read(t, fsys, config.MarkerFile))))

	for _, damaged := range []string{"", "\x00\x00", "{\"dialect\":", strings.Repeat("x", 2<<20)} {
		write(t, fsys, config.MarkerFile, damaged)
		_, err = config.LoadMarker[mappedfile.File](fsys)
		require.ErrorIs(t, err, fs.ErrNotExist, "what cannot be read says no more than no note")
	}
}
