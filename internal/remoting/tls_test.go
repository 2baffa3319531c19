package remoting_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

func slowly(p *remoting.Pipe) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		time.Sleep(time.Second)
		return p.Dial(ctx, addr)
	}
}

// writeCertificate makes a self-signed pair for localhost with the given serial number and returns its files.
func writeCertificate(t *testing.T, dir string, serial int64) remoting.CertificateFiles {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0), IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	files := remoting.CertificateFiles{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	require.NoError(t, os.WriteFile(files.CertFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(files.KeyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	return files
}

func TestTLSModes(t *testing.T) { // R-G-12, protocol.md 12.2
	files := writeCertificate(t, t.TempDir(), 1)
	files.TrustFile = files.CertFile
	for _, tt := range []struct {
		mode             string
		plain, encrypted bool // which one is taken
	}{{"disabled", true, false}, {"permissive", true, true}, {"Enforcing", false, true}} {
		t.Run(tt.mode, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mode, err := remoting.ParseTLSMode(tt.mode)
				require.NoError(t, err)
				serverConfig, err := files.Config()
				require.NoError(t, err)
				clientConfig, err := files.ClientConfig()
				require.NoError(t, err)
				_, p := serve(t, &remoting.ServerOptions{Handler: echo, TLS: remoting.ServerTLS{Mode: mode, Config: serverConfig}})
				for encrypted, want := range map[bool]bool{false: tt.plain, true: tt.encrypted} {
					o := remoting.ClientOptions{}
					if encrypted {
						o.TLS = clientConfig
					}
					req := remoting.NewRequest(1)
					req.Body = make([]byte, 1<<20)
					resp, err := newClient(t, p, o).Call(within(t, 10*time.Second), "localhost:9876", req)
					if !want {
						require.Error(t, err)
						continue
					}
					require.NoError(t, err)
					require.Len(t, resp.Body, len(req.Body))
				}
			})
		})
	}
	_, err := remoting.ParseTLSMode("strict")
	require.ErrorContains(t, err, `"strict"`)
}

func TestAHandshakeThatHangsIsClosed(t *testing.T) {
	files := writeCertificate(t, t.TempDir(), 1)
	bubble(t, func(t *testing.T) {
		config, err := files.Config()
		require.NoError(t, err)
		s, p := serve(t, &remoting.ServerOptions{TLS: remoting.ServerTLS{Mode: remoting.TLSPermissive, Config: config}})
		nc, err := p.Dial(t.Context(), "a")
		require.NoError(t, err)
		_, err = nc.Write([]byte{0x16, 3, 1})
		require.NoError(t, err)
		began := time.Now()
		_, err = nc.Read(make([]byte, 1))
		require.Error(t, err)
		require.Equal(t, 10*time.Second, time.Since(began))
		synctest.Wait()
		require.Zero(t, s.Stats().Connections)
	})
}

func TestClientsShowTheirCertificateWhenAsked(t *testing.T) {
	files := writeCertificate(t, t.TempDir(), 1)
	files.TrustFile, files.ClientAuth = files.CertFile, "require"
	bubble(t, func(t *testing.T) {
		serverConfig, err := files.Config()
		require.NoError(t, err)
		_, p := serve(t, &remoting.ServerOptions{Handler: echo, TLS: remoting.ServerTLS{Mode: remoting.TLSEnforcing, Config: serverConfig}})
		with, err := files.ClientConfig()
		require.NoError(t, err)
		_, err = newClient(t, p, remoting.ClientOptions{TLS: with}).Call(within(t, time.Second), "localhost:1", remoting.NewRequest(1))
		require.NoError(t, err)
		without, err := (&remoting.CertificateFiles{TrustFile: files.TrustFile}).ClientConfig()
		require.NoError(t, err)
		_, err = newClient(t, p, remoting.ClientOptions{TLS: without}).Call(within(t, time.Second), "localhost:1", remoting.NewRequest(1))
		require.Error(t, err)
	})
}

func TestCertificatesAreReloadedAndBadOnesAreNot(t *testing.T) { // R-G-12
	dir := t.TempDir()
	files := writeCertificate(t, dir, 1)
	bubble(t, func(t *testing.T) {
		config, err := files.Config()
		require.NoError(t, err)
		_, p := serve(t, &remoting.ServerOptions{Handler: echo, TLS: remoting.ServerTLS{Mode: remoting.TLSEnforcing, Config: config}})
		serial := func() int64 {
			nc, err := p.Dial(t.Context(), "a")
			require.NoError(t, err)
			defer nc.Close()
			c := tls.Client(nc, &tls.Config{InsecureSkipVerify: true})
			require.NoError(t, c.HandshakeContext(within(t, time.Second)))
			return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
		}
		require.Equal(t, int64(1), serial())
		writeCertificate(t, dir, 22222222222222)
		require.Equal(t, int64(1), serial()) // looked at a moment ago
		time.Sleep(time.Second)
		require.Equal(t, int64(22222222222222), serial())
		require.NoError(t, os.WriteFile(files.KeyFile, []byte("not a key"), 0o600))
		time.Sleep(time.Second)
		require.Equal(t, int64(22222222222222), serial())
	})
}

func TestCertificateFilesThatDoNotLoadAreNamed(t *testing.T) {
	files := writeCertificate(t, t.TempDir(), 1)
	for want, f := range map[string]remoting.CertificateFiles{
		"absent.pem":     {CertFile: "absent.pem", KeyFile: files.KeyFile},
		"to trust":       {CertFile: files.CertFile, KeyFile: files.KeyFile, ClientAuth: "require"},
		`"sometimes"`:    {CertFile: files.CertFile, KeyFile: files.KeyFile, ClientAuth: "sometimes"},
		"none in":        {CertFile: files.CertFile, KeyFile: files.KeyFile, ClientAuth: "optional", TrustFile: files.KeyFile},
		"trusted":        {CertFile: files.CertFile, KeyFile: files.KeyFile, TrustFile: "absent"},
		"failed to find": {CertFile: files.KeyFile, KeyFile: files.CertFile},
	} {
		_, err := f.Config()
		require.ErrorContains(t, err, want)
	}
	_, err := (&remoting.CertificateFiles{TrustFile: "absent"}).ClientConfig()
	require.Error(t, err)
	_, err = (&remoting.CertificateFiles{CertFile: "absent"}).ClientConfig()
	require.Error(t, err)
}
