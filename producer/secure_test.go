package producer_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/internal/mqtest"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/producer"
	"github.com/rocketstore/rocketstore/trace"
)

// accounts are a sender and one that may do nothing. The trace topic is free for all that sign.
const accounts = `accounts:
- accessKey: sender
  secretKey: 12345678
  defaultTopicPerm: DENY
  defaultGroupPerm: SUB
  topicPerms:
  - T=PUB
- accessKey: nobody
  secretKey: 12345678
  defaultTopicPerm: DENY
`

// realBroker is a broker of ours in memory, and a name server that knows it.
type realBroker struct {
	*broker.Broker
	net *mqtest.Net
	tls *tls.Config // of clients; nil: plain
}

// serveReal starts both. With secure they take encrypted connections only, with rules signed requests only.
func serveReal(t *testing.T, secure bool, rules string) *realBroker {
	t.Helper()
	const addr = "10.0.0.1:10911"
	r := &realBroker{net: mqtest.New(t)}
	var settings remoting.TLSSettings
	if secure {
		settings = remoting.TLSSettings{Mode: "enforcing"}
		settings.Config, r.tls = certified(t)
	}
	names := mqtest.NewNames()
	for _, topic := range []string{"T", "Mine", trace.Topic} {
		names.Set(topic, 1, "broker-a", addr)
	}
	serveNames(t, r.net.Listen("ns:9876"), names, &settings)

	o := broker.Options{Name: "broker-a", Memory: 1 << 30, TLS: settings}
	_, err := o.SetProperties("transactionTimeOut=1000\ntransactionCheckInterval=1000\ndefaultTopicQueueNums=1")
	require.NoError(t, err)
	o.Store.FS, o.Store.Sparse = memfs.New(), true
	o.Store.SegmentSize, o.Store.QueueSegmentSize, o.Store.IndexSlots, o.Store.IndexEntries = 8<<20, 6000, 100, 400
	if rules != "" {
		o.ACL, o.ACLFile = true, filepath.Join(t.TempDir(), "plain_acl.yml")
		require.NoError(t, os.WriteFile(o.ACLFile, []byte(rules), 0o600))
	}
	r.Broker, err = broker.New(t.Context(), &o)
	require.NoError(t, err)
	served := make(chan error, 1)
	pipe := r.net.Listen(addr)
	go func() { served <- r.Serve(context.Background(), pipe) }()
	t.Cleanup(func() {
		require.NoError(t, r.Shutdown(context.Background()))
		require.NoError(t, <-served)
	})
	synctest.Wait()
	return r
}

func serveNames(t *testing.T, l *remoting.Pipe, names *mqtest.Names, settings *remoting.TLSSettings) {
	t.Helper()
	config, err := settings.Server(nil)
	require.NoError(t, err)
	s, err := remoting.NewServer(&remoting.ServerOptions{Handler: names.Handle, TLS: config})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		s.Close()
		require.NoError(t, <-served)
	})
}

// certified are the configurations of a server and of clients that trust it.
func certified(t *testing.T) (server, clients *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"}, DNSNames: []string{"broker"}, NotBefore: time.Unix(0, 0),
		NotAfter: time.Unix(1<<32, 0), IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: "broker"}
}

func (r *realBroker) options(key string) producer.Options {
	o := producer.Options{Group: "PG", Retries: -1, AsyncRetries: -1}
	o.ClientOptions = producer.ClientOptions{NameServers: []string{"ns:9876"}, Dial: r.net.Dial, TLS: r.tls}
	if name, secret, ok := strings.Cut(key, ":"); ok {
		o.ClientOptions.Credentials = &producer.Credentials{AccessKey: name, SecretKey: secret}
	}
	return o
}

// bodies are those that consumers of a topic would see.
func (r *realBroker) bodies(t *testing.T, topic string) (list []string) {
	t.Helper()
	for m, err := range r.Store().Messages(topic, 0, 0) {
		require.NoError(t, err)
		list = append(list, string(m.Body))
	}
	return list
}

// sendAll sends in each mode; the transaction is left open until the broker asks.
func sendAll(t *testing.T, r *realBroker, o producer.Options) {
	t.Helper()
	o.Trace = true
	o.Listener = &listener{
		execute: func(*message.Message, producer.Result, any) (producer.TransactionState, error) {
			return producer.Unknown, nil
		},
		check: func(*message.Received) (producer.TransactionState, error) { return producer.Commit, nil },
	}
	p, err := producer.New(&o)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context()))
	sent, err := p.Send(t.Context(), msg("T", "sync"))
	require.NoError(t, err)
	done := make(chan outcome, 1)
	require.NoError(t, p.Async(t.Context(), msg("T", "async"), into(done)))
	require.NoError(t, (<-done).err)
	require.NoError(t, p.Oneway(t.Context(), msg("T", "oneway")))
	synctest.Wait()
	_, err = p.SendBatch(t.Context(), []*message.Message{msg("T", "batch1"), msg("T", "batch2")})
	require.NoError(t, err)
	_, err = p.SendInTransactionBy(t.Context(), msg("T", "commit"), func(context.Context, *message.Message, producer.Result, any) (producer.TransactionState, error) {
		return producer.Commit, nil
	}, nil)
	require.NoError(t, err)
	open, err := p.SendInTransaction(t.Context(), msg("T", "checked"), nil)
	require.NoError(t, err)
	want := []string{"sync", "async", "oneway", "batch1", "batch2", "commit"}
	synctest.Wait()
	require.Equal(t, want, r.bodies(t, "T"))
	time.Sleep(2 * time.Minute) // the bubble's
	require.Equal(t, append(want, "checked"), r.bodies(t, "T"))
	require.Positive(t, p.Stats().Checks)

	require.NoError(t, p.Shutdown(t.Context()))
	require.Zero(t, p.Stats().TraceDiscarded)
	var records []trace.Context
	for _, body := range r.bodies(t, trace.Topic) {
		for c, err := range trace.Decode([]byte(body)) {
			require.NoError(t, err)
			records = append(records, c)
		}
	}
	require.Len(t, trace.NewTimeline(sent.MessageID, records).Sends, 1)
	ends := trace.NewTimeline(open.MessageID, records).Ends
	require.True(t, slices.ContainsFunc(ends, func(c trace.Context) bool { return c.Beans[0].FromCheck && c.Beans[0].State == trace.StateCommit }))
}

func TestEveryModeWorksSigned(t *testing.T) { // R-G-13, R-A-05, R-D-115, R-D-119
	synctest.Test(t, func(t *testing.T) {
		r := serveReal(t, false, accounts)
		sendAll(t, r, r.options("sender:12345678"))
		require.Zero(t, r.Stats().Denied)
	})
}

func TestEveryModeWorksEncrypted(t *testing.T) { // R-G-12, R-A-05, R-D-115, R-D-119
	synctest.Test(t, func(t *testing.T) {
		r := serveReal(t, true, "")
		sendAll(t, r, r.options(""))
	})
}

func TestEveryModeWorksSignedAndEncrypted(t *testing.T) { // R-G-12, R-G-13
	synctest.Test(t, func(t *testing.T) {
		r := serveReal(t, true, accounts)
		sendAll(t, r, r.options("sender:12345678"))
		require.Zero(t, r.Stats().Denied)
	})
}

func TestWithoutTheRightsNothingIsStoredAndTheSenderIsTold(t *testing.T) { // R-G-13, R-D-074, R-D-120
	synctest.Test(t, func(t *testing.T) {
		r := serveReal(t, false, accounts)
		for _, key := range []string{"", "sender:87654321", "stranger:12345678", "nobody:12345678"} {
			o := r.options(key)
			o.Listener = &listener{execute: func(*message.Message, producer.Result, any) (producer.TransactionState, error) {
				t.Error("a transaction whose message was refused")
				return producer.Commit, nil
			}}
			p, err := producer.New(&o)
			require.NoError(t, err)
			require.NoError(t, p.Start(t.Context()))
			done := make(chan outcome, 1)
			_, send := p.Send(t.Context(), msg("T", "x"))
			_, batch := p.SendBatch(t.Context(), []*message.Message{msg("T", "x"), msg("T", "y")})
			_, transaction := p.SendInTransaction(t.Context(), msg("T", "x"), nil)
			require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
			require.NoError(t, p.Oneway(t.Context(), msg("T", "x"))) // nobody answers it
			for _, err := range []error{send, batch, transaction, (<-done).err} {
				refused, ok := errors.AsType[*producer.BrokerError](err)
				require.True(t, ok, "%q: %v", key, err)
				require.Equal(t, remoting.SystemError, refused.Code)
			}
			require.NoError(t, p.Shutdown(t.Context()))
		}
		require.Empty(t, r.bodies(t, "T"))
		require.Zero(t, r.Stats().Sent)
	})
}

func TestATraceWithoutItsRightsHarmsNoSend(t *testing.T) { // R-G-13, R-A-55
	synctest.Test(t, func(t *testing.T) {
		r := serveReal(t, false, accounts)
		o := r.options("sender:12345678")
		o.Trace, o.TraceTopic = true, "Mine"
		p, err := producer.New(&o)
		require.NoError(t, err)
		require.NoError(t, p.Start(t.Context()))
		for range 3 {
			_, err := p.Send(t.Context(), msg("T", "x"))
			require.NoError(t, err)
		}
		require.NoError(t, p.Shutdown(t.Context()))
		require.Len(t, r.bodies(t, "T"), 3)
		require.EqualValues(t, 3, r.Stats().Sent)
		require.EqualValues(t, 3, p.Stats().TraceDiscarded)
	})
}

func TestAPlainOrMistrustingClientReachesNoEncryptedBroker(t *testing.T) { // R-G-12, R-D-120
	synctest.Test(t, func(t *testing.T) {
		r := serveReal(t, true, "")
		for _, config := range []*tls.Config{nil, {MinVersion: tls.VersionTLS12, ServerName: "broker"}, {MinVersion: tls.VersionTLS12, RootCAs: r.tls.RootCAs, ServerName: "other"}} {
			o := r.options("")
			o.ClientOptions.TLS = config
			p, err := producer.New(&o)
			require.NoError(t, err)
			require.NoError(t, p.Start(t.Context()))
			_, err = p.Send(t.Context(), msg("T", "x"))
			require.Error(t, err)
			require.NoError(t, p.Shutdown(t.Context()))
		}
		require.Empty(t, r.bodies(t, "T"))
	})
}
