// Package fastjson reads and writes JSON the way RocketMQ's Java programs do.
//
// Their library (fastjson 1.x) sends text that is not quite JSON: integer map keys without quotes
// ({0:"127.0.0.1:10911"}), whole objects as map keys ({{"brokerName":"b"}:{…}}), and in old versions escapes such as
// \x0B, \v or \0. It accepts standard JSON. [Reader] takes both; what is written with [AppendString] is standard, and
// only a caller that answers an old peer leaves the quotes of integer keys away.
//
// A Reader walks the text once, keeps no tree, allocates nothing but strings that hold escapes, and never descends
// further than [MaxDepth].
package fastjson
