# SPDX-License-Identifier: Apache-2.0
# Rooms: src/host src/opener src/broker src/profiler src/symbolizer
"""2,000 short-lived processes while the daemon runs, after as many to warm up: no process of
perfwalk dies, their descriptors and memory do not grow with the number of processes seen, and what
was seen of the short-lived ones has its names. The same once under `perfwalk record`."""
import os
import re
import subprocess
import threading
import time

import rig
from sink import Sink

N = 2000


def spawn(program, n):
    """Runs n short processes, two at a time; seconds it took."""
    begin = time.monotonic()
    script = 'i=0; while [ $i -lt "$2" ]; do "$1"; i=$((i + 1)); done'
    halves = [rig.start(["sh", "-c", script, "sh", program, str(n // 2)]) for _ in range(2)]
    for p in halves:
        rig.check(p.wait(120) == 0, f"{n // 2} processes one after the other")
    return time.monotonic() - begin


def measure(pids):
    return {pid: (rig.n_descriptors(pid), rig.anon_kib(pid)) for pid in pids}


def check_names(samples, what):
    """samples: (frames, n) of the short-lived program, with user frames."""
    n = sum(x[1] for x in samples)
    named = sum(x[1] for x in samples if rig.contains_path(x[0], ["main", "blip_burn"]))
    there = sum(x[1] for x in samples if "main" in x[0] or any("+0x" in f for f in x[0]))
    rig.check(n >= 200, f"{what}: {n} samples of the short-lived processes")
    rig.check(named >= 0.5 * n, f"{what}: {named} of them in main > blip_burn")
    rig.check(there and named >= 0.95 * there,
              f"{what}: {named} of {there} in the program's own code have its names")


def daemon_part(program):
    with Sink() as sink:
        daemon = rig.Daemon(f"""
[profiler]
samples_per_second = 199
reporter_interval = 1s
[filter]
include_comm = blip, chain
[export:sink]
endpoint = {sink.endpoint}
""")
        roles = daemon.wait_up()
        pids = {daemon.pid: "broker", **{pid: name for name, pid in roles.items()}}
        spawn(program, N)
        sink.wait_for(sink.count() + 3)
        before = measure(pids)
        seconds = spawn(program, N)
        sink.wait_for(sink.count() + 3)
        after = measure(pids)
        rig.check(daemon.alive() and daemon.roles() == roles,
                  f"{N} processes in {seconds:.1f} s: all four processes are the same as before")
        for pid, name in pids.items():
            (fds0, kib0), (fds1, kib1) = before[pid], after[pid]
            # What else this host runs is not sampled, but has its mappings; one per process would be 2,000.
            rig.check(fds1 <= fds0 + 100, f"{name}: {fds0} descriptors before, {fds1} after")
            rig.check(kib1 <= kib0 + 6144, f"{name}: {kib0} KiB before, {kib1} KiB after")
        status, _ = daemon.stop()
        rig.check(status == 0, "the daemon leaves with 0")
        check_names([(x[2], x[3]) for v in sink.views() for x in v.samples()
                     if x[1].get("thread.name") == "blip"], "daemon")
        problems = sink.problems(rate=199)
        rig.check(not problems, "the payloads hold every rule"
                  + "".join("\n    " + p for p in problems[:20]))


def full_part():
    """What is refused is said."""
    with Sink() as sink:
        daemon = rig.Daemon(f"""
[profiler]
samples_per_second = 199
reporter_interval = 1s
[limits]
max_processes = 16
[export:sink]
endpoint = {sink.endpoint}
""", name="full")
        daemon.wait_up()
        for _ in range(20):
            rig.start(["sleep", "60"])
        rig.wait_for("a warning of refused processes", lambda: re.search(
            r"host tables full: [1-9]\d* processes refused since the start \(16 tracked; raise max_processes\)", daemon.log()))
        rig.check(True, "the log reports a full table of processes")
        daemon.stop()


def record_part(program):
    out = rig.path("churn.folded")
    spawner = threading.Thread(target=lambda: (time.sleep(1), spawn(program, N)), daemon=True)
    spawner.start()
    r = rig.record("-a", "-F", 499, "-d", 12, "-o", out)
    spawner.join(120)
    rig.check(r.status == 0, "perfwalk record leaves with 0" + ("" if r.status == 0 else r.text()))
    check_names([(s.user, s.n) for s in rig.read_folded(out) if s.comm == "blip" and s.user], "record")


def main():
    rig.need_root()
    directory = rig.build_workloads("blip", "chain")
    program = os.path.join(directory, "blip")
    chain = rig.start([os.path.join(directory, "chain")])  # a window without samples is not sent
    rig.check(subprocess.run([program], check=False).returncode == 0, "the short-lived program runs")
    daemon_part(program)
    rig.end(chain)
    full_part()
    record_part(program)


rig.run(main)
