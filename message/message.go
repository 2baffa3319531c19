package message

// Message is one message as a producer gives it or a consumer gets it.
type Message struct {
	Topic   string
	QueueID int32
	// Flag is the producer's own and opaque to the store.
	Flag int32
	// SysFlag says what the body and the transaction are; the host bits are set by the store from the hosts.
	SysFlag SysFlag
	// BornTimestamp is the producer's clock, milliseconds since 1970 UTC.
	BornTimestamp int64
	BornHost      Host
	// StoreHost is the broker's address; it makes the offset message id.
	StoreHost      Host
	ReconsumeTimes int32
	// PreparedTransactionOffset is, in a commit or rollback, the physical offset of the prepared message; else 0.
	PreparedTransactionOffset int64
	// Body is as stored, so compressed where SysFlag says so.
	Body       []byte
	Properties Properties
}

// Tag is the message's tag, or "" when it has none.
func (m *Message) Tag() string {
	tag, _ := m.Properties.Get(PropertyTags)
	return tag
}
