// Package namesrv is a name server: brokers register with it, clients ask it where a topic is. Real RocketMQ brokers and
// clients of the lines 3.1 to 5.3 and the Go client cannot tell it from the original.
//
// A [Server] keeps five tables in memory, under one lock: topics (queues of a topic by broker), brokers (addresses of a
// broker name by id), clusters, live brokers (by address: last report, data version, connection), and filter servers. After
// a restart they fill again within one report interval of the brokers. On disk is only the key-value configuration, one JSON
// file that is replaced on each change ([Options.KVConfigPath], with the content before in a .bak beside it).
//
// A broker leaves the tables when it unregisters, when the connection of its latest report is lost, or when it has not reported for
// [Options.BrokerTimeout]. Several name servers beside each other never talk; brokers report to all of them.
//
// After each operation the tables are consistent: each entry of a topic has its broker, each broker address has its live entry,
// each member of a cluster has a broker.
package namesrv
