// Package golden gives tests the store directories that real RocketMQ brokers wrote (testdata/stores) and the damaged
// ones that were built for one question each (testdata/cases), with a typed view of what is known of each.
//
// It is imported by tests only. Everything it hands out lies in a temporary directory of the test, except what
// [Load] gives, which is only read. Two forms of expected.json exist, that of the 3.1.4 stores and that of 4.9.7 and
// 5.3.3; [Expected] is the same view of both.
package golden
