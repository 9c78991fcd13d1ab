# SPDX-License-Identifier: Apache-2.0
# Rooms: src/profiler src/opener runtimes
"""Programs that hang since before the capture: threads of Python, PHP, Ruby, Java and JavaScript, which never run while
it lasts, are shown in the functions that they themselves said they would hang in, and one that waits for events in none.
The same of native code with frame pointers, which nobody has recorded.
Then a thread of Python with long waits in two functions: each has its own time. Needs root and tracefs."""
import os
import re
import shutil
import subprocess
import sys
import time

import rig

STILL = 0.5  # seconds without a switch: nobody runs any more


def folded_of(name):
    """[frames from the root on, us] of the capture."""
    subprocess.run([rig.perfwalk(), "convert", "-e", "off_cpu", name, "-o", name + ".folded"], check=True, stdout=subprocess.DEVNULL)
    stacks = []
    with open(name + ".folded", encoding="utf-8") as f:
        for line in f:
            stack, us = line.rsplit(" ", 1)
            stacks.append(([x.removesuffix("_[i]") for x in stack.split(";")[1:]], int(us)))
    return stacks


def switches_of(pid):
    """{thread: its switches}; None if one of them runs."""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8") as f:
            text = f.read()
        if re.search(r"^State:\s+(\w)", text, re.M)[1] not in "SD":
            return None
        found[tid] = re.findall(r"ctxt_switches:\s+(\d+)", text)
    return found


def hung(argv, n):
    """Starts a program that says n chains of functions; returns these, and it, once all of its threads stand still."""
    out = rig.path(f"{os.path.basename(argv[0])}-{len(argv)}.out")
    with open(out, "w", encoding="utf-8") as f:
        p = rig.start(argv, stdout=f)
    def told():
        with open(out, encoding="utf-8") as f:
            return f.read().splitlines()
    rig.wait_for(f"{n} lines of {argv}", lambda: len(told()) >= n)
    return p, [tuple(x.split(";")) for x in told()]


def stand_still(p, names):
    """Threads of the runtime's own may go on."""
    def still():
        before = switches_of(p.pid)
        time.sleep(STILL)
        after = switches_of(p.pid)
        return before and after and sum(before[t] == after.get(t) for t in before) >= names
    rig.wait_for("its threads hang", still)


def check(what, argv, n):
    p, chains = hung(argv, n)
    stand_still(p, max(n, 1))
    name = rig.path("hangs.pb.gz")
    rig.record("--off-cpu", "--idle", "-p", p.pid, "-d", 1, "-o", name)
    stacks = folded_of(name)
    rig.end(p)
    functions = {x for chain in chains for x in chain} or {"outer", "middle", "hangs"}
    found = {}
    for frames, us in stacks:
        chain = tuple(x for x in frames if x in functions)
        if chain:
            found[chain] = found.get(chain, 0) + us
    if set(found) != set(chains):
        rig.say(f"{what}: {stacks}")
    longest = max((us for _, us in stacks), default=0)
    rig.check(longest >= 900000, f"{what}: a thread is blocked for {longest} us")
    rig.check(set(found) == set(chains), f"{what}: the functions are those that it said: {chains}; found {found}")
    rig.check(all(us >= 900000 for us in found.values()), f"{what}: all of the time")


def check_frame_pointers():
    """The kernel does not tell the frame pointer of a thread that hangs."""
    program = os.path.join(rig.build_workloads("hangs"), "hangs")
    p, chains = hung([program], 6)
    chains = [tuple(chain[0].split()) + chain[1:] for chain in chains]
    stand_still(p, 7)
    name = rig.path("native.pb.gz")
    rig.record("--off-cpu", "--idle", "-p", p.pid, "-d", 1, "-o", name)
    stacks = folded_of(name)
    rig.end(p)
    whole = {tuple(x for x in chain if x != "?") for chain in chains}
    perhaps = {chain[1:] for chain in chains if chain[0] == "?"}
    functions = {x for chain in whole for x in chain} | {"stale_inner", "stale_outer"}
    found = sorted(tuple(x for x in frames if x in functions) for frames, _ in stacks)
    if set(found) - {()} != whole:
        rig.say(f"frame pointers: {stacks}")
    rig.check(whole - perhaps <= set(found), f"the threads hang where they said: {sorted(whole)}; found {found}")
    rig.check(set(found) - whole <= {x[-1:] for x in perhaps} | {()}, "no thread is elsewhere")
    rig.check(all(("_start" in frames or "start_thread" in frames) == ("[bad unwind information]" not in frames) for frames, _ in stacks),
              "a stack begins with its thread, or says that it does not")


def check_turns():
    name = rig.path("turns.pb.gz")
    p = subprocess.run([rig.perfwalk(), "record", "--off-cpu", "--idle", "-o", name, "--", sys.executable,
                        os.path.join(rig.WORKLOADS, "pyturns.py"), "8"], stdout=subprocess.PIPE, text=True, timeout=120, check=True)
    truth = {k: int(ns) / 1000 for k, ns in re.findall(r"^(\w+) (\d+)$", p.stdout, re.M)}
    told = {k: sum(us for frames, us in folded_of(name) if k in frames) for k in truth}
    # A sampled block that was not read in time is neither's; who comes back waits for the global lock and a CPU.
    rig.check(all(told[k] <= 1.01 * truth[k] + 1000 for k in truth), f"nobody has another's time: {told} of {truth} us")
    rig.check(sum(told.values()) >= 0.9 * sum(truth.values()), "nearly all of it is there")


def main():
    rig.need_root()
    rig.need_tracefs()
    check("Python", [sys.executable, os.path.join(rig.WORKLOADS, "hangs.py")], 8)
    if shutil.which("php"):
        check("PHP, sleep", ["php", os.path.join(rig.WORKLOADS, "hangs.php")], 1)
        check("PHP, read", ["php", os.path.join(rig.WORKLOADS, "hangs.php"), "read"], 1)
    if shutil.which("ruby"):
        check("Ruby", ["ruby", os.path.join(rig.WORKLOADS, "hangs.rb")], 5)
    if shutil.which("node"):
        check("Node.js", ["node", os.path.join(rig.WORKLOADS, "hangs.js")], 1)
        check("Node.js, idle", ["node", os.path.join(rig.WORKLOADS, "hangs.js"), "idle"], 0)
    if shutil.which("javac"):
        subprocess.run(["javac", "-d", rig.workdir(), os.path.join(rig.WORKLOADS, "Hangs.java")], check=True)
        check("Java", ["java", "-cp", rig.workdir(), "Hangs"], 5)
    check_frame_pointers()
    check_turns()


rig.run(main)
