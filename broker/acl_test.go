package broker_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// accessRules are such as the manual of the original shows them.
const accessRules = `# who may do what
globalWhiteRemoteAddresses:
  - 10.10.103.*
  - "192.168.0.{1,2}"   # two machines

accounts:
  - accessKey: RocketMQ
    secretKey: 12345678
    whiteRemoteAddress:
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms:
      - T=PUB|SUB
      - In=PUB
      - Out=SUB
    groupPerms:
    # of retry topics, too
    - Closed=DENY

  - accessKey: 'admin'
    secretKey: "abc#def"
    admin: true
    topicPerms: []
`

func TestAccessRulesAreRead(t *testing.T) { // R-G-13, protocol.md 16
	r, err := broker.ParseRules(accessRules)
	require.NoError(t, err)
	require.Equal(t, "PUB|SUB SUB", r.Of("RocketMQ", "T", "G"))
	require.Equal(t, "DENY DENY", r.Of("RocketMQ", "U", "Closed"))
	require.Equal(t, "DENY DENY", r.Of("admin", "T", "G"))
	for text, want := range map[string]string{
		"other: 1":                      "line 1: allowed: globalWhiteRemoteAddresses, accounts, dataVersion",
		"accounts:\n  - accessKey: a\n": "line 2: an account needs accessKey and secretKey",
		"accounts:\n  accessKey: a\n":   "line 2: an account is expected",
		"accounts:\n\t- accessKey: a":   "line 2: indented by a tab",
		"accounts:\n- accessKey: a\n  secretKey: b\n  admin: perhaps":               `line 4: admin: `,
		"accounts:\n- accessKey: a\n  secretKey: b\n  defaultTopicPerm: ALL":        `line 4: defaultTopicPerm: "ALL": want DENY, PUB, SUB or PUB|SUB`,
		"accounts:\n- accessKey: a\n  secretKey: b\n  topicPerms:\n  - T":           `"T": want NAME=DENY`,
		"accounts:\n- accessKey: a\n  secretKey: b\n  color: red":                   "line 4: color: no member of an account",
		"accounts:\n- accessKey: a\n  secretKey: b\n- accessKey: a\n  secretKey: c": `line 4: access key "a" has two accounts`,
		"accounts:\n- accessKey: 'a":                                                "line 2: a quote is not closed",
		"globalWhiteRemoteAddresses:\n- 1.2.3":                                      `line 1: globalWhiteRemoteAddresses: "1.2.3" is no address`,
	} {
		_, err := broker.ParseRules(text)
		require.ErrorContains(t, err, want, text)
	}
}

// The real broker writes the file anew when its tool changes it (mqadmin updateAclConfig of 4.9.7).
func TestAccessRulesThatTheRealBrokerWroteAreRead(t *testing.T) { // R-G-13
	r, err := broker.ParseRules(`globalWhiteRemoteAddresses:
- '*'
- 1.2.3.4-9
accounts:
- accessKey: RocketMQ
  secretKey: 12345678
  whiteRemoteAddress: null
  admin: false
  defaultTopicPerm: DENY
  topicPerms:
  - T=PUB|SUB
- accessKey: it''s
  secretKey: 'ab#c: d''12'
  admin: true
dataVersion:
- counter: 2
  timestamp: 1796020352750
`)
	require.NoError(t, err)
	require.Equal(t, "PUB|SUB DENY", r.Of("RocketMQ", "T", "G"))
	require.Equal(t, "DENY DENY", r.Of("it''s", "T", "G"))
	require.Equal(t, "ab#c: d'12", r.Secret("it''s"))
}

func TestWhiteAddresses(t *testing.T) { // protocol.md 16
	for list, want := range map[string]map[string]bool{
		"1.2.3.4":              {"1.2.3.4": true, "1.2.3.5": false, "::1": false},
		"1.2.3.4,5.6.7.8":      {"5.6.7.8": true, "1.2.3.5": false},
		"1.2.3.{4,5}, 9.*.*.1": {"1.2.3.5": true, "1.2.3.6": false, "9.8.7.1": true},
		"1.2.3.4-9":            {"1.2.3.9": true, "1.2.3.10": false},
		"*":                    {"1.2.3.4": true, "::1": true},
		"::1":                  {"::1": true, "1.2.3.4": false},
		"":                     {"1.2.3.4": false},
	} {
		for ip, inside := range want {
			has, err := broker.White(list, ip)
			require.NoError(t, err, list)
			require.Equal(t, inside, has, "%s in %s", ip, list)
		}
	}
	for _, list := range []string{"1.2.3", "1.2.3.x", "1.2.3.9-4", "1.2.3.256", "a.b.c.d"} {
		_, err := broker.White(list, "1.2.3.4")
		require.Error(t, err, list)
	}
}

func FuzzParseRules(f *testing.F) {
	f.Add(accessRules)
	f.Add("accounts:\n- \n  - a: {\n")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := broker.ParseRules(text); err != nil {
			require.NotEmpty(t, err.Error())
		}
		_, _ = broker.White(text, "1.2.3.4")
	})
}

// guarded are options of a broker with these access rules.
func guarded(t *testing.T) (o broker.Options, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "plain_acl.yml")
	require.NoError(t, os.WriteFile(file, []byte(accessRules), 0o600))
	o = small("4.9")
	o.ACL, o.ACLFile = true, file
	return o, file
}

func TestRequestsNeedTheirRights(t *testing.T) { // R-G-13, protocol.md 12.1 and 16
	o, _ := guarded(t)
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		user, admin := &remoting.Credentials{AccessKey: "RocketMQ", SecretKey: "12345678"}, &remoting.Credentials{AccessKey: "admin", SecretKey: "abc#def"}
		liar := &remoting.Credentials{AccessKey: "RocketMQ", SecretKey: "87654321"}
		ask := func(k *remoting.Credentials, req *remoting.Command) int32 {
			req.Fields = append(remoting.Fields{}, req.Fields...)
			if k != nil {
				k.Sign(req)
			}
			return p.send(req).Code
		}
		send := func(topic string, code int32) *remoting.Command {
			return outgoing{topic: topic, body: "x"}.request(code)
		}
		for _, topic := range []string{"T", "In", "Out", "No"} {
			require.Equal(t, remoting.Success, ask(admin, send(topic, remoting.SendMessageV2)))
		}
		const no = remoting.SystemError
		batch := outgoing{topic: "No", body: string(batchBody("x", ""))}.request(remoting.SendBatchMessage)
		end := func(offset int) *remoting.Command {
			return remoting.NewRequest(remoting.EndTransaction, remoting.String("producerGroup", "PG"), remoting.Int("commitLogOffset", int64(offset)),
				remoting.Int("tranStateTableOffset", 0), remoting.Int("commitOrRollback", 12))
		}
		prepared := outgoing{topic: "No", body: "x", properties: "TRAN_MSG\x01true\x02PGROUP\x01PG\x02"}.request(remoting.SendMessageV2)
		admin.Sign(prepared)
		id := p.send(prepared).Fields.Get("msgId")
		offset, err := strconv.ParseInt(id[16:], 16, 64)
		require.NoError(t, err)
		beat := func(group, topic string) *remoting.Command {
			req := remoting.NewRequest(remoting.Heartbeat)
			req.Body = heartbeat("c", group, "CLUSTERING", 1, topic, "*")
			return req
		}
		reset := remoting.NewRequest(remoting.InvokeResetOffset, remoting.String("topic", "No"), remoting.String("group", "G"), remoting.Int("timestamp", 0))
		for _, tt := range []struct {
			name string
			key  *remoting.Credentials
			req  *remoting.Command
			want int32
		}{
			{"unsigned", nil, send("T", remoting.SendMessage), no},
			{"wrongly signed", liar, send("T", remoting.SendMessage), no},
			{"signed", user, send("T", remoting.SendMessage), remoting.Success},
			{"V2", user, send("In", remoting.SendMessageV2), remoting.Success},
			{"no PUB", user, send("Out", remoting.SendMessageV2), no},
			{"nothing", user, send("No", remoting.SendMessage), no},
			{"batch", user, batch, no},
			{"batch, unsigned", nil, batch, no},
			{"reply", user, send("No", remoting.SendReplyMessage), no},
			{"reply V2", nil, send("T", remoting.SendReplyMessageV2), no},
			{"end of a transaction", user, end(int(offset)), no},
			{"end, unsigned", nil, end(int(offset)), no},
			{"end of nothing", user, end(7), no},
			{"end, by the admin", admin, end(int(offset)), remoting.Success},
			{"pull", user, pulling{topic: "T", flags: subscribes}.request(), remoting.Success},
			{"pull, no SUB", user, pulling{topic: "In", flags: subscribes}.request(), no},
			{"pull, group closed", user, pulling{topic: "T", group: "Closed", flags: subscribes}.request(), no},
			{"heartbeat", user, beat("G", "Out"), remoting.Success},
			{"heartbeat, no SUB", user, beat("G", "In"), no},
			{"heartbeat, retry topic", user, beat("G", "%RETRY%Closed"), no},
			{"reset", user, reset, no},
			{"admin code", user, remoting.NewRequest(remoting.CreateTopic, topicFields("New", 1, 1, 6)...), no},
			{"admin code of the admin", admin, remoting.NewRequest(remoting.CreateTopic, topicFields("New", 1, 1, 6)...), remoting.Success},
			{"anything else, signed", user, remoting.NewRequest(remoting.GetMaxOffset, queueFields("No", 0)...), remoting.Success},
			{"anything else, unsigned", nil, remoting.NewRequest(remoting.GetMaxOffset, queueFields("No", 0)...), no},
		} {
			require.Equal(t, tt.want, ask(tt.key, tt.req), tt.name)
		}
		require.Equal(t, int64(18), w.broker.Stats().Denied)

		// The question for an offset has no answer that is an error: old clients would skip messages.
		_, err = p.c.Call(context.Background(), "broker", remoting.NewRequest(remoting.QueryConsumerOffset, queueFields("T", 0)...))
		require.ErrorIs(t, err, remoting.ErrClosed)
	})
}

func TestAccessRulesFollowTheirFile(t *testing.T) { // R-G-13
	o, file := guarded(t)
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		unsigned := func() int32 { return p.ask(remoting.GetMaxOffset, queueFields("T", 0)...).Code }
		require.Equal(t, remoting.SystemError, unsigned())
		rewrite := func(text string) {
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		rewrite("nonsense\n") // and the rules of before stay
		require.Equal(t, remoting.SystemError, unsigned())
		rewrite("globalWhiteRemoteAddresses:\n- '*'\n")
		require.Equal(t, remoting.Success, unsigned())
	})
	require.NoError(t, os.WriteFile(file, []byte("nonsense\n"), 0o600))
	_, err := broker.New(t.Context(), &o)
	require.ErrorIs(t, err, broker.ErrOptions)
	require.ErrorContains(t, err, "plain_acl.yml: line 1: ")
	o.ACLFile = ""
	_, err = broker.New(t.Context(), &o)
	require.ErrorContains(t, err, "aclFile")
}
