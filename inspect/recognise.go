package inspect

import (
	"context"
	"path"
	"strings"

	"github.com/rocketstore/rocketstore/recovery"
)

// Recognised is something of a kind that is known but not read here.
type Recognised struct {
	What string `json:"what"`
	Path string `json:"path"` // inside the store directory
}

// rootNames are names in the root of a store directory that have a meaning, and what is not read of them.
func rootNames() map[string]string {
	return map[string]string{
		commitLogDir: "", queueDir: "", extDir: "", batchQueueDir: "", indexDir: "", transactionDir: "", configDir: "",
		recovery.CheckpointFile: "", recovery.AbortFile: "", "abort.bak": "", recovery.LockFile: "", "lost+found": "",
		"timerwheel":              "timer wheel",
		"timerlog":                "timer log",
		"compaction":              "compacted topics",
		"tiered_index_file":       "index of tiered storage",
		"epochFileCheckpoint":     "epochs of controller mode",
		"brokerIdentity":          "identity of controller mode",
		"epochFileCheckpoint.bak": "epochs of controller mode",
	}
}

// configNames are names under config that are not read, by kind.
func configNames() map[string]string {
	return map[string]string{
		"timercheck":               "checkpoint of the timer wheel",
		"timermetrics":             "counters of the timer wheel",
		"tieredStoreMetadata.json": "metadata of tiered storage",
		"topics":                   "topics in RocksDB",
		"subscriptionGroups":       "subscription groups in RocksDB",
		"consumerOffsets":          "consumer offsets in RocksDB",
		"rdb":                      "settings in RocksDB",
	}
}

// root looks at the names in the directory, at abort and at the checkpoint.
func (s *survey) root(ctx context.Context) error {
	entries, err := s.dir.list(".")
	if err != nil {
		return err
	}
	known := rootNames()
	for _, e := range entries {
		what, ok := known[e.name]
		switch {
		case strings.HasPrefix(e.name, "dledger-") && e.info.IsDir():
			what = "DLedger log"
		case !ok:
			s.id.Other = append(s.id.Other, e.name)
		}
		if what != "" {
			s.id.Recognised = append(s.id.Recognised, Recognised{what, e.name})
		}
	}
	if err := s.config(ctx); err != nil {
		return err
	}
	s.id.Clean = !s.dir.exists(recovery.AbortFile)
	return s.checkpoint(ctx)
}

func (s *survey) config(ctx context.Context) error {
	entries, err := s.dir.list(configDir)
	if err != nil {
		return s.failed(ctx, configDir, err)
	}
	known := configNames()
	for _, e := range entries {
		if what := known[e.name]; what != "" {
			s.id.Recognised = append(s.id.Recognised, Recognised{what, path.Join(configDir, e.name)})
		}
	}
	for _, dir := range []string{queueDir} {
		if inside, err := s.dir.list(dir); err == nil && isRocksDB(inside) {
			s.id.Recognised = append(s.id.Recognised, Recognised{"queues in RocksDB", dir})
		}
	}
	return nil
}

func (s *survey) checkpoint(ctx context.Context) error {
	if !s.dir.exists(recovery.CheckpointFile) {
		return nil
	}
	c, damaged, err := recovery.ReadCheckpoint(s.dir.mapped())
	if err != nil {
		return s.failed(ctx, recovery.CheckpointFile, err)
	}
	if find, ok := corruption(damaged, BadFile); ok {
		s.report(find)
		return nil
	}
	s.id.Checkpoint = &Checkpoint{c.Physic, c.Logics, c.Index, c.MasterFlushed, c.ConfirmOffset}
	return nil
}
