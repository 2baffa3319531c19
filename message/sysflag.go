package message

// SysFlag is the SYSFLAG field of a record (formats.md 4.3).
//
//	bit   value        meaning
//	0     1            body is compressed
//	1     2            several tags
//	2-3   0 4 8 12     transaction: none, prepared, commit, rollback
//	4     16           born host is IPv6 (4.6+)
//	5     32           store host is IPv6 (4.6+)
//	6     64           needs unwrapping (5.x)
//	7     128          inner batch (5.x)
//	8-10  0x100-0x300  compressor: 1 LZ4, 2 ZSTD, 3 ZLIB; 0 is ZLIB too
type SysFlag int32

// The bits.
const (
	FlagCompressed    SysFlag = 1
	FlagMultiTags     SysFlag = 2
	FlagPrepared      SysFlag = 4
	FlagCommit        SysFlag = 8
	FlagRollback      SysFlag = 12
	FlagBornHostIPv6  SysFlag = 16
	FlagStoreHostIPv6 SysFlag = 32
	FlagNeedUnwrap    SysFlag = 64
	FlagInnerBatch    SysFlag = 128
	FlagLZ4           SysFlag = 0x100
	FlagZSTD          SysFlag = 0x200
	FlagZLIB          SysFlag = 0x300

	transactionMask SysFlag = 12
	compressionMask SysFlag = 0x700
)

// Transaction is the transaction part: 0, FlagPrepared, FlagCommit or FlagRollback.
func (f SysFlag) Transaction() SysFlag { return f & transactionMask }

// WithTransaction is f with another transaction part.
func (f SysFlag) WithTransaction(t SysFlag) SysFlag { return f&^transactionMask | t&transactionMask }

// Has says whether all bits of g are set.
func (f SysFlag) Has(g SysFlag) bool { return f&g == g }

// Compression is "zlib", "lz4" or "zstd" for a compressed body, "" for a plain one and "unknown" for bits that no version writes.
func (f SysFlag) Compression() string {
	if !f.Has(FlagCompressed) {
		return ""
	}
	switch f & compressionMask {
	case 0, FlagZLIB:
		return "zlib"
	case FlagLZ4:
		return "lz4"
	case FlagZSTD:
		return "zstd"
	}
	return "unknown"
}

// Queued says whether a record of this transaction type gets a consume queue unit: plain and committed ones do.
func (f SysFlag) Queued() bool { return f.Transaction() == 0 || f.Transaction() == FlagCommit }
