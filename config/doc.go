// Package config reads and writes the JSON files that a RocketMQ broker keeps under config/, in their real form, and our
// own note beside them.
//
//	config/topics.json             Topics
//	config/subscriptionGroup.json  SubscriptionGroups
//	config/consumerOffset.json     ConsumerOffsets
//	config/delayOffset.json        DelayOffsets
//	config/rocketstore.json        Marker, which RocketMQ ignores
//	config/<name>.bak              the previous readable content of a file
//	config/<name>.tmp              a file that is being written
//
// The form is that of the library fastjson with its pretty printing: tabs, no blank behind a colon, no line break at the
// end, members of an object by name, and maps with integer keys on one line with bare keys:
//
//	{
//		"offsetTable":{
//			"TopicTest@group":{0:5,3:7
//			}
//		}
//	}
//
// What is read is written again byte for byte, members that this package does not know included; new entries of a map go
// to its end. [Load] falls back to the .bak file and says so; it never takes a damaged file for an empty one, because an
// empty table would mean to consume everything again. [Save] is whole after a power cut: it writes aside, syncs, renames,
// and syncs the directory.
//
// A table is for one goroutine at a time, and so are Load and Save of one file.
package config
