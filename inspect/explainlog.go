package inspect

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/message"
)

// log explains a byte of the commit log.
func (x *explainer) log(seg Segment) error {
	l := &logFile{seg, x.f, commitlog.NewScanner(seg.File, seg.Start, x.f, seg.Length)}
	from := int64(0)    // behind the last record before the byte
	damage := int64(-1) // the last place before the byte where a record should start and none can be believed
	for {
		if l.s.Next() {
			pos, size := l.pos(), int64(l.s.Record().Size)
			if pos > x.Offset {
				return x.between(from, pos, damage)
			}
			if x.Offset < pos+size {
				return x.record(pos, size)
			}
			from = pos + size
			continue
		}
		pos := l.pos()
		switch l.s.Ending() {
		case commitlog.EndBlank:
			if pos > x.Offset {
				return x.between(from, pos, damage)
			}
			return x.blank(pos)
		case commitlog.EndDamage:
			f, err := l.finding()
			if err != nil {
				return err
			}
			if size := int64(l.s.Record().Size); f.Kind == BadCRC && x.Offset >= pos && x.Offset < pos+size {
				x.Notes = append(x.Notes, f.Text)
				return x.record(pos, size)
			}
			switch r, torn := l.torn(); {
			case torn && x.Offset >= pos && x.Offset < pos+int64(r.Size):
				return x.torn(pos, int64(r.Size), f.Text+"; "+r.CheckBody().Error())
			case torn && x.Offset >= pos:
				from = pos + int64(r.Size)
			case x.Offset >= pos:
				damage = pos
			}
			if pos == x.Offset || x.Offset > pos && len(x.Notes) < 3 {
				x.Notes = append(x.Notes, fmt.Sprintf("at %d: %s", pos, f.Text))
			}
		}
		if !l.resume() {
			return x.between(from, x.f.size, damage)
		}
	}
}

// torn explains a record that is all there by its size, but of which a crash left only some of the pages.
func (x *explainer) torn(pos, size int64, why string) error {
	if err := x.read(pos, size); err != nil {
		return err
	}
	x.What = "torn record of the commit log"
	x.Notes = append(x.Notes, why)
	x.recordFields()
	return nil
}

// between explains bytes that are part of no record. Damage is where in them a record should start, or -1.
func (x *explainer) between(from, to, damage int64) error {
	at, err := nextByte(x.f, from, to)
	if err != nil {
		return err
	}
	x.What = "bytes that are no record"
	switch {
	case at >= to:
		x.What, damage = "zeros: nothing was written here", -1
	case damage < from && x.Offset >= at:
		damage = from
	}
	guess := damage >= from && damage+commitlog.BlankSize <= to
	if guess {
		from = damage
	}
	if err := x.read(from, to-from); err != nil {
		return err
	}
	if guess {
		x.recordFields()
		x.Notes = append(x.Notes, "the fields are what they would be if a record started here")
		return nil
	}
	x.add("bytes", to-from, "")
	x.Fields[0].Size = to - from
	return nil
}

// blank explains what fills the end of a file.
func (x *explainer) blank(pos int64) error {
	if err := x.read(pos, x.f.size-pos); err != nil {
		return err
	}
	x.What = "blank at the end of a commit log file"
	x.number("bytes left", 4, nil)
	x.number("magic", 4, hexText)
	x.add("rest", x.Size-x.at, "")
	x.Fields[2].Size = x.Size - commitlog.BlankSize
	return nil
}

// record explains a record.
func (x *explainer) record(pos, size int64) error {
	if err := x.read(pos, size); err != nil {
		return err
	}
	x.What = "record of the commit log"
	x.recordFields()
	return nil
}

func hexText(v int64) string { return fmt.Sprintf("%08x", uint32(v)) }

func (x *explainer) recordFields() {
	x.number("record size", 4, nil)
	magic := uint32(0)
	x.number("magic", 4, func(v int64) string { magic = uint32(v); return hexText(v) })
	x.number("body CRC", 4, hexText)
	x.number("queue id", 4, nil)
	x.number("flag", 4, nil)
	x.number("queue offset", 8, nil)
	x.number("physical offset", 8, nil)
	flags := message.SysFlag(x.number("system flag", 4, func(v int64) string { return fmt.Sprintf("%d (%s)", v, flagText(message.SysFlag(v))) }))
	x.number("born time", 8, timeText)
	x.host("born host", flags.Has(message.FlagBornHostIPv6))
	x.number("store time", 8, timeText)
	x.host("store host", flags.Has(message.FlagStoreHostIPv6))
	x.number("times consumed again", 4, nil)
	x.number("place of the prepared message", 8, nil)
	body := x.number("body length", 4, nil)
	x.add("body", body, "")
	if magic == commitlog.MagicV2 {
		n := x.number("topic length", 2, nil)
		x.topic(n)
	} else {
		n := x.number("topic length", 1, nil)
		x.topic(n)
	}
	n := x.number("properties length", 2, nil)
	x.properties(n)
	if rest := int64(len(x.b)) - x.at; rest > 0 {
		x.add("behind the fields", rest, "")
	}
}

func (x *explainer) topic(n int64) {
	n = max(0, min(n, int64(len(x.b))-x.at))
	x.add("topic", n, string(x.b[x.at:x.at+n]))
}

func (x *explainer) host(name string, v6 bool) {
	n := int64(8)
	if v6 {
		n = 20
	}
	text := "the bytes end before it"
	if int64(len(x.b))-x.at >= n {
		if h, err := message.DecodeHost(x.b[x.at:x.at+n], v6); err == nil {
			text = h.String()
		}
	}
	x.add(name, n, text)
}

// properties adds each property as a field.
func (x *explainer) properties(n int64) {
	n = max(0, min(n, int64(len(x.b))-x.at))
	rest := x.b[x.at : x.at+n]
	for len(rest) > 0 {
		size := len(rest)
		if i := bytes.IndexByte(rest, 2); i >= 0 {
			size = i + 1
		}
		name, value, _ := bytes.Cut(bytes.TrimSuffix(rest[:size], []byte{2}), []byte{1})
		x.add("property "+string(name), int64(size), string(value))
		rest = rest[size:]
	}
}

// flagText says a system flag in words.
func flagText(f message.SysFlag) string {
	words := []string{"no transaction", "prepared", "commit", "rollback"}[f.Transaction()>>2:][:1]
	for _, one := range []struct {
		flag message.SysFlag
		name string
	}{
		{message.FlagCompressed, "compressed"},
		{message.FlagBornHostIPv6, "born host IPv6"},
		{message.FlagStoreHostIPv6, "store host IPv6"},
		{message.FlagInnerBatch, "batch"},
	} {
		if f.Has(one.flag) {
			words = append(slices.Clip(words), one.name)
		}
	}
	return strings.Join(words, ", ")
}
