# SPDX-License-Identifier: Apache-2.0
# Rooms: src/sample src/broker src/process src/profiler src/symbolizer src/exporter
"""Nothing is lost in silence, whoever dies: the profiler and the symbolizer are killed again and again while page
faults are recorded, each one. What is kept and what is told to be lost are what the kernel counted, to the last one.
The same of the daemon and its exporter: what was read from the rings came to the receiver, or is told to it. So are
payloads that only the symbolizer and the exporter had, when both of them die.
LOSSES_SEED=N repeats a run's moments, LOSSES_STORM=60 kills for so many seconds whoever is there. Needs root."""
import ctypes
import os
import random
import re
import signal
import struct
import subprocess
import time

import otlp
import rig
from sink import Sink

PAGES, MS, ROUNDS = 60, 5, 400
KILLS = 6
STORM = float(os.environ.get("LOSSES_STORM", "2"))  # seconds
SYS_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}[os.uname().machine]


class Counter:
    """The kernel's own count of a process's page faults, without any ring."""

    def __init__(self, pid):
        attr = struct.pack("<IIQ", 1, 112, 2).ljust(112, b"\0")  # PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS
        self.fd = ctypes.CDLL(None, use_errno=True).syscall(SYS_PERF_EVENT_OPEN, attr, pid, -1, -1, 8)
        if self.fd < 0:
            rig.fail(f"perf_event_open: {os.strerror(ctypes.get_errno())}")

    def read(self):
        return struct.unpack("<Q", os.read(self.fd, 8))[0]


def counted(text, name):
    """A number of the summary."""
    m = re.search(rf"^ *{re.escape(name)} +([\d,]+)( |$)", text, re.M)
    return int(m[1].replace(",", "")) if m else 0


def n_samples(name):
    with open(name, encoding="utf-8") as f:
        return sum(" page-faults:" in x for x in f)


def child(pid, role):
    return next((c for c in rig.children_of(pid) if rig.comm_of(c) == rig.ROLES[role]), 0)


def kill_often(p, roles, target):
    """Each time another one than before, at a moment of chance; how often until the target is done."""
    killed = {role: {0} for role in roles}
    for _ in range(KILLS):
        role = random.choice(roles)

        def another(role=role):
            pid = child(p.pid, role)
            return pid if pid not in killed[role] else p.poll() is not None
        pid = rig.wait_for(f"another {role}, or the end", another)
        time.sleep(random.uniform(0, 0.4))
        if pid is True or target.poll() is not None:
            break
        rig.kill(pid, signal.SIGKILL)
        killed[role].add(pid)
    return sum(len(x) - 1 for x in killed.values())


def capture(directory, roles):
    """What a capture under fire reports, and what the kernel counted."""
    name = rig.path("faults.perf.txt")
    target = rig.start([os.path.join(directory, "counted"), "both", str(PAGES), str(MS), str(ROUNDS)],
                       stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    rig.wait_for("it waits", lambda: rig.comm_of(target.pid) == "counted" and state(target.pid) == "S")
    p = rig.start([rig.perfwalk(), "record", "-p", str(target.pid), "-e", "page-faults", "-o", name],
                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    rig.wait_until_it_records(p)
    counter = Counter(target.pid)
    target.stdin.write("\n")
    target.stdin.close()
    n = kill_often(p, roles, target)
    target.wait(120)
    out, err = p.communicate(timeout=120)
    rig.check(p.returncode == 0, f"record ends with {p.returncode} after {n} kills of {' and '.join(roles)}")
    return out, n_samples(name), counter.read(), n


def state(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def check_sum(directory, roles):
    out, kept, truth, n = capture(directory, roles)
    told = {name: counted(out, name) for name in ("lost", "lost with a process", "dropped")}
    rig.check(n >= 3 and kept + sum(told.values()) == truth,
              f"{' and '.join(roles)}: {kept} kept, {told}, of {truth}: {truth - kept - sum(told.values())} are missing")


def offline(directory):
    """A CPU goes offline while no profiler runs: what is in its ring is for the next one. (For perfwalk alone: a list
    of CPUs in its own mount namespace says so.)"""
    n, name, online, cpu = 300, rig.path("calls.perf.txt"), rig.path("online"), max(os.sched_getaffinity(0))
    program = os.path.join(directory, "counted")
    with open("/sys/devices/system/cpu/online", encoding="utf-8") as f:
        text = f.read()
    if cpu == 0:
        return rig.say("one CPU: none can go offline")

    def write(cpus):
        with open(online, "w", encoding="utf-8") as f:
            f.write(cpus)
    write(text)
    target = rig.start(["taskset", "-c", str(cpu), program, "both", "1", "0", str(n)], stdin=subprocess.PIPE,
                       stdout=subprocess.DEVNULL, text=True)
    p = rig.start(["unshare", "-m", "sh", "-c", 'mount --bind "$0" /sys/devices/system/cpu/online && '
                   "{ [ -d /sys/kernel/tracing/events ] || mount -t tracefs none /sys/kernel/tracing; } && exec \"$@\"",
                   online, rig.perfwalk(), "record", "-e", f"uprobe:{program}:counted_touch", "-o", name],
                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    says(p, "recording")
    for _ in range(7):  # the next one starts after 3.2 s
        rig.kill(rig.wait_for("a profiler", lambda: child(p.pid, "profiler"), 60), signal.SIGKILL)
        rig.wait_for("its end", lambda: not child(p.pid, "profiler"), 60)
    target.communicate("\n", 60)
    write("".join(f"{x}," for x in range(cpu)))
    says(p, f"CPU {cpu} went offline")
    write(text)
    says(p, f"CPU {cpu} came online")
    p.send_signal(signal.SIGINT)
    out = p.communicate(timeout=120)[0]
    told = sum(counted(out, x) for x in ("lost", "lost with a process", "dropped"))
    with open(name, encoding="utf-8") as f:
        kept = sum("counted_touch:" in x for x in f)
    rig.check(kept + told == n, f"a CPU that went offline without a profiler: {kept} calls kept, {told} told to be lost, of {n}")


def says(p, text):
    line = next((x for x in p.stderr if text in x), None)
    rig.check(line, f"it says: {line.strip() if line else None}")


# ---- The daemon ----


def ctl(daemon, *words):
    r = subprocess.run([rig.perfwalk(), "ctl", "-s", daemon.control, *words], capture_output=True, text=True, check=False)
    return r.stdout if r.returncode == 0 else None


def status(daemon):
    text = rig.wait_for("an answer", lambda: ctl(daemon, "status", "--all"))
    return dict(x.split(" ", 1) for x in text.splitlines() if " " in x)


def received(sink):
    """Samples, and the losses that the payloads report. One that came twice (its exporter died before it knew that it
    had come) is counted once."""
    sums = dict.fromkeys(("samples_lost", "samples_lost_with_process", "samples_dropped", "kept"), 0)
    for body in set(sink.payloads()):
        view = otlp.view_of(body)
        sums["kept"] += sum(x[3] for x in view.samples())
        for profile in (p for rp in view.message.resource_profiles for sp in rp.scope_profiles for p in sp.profiles):
            for k, v in view.table_attributes(profile.attribute_indices).items():
                if k.removeprefix("perfwalk.") in sums:
                    sums[k.removeprefix("perfwalk.")] += v
    return sums


def start(sink, name):
    d = rig.Daemon(f"""
[profiler]
samples_per_second = 499
reporter_interval = 1s
[export:sink]
endpoint = {sink.endpoint}
""", name=name)
    d.wait_up()
    return d


def storm(roles, seconds):
    """Each is killed as soon as it is there, every 50 ms at most: the broker starts them ever more rarely, and counts."""
    with Sink() as sink:
        d = start(sink, "storm-of-" + "-".join(roles))
        sink.wait_for(1)
        n, end = dict.fromkeys(roles, 0), time.monotonic() + seconds
        while time.monotonic() < end:
            for role in roles:
                pid = d.role(role)
                n[role] += pid != 0
                if pid:
                    rig.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        rig.check(all(n.values()), f"killed within {seconds:g} s: {n}")
        lost = check_received(d, sink, roles, ("samples_lost", "samples_lost_with_process", "samples_dropped"))
        rig.check(lost == 0 or roles != ["symbolizer"], f"{lost} samples are lost with them")


def daemon(roles):
    with Sink() as sink:
        d = start(sink, "-".join(roles))
        sink.wait_for(1)
        for _ in range(KILLS):
            pid = rig.wait_for("its processes", lambda: d.role(random.choice(roles)), 60)
            time.sleep(random.uniform(0, 0.4))
            rig.kill(pid, signal.SIGKILL)
            rig.wait_for("another one", lambda: pid not in rig.children_of(d.pid), 60)
        check_received(d, sink, roles, ("samples_lost", "samples_lost_with_process", "samples_dropped"))


def check_received(d, sink, roles, same):
    """Those counters are the same at the receiver and here. Returns what was lost with a process."""
    d.wait_up(60)
    rig.wait_for("a pause", lambda: ctl(d, "pause") is not None)
    rig.wait_for("what is left", lambda: ctl(d, "flush") is not None, 60)
    told = status(d)
    truth = int(told["samples"]) - int(told["samples_filtered"])
    sums = rig.wait_for("all of it", lambda: (lambda s: s if s["kept"] + s["samples_lost_with_process"] +
                                              s["samples_dropped"] >= truth else None)(received(sink)), 20)
    rig.check(sums["kept"] + sums["samples_lost_with_process"] + sums["samples_dropped"] == truth,
              f"{' and '.join(roles)}: the receiver has {sums} of {truth}")
    for name in same:
        rig.check(sums[name] == int(told[name]), f"ctl status says the same: {name} {told[name]}")
    rig.check(d.stop()[0] == 0, "it leaves with 0")
    return sums["samples_lost_with_process"]


def kill_both(d):
    """With no time for another exporter between."""
    os.kill(d.pid, signal.SIGSTOP)
    for role in ("exporter", "symbolizer"):
        rig.kill(d.role(role), signal.SIGKILL)
    os.kill(d.pid, signal.SIGCONT)


def kill_in_turn(d):
    """The exporter has what the first symbolizer made, and the second one has not."""
    for role in ("symbolizer", "exporter"):
        pid = d.role(role)
        rig.kill(pid, signal.SIGKILL)
        rig.wait_for(f"another {role}", lambda role=role, pid=pid: d.role(role) not in (0, pid), 60)


def custody(kill):
    """Payloads wait in the exporter's memory alone; who else had them dies as well."""
    with Sink() as sink:
        sink.answers = [(503, {"Retry-After": "1"}, b"")] * 1000
        d = start(sink, kill.__name__)
        rig.wait_for("payloads in the exporter", lambda: int(status(d)["export.sink.queue_payloads"]) >= 3, 60)
        kill(d)
        sink.answers = []
        # What the kernel lost was told in payloads, too.
        lost = check_received(d, sink, [kill.__name__], ("samples_lost_with_process", "samples_dropped"))
        rig.check(lost > 0, f"{lost} samples were lost with their payloads")


def main():
    rig.need_root()
    seed = int(os.environ.get("LOSSES_SEED", time.time_ns() % 1000000))
    random.seed(seed)
    rig.say(f"LOSSES_SEED={seed}")
    directory = rig.build_workloads("counted", "chain")
    check_sum(directory, ["profiler"])
    check_sum(directory, ["symbolizer"])
    check_sum(directory, ["profiler", "symbolizer"])
    offline(directory)
    rig.start([os.path.join(directory, "chain"), "30"], stdout=subprocess.DEVNULL)
    for roles in (["profiler"], ["symbolizer"], ["exporter"], ["profiler", "symbolizer"]):
        daemon(roles)
    for roles in (["symbolizer"], ["profiler", "symbolizer", "exporter"]):
        storm(roles, STORM)
    for kill in (kill_both, kill_in_turn):
        custody(kill)


rig.run(main)
