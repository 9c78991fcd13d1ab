#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the sandbox and the budgets cost a sample.

    python3 tests/bench/shell.py [--rounds 12] [--round-seconds 20] [--warm-up 60]

Runs three daemons at once on the load of host.py: one without filters, Landlock and a limit of CPU time, one with
all of them, and one more with all of them, for the noise. Each round gives the CPU time of all processes of each
daemon for a sample, as the scheduler counts it; the ratios are of one round, their median is of all.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import rig  # noqa: E402
from host import start_load  # noqa: E402
from sink import Sink  # noqa: E402

OPEN = "[process]\nseccomp = no\nlandlock = no\n[limits]\ncpu = 100%\n"


class Run:
    def __init__(self, name, extra):
        self.name, self.sink, self.had, self.used = name, Sink(), (0, 0), {}
        self.daemon = rig.Daemon(f"[profiler]\nsamples_per_second = 99\nreporter_interval = 5s\n{extra}"
                                 f"[export:bench]\nendpoint = {self.sink.endpoint}\n", name)
        self.daemon.wait_up()

    def cpu_ns(self):
        """Of all that were ever seen: readers come and go."""
        for pid in (self.daemon.pid, *rig.children_of(self.daemon.pid)):
            total = 0
            for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
                try:
                    with open(path, encoding="utf-8") as f:
                        total += int(f.read().split()[0])
                except OSError:
                    pass  # it has left
            self.used[pid] = max(total, self.used.get(pid, 0))
        return sum(self.used.values())

    def ctl(self, *words):
        return subprocess.run([rig.perfwalk(), "ctl", "-s", self.daemon.control, *words], check=True, stdout=subprocess.PIPE,
                              text=True).stdout

    def round(self):
        """Nanoseconds a sample since the last time; all that was sampled is at the receiver."""
        self.ctl("flush")
        samples = int(json.loads(self.ctl("status", "--json"))["samples"])
        had, self.had = self.had, (self.cpu_ns(), samples)
        with self.sink.lock:
            self.sink.requests.clear()
        return (self.had[0] - had[0]) / max(1, self.had[1] - had[1])

    def filters(self):
        return {rig.status_of(pid)["Seccomp"] for pid in self.daemon.roles().values()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--round-seconds", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=60)
    args = parser.parse_args()
    rig.need_root()
    print("load: " + ", ".join(start_load(rig.path("load"))), flush=True)
    runs = [Run("open", OPEN), Run("closed", ""), Run("again", "")]
    time.sleep(args.warm_up)
    for run in runs:
        run.round()
    rows = []
    for _ in range(args.rounds):
        time.sleep(args.round_seconds)
        rows.append([run.round() for run in runs])
        print("  " + "  ".join(f"{run.name} {ns / 1000:6.1f} us" for run, ns in zip(runs, rows[-1])), flush=True)
    for run in runs:
        print(f"{run.name}: filters {', '.join(sorted(run.filters()))}; {run.had[1]} samples; "
              + ("reduced" if "quality goes down" in run.daemon.log() else "nothing reduced"))
    for a, b in ((1, 0), (2, 0), (2, 1)):
        ratios = sorted(row[a] / row[b] for row in rows)
        print(f"{runs[a].name} / {runs[b].name}: {statistics.median(ratios):.3f} "
              f"({ratios[len(ratios) // 4]:.3f} to {ratios[-1 - len(ratios) // 4]:.3f} in the middle half)")


rig.run(main)
