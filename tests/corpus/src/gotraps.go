// SPDX-License-Identifier: Apache-2.0

// gotraps PART: Go's own stacks, between breakpoints.
package main

import (
	"os"
	"runtime"
	"sort"
	"strings"
)

var sink int

//go:noinline
func leaf(n int) int { return n*3 + sink }

//go:noinline
func grow(depth int) int {
	var frame [4000]byte
	frame[depth] = byte(depth)
	if depth == 0 {
		return leaf(int(frame[1]))
	}
	return grow(depth-1) + int(frame[depth])
}

//go:noinline
func library() int {
	words := strings.Split("a stack of its own for each of them", " ")
	sort.Strings(words)
	m := map[string]int{}
	for i, w := range words {
		m[w] = i
	}
	defer func() { recover() }()
	sink += leaf(len(m))
	panic("caught")
}

func main() {
	runtime.GOMAXPROCS(1)
	done := make(chan bool)
	go func() {
		runtime.LockOSThread()
		runtime.Breakpoint()
		if len(os.Args) > 1 && os.Args[1] == "morestack" {
			sink += grow(12)
		} else {
			library()
			runtime.GC()
		}
		runtime.Breakpoint()
		done <- true
	}()
	<-done
}
