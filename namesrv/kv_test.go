package namesrv_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
	"github.com/rocketstore/rocketstore/namesrv"
)

func put(p *peer, namespace, key, value string) {
	p.w.t.Helper()
	resp := p.ask(remoting.PutKVConfig, remoting.String("namespace", namespace), remoting.String("key", key), remoting.String("value", value))
	require.Equal(p.w.t, remoting.Success, resp.Code, resp.Remark)
}

func get(p *peer, namespace, key string) *remoting.Command {
	p.w.t.Helper()
	return p.ask(remoting.GetKVConfig, remoting.String("namespace", namespace), remoting.String("key", key))
}

func TestKeyValuesArePutReadListedAndDeleted(t *testing.T) { // R-C-52
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.peer()
		resp := p.send(captured(t, "java314_producer.json", "GET_KV_CONFIG")[0]) // what a 3.1 client begins with
		require.Equal(t, remoting.QueryNotFound, resp.Code)
		require.Equal(t, "No config item, Namespace: PROJECT_CONFIG Key: 127.0.0.1", resp.Remark)
		require.Equal(t, remoting.Success, p.send(captured(t, "java497_admin.json", "PUT_KV_CONFIG")[0]).Code)
		require.Equal(t, "v1", p.send(captured(t, "java497_admin.json", "GET_KV_CONFIG")[0]).Fields.Get("value"))

		put(p, "NS1", "k2", "line\nbreak \"and\" 中文")
		table, err := route.ParseTable(p.ask(remoting.GetKVList, remoting.String("namespace", "NS1")).Body)
		require.NoError(t, err)
		require.Equal(t, map[string]string{"k1": "v1", "k2": "line\nbreak \"and\" 中文"}, table)
		for range 2 { // twice is fine
			require.Equal(t, remoting.Success, p.ask(remoting.DeleteKVConfig, remoting.String("namespace", "NS1"), remoting.String("key", "k1")).Code)
		}
		require.Equal(t, remoting.QueryNotFound, get(p, "NS1", "k1").Code)
		require.Equal(t, remoting.QueryNotFound, p.ask(remoting.GetKVList, remoting.String("namespace", "NS9")).Code)
		for _, f := range []remoting.Fields{
			{remoting.String("namespace", "NS1"), remoting.String("value", "v")},
			{remoting.String("key", "k"), remoting.String("value", "v")},
			{remoting.String("namespace", "NS1"), remoting.String("key", "k")},
		} {
			require.Equal(t, remoting.SystemError, p.ask(remoting.PutKVConfig, f...).Code)
		}
	})
}

func TestKeyValuesAreThereAfterARestart(t *testing.T) { // R-C-52, R-C-06
	home := t.TempDir()
	file := filepath.Join(home, "namesrv", "kvConfig.json")
	o := &namesrv.Options{Home: home}
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		put(p, "ns", "a", "1")
		put(p, "ns", "b", "2")
	})
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, `{"configTable":{"ns":{"a":"1","b":"2"}}}`, string(content)) //nolint:testifylint // the very bytes are the point
	bak, err := os.ReadFile(file + ".bak")
	require.NoError(t, err)
	require.Equal(t, `{"configTable":{"ns":{"a":"1"}}}`, string(bak)) //nolint:testifylint // the very bytes are the point
	inWorld(t, o, func(t *testing.T, w *world) {
		require.Equal(t, "2", get(w.peer(), "ns", "b").Fields.Get("value"))
	})
	require.NoFileExists(t, file+".tmp")

	require.NoError(t, os.WriteFile(file, []byte(`{"configTable":{"ns":{"a`), 0o600)) // damaged: the .bak stands in
	inWorld(t, o, func(t *testing.T, w *world) {
		require.Equal(t, "1", get(w.peer(), "ns", "a").Fields.Get("value"))
		require.Equal(t, remoting.QueryNotFound, get(w.peer(), "ns", "b").Code)
	})
	require.NoError(t, os.Remove(file+".bak"))
	_, err = namesrv.New(o) // R-C-11: a damaged file is never taken for an empty one
	require.ErrorContains(t, err, "kvConfig.json")
}

func TestAKeyThatCannotBeSavedIsNotTaken(t *testing.T) {
	dir := t.TempDir()
	blocked := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	inWorld(t, &namesrv.Options{KVConfigPath: filepath.Join(dir, "sub", "kv.json")}, func(t *testing.T, w *world) {
		p := w.peer()
		put(p, "ns", "k", "v")
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "sub")))
		require.NoError(t, os.Rename(blocked, filepath.Join(dir, "sub"))) // a file where the directory was
		resp := p.ask(remoting.PutKVConfig, remoting.String("namespace", "ns"), remoting.String("key", "k"), remoting.String("value", "new"))
		require.Equal(t, remoting.SystemError, resp.Code)
		require.Equal(t, "v", get(p, "ns", "k").Fields.Get("value"))
	})
}

func TestOrderedTopicsAreInTheRouteIfAsked(t *testing.T) { // R-C-47
	for _, on := range []bool{false, true} {
		inWorld(t, &namesrv.Options{OrderMessages: on}, func(t *testing.T, w *world) {
			p := w.peer()
			p.register(brokerA())
			put(p, "ORDER_TOPIC_CONFIG", "T1", "a:4")
			want := map[bool]string{true: "a:4"}[on]
			require.Equal(t, want, w.route("T1").OrderConf)
			require.Empty(t, w.route("T2").OrderConf)
		})
	}
}
