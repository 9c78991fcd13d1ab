#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How right shares of off-CPU time are where each thread waits in many functions from one place.

    PERFWALK=build/perfwalk python3 tests/bench/offcpu-shares.py [--us 400] [--seconds 4] [--rounds 3]     # as root, with tracefs; go

20 threads of a Python program, and of one in Go, call 20 functions in any order, which sleep for 1/20 to 20/20 of --us. Each
call says how long it took without its CPU time: what perfwalk calls blocked, and on a busy host some waits for a CPU. The
times of a place are exact, and split among its stacks by those that were copied. Printed is by how much the functions'
shares differ from the program's own, added up in percent of all, in a capture of the command and in one of the host; and
how much of the program's own time has such a function, and how much no stack.
"""
import argparse
import os
import re
import signal
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import rig  # noqa: E402

N = 20
NAME = "sharers"  # of both programs, for the filter
PYTHON = """
import random, sys, threading, time
seconds, us = map(float, sys.argv[1:])
functions = []
""" + "".join(f"""
def wait_{i:02d}(sums):
    wall, cpu = time.monotonic_ns(), time.thread_time_ns()
    time.sleep(us * {(i + 1) / N} * 1e-6)
    sums[{i}] += time.monotonic_ns() - wall - time.thread_time_ns() + cpu
functions.append(wait_{i:02d})
""" for i in range(N)) + """
def run(sums, seed):
    r, end = random.Random(seed), time.monotonic() + seconds
    while time.monotonic() < end:
        functions[int(r.random() * len(functions))](sums)
tables = [[0] * len(functions) for _ in range(20)]
threads = [threading.Thread(target=run, args=(t, i)) for i, t in enumerate(tables)]
for t in threads: t.start()
for t in threads: t.join()
for i, sums in enumerate(zip(*tables)): print(f"wait_{i:02d} {sum(sums)}")
"""
# The calls are raw, so that the runtime has no part in what is measured.
GO = """package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

var us float64

func cpu() int64 {
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 3, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

func nap(ns int64) {
	t := syscall.NsecToTimespec(ns)
	syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
}

""" + "".join(f"//go:noinline\nfunc wait_{i:02d}(ns int64) {{ nap(ns) }}\n\n" for i in range(N)) + """
var functions = []func(int64){""" + ", ".join(f"wait_{i:02d}" for i in range(N)) + """}

func run(sums []int64, x uint32, end time.Time, wg *sync.WaitGroup) {
	runtime.LockOSThread()
	for time.Now().Before(end) {
		x = x*1664525 + 1013904223
		i := int(x>>16) % len(functions)
		wall, c := time.Now(), cpu()
		functions[i](int64(us * float64(i+1) / float64(len(functions)) * 1000))
		sums[i] += int64(time.Since(wall)) - cpu() + c
	}
	wg.Done()
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	us, _ = strconv.ParseFloat(os.Args[2], 64)
	runtime.GOMAXPROCS(24)
	var wg sync.WaitGroup
	tables := make([][]int64, 20)
	for i := range tables {
		tables[i] = make([]int64, len(functions))
		wg.Add(1)
		go run(tables[i], uint32(i)*2654435761+1, time.Now().Add(time.Duration(seconds*1e9)), &wg)
	}
	wg.Wait()
	for i := range functions {
		var sum int64
		for _, t := range tables {
			sum += t[i]
		}
		fmt.Printf("wait_%02d %d\\n", i, sum)
	}
}
"""


def programs():
    """{name: argv}"""
    directory = rig.path("programs")
    os.makedirs(directory)
    python, go = os.path.join(directory, "python"), os.path.join(directory, "go")
    for x in (python, go):
        os.makedirs(x)
    os.symlink(os.path.realpath(sys.executable), os.path.join(python, NAME))
    for name, text in ((os.path.join(directory, "sharers.py"), PYTHON), (os.path.join(directory, "sharers.go"), GO)):
        with open(name, "w", encoding="utf-8") as f:
            f.write(text)
    subprocess.run(["go", "build", "-o", os.path.join(go, NAME), os.path.join(directory, "sharers.go")], check=True)
    return {"Python": [os.path.join(python, NAME), os.path.join(directory, "sharers.py")], "Go": [os.path.join(go, NAME)]}


def of_a_command(argv, out):
    p = subprocess.run([rig.perfwalk(), "record", "-q", "--off-cpu", "--idle", "-o", out, "--", *argv],
                       check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return p.stdout


def of_the_host(argv, out):
    fd = os.open(rig.path("said"), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    p = rig.start([rig.perfwalk(), "record", "-a", "--comm", NAME, "--off-cpu", "--idle", "-o", out], stdout=fd, stderr=fd)
    rig.wait_for("the capture begins", lambda: b"recording" in os.pread(fd, 4096, 0), 30)
    text = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout
    p.send_signal(signal.SIGINT)
    p.wait(60)
    return text


def compare(record, argv):
    out = rig.path("shares.folded")
    truth = {name: int(ns) for name, ns in re.findall(r"^(wait_\d+) (\d+)$", record(argv, out), re.M)}
    told, unseen = dict.fromkeys(truth, 0), 0
    with open(out, encoding="utf-8") as f:
        for line in f:
            stack, us = line.rsplit(" ", 1)
            name = re.search(r"wait_\d\d", stack)
            if name:
                told[name[0]] += int(us) * 1000
            unseen += int(us) * 1000 if "[not seen]" in stack else 0
    of_truth, of_told = sum(truth.values()), sum(told.values())
    shares = {name: (told[name] / of_told, ns / of_truth) for name, ns in truth.items()}
    first, last = (100 * (a / b - 1) for a, b in (shares["wait_00"], shares[f"wait_{N - 1}"]))
    return 100 * of_told / of_truth, 100 * unseen / of_truth, 100 * sum(abs(a - b) for a, b in shares.values()), first, last


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--us", type=float, default=400)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    rig.need_root()
    rig.need_tracefs()
    rig.need_programs("go")
    for name, argv in programs().items():
        for record in (of_a_command, of_the_host):
            rounds = [compare(record, [*argv, str(args.seconds), str(args.us)]) for _ in range(args.rounds)]
            whole, unseen, off, first, last = (statistics.median(x) for x in zip(*rounds))
            print(f"{name}, {record.__name__}: {whole:.1f}% in the functions, {unseen:.1f}% not seen; shares differ by {off:.1f}%, "
                  f"of the shortest wait {first:+.0f}%, of the longest {last:+.0f}%", flush=True)


rig.run(main)
