# SPDX-License-Identifier: Apache-2.0
# Rooms: runtimes src/reader src/profiler src/sample src/opener src/broker src/cmd
"""Frames of Python, without an agent and without flags: a program of known chains of calls is read at each sample. The
innermost function of a chain calls a C function of its own, so that the native part of the very same stack says which
one it must be. `PYTHON="PATH..."` names other programs than the host's python3."""
import glob
import os
import re
import shutil
import subprocess
import sys

import rig
from chained import LATE, UNREAD, Chains, check_growing
from sink import Sink

SECONDS = float(os.environ.get("PYTHON_SECONDS", "2"))
RATE = os.environ.get("PYTHON_RATE", "199")
GREENLET_VERSION = "3.5.6"

LEAVES = ["chain_sort", "chain_join", "chain_crc", "chain_pow", "chain_replace", "chain_loop"]
# What may stand between chain_turn and one of those.
CALLERS = [[], ["chain_outer", "chain_middle", "chain_inner"], ["chain_deep"] * 21, ["chain_callback", "chain_called"],
           ["chain_consume", "chain_generate"], ["chain_by_key", "chain_key"], ["chain_shape", "chain_area"],
           ["chain_catch", "chain_raise"]]
CHAINS = [["chain_main", "chain_turn"] + callers + [leaf] for callers in CALLERS for leaf in LEAVES]
# Native functions that only one of them calls, behind the evaluation of Python code.
NATIVE = {
    "chain_sort": r"(list_sort_impl|binarysort|merge_collapse|merge_at|gallop_|unsafe_long_compare|count_run)",
    "chain_join": r"_?PyUnicode_Join",
    "chain_crc": r"(zlib_)?crc32",
    "chain_pow": r"(long_pow|x_mul|k_mul|x_divrem|l_mod|l_divmod|long_divrem)",
    "chain_replace": r"(unicode_replace|replace$|replace_|anylib_)",
}


def plain(frame):
    """The function's own name: since 3.11 those of its classes and functions stand in front."""
    return re.sub(r"_\[.\]$", "", frame).rpartition(".")[2]


# These two call such native functions, too, which call Python again.
KNOWN = Chains(CHAINS, NATIVE, ("chain_by_key", "chain_callback"), plain)


def start(python, threads, apart):
    """The program, and its pid; apart: its threads have other numbers than here."""
    command = [python, os.path.join(rig.WORKLOADS, "calls.py"), str(threads)]
    p = rig.start((["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"] if apart else []) + command)
    pid = rig.wait_for("the program", lambda: rig.children_of(p.pid))[0] if apart else p.pid
    rig.wait_for("the program to run", lambda: rig.cpu_seconds(pid) > 0.3)
    return p, pid


def check_version(python, threads, apart=False):
    what = f"{os.path.basename(python)}, {threads} threads" + (", in a pid namespace" if apart else "")
    p, pid = start(python, threads, apart)
    folded = rig.path("python.folded")
    rig.record_cpu(SECONDS, [pid], "-p", pid, "-F", RATE, "-o", folded)
    rig.end(p)
    stacks = rig.read_folded(folded)
    counts, wrong = KNOWN.judge(stacks)
    n = sum(s.n for s in stacks)
    text = f"{what}: {n} samples: " + ", ".join(f"{v} {k}" for k, v in counts.items())
    # A capture begins when there are readers; but the host may be busy.
    rig.check(n > 50 and counts["right"] > 0.9 * n and counts["right"] >= 0.98 * (n - counts["late"]) - 2, text)
    callers = {s.user[i - 1] for s in stacks for i in range(1, len(s.user)) if s.user[i] == "<module>"}
    rig.check(len(callers) == 1, f"{what}: one node calls the module, {callers}")
    rig.check(counts["wrong"] <= 1 + n // 2000, f"{what}: {counts['wrong']} with a chain that the program does not have"
              + "".join(f"\n{w}" for w in wrong[:5]))


def check_generated(python):
    """Functions are made and freed, and the new ones lie where old ones were."""
    p = rig.start([python, os.path.join(rig.WORKLOADS, "generated.py")])
    rig.wait_for("the program to run", lambda: rig.cpu_seconds(p.pid) > 0.3)
    text = rig.path("generated.perf.txt")
    rig.record_cpu(1, [p.pid], "-p", p.pid, "-F", RATE, "-o", text)
    rig.end(p)
    check_growing(f"{os.path.basename(python)}: functions that are freed", text, r"made_(\d{6})")


def check_trampolines(python):
    """-X perf: each function is called through code of its own, which has a name in a perf map, and no unwind
    information."""
    what = f"{os.path.basename(os.path.realpath(python))} -X perf"
    for options, named in (([], False), (["--no-interpreters"], True)):
        p = rig.start([python, "-X", "perf", os.path.join(rig.WORKLOADS, "calls.py"), "1"])
        rig.wait_for("the program to run", lambda: rig.cpu_seconds(p.pid) > 0.3)
        folded = rig.path("trampolines.folded")
        rig.record_cpu(1, [p.pid], "-p", p.pid, "-F", RATE, *options, "-o", folded)
        rig.end(p)
        stacks = rig.read_folded(folded)
        n = sum(s.n for s in stacks)
        twice = [s.user for s in stacks if any(f.startswith("py::") for f in s.user)]
        if named:
            rig.check(twice, f"{what} {' '.join(options)}: names of the perf map")
            continue
        counts, wrong = KNOWN.judge(stacks)
        whole = sum(s.n for s in stacks if s.complete())
        rig.check(n > 50 and counts["right"] > 0.8 * n and counts["wrong"] <= 1 + n // 2000,
                  f"{what}: {n} samples: " + ", ".join(f"{v} {k}" for k, v in counts.items())
                  + "".join(f"\n{w}" for w in wrong[:5]))
        rig.check(whole > 0.9 * n, f"{what}: {whole} of {n} go through the trampolines to the thread's entry")
        # Of the first ones it is not known yet that there is a reader.
        rig.check(len(twice) <= 2, f"{what}: {len(twice)} stacks have names of the perf map, too {twice[:1] or ''}")


def with_trampolines(pythons):
    """Those of 3.12 and later, also such that are here beside the one of the host."""
    more = [shutil.which(f"python3.{minor}") for minor in (12, 13, 14)]
    more += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.1[2-9].*/bin/python3")))
    def has(python):
        return subprocess.run([python, "-c", "import sys; sys.exit(not hasattr(sys, 'activate_stack_trampoline'))"],
                              stderr=subprocess.DEVNULL, check=False).returncode == 0
    return {os.path.realpath(p) for p in pythons + [p for p in more if p] if has(p)}


GREENLETS = """
import greenlet
def chain_spin(n):
    x = 0
    for i in range(n):
        x = x * 31 + i & 0xffff
def chain_short():
    chain_spin(20000)
def chain_long():
    chain_spin(40000)
def first():
    while True:
        chain_short()
        main.switch()
def second():
    while True:
        chain_long()
        main.switch()
main = greenlet.getcurrent()
switched = [greenlet.greenlet(first), greenlet.greenlet(second)]
while True:
    for one in switched:
        one.switch()
"""


def check_greenlets():
    """A greenlet has its own functions, and what it does not have, those of who started it, is said to be missing."""
    environment = dict(os.environ, PYTHONPATH=rig.python_package("greenlet", GREENLET_VERSION))
    p = rig.start([sys.executable, rig.write("greenlets.py", GREENLETS)], env=environment)
    rig.wait_for("the program to run", lambda: rig.cpu_seconds(p.pid) > 0.3)
    rig.record_cpu(SECONDS, [p.pid], "-p", p.pid, "-F", RATE, "-o", rig.path("greenlets.folded"))
    rig.end(p)
    stacks = rig.read_folded(rig.path("greenlets.folded"))
    n, counts = rig.total(stacks), {"first": 0, "second": 0}
    for s in stacks:
        own = [plain(f) for f in s.user if plain(f) in ("first", "second", "chain_short", "chain_long", "chain_spin")]
        for name, chain in (("first", "chain_short"), ("second", "chain_long")):
            counts[name] += s.n * (own == [name, chain, "chain_spin"] and s.user[0] == "[runtime frames not proven]")
    rig.check(n > 50 and sum(counts.values()) > 0.9 * n and 1.4 < counts["second"] / counts["first"] < 2.8,
              f"greenlets: {n} samples, with the chains of both {counts}")


def check_events(python):
    """The first event wakes the readers if it has a rate, or is one of time with a period that is not too short. Stacks
    at samples of other events say that nobody reads their functions."""
    p, pid = start(python, 1, False)
    folded, text = rig.path("period.folded"), rig.path("second.perf.txt")
    rig.record_cpu(1, [pid], "-p", pid, "-e", "cpu-clock/period=5000000/", "-o", folded)
    stacks = rig.read_folded(folded)
    counts, n = KNOWN.judge(stacks)[0], sum(s.n for s in stacks)
    rig.check(n > 50 and counts["right"] > 0.9 * n, f"an event of time with a period: {counts['right']} of {n} stacks are right")

    r = rig.record_cpu(1, [pid], "-p", pid, "-e", "cpu-clock/period=500000/", "-o", folded)
    stacks = rig.read_folded(folded)
    # Of the first ones the profiler does not know it yet.
    said = sum(s.n for s in stacks if UNREAD in s.user)
    silent = [s.user for s in stacks if not {UNREAD, LATE} & set(s.user)]
    rig.check(said > 0.5 * sum(s.n for s in stacks) and not silent,
              f"with a short period {said} samples say that they are not read {silent[:2] or ''}")
    rig.check("functions of interpreters have no names" in r.text(), "with a short period: a warning")

    rig.record_cpu(0.5, [pid], "-p", pid, "-e", f"cpu-clock/freq={RATE}/", "-e", "task-clock/freq=199/", "-o", text)
    rig.end(p)
    with open(text, encoding="utf-8") as f:
        samples = [e for e in f.read().split("\n\n") if re.search(r": +\d+ task-clock:", e)]
    silent = [e for e in samples if UNREAD not in e]
    rig.check(len(samples) > 20 and not silent, f"{len(samples)} samples of a second event say that they are not read"
              + "".join(f"\n{e}" for e in silent[:2]))


def check_switch(python):
    p = rig.start([python, os.path.join(rig.WORKLOADS, "calls.py"), "1"])
    rig.wait_for("the program to run", lambda: rig.cpu_seconds(p.pid) > 0.3)
    folded = rig.path("native.folded")
    rig.record_cpu(0.3, [p.pid], "-p", p.pid, "-F", RATE, "--no-interpreters", "-o", folded)
    rig.end(p)
    frames = {f for s in rig.read_folded(folded) for f in s.user}
    rig.check(any("PyEval_EvalFrame" in f for f in frames) and not any(f.startswith("chain_") for f in frames)
              and LATE not in frames, "--no-interpreters: native frames alone")


def check_hidden(python):
    """Without the interpreter's own functions, also where these call Python again."""
    p, pid = start(python, 1, False)
    folded = rig.path("hidden.folded")
    rig.record_cpu(1, [pid], "-p", pid, "-F", RATE, "--no-native-frames", "-o", folded)
    rig.end(p)
    stacks = [s for s in rig.read_folded(folded) if "<module>" in s.user]
    native = {f for s in stacks for f in s.user if re.match("_?Py|list_|run_|pymain", f)}
    rig.check(len(stacks) > 10 and not native, f"--no-native-frames: {len(stacks)} stacks without them {native or ''}")
    wrong = [s.user for s in stacks if KNOWN.verdict(s.user) == "wrong"]
    rig.check(not wrong, f"--no-native-frames: all chains in their order {wrong[:3] or ''}")


class Seen:
    """What the receiver has of one process: how many samples of whole chains."""

    def __init__(self, sink):
        self.sink, self.n, self.whole = sink, 0, 0

    def more(self, pid):
        views = self.sink.views()
        for view in views[self.n:]:
            for resource, _, frames, n in view.samples():
                if int(resource.get("process.pid", 0)) == pid and KNOWN.verdict(frames) == "right":
                    self.whole += n
        self.n = len(views)
        return self.whole

    def wait_for_more(self, what, pid):
        had = self.more(pid)
        rig.wait_for(what, lambda: self.more(pid) > had + 20, 60)


def readers_of(d):
    return [pid for pid in rig.children_of(d.pid) if rig.comm_of(pid) == "pw-reader"]


def reload(d):
    """Whether it was taken; the one before may not be done yet."""
    def ask():
        p = subprocess.run([rig.perfwalk(), "ctl", "-s", d.control, "reload"], capture_output=True, text=True, check=False)
        return None if "previous request" in p.stderr else p
    return rig.wait_for("the reload before", ask).returncode == 0


def check_status(d):
    status = subprocess.run([rig.perfwalk(), "ctl", "-s", d.control, "status"], capture_output=True, text=True, check=True).stdout
    row = re.search(r"^Readers   (\d+) processes known, (\d+) stacks read, (\d+) not in time", status, re.M)
    rig.check(row and int(row[1]) >= 1 and int(row[2]) > 10, row[0] if row else f"no row of the readers:\n{status}")


def check_daemon(python):
    """Windows of the daemon have the chains, also after a reader was killed and after reloads, which leave nothing."""
    with Sink() as sink:
        text = (f"[profiler]\nsamples_per_second = {{}}\nreporter_interval = 1s\n[export:sink]\nendpoint = {sink.endpoint}\n")
        d = rig.Daemon(text.format(97), "python")
        d.wait_up()
        p = rig.start([python, os.path.join(rig.WORKLOADS, "calls.py"), "1"])
        seen = Seen(sink)
        seen.wait_for_more("chains of Python in the daemon's windows", p.pid)
        cpus = len(os.sched_getaffinity(0))
        rig.check(len(readers_of(d)) == cpus, f"readers: {len(readers_of(d))}, one on each of {cpus} CPUs")
        check_status(d)
        for pid in readers_of(d):
            rig.kill(pid, 9)
        seen.wait_for_more("chains after all readers were killed", p.pid)
        descriptors = []
        for i in range(16):
            if i in (2, 15):
                seen.wait_for_more(f"chains after {i} reloads", p.pid)
                descriptors.append(rig.n_descriptors(d.pid))
            rig.write("python.conf", text.format(97 + i % 2 * 2))
            rig.check(reload(d), f"reload {i + 1}")
        # Other interpreters of the host come and go, two for each.
        rig.check(descriptors[1] < descriptors[0] + 24, f"descriptors after 2 and 15 reloads: {descriptors}")
        rig.end(p)
        d.stop()


def main():
    rig.need_root()
    rig.need_programs("python3")
    pythons = os.environ.get("PYTHON", os.path.realpath(shutil.which("python3"))).split()
    for python in pythons:
        for threads in (1, 3):
            check_version(python, threads)
        check_generated(python)
    check_version(pythons[0], 3, True)
    for python in sorted(with_trampolines(pythons)):
        check_trampolines(python)
    check_greenlets()
    check_events(pythons[0])
    check_switch(pythons[0])
    check_hidden(pythons[0])
    check_daemon(pythons[0])


if __name__ == "__main__": # tests/kernels has its judges
    rig.run(main)
