#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What memory growth ([profiler] memory_growth) costs the programs whose pages it counts, and perfwalk.

    python3 tests/bench/memory.py [--pairs 20] [--slice 1]     # as root

A program touches fresh pages all the time, and g++ compiles a file again and again, one after the other, while the daemon
is paused and resumed: a pair is a slice of time without its events and one with them, in any order. All times are CPU
times. Of each pair there is the ratio of what a page fault, or a compilation, takes, with and without; printed are the medians
of all pairs, and between which values half of the pairs lie. CPU time is sampled in neither: with rate 1 its part is too small
to be seen. perfwalk's own processes take what they take beyond a paused slice, for as many faults as the whole host has meanwhile."""
import argparse
import os
import random
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
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


def cpu_ns(*pids):
    """{pid: ns}, of those that are still there."""
    found = {}
    for pid in pids:
        try:
            with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
                found[pid] = int(f.read().split()[0])
        except FileNotFoundError:  # one that is started for a moment
            pass
    return found


def faults_of_host():
    with open("/proc/vmstat", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("pgfault "))


def grown(before, after):
    return sum(ns - before.get(pid, 0) for pid, ns in after.items())


def faults_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return int(f.read().rsplit(")", 1)[1].split()[7])


def of_loop(program, seconds):
    """ns of CPU time a page fault."""
    p = subprocess.Popen([program])
    time.sleep(0.2)
    before = cpu_ns(p.pid), faults_of(p.pid)
    time.sleep(seconds)
    ns, faults = grown(before[0], cpu_ns(p.pid)), faults_of(p.pid) - before[1]
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


def switch(d, on):
    subprocess.run([rig.perfwalk(), "ctl", "-s", d.control, "resume" if on else "pause"], check=True, stdout=subprocess.DEVNULL)
    time.sleep(0.3)  # what was held back is read


def measure(d, what, argument, args):
    ratios, extra, plain, own = [], [], [], []
    for _ in range(args.pairs):
        got = {}
        for on in random.sample((False, True), 2):
            switch(d, on)
            before, host, begin = cpu_ns(d.pid, *rig.children_of(d.pid)), faults_of_host(), time.monotonic()
            ns, faults = what(argument, args.slice)
            time.sleep(0.2)
            got[on] = ns, faults, grown(before, cpu_ns(d.pid, *rig.children_of(d.pid))), time.monotonic() - begin, faults_of_host() - host
        ratios.append(got[True][0] / got[False][0])
        extra.append((got[True][0] - got[False][0]) / (1 if what is of_loop else got[True][1]))
        plain.append(got[False][0])
        own.append((got[True][2] - got[False][2] * got[True][3] / got[False][3]) / got[True][4])
    return ratios, extra, plain, own


def middle(values):
    low, median, high = statistics.quantiles(values, n=4)
    return f"{median:.3g} ({low:.3g} to {high:.3g})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--slice", type=float, default=1, help="seconds of the loop")
    args = parser.parse_args()
    rig.need_root()
    loop = rig.path("faults")
    subprocess.run(["gcc", "-O2", "-x", "c", "-o", loop, "-"], input=FAULTS, text=True, check=True)
    d = rig.Daemon(CONFIG.format(store=rig.path("store")))
    d.wait_up()
    for name, what, argument in (("a page fault in a loop", of_loop, loop),
                                 ("a compilation by g++", of_compilation, os.path.join(rig.WORKLOADS, "cxx.cc"))):
        ratios, extra, plain, own = measure(d, what, argument, args)
        print(f"{name}: {statistics.median(plain) / 1e3:.4g} us without, ratio {middle(ratios)}, {middle(extra)} ns more a fault; "
              f"perfwalk {middle(own)} ns a fault", flush=True)
    switch(d, True)
    d.stop()


rig.run(main)
