package properties

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Setting is one setting of options O under its name in a .properties file.
type Setting[O any] struct {
	Name string
	// Get is its value as text; Set reads it, and its error says what is allowed.
	Get func(o *O) string
	Set func(o *O, value string) error
	// Live says that it may be changed while the server runs.
	Live bool
}

// Live is a setting that may be changed while the server runs.
func Live[O any](s Setting[O]) Setting[O] {
	s.Live = true
	return s
}

// ErrRefused says that a property's value is not allowed, or that it cannot be changed.
var ErrRefused = errors.New("property refused")

// ErrNotLive says, besides, that it needs a restart.
var ErrNotLive = errors.New("cannot be changed while the server runs")

// refuse says which property was refused, but never shows a password.
func refuse(pair Pair, err error) error {
	if strings.HasSuffix(pair.Name, "Password") {
		pair.Value = "…"
	}
	return fmt.Errorf("line %d: %w: %s = %q: %w", pair.Line, ErrRefused, pair.Name, pair.Value, err)
}

// Apply reads text into o; what it does not name stays. Names that no setting has are returned. An error names the line, the
// property, its value and what is allowed, and matches [ErrRefused] or [ErrSyntax].
func Apply[O any](o *O, settings []Setting[O], text string) (unknown []string, err error) {
	pairs, err := Parse(text)
	if err != nil {
		return nil, err
	}
	byName := index(settings)
	for _, pair := range pairs {
		s := byName[pair.Name]
		if s == nil {
			unknown = append(unknown, pair.Name)
			continue
		}
		if err := s.Set(o, pair.Value); err != nil {
			return unknown, refuse(pair, err)
		}
	}
	return unknown, nil
}

func index[O any](settings []Setting[O]) map[string]*Setting[O] {
	byName := make(map[string]*Setting[O], len(settings))
	for i := range settings {
		byName[settings[i].Name] = &settings[i]
	}
	return byName
}

// Change is Apply for options that are in use: only what is live may change, and names that no setting has are refused. A whole
// configuration may be sent back, so the value that a setting has already is taken of any. With an error o is not to be used.
func Change[O any](o *O, settings []Setting[O], text string) error {
	pairs, err := Parse(text)
	if err != nil {
		return err
	}
	byName := index(settings)
	for _, pair := range pairs {
		s := byName[pair.Name]
		switch {
		case s == nil:
			err = errors.New("no such property")
		case s.Live:
			err = s.Set(o, pair.Value)
		case s.Get(o) != pair.Value:
			err = ErrNotLive
		}
		if err != nil {
			return refuse(pair, err)
		}
	}
	return nil
}

// LivePairs gives those properties of a text that may be changed while the server runs. Errors are those of [Parse].
func LivePairs[O any](settings []Setting[O], text string) (live []Pair, err error) {
	pairs, err := Parse(text)
	byName := index(settings)
	for _, pair := range pairs {
		if s := byName[pair.Name]; s != nil && s.Live {
			live = append(live, pair)
		}
	}
	return live, err
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
	return Setting[O]{Name: name, Get: func(o *O) string { return *field(o) }, Set: func(o *O, v string) error {
		*field(o) = v
		return nil
	}}
}

// Bool is a setting that is true or false. Not says that the field means the opposite.
func Bool[O any](name string, not bool, field func(*O) *bool) Setting[O] {
	return Setting[O]{Name: name, Get: func(o *O) string { return strconv.FormatBool(*field(o) != not) }, Set: func(o *O, v string) error {
		if v != "true" && v != "false" {
			return errors.New("allowed: true, false")
		}
		*field(o) = (v == "true") != not
		return nil
	}}
}

// Number is a setting of a whole number within bounds.
func Number[O any, N int | int32 | int64](name string, least, most int64, field func(*O) *N) Setting[O] {
	return Setting[O]{Name: name, Get: func(o *O) string { return strconv.FormatInt(int64(*field(o)), 10) }, Set: func(o *O, v string) error {
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
	return Setting[O]{Name: name, Get: func(o *O) string { return strconv.FormatInt(int64(*field(o)/unit), 10) }, Set: func(o *O, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 1 || n > most {
			return fmt.Errorf("allowed: 1 to %d", most)
		}
		*field(o) = time.Duration(n) * unit
		return nil
	}}
}

// Port is a setting of a port to listen on, where 0 means any. In the options that is a negative one, since 0 is their default.
func Port[O any](name string, field func(*O) *int) Setting[O] {
	return Setting[O]{Name: name, Get: func(o *O) string { return strconv.Itoa(max(*field(o), 0)) }, Set: func(o *O, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > 65535 {
			return errors.New("allowed: 0 (any) to 65535")
		}
		if *field(o) = n; n == 0 {
			*field(o) = -1
		}
		return nil
	}}
}

// Ignored is a setting that may be named, with any of the allowed values, and changes nothing: all else is refused.
func Ignored[O any](name string, allowed ...string) Setting[O] {
	return Setting[O]{Name: name, Get: func(*O) string { return allowed[0] }, Set: func(_ *O, v string) error {
		if slices.Contains(allowed, v) {
			return nil
		}
		return fmt.Errorf("allowed: %s", cmp.Or(strings.Join(allowed, ", "), "nothing"))
	}}
}
