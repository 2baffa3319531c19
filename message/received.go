package message

// Received is a message as a broker hands it out: to a consumer, to a producer's check of a transaction, to a query.
type Received struct {
	Message
	// BrokerName is the broker that it came from; it is known to the receiver and not stored.
	BrokerName string
	// QueueOffset is the position in its queue; of a prepared message of 3.1 its number in the state table.
	QueueOffset int64
	// PhysicalOffset is the position of its record in the broker's log, bytes.
	PhysicalOffset int64
	// StoreTimestamp is the broker's clock when it was stored, milliseconds since 1970 UTC.
	StoreTimestamp int64
	// StoreSize is the length of its record, bytes.
	StoreSize int32
	// BodyCRC is the CRC-32 of the body as stored, without its top bit.
	BodyCRC uint32
}

// OffsetID is the id that the broker gave: its address and the physical offset in hex.
func (m *Received) OffsetID() string { return OffsetID(m.StoreHost, m.PhysicalOffset) }

// ID is the unique id that the producer gave, else the offset id: what a user calls the message's id.
func (m *Received) ID() string {
	if id, ok := m.Properties.Get(PropertyUniqueKey); ok && id != "" {
		return id
	}
	return m.OffsetID()
}
