# SPDX-License-Identifier: Apache-2.0
# Rooms: src/broker src/process src/profiler src/symbolizer src/exporter
"""SIGKILL for the profiler, the symbolizer and the exporter, each in turn while the daemon runs: it
comes back, the receiver keeps receiving, at most one window is missing, and the log says what
happened. When the broker is killed, the others leave by themselves."""
import os
import re
import resource
import signal
import socket
import subprocess
import time

import rig
from sink import Sink, windows

INTERVAL = 1.0


def gaps(found):
    """Time between consecutive windows that no window covers, in seconds: (gap, when)."""
    holes, reach = [], found[0][1]
    for begin, end in found[1:]:
        if begin > reach:
            holes.append(((begin - reach) / 1e9, reach / 1e9))
        reach = max(reach, end)
    return holes


def kill_one(daemon, sink, name):
    before = daemon.roles()
    log_from = len(daemon.log())
    n = sink.count()
    begin = time.monotonic()
    rig.kill(before[name], signal.SIGKILL)
    rig.wait_for(f"a new {name}", lambda: daemon.role(name) not in (0, before[name]))
    away = time.monotonic() - begin
    rig.check(True, f"{name}: killed, and a new one is there after {away:.2f} s")
    sink.wait_for(n + 4)
    after = daemon.roles()
    others = [other for other in before if other != name]
    rig.check(all(after[o] == before[o] for o in others), f"{name}: {' and '.join(others)} lived on")
    told = daemon.log()[log_from:]
    rig.check(re.search(rf"{name}.*signal 9", told) is not None,
              f"{name}: the log says what happened: "
              + next((line for line in told.splitlines() if name in line), "nothing"))
    return away


def limit_descriptors(pid, soft, hard):
    """As the user it runs as: root may lack CAP_SYS_RESOURCE."""
    uid, gid = (int(rig.status_of(pid)[x].split()[0]) for x in ("Uid", "Gid"))
    subprocess.run(["prlimit", f"--pid={pid}", f"--nofile={soft}:{hard}"], check=True, user=uid, group=gid,
                   extra_groups=[])


def lose_a_window(daemon, sink):
    """With one descriptor left a window comes in and no payload goes out: its samples are dropped, its counters
    go with the next."""
    pid, log_from, n = daemon.role("symbolizer"), len(daemon.log()), sink.count()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with open(f"/proc/{pid}/limits", encoding="utf-8") as f:
        limit = int(re.search(r"Max open files +(\d+)", f.read())[1])
    rig.check(limit >= min(hard, 1024 + 2 * 256 + 4096),
              f"symbolizer: {limit} descriptors, for files, compiled code and payloads")
    sink.wait_for(n + 1)

    def leave_one():
        """One free descriptor, when it holds no window and no payload: while it stands still none can come."""
        rig.kill(pid, signal.SIGSTOP)
        try:
            used = {}
            for fd in os.listdir(f"/proc/{pid}/fd"):
                used[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
            if any("perfwalk-window" in x or "perfwalk-payload" in x for x in used.values()):
                return False
            limit_descriptors(pid, [fd for fd in range(len(used) + 2) if fd not in used][1], limit)
            return True
        finally:
            rig.kill(pid, signal.SIGCONT)
    rig.wait_for("a symbolizer without work", leave_one)
    rig.wait_for("a window is lost", lambda: "cannot be encoded" in daemon.log()[log_from:])
    limit_descriptors(pid, limit, limit)
    sink.wait_for(n + 3)
    counters = [({k: x for rp in v.message.resource_profiles for sp in rp.scope_profiles for profile in sp.profiles
                  for k, x in v.table_attributes(profile.attribute_indices).items()}, sum(x[3] for x in v.samples()))
                for v in sink.views()[n:]]
    lost, there = next((c for c in counters if c[0].get("perfwalk.samples_dropped")), ({}, 0))
    dropped = lost.get("perfwalk.samples_dropped")
    rig.check(dropped, f"symbolizer: {dropped} samples were dropped, and are counted")
    rig.check(lost["perfwalk.samples"] == there + dropped + lost["perfwalk.samples_filtered"],
              f"symbolizer: so is what else happened in their window, beside {there} samples: {lost}")


def run_out_of_descriptors(daemon, sink):
    """A symbolizer that cannot receive what comes leaves, for a new one."""
    before, log_from, n = daemon.role("symbolizer"), len(daemon.log()), sink.count()
    limit_descriptors(before, 3, 3)
    rig.wait_for("a new symbolizer", lambda: daemon.role("symbolizer") not in (0, before))
    told = daemon.log()[log_from:]
    rig.check("cannot be received: Too many open files" in told and "exited with status 1" in told,
              "symbolizer: out of descriptors it says so and leaves, and a new one is there")
    sink.wait_for(n + 3)


def flush(daemon):
    """Asks for it, and does not wait for its end."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(daemon.control)
        s.sendall(b"flush\n")
        time.sleep(0.005)


def catch_up():
    """An exporter that stood still takes hundreds of windows' payloads at once while the profiler stands still: it hears
    of each of these windows, which more messages say than a socket holds, and keeps none for ever."""
    with Sink() as sink:
        daemon = rig.Daemon(f"""
[profiler]
samples_per_second = 997
reporter_interval = 1s
[export:sink]
endpoint = {sink.endpoint}
""", "stalled")
        daemon.wait_up()
        sink.wait_for(1)
        exporter, profiler = daemon.role("exporter"), daemon.role("profiler")
        rig.kill(exporter, signal.SIGSTOP)
        status = daemon.status()
        until = int(status["windows"]) + 900
        while int(status["windows"]) < until:
            for _ in range(50):
                flush(daemon)
            status = daemon.status()
        # What counts is written when a window is settled.
        before = int(status["payloads"])
        rig.kill(profiler, signal.SIGSTOP)
        rig.kill(exporter, signal.SIGCONT)
        rig.wait_for("hundreds of windows are settled", lambda: int(daemon.status()["payloads"]) > before + 400)
        rig.kill(profiler, signal.SIGCONT)
        p = subprocess.run([rig.perfwalk(), "ctl", "-s", daemon.control, "flush"], capture_output=True, text=True, check=False)
        now = daemon.status()
        rig.check(p.returncode == 0, f"{int(now['payloads']) - before} payloads later a flush ends with {p.returncode} {p.stderr}")
        rig.check(now["samples_dropped"] == "0", f"{now['samples_dropped']} samples were dropped")
        rig.check(daemon.stop()[0] == 0, "and the daemon leaves")


def capture(chain):
    """A capture's files are the symbolizer's work: a new one has to come by them."""
    folded = rig.path("capture.folded")
    p = rig.start([rig.perfwalk(), "record", "-a", "-d", "10", "-o", folded], stdin=subprocess.DEVNULL,
                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def symbolizer():
        return next((c for c in rig.children_of(p.pid) if rig.comm_of(c) == rig.ROLES["symbolizer"]), 0)
    # In a machine it warns first that this is no process namespace of the host.
    rig.check(any("recording" in line for line in iter(p.stderr.readline, "")), "a capture begins")
    begin = rig.cpu_seconds(chain.pid)
    pid = rig.wait_for("the capture's symbolizer runs", symbolizer)
    time.sleep(8)
    used = rig.cpu_seconds(chain.pid) - begin
    rig.kill(pid, signal.SIGKILL)
    _, err = p.communicate(timeout=120)
    rig.check(p.returncode == 0, f"record whose symbolizer was killed leaves with {p.returncode}: {err.strip()}")
    n = rig.total(s for s in rig.read_folded(folded) if s.comm == "chain")
    # What the first one held has to be there too.
    rig.check(n >= 0.8 * 99 * used > 0,
              f"its file holds {n} samples of the workload, also those of the {used:.1f} s of CPU time before")


def main():
    rig.need_root()
    directory = rig.build_workloads("chain")
    chain = rig.start(["./chain", "30"], cwd=directory)
    capture(chain)
    catch_up()
    with Sink() as sink:
        daemon = rig.Daemon(f"""
[profiler]
samples_per_second = 49
reporter_interval = {INTERVAL:g}s
[filter]
include_comm = chain
[export:sink]
endpoint = {sink.endpoint}
""")
        first = daemon.wait_up()
        sink.wait_for(2)
        for name in ("profiler", "symbolizer", "exporter"):
            begin = time.time()
            away = kill_one(daemon, sink, name)
            sink.wait_for(sink.count() + 1)
            # A window in which the reader died may be missing, and nothing more: but that a busy host is slow to
            # start another.
            holes = [g for g, when in gaps(windows(sink.views())) if when >= begin - INTERVAL]
            rig.check(sum(holes) <= 1.5 * INTERVAL + away,
                      f"{name}: {sum(holes):.2f} s are missing (at most one window of {INTERVAL:g} s)")
            rig.check(daemon.alive(), f"{name}: the broker lives")
        lose_a_window(daemon, sink)
        begin = time.time()
        run_out_of_descriptors(daemon, sink)
        holes = [g for g, when in gaps(windows(sink.views())) if when >= begin - INTERVAL]
        rig.check(sum(holes) <= 0.5 * INTERVAL, f"symbolizer: {sum(holes):.2f} s are missing, windows came again")
        n = sink.count()
        rig.wait_for("the workload is still sampled at the end", lambda: any(
            x[0].get("process.pid") == chain.pid for v in sink.views()[n:] for x in v.samples()))
        problems = sink.problems(rate=49)
        rig.check(not problems, "all payloads hold every rule"
                  + "".join("\n    " + p for p in problems[:20]))

        roles = daemon.roles()
        rig.check(roles != first, "the roles have new process ids by now")
        rig.kill(daemon.pid, signal.SIGKILL)
        rig.wait_for("the others leave when the broker is killed",
                     lambda: not any(rig.comm_of(pid) in rig.ROLES.values() for pid in roles.values()))
        rig.check(True, "the others leave when the broker is killed")


rig.run(main)
