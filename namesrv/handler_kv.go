package namesrv

import (
	"errors"
	"time"

	"github.com/rocketstore/rocketstore/internal/properties"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
)

// millis reads a time in milliseconds; what is negative or longer than a day counts as not given.
func millis(n int64) time.Duration {
	if n < 0 || n > (24*time.Hour).Milliseconds() {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

// current returns the settings that hold now.
func (s *Server) current() Options {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live
}

var errKV = errors.New("namespace or key is empty")

// putKV serves 100.
func (s *Server) putKV(c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	namespace, key, value := req.Fields.Get("namespace"), req.Fields.Get("key"), f.Text("value")
	if namespace == "" || key == "" {
		return nil, errKV
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	if err := s.kv.put(namespace, key, value); err != nil {
		return nil, err
	}
	s.audit(c, "key-value put", "namespace", namespace, "key", key)
	return req.Reply(remoting.Success), nil
}

// getKV serves 101. A 3.1 client asks for PROJECT_CONFIG and its own address at its start.
func (s *Server) getKV(_ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	namespace, key := f.Text("namespace"), f.Text("key")
	if err := f.Err(); err != nil {
		return nil, err
	}
	value, ok := s.kv.get(namespace, key)
	if !ok {
		return req.Refuse(remoting.QueryNotFound, "No config item, Namespace: %s Key: %s", namespace, key), nil
	}
	return req.Reply(remoting.Success, remoting.String("value", value)), nil
}

// deleteKV serves 102.
func (s *Server) deleteKV(c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	namespace, key := f.Text("namespace"), f.Text("key")
	if err := f.Err(); err != nil {
		return nil, err
	}
	if err := s.kv.delete(namespace, key); err != nil {
		return nil, err
	}
	s.audit(c, "key-value deleted", "namespace", namespace, "key", key)
	return req.Reply(remoting.Success), nil
}

// listKV serves 219.
func (s *Server) listKV(_ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	namespace := f.Text("namespace")
	if err := f.Err(); err != nil {
		return nil, err
	}
	table := s.kv.list(namespace)
	if len(table) == 0 {
		return req.Refuse(remoting.QueryNotFound, "No config item, Namespace: %s", namespace), nil
	}
	resp := req.Reply(remoting.Success)
	resp.Body = route.AppendTable(nil, table)
	return resp, nil
}

// updateConfig serves 318: all of the properties are taken, or none.
func (s *Server) updateConfig(c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed, err := s.live.liveChange(string(req.Body))
	if errors.Is(err, properties.ErrNotLive) {
		return req.Refuse(remoting.NoPermission, "%v", err), nil
	}
	if err != nil {
		return nil, err
	}
	if s.opts.ConfigStorePath != "" {
		if err := properties.SaveFile(s.opts.ConfigStorePath, []byte(changed.properties())); err != nil {
			return nil, err
		}
	}
	s.live = changed
	s.audit(c, "configuration changed", "properties", string(req.Body))
	return req.Reply(remoting.Success), nil
}

// getConfig serves 319.
func (s *Server) getConfig(_ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	current := s.current()
	resp := req.Reply(remoting.Success)
	resp.Body = []byte(current.properties())
	return resp, nil
}
