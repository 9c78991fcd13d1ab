# SPDX-License-Identifier: Apache-2.0
# Rooms: src/sample src/profiler src/profile src/symbolizer src/render
"""record --off-cpu: how long threads are blocked, where and for what. The truth is the workload's own clocks:
wall time less CPU time around each wait. A block lasts until its thread runs again; what a thread waited for a
CPU when it was preempted is no block, and rounds in which that happened are told apart. Needs root and tracefs."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import otlp
import rig
from sink import Sink

ROUNDS = 60
NAME = f"w{os.getpid()}"
# Kind of the workload: the reason that is shown.
REASONS = {"lock": "lock", "condition": "condition", "sleep": "sleep", "poll": "poll", "epoll": "poll", "pipe": "pipe",
           "network": "network", "file_lock": "file lock", "signal": "signal", "child": "child"}
# What it does when it is asked for more. A thread that ends is waited for as a condition.
MORE = {"disk": "disk", "page_fault": "page fault", "kernel_lock": "kernel lock", "vfork": "child", "clone": "child", "join": "condition",
        "accept": "network", "select": "poll"}
# A thread that was woken waits for the mutex again if who rang the bell was preempted with it.
ALSO = {"condition": "lock"}
MS = 1000  # of folded stacks, which are in microseconds


def truth_of(text):
    """{kind: (us that were blocked for sure, us of which some may have been spent waiting for a CPU)}."""
    found = {k: (int(sure) / 1000, int(unsure) / 1000) for k, sure, unsure in re.findall(r"^(\w+) (\d+) (\d+)$", text, re.M)}
    rig.check(set(found) == set(REASONS), f"the workload names each kind: {sorted(found)}")
    return found


def folded_of(name, event="off_cpu", of=NAME):
    """The off-CPU stacks of a capture, of one process or (None) of all: (frames from the root on, us, or blocks)."""
    out = name + ".folded"
    subprocess.run([rig.perfwalk(), "convert", "-e", event, name, "-o", out], check=True, cwd=rig.workdir(),
                   stdout=subprocess.DEVNULL)
    stacks = []
    with open(rig.path(out), encoding="utf-8") as f:
        for line in f:
            stack, us = line.rsplit(" ", 1)
            comm, *frames = [re.sub(r"_\[[a-z]\]$", "", x) for x in stack.split(";")]
            stacks += [(frames, int(us))] if of in (comm, None) else []
    return stacks


def told_of(stacks):
    """{kind: us}, and {kind: us with the right reason}."""
    told, right = dict.fromkeys(REASONS, 0), dict.fromkeys(REASONS, 0)
    for frames, us in stacks:
        for kind, reason in REASONS.items():
            if f"wait_{kind}" in frames:
                told[kind] += us
                right[kind] += us if frames[0] in (f"[wait: {reason}]", f"[wait: {ALSO.get(kind, reason)}]") else 0
    return told, right


def check_conditions(what, stacks):
    us = {r: sum(us for frames, us in stacks if "wait_condition" in frames and frames[0] == f"[wait: {r}]") for r in ("condition", "lock")}
    rig.check(us["condition"] > us["lock"], f"{what}: a wait for a condition is mostly that: {us}")


def off_by(told, sure, unsure):
    """How far outside of what is possible."""
    return max(sure - told, told - sure - unsure, 0)


def not_seen_of(stacks):
    return sum(us for frames, us in stacks if frames == ["[not seen]"])


def check_accuracy(what, stacks, truth, unseen=0):
    """unseen: us for which it is said that no stack was seen."""
    told, right = told_of(stacks)
    errors = {k: off_by(told[k], *truth[k]) for k in REASONS}
    all_us = sum(sure for sure, _ in truth.values())
    rows = ", ".join(f"{k} {told[k] / MS:.0f} of {sum(truth[k]) / MS:.0f} ms" for k in REASONS)
    rig.check(sum(errors.values()) <= 0.02 * all_us + unseen, f"{what}: {100 * sum(errors.values()) / all_us:.2f}% off, weighted, "
              f"and {100 * unseen / all_us:.2f}% not seen: {rows}")
    rig.check(sum(right.values()) >= 0.99 * sum(told.values()), f"{what}: {sum(right.values()) / MS:.1f} of {sum(told.values()) / MS:.1f} ms "
              "have the right reason")
    check_conditions(what, stacks)
    for kind in REASONS:
        rig.check(right[kind] >= 0.95 * told[kind] > 0, f"{what}: {kind}: {right[kind] / MS:.1f} of {told[kind] / MS:.1f} ms have "
                  f"the reason {REASONS[kind]}")


def check_blocks(stacks):
    """These block once a round, and seldom once more."""
    for kind in ("sleep", "poll", "signal", "child"):
        n = sum(n for frames, n in stacks if f"wait_{kind}" in frames)
        rig.check(ROUNDS <= n <= ROUNDS + ROUNDS // 4, f"{kind}: {n} contentions in {ROUNDS} rounds")


def check_tables(summary, stacks):
    """The summary names what the program called, and adds up by reason."""
    functions = summary.split("Function, by off_cpu")[1].split("Waited for")[0]
    rig.check("schedule" not in functions and "clock_nanosleep" in functions, f"functions that block: {functions.split()[2::4]}")
    for share, reason in re.findall(r"^ *([\d.]+)% +[\d.]+ \w+ +[\d,]+  (\[[\w: ]+\])$", summary, re.M):
        us = sum(us for frames, us in stacks if frames[0] == reason)
        want = 100 * us / sum(us for _, us in stacks)
        rig.check(abs(float(share) - want) <= 0.5, f"{reason}: {share}% in the summary, {want:.1f}% of the stacks")


def number_of(text, unit):
    return float(text) * {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]


def check_accounting(summary):
    """The parts are the whole."""
    # Blocked time of programs that tell their spans, if there are any on the host, has a row of that name, too.
    rows = re.findall(r"^(Time of threads|  \w[\w ]*\w) +([\d.]+) (s|ms|us|ns)\b",
                      re.search(r"^Time of threads .*\n(?:  .*\n)*", summary, re.M)[0], re.M)
    parts = {name.strip(): number_of(n, unit) for name, n, unit in rows}
    whole = parts.pop("Time of threads", 0)
    rig.check(whole > 0 and abs(sum(parts.values()) - whole) <= 0.01 * whole, f"the parts of {whole:.2f} s: {parts}")
    return parts


def of_other_reasons(program):
    """Those that need a disk, a thread or a lock of the kernel that is held meanwhile."""
    p = subprocess.run([rig.perfwalk(), "record", "--off-cpu", "-o", "more.pb.gz", "--", program, str(ROUNDS), "more"], cwd=rig.workdir(),
                       capture_output=True, text=True, timeout=120, check=False)
    rig.check(p.returncode == 0, f"record ends with 0, not {p.returncode}: {p.stderr[-500:]}")
    truth = {k: (int(sure) / 1000, int(unsure) / 1000) for k, sure, unsure in re.findall(r"^(\w+) (\d+) (\d+)$", p.stdout, re.M)}
    lacks = dict(re.findall(r"^lacks (\w+) (.*)$", p.stdout, re.M))
    for kind, why in lacks.items():
        rig.leave_out(f"{kind}: {why}")
    rig.check(set(truth) | set(lacks) == set(MORE), f"the workload names each kind: {sorted(truth)}")
    stacks = folded_of("more.pb.gz")
    for kind, (sure, unsure) in truth.items():
        mine = [(frames[0], us) for frames, us in stacks if f"wait_{kind}" in frames and "vfork_child" not in frames]
        told, right = sum(us for _, us in mine), sum(us for reason, us in mine if reason == f"[wait: {MORE[kind]}]")
        rig.check(right >= 0.95 * told > 0, f"{kind}: {right / MS:.1f} of {told / MS:.1f} ms have the reason {MORE[kind]}")
        # Both ends of a block are in system calls, whose time is the thread's, not that of the block.
        rig.check(off_by(told, sure, unsure) <= 0.02 * (sure + unsure) + 5 * MS, f"{kind}: {told / MS:.1f} ms of {sure / MS:.1f} to "
                  f"{(sure + unsure) / MS:.1f}")


def of_a_command(program):
    """All of the command's threads, and what they fork."""
    p = subprocess.run([rig.perfwalk(), "record", "--off-cpu", "-o", "c.pb.gz", "-o", "c.otlp", "--", program, str(ROUNDS)],
                       cwd=rig.workdir(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    rig.check(p.returncode == 0, f"record ends with 0, not {p.returncode}: {p.stderr[-500:]}")
    truth = truth_of(p.stdout)
    stacks = folded_of("c.pb.gz")
    check_accuracy("a command", stacks, truth)
    check_blocks(folded_of("c.pb.gz", "contentions"))
    check_tables(p.stdout, stacks)
    parts = check_accounting(p.stdout)
    told = sum(us for _, us in stacks) / 1e6
    rig.check(abs(told - parts["blocked"]) <= 0.01 * told + 0.01, f"blocked: {parts['blocked']:.2f} s, of the stacks {told:.2f} s")


def of_a_command_that_switches(rounds=150000):
    """Two processes that wake each other, in two places. There are more switches than stacks fit the rings; their time is
    known all the same, and a stack of 20 KiB is no more than usual."""
    program = os.path.join(rig.build_workloads("switches"), "switches")
    for more in ((), ("--no-interpreters",)):
        p = subprocess.run([rig.perfwalk(), "record", "--off-cpu", *more, "-o", "switches.pb.gz", "--", program, str(rounds), "0", "20"],
                           cwd=rig.workdir(), capture_output=True, text=True, timeout=120, check=False)
        rig.check(p.returncode == 0, f"record ends with 0, not {p.returncode}: {p.stderr[-500:]}")
        us = 2e6 * rounds / float(p.stdout.split("\n", 1)[0].split()[1])
        stacks = folded_of("switches.pb.gz", of="switches")
        # On a busy host fork() and wait4() take long, too: theirs are whole stacks of other waits.
        waits = sum(us for frames, us in stacks if {"main", "switches_pass"} <= set(frames))
        whole = waits + sum(us for frames, us in stacks if "main" not in frames)
        rig.check(waits >= 0.98 * whole >= 0.5 * us, f"{waits} of {whole} us are whole stacks that wait for a turn, in {us:.0f} us")
        # A read() that finds its byte, as when its thread was preempted behind its write(), is no block.
        n = sum(n for frames, n in folded_of("switches.pb.gz", "contentions", "switches") if "switches_pass" in frames)
        rig.check(0.9 * rounds <= n <= 2.1 * rounds, f"{n} waits in {rounds} rounds")
        rig.check(re.search(r"^  lost +0 ", p.stdout, re.M) and " lost" not in re.search(r"^  off_cpu .*$", p.stdout, re.M)[0],
                  f"no sample is lost: {p.stdout[:1500]}")
        read = int(re.search(r"^Samples +([\d,]+)", p.stdout, re.M)[1].replace(",", ""))
        # Some 170 stacks of a CPU fill its ring, a few times a quarter of a second. With all of them it was a third of the waits.
        rig.check(read <= 3000 + 8000 * us / 1e6, f"{read} samples of {n} waits in {us:.0f} us")


def beside_memory(program):
    """Both options add to CPU time; neither takes its place."""
    p = subprocess.run([rig.perfwalk(), "record", "--off-cpu", "--memory", "-o", "m.pb.gz", "--", program, "3"], cwd=rig.workdir(),
                       capture_output=True, text=True, timeout=120, check=False)
    types = re.findall(r"^  (cpu-clock|cycles|memory_growth|off_cpu) +[\d,]+", p.stdout, re.M)
    rig.check(types[1:] == ["memory_growth", "off_cpu"] and types[0] in ("cpu-clock", "cycles"), f"--off-cpu --memory: {types}")


def idle_stacks(seconds, *options):
    """(whole of off-CPU time by what the stack says, the same of wall time, idle seconds that the summary tells)."""
    program = os.path.join(rig.build_workloads("pool"), "pool")
    for _ in range(5):
        p = subprocess.run([rig.perfwalk(), "record", "--wall", *options, "-o", "i.pb.gz", "--", program, str(seconds * 1000)],
                           cwd=rig.workdir(), capture_output=True, text=True, timeout=120, check=False)
        rig.check(p.returncode == 0, f"record ends with 0, not {p.returncode}: {p.stderr[-500:]}")
        whole = float(re.search(r" for ([\d.]+) s on ", p.stdout)[1])
        # On a busy host the capture may be longer than the program's life: then nothing holds a thread for most of it.
        if int(p.stdout.split("\n", 1)[0]) >= 950 * whole:
            break
    sums = []
    for event in ("off_cpu", "wall"):
        # In wall time a function has moments on a CPU, too: it is named by what most of its time was.
        parts = {}
        for frames, us in folded_of("i.pb.gz", event, "pool"):
            key = next((f for f in frames if f.startswith(("idle_", "busy_"))), frames[0])
            states = parts.setdefault(key, {})
            states[frames[0]] = states.get(frames[0], 0) + us
        sums.append({key: [sum(states.values()), max(states, key=states.get)] for key, states in parts.items()})
    told = re.search(r"^    \[idle\] +([\d.]+) (s|ms) ", p.stdout, re.M)
    return *sums, number_of(*told.groups()) if told else 0


def idle_threads(seconds=3):
    """Those that wait for work are left out, with their sum told; a switch shows them."""
    off, wall, told = idle_stacks(seconds)
    busy = {"busy_client": "[wait: network]", "busy_locker": "[wait: lock]", "busy_ticker": "[wait: condition]"}
    rig.check({k: off.get(k, (0, ""))[1] for k in busy} == busy, f"waits of others stay: {off}")
    rig.check(not any(k.startswith(("idle", "[idle")) for k in off), "idle threads are in no stack of off_cpu")
    rig.check(3 * 0.9 * seconds <= told <= 3 * 1.6 * seconds, f"three idle threads for {seconds} s: {told} s are told")
    rig.check(abs(wall["[idle]"][0] / 1e6 - told) <= 0.01 * told, f"wall time keeps them as one frame: {wall['[idle]'][0] / 1e6} s")
    off, wall, told = idle_stacks(seconds, "--idle")
    for what, sums in (("off_cpu", off), ("wall", wall)):
        rig.check(all(sums[k][1] == "[idle]" for k in ("idle_worker", "idle_server")) and all(sums[k][1] == busy[k] for k in busy),
                  f"--idle: {what}: {sums}")
    rig.check(told == 0, "--idle: nothing is left out")


def wire_form():
    """The one form that backends know as off-CPU time."""
    with open(rig.path("c.otlp"), "rb") as f:
        message = otlp.decode(f.read())
    strings = message.dictionary.string_table
    found, wrong = 0, []
    for r in message.resource_profiles:
        for p in (p for scope in r.scope_profiles for p in scope.profiles):
            if strings[p.sample_type.type_strindex] != "off_cpu":
                continue
            found += 1
            wrong += [x for x, bad in (
                ("unit", strings[p.sample_type.unit_strindex] != "nanoseconds"),
                ("period", p.period_type.type_strindex != 0 or p.period_type.unit_strindex != 0 or p.period != 0),
                ("values", any(len(s.values) != 1 or s.timestamps_unix_nano for s in p.samples))) if bad]
    rig.check(found > 0 and not wrong, f"{found} OTLP profiles of off_cpu in nanoseconds, without a period: {wrong}")


def of_the_host(program, what, *before):
    """A thread's time is exact, however few of its stacks were seen among those of the host."""
    fd = os.open(rig.path("h.txt"), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    p = rig.start([*before, rig.perfwalk(), "record", "-a", "--comm", NAME, "--off-cpu", "-o", "h.pb.gz"], cwd=rig.workdir(),
                  stdout=fd, stderr=fd)
    rig.wait_for("the capture begins", lambda: b"recording" in os.pread(fd, 4096, 0), 30)
    truth = truth_of(subprocess.run([program, str(ROUNDS)], stdout=subprocess.PIPE, text=True, check=True, timeout=120).stdout)
    p.send_signal(signal.SIGINT)
    rig.check(p.wait(60) == 0, "the capture ends")
    stacks = folded_of("h.pb.gz")
    told, right = told_of(stacks)
    unseen = not_seen_of(stacks)
    # Stacks are those of 200 blocks a second of a CPU, the host's others among them, however many these are: what was not
    # seen is told as such. Without tracefs each stack is that of one block.
    errors, all_us = {k: off_by(told[k], *truth[k]) for k in REASONS}, sum(sure for sure, _ in truth.values())
    rig.check(sum(errors.values()) <= 0.02 * all_us + unseen and unseen <= 1.02 * all_us, f"{what}: {100 * sum(errors.values()) / all_us:.2f}% off, weighted, "
              f"and {100 * unseen / all_us:.2f}% not seen")
    rig.check(sum(right.values()) >= 0.98 * sum(told.values()), f"{what}: {sum(right.values()) / MS:.1f} of {sum(told.values()) / MS:.1f} ms "
              "have the right reason")
    for kind in REASONS:
        sure, unsure = truth[kind]
        rig.check(told[kind] <= 1.02 * (sure + unsure) + 5 * MS, f"{what}: {kind}: {told[kind] / MS:.1f} ms of {(sure + unsure) / MS:.1f}")
    # It blocks once, until all others are done: read late, if not sampled by chance.
    joins = sum(us for frames, us in stacks if "main" in frames and frames[0] == "[wait: condition]")
    longest = max(sum(t) for t in truth.values())
    rig.check(joins >= 0.9 * longest, f"{what}: the main thread waits for the others for {joins / MS:.0f} ms; the longest of them "
              f"waits for {longest / MS:.0f} ms")
    sure = sum(sure for sure, _ in truth.values())
    rig.check(sum(us for _, us in stacks) >= 0.98 * sure, f"{what}: {sum(us for _, us in stacks) / MS:.0f} ms in all, {unseen / MS:.0f} of "
              f"them without a stack, for {sure / MS:.0f} ms of the waits alone")


NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]


def without_tracefs(program):
    """The records of switches that the kernel has of tasks, and samples of its own event, tell the same."""
    p = subprocess.run([*rig.WITHOUT_TRACEFS, rig.perfwalk(), "record", "--off-cpu", "-o", "p.pb.gz", "--", program, str(ROUNDS)],
                       cwd=rig.workdir(), capture_output=True, text=True, timeout=120, check=False)
    rig.check(p.returncode == 0 and "bad records" not in p.stdout, f"without tracefs: {p.returncode}: {p.stderr[-300:]}")
    # Only the stack of a block itself says where it was: those that a full ring lost are told as not seen.
    stacks = folded_of("p.pb.gz")
    check_accuracy("without tracefs", stacks, truth_of(p.stdout), not_seen_of(stacks))
    check_blocks(folded_of("p.pb.gz", "contentions"))
    check_accounting(p.stdout)
    for who in ("-p", str(os.getpid())), ("-a",):
        p = subprocess.run([*rig.WITHOUT_TRACEFS, rig.perfwalk(), "record", "-e", "context-switches", "--off-cpu", *who, "-d", "1"],
                           capture_output=True, text=True, timeout=60, check=False)
        rig.check(p.returncode == 2 and "mount -t tracefs" in p.stderr, f"not beside its own event, {who}: {p.stderr.strip()[:200]}")


EXECS = """
import os, threading, time
threading.Thread(target=lambda: os.execlp("sleep", "sleep", "1")).start()
time.sleep(100)
"""


def of_a_thread_that_executes():
    """It takes the number of the first thread, which ends: what comes then is no end of that."""
    p = subprocess.run([*rig.WITHOUT_TRACEFS, rig.perfwalk(), "record", "--off-cpu", "--idle", "-o", "e.pb.gz", "--", sys.executable, "-c", EXECS],
                       cwd=rig.workdir(), capture_output=True, text=True, timeout=60, check=False)
    us = sum(us for _, us in folded_of("e.pb.gz", of="sleep"))
    rig.check(p.returncode == 0 and us >= 1000 * MS, f"a program that a second thread executes sleeps for a second: {us / MS:.0f} ms")


NAMED = """
import ctypes, sys, threading, time
def work(name):
    time.sleep(0.2)
    ctypes.CDLL(None).prctl(15, name.encode())
    began = time.monotonic_ns()
    for _ in range(10):
        time.sleep(0.1)
    slept[name] = time.monotonic_ns() - began
    ctypes.CDLL(None).prctl(15, b"another")
    time.sleep(0.2)
slept = {}
threads = [threading.Thread(target=work, args=(name,)) for name in (sys.argv[1] + "-1", sys.argv[1] + "-2", "other")]
for t in threads: t.start()
for t in threads: t.join()
for name in slept: print(name, slept[name])
"""


def of_threads_that_name_themselves():
    """A thread has its parent's name at first, and is wanted for as long as it has the one that was asked for."""
    p = subprocess.run([rig.perfwalk(), "record", "--off-cpu", "--comm", f"{NAME}-*", "-o", "n.pb.gz", "--", sys.executable, "-c", NAMED, NAME],
                       cwd=rig.workdir(), capture_output=True, text=True, timeout=120, check=False)
    rig.check(p.returncode == 0, f"record ends with 0, not {p.returncode}: {p.stderr[-500:]}")
    slept = sum(int(ns) for ns in re.findall(rf"^{NAME}-\d (\d+)$", p.stdout, re.M)) / 1000
    stacks = folded_of("n.pb.gz", of=None)
    us = sum(us for _, us in stacks)
    rig.check(0.98 * slept <= us <= 1.02 * slept + 5 * MS and slept >= 2000 * MS, f"threads that name themselves are blocked for {us / MS:.0f} ms, "
              f"asleep for {slept / MS:.0f} ms with these names")
    asleep = sum(us for frames, us in stacks if frames[0] == "[wait: sleep]")
    rig.check(asleep >= 0.9 * us, f"for the reason: {asleep / MS:.0f} ms; the rest waits for Python's lock")


def without_root(program):
    """Times are exact, and stacks those of threads that were looked at while they stood still."""
    out = rig.path("nobody")
    os.mkdir(out)
    os.chown(out, 65534, 65534)
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="utf-8") as f:
        if int(f.read()) > 2:
            rig.say("nobody may sample here: left out")
            return
    p = subprocess.run([*NOBODY, rig.perfwalk_for_others(), "record", "--off-cpu", "-o", "u.pb.gz", "--", program, str(ROUNDS)],
                       cwd=out, capture_output=True, text=True, timeout=120, check=False, env={"PATH": os.environ["PATH"], "HOME": out})
    rig.check(p.returncode == 0, f"without root: {p.returncode}: {p.stderr[-300:]}")
    truth, stacks = truth_of(p.stdout), folded_of("nobody/u.pb.gz")
    told, right = told_of(stacks)
    for kind in REASONS:
        rig.check(told[kind] <= 1.02 * sum(truth[kind]) + 5 * MS and right[kind] == told[kind], f"without root: {kind}: "
                  f"{told[kind] / MS:.1f} ms of {sum(truth[kind]) / MS:.1f}, all for the right reason")
    sure, longest = sum(sure for sure, _ in truth.values()), max(sum(t) for t in truth.values())
    rig.check(sum(us for _, us in stacks) >= 0.98 * sure, f"without root: {sum(us for _, us in stacks) / MS:.0f} ms in all, for "
              f"{sure / MS:.0f} ms of the waits alone")
    joins = sum(us for frames, us in stacks if "main" in frames and frames[0] == "[wait: condition]")
    rig.check(joins >= 0.9 * longest, f"without root: the longest wait is seen: {joins / MS:.0f} ms of {longest / MS:.0f}")
    check_accounting(p.stdout)


def refusals():
    for args, word in ((["-C", "0"], "-C"), (["--cgroup", "/"], "--cgroup"),
                       (["-e", "page-faults,minor-faults,cpu-clock,cs,major-faults"], "or both take 2"),
                       (["--everything", "--alloc"], "--alloc takes 2"),
                       (["--alloc", "--everything"], "--memory, CPU time and each -e take 1")):
        p = subprocess.run([rig.perfwalk(), "record", "--off-cpu", *args, "-d", "1"], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        rig.check(p.returncode == 2 and word in p.stdout, f"refused: {' '.join(args)}: {p.stdout.strip()[:120]}")


CONFIG = """[profiler]
reporter_interval = 1s
[off_cpu]
enabled = {enabled}
[limits]
cpu = {limit}
[filter]
include_comm = {name}
[export:sink]
endpoint = {endpoint}
"""


def ctl(d, *args):
    return subprocess.run([rig.perfwalk(), "ctl", "-s", d.control, *args], capture_output=True, text=True, timeout=60, check=False)


def values_of(d):
    return dict(line.split(" ", 1) for line in ctl(d, "status", "--all").stdout.splitlines())


def exported_by(sink):
    """The stacks of all payloads, from the root on, with us; and how many profiles had some."""
    stacks, n = [], 0
    for view in sink.views():
        for profile in (p for r in view.message.resource_profiles for s in r.scope_profiles for p in s.profiles):
            if view.strings[profile.sample_type.type_strindex] != "off_cpu":
                continue
            n += 1
            stacks += [(view.frames(s.stack_index)[::-1], sum(s.values) / 1000) for s in profile.samples]
    return stacks, n


def know_all_places(d):
    """Two processes block all the time, and nobody asks for them: 50 stacks a second of a CPU are copied, and not 200."""
    load = rig.start([os.path.join(rig.build_workloads("switches"), "switches"), str(1 << 40), "0"], stdout=subprocess.DEVNULL)

    def copied_in(seconds):
        n, begin = int(values_of(d)["event.off_cpu.samples"]), time.monotonic()
        time.sleep(seconds)
        return int(values_of(d)["event.off_cpu.samples"]) - n, time.monotonic() - begin

    def are_few():
        n, seconds = copied_in(3)
        return n <= 50 * os.cpu_count() * (seconds + 1)
    rig.wait_for("fewer stacks, as all places are known", are_few, 60)
    load.kill()
    load.wait()


def of_the_daemon(program, what, *before):
    """Blocks that span windows are in each with their part, so the sum over all windows is exact."""
    with Sink() as sink:
        config = {"name": NAME, "endpoint": sink.endpoint}
        d = rig.Daemon(CONFIG.format(enabled="no", limit="100%", **config), argv_prefix=before)
        d.wait_up()
        rig.check("event.off_cpu.samples" not in values_of(d), "without [off_cpu] there is none")
        rig.write("daemon.conf", CONFIG.format(enabled="yes", limit="100%", **config))
        p = ctl(d, "reload")
        rig.check(p.returncode == 0, f"a reload: {p.stderr.strip()}")
        rig.wait_for("a profiler that follows switches", lambda: int(values_of(d).get("event.off_cpu.samples", 0)) > 0, 60)
        if not before:
            know_all_places(d)
        truth = truth_of(subprocess.run([program, str(ROUNDS)], stdout=subprocess.PIPE, text=True, check=True, timeout=120).stdout)
        # What it says and what it has exported differ by the windows in between.
        rig.check(ctl(d, "pause").returncode == 0 and ctl(d, "flush").returncode == 0, "pause and flush")
        rig.wait_for("all payloads", lambda: int(values_of(d)["payloads"]) == sink.count() > 0, 60)
        stacks, n = exported_by(sink)
        values = values_of(d)
        told, _ = told_of(stacks)
        for kind in REASONS:
            rig.check(told[kind] <= 1.02 * sum(truth[kind]) + 5 * MS, f"{what}: {kind}: {told[kind] / MS:.1f} ms of "
                      f"{sum(truth[kind]) / MS:.1f}")
        us, sure = sum(us for _, us in stacks), sum(sure for sure, _ in truth.values())
        # After a loss, which may be of any CPU of a busy host, it is not known what threads did until their next switch.
        unknown = int(values["threads_unknown_us"])
        seen, unseen = sum(told.values()), not_seen_of(stacks)
        # Without tracefs each stack is that of one block.
        rig.check(seen + unseen + unknown >= 0.98 * sure and seen >= (0.1 if before else 0.5) * sure, f"{what}: {seen / MS:.0f} ms in {n} profiles, of the waits "
                  f"{sure / MS:.0f}; {unseen / MS:.0f} ms not seen, {unknown / MS:.0f} not known, {values['switches_lost']} switches lost")
        blocked = int(values["threads_blocked_us"])
        rig.check(abs(us - blocked) <= 0.001 * us + 1000, f"{what} says itself that {blocked / MS:.0f} ms are blocked")
        rig.check(ctl(d, "resume").returncode == 0, "resume")
        in_turns(d, CONFIG.format(enabled="yes", limit=f"{max(0.1 / os.cpu_count(), 0.01):.3f}%", **config), program, sink)
        rig.check(not sink.problems(), f"the receiver finds nothing wrong: {sink.problems()[:3]}")
        d.stop()


def in_turns(d, config, program, sink):
    """So many switches cost more than that limit: they are followed in turns, which is said, and the rest is not known."""
    rig.write("daemon.conf", config)
    load = rig.start([program, "100000"], stdout=subprocess.DEVNULL)
    rig.check(ctl(d, "reload").returncode == 0, "a reload for a lower limit")
    rig.wait_for("switches in turns", lambda: "switches/" in values_of(d)["reduced"], 60)
    before = values_of(d)

    def grown():
        now = values_of(d)
        return {x: int(now[f"threads_{x}_us"]) - int(before[f"threads_{x}_us"]) for x in ("unknown", "blocked")}
    rig.wait_for("threads that are blocked, and times when nobody looked", lambda: all(us > 0 for us in grown().values()), 90)
    rig.check("quality goes down: off-CPU time" in d.log(), f"the log says so: {values_of(d)['reduced']}, us {grown()}")
    rig.wait_for("profiles say so", lambda: any(b"switches/" in body for body in sink.payloads()), 60)
    load.kill()


PING_PONG = """
import os
there, back = os.pipe(), os.pipe()
if os.fork() == 0:
    while os.read(there[0], 1): os.write(back[1], b"x")
    os._exit(0)
while True:
    os.write(there[1], b"x")
    os.read(back[0], 1)
"""


def switches_of_the_host():
    with open("/proc/stat", encoding="ascii") as f:
        return int(re.search(r"^ctxt (\d+)$", f.read(), re.M)[1])


def of_too_many_switches():
    """A capture of the host follows so many in turns, too, and says so. How many there are the kernel counts, and a busy
    host decides."""
    loads = [rig.start(["nice", "-n", "-20", "taskset", "-c", str(cpu), sys.executable, "-c", PING_PONG]) for cpu in sorted(os.sched_getaffinity(0))]
    with open(rig.path("turns.err"), "w+", encoding="utf-8") as err:
        p = rig.start([rig.perfwalk(), "record", "-a", "--off-cpu", "-d", "60", "-o", "turns.pb.gz"], cwd=rig.workdir(), stdout=subprocess.PIPE,
                      stderr=err, text=True)

        def said():
            return os.pread(err.fileno(), 1 << 20, 0).decode()
        rig.wait_for("it records", lambda: "recording" in said(), 60)
        begin, n, rates = time.monotonic(), switches_of_the_host(), []
        while len(rates) < 15 and "off-CPU time is measured 1/" not in said():
            time.sleep(1)
            now, m = time.monotonic(), switches_of_the_host()
            rates.append((m - n) / (now - begin))
            begin, n = now, m
        turns = "off-CPU time is measured 1/" in said()
        time.sleep(2)  # whole turns, so that there are times when nobody looked
        p.send_signal(signal.SIGINT)
        out, _ = p.communicate(timeout=120)
    for load in loads:
        rig.end(load)
    parts = check_accounting(out)
    limit = 0.05 / 650e-9 * os.cpu_count()
    rig.check(turns or min(rates[2:]) <= 1.1 * limit, f"with {[round(r) for r in rates]} switches a second of {limit:.0f} they are followed in turns")
    if not turns:
        rig.say("this host is too busy for more: the summary was not looked at")
        return
    rig.check(p.returncode == 0 and parts.get("not known", 0) > 0 and "followed in turns alone" in out, f"the summary says so: {parts}")


HANGS = """
import sys, threading
open("/proc/self/comm", "w").write(sys.argv[1])
locks = [threading.Lock() for _ in range(3)]
for l in locks: l.acquire()
for l in locks[1:]: threading.Thread(target=l.acquire, daemon=True).start()
print("ready", flush=True)
locks[0].acquire()
"""
HANGS_SUFFIXES = ("pb.gz", "folded", "speedscope.json", "html")


def of_a_process_that_computes():
    """It ran before the capture, and need not switch at all: all of its time is that of one thread."""
    program = os.path.join(rig.workdir(), f"c{os.getpid()}")
    shutil.copy("/bin/sh", program)
    p = rig.start([program, "-c", "while :; do :; done"])
    rig.wait_for("it runs", lambda: rig.comm_of(p.pid) == os.path.basename(program))
    for who in ("-p", str(p.pid)), ("-a", "--comm", os.path.basename(program)):
        out = subprocess.run([rig.perfwalk(), "record", "--off-cpu", *who, "-d", "2", "-o", "computes.pb.gz"], cwd=rig.workdir(),
                             capture_output=True, text=True, timeout=120, check=True).stdout
        seconds, parts = float(re.search(r" for ([\d.]+) s on ", out)[1]), check_accounting(out)
        ran = parts.get("on a CPU", 0) + parts.get("waiting for a CPU", 0)
        # The head of the summary has a tenth of a second, and counts from the moment before the events begin.
        rig.check(1.98 <= sum(parts.values()) <= seconds + 0.1 and ran >= 1.9, f"{who[0]}: {seconds} s of one thread: {parts}")
    rig.end(p)


def of_a_process_that_hangs(*prefix, of_the_host=False):
    """No thread of it switches: all its time is of the block it was found in. prefix: a command that runs perfwalk."""
    p = rig.start([sys.executable, "-c", HANGS, f"hangs{os.getpid()}"], stdout=subprocess.PIPE, text=True)
    rig.check(p.stdout.readline() == "ready\n", "a process that hangs")
    tids = [int(x) for x in os.listdir(f"/proc/{p.pid}/task")]
    rig.wait_for("all threads wait", lambda: all(rig.status_of(f"{p.pid}/task/{t}")["State"].startswith("S") for t in tids))
    who = ("-a", "--comm", rig.comm_of(p.pid)) if of_the_host else ("-p", str(p.pid))
    out = subprocess.run([*prefix, rig.perfwalk(), "record", "--off-cpu", *who, "-d", "2", *sum((["-o", f"hangs.{s}"] for s in HANGS_SUFFIXES), [])], cwd=rig.workdir(),
                         capture_output=True, text=True, timeout=120, check=True).stdout
    us = 1e6 * len(tids) * float(re.search(r" for ([\d.]+) s on ", out)[1])
    stacks = folded_of("hangs.pb.gz", of=rig.comm_of(p.pid))
    told = sum(us for frames, us in stacks if frames[0] == "[wait: lock]" and any("acquire" in f for f in frames))
    # The head of the summary has a tenth of a second.
    rig.check(len(tids) == 3 and 0.9 * us <= told <= 1.05 * us, f"{who[0]}: {len(tids)} threads that wait for locks: {told} us of {us:.0f}, all {stacks}")
    rig.check(re.search(r"^  blocked +[\d.]+ s ", out, re.M), f"the summary accounts for it: {out}")
    check_accounting(out)
    begins_with_what_was_asked_for(stacks)
    rig.end(p)


MANY = """
import sys, threading
lock = threading.Lock()
lock.acquire()
threading.stack_size(1 << 16)
for _ in range(int(sys.argv[1])): threading.Thread(target=lock.acquire, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


def of_many_threads_that_hang():
    """More than the profiler can be told of at once. Each thread needs descriptors for each CPU."""
    n = min(1500, 3000 // os.cpu_count())
    p = rig.start([sys.executable, "-c", MANY, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    rig.check(p.stdout.readline() == "ready\n", f"{n} threads that hang")
    r = rig.record("--off-cpu", "--idle", "-p", p.pid, "-d", "2", "-o", rig.path("many.pb.gz"))
    seconds = float(re.search(r" for ([\d.]+) s on ", r.out)[1])
    told = sum(us for _, us in folded_of("many.pb.gz", of=None)) / 1e6
    rig.check(r.status == 0 and "does not read" not in r.err, f"the profiler lives: {r.err}")
    # On a busy host it takes a while to look at all of them.
    rig.check(told >= 0.5 * n * seconds, f"{told:.0f} s of {n} threads in {seconds} s")
    rig.end(p)


def of_many_processes_that_hang(n=3000):
    """Whose each is takes a question, and so many of these must neither hold up the capture nor what it must be told."""
    p = rig.start([os.path.join(rig.build_workloads("sleepers"), "sleepers"), str(n)], stdout=subprocess.PIPE, text=True)
    rig.check(p.stdout.readline() == "ready\n", f"{n} processes that hang")
    for seconds in "0.5", "2":
        r = rig.record("-a", "--off-cpu", "-d", seconds, "-o", rig.path("sleepers.pb.gz"))
        told = re.search(r"off-CPU time lacks up to (\d+) threads", r.err)
        rig.check(r.status == 0 and "killing it" not in r.err, f"{seconds} s of {n} processes: {r.err}")
        rig.check(told and 0 < int(told[1]) <= n + 2000, f"the rest of them are told: {r.err}")
    rig.end(p)


def of_the_host_without_its_own():
    """perfwalk's processes wait because others do. One of another program may have such a name, as PipeWire's have."""
    program = rig.path("pw-opener")
    shutil.copy("/bin/sleep", program)
    other = rig.start([program, "1000"])
    fd = os.open(rig.path("own.txt"), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    p = rig.start([rig.perfwalk(), "record", "-a", "--off-cpu", "--idle", "-d", "2", "-o", "own.perf.txt"], cwd=rig.workdir(), stdout=fd, stderr=fd)
    rig.wait_for("the capture begins", lambda: b"recording" in os.pread(fd, 4096, 0), 30)
    own = {p.pid, *rig.children_of(p.pid)}
    rig.check(p.wait(60) == 0 and len(own) > 3, f"a capture of the host by {len(own)} processes")
    blocked = re.findall(r"^(\S+) +(\d+)/\d+ .* off_cpu:", contents("own.perf.txt"), re.M)
    rig.check(("pw-opener", str(other.pid)) in blocked, "another program's process is among the blocked")
    told = {(comm, pid) for comm, pid in blocked if int(pid) in own}
    rig.check(not told, f"its own processes are not: {told}")
    rig.end(other)


def contents(name):
    with open(rig.path(name), encoding="utf-8") as f:
        return f.read()


def begins_with_what_was_asked_for(stacks):
    """No CPU time is in the capture, and --off-cpu asked for none: readers of one type show the blocks."""
    us = sum(us for _, us in stacks)
    folded = sum(int(line.rsplit(" ", 1)[1]) for line in contents("hangs.folded").splitlines())
    rig.check(abs(folded - us) <= len(stacks), f"folded stacks have off-CPU time: {folded} us of {us}")
    report = subprocess.run([rig.perfwalk(), "report", rig.path("hangs.pb.gz")], capture_output=True, text=True, timeout=60, check=True).stdout
    rig.check("\noff_cpu for " in report, f"a report of pprof reads it: {report[:200]}")
    speedscope = json.loads(contents("hangs.speedscope.json"))
    shown = speedscope["profiles"][speedscope["activeProfileIndex"]]
    rig.check(shown["name"] == "off_cpu: all processes" and abs(shown["endValue"] / 1000 - us) <= len(stacks), f"speedscope begins with it: {shown['name']}")
    page = json.loads(re.search(r'id="data">(.*?)</script>', contents("hangs.html"), re.S)[1])
    asked = [c["meta"]["event"] for c in page if c["meta"].get("asked")]
    rig.check(asked == ["off_cpu"], f"the page, too: {asked}")


def of_one_that_only_sleeps():
    p = rig.start(["sleep", "1000"])
    out = subprocess.run([rig.perfwalk(), "record", "--off-cpu", "-p", str(p.pid), "-d", "1", "-o", "sleeps.folded"], cwd=rig.workdir(),
                         capture_output=True, text=True, timeout=120, check=True).stdout
    rig.check("No samples: threads only waited for work" in out and not contents("sleeps.folded"), f"nothing but [idle]: {out[-300:]}")
    rig.end(p)


def refused_configs():
    for more, word, *before in (("[filter]\ninclude_cpus = 0\n", "include_cpus"),
                       ("[event:page-faults]\n[event:context-switches]\n[event:cpu-migrations]\n[event:major-faults]\n", "too many"),
                       ("locks = yes\n[profiler]\nmemory_growth = yes\n[event:page-faults]\n[event:context-switches]\n", "[alloc] 2"),
                       ("[event:context-switches]\n", "mount -t tracefs", *rig.WITHOUT_TRACEFS), ("locks = yes\n", "mount -t tracefs", *rig.WITHOUT_TRACEFS)):
        rig.write("refused.conf", "[off_cpu]\nenabled = yes\n" + more)
        p = subprocess.run([*before, rig.perfwalk(), "run", "-c", rig.path("refused.conf"), "--check-config"], capture_output=True, text=True,
                           timeout=60, check=False)
        rig.check(p.returncode == 2 and "[off_cpu]" in p.stderr and word in p.stderr, f"refused: {p.stderr.strip()[:150]}")


def main():
    rig.need_root()
    rig.need_tracefs()
    program = os.path.join(rig.build_workloads("waits"), NAME)
    os.rename(os.path.join(os.path.dirname(program), "waits"), program)
    refusals()
    of_a_command(program)
    of_other_reasons(program)
    of_a_command_that_switches()
    wire_form()
    of_a_process_that_computes()
    of_a_process_that_hangs()
    of_a_process_that_hangs(*rig.WITHOUT_TRACEFS)
    of_a_process_that_hangs(of_the_host=True)
    of_a_process_that_hangs(*rig.WITHOUT_TRACEFS, of_the_host=True)
    of_many_threads_that_hang()
    of_many_processes_that_hang()
    of_the_host_without_its_own()
    of_one_that_only_sleeps()
    beside_memory(program)
    idle_threads()
    without_tracefs(program)
    of_a_thread_that_executes()
    of_threads_that_name_themselves()
    without_root(program)
    of_the_host(program, "the host")
    of_too_many_switches()
    of_the_host(program, "the host without tracefs", *rig.WITHOUT_TRACEFS)
    refused_configs()
    of_the_daemon(program, "the daemon")
    of_the_daemon(program, "the daemon without tracefs", *rig.WITHOUT_TRACEFS)


rig.run(main)
