#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What off-CPU time costs a context switch, at 10,000, 50,000 and 300,000 of them a second of a CPU.

    python3 tests/bench/offcpu.py [--pairs 5] [--option=--locks]     # as root, with tracefs

Two processes wake each other by pipes, in pairs of a run without and one with a capture of the whole host, in any
order. Printed are medians: CPU time of the two a switch, without and with it; what perfwalk's own processes take a
switch, less what they take for as long without these; and the share of a CPU that both make at that rate. Others on
the host count for the second: nothing is asserted, read the ratios of a quiet machine.
"""
import argparse
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import rig  # noqa: E402

# Switches, and nanoseconds of work between two of them, for about so many a second.
LOADS = ((10_000, 20_000, 97_000), (50_000, 60_000, 17_000), (300_000, 300_000, 0))


def own_cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_load(program, switches, work_ns):
    """(ns of CPU time a switch, switches a second, seconds)."""
    began = time.monotonic()
    out = subprocess.run([program, str(switches // 2), str(work_ns)], stdout=subprocess.PIPE, text=True, check=True).stdout
    ns, rate = map(float, out.split())
    return ns, rate, time.monotonic() - began


def captured(option, body):
    """The result of body during a capture, and CPU seconds of perfwalk."""
    fd = os.open(rig.path("log.txt"), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    p = subprocess.Popen([rig.perfwalk(), "record", "-a", option, "--comm", "switches", "-o", "x.pb.gz"], cwd=rig.workdir(),
                         stdout=fd, stderr=fd)
    rig.wait_for("the capture begins", lambda: b"recording" in os.pread(fd, 4096, 0), 60)
    result = body()
    before = own_cpu()
    p.send_signal(signal.SIGINT)
    p.wait()
    os.close(fd)
    return result, own_cpu() - before


def measure(program, pairs, option, switches, work_ns):
    plain, with_it, own, rates = [], [], [], []
    for _ in range(pairs):
        for recorded in random.sample((False, True), 2):
            if not recorded:
                ns, rate, _ = run_load(program, switches, work_ns)
                plain.append(ns)
                rates.append(rate)
                continue
            (ns, _, seconds), cpu = captured(option, lambda: run_load(program, switches, work_ns))
            _, idle = captured(option, lambda s=seconds: time.sleep(s))
            with_it.append(ns)
            own.append((cpu - idle) * 1e9 / switches)
    return [statistics.median(x) for x in (rates, plain, with_it, own)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--option", default="--off-cpu")
    args = parser.parse_args()
    rig.need_root()
    rig.need_tracefs()
    program = rig.path("switches")
    subprocess.run(["gcc", "-O2", "-o", program, os.path.join(rig.TOP, "tests", "bench", "switches.c")], check=True)
    print(f"{args.option}: ns of CPU time a switch")
    print("wanted/s   had/s   without      with   ratio   perfwalk's own   of a CPU at the wanted rate")
    for wanted, switches, work_ns in LOADS:
        rate, plain, with_it, own = measure(program, args.pairs, args.option, switches, work_ns)
        share = (max(with_it - plain, 0) + max(own, 0)) * wanted / 1e7
        print(f"{wanted:8} {rate:7.0f} {plain:9.0f} {with_it:9.0f} {with_it / plain:7.2f} {own:16.0f} {share:12.2f}%", flush=True)


rig.run(main)
