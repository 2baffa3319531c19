package inspect

import (
	"strings"

	"github.com/rocketstore/rocketstore/recovery"
)

// The kinds that only [Dir.Check] finds: what one structure says of another.
const (
	// EmptyLog: the commit log has no record, though what is derived points to records.
	EmptyLog Kind = "empty commit log"
	// Linked: a symbolic link that RocketMQ follows and opening for writing does not.
	Linked Kind = "symbolic link"
	// WrongField: a field in a record's header, which no checksum covers, has a value that it cannot have.
	WrongField Kind = "impossible field in a record"
	// WrongUnit: a queue unit that is not that of the record it points to, or points to none.
	WrongUnit Kind = "queue unit does not match its record"
	// UnitBeyond: a queue unit that points behind the end of the commit log.
	UnitBeyond Kind = "queue unit beyond the end of the log"
	// UnitOfDamage: a queue unit whose record is damaged in the log.
	UnitOfDamage Kind = "queue unit of a damaged record"
	// MissingUnits: records of the log without a unit in their queue, though later ones have one.
	MissingUnits Kind = "records without queue unit"
	// MissingQueue: records of the log whose queue has no files.
	MissingQueue Kind = "queue without files"
	// QueueBehind: the last records of a queue have no unit.
	QueueBehind Kind = "queue behind the log"
	// OffsetTwice: two records of the log claim one queue offset.
	OffsetTwice Kind = "queue offset used twice"
	// Hole: queue offsets that no record of the log has.
	Hole Kind = "hole in the queue offsets"
	// WrongTime: a unit of the delay topic whose code is no time at which its message can be due.
	WrongTime Kind = "wrong delivery time"
	// WrongExt: the address in a queue unit leads to no extension unit, or to one of another message.
	WrongExt Kind = "extension does not match"
	// WrongEntry: an index entry that does not belong to the record it points to.
	WrongEntry Kind = "index entry does not match its record"
	// EntryBeyond: an index entry that points behind the end of the commit log.
	EntryBeyond Kind = "index entry beyond the end of the log"
	// MissingKeys: keys of records that the index does not have, though it has later ones.
	MissingKeys Kind = "keys without index entry"
	// IndexBehind: the keys of the last records are not in the index.
	IndexBehind Kind = "index behind the log"
	// WrongHeader: the header of an index file does not say what its entries and their records do.
	WrongHeader Kind = "index header does not match"
	// CheckpointBeyond: the checkpoint vouches for what the log does not have.
	CheckpointBeyond Kind = "checkpoint beyond the log"
	// NoCheckpoint: the file is missing.
	NoCheckpoint Kind = "no checkpoint"
	// BackupInUse: a file under config is damaged or missing, and its backup is good.
	BackupInUse Kind = "backup used"
	// OffsetBeyond: an offset that a consumer or the delay service has stored lies behind the end of its queue.
	OffsetBeyond Kind = "stored offset beyond the end of its queue"
	// OffsetBefore: such an offset lies before the queue's first record.
	OffsetBefore Kind = "stored offset before the start of its queue"
	// WrongState: a record of the state table of 3.1 that does not match the prepared message it points to.
	WrongState Kind = "state record does not match its message"
	// StateBehind: the state table says something else of a transaction than the log does.
	StateBehind Kind = "transaction state contradicts the log"
	// Renumbered: a prepared message is in the state table under another number than it carries.
	Renumbered Kind = "transaction renumbered"
	// MissingState: prepared messages without a record in the state table.
	MissingState Kind = "prepared message without state record"
	// Orphan: a record of the state table, an end of a transaction or an op message whose prepared message is not there.
	Orphan Kind = "transaction without message"
	// WrongRedo: a redo log unit that is not that of the record it points to.
	WrongRedo Kind = "redo unit does not match its record"
	// RedoBeyond: a redo log unit that points behind the end of the commit log.
	RedoBeyond Kind = "redo unit beyond the end of the log"
	// MissingRedo: a record of a transaction without a unit in the redo log.
	MissingRedo Kind = "record without redo unit"
)

// Advice says in a sentence each what a finding of kind k means to the store's users and what to do about it.
func (k Kind) Advice() (means, todo string) {
	a, ok := advice()[k]
	if !ok {
		return "", ""
	}
	return a[0], a[1]
}

// Advice is [Kind.Advice], where it depends on more than the kind: a record at another place than it says with good ones behind
// it is no leftover but damage in the middle, and a checkpoint is made again, not fetched.
func (f Finding) Advice() (means, todo string) {
	switch {
	case f.Kind == BadPlace && f.Severity == Error && strings.Contains(f.Text, logGoesOn):
		means, _ = BadMagic.Advice()
		return means, doSkip
	case f.File == recovery.CheckpointFile && (f.Kind == BadFile || f.Kind == WrongSize):
		return "recovery after a crash reads the whole log", doCheckpoint
	}
	return f.Kind.Advice()
}

// What to do, for several kinds.
const (
	doRebuild = "make the queues and the index again beside the old ones (storectl rebuild), compare, and put them in place"
	doRecover = "nothing: opening the store for writing makes good for it"
	doLog     = "stop the broker, keep a copy, look at the place with storectl explain; cut the log there or skip the damage, and fetch what was lost from a replica"
	doFile    = "restore the file from a replica or a backup of the same moment"
	doSkip    = "stop the broker, keep a copy, and have the good records behind the damage kept: storectl recover --on-damage skip, or repair skip; fetch what was lost from a replica"
	// Opening does the same, but reads the whole log for it.
	doCheckpoint = "storectl rebuild checkpoint and swap; or simply open the store for writing, which makes it again"
	doNothing    = "nothing, if nobody wonders about it"
	doMoveAway   = "move it out of the directory"
	doStates     = "make the table and the redo log again from the log (storectl rebuild states, rebuild redo, and swap); after a crash storectl recover does so too, after a clean stop it may leave ended ones as they are"
)

func advice() map[Kind][2]string {
	return map[Kind][2]string{
		ForeignFile:      {"RocketMQ refuses to start, or stops reading the folder there", doMoveAway},
		EmptySegment:     {"a stop between making a file and sizing it; no data is lost, 4.x does not start with it", "remove the file"},
		ShortSegment:     {"the file lost its end, or was never sized; RocketMQ refuses to start", doRecover},
		WrongSize:        {"RocketMQ refuses to start, or leaves the file out", doFile},
		Gap:              {"the messages in between are lost to consumers, who stop before the gap", doFile},
		Overlap:          {"two files claim the same addresses", doFile},
		BadMagic:         {"the message there is lost, and readers may stop at it", doLog},
		BadSize:          {"the message there is lost, and readers may stop at it", doLog},
		BadPlace:         {"left over from before an earlier cut; RocketMQ may take it for a message and deliver it again", "open the store for writing: the log is cut there"},
		BadCRC:           {"the message's bytes are not those that were stored", doLog},
		BadBlank:         {"the file was cut or lengthened", doLog},
		Zeros:            {"something was never written, or lost in a crash", doRebuild},
		BadUnit:          {"readers of the queue stop there", doRebuild},
		BadIndex:         {"queries by key miss messages, or never end", doRebuild},
		BadFile:          {"the file cannot be used", doFile},
		NotRead:          {"this kind of data is known and not looked at", doNothing},
		More:             {"there are more of the same sort", "deal with the first ones and check again"},
		Unreadable:       {"the file could not be read", "check permissions and the disk"},
		EmptyLog:         {"the messages are not there, or not where the store looks for them; a broker that starts now throws away what points to them", "start no broker; bring the log back: mount its disk, or restore it from a replica or a backup"},
		WrongField:       {"no checksum covers that field, and others of the record may be wrong as well; the body is whole", "look at it with storectl explain, and compare with a replica"},
		Linked:           {"RocketMQ works with it; opening the store for writing does not follow it, since nothing outside of the store may be written by its names", "put the file or folder itself in its place, or mount its disk there"},
		WrongUnit:        {"consumers get a wrong message there, or none", doRebuild},
		UnitBeyond:       {"left over from before a cut of the log; consumers get nothing there until new records make it point into rubbish", "open the store for writing: it is cut"},
		UnitOfDamage:     {"consumers cannot read that message", doLog},
		MissingUnits:     {"consumers do not get these messages", doRebuild},
		MissingQueue:     {"consumers do not get these messages", doRebuild},
		QueueBehind:      {"the last messages wait to be queued; 3.1 gives their queue offsets a second time", doRecover},
		OffsetTwice:      {"only one of the two messages is delivered", "export both and send the lost one again"},
		Hole:             {"messages between were lost or never stored", doNothing},
		WrongTime:        {"the message is delivered too early, too late or never", doRebuild},
		WrongExt:         {"filters by the extension go wrong for the message", doRebuild},
		WrongEntry:       {"a query by key finds a wrong message and not the right one", doRebuild},
		EntryBeyond:      {"a query by key leads to nothing", doRebuild},
		MissingKeys:      {"queries by these keys find nothing", doRebuild},
		IndexBehind:      {"queries by the last keys find nothing", doRecover + ", if the index is switched on"},
		WrongHeader:      {"queries pass over the file, or new keys are left out of it", doRebuild},
		CheckpointBeyond: {"recovery starts too late after a crash and misses records; or the log lost its end", doCheckpoint},
		NoCheckpoint:     {"recovery after a crash reads the whole log", doNothing},
		BackupInUse:      {"what was stored last before the damage is lost", "copy the .bak over the file while the broker is stopped"},
		OffsetBeyond:     {"the consumer gets nothing until the queue has grown past it, or starts again at either end", "set the group's offset"},
		OffsetBefore:     {"messages that the consumer had not read are removed", doNothing},
		WrongState:       {"the answer of a producer does not find its transaction", doStates},
		StateBehind:      {"a check-back asks for a transaction that is ended, or never asks for one that is open", doStates},
		Renumbered:       {"the answer of a producer does not find its transaction", doStates},
		MissingState:     {"nobody asks the producer for the end of the transaction", doStates},
		Orphan:           {"nothing can be delivered for it", doNothing},
		WrongRedo:        {"after a crash the transaction counts as open, or as ended, wrongly", doStates},
		RedoBeyond:       {"left over from before a cut of the log; 3.1 leaves out new events because of it", "open the store for writing: it is cut"},
		MissingRedo:      {"after a crash the transaction is forgotten, or open again", doStates},
	}
}
