# SPDX-License-Identifier: Apache-2.0
# Rooms: src/sample src/profiler src/profile src/symbolizer src/render src/cmd symbolize
"""record --locks: waits for each lock, their time, the longest, who waited and who released. The truth is the kernel's
count of each thread's voluntary switches and the workload's own clocks. Needs root and tracefs."""
import json
import os
import re
import signal
import subprocess
import sys

import rig
from sink import Sink

ROUNDS = 200
NAME = f"l{os.getpid()}"
UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1}
# The lock, as it is named, of each kind.
LOCKS = {"pool": r"\[lock pool_mutex\]", "journal": r"\[lock journal\+0x40\]", "heap": r"\[lock 0x[0-9a-f]+ heap\]"}


def truth_of(text):
    """{kind: (waits, ns for sure, ns of which some may have been spent waiting for a CPU, the longest)}."""
    found = {k: tuple(map(int, n)) for k, *n in re.findall(r"^(\w+) (\d+) (\d+) (\d+) (\d+) 0x", text, re.M)}
    rig.check(set(found) == set(LOCKS), f"the workload names each lock: {found}")
    return found


def table_of(page):
    """The page's table: {lock: (waits, ns, longest in ns, who waited, who released)}."""
    with open(rig.path(page), encoding="utf-8") as f:
        data = re.search(r'<script [^>]*id="data"[^>]*>(.*?)</script>', f.read(), re.S).group(1)
    rows = [row for capture in json.loads(data) for row in capture.get("locks", [])]
    return {name: (waits, ns, time_of(longest), waiter, releaser) for name, waits, ns, _, longest, waiter, releaser in rows}


def time_of(text):
    n, unit = text.split()
    return float(n) * UNITS[unit]


def check_locks(what, table, truth, slack=0):
    for kind, pattern in LOCKS.items():
        found = [(name, row) for name, row in table.items() if re.fullmatch(pattern, name)]
        rig.check(len(found) == 1, f"{what}: one lock is {kind}: {[name for name, _ in found]}")
        waits, ns, longest, waiter, releaser = found[0][1]
        n, sure, unsure, most = truth[kind]
        rig.check(abs(waits - n) <= 0.03 * n + slack, f"{what}: {kind}: {waits} waits of {n}")
        rig.check(0.97 * sure <= ns <= 1.03 * (sure + unsure), f"{what}: {kind}: {ns / 1e6:.1f} ms of {sure / 1e6:.1f} to "
                  f"{(sure + unsure) / 1e6:.1f}")
        # Of the workload it is the longest by itself; a thread that waits twice in a row, or for a CPU, is left out there.
        rig.check(longest >= 0.97 * most - 1e6, f"{what}: {kind}: the longest of {longest / 1e6:.2f} ms, by itself {most / 1e6:.2f}")
        rig.check((waiter, releaser) == (f"take_{kind}", f"give_{kind}"), f"{what}: {kind}: {waiter} waits, {releaser} releases")


# The kernel's wake-ups name threads by the host's numbers, which are not those in here.
IN_A_NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc"]


def of_a_command(program, what="a command", within=()):
    p = subprocess.run([*within, rig.perfwalk(), "record", "--locks", "-o", "c.html", "--", program, str(ROUNDS)], cwd=rig.workdir(),
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    rig.check(p.returncode == 0, f"record ends with 0, not {p.returncode}: {p.stderr[-500:]}")
    table, truth = table_of("c.html"), truth_of(p.stdout)
    check_locks(what, table, truth)
    rows = re.findall(r"^ *([\d,]+) +([\d.]+ \w+) +([\d.]+ \w+)  (\[lock .{10})", p.stdout, re.M)
    rig.check(len(rows) == len(table) and all(int(n.replace(",", "")) in [row[0] for row in table.values()] for n, *_ in rows),
              f"the summary has the same locks: {rows}")


def not_seen(event):
    """How many waits of the workload have neither a stack nor a lock (contentions), or for how many us (off_cpu)."""
    subprocess.run([rig.perfwalk(), "convert", "-e", event, "h.pb.gz", "-o", "h.folded"], cwd=rig.workdir(), check=True,
                   stdout=subprocess.DEVNULL)
    with open(rig.path("h.folded"), encoding="utf-8") as f:
        return sum(int(line.rsplit(" ", 1)[1]) for line in f if line.startswith(f"{NAME};[not seen] "))


def of_the_host(program):
    """Of all the host's blocks few have a stack: 50 of a quarter of a second on each CPU. A lock that was seen once has
    all waits for it that are told from then on, whoever waited; those of a thread or a part of the capture that ended
    before, and all for a lock that was never seen, are told as not seen."""
    fd = os.open(rig.path("h.txt"), os.O_RDWR | os.O_CREAT, 0o600)
    p = rig.start([rig.perfwalk(), "record", "-a", "--comm", NAME, "--locks", "-o", "h.html", "-o", "h.pb.gz"], cwd=rig.workdir(),
                  stdout=fd, stderr=fd)
    rig.wait_for("the capture begins", lambda: b"recording" in os.pread(fd, 4096, 0), 30)
    truth = truth_of(subprocess.run([program, str(ROUNDS)], stdout=subprocess.PIPE, text=True, check=True, timeout=120).stdout)
    p.send_signal(signal.SIGINT)
    rig.check(p.wait(60) == 0, "the capture ends")
    table, left, seen = table_of("h.html"), 0, []
    unseen, unseen_ns = not_seen("contentions"), 1000 * not_seen("off_cpu")
    for kind, pattern in LOCKS.items():
        n, sure, unsure, _ = truth[kind]
        rows = [row for name, row in table.items() if re.fullmatch(pattern, name)]
        waits, ns = sum(row[0] for row in rows), sum(row[1] for row in rows)
        left += max(0, 0.97 * n - 2 - waits)
        seen += [kind] if rows else []
        rig.check(waits <= 1.03 * n + 2, f"the host: {kind}: {waits} waits of {n}")
        rig.check(0.97 * sure - unseen_ns <= ns <= 1.03 * (sure + unsure), f"the host: {kind}: {ns / 1e6:.1f} ms of {sure / 1e6:.1f} to "
                  f"{(sure + unsure) / 1e6:.1f}, {unseen_ns / 1e6:.1f} not seen")
    rig.check(seen, f"the host: locks that were seen: {seen}")
    rig.check(left <= 1.03 * unseen, f"the host: {left:.0f} waits that no lock has are among the {unseen} not seen")


def of_python():
    """A lock of Python's own, in memory that its threads share."""
    script = os.path.join(rig.WORKLOADS, "pylocks.py")
    p = subprocess.run([rig.perfwalk(), "record", "--locks", "-o", "p.html", "--", sys.executable, script, "100"], cwd=rig.workdir(),
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    truth = re.search(r"^python (\d+) (\d+) (\d+)$", p.stdout, re.M)
    rig.check(p.returncode == 0 and truth, f"Python's workload ends with 0, not {p.returncode}: {p.stderr[-300:]}")
    waits, sure, unsure = map(int, truth.groups())
    table = table_of("p.html")
    near = [(name, row) for name, row in table.items() if abs(row[0] - waits) <= 0.03 * waits and 0.97 * sure <= row[1] <= 1.03 * (sure + unsure)
            and row[2] >= 8e6]
    rig.check(near, f"a lock has Python's {waits} waits and {sure / 1e6:.1f} to {(sure + unsure) / 1e6:.1f} ms, within 3%: {near or table}")


CONFIG = """[profiler]
reporter_interval = 1s
[off_cpu]
enabled = yes
locks = yes
wall = yes
[filter]
include_comm = {name}
[export:sink]
endpoint = {endpoint}
"""


def of_the_daemon(program):
    """Each window has the locks, who releases them, and all time of threads."""
    with Sink() as sink:
        d = rig.Daemon(CONFIG.format(name=NAME, endpoint=sink.endpoint))
        d.wait_up()
        truth = truth_of(subprocess.run([program, str(ROUNDS)], stdout=subprocess.PIPE, text=True, check=True, timeout=120).stdout)
        rig.check(subprocess.run([rig.perfwalk(), "ctl", "-s", d.control, "flush"], check=False, timeout=60).returncode == 0, "flush")
        rig.wait_for("all that was blocked", lambda: told(sink, "off_cpu", "[lock journal+0x40]") >= 0.97 * truth["journal"][1])
        blocked = {kind: told(sink, "off_cpu", f"[lock {name}]") for kind, name in (("pool", "pool_mutex"), ("journal", "journal+0x40"))}
        for kind, ns in blocked.items():
            rig.check(ns <= 1.03 * sum(truth[kind][1:3]) + 5e6, f"the daemon: {kind}: {ns / 1e6:.1f} ms")
        rig.check(told(sink, "lock_wakeups", "give_pool") > 0, "the daemon: who released them")
        wall, off = told(sink, "wall", ""), told(sink, "off_cpu", "")
        rig.check(wall >= off > 0, f"the daemon: {wall / 1e6:.0f} ms of threads, {off / 1e6:.0f} of them blocked")
        rig.check(not sink.problems(), f"the receiver finds nothing wrong: {sink.problems()[:3]}")
        d.stop()


def told(sink, event, frame):
    """The sum of the values of a type's stacks with that frame; of an event that is counted the samples have the type."""
    return sum(sum(s.values) or len(s.timestamps_unix_nano) for view in sink.views() for r in view.message.resource_profiles for scope in r.scope_profiles
               for p in scope.profiles if event in (view.strings[p.sample_type.type_strindex], view.strings[p.period_type.type_strindex])
               for s in p.samples if not frame or frame in view.frames(s.stack_index))


def refusals():
    for args, word in ((["-C", "0"], "-C"), (["-e", "page-faults,cs,minor-faults,cpu-clock"], "3 with --locks")):
        p = subprocess.run([rig.perfwalk(), "record", "--locks", *args, "-d", "1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, timeout=60, check=False)
        rig.check(p.returncode == 2 and word in p.stdout, f"refused: {' '.join(args)}: {p.stdout.strip()[:120]}")


def main():
    rig.need_root()
    rig.need_tracefs()
    program = os.path.join(rig.build_workloads("locks"), NAME)
    os.rename(os.path.join(os.path.dirname(program), "locks"), program)
    refusals()
    of_a_command(program)
    of_a_command(program, "in a pid namespace", IN_A_NAMESPACE)
    of_the_host(program)
    of_python()
    of_the_daemon(program)


rig.run(main)
