// Package route holds what brokers tell name servers and name servers tell clients, in the JSON that they exchange it
// in: routes, the cluster, topic configurations, the body of a registration, lists.
//
// What is read may be in any form that RocketMQ 3.1 to 5.3 writes: integer keys without quotes, the misspelt members
// timestatmp and topicSynFlag, absent and unknown members. What is written is compact (the Go client cuts the text of
// brokerAddrs by hand at commas and colons), has its members in alphabetical order as fastjson has, and follows the
// [Form] of who asks.
package route
