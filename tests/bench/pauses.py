# SPDX-License-Identifier: Apache-2.0
"""What the events of a daemon cost a load, and the daemon: pairs of a slice of time without them, as it is paused, and
one with them, in any order."""
import argparse
import random
import statistics
import subprocess
import time
import typing

import rig


class Slice(typing.NamedTuple):
    load_ns: float  # what the load says of itself
    load: int
    own_ns: int  # CPU time of perfwalk's processes
    n_host: int  # events of the whole host
    seconds: float


def cpu_ns(pids):
    """{pid: ns}, of those that are still there."""
    found = {}
    for pid in pids:
        try:
            with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
                found[pid] = int(f.read().split()[0])
        except FileNotFoundError:  # one that is started for a moment
            pass
    return found


def grown(before, after):
    return sum(ns - before.get(pid, 0) for pid, ns in after.items())


def of_host(path, word):
    """A counter of the whole host in a file of lines "WORD N"."""
    with open(path, encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(word + " "))


def own_of(d):
    return [d.pid, *rig.children_of(d.pid)]


def switch(d, on):
    subprocess.run([rig.perfwalk(), "ctl", "-s", d.control, "resume" if on else "pause"], check=True, stdout=subprocess.DEVNULL)
    time.sleep(0.3)  # what was held back is read


def measure(d, counter, load, pairs):
    """[(slice without, slice with)]. counter: of_host()'s; load() runs for a slice, and returns what it took, and how many."""
    found = []
    for _ in range(pairs):
        got = {}
        for on in random.sample((False, True), 2):
            switch(d, on)
            own, host, begin = cpu_ns(own_of(d)), of_host(*counter), time.monotonic()
            load_ns, n = load()
            got[on] = Slice(load_ns, n, grown(own, cpu_ns(own_of(d))), of_host(*counter) - host, time.monotonic() - begin)
        found.append((got[False], got[True]))
    return found


def ratios(pairs):
    return [on.load_ns / off.load_ns for off, on in pairs]


def extra_ns(pairs):
    return [on.load_ns - off.load_ns for off, on in pairs]


def own_ns(pairs):
    """What perfwalk takes for an event of the host."""
    return [(on.own_ns - off.own_ns * on.seconds / off.seconds) / on.n_host for off, on in pairs]


def middle(values):
    low, median, high = statistics.quantiles(values, n=4)
    return f"{median:.3g} ({low:.3g} to {high:.3g})"


def arguments(description, seconds):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--slice", type=float, default=seconds, help="seconds of a slice")
    return parser
