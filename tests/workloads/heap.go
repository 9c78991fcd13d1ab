// SPDX-License-Identifier: Apache-2.0
// Allocates in four places, once a line comes in; says what, and what its own profile says of it. Then waits for
// another. Arguments: "busy", to use the CPU while it waits for the first one; "rate=N", what it sets its own rate to
// then; "less=N", to allocate so many times less.
package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
)

var kept [][]byte
var sink []byte

//go:noinline
func allocateSmall(n int) {
	for i := 0; i < n; i++ {
		kept[i] = make([]byte, 128)
	}
}

//go:noinline
func allocateFreed(n int) {
	for i := 0; i < n; i++ {
		sink = make([]byte, 8192)
	}
}

//go:noinline
func allocateLarge(n int) {
	for i := 0; i < n; i++ {
		kept[i] = make([]byte, 1<<20)
	}
}

// From deep in a stack that has to grow.
//
//go:noinline
func allocateDeep(depth int) int {
	var frame [16]byte
	if depth == 0 {
		kept[0] = make([]byte, 1<<19)
	} else {
		frame[depth%16] = byte(allocateDeep(depth - 1))
	}
	return int(frame[0])
}

func growStacks(n int) {
	done := make(chan int)
	for i := 0; i < n; i++ {
		go func(depth int) { done <- allocateDeep(depth) }(i)
	}
	for i := 0; i < n; i++ {
		<-done
	}
}

type sums struct{ allocBytes, allocObjects, inuseBytes, inuseObjects float64 }

// What Go's own profile says, by place, scaled as its tools do.
func profile() map[string]*sums {
	records := make([]runtime.MemProfileRecord, 10000)
	n, _ := runtime.MemProfile(records, true)
	found := map[string]*sums{}
	for _, r := range records[:n] {
		frames := runtime.CallersFrames(r.Stack())
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			if !strings.HasPrefix(f.Function, "main.allocate") {
				continue
			}
			s := found[f.Function]
			if s == nil {
				s = &sums{}
				found[f.Function] = s
			}
			size := float64(r.AllocBytes) / float64(r.AllocObjects)
			scale := 1 / (1 - math.Exp(-size/float64(runtime.MemProfileRate)))
			s.allocBytes += scale * float64(r.AllocBytes)
			s.allocObjects += scale * float64(r.AllocObjects)
			s.inuseBytes += scale * float64(r.InUseBytes())
			s.inuseObjects += scale * float64(r.InUseObjects())
			break
		}
	}
	return found
}

func main() {
	rate, less, busy := -1, 1, false
	for _, argument := range os.Args[1:] {
		fmt.Sscanf(argument, "rate=%d", &rate)
		fmt.Sscanf(argument, "less=%d", &less)
		busy = busy || argument == "busy"
	}
	input := bufio.NewReader(os.Stdin)
	small, large := make([][]byte, 400000/less), make([][]byte, 64)
	fmt.Println("ready")
	var came atomic.Bool
	line := make(chan bool)
	go func() {
		input.ReadString('\n')
		came.Store(true)
		line <- true
	}()
	for busy && !came.Load() {
	}
	<-line
	if rate >= 0 {
		runtime.MemProfileRate = rate
	}
	kept = small
	allocateSmall(len(small))
	allocateFreed(10000 / less)
	kept = large
	allocateLarge(len(large))
	kept = make([][]byte, 1)
	for i := 0; i < 3; i++ {
		growStacks(1000 / less)
	}
	kept = large
	sink = nil
	for i := 0; i < 3; i++ { // the profile is as of the last cycle that ended
		runtime.GC()
	}
	for name, s := range profile() {
		fmt.Printf("%s %.0f %.0f %.0f %.0f\n", name, s.allocBytes, s.allocObjects, s.inuseBytes, s.inuseObjects)
	}
	fmt.Println("done", len(small))
	input.ReadString('\n')
	fmt.Println(len(small[0]))
}
