#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What memory growth ([profiler] memory_growth) costs the programs whose pages it counts, and perfwalk.

    python3 tests/bench/memory.py [--pairs 20] [--slice 1]     # as root

A program touches fresh pages all the time, and g++ compiles a file again and again, one after the other, while the daemon
is paused and resumed: a pair is a slice of time without its events and one with them, in any order. All times are CPU
times. Of each pair there is the ratio of what a page fault, or a compilation, takes, with and without; printed are the medians
of all pairs, and between which values half of the pairs lie. CPU time is sampled in neither: with rate 1 its part is too small
to be seen. perfwalk's own processes take what they take beyond a paused slice, for as many faults as the whole host has meanwhile."""
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import pauses  # noqa: E402
import rig  # noqa: E402

CONFIG = """[profiler]
reporter_interval = 10s
samples_per_second = 1
memory_growth = yes
[limits]
cpu = 100%
[store]
path = {store}
max_bytes = 1M
"""
FAULTS = """
#include <sys/mman.h>
int main(void)
{
	for (;;) {
		char *p = mmap(0, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		madvise(p, 16 << 20, MADV_NOHUGEPAGE);
		for (long i = 0; i < 16 << 20; i += 4096)
			p[i] = 1;
		munmap(p, 16 << 20);
	}
}
"""


def faults_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return int(f.read().rsplit(")", 1)[1].split()[7])


def of_loop(program, seconds):
    """ns of CPU time a page fault."""
    p = subprocess.Popen([program])
    time.sleep(0.2)
    before = pauses.cpu_ns([p.pid]), faults_of(p.pid)
    time.sleep(seconds)
    ns, faults = pauses.grown(before[0], pauses.cpu_ns([p.pid])), faults_of(p.pid) - before[1]
    p.kill()
    p.wait()
    return ns / faults, faults


def of_compilation(source, _):
    """ns of CPU time of a compilation, and its faults."""
    p = subprocess.Popen(["g++", "-std=c++17", "-O1", "-c", "-o", "/dev/null", source])
    _, status, used = os.wait4(p.pid, 0)
    p.returncode = status
    if status != 0:
        rig.fail("g++ fails")
    return 1e9 * (used.ru_utime + used.ru_stime), used.ru_minflt


def measure(d, what, argument, args):
    def load():
        found = what(argument, args.slice)
        time.sleep(0.2)
        return found
    return pauses.measure(d, ("/proc/vmstat", "pgfault"), load, args.pairs)


def main():
    args = pauses.arguments(__doc__, 1).parse_args()
    rig.need_root()
    loop = rig.path("faults")
    subprocess.run(["gcc", "-O2", "-x", "c", "-o", loop, "-"], input=FAULTS, text=True, check=True)
    d = rig.Daemon(CONFIG.format(store=rig.path("store")))
    d.wait_up()
    for name, what, argument in (("a page fault in a loop", of_loop, loop),
                                 ("a compilation by g++", of_compilation, os.path.join(rig.WORKLOADS, "cxx.cc"))):
        pairs = measure(d, what, argument, args)
        plain = statistics.median(off.load_ns for off, _ in pairs)
        extra = [ns / (1 if what is of_loop else on.load) for ns, (_, on) in zip(pauses.extra_ns(pairs), pairs)]
        print(f"{name}: {plain / 1e3:.4g} us without, ratio {pauses.middle(pauses.ratios(pairs))}, {pauses.middle(extra)} ns more a fault; "
              f"perfwalk {pauses.middle(pauses.own_ns(pairs))} ns a fault", flush=True)
    pauses.switch(d, True)
    d.stop()


rig.run(main)
