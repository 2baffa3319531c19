package config

// DataVersion says how often a table was changed, and when last.
type DataVersion struct {
	Counter      int64
	Timestamp    int64 // ms; spelt timestatmp in 3.1 and 4.0.0, either spelling is read and kept
	StateVersion int64 // 5.x
	read         value
}

const (
	misspelt = "timestatmp"
	spelt    = "timestamp"
)

// Advance counts a change made at now, milliseconds since 1970.
func (d *DataVersion) Advance(now int64) {
	d.Counter++
	d.Timestamp = now
}

func (d *DataVersion) fields(timestamp string) []field {
	return []field{
		{"counter", line31, &d.Counter},
		{timestamp, line31, &d.Timestamp},
		{"stateVersion", line53, &d.StateVersion},
	}
}

func (d *DataVersion) decode(v *value) error {
	if v.kind != object {
		return errNoObject
	}
	d.read = *v
	if err := decodeFields(v, d.fields(misspelt)); err != nil {
		return err
	}
	return decodeFields(v, d.fields(spelt))
}

func (d *DataVersion) encode(line string) value {
	timestamp := spelt
	if d.read.get(spelt) == nil && (d.read.get(misspelt) != nil || line == line31) {
		timestamp = misspelt
	}
	return encodeFields(d.read, line, d.fields(timestamp), new(DataVersion).fields(timestamp))
}
