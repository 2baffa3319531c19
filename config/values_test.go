package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/config"
)

// R-E-100: each value of a file has a path, by which two files are compared.
func TestValuesAreNamedByTheirPaths(t *testing.T) {
	got, err := config.Values("config/x.json", []byte(`{"offsetTable":{"T@G":{0:7,1:3}},"on":true,"list":["a",{}],"none":[],"twice":1,"twice":2}`))
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"offsetTable.T@G.0": "7", "offsetTable.T@G.1": "3", "on": "true", "list.0": `"a"`, "list.1": "{}", "none": "[]", "twice": "2",
	}, got)
	_, err = config.Values("config/x.json", []byte(`{"a":`))
	var damaged *config.DamageError
	require.ErrorAs(t, err, &damaged)
	require.Equal(t, "config/x.json", damaged.File)
	_, err = config.Values("config/x.json", make([]byte, 10))
	require.ErrorContains(t, err, "zero bytes only")
}

func FuzzValues(f *testing.F) {
	f.Add([]byte(`{"a":{0:1,"b":[1,{}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if values, err := config.Values("f", b); err == nil {
			require.NotNil(t, values)
		}
	})
}
