# SPDX-License-Identifier: Apache-2.0
# Rooms: src/profiler src/reader runtimes src/sample
"""System calls of Go programs by function, methods of Java and functions of JavaScript and Python in stacks of blocked threads, off-CPU and wall: nearly all
time of threads that wait in one method is time of that method, also in a later window than the one in which its stack
was seen. Of Java and Python, the program's own clocks tell how long each function waited. Needs root and tracefs."""
import os
import re
import shutil
import subprocess
import sys

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


# {function or method: the reason}, of programs with clocks of their own. HotSpot has a condition for each kind of wait.
ROUNDS = 100
PYTHON = {"naps": "sleep", "dozes": "sleep", "locks": "lock", "polls": "poll", "gets": "lock"}
JAVA_MS = {"OwnWaits.naps": 7, "OwnWaits.dozes": 3, "OwnWaits.parks": 3, "OwnWaits.locks": 4, "OwnWaits.takes": 3}  # in a call, at least
OWN_JAVA = dict.fromkeys(JAVA_MS, "condition")
NOT_READ = ("[interpreter not read in time]", "[runtime frames not proven]")


def own_waits(name, event, functions, behind):
    """{function: us}, {function: us for the right reason}, {function: us for either that or the reason behind it}, and {stack:
    us} without the runtime's frames, of threads of the names that wait in these functions."""
    subprocess.run([rig.perfwalk(), "convert", "-e", event, name, "-o", name + ".folded"], check=True, stdout=subprocess.DEVNULL)
    told, right, either = (dict.fromkeys(functions, 0) for _ in range(3))
    unread, waiters = {}, set()
    with open(name + ".folded", encoding="utf-8") as f:
        for line in f:
            stack, us = line.rsplit(" ", 1)
            comm, *frames = [x.removesuffix("_[i]") for x in stack.split(";")]
            if frames[0].startswith("[wait: ") and any(x in frames for x in NOT_READ):
                unread[stack] = unread.get(stack, 0) + int(us)
            for function in (x for x in functions if x in frames and frames[0].startswith("[wait: ")):
                waiters.add(comm)
                told[function] += int(us)
                right[function] += int(us) if frames[0] == f"[wait: {functions[function]}]" else 0
                either[function] += int(us) if frames[0] in (f"[wait: {functions[function]}]", f"[wait: {behind}]") else 0
    return told, right, either, {stack: us for stack, us in unread.items() if stack.split(";")[0] in waiters}


def check_own_clocks(language, functions, least_ms, *command, within=(), behind=None):
    """The program says how long each of its functions waited; so long it did for sure in each call, whatever the host does.
    behind: what who comes back from a call waits for, too, and longer on a busy host."""
    name = rig.path(f"{language}.pb.gz")
    p = subprocess.run([*within, rig.perfwalk(), "record", "--wall", "-o", name, "--", *command, str(ROUNDS)], stdout=subprocess.PIPE, text=True,
                       timeout=120, check=True)
    prefix = next(iter(functions)).rpartition(".")
    truth = {prefix[0] + prefix[1] + k: (int(sure) / 1000, int(unsure) / 1000)
             for k, sure, unsure in re.findall(r"^(\w+) (\d+) (\d+)$", p.stdout, re.M)}
    rig.check(set(truth) == set(functions), f"{language}: the program names each function: {truth}")
    sure = sum(x for x, _ in truth.values())
    for event in ("off_cpu", "wall"):
        what = f"{language}, {event}"
        told, right, either, stacks = own_waits(name, event, functions, behind)
        unread = sum(stacks.values())
        rows = ", ".join(f"{k} {told[k]} of {truth[k][0]:.0f} to {sum(truth[k]):.0f} us" for k in functions)
        wrong = sum(max(told[k] - 1.01 * sum(truth[k]) - 1000, 0) for k in functions)
        rig.check(wrong == 0, f"{what}: no function has another's time: {rows}")
        missing = sum(max(truth[k][0] - told[k], 0) for k in functions)
        rig.check(missing <= 0.02 * sure + unread, f"{what}: {missing:.0f} us are missing, {unread} were not read")
        short = sum(max(ROUNDS * 1000 * ms - told[k], 0) for k, ms in least_ms.items())
        rig.check(short <= 0.02 * sum(ROUNDS * 1000 * ms for ms in least_ms.values()) + unread, f"{what}: {short:.0f} us of the least are missing")
        read = unread <= 0.1 * sum(told.values())
        rig.check(read, f"{what}: {unread} us of {sure:.0f} were not read" + ("" if read else f": {stacks}"))
        rig.check(sum(either.values()) >= 0.95 * sum(told.values()) and all(right[k] > 0.5 * told[k] for k in functions),
                  f"{what}: the reasons are right: {right} of {told}, with those behind them {either}")


GO_ROUNDS = 100
# System calls block their thread. Of all other waits of a goroutine no thread knows: it runs others, or is idle in the
# runtime's scheduler.
GO_CALLS = {"waitPipe": "pipe", "waitSelect": "poll", "waitFileLock": "file lock"}
GO_OTHERS = ("waitChannel", "waitMutex", "waitSleep", "waitNetwork")


def check_go():
    os.environ["PATH"] += ":/usr/local/go/bin"
    if not shutil.which("go"):
        rig.leave_out("Go: it is not installed")
        return
    program, name = rig.path("gowaits"), rig.path("go.pb.gz")
    subprocess.run(["go", "build", "-o", program, os.path.join(rig.WORKLOADS, "waits.go")], check=True,
                   env={**os.environ, "GOFLAGS": "-buildvcs=false"})
    p = subprocess.run([rig.perfwalk(), "record", "--off-cpu", "-o", name, "--", program, str(GO_ROUNDS)], stdout=subprocess.PIPE, text=True,
                       timeout=120, check=True)
    truth = {k: int(ns) for k, ns in re.findall(r"^(wait\w+) (\d+)$", p.stdout, re.M)}
    rig.check(set(truth) == {*GO_CALLS, *GO_OTHERS}, f"the Go program names each function: {sorted(truth)}")
    subprocess.run([rig.perfwalk(), "convert", "-e", "off_cpu", name, "-o", name + ".folded"], check=True, stdout=subprocess.DEVNULL)
    told, right = dict.fromkeys(truth, 0), dict.fromkeys(truth, 0)
    with open(name + ".folded", encoding="utf-8") as f:
        for line in f:
            stack, us = line.rsplit(" ", 1)
            frames = [x.removesuffix("_[i]") for x in stack.split(";")[1:]]
            for function in (x for x in truth if f"main.{x}" in frames):
                told[function] += 1000 * int(us)
                right[function] += 1000 * int(us) if frames[0] == f"[wait: {GO_CALLS.get(function)}]" else 0
    for function, reason in GO_CALLS.items():
        # Its clock also has what came before and after the block: Go's own handover of the processor, and a wait for one.
        rig.check(0 < told[function] <= 1.01 * truth[function] and right[function] >= 0.95 * told[function],
                  f"Go: {function}: {told[function]} ns, {right[function]} of them [wait: {reason}], by its own clock {truth[function]}")
    # It sleeps that long in each call, whatever the host does.
    rig.check(told["waitSelect"] >= GO_ROUNDS * 7_000_000, f"Go: waitSelect: {told['waitSelect']} ns in {GO_ROUNDS} calls of 7 ms")
    others = sum(told[x] for x in GO_OTHERS)
    rig.check(others <= 0.01 * sum(truth[x] for x in GO_OTHERS), f"Go: {others} ns are of functions in which only a goroutine waits")


def main():
    rig.need_root()
    rig.need_tracefs()
    check_go()
    rig.need_programs("java", "javac", "node")
    classes = rig.path("classes")
    subprocess.run(["javac", "--release", "11", "-d", classes, *(os.path.join(rig.WORKLOADS, x) for x in ("Waits.java", "OwnWaits.java"))],
                   check=True)
    java = rig.start(["java", "-Xint", "-cp", classes, "Waits"])
    node = rig.start(["node", os.path.join(rig.WORKLOADS, "waits.js")])
    for p, expected, waits in ((java, JAVA, 1000), (node, NODE, 400)):
        name = rig.path(f"{p.pid}.pb.gz")
        rig.wait_for("its threads wait", lambda: len(os.listdir(f"/proc/{p.pid}/task")) > len(expected), 60)
        capture(p, name, waits)
        for event in ("off_cpu", "wall"):
            check(name, event, expected)
        rig.end(p)
    python = sys.executable, os.path.join(rig.WORKLOADS, "pywaits.py")
    check_own_clocks("Python", PYTHON, {"naps": 7, "dozes": 3}, *python, behind="lock")  # its global one
    check_own_clocks("Python without tracefs", PYTHON, {"naps": 7, "dozes": 3}, *python, within=rig.WITHOUT_TRACEFS, behind="lock")
    check_own_clocks("Java", OWN_JAVA, JAVA_MS, "java", "-Xint", "-cp", classes, "OwnWaits")


rig.run(main)
