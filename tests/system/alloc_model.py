# SPDX-License-Identifier: Apache-2.0
"""What the tests of allocations share: the library that is preloaded, what the workload heap says of itself, and the
model of what is sampled of it."""
import glob
import math
import os
import re
import subprocess
import threading

import rig

KINDS = ("alloc_space", "inuse_space", "alloc_objects", "inuse_objects")


def library():
    """Of the program under test: beside it, or installed."""
    here = os.path.join(os.path.dirname(rig.perfwalk()), "alloc", "libperfwalk-alloc.so")
    return here if os.path.exists(here) else glob.glob("/usr/*lib*/perfwalk/libperfwalk-alloc.so")[0]


def truth(text):
    """[(path, size, blocks allocated, blocks in use)]"""
    return [(m[1], *map(int, m.groups()[1:]))
            for m in re.finditer(r"^(allocate_\w+) size (\d+) allocated (\d+) in-use (\d+)$", text, re.M)]


def sums(name, pid=None):
    """{type: {function the block was allocated in: sum}}, of one process or of all."""
    found = {kind: {} for kind in KINDS}
    with open(name, encoding="utf-8") as f:
        entries = f.read().split("\n\n")
    for entry in entries:
        lines = [x for x in entry.splitlines() if not x.startswith("#")]
        m = re.fullmatch(r".+? +(\d+)/\d+ +\[\d+\] [\d.]+: +(\d+) (\S+):", lines[0]) if lines else None
        if m and m[3] in found and pid in (None, int(m[1])):
            path = lines[1].split()[1].split("+")[0]
            found[m[3]][path] = found[m[3]].get(path, 0) + int(m[2])
    return found


def compare(found, paths, times, what, mean, kinds=KINDS, rounded=0, slack=lambda kind, n: 0):
    """Each sum {kind: {path: sum}} is that of the paths, so many times, by five standard deviations. rounded: how
    often each sum was rounded besides once for each block. slack: by how much a text may be off that says n."""
    worst = 0, ""
    for path, size, allocated, in_use in paths:
        picked = 1 - math.exp(-size / mean)  # how likely a block is
        for kind in kinds:
            n = times * (allocated if kind.startswith("alloc") else in_use)
            unit = size if kind.endswith("space") else 1
            # So many of n are picked, each told for 1 / picked; objects as whole numbers.
            sd = unit * math.sqrt(n * (1 - picked) / picked + n * picked / 4 + rounded)
            got = found[kind].get(path, 0)
            z = max(0, abs(got - n * unit) - slack(kind, got)) / sd
            worst = max(worst, (z, f"{kind} of {path} is {got}, not {n * unit}"))
    rig.check(worst[0] < 5, f"{what}: the worst of {len(paths) * len(kinds)} sums is {worst[0]:.1f} standard deviations "
              f"off: {worst[1]}")


class Live:
    """perfwalk top --batch --alloc, with a window that is longer than the test."""
    UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "objects": 1}
    TABLE = re.compile(r"perfwalk top  \S+  (\w+) on .*\nlost.*\n.*100% = ([\d.]+) (\S+).*\n\n.*\n((?: *[\d.]+ +[\d.]+  .*\n)*)")

    def __init__(self, *options):
        self.text = ""
        self.process = rig.start([rig.perfwalk(), "top", "--batch", "--alloc", "-d", "2s", "--window", "120s", *options],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        self.wait(1)

    def read(self):
        for line in self.process.stdout:
            self.text += line

    def tables(self):
        """Those that are complete, which the next one shows."""
        return self.text.split("\nperfwalk top ")[:-1]

    def n(self):
        return len(self.tables()) // len(KINDS)

    def wait(self, n):
        """For so many refreshes more."""
        wanted = self.n() + n
        rig.wait_for(f"{n} refreshes", lambda: self.n() >= wanted or self.process.poll() is not None)
        rig.check(self.process.poll() is None, "top goes on")

    def newest(self, comm):
        """{type: {function: sum}} of the functions of that name, and how far a printed sum may be off."""
        found, off = {}, {}
        n = self.n() * len(KINDS)
        for table in self.tables()[n - len(KINDS):n]:
            m = self.TABLE.search(("" if table.startswith("perfwalk") else "perfwalk top ") + table + "\n")
            if not m:
                rig.fail(f"no table:\n{table}")
            whole, step = float(m[2]) * self.UNITS[m[3]], self.UNITS[m[3]] * (0.1 if "." in m[2] else 1)
            rows = [line.split(None, 4) for line in m[4].splitlines()]
            found[m[1]] = {r[4]: float(r[0]) / 100 * whole for r in rows if r[2] == comm and len(r) == 5}
            off[m[1]] = whole, step / 2
        rig.check(set(found) == set(KINDS), f"a table of each type: {set(found)}")
        return found, lambda kind, n: 0.00005 * off[kind][0] + n * off[kind][1] / max(1, off[kind][0])

    def end(self):
        rig.end(self.process)
        self.thread.join()
