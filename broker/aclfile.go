package broker

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// parseRules reads plain_acl.yml, of which it knows the forms that the original's manual has: members, lists of words and of
// objects, [] and {} for empty ones, quotes, comments. An error names the line.
func parseRules(text string) (*rules, error) {
	lines, err := aclLines(text)
	if err != nil {
		return nil, err
	}
	r := &rules{accounts: map[string]*account{}}
	for len(lines) > 0 {
		l := lines[0]
		var block []aclLine
		block, lines = l.block(lines[1:])
		switch {
		case l.indent > 0 || l.item:
			return nil, l.wrong("a member of the file is expected")
		case l.key == "globalWhiteRemoteAddresses":
			r.white, err = readAddresses(l, block)
		case l.key == "accounts":
			err = r.readAccounts(block)
		case l.key == "dataVersion": // the original counts there how often it wrote the file
		default:
			err = l.wrong("allowed: globalWhiteRemoteAddresses, accounts, dataVersion")
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// aclLine is one line that says something: "key: value", "- value" or "- key: value".
type aclLine struct {
	number, indent int
	item           bool
	key, value     string
}

func (l *aclLine) wrong(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", l.number, fmt.Sprintf(format, args...))
}

func aclLines(text string) (lines []aclLine, err error) {
	number := 0
	for s := range strings.Lines(text) {
		number++
		s = strings.TrimRight(s, " \t\r\n")
		rest := strings.TrimLeft(s, " ")
		if rest == "" || rest[0] == '#' || number == 1 && rest == "---" {
			continue
		}
		l := aclLine{number: number, indent: len(s) - len(rest)}
		if rest[0] == '\t' {
			return nil, l.wrong("indented by a tab")
		}
		if after, ok := strings.CutPrefix(rest, "-"); ok && (after == "" || after[0] == ' ') {
			l.item = true
			rest = strings.TrimLeft(after, " ")
		}
		if l.key, l.value, err = splitMember(rest); err != nil {
			return nil, l.wrong("%v", err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

var errQuote = errors.New("a quote is not closed")

// splitMember parts "key: value"; without a colon all of it is the value.
func splitMember(s string) (key, value string, err error) {
	if i := strings.Index(s+" ", ": "); i > 0 && s[0] != '"' && s[0] != '\'' {
		key, s = s[:i], strings.TrimLeft(s[i+1:], " ")
	}
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		value, err := unquote(s[1:], s[:1])
		return key, value, err
	}
	if i := strings.Index(s, " #"); i >= 0 {
		s = s[:i]
	}
	return key, strings.TrimRight(s, " "), nil
}

// unquote gives the text up to a quote; two single quotes in a row are one that belongs to it.
func unquote(s, quote string) (value string, err error) {
	for {
		inside, behind, ok := strings.Cut(s, quote)
		if !ok {
			return "", errQuote
		}
		value += inside
		if quote != "'" || !strings.HasPrefix(behind, quote) {
			return value, nil
		}
		value, s = value+quote, behind[1:]
	}
}

// block parts the lines that belong to l from those behind.
func (l *aclLine) block(lines []aclLine) (inside, behind []aclLine) {
	n := 0
	for n < len(lines) && (lines[n].indent > l.indent || lines[n].indent == l.indent && lines[n].item && !l.item) {
		n++
	}
	return lines[:n], lines[n:]
}

func empty(value string) bool {
	return value == "" || value == "[]" || value == "{}" || value == "null" || value == "~"
}

// words are the items of a list.
func words(l aclLine, block []aclLine) (list []string, err error) {
	if !empty(l.value) {
		return nil, l.wrong("%s: a list is expected", l.key)
	}
	for _, x := range block {
		if !x.item || x.key != "" {
			return nil, x.wrong("an item of %s is expected", l.key)
		}
		list = append(list, x.value)
	}
	return list, nil
}

func readAddresses(l aclLine, block []aclLine) (all addresses, err error) {
	list, err := words(l, block)
	for _, text := range list {
		a, err := parseAddresses(text)
		if err != nil {
			return nil, l.wrong("%s: %v", l.key, err)
		}
		all = append(all, a...)
	}
	return all, err
}

func (r *rules) readAccounts(lines []aclLine) error {
	for len(lines) > 0 {
		first := lines[0]
		if !first.item {
			return first.wrong("an account is expected, an item of a list")
		}
		n := 1
		for n < len(lines) && (lines[n].indent > first.indent) {
			n++
		}
		members := append([]aclLine{}, lines[:n]...)
		members[0].item = false
		if n > 1 {
			members[0].indent = lines[1].indent
		}
		if members[0].key == "" && members[0].value == "" {
			members = members[1:]
		}
		a, err := readAccount(members)
		if err != nil {
			return err
		}
		if a.accessKey == "" || a.secretKey == "" {
			return first.wrong("an account needs accessKey and secretKey")
		}
		if r.accounts[a.accessKey] != nil {
			return first.wrong("access key %q has two accounts", a.accessKey)
		}
		r.accounts[a.accessKey] = a
		lines = lines[n:]
	}
	return nil
}

func readAccount(lines []aclLine) (*account, error) {
	a := &account{}
	for len(lines) > 0 {
		l := lines[0]
		var block []aclLine
		block, lines = l.block(lines[1:])
		var err error
		switch l.key {
		case "accessKey":
			a.accessKey = l.value
		case "secretKey":
			a.secretKey = l.value
		case "whiteRemoteAddress":
			if !empty(l.value) {
				a.white, err = parseAddresses(l.value)
			}
		case "admin":
			a.admin, err = strconv.ParseBool(l.value)
		case "defaultTopicPerm":
			a.defaultTopic, err = parseRight(l.value)
		case "defaultGroupPerm":
			a.defaultGroup, err = parseRight(l.value)
		case "topicPerms":
			a.topics, err = readRights(l, block)
		case "groupPerms":
			a.groups, err = readRights(l, block)
		default:
			err = errors.New("no member of an account")
		}
		if err != nil {
			return nil, l.wrong("%s: %v", l.key, err)
		}
	}
	return a, nil
}

func readRights(l aclLine, block []aclLine) (map[string]right, error) {
	list, err := words(l, block)
	table := map[string]right{}
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("%q: want NAME=DENY, PUB, SUB or PUB|SUB", text)
		}
		if table[strings.TrimSpace(name)], err = parseRight(value); err != nil {
			return nil, err
		}
	}
	return table, err
}

func parseRight(text string) (right, error) {
	switch strings.ReplaceAll(text, " ", "") {
	case "", "DENY":
		return 0, nil
	case "PUB":
		return rightPub, nil
	case "SUB":
		return rightSub, nil
	case "PUB|SUB", "SUB|PUB":
		return rightPub | rightSub, nil
	}
	return 0, fmt.Errorf("%q: want DENY, PUB, SUB or PUB|SUB", text)
}

// addresses are patterns of addresses: each part a range, both ends included.
type addresses []addressPattern

type addressPattern struct {
	any   bool
	exact netip.Addr
	parts [4][][2]int // of an IPv4 address
}

// maxAddresses bounds what one list of addresses may hold.
const maxAddresses = 1 << 12

// parseAddresses reads "a,b", in which parts of an IPv4 address may be *, a range 4-9 or a choice {1,2}.
func parseAddresses(text string) (all addresses, err error) {
	depth, from := 0, 0
	for i := 0; i <= len(text); i++ {
		switch {
		case i < len(text) && text[i] == '{':
			depth++
		case i < len(text) && text[i] == '}':
			depth--
		case i == len(text) || text[i] == ',' && depth == 0:
			word := strings.TrimSpace(text[from:i])
			from = i + 1
			if word == "" {
				continue
			}
			p, err := parseAddress(word)
			if err != nil {
				return nil, err
			}
			if all = append(all, p); len(all) > maxAddresses {
				return nil, fmt.Errorf("more than %d addresses", maxAddresses)
			}
		}
	}
	return all, nil
}

func parseAddress(word string) (p addressPattern, err error) {
	if word == "*" || word == "*.*.*.*" {
		return addressPattern{any: true}, nil
	}
	if ip, err := netip.ParseAddr(word); err == nil {
		return addressPattern{exact: ip.Unmap()}, nil
	}
	parts := strings.Split(word, ".")
	if len(parts) != 4 {
		return p, fmt.Errorf("%q is no address, nor four parts of a number, *, 1-9 or {1,2}", word)
	}
	for i, part := range parts {
		part = strings.TrimSuffix(strings.TrimPrefix(part, "{"), "}")
		for choice := range strings.SplitSeq(part, ",") {
			low, high, isRange := strings.Cut(strings.TrimSpace(choice), "-")
			if choice == "*" {
				low, high, isRange = "0", "255", true
			}
			if !isRange {
				high = low
			}
			a, err1 := strconv.Atoi(low)
			b, err2 := strconv.Atoi(high)
			if err1 != nil || err2 != nil || a < 0 || b > 255 || a > b {
				return p, fmt.Errorf("%q is no part of an address: %q", choice, word)
			}
			p.parts[i] = append(p.parts[i], [2]int{a, b})
		}
	}
	return p, nil
}

// has says whether an address is among them. One that is not known is not.
func (a addresses) has(ip netip.Addr) bool {
	for i := range a {
		if a[i].has(ip) {
			return true
		}
	}
	return false
}

func (p *addressPattern) has(ip netip.Addr) bool {
	if p.any {
		return true
	}
	if p.exact.IsValid() || !ip.Is4() {
		return p.exact == ip && ip.IsValid()
	}
	for i, b := range ip.As4() {
		if !inRanges(p.parts[i], int(b)) {
			return false
		}
	}
	return true
}

func inRanges(ranges [][2]int, n int) bool {
	for _, r := range ranges {
		if r[0] <= n && n <= r[1] {
			return true
		}
	}
	return false
}
