package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// optionNames are the fields of options that errors and warnings of the packages name.
func optionNames() []string {
	return []string{
		"OnDamage", "StartAnew", "SegmentSize", "QueueSegmentSize", "StateSegmentSize", "RedoSegmentSize", "IndexSlots", "IndexEntries",
		"MaxMessageSize", "MaxMapped", "FlushEvery", "CheckpointEvery", "DelayLevels", "SendTimeout", "TryTimeout", "CompressLevel",
		"MaxPending", "MaxScan",
	}
}

// inFlags is a text of a package in which the fields of its options are what they are to the user of a verb: a flag of that verb,
// one of recover, or plain words.
func inFlags(text string, verb *cobra.Command) string {
	return optionWord().ReplaceAllStringFunc(text, func(word string) string {
		if !slices.Contains(optionNames(), word) {
			return word
		}
		name := kebab(word)
		switch {
		case verb != nil && verb.Flags().Lookup(name) != nil:
			return "--" + name
		case word == "OnDamage", word == "StartAnew":
			return "storectl recover --" + name
		}
		return strings.ReplaceAll(name, "-", " ")
	})
}

func optionWord() *regexp.Regexp { return regexp.MustCompile(`\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b`) }

// kebab is a Go name as flags are written.
func kebab(name string) string {
	var b strings.Builder
	for i, c := range name {
		if i > 0 && 'A' <= c && c <= 'Z' {
			b.WriteByte('-')
		}
		b.WriteRune(c)
	}
	return strings.ToLower(b.String())
}

// inFlags is what recovery says, in the words of the verb that runs.
func (a *app) inFlags(warnings []warningRow, refused *warningRow) {
	for i := range warnings {
		warnings[i].Text = inFlags(warnings[i].Text, a.verb)
	}
	if refused != nil {
		refused.Text = inFlags(refused.Text, a.verb)
	}
}
