// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
)

type node struct {
	l, r *node
	v    int
}

//go:noinline
func build(d int) *node {
	if d == 0 {
		return &node{v: d}
	}
	return &node{build(d - 1), build(d - 1), d}
}

//go:noinline
func sum(n *node) int {
	if n == nil {
		return 0
	}
	return n.v + sum(n.l) + sum(n.r)
}

//go:noinline
func work() {
	t := build(6)
	x := []int{5, 2, 9, 1, sum(t)}
	sort.Slice(x, func(a, b int) bool { return x[a] < x[b] })
	fmt.Fprintln(os.Stderr, "sum", x, fmt.Sprintf("%5.2f", 3.7))
}

func main() {
	runtime.Gosched() // its time begins again
	work()
}
