package report_test

import (
	"bytes"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/report"
)

func open(t testing.TB, dir string) *inspect.Dir {
	t.Helper()
	d, err := inspect.Open(os.DirFS(dir))
	require.NoError(t, err)
	return d
}

// page is the page of a directory.
func page(t testing.TB, dir string) string {
	t.Helper()
	data, err := report.Collect(t.Context(), open(t, dir), "the store")
	require.NoError(t, err)
	require.Empty(t, data.Errors)
	var b bytes.Buffer
	require.NoError(t, report.Write(&b, data))
	return b.String()
}

func TestPageStandsAloneAndChangesNothing(t *testing.T) {
	for _, name := range []string{"rocketmq-3.1.4/clean", "rocketmq-4.9.7/clean", "rocketmq-5.3.3/clean"} {
		t.Run(name, func(t *testing.T) {
			dir := golden.Unpack(t, name)
			before := golden.Snapshot(t, dir)
			text := page(t, dir)
			require.Equal(t, before, golden.Snapshot(t, dir))
			require.Contains(t, text, "Healthy.")
			require.NotRegexp(t, `(?i)<script|<link|<img|https?://|@import|url\(`, text)
			for _, m := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(text, -1) {
				require.True(t, strings.HasPrefix(m[1], "#"), m[1])
				require.Contains(t, text, `id="`+m[1][1:]+`"`)
			}
		})
	}
}

func TestPageNamesFindings(t *testing.T) {
	text := page(t, golden.Unpack(t, "rocketmq-4.9.7/abort-badcrc"))
	require.Contains(t, text, "Not healthy: 1 errors, 0 warnings.")
	require.Contains(t, text, "commitlog/00000000000000524288")
	require.Contains(t, text, "wrong CRC")
}

const evil = `<script>alert("x")</script>`

// evilStore has markup wherever the store lets it in.
func evilStore(t testing.TB) string {
	t.Helper()
	dir := golden.TempDir(t)
	s, err := rocketstore.Open(dir, &rocketstore.Options{SegmentSize: 64 << 10})
	require.NoError(t, err)
	p, err := message.NewProperties(message.PropertyKeys, evil, message.PropertyTags, evil, evil, evil)
	require.NoError(t, err)
	_, err = s.Put(t.Context(), &message.Message{Topic: "Topic", Body: []byte(evil), Properties: p})
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	require.NoError(t, os.WriteFile(dir+"/config/consumerOffset.json", []byte(`{"offsetTable":{"`+strings.ReplaceAll(evil, `"`, "'")+`@g":{0:99}}}`), 0o600))
	require.NoError(t, os.WriteFile(dir+"/commitlog/<b>bold", nil, 0o600))
	return dir
}

// get asks a server, with a Host.
func get(t testing.TB, s http.Handler, target, host string) (int, string, http.Header) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Host = host
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	b, err := io.ReadAll(w.Result().Body)
	require.NoError(t, err)
	return w.Code, string(b), w.Header()
}

func server(t testing.TB, dir string) *report.Server {
	t.Helper()
	s, err := report.NewServer(open(t, dir), "the store")
	require.NoError(t, err)
	return s
}

// Each page that can be reached by a link is there, and nothing of the store is taken for markup.
func TestEveryLinkLeadsSomewhereAndAllIsEscaped(t *testing.T) {
	for name, dir := range map[string]string{"evil": evilStore(t), "damaged": golden.Unpack(t, "rocketmq-3.1.4/rebuilt")} {
		t.Run(name, func(t *testing.T) {
			s := server(t, dir)
			before := golden.Snapshot(t, dir)
			seen, todo := map[string]bool{}, []string{"/"}
			kinds := map[string]bool{}
			for len(todo) > 0 && len(seen) < 150 {
				link := todo[0]
				todo = todo[1:]
				if seen[link] {
					continue
				}
				seen[link] = true
				code, text, head := get(t, s, link, "127.0.0.1:8810")
				kind, _, _ := strings.Cut(link, "?")
				kinds[kind] = true
				if code == http.StatusNotFound && strings.HasPrefix(link, "/hex") {
					continue // behind the end of the file
				}
				require.Equal(t, http.StatusOK, code, link+"\n"+text)
				require.NotContains(t, text, "<script")
				require.NotContains(t, text, "<b>")
				require.Contains(t, head.Get("Content-Security-Policy"), "default-src 'none'")
				for _, m := range regexp.MustCompile(`href="([^"#]+)"`).FindAllStringSubmatch(text, -1) {
					todo = append(todo, html.UnescapeString(m[1]))
				}
			}
			for _, kind := range []string{"/", "/records", "/record", "/queues", "/queue", "/transactions", "/hex"} {
				require.True(t, kinds[kind], kind)
			}
			require.Equal(t, before, golden.Snapshot(t, dir))
		})
	}
}

func TestForeignHostsAndMethodsAreRefused(t *testing.T) {
	s := server(t, golden.Unpack(t, "rocketmq-4.9.7/clean"))
	for host, want := range map[string]int{
		"127.0.0.1:8810": 200, "localhost:8810": 200, "localhost": 200, "[::1]:8810": 200, "[::1]": 200, "127.9.9.9": 200,
		"example.org": 403, "example.org:8810": 403, "localhost.example.org": 403, "10.0.0.1:8810": 403, "": 403, "127.0.0.1.example.org:8810": 403,
	} {
		code, _, _ := get(t, s, "/queues", host)
		require.Equal(t, want, code, host)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Host = "localhost"
	s.ServeHTTP(w, r)
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
}

func TestWrongRequestsSayWhatIsWrong(t *testing.T) {
	s := server(t, golden.Unpack(t, "rocketmq-4.9.7/clean"))
	for target, want := range map[string]int{
		"/record?offset=x": 400, "/record?offset=-1": 400, "/record?offset=1": 404, "/records?from=99999999999999999999": 400,
		"/hex?file=../../etc/passwd": 404, "/hex?file=nothing": 404, "/queue?topic=../..&id=0": 200, "/nothing": 404, "/queue?topic=T&id=-1": 400,
		"/hex?file=checkpoint&offset=5000": 404, "/records?from=900000000": 200,
	} {
		code, _, _ := get(t, s, target, "localhost")
		require.Equal(t, want, code, target)
	}
}

func TestOnlyLoopbackIsListenedOn(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:0", "example.org:0", "nonsense"} {
		_, err := report.Listen(t.Context(), addr)
		require.Error(t, err, addr)
	}
	l, err := report.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
}
