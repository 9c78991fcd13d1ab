#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the filters of system calls cost a sample: `make bench-shell`.

    python3 tests/bench/shell.py FILTER_BENCH [--seconds 30] [--warm-up 40]

The CPU time of two daemons differs by more than a filter costs, however long they run. So this multiplies what can be
measured on a busy host: the system calls of each process for a sample (strace), and what a filter adds to one
(filter.c: pairs of short rounds, and the median of their differences). The sum is compared with the CPU time of all
processes for a sample on the load of host.py; exit status 1: it is more than 2%.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import rig  # noqa: E402
from host import start_load  # noqa: E402
from sink import Sink  # noqa: E402

MOST = 0.02


def cpu_ns(pid):
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with open(path, encoding="utf-8") as f:
            total += int(f.read().split()[0])
    return total


def samples_of(daemon):
    return int(json.loads(subprocess.run([rig.perfwalk(), "ctl", "-s", daemon.control, "status", "--json"], check=True,
                                         stdout=subprocess.PIPE).stdout)["samples"])


def count_calls(pids, daemon, seconds):
    """Calls of each process for a sample, all processes at the same time."""
    tracers = {name: subprocess.Popen(["strace", "-f", "-c", "-U", "calls,name", "-o", rig.path(f"{name}.calls"), "-p", str(pid)],
                                      stderr=subprocess.DEVNULL) for name, pid in pids.items()}
    rig.wait_for("all are traced", lambda: all(rig.status_of(pid)["TracerPid"] != "0" for pid in pids.values()))
    before = samples_of(daemon)
    time.sleep(seconds)
    n = samples_of(daemon) - before
    for tracer in tracers.values():
        tracer.send_signal(2)
        tracer.wait()
    found = {}
    for name in pids:
        with open(rig.path(f"{name}.calls"), encoding="utf-8") as f:
            total = [line.split()[0] for line in f if line.split()[-1:] == ["total"]]
        found[name] = int(total[0]) / n if total else 0
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("filter_bench")
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--warm-up", type=int, default=40)
    args = parser.parse_args()
    rig.need_root()
    rig.need_programs("strace")
    print("load: " + ", ".join(start_load(rig.path("load"))), flush=True)
    with Sink() as sink:
        daemon = rig.Daemon("[profiler]\nsamples_per_second = 99\nreporter_interval = 5s\n"
                            f"[export:bench]\nendpoint = {sink.endpoint}\n")
        daemon.wait_up()
        time.sleep(args.warm_up)
        children = {f"{rig.comm_of(pid).removeprefix('pw-')} {pid}": pid for pid in rig.children_of(daemon.pid)}
        pids = [daemon.pid, *children.values()]
        cpu, n = -sum(map(cpu_ns, pids)), -samples_of(daemon)
        time.sleep(args.seconds)
        n += samples_of(daemon)
        cpu += sum(map(cpu_ns, pids))
        calls = count_calls(children, daemon, args.seconds)
        daemon.stop()
    costs = {line.split()[0]: float(line.split()[1]) for line in subprocess.run(
        [args.filter_bench], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()}
    whole = 0
    for name, each in calls.items():
        ns = each * max(0, costs[name.split()[0]])
        whole += ns
        print(f"{name}: {each:.2f} calls a sample, each {costs[name.split()[0]]:.0f} ns more: {ns:.0f} ns")
    share = whole / (cpu / n)
    print(f"{whole / 1000:.2f} us of {cpu / n / 1000:.1f} us a sample: {100 * share:.2f}% (limit {100 * MOST:.0f}%)")
    sys.exit(share > MOST)


rig.run(main)
