// SPDX-License-Identifier: Apache-2.0

// waits ROUNDS [PROFILES]: goroutines that wait in every way that Go has, each in a function of its
// own. Prints how long each waited: "KIND NANOSECONDS". A system call blocks its thread; in all other
// ways only the goroutine waits, and its thread runs others. PROFILES: a directory for Go's own
// profiles of blocks and mutexes, of each one.
package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"syscall"
	"time"
)

var (
	channel  = make(chan int)
	mutex    sync.Mutex
	pipe     [2]int
	lockFile [2]int
	peer     [2]net.Conn
)

//go:noinline
func waitPipe() {
	b := make([]byte, 1)
	if n, err := syscall.Read(pipe[0], b); n != 1 || err != nil {
		panic(err)
	}
}

//go:noinline
func waitSelect() {
	t := syscall.Timeval{Usec: 7000}
	_, _ = syscall.Select(0, nil, nil, nil, &t)
}

//go:noinline
func waitFileLock() {
	if syscall.Flock(lockFile[0], syscall.LOCK_EX) != nil || syscall.Flock(lockFile[0], syscall.LOCK_UN) != nil {
		panic("flock")
	}
}

//go:noinline
func waitChannel() { <-channel }

//go:noinline
func waitMutex() {
	mutex.Lock()
	mutex.Unlock()
}

//go:noinline
func waitSleep() { time.Sleep(7 * time.Millisecond) }

//go:noinline
func waitNetwork() {
	if _, err := peer[0].Read(make([]byte, 1)); err != nil {
		panic(err)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func connect() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	peer[0], err = net.Dial("tcp", l.Addr().String())
	must(err)
	peer[1], err = l.Accept()
	must(err)
}

// Those who make them wait.
func hold() {
	for {
		mutex.Lock()
		must(syscall.Flock(lockFile[1], syscall.LOCK_EX))
		time.Sleep(7 * time.Millisecond)
		must(syscall.Flock(lockFile[1], syscall.LOCK_UN))
		mutex.Unlock()
		time.Sleep(time.Millisecond)
	}
}

func feed() {
	for {
		time.Sleep(5 * time.Millisecond)
		_, _ = syscall.Write(pipe[1], []byte{0})
		_, _ = peer[1].Write([]byte{0})
		select {
		case channel <- 1:
		default:
		}
	}
}

func put(directory, name string) {
	f, err := os.Create(filepath.Join(directory, name+".pb.gz"))
	must(err)
	must(pprof.Lookup(name).WriteTo(f, 0))
	must(f.Close())
}

func main() {
	waits := map[string]func(){"waitPipe": waitPipe, "waitSelect": waitSelect, "waitFileLock": waitFileLock,
		"waitChannel": waitChannel, "waitMutex": waitMutex, "waitSleep": waitSleep, "waitNetwork": waitNetwork}
	rounds, err := strconv.Atoi(os.Args[1])
	must(err)
	if len(os.Args) > 2 {
		runtime.SetBlockProfileRate(1)
		runtime.SetMutexProfileFraction(1)
	}
	must(syscall.Pipe2(pipe[:], syscall.O_CLOEXEC))
	must(syscall.SetNonblock(pipe[1], true))
	name := filepath.Join(os.TempDir(), fmt.Sprintf("perfwalk-waits.%d", os.Getpid()))
	for i := range lockFile {
		lockFile[i], err = syscall.Open(name, syscall.O_RDWR|syscall.O_CREAT|syscall.O_CLOEXEC, 0600)
		must(err)
	}
	must(os.Remove(name))
	connect()
	go hold()
	go feed()
	var all sync.WaitGroup
	for kind, wait := range waits {
		all.Add(1)
		go func(kind string, wait func()) {
			var sum time.Duration
			for i := 0; i < rounds; i++ {
				begin := time.Now()
				wait()
				sum += time.Since(begin)
				if kind == "waitFileLock" || kind == "waitMutex" {
					time.Sleep(time.Millisecond)
				}
			}
			fmt.Println(kind, sum.Nanoseconds())
			all.Done()
		}(kind, wait)
	}
	all.Wait()
	if len(os.Args) > 2 {
		put(os.Args[2], "block")
		put(os.Args[2], "mutex")
	}
}
