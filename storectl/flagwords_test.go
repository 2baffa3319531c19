package main

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/golden"
)

// What a package says of its options, a verb says of its flags.
func TestOptionsAreNamedAsFlags(t *testing.T) {
	goName := regexp.MustCompile(`\b(OnDamage|StartAnew|CutAndKeep|(Queue|State|Redo)?SegmentSize|Index(Slots|Entries)|MaxMessageSize)\b`)
	bad := golden.Unpack(t, "rocketmq-4.9.7/abort-badcrc")
	fine := golden.Unpack(t, "rocketmq-4.9.7/clean")
	for want, args := range map[string][]string{
		"open with --on-damage to end the log":                  {"plan", bad},
		"open with --on-damage to":                              {"recover", bad, "--json"},
		"passed over by --on-damage and kept":                   {"plan", bad, "--on-damage", "skip"},
		"open with storectl recover --on-damage to end the log": {"put", bad, "--topic", "T"},
		"--segment-size 4096 asked for":                         {"put", fine, "--topic", "T", "--segment-size", "4096"},
		"--index-slots 7 asked for":                             {"recover", fine, "--index-slots", "7"},
		"--queue-segment-size is -5":                            {"put", fine, "--topic", "T", "--queue-segment-size", "-5"},
	} {
		_, out, errOut := call(t, args...)
		require.Contains(t, out+errOut, want)
		require.NotRegexp(t, goName, out+errOut)
	}
}
