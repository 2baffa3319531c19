package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/rocketstore/rocketstore/inspect"
)

// Server shows a store live. It is an http.Handler.
type Server struct {
	dir   *inspect.Dir
	name  string
	pages *template.Template
	mux   *http.ServeMux
	style string

	mu   sync.Mutex
	data *Data     // of the last look
	at   time.Time // of it
}

// NewServer makes one for a store; name is how the page calls it.
func NewServer(d *inspect.Dir, name string) (*Server, error) {
	t, err := pages()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: d, name: name, pages: t, mux: http.NewServeMux(), style: styleHash()}
	for path, f := range map[string]func(*http.Request) (string, *view, error){
		"GET /{$}": s.report, "GET /records": s.records, "GET /record": s.record, "GET /queues": s.queues, "GET /queue": s.queue,
		"GET /transactions": s.transactions, "GET /hex": s.hex,
	} {
		s.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, f) })
	}
	return s, nil
}

// Listen opens a port on loopback, and only there: addr is host and port, as in 127.0.0.1:0.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if ip, err := netip.ParseAddr(host); err != nil && host != "localhost" || err == nil && !ip.IsLoopback() {
		return nil, fmt.Errorf("%s is no address of loopback: the page shows message bodies to whoever reaches it", addr)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if a, ok := l.Addr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("%s led to %s, which is not loopback", addr, l.Addr()), l.Close())
	}
	return l, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !loopbackHost(r.Host) {
		http.Error(w, "this server answers to the names of loopback only", http.StatusForbidden)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src "+s.style+"; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	s.mux.ServeHTTP(w, r)
}

// loopbackHost says whether a Host header names this machine's loopback: by address or as localhost, with any port.
func loopbackHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if host == "localhost" {
		return true
	}
	if n := len(host); n > 2 && host[0] == '[' && host[n-1] == ']' {
		host = host[1 : n-1]
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// badRequest is an error of what was asked for.
type badRequest struct{ text string }

func (b badRequest) Error() string { return b.text }

// answer writes a page, whole or not at all.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, f func(*http.Request) (string, *view, error)) {
	name, v, err := f(r)
	status := http.StatusOK
	if err != nil {
		status = http.StatusInternalServerError
		if bad := (badRequest{}); errors.As(err, &bad) {
			status = http.StatusBadRequest
		} else if errors.Is(err, inspect.ErrNothingThere) || errors.Is(err, fs.ErrNotExist) {
			status = http.StatusNotFound
		}
		name, v = "wrong", newView(s.name, true, err.Error())
	}
	var b bytes.Buffer
	if err := s.pages.ExecuteTemplate(&b, name, v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // whoever asked may have gone
}

// fresh is how old the last look may be before the next visitor has it made again.
const fresh = 30 * time.Second

// report is the page of the store. A look is made when there is none, when the last one is old, or when it is asked for.
func (s *Server) report(r *http.Request) (string, *view, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.data == nil || time.Since(s.at) > fresh || r.URL.Query().Get("again") != "" {
		data, err := Collect(r.Context(), s.dir, s.name)
		if err != nil {
			return "", nil, err
		}
		s.data, s.at = data, time.Now()
	}
	return "report", newView(s.name, true, newSummary(s.data, true)), nil
}

// number reads a parameter that is a number, not below 0; absent means 0.
func number(r *http.Request, name string, bits int) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 0, bits)
	if err != nil || n < 0 {
		return 0, badRequest{fmt.Sprintf("%s: %q is no number from 0 on", name, text)}
	}
	return n, nil
}
