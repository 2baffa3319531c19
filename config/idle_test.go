package config_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

func TestIdleQueuesAreKeptAndDamageIsTold(t *testing.T) {
	fsys := memfs.New()
	q, damaged, err := config.LoadIdleQueues[mappedfile.File](fsys)
	require.NoError(t, err)
	require.NoError(t, damaged)
	require.Empty(t, q)
	q[config.IdleKey("T@x", 3)] = 1 << 40
	q["bad@0"] = -1
	require.NoError(t, config.SaveIdleQueues[mappedfile.File](fsys, q))
	got, damaged, err := config.LoadIdleQueues[mappedfile.File](fsys)
	require.NoError(t, err)
	require.NoError(t, damaged)
	require.Equal(t, config.IdleQueues{"T@x@3": 1 << 40}, got)

	f, err := fsys.OpenFile(config.IdleQueuesFile, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("[1"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	got, damaged, err = config.LoadIdleQueues[mappedfile.File](fsys)
	require.NoError(t, err)
	require.ErrorContains(t, damaged, config.IdleQueuesFile)
	require.Empty(t, got)
}
