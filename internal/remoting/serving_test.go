package remoting_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

func TestNobodyServesAfterTheEnd(t *testing.T) { // R-G-10
	var s remoting.Serving
	require.False(t, s.Ready())
	require.True(t, s.Enter())
	require.True(t, s.Ready())
	require.True(t, s.End())
	require.False(t, s.End())
	require.False(t, s.Ready())
	require.True(t, s.Ended())
	require.False(t, s.Enter())
	s.Leave()
}

func TestTheModeOfTLSFollowsTheCertificate(t *testing.T) { // R-G-12
	s, err := (&remoting.TLSSettings{}).Server(nil)
	require.NoError(t, err)
	require.Nil(t, s.Config)
	_, err = (&remoting.TLSSettings{Mode: "perhaps"}).Server(nil)
	require.ErrorContains(t, err, "perhaps")
	_, err = (&remoting.TLSSettings{CertFile: "absent.pem", KeyFile: "absent.pem"}).Server(nil)
	require.Error(t, err)
}
