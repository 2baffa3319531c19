// Package report shows what a store directory holds as one HTML page, and serves the same page live on loopback, with a look
// at single records, queues, transactions and bytes. It only reads, through package inspect.
//
// The page has no script and loads nothing: its style is inside, its charts are SVG. Everything that comes out of the store
// is escaped by html/template. The server answers GET and HEAD only, with a Content-Security-Policy that allows that one
// style and nothing else, and refuses requests whose Host is no name of this machine's loopback, so that a page of another
// site cannot reach it by way of a name of its own (DNS rebinding).
package report
