package properties_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/properties"
)

// knobs are some options.
type knobs struct {
	name  string
	quiet bool
	size  int32
	wait  time.Duration
}

func settings() []properties.Setting[knobs] {
	return []properties.Setting[knobs]{
		properties.Text("name", func(k *knobs) *string { return &k.name }),
		properties.Bool("loud", true, func(k *knobs) *bool { return &k.quiet }),
		properties.Number("size", 1, 1<<40, func(k *knobs) *int32 { return &k.size }),
		properties.Time("waitMillis", time.Millisecond, func(k *knobs) *time.Duration { return &k.wait }),
		properties.Ignored[knobs]("role", "MASTER", "master"),
	}
}

func TestSettingsAreReadAndPrinted(t *testing.T) { // R-G-01, R-G-02
	k := knobs{name: "before", size: 7}
	unknown, err := properties.Apply(&k, settings(), "loud=false\nwaitMillis=1500\nother=1\nrole=master\n")
	require.NoError(t, err)
	require.Equal(t, []string{"other"}, unknown)
	require.Equal(t, knobs{"before", true, 7, 1500 * time.Millisecond}, k)
	text := properties.Print(&k, settings())
	require.Equal(t, "name=before\nloud=false\nsize=7\nwaitMillis=1500\nrole=MASTER\n", text)
	var again knobs
	_, err = properties.Apply(&again, settings(), text)
	require.NoError(t, err)
	require.Equal(t, k, again)
}

func TestRefusedSettingsSayWhatIsAllowed(t *testing.T) { // R-G-02
	for text, want := range map[string]string{
		"loud=maybe":         `line 1: property refused: loud = "maybe": allowed: true, false`,
		"\nsize=0":           `line 2: property refused: size = "0": allowed: 1 to`,
		"size=4294967296":    "allowed", // it does not fit
		"waitMillis=forever": "allowed: 1 to",
		"role=SLAVE":         "allowed: MASTER, master",
	} {
		_, err := properties.Apply(&knobs{}, settings(), text)
		require.ErrorIs(t, err, properties.ErrRefused)
		require.ErrorContains(t, err, want)
	}
	_, err := properties.Apply(&knobs{}, settings(), `name=\u12`)
	require.ErrorIs(t, err, properties.ErrSyntax)
}

func TestOnlyLiveSettingsChangeInARunningServer(t *testing.T) { // R-G-02
	list := append(settings(), properties.Live(properties.Number("rate", 1, 9, func(k *knobs) *int32 { return &k.size })))
	k := knobs{name: "a", size: 7}
	require.NoError(t, properties.Change(&k, list, "rate=9\nname=a\n"))
	require.Equal(t, int32(9), k.size)
	for text, want := range map[string]string{
		"name=b":             `line 1: property refused: name = "b": cannot be changed while the server runs`,
		"rate=10":            "allowed: 1 to 9",
		"\nrates=1":          `line 2: property refused: rates = "1": no such property`,
		"keyPassword=secret": `keyPassword = "…"`,
	} {
		err := properties.Change(&k, list, text)
		require.ErrorIs(t, err, properties.ErrRefused)
		require.ErrorContains(t, err, want)
	}
}

// listener has a port.
type listener struct{ port int }

func TestPortZeroMeansAny(t *testing.T) {
	list := []properties.Setting[listener]{properties.Port("listenPort", func(l *listener) *int { return &l.port })}
	for text, want := range map[string]int{"0": -1, "9876": 9876} {
		var l listener
		_, err := properties.Apply(&l, list, "listenPort="+text)
		require.NoError(t, err)
		require.Equal(t, want, l.port)
		require.Equal(t, "listenPort="+text+"\n", properties.Print(&l, list))
	}
	_, err := properties.Apply(&listener{}, list, "listenPort=70000")
	require.ErrorContains(t, err, "0 (any) to 65535")
}
