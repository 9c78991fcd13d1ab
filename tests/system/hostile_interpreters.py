# SPDX-License-Identifier: Apache-2.0
# Rooms: runtimes src/reader src/profiler src/host src/judge
"""Programs whose libpython lies: chains of frames that are circles or that have no end, wild pointers, a name of 4 GiB,
lists of threads and interpreters without an end, and memory that goes while it is read. Readers and profiler live on
and stay within their time, other programs are recorded as ever, and stacks that cannot be true say so. A reader that
never pauses, in front of all else on its CPU, is ended by the kernel, and another one takes its place."""
import collections
import ctypes
import os
import platform
import re
import subprocess
import time

import rig

CHAIN = ["fake_main", "fake_outer", "fake_inner"]
UNPROVEN, LATE, DEEP = "[runtime frames not proven]", "[interpreter not read in time]", "[too deep]"
# Of what is said of each: its own chain; what says that it has too many frames; nothing but that it is not proven.
HONEST, TOO_DEEP, REFUSED = "honest", "too deep", "refused"
LIES = {"honest": HONEST, "unmap": HONEST, "name": HONEST, "deep": TOO_DEEP, "circle": REFUSED, "itself": REFUSED, "wild": REFUSED,
        "odd": REFUSED, "code": REFUSED, "length": REFUSED, "threads": REFUSED, "interpreters": REFUSED,
        # From a library whose name says nothing.
        "honest.other": HONEST, "circle.other": REFUSED}
SECONDS = 0.5 # of each program's CPU time
READER_SHARE, READER_EXTRA = 0.05, 0.3 # of a CPU; seconds: until its budget counts


def build():
    """The program of that name for each lie: a library that says that it is Python's, and what needs it."""
    source = os.path.join(rig.WORKLOADS, "fake-python.c")
    gcc = ["gcc", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
    where = rig.workdir()
    subprocess.run([*gcc, "-fPIC", "-shared", "-o", f"{where}/libpython3.11.so", source], check=True)
    subprocess.run([*gcc, "-DPROGRAM", "-o", f"{where}/program", source, f"-L{where}", "-lpython3.11", "-Wl,-rpath,$ORIGIN"],
                   check=True)
    subprocess.run([*gcc, "-fPIC", "-shared", "-o", f"{where}/libother.so", source], check=True)
    subprocess.run([*gcc, "-DPROGRAM", "-o", f"{where}/program.other", source, f"-L{where}", "-lother", "-Wl,-rpath,$ORIGIN"],
                   check=True)
    for lie in LIES:
        os.link(f"{where}/program{'.other' if lie.endswith('.other') else ''}", f"{where}/l-{lie}")
    return where


def readers_now():
    """Of our recording: their pids."""
    found = []
    for recorder in rig.children_of(os.getpid()):
        for pid in rig.children_of(recorder):
            try:
                if rig.comm_of(pid) == "pw-reader":
                    found.append(pid)
            except OSError:
                pass
    return found


class Readers:
    """Their CPU time, and the clock's, since each was seen first."""

    def __init__(self):
        self.first, self.used = {}, {}

    def look(self):
        for pid in readers_now():
            try:
                self.first.setdefault(pid, (rig.cpu_seconds(pid), time.monotonic()))
                self.used[pid] = rig.cpu_seconds(pid) - self.first[pid][0], time.monotonic() - self.first[pid][1]
            except OSError:
                pass

    def check(self):
        worst = max(self.used.values(), key=lambda used: used[0] - READER_SHARE * used[1])
        rig.check(worst[0] < READER_SHARE * worst[1] + READER_EXTRA,
                  f"{len(self.used)} readers; one needs {worst[0]:.2f} s of CPU in {worst[1]:.1f} s")
        rig.check(len(self.used) <= len(os.sched_getaffinity(0)), "none of them had to be started again")


def verdict(stack):
    # What stands behind the name of 4 GiB is in it.
    names = [f.partition("\ufffd")[0] for f in stack.user if f.startswith("fake_") and f not in ("fake_run", "fake_spin")]
    if UNPROVEN in stack.user or LATE in stack.user:
        return REFUSED if not names else "lie"
    if DEEP in stack.user:
        return TOO_DEEP if set(names[:-1]) <= {"fake_outer"} and names[-1:] == ["fake_inner"] else "lie"
    return HONEST if names == CHAIN else "silent" if not names else "lie"


PTRACE_POKETEXT, PTRACE_PEEKUSER, PTRACE_ATTACH, PTRACE_DETACH = 4, 3, 16, 17
RIP = 16 * 8 # in struct user
JUMP_TO_ITSELF = 0xfeeb


def make_endless(pid):
    """The process never ends what it does next: it stands on a jump to itself."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.restype = ctypes.c_long
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(PTRACE_ATTACH, pid, None, None) < 0:
        rig.fail(f"reader {pid} cannot be stopped: {os.strerror(ctypes.get_errno())}")
    os.waitpid(pid, 0x40000000) # __WALL
    ip = libc.ptrace(PTRACE_PEEKUSER, pid, RIP, None)
    libc.ptrace(PTRACE_POKETEXT, pid, ip, JUMP_TO_ITSELF)
    libc.ptrace(PTRACE_DETACH, pid, None, None)


def check_endless(where):
    program = rig.start([f"{where}/l-honest", "honest"])
    folded, seen, ends = rig.path("endless.folded"), [], []

    def has_gone_on():
        now = readers_now()
        if not seen and now and rig.cpu_seconds(program.pid) > SECONDS:
            with open(f"/proc/{now[0]}/limits", encoding="ascii") as f:
                limits = re.search(r"Max realtime timeout +(\d+) +(\d+) +us", f.read())
            seen.extend([now[0], os.sched_getscheduler(now[0]), limits and [int(x) for x in limits.groups()]])
            # Without a priority it is in front of nobody, and nothing limits it.
            if seen[1] == os.SCHED_FIFO:
                make_endless(now[0])
        if seen and not ends and (seen[1] != os.SCHED_FIFO or seen[0] not in now and len(now) > 0):
            ends.append(rig.cpu_seconds(program.pid) + SECONDS)
        return ends and rig.cpu_seconds(program.pid) > ends[0]

    r = rig.record("-p", program.pid, "-F", "199", "-o", folded, until=has_gone_on)
    rig.end(program)
    if seen[1] != os.SCHED_FIFO:
        print("left out: readers get no real-time priority here")
        return
    rig.check(seen[2] and 0 < seen[2][0] < seen[2][1] <= 200000, f"a reader may not run for longer than {seen[2]} us without a pause")
    counts = collections.Counter()
    for s in rig.read_folded(folded):
        counts[verdict(s) if "fake_spin" in s.user else "other"] += s.n
    # Half of the samples are from before, and half from after it.
    rig.check(r.status == 0 and counts[HONEST] > 0.7 * (counts.total() - counts["other"]),
              f"one that never pauses is ended, and another reads: {dict(counts)}" + ("" if r.status == 0 else r.text()))


def main():
    rig.need_root()
    rig.need_programs("gcc")
    where = build()
    programs = {lie: rig.start([f"{where}/l-{lie}", lie.partition(".")[0]]) for lie in LIES}
    for lie, p in programs.items():
        rig.wait_for(f"{lie}: it runs", lambda p=p: rig.cpu_seconds(p.pid) > 0.05)
    readers, folded, ends = Readers(), rig.path("lies.folded"), {}

    def are_done():
        readers.look()
        for lie, p in programs.items():
            ends.setdefault(lie, rig.cpu_seconds(p.pid) + SECONDS)
        return all(rig.cpu_seconds(p.pid) >= ends[lie] for lie, p in programs.items())

    pids = ",".join(str(p.pid) for p in programs.values())
    r = rig.record("-p", pids, "-F", "199", "-o", folded, until=are_done)
    rig.check(r.status == 0 and all(p.poll() is None for p in programs.values()), f"{len(LIES)} programs are recorded"
              + ("" if r.status == 0 else r.text()))
    readers.check()
    counts, examples = collections.defaultdict(collections.Counter), {}
    for s in rig.read_folded(folded):
        if "fake_spin" in s.user:
            lie = s.comm.removeprefix("l-")
            counts[lie][verdict(s)] += s.n
            examples[lie, verdict(s)] = s.user
    for lie, wanted in LIES.items():
        n, allowed = counts[lie].total(), sum(counts[lie][v] for v in {wanted, REFUSED, "silent"})
        # Memory that goes may be gone at any sample; and the first ones of a program are before it is known.
        least = 0.1 if lie == "unmap" else 0.7
        said = ", ".join(f"{k} {v}" for v, k in counts[lie].items())
        rig.check(n > 50 and counts[lie][wanted] >= least * n and allowed == n,
                  f"{lie}: {n} samples: {said}" + "".join(f"\n{v}: {u}" for (x, v), u in examples.items() if x == lie and v != wanted))
    for p in programs.values():
        rig.end(p)
    if platform.machine() == "x86_64":
        check_endless(where)


rig.run(main)
