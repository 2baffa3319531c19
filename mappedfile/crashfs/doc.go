// Package crashfs is under construction.
package crashfs
