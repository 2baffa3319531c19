package properties

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Setting is one setting of options O under its name in a .properties file.
type Setting[O any] struct {
	Name string
	// Get is its value as text; Set reads it, and its error says what is allowed.
	Get func(o *O) string
	Set func(o *O, value string) error
}

// ErrRefused says that a property's value is not allowed.
var ErrRefused = errors.New("property refused")

// Apply reads text into o; what it does not name stays. Names that no setting has are returned. An error names the line, the
// property, its value and what is allowed, and matches [ErrRefused] or [ErrSyntax].
func Apply[O any](o *O, settings []Setting[O], text string) (unknown []string, err error) {
	pairs, err := Parse(text)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]*Setting[O], len(settings))
	for i := range settings {
		byName[settings[i].Name] = &settings[i]
	}
	for _, pair := range pairs {
		s := byName[pair.Name]
		if s == nil {
			unknown = append(unknown, pair.Name)
			continue
		}
		if err := s.Set(o, pair.Value); err != nil {
			return unknown, fmt.Errorf("line %d: %w: %s = %q: %w", pair.Line, ErrRefused, pair.Name, pair.Value, err)
		}
	}
	return unknown, nil
}

// Print gives all settings as the text of a .properties file.
func Print[O any](o *O, settings []Setting[O]) string {
	var b []byte
	for _, s := range settings {
		b = Append(b, s.Name, s.Get(o))
	}
	return string(b)
}

// Text is a setting of any text.
func Text[O any](name string, field func(*O) *string) Setting[O] {
	return Setting[O]{name, func(o *O) string { return *field(o) }, func(o *O, v string) error {
		*field(o) = v
		return nil
	}}
}

// Bool is a setting that is true or false. Not says that the field means the opposite.
func Bool[O any](name string, not bool, field func(*O) *bool) Setting[O] {
	return Setting[O]{name, func(o *O) string { return strconv.FormatBool(*field(o) != not) }, func(o *O, v string) error {
		if v != "true" && v != "false" {
			return errors.New("allowed: true, false")
		}
		*field(o) = (v == "true") != not
		return nil
	}}
}

// Number is a setting of a whole number within bounds.
func Number[O any, N int | int32 | int64](name string, least, most int64, field func(*O) *N) Setting[O] {
	return Setting[O]{name, func(o *O) string { return strconv.FormatInt(int64(*field(o)), 10) }, func(o *O, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < least || n > most || int64(N(n)) != n {
			return fmt.Errorf("allowed: %d to %d", least, most)
		}
		*field(o) = N(n)
		return nil
	}}
}

// Time is a setting of a time in whole units, up to 10 000 days.
func Time[O any](name string, unit time.Duration, field func(*O) *time.Duration) Setting[O] {
	most := int64(10_000 * 24 * time.Hour / unit)
	return Setting[O]{name, func(o *O) string { return strconv.FormatInt(int64(*field(o)/unit), 10) }, func(o *O, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 1 || n > most {
			return fmt.Errorf("allowed: 1 to %d", most)
		}
		*field(o) = time.Duration(n) * unit
		return nil
	}}
}

// Ignored is a setting that may be named, with any of the allowed values, and changes nothing: all else is refused.
func Ignored[O any](name string, allowed ...string) Setting[O] {
	return Setting[O]{name, func(*O) string { return allowed[0] }, func(_ *O, v string) error {
		if slices.Contains(allowed, v) {
			return nil
		}
		return fmt.Errorf("allowed: %q", allowed)
	}}
}
