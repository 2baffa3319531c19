package consumer

// ReadLocked decodes the answer to request 41, for the fuzz test.
func ReadLocked(b []byte) ([]Queue, error) { return readLocked(b) }

// AppendLocks is the body of request 41.
func AppendLocks(group, client string, queues []Queue) []byte {
	return appendLocks(nil, group, client, queues)
}
