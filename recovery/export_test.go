package recovery

// RangeSays and VoidUnits are the texts of plans and warnings.
func RangeSays(thing string, from, to int64, one, many string) string {
	return rangeSays(thing, from, to, one, many)
}

// VoidUnits names units.
func VoidUnits(units []int64, one, many string) string { return voidUnits(units, one, many) }
