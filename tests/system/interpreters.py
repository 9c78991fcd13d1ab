# SPDX-License-Identifier: Apache-2.0
# Rooms: runtimes src/reader src/profiler src/broker src/opener
"""A hundred interpreters that start at once, Python and Node.js: each gets its names, and a stack that has none says why,
but for the first ones of a process, which nobody knew yet. None of them waits for it: each does its work."""
import collections
import re
import signal

import rig

N_PYTHON, N_NODE = 80, 20
# Seconds of CPU time until one has begun, and a while longer.
PYTHON_RUNS, NODE_RUNS = 0.25, 0.25
PYTHON = """
def chain_{i}():
    s = 0
    for i in range(20000):
        s += i
while True:
    chain_{i}()
"""
JAVASCRIPT = "function chain_{i}() {{ let s = 0; for (let i = 0; i < 20000; i++) s += i % 7; return s; }} for (;;) chain_{i}();"
LATE = "[interpreter not read in time]"
UNPROVEN = {"[runtime frames not proven]", "[JavaScript function not proven]"}


def verdict(stack):
    """The name, "late", "unproven", or "silent": evaluated by an interpreter, and nothing else is known; else None."""
    names = [re.sub(r"_\[.\]$", "", f) for f in stack.user]
    ours = {n for n in names if n.startswith("chain_")}
    if LATE in names or UNPROVEN & set(names):
        return "late" if LATE in names else "unproven"
    if ours:
        return ours.pop()
    return "silent" if "_PyEval_EvalFrameDefault" in names or "[jit]" in names else None


def main():
    rig.need_root()
    rig.need_programs("python3", "node")
    folded = rig.path("hundred.folded")
    programs, waiting = [], set()

    def are_done():
        if not programs: # it records now
            programs.extend((rig.start(["python3", "-c", PYTHON.format(i=i)]), PYTHON_RUNS) if i < N_PYTHON else
                            (rig.start(["node", "-e", JAVASCRIPT.format(i=i)]), NODE_RUNS) for i in range(N_PYTHON + N_NODE))
            waiting.update(programs)
        for p, seconds in list(waiting):
            if rig.cpu_seconds(p.pid) > seconds:
                # It stays, and leaves the CPUs to the others.
                rig.kill(p.pid, signal.SIGSTOP)
                waiting.discard((p, seconds))
        return not waiting

    r = rig.record("-a", "-F", "499", "--no-lines", "-o", folded, until=are_done)
    for p, _ in programs:
        rig.kill(p.pid, signal.SIGKILL)
        rig.end(p)
    rig.check(r.status == 0, f"{len(programs)} interpreters are recorded" + ("" if r.status == 0 else r.text()))
    counts = collections.Counter()
    for s in rig.read_folded(folded):
        counts[verdict(s)] += s.n
    late, unproven, silent = (counts.pop(what, 0) for what in ("late", "unproven", "silent"))
    n = sum(v for name, v in counts.items() if name)
    missing = [f"chain_{i}" for i in range(len(programs)) if not counts[f"chain_{i}"]]
    rig.check(not missing, f"all of them have names {' '.join(missing)}")
    rig.check(late + unproven + silent < n, f"{n} samples have names, {late} are late, {unproven} not proven, {silent} were before")


rig.run(main)
