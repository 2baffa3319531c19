package remoting

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// TLSMode says which connections a server takes, after Java's tls.server.mode.
type TLSMode int

// The modes. A server without a certificate is never more than Disabled.
const (
	// TLSDisabled closes connections that begin a TLS handshake.
	TLSDisabled TLSMode = iota
	// TLSPermissive takes both kinds, told apart by their first byte.
	TLSPermissive
	// TLSEnforcing closes plain connections.
	TLSEnforcing
)

// ParseTLSMode reads "disabled", "permissive" or "enforcing".
func ParseTLSMode(s string) (TLSMode, error) {
	switch strings.ToLower(s) {
	case "disabled":
		return TLSDisabled, nil
	case "permissive":
		return TLSPermissive, nil
	case "enforcing":
		return TLSEnforcing, nil
	}
	return 0, fmt.Errorf("TLS mode %q is not disabled, permissive or enforcing", s)
}

// ServerTLS is how a server treats encrypted connections.
type ServerTLS struct {
	Mode TLSMode
	// Config is needed unless the mode is TLSDisabled; [CertificateFiles.Config] makes one that follows its files.
	Config *tls.Config
}

func (t *ServerTLS) check() error {
	if t.Mode < TLSDisabled || t.Mode > TLSEnforcing {
		return fmt.Errorf("TLS mode %d", t.Mode)
	}
	if t.Mode != TLSDisabled && t.Config == nil {
		return errors.New("TLS needs a certificate")
	}
	return nil
}

// handshakeRecord is the first byte of a TLS connection. That of a plain frame is the top byte of L, at most 1.
const handshakeRecord = 0x16

var errWrongKind = errors.New("the mode of TLS does not allow this connection")

// secure looks at the first byte of nc, does the handshake if it begins one, and returns the connection to go on with.
func (t *ServerTLS) secure(ctx context.Context, nc net.Conn, idle, handshake time.Duration) (net.Conn, error) {
	if err := nc.SetReadDeadline(time.Now().Add(idle)); err != nil {
		return nil, err
	}
	var first [1]byte
	if _, err := nc.Read(first[:]); err != nil {
		return nil, err
	}
	peeked := &peekedConn{Conn: nc, first: first[0], full: true}
	encrypted := first[0] == handshakeRecord
	if encrypted && t.Mode == TLSDisabled || !encrypted && t.Mode == TLSEnforcing {
		return nil, errWrongKind
	}
	if !encrypted {
		return peeked, nil
	}
	ctx, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	if err := nc.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	c := tls.Server(peeked, t.Config)
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	return c, nil
}

// peekedConn gives back the byte that was looked at.
type peekedConn struct {
	net.Conn
	first byte
	full  bool // first was not read yet; only the reading goroutine looks at it
}

// Read implements net.Conn.
func (c *peekedConn) Read(p []byte) (int, error) {
	if c.full && len(p) > 0 {
		p[0], c.full = c.first, false
		return 1, nil
	}
	return c.Conn.Read(p)
}

// CertificateFiles name PEM files of a server or client. They are looked at again during handshakes, at most once per
// Every; a pair that does not load is logged and the last good one goes on being used.
type CertificateFiles struct {
	// CertFile and KeyFile are the certificate chain and its private key, which must not be encrypted.
	CertFile, KeyFile string
	// TrustFile holds the certificates of those who may sign the peer's; empty: the system's for a client, none for a server.
	TrustFile string
	// ClientAuth is what a server asks of its clients, after Java's tls.server.need.client.auth: "" or "none", "optional",
	// "require".
	ClientAuth string
	// Every is how long a look at the files counts. Default 1 s.
	Every time.Duration
	// Logger is told of reloads and of files that do not load. Default: discard.
	Logger *slog.Logger
}

// Config loads the files and returns a server's configuration that follows their changes. Only the certificate and its key are
// reloaded, not the trusted ones.
func (f *CertificateFiles) Config() (*tls.Config, error) {
	r := &certReloader{files: *f}
	r.files.Every = cmp.Or(f.Every, time.Second)
	r.files.Logger = cmp.Or(f.Logger, slog.New(slog.DiscardHandler))
	if _, err := r.load(); err != nil {
		return nil, err
	}
	c := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return r.current(), nil },
	}
	var err error
	if c.ClientAuth, err = clientAuth(f.ClientAuth); err != nil {
		return nil, err
	}
	if f.TrustFile != "" {
		if c.ClientCAs, err = loadPool(f.TrustFile); err != nil {
			return nil, err
		}
	} else if c.ClientAuth != tls.NoClientCert {
		return nil, errors.New("client authentication needs the certificates to trust")
	}
	return c, nil
}

// ClientConfig is Config for a client: TrustFile checks the server, and the pair, if there is one, is shown to it.
func (f *CertificateFiles) ClientConfig() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CertFile != "" {
		server, err := (&CertificateFiles{CertFile: f.CertFile, KeyFile: f.KeyFile, Every: f.Every, Logger: f.Logger}).Config()
		if err != nil {
			return nil, err
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return server.GetCertificate(nil)
		}
	}
	if f.TrustFile != "" {
		pool, err := loadPool(f.TrustFile)
		if err != nil {
			return nil, err
		}
		c.RootCAs = pool
	}
	return c, nil
}

func clientAuth(s string) (tls.ClientAuthType, error) {
	switch strings.ToLower(s) {
	case "", "none":
		return tls.NoClientCert, nil
	case "optional":
		return tls.VerifyClientCertIfGiven, nil
	case "require":
		return tls.RequireAndVerifyClientCert, nil
	}
	return 0, fmt.Errorf("client authentication %q is not none, optional or require", s)
}

func loadPool(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("trusted certificates: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("trusted certificates: none in %s", file)
	}
	return pool, nil
}

// certReloader holds the last good pair.
type certReloader struct {
	files CertificateFiles

	mu     sync.Mutex
	cert   *tls.Certificate
	stamp  [2]fileStamp // of the files when they were last loaded or refused
	looked time.Time
}

type fileStamp struct {
	modified time.Time
	size     int64
}

func stampOf(file string) fileStamp {
	info, err := os.Stat(file)
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{info.ModTime(), info.Size()}
}

// current is the pair for a handshake of now.
func (r *certReloader) current() *tls.Certificate {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.looked) >= r.files.Every {
		r.looked = now
		if stamp := r.stamps(); stamp != r.stamp {
			r.reload(stamp)
		}
	}
	return r.cert
}

// reload takes changed files if they are good. The caller holds mu.
func (r *certReloader) reload(stamp [2]fileStamp) {
	cert, err := tls.LoadX509KeyPair(r.files.CertFile, r.files.KeyFile)
	r.stamp = stamp
	if err != nil {
		r.files.Logger.Warn("certificate not reloaded", "file", r.files.CertFile, "err", err)
		return
	}
	r.cert = &cert
	r.files.Logger.Info("certificate reloaded", "file", r.files.CertFile)
}

func (r *certReloader) stamps() [2]fileStamp {
	return [2]fileStamp{stampOf(r.files.CertFile), stampOf(r.files.KeyFile)}
}

func (r *certReloader) load() (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stamp, r.looked = r.stamps(), time.Now()
	cert, err := tls.LoadX509KeyPair(r.files.CertFile, r.files.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	r.cert = &cert
	return r.cert, nil
}

// TLSSettings are the encryption of a server's connections as it is configured. The zero value means none: connections that
// begin a handshake are closed.
type TLSSettings struct {
	// Mode is disabled, permissive (both kinds are taken) or enforcing. Default: permissive if there is a certificate,
	// else disabled. Java: tls.server.mode.
	Mode string
	// CertFile and KeyFile are PEM files. They are read anew when they change. Java: tls.server.certPath, tls.server.keyPath.
	CertFile, KeyFile string
	// TrustFile holds who may sign clients' certificates, ClientAuth is none, optional or require. Java:
	// tls.server.trustCertPath, tls.server.need.client.auth.
	TrustFile, ClientAuth string
	// Config, if not nil, is used in place of the files.
	Config *tls.Config
}

// Server is what the settings mean to a [Server]. An error names the file or the mode.
func (t *TLSSettings) Server(log *slog.Logger) (ServerTLS, error) {
	config := t.Config
	if config == nil && (t.CertFile != "" || t.KeyFile != "") {
		files := CertificateFiles{
			CertFile: t.CertFile, KeyFile: t.KeyFile, TrustFile: t.TrustFile, ClientAuth: t.ClientAuth, Logger: log,
		}
		var err error
		if config, err = files.Config(); err != nil {
			return ServerTLS{}, err
		}
	}
	mode := cmp.Or(t.Mode, "permissive")
	if config == nil && t.Mode == "" {
		mode = "disabled"
	}
	m, err := ParseTLSMode(mode)
	return ServerTLS{Mode: m, Config: config}, err
}
