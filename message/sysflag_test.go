package message_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/message"
)

func TestTransactionPartOfTheFlag(t *testing.T) {
	for _, tt := range []struct {
		flag, want message.SysFlag
		queued     bool
	}{
		{0, 0, true},
		{message.FlagPrepared | message.FlagCompressed, message.FlagPrepared, false},
		{message.FlagCommit | message.FlagBornHostIPv6, message.FlagCommit, true},
		{message.FlagRollback, message.FlagRollback, false},
	} {
		require.Equal(t, tt.want, tt.flag.Transaction())
		require.Equal(t, tt.queued, tt.flag.Queued())
	}
	f := message.FlagPrepared | message.FlagCompressed
	require.Equal(t, message.FlagRollback|message.FlagCompressed, f.WithTransaction(message.FlagRollback))
	require.Equal(t, message.FlagCompressed, f.WithTransaction(0))
	require.True(t, f.Has(message.FlagCompressed))
	require.False(t, f.Has(message.FlagRollback), "all bits of it are meant")
}

func TestCompressionNames(t *testing.T) {
	for flag, want := range map[message.SysFlag]string{
		0: "", message.FlagZSTD: "", message.FlagCompressed: "zlib", 0x301: "zlib", 0x101: "lz4", 0x201: "zstd", 0x401: "unknown",
	} {
		require.Equal(t, want, flag.Compression(), "%x", int32(flag))
	}
}
