// Package rocketstore reads and writes the store directories of RocketMQ: open one that a real 3.1, 4.x or 5.x broker
// wrote, or a new one, put and get messages, query them by key, id and time, and hand the directory back.
//
// [Open] takes the writer's lock, recovers if need be ([Store.Report] says what it did) and starts the background work;
// [Store.Close] ends it and leaves a directory that real RocketMQ opens as cleanly stopped. The formats live in packages
// of their own, each usable alone: commitlog, consumequeue, index, recovery and the file layer mappedfile.
package rocketstore
