//go:build interop

package interop_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// line is one release of the real RocketMQ and how its settings are spelt.
type line struct {
	version string // of the artifacts
	module  string // folder below java/, and the end of the class name
	dialect string
	mapped  string // 3.1 says "maped"
	batches bool   // it can put a batch
	ipv6    bool
	fixed   map[string]string
}

func lines() []line {
	return []line{
		{version: "3.1.4", module: "line31", dialect: "3.1", mapped: "maped", fixed: map[string]string{
			"tranStateTableMapedFileSize": "2400", "tranRedoLogMapedFileSize": "2000", "checkTransactionMessageEnable": "false",
		}},
		{version: "4.9.7", module: "line49", dialect: "4.9", mapped: "mapped", batches: true, ipv6: true},
		{version: "5.3.3", module: "line53", dialect: "5.3", mapped: "mapped", batches: true, ipv6: true, fixed: map[string]string{
			"enableCompaction": "false", // it would add folders of its own
		}},
	}
}

// shape is the file sizes of a store.
type shape struct {
	segment, queue        int64 // bytes
	indexSlots, indexKeys int32
}

// small makes every kind of file roll within a few hundred messages.
var small = shape{segment: 64 << 10, queue: 400, indexSlots: 50, indexKeys: 100}

// settings are those that the real store is opened with: our sizes, and nothing that writes or deletes by itself.
func (l line) settings(dir string, s shape, more map[string]string) map[string]string {
	all := map[string]string{
		"storePathRootDir":                  dir,
		"storePathCommitLog":                filepath.Join(dir, "commitlog"),
		l.mapped + "FileSizeCommitLog":      strconv.FormatInt(s.segment, 10),
		l.mapped + "FileSizeConsumeQueue":   strconv.FormatInt(s.queue, 10),
		"maxHashSlotNum":                    strconv.Itoa(int(s.indexSlots)),
		"maxIndexNum":                       strconv.Itoa(int(s.indexKeys)),
		"maxMsgsNumBatch":                   "1000", // answers of a query
		"haListenPort":                      "0",
		"diskMaxUsedSpaceRatio":             "95",
		"fileReservedTime":                  "100000", // hours
		"flushConsumeQueueThoroughInterval": "1000",
		"destroyMapedFileIntervalForcibly":  "1000",
		"flushCommitLogThoroughInterval":    "1000",
		"cleanFileForciblyEnable":           "false",
		"checkCRCOnRecover":                 "true",
		"messageIndexEnable":                "true",
		"deleteCommitLogFilesInterval":      "100000",
		"deleteConsumeQueueFilesInterval":   "100000",
		"redeleteHangedFileInterval":        "1000000",
		"maxTransferCountOnMessageInMemory": "1000",
		"maxTransferCountOnMessageInDisk":   "1000",
	}
	for _, m := range []map[string]string{l.fixed, more} {
		maps.Copy(all, m)
	}
	return all
}

// missing ends the test: as a failure where the suite is required, else as a skip that says why.
func missing(t *testing.T, why string) {
	t.Helper()
	if required() {
		t.Fatalf("INTEROP=%s, but %s", os.Getenv("INTEROP"), why)
	}
	t.Skipf("not run: %s (INTEROP=required makes this a failure)", why)
}

// builtJava gives the folder with the compiled programs, made once per state of java/ and kept in the user's cache.
var builtJava = sync.OnceValues(func() (string, error) {
	sum, err := sourceSum("java")
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "rocketstore", "interop-"+sum)
	if isBuilt(dir) {
		return dir, nil
	}
	lock, err := lockedFile(dir + ".lock") // one process builds, the others wait
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }()
	if isBuilt(dir) {
		return dir, nil
	}
	// Without the network when all artifacts are there already, else with it.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	for _, mode := range []string{"-o", "-U"} {
		cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", mode, "-Dbuild.root="+dir, "package")
		cmd.Dir = "java"
		var out []byte
		if out, err = cmd.CombinedOutput(); err == nil {
			return dir, nil
		}
		err = fmt.Errorf("mvn %s package: %w\n%s", mode, err, out)
	}
	return "", err
})

func sourceSum(dir string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n", filepath.ToSlash(path), len(b))
		h.Write(b)
		return err
	})
	return hex.EncodeToString(h.Sum(nil))[:16], err
}

// lockedFile opens a file that no other process has locked; closing it ends that.
func lockedFile(name string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func isBuilt(dir string) bool {
	var modules []string
	for _, l := range lines() {
		modules = append(modules, l.module)
	}
	for _, l := range wireLines() {
		modules = append(modules, l.module)
	}
	for _, module := range modules {
		path, err := os.ReadFile(filepath.Join(dir, module, "classpath"))
		if err != nil {
			return false
		}
		for jar := range strings.SplitSeq(string(path), string(os.PathListSeparator)) {
			if _, err := os.Stat(jar); err != nil {
				return false
			}
		}
	}
	return true
}

// namespace is the command that starts a program where its ports are nobody else's, or nothing where that is not allowed.
var namespace = sync.OnceValue(func() []string {
	for _, flags := range []string{"-n", "-rn"} {
		if exec.Command("unshare", flags, "true").Run() == nil {
			return []string{"unshare", flags, "sh", "-c", `ip link set lo up 2>/dev/null; exec "$@"`, "sh"}
		}
	}
	return nil
})

// jvm is one running StoreDriver.
type jvm struct {
	line line
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	log  *tail
}

// tail keeps the last part of what a program writes.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (w *tail) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, b...)
	w.text = w.text[max(0, len(w.text)-8<<10):]
	return len(b), nil
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.text)
}

// startJVM starts the program of a line; the test's end stops it.
func startJVM(t *testing.T, l line) *jvm {
	t.Helper()
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing(t, tool+" is not on the path")
		}
	}
	dir, err := builtJava()
	require.NoError(t, err)
	classpath, err := os.ReadFile(filepath.Join(dir, l.module, "classpath"))
	require.NoError(t, err)
	args := append(namespace(), "java", "-Xmx512m", "-XX:MaxDirectMemorySize=512m", "-Dfile.encoding=UTF-8",
		"-Duser.home="+t.TempDir(),
		"-Drocketmq.broker.diskSpaceWarningLevelRatio=0.98", "-Drocketmq.broker.diskSpaceCleanForciblyRatio=0.99")
	for _, open := range []string{"java.base/java.nio", "java.base/sun.nio.ch", "java.base/jdk.internal.ref", "java.base/java.lang"} {
		args = append(args, "--add-opens="+open+"=ALL-UNNAMED")
	}
	for _, export := range []string{"java.base/sun.nio.ch", "java.base/jdk.internal.ref"} {
		args = append(args, "--add-exports="+export+"=ALL-UNNAMED")
	}
	args = append(args, "-cp", filepath.Join(dir, l.module, "classes")+string(os.PathListSeparator)+string(classpath),
		"rocketstore.interop.StoreDriver", "rocketstore.interop.Line"+strings.TrimPrefix(l.module, "line"))

	j := &jvm{line: l, log: &tail{}}
	j.cmd = exec.Command(args[0], args[1:]...)
	j.cmd.Stderr = j.log
	j.in, err = j.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := j.cmd.StdoutPipe()
	require.NoError(t, err)
	j.out = bufio.NewReader(out)
	require.NoError(t, j.cmd.Start())
	t.Cleanup(func() {
		_ = j.cmd.Process.Kill()
		_ = j.cmd.Wait()
	})
	return j
}

// answerTime bounds every wait for an answer; the longest one is 3.1.4's shutdown, nine seconds on an idle machine.
const answerTime = 2 * time.Minute

// call sends one command and decodes the answer into answer, which may be nil.
func (j *jvm) call(t *testing.T, command map[string]any, answer any) {
	t.Helper()
	b, err := json.Marshal(command)
	require.NoError(t, err)
	watchdog := time.AfterFunc(answerTime, func() { _ = j.cmd.Process.Kill() })
	defer watchdog.Stop()
	_, err = j.in.Write(append(b, '\n'))
	require.NoError(t, err, "%s: %s", command["cmd"], j.log)
	text, err := j.out.ReadBytes('\n')
	require.NoError(t, err, "no answer to %s: %s", command["cmd"], j.log)
	var head struct {
		OK    bool
		Error string
	}
	require.NoError(t, json.Unmarshal(text, &head))
	require.True(t, head.OK, "%s on %s: %s", command["cmd"], j.line.version, head.Error)
	if answer != nil {
		require.NoError(t, json.Unmarshal(text, answer))
	}
}

// javaOpened is what recovery left, before any thread of the store ran.
type javaOpened struct {
	Loaded                   bool
	MinPhysical, MaxPhysical int64
	Checkpoint               []int64 // physic, logics, index
}

// open loads the directory and starts the store. More are settings besides the usual ones.
func (j *jvm) open(t *testing.T, dir string, s shape, more map[string]string) javaOpened {
	t.Helper()
	var a javaOpened
	j.call(t, map[string]any{"cmd": "open", "settings": j.line.settings(dir, s, more)}, &a)
	require.True(t, a.Loaded, "%s does not load %s", j.line.version, dir)
	return a
}

// javaRecord is a record as the real decoder reads it.
type javaRecord struct {
	PhysicalOffset            int64
	StoreSize                 int32
	Magic, Topic              string
	QueueID                   int32
	QueueOffset               int64
	Flag, SysFlag             int32
	BornTimestamp             int64
	BornHost                  string
	StoreTimestamp            int64
	StoreHost                 string
	ReconsumeTimes            int32
	PreparedTransactionOffset int64
	BodyCRC                   uint32
	BodyLength                int32
	BodyMD5, MsgID            string
	Properties                map[string]string
	RecordMD5                 string
}

type javaUnit struct {
	Index, Offset int64
	Size          int32
	TagsCode      int64
}

type javaQueue struct {
	Topic    string
	QueueID  int32
	Min, Max int64
	Units    []javaUnit
	Got      []int64 // physical offsets that getMessage gives from Min on, -1: none
}

type javaDump struct {
	MinPhysical, MaxPhysical int64
	Records                  []javaRecord
	Queues                   []javaQueue
}

func (j *jvm) dump(t *testing.T, s shape) javaDump {
	t.Helper()
	var d javaDump
	j.call(t, map[string]any{"cmd": "dump", "logFileSize": s.segment}, &d)
	return d
}

type topicKey struct {
	Topic string `json:"topic"`
	Key   string `json:"key"`
}

// query gives the physical offsets that the real index finds for each key.
func (j *jvm) query(t *testing.T, keys []topicKey) [][]int64 {
	t.Helper()
	var a struct{ Hits [][]int64 }
	j.call(t, map[string]any{"cmd": "query", "keys": keys}, &a)
	require.Len(t, a.Hits, len(keys))
	return a.Hits
}

// at gives the records at physical offsets; nil where the store finds none.
func (j *jvm) at(t *testing.T, offsets []int64) []*javaRecord {
	t.Helper()
	var a struct{ Records []*javaRecord }
	j.call(t, map[string]any{"cmd": "at", "offsets": offsets}, &a)
	require.Len(t, a.Records, len(offsets))
	return a.Records
}

type javaPut struct {
	Status                                      string
	OK                                          bool
	PhysicalOffset, QueueOffset, StoreTimestamp int64
	StoreSize                                   int32
	MsgID                                       string
}

// shutdown stops the store cleanly; the process can open another.
func (j *jvm) shutdown(t *testing.T) {
	t.Helper()
	j.call(t, map[string]any{"cmd": "shutdown"}, nil)
}

// halt ends the process as a kill does.
func (j *jvm) halt(t *testing.T) {
	t.Helper()
	j.call(t, map[string]any{"cmd": "halt"}, nil)
	err := j.cmd.Wait()
	require.Error(t, err, "the process halts with a status of its own")
}
