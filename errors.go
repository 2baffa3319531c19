package rocketstore

import (
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// Errors of the layers below that a caller of the store branches on.
var (
	// ErrMessageIllegal is the class of messages that cannot be stored.
	ErrMessageIllegal = commitlog.ErrMessageIllegal
	// ErrSyncTimeout says that a message is stored, but not known to be durable in time.
	ErrSyncTimeout = commitlog.ErrSyncTimeout
	// ErrCorrupt is the class of bytes on disk that cannot be believed.
	ErrCorrupt = mappedfile.ErrCorrupt
	// ErrLocked says that another writer has the directory.
	ErrLocked = mappedfile.ErrLocked
)

// SyncPolicy says when a put is acknowledged.
type SyncPolicy = commitlog.SyncPolicy

// The policies.
const (
	SyncInterval = commitlog.SyncInterval
	SyncGroup    = commitlog.SyncGroup
)
