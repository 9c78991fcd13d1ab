#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Off-CPU time beside other tools that see the same run.

    PERFWALK=build/perfwalk python3 tests/bench/offcpu-peers.py [--rounds 100]     # as root, with tracefs; perf, java
    PERFWALK=build/perfwalk python3 tests/bench/offcpu-peers.py --slow-down 9      # perf alone

perf sched records all switches while perfwalk records the workload `waits`, thread by thread: perf sched timehist adds up
what threads waited for anything, a CPU included; the same switches, paired as bcc's offcputime pairs them, tell what they
were blocked; and of these, each is taken with a probability and weighed by it, as agents do that read a stack at each block
they take. perf trace -s adds up all of a thread's system calls. Differences are those of all threads' times, added up, in
percent of the whole. JFR's events of monitors and sleeps are beside what perfwalk sees of the same
methods."""
import argparse
import datetime
import gzip
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import pprof_file  # noqa: E402
import rig  # noqa: E402

STACKS_PER_SECOND = 200


def run(*args, **kw):
    return subprocess.run([str(x) for x in args], check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **kw).stdout


def ours(name, event):
    """[(tid, ns, frames)] of a capture's first process."""
    text = rig.path(event + ".perf.txt")
    run(rig.perfwalk(), "convert", "-e", event, name, "-o", text)
    found = []
    with open(text, encoding="utf-8") as f:
        for entry in f.read().split("\n\n"):
            lines = [x for x in entry.splitlines() if not x.startswith("#")]
            m = re.fullmatch(r".+? +(\d+)/(\d+) +\[\d+\] [\d.]+: +(\d+) \S+:", lines[0]) if lines else None
            if m:
                frames = [re.sub(r"(\+0x\w+)? \([^()]*\)$", "", x.split(None, 1)[-1]) for x in lines[1:]]
                found.append((int(m[1]), int(m[2]), int(m[3]), frames))
    return [row[1:] for row in found if row[0] == min(found)[0]]


def by_thread(rows):
    sums = {}
    for tid, ns, *_ in rows:
        sums[tid] = sums.get(tid, 0) + ns
    return sums


def timehist(data, tids):
    """{tid: ns of waits, those for a CPU included: its column of delays is a part of that of waits}"""
    sums = dict.fromkeys(tids, 0)
    for line in run("perf", "sched", "timehist", "-i", data).splitlines():
        m = re.match(r" *[\d.]+ +\[\d+\] +.*\[(\d+)(?:/\d+)?\] +([\d.]+) +[\d.]+ +[\d.]+", line)
        if m and int(m[1]) in sums:
            sums[int(m[1])] += round(float(m[2]) * 1e6)
    return sums


def blocks_of(data, tids):
    """[(tid, ns)]: from each switch out in S or D to the next one in."""
    out, blocks = {}, []
    for line in run("perf", "script", "-i", data, "--ns", "-F", "time,event,trace").splitlines():
        m = re.search(r"([\d.]+): +sched:sched_switch: .*prev_pid=(\d+).* prev_state=(\S+) ==> .*next_pid=(\d+)", line)
        if not m:
            m = re.search(r"([\d.]+): +sched:sched_switch: .*:(\d+) \[\d+\] (\S+) ==> .*:(\d+) \[\d+\]", line)
        if not m:
            continue
        ns, prev, state, after = round(float(m[1]) * 1e9), int(m[2]), m[3], int(m[4])
        if prev in tids and state[0] in "SD":
            out[prev] = ns
        if after in out:
            blocks.append((after, ns - out.pop(after)))
    return blocks


def thinned(blocks, p, seed):
    rng = random.Random(seed)
    return by_thread((tid, ns / p) for tid, ns in blocks if rng.random() < p)


def difference(a, b):
    """Of a from b, by thread, in percent of b."""
    return 100 * sum(abs(a.get(t, 0) - b.get(t, 0)) for t in {*a, *b}) / sum(b.values())


def recorded(name, *command):
    """Runs the command, with the workload in it, during a capture: {tid: ns blocked}, {tid: ns of waits}, the command's output."""
    fd = os.open(rig.path("said"), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    p = rig.start([rig.perfwalk(), "record", "-a", "--comm", "waits", "--wall", "--idle", "-o", name], stdout=fd, stderr=fd)
    rig.wait_for("the capture begins", lambda: b"recording" in os.pread(fd, 4096, 0), 30)
    text = run(*command)
    p.send_signal(signal.SIGINT)
    p.wait(60)
    off, wall = ours(name, "off_cpu"), ours(name, "wall")
    waits = by_thread(row for row in wall if "[on CPU]" not in row[2])
    # What the first thread waited for before it was the program is nobody's.
    off, waits = ({t: ns for t, ns in x.items() if t != min(x)} for x in (by_thread(off), waits))
    return off, waits, text


def beside_perf_sched(program, rounds):
    data = rig.path("sched.data")
    off, waits, _ = recorded(rig.path("w.pb.gz"), "perf", "sched", "record", "-m", "8M", "-o", data, "--", program, rounds)
    blocks = blocks_of(data, set(off))
    truth = by_thread(blocks)
    print(f"{len(off)} threads, {len(blocks)} blocks, {sum(truth.values()) / 1e9:.2f} s")
    print(f"perf sched timehist, waits of all kinds: perfwalk differs by {difference(waits, timehist(data, set(off))):.2f}%")
    print(f"bcc's pairs, blocked: perfwalk differs by {difference(off, truth):.2f}%")
    p = min(STACKS_PER_SECOND * max(truth.values()) / 1e9 / len(blocks), 1)
    for share in sorted({p, 0.1}):
        errors = [difference(thinned(blocks, share, seed), truth) for seed in range(40)]
        print(f"each block with a probability of {share:.2f}: differs by {statistics.median(errors):.1f}%")


def truth_of(text):
    found = [(int(a), int(b)) for a, b in re.findall(r"^\w+ (\d+) (\d+)$", text, re.M)]
    return sum(a for a, _ in found) / 1e9, sum(a + b for a, b in found) / 1e9


def beside_perf_trace(program, rounds):
    out, sums = rig.path("trace.txt"), {}
    _, waits, _ = recorded(rig.path("t.pb.gz"), "perf", "trace", "-s", "-o", out, "--", program, rounds)
    with open(out, encoding="utf-8") as f:
        for part in re.split(r"^ (?=\S+ \(\d+\), )", f.read(), flags=re.M)[1:]:
            tid = int(re.match(r"\S+ \((\d+)\)", part)[1])
            sums[tid] = sum(float(m[1]) * 1e6 for m in re.finditer(r"^   \w+ +\d+ +\d+ +([\d.]+) ", part, re.M))
    known = {t: ns for t, ns in sums.items() if t in waits}
    print(f"perf trace -s, all of system calls: perfwalk's waits differ by {difference(waits, known):.2f}%")


def beside_clocks(program, rounds):
    name = rig.path("c.pb.gz")
    low, high = truth_of(run(rig.perfwalk(), "record", "--off-cpu", "--idle", "-o", name, "--", program, rounds))
    told = sum(ns for _, ns, frames in ours(name, "off_cpu") if any(x.startswith("wait_") for x in frames)) / 1e9
    print(f"perfwalk: {told:.2f} s in functions that wait, by the threads' clocks {low:.2f} to {high:.2f} s")


def seconds_of(duration):
    return float(re.fullmatch(r"PT([\d.]+)S", duration)[1])


def began(event):
    whole, part = event["values"]["startTime"].removesuffix("Z").split(".")
    return datetime.datetime.fromisoformat(whole + "+00:00").timestamp() + float("0." + part)


def name_of(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8") as f:
        return f.read()


def window_of(name):
    with gzip.open(name) as f:
        head = dict(pprof_file.fields(f.read()))
    return head[9] / 1e9, (head[9] + head[10]) / 1e9


def beside_jfr(seconds):
    """Java writes its events when it ends, which takes a while: those of the capture count, by when they began."""
    classes, jfr, name = rig.path("classes"), rig.path("w.jfr"), rig.path("j.pb.gz")
    run("javac", "--release", "11", "-d", classes, os.path.join(rig.WORKLOADS, "Waits.java"))
    p = rig.start(["java", "-XX:StartFlightRecording:filename=" f"{jfr},jdk.JavaMonitorEnter#threshold=0ms,jdk.ThreadSleep#threshold=0ms,"
                   "jdk.ThreadSleep#enabled=true", "-cp", classes, "Waits"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    rig.wait_for("its threads", lambda: any("waiter" in name_of(p.pid, t) for t in os.listdir(f"/proc/{p.pid}/task")), 60)
    run(rig.perfwalk(), "record", "--locks", "--idle", "-d", seconds, "-p", p.pid, "-o", name)
    p.terminate()
    p.wait(120)
    rows, (begin, end) = ours(name, "off_cpu"), window_of(name)
    events = json.loads(run("jfr", "print", "--json", "--events", "jdk.JavaMonitorEnter,jdk.ThreadSleep", jfr))["recording"]["events"]
    for method in ("Waits.waits", "Waits.naps", "Waits.holds"):
        its = [seconds_of(e["values"]["duration"]) for e in events if begin <= began(e) < end and any(
            f["method"]["name"] == method.split(".")[1] for f in e["values"]["stackTrace"]["frames"])]
        told = sum(ns for _, ns, frames in rows if method in frames) / 1e9
        print(f"{method}: JFR {len(its)} events, {sum(its):.2f} s; perfwalk {told:.2f} s ({100 * (told / sum(its) - 1):+.1f}%)")


def cpu_seconds():
    t = os.times()
    return t.children_user + t.children_system


def slow_down(turns, rounds=20000):
    """What each tool does to two processes that wake each other: CPU time of a switch, and of all with the tool's own."""
    program, out = os.path.join(rig.build_workloads("switches"), "switches"), rig.path("slow")
    tools = {"alone": [], "perfwalk record --off-cpu": [rig.perfwalk(), "record", "-q", "--off-cpu", "-o", out + ".pb.gz", "--"],
             "perf sched record": ["perf", "sched", "record", "-m", "8M", "-o", out + ".data", "--"],
             "perf trace -s": ["perf", "trace", "-s", "-o", out + ".txt", "--"]}
    got = {name: ([], []) for name in tools}
    for _ in range(turns):
        for name in random.sample(list(tools), len(tools)):
            begin = cpu_seconds()
            text = run(*tools[name], program, rounds, 0)
            got[name][0].append(float(re.search(r"^([\d.]+) \d+$", text, re.M)[1]))
            got[name][1].append(cpu_seconds() - begin)
    for name, (switches, whole) in got.items():
        ratios, all_ratios = ([b / a for a, b in zip(got["alone"][i], x)] for i, x in enumerate((switches, whole)))
        print(f"{name}: {statistics.median(switches):.0f} ns a switch, {statistics.median(ratios):.2f} times as much as alone; "
              f"with its own CPU time {statistics.median(all_ratios):.2f} times")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--slow-down", type=int, metavar="TURNS", help="only how much slower a program is beside each")
    args = parser.parse_args()
    rig.need_root()
    rig.need_tracefs()
    if args.slow_down:
        rig.need_programs("perf")
        slow_down(args.slow_down)
        return
    rig.need_programs("perf", "java", "javac", "jfr")
    program = os.path.join(rig.build_workloads("waits"), "waits")
    beside_perf_sched(program, args.rounds)
    beside_perf_trace(program, args.rounds)
    beside_clocks(program, args.rounds)
    beside_jfr(8)


rig.run(main)
