package recovery

import "fmt"

// rangeText names the things from one to another, both of them, in a text: "unit 3" or "units 3 to 5".
func rangeText(thing string, from, to int64) string {
	if from == to {
		return fmt.Sprintf("%s %d", thing, from)
	}
	return fmt.Sprintf("%ss %d to %d", thing, from, to)
}

// rangeSays is rangeText with the verb that goes with it.
func rangeSays(thing string, from, to int64, one, many string) string {
	if from == to {
		return rangeText(thing, from, to) + " " + one
	}
	return rangeText(thing, from, to) + " " + many
}

// voidUnits names units of a queue, of which there are some, in ascending order, with the verb that goes with them.
func voidUnits(units []int64, one, many string) string {
	first, last := units[0], units[len(units)-1]
	if n := int64(len(units)); n <= last-first { // others lie between
		return fmt.Sprintf("%d units from %d to %d %s", n, first, last, many)
	}
	return rangeSays("unit", first, last, one, many)
}
