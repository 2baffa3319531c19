package mappedfile

// Flags of opening that this system has no use for.
const (
	noWait     = 0
	onlyFolder = 0
)
