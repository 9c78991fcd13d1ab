// SPDX-License-Identifier: Apache-2.0

// From Go into C, and from there back into Go.
package main

/*
extern int goBack(int);
static __attribute__((noinline)) int fromC(int n)
{
	volatile char frame[100];

	frame[n] = (char)n;
	return goBack(n + 1) + frame[n];
}
*/
import "C"
import "runtime"

var sink int

//export goBack
func goBack(n C.int) C.int {
	sink += int(n)
	return n * 2
}

//go:noinline
func cross(n int) int { return int(C.fromC(C.int(n))) }

func main() {
	runtime.LockOSThread()
	cross(1)
	runtime.Breakpoint()
	sink += cross(2)
	runtime.Breakpoint()
}
