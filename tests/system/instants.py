# SPDX-License-Identifier: Apache-2.0
# Rooms: src/reader src/broker src/sample
"""On a CPU that threads share, the instants of samples say nothing of each other while a reader runs for each: two loops
and a Python program that works and sleeps are on one CPU, also where readers run for each of its blocks. Without readers
the samples come at their period. There are always as many as the rate says. A rate in step with the kernel's ticks becomes one beside it, which all outputs have."""
import os
import sys
import time

import rig

CLOCK_MONOTONIC_COARSE = 6 # linux/time.h; it is read at the ticks
RATE = 499
SECONDS = 3 # of CPU time, of both loops
LOOP = "while :; do :; done"
SLEEPER = """
import time
while True:
    end = time.thread_time() + 0.006
    while time.thread_time() < end:
        pass
    time.sleep(0.004)
"""


def times_of(path, cpu):
    """Of the samples on a CPU."""
    with open(path, encoding="utf-8", errors="replace") as f:
        heads = [line.split() for line in f if line[0] not in "\t\n#"]
    return [float(h[-3].rstrip(":")) for h in heads if f"[{cpu:03}]" in h and h[-1] == "cpu-clock:"]


def capture(name, pids, cpu, *options):
    """The share of intervals that are shorter than half a period, and samples by the rate."""
    path = rig.path(name + ".perf.txt")
    r = rig.record_cpu(SECONDS, pids, "-a", "-e", "cpu-clock", "-F", RATE, "-o", path, *options)
    rig.check(r.status == 0, f"{name}: it is recorded" + ("" if r.status == 0 else r.text()))
    times = sorted(times_of(path, cpu))
    # The first second is without readers, which are still to begin.
    times = [t for t in times if t > times[0] + 1]
    short = sum(b - a < 0.5 / RATE for a, b in zip(times, times[1:])) / len(times)
    n = (len(times) - 1) / (times[-1] - times[0]) / RATE
    print(f"# {name}: {len(times)} samples, {n:.3f} of those by the rate; {100 * short:.1f}% of the intervals are short")
    return short, n


def check_step():
    ticks = round(1 / time.clock_getres(CLOCK_MONOTONIC_COARSE))
    path = rig.path("step.perf.txt")
    r = rig.record("-e", "cpu-clock", "-F", ticks, "-o", path, "--", "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
    with open(path, encoding="utf-8", errors="replace") as f:
        periods = {int(line.split()[-2]) for line in f if line[0] not in "\t\n#"}
    rates = {round(1e9 / p) for p in periods}
    rig.check(r.status == 0 and len(rates) == 1 and ticks * 7 / 8 <= min(rates) < ticks,
              f"{ticks} Hz, at which the kernel has ticks, is {rates} Hz")
    rig.check(f"samples {min(rates)} times a second: {ticks} is in step" in r.err and f"at {min(rates)} Hz" in r.err,
              "and perfwalk says so")


def main():
    rig.need_root()
    cpu = min(os.sched_getaffinity(0))
    on_it = ["taskset", "-c", str(cpu)]
    loops = [rig.start([*on_it, "sh", "-c", LOOP]) for _ in range(2)]
    rig.start([*on_it, sys.executable, "-c", SLEEPER])
    pids = [p.pid for p in loops]

    for name, options in ("readers", ()), ("blocks", ("--off-cpu",)):
        short, n = capture(name, pids, cpu, *options)
        rig.check(short > 0.2, f"{name}: the samples come at random: two in five intervals are short")
        rig.check(0.8 < n < 1.05, f"{name}: as many as the rate says, but for the readers' own time")
    short, n = capture("plain", pids, cpu, "--no-interpreters")
    rig.check(short < 0.1, "plain: without readers they come at their period")
    rig.check(0.8 < n < 1.05, "plain: as many as the rate says")
    check_step()


rig.run(main)
