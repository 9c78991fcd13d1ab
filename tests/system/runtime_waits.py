# SPDX-License-Identifier: Apache-2.0
# Rooms: src/profiler runtimes src/sample
"""Methods of Java and functions of JavaScript in stacks of blocked threads, off-CPU and wall: nearly all time of
threads that wait in one method is time of that method, also in a later window than the one in which its stack was
seen. Needs root and tracefs."""
import os
import re
import subprocess

import rig

# {thread: what it waits in}; the holder and the waiter compete for the lock.
JAVA = {"napper": ("Waits.naps",), "holder": ("Waits.holds",), "waiter": ("Waits.waits",)}
NODE = {"node": ("sleeps",)}


def waits_of(name, event):
    """{thread: [blocked time, {frames}: time]}"""
    folded = os.path.basename(name) + "." + event
    subprocess.run([rig.perfwalk(), "convert", "-e", event, name, "-o", rig.path(folded + ".perf.txt")], check=True, stdout=subprocess.DEVNULL)
    found = {}
    with open(rig.path(folded + ".perf.txt"), encoding="utf-8") as f:
        entries = f.read().split("\n\n")
    for entry in entries:
        lines = [x for x in entry.splitlines() if not x.startswith("#")]
        m = re.fullmatch(r"(.+?) +\d+/\d+ +\[\d+\] [\d.]+: +(\d+) \S+:", lines[0]) if lines else None
        frames = [line.split()[1].split("+")[0] if len(line.split()) > 1 else line for line in lines[1:]]
        if m and any("[wait: " in line for line in lines):
            found.setdefault(m[1], []).append((int(m[2]), frames))
    return found


def check(name, event, expected):
    found = waits_of(name, event)
    for thread, methods in expected.items():
        total = sum(ns for ns, _ in found.get(thread, []))
        named = sum(ns for ns, frames in found.get(thread, []) if any(f in methods for f in frames))
        rig.check(total > 0 and named >= 0.95 * total,
                  f"{event}: {named} of {total} ns that {thread} was blocked are time of {methods[0]}")


def text_of(name):
    with open(name, encoding="ascii") as f:
        return f.read()


def capture(p, name, waits):
    """As long as it takes the program to wait so often: some windows."""
    def n_waits():
        return sum(int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text_of(f"/proc/{p.pid}/task/{t}/status"), re.M)[1])
                   for t in os.listdir(f"/proc/{p.pid}/task"))
    begin = n_waits()
    rig.record("--wall", "-p", p.pid, "-o", name, until=lambda: n_waits() - begin >= waits)


def main():
    rig.need_root()
    rig.need_tracefs()
    rig.need_programs("java", "javac", "node")
    classes = rig.path("classes")
    subprocess.run(["javac", "--release", "11", "-d", classes, os.path.join(rig.WORKLOADS, "Waits.java")], check=True)
    java = rig.start(["java", "-Xint", "-cp", classes, "Waits"])
    node = rig.start(["node", os.path.join(rig.WORKLOADS, "waits.js")])
    for p, expected, waits in ((java, JAVA, 1000), (node, NODE, 400)):
        name = rig.path(f"{p.pid}.pb.gz")
        rig.wait_for("its threads wait", lambda: len(os.listdir(f"/proc/{p.pid}/task")) > len(expected), 60)
        capture(p, name, waits)
        for event in ("off_cpu", "wall"):
            check(name, event, expected)
        rig.end(p)


rig.run(main)
