// SPDX-License-Identifier: Apache-2.0

// Goroutines that work in spans, with these as labels (runtime/pprof.Do), in functions that tell the span:
//
//	labelled [collect]
//
// Those of inOuter have inInner inside; those of inHanded begin others that inherit their labels (inInherited); those
// of inNone have none; inSystem is in system calls. It prints a line for each worker and function: the number, the
// function, the span. They are more than threads, give way to each other, and so move from thread to thread. With
// `collect` all memory is collected all the time, so that new labels soon are where others were.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// In the stack of whatever they work on.
var workers = []func(){
	func() { work(0) }, func() { work(1) }, func() { work(2) }, func() { work(3) },
	func() { work(4) }, func() { work(5) }, func() { work(6) }, func() { work(7) },
}

var sink [64]int64

//go:noinline
func spin(n int) {
	x := int64(n)
	for i := 0; i < n; i++ {
		x = x*31 + int64(i)
	}
	sink[n%64] = x
}

//go:noinline
func inOuter() { spin(200000); sink[0]++ }

//go:noinline
func inInner() { spin(200000); sink[1]++ }

//go:noinline
func inInherited() { spin(200000); sink[2]++ }

//go:noinline
func inNone() { spin(200000); sink[3]++ }

//go:noinline
func inSystem() {
	for i := 0; i < 300; i++ {
		syscall.Syscall(syscall.SYS_GETPPID, 0, 0, 0)
	}
	sink[4]++
}

func spanOf(worker, kind int) string { return fmt.Sprintf("%08x%08x", 0x10000000+worker, kind) }

func labels(worker, kind int) pprof.LabelSet {
	span, trace := spanOf(worker, kind), fmt.Sprintf("%032x", worker+1)
	if worker%2 == 0 { // as Datadog writes it
		n, _ := strconv.ParseUint(span, 16, 64)
		return pprof.Labels("trace_id", trace, "span id", strconv.FormatUint(n, 10), "route", "/cart",
			"thread.id", "7", "comm", "victim", "container", "another's")
	}
	if worker%4 == 3 { // as Pyroscope's tracer writes it
		return pprof.Labels("span_id", span, "span_name", "GET /"+span, "route", "/cart")
	}
	return pprof.Labels("trace_id", trace, "span_id", span, "route", "/cart", "secret.key", "hidden")
}

// Pyroscope's tracer sets them when a span begins and ends, in whatever function.
func within(ctx context.Context, worker, kind int, f func(context.Context)) {
	if worker%4 != 3 {
		pprof.Do(ctx, labels(worker, kind), f)
		return
	}
	own := pprof.WithLabels(ctx, labels(worker, kind))
	pprof.SetGoroutineLabels(own)
	f(own)
	pprof.SetGoroutineLabels(ctx)
}

//go:noinline
func work(worker int) {
	ctx := context.Background()
	for {
		within(ctx, worker, 1, func(ctx context.Context) {
			inOuter()
			within(ctx, worker, 2, func(ctx context.Context) { inInner() })
			inOuter()
			inSystem()
			var done sync.WaitGroup
			done.Add(1)
			go func() { inInherited(); done.Done() }()
			done.Wait()
		})
		runtime.Gosched()
		inNone()
	}
}

func collect() {
	for {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
}

func main() {
	runtime.GOMAXPROCS(3)
	for i := range workers {
		for _, line := range []string{"inOuter", "inSystem", "inInherited"} {
			fmt.Println(i, line, spanOf(i, 1))
		}
		fmt.Println(i, "inInner", spanOf(i, 2))
	}
	os.Stdout.Close()
	for _, worker := range workers {
		go worker()
	}
	if len(os.Args) > 1 {
		go collect()
	}
	select {}
}
