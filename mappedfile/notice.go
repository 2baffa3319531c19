package mappedfile

// Notice is something odd that was found in a directory and is no error.
type Notice struct {
	Kind string // one of the kinds below
	File string // path inside the store directory
	// From and To are the offsets (in the queue's bytes) that are missing; both 0 for a foreign file.
	From, To int64
	Text     string // one line for people
}

// The kinds of [Notice].
const (
	// ForeignFile is a name that is no segment's. It is ignored and never touched.
	ForeignFile = "foreign file"
	// EmptySegment is a last segment of 0 bytes: a crash while it was made.
	EmptySegment = "empty segment"
	// ShortSegment is a last segment shorter than the segment size: a crash while it was made, or a copy cut short.
	ShortSegment = "short segment"
	// Gap is a hole between two segments.
	Gap = "gap"
)
