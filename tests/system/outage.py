# SPDX-License-Identifier: Apache-2.0
# Rooms: src/exporter src/process
"""Without a receiver, at a window a second: OUTAGE_SECONDS (20; `make check-outage`: 600). Daemons side
by side: one that is left alone, one whose exporter is killed every few seconds, one whose disk is full,
one whose clock is put back by an hour. When the receivers are back, every window that was made has
arrived, in its order, none twice; no sample that was taken is lost, and the exporters have stayed small."""
import functools
import os
import random
import signal
import struct
import subprocess
import time

import inside
import otlp
import rig
from sink import Sink, windows

SECONDS = int(os.environ.get("OUTAGE_SECONDS", "20"))
RSS_MAX_KIB = 20 << 10
KILL_EVERY = 7.0 if SECONDS > 60 else 3.5
DISK = "256k" if SECONDS > 60 else "24k"
MAX_HOLE = 0.05  # seconds; two windows meet within a drain of the rings
STEP = 3600  # of the clock, back: to before all windows
BEGAN = time.time_ns()


class Run:
    """A daemon, its receiver, and what its exporter takes."""

    def __init__(self, name, spool=None, killed=False, env=None):
        self.name, self.killed = name, killed
        self.sinks, self.kills, self.peak, self.next_kill, self.queue_kib = [Sink()], 0, 0, 0, 0
        self.port = self.sinks[0].port
        self.daemon = rig.Daemon(f"""
[profiler]
samples_per_second = 19
reporter_interval = 1s
[export:sink]
endpoint = http://127.0.0.1:{self.port}
""", name, spool=spool, env={**os.environ, **(env or {})})
        self.daemon.wait_up()
        self.sinks[0].wait_for(3)

    def files(self):
        return [n for n in os.listdir(self.daemon.spool) if n.endswith(".otlp")]

    def ctl(self, command):
        p = subprocess.run([rig.perfwalk(), "ctl", "-s", self.daemon.control, *rig.ctl_words(command)], capture_output=True,
                           check=False, text=True, timeout=120)
        if p.returncode != 0:
            rig.fail(f"{self.name}: ctl {command}: {p.stderr}{self.daemon.log()[-2000:]}")
        return dict(line.split(" ", 1) for line in p.stdout.splitlines())

    def look(self):
        pid = self.daemon.role("exporter")
        if pid:
            self.peak = max(self.peak, int(rig.status_of(pid).get("VmHWM", "0 kB").split()[0]))
        if self.killed and pid and time.monotonic() > self.next_kill:
            rig.kill(pid, signal.SIGKILL)
            self.kills += 1
            self.next_kill = time.monotonic() + KILL_EVERY * random.uniform(0.5, 1.5)

    def bodies(self):
        return [b for sink in self.sinks for b in sink.payloads()]


@functools.lru_cache(maxsize=None)
def read(body):
    """((begin, end) of the window in ns, samples) of a payload."""
    view = otlp.View(otlp.decode(body))
    return windows([view])[0], sum(x[3] for x in view.samples())


def was_put_back(body):
    return read(body)[0][0] < BEGAN


def window_of(body):
    """(begin, end) by the clock that was not put back."""
    shift = STEP * 10**9 if was_put_back(body) else 0
    return read(body)[0][0] + shift, read(body)[0][1] + shift


def disorder(begins):
    return sum(a > b for a, b in zip(begins, begins[1:]))


def away(runs, step):
    for run in runs:
        run.sinks[0].__exit__()
    begin, told, stepped = time.monotonic(), 0, False
    while (passed := time.monotonic() - begin) < SECONDS:
        time.sleep(0.25)
        for run in runs:
            run.look()
        if not stepped and passed > SECONDS / 2:
            step()
            stepped = True
        if passed - told > 60:
            told = passed
            rig.say(f"{passed:.0f} s: " + ", ".join(f"{r.name}: {len(r.files())} files, {r.peak} KiB, {r.kills} kills"
                                                    for r in runs))
    for run in runs:
        queue = run.ctl("status")
        run.queue_kib = int(queue["export.sink.queue_bytes"]) >> 10
        rig.say(f"{run.name}: after {SECONDS} s {queue['export.sink.queue_payloads']} payloads wait, "
                f"{len(run.files())} of them on disk")


def back(runs):
    for run in runs:
        run.killed = False
        run.sinks.append(Sink(run.port))
    deadline = time.monotonic() + 150 + SECONDS / 5
    waiting = list(runs)
    while waiting and time.monotonic() < deadline:
        time.sleep(0.25)
        for run in runs:
            run.look()
        waiting = [r for r in waiting if not r.sinks[1].count() or r.files()
                   or int(r.ctl("status")["export.sink.queue_payloads"]) > 0]
    left = [f"{r.name}: {r.sinks[1].count()} requests, {r.files()}, {r.daemon.log()[-1500:]}" for r in waiting]
    rig.check(not waiting, "every spool is empty, and so is every queue" + "".join("\n  " + x for x in left))


def end_sampling(run):
    run.sinks[1].wait_for(run.sinks[1].count() + 2)
    run.ctl("pause")
    run.ctl("flush")


def judge(run):
    """What was made is what came."""
    status = run.ctl("status")
    made, taken = int(status["payloads"]), int(status["samples"]) - inside.outside(status)
    rig.wait_for(f"{run.name}: the last payload", lambda: sum(read(b)[1] for b in set(run.bodies())) >= taken, 20)
    time.sleep(0.3)
    status = run.ctl("status")
    bodies = run.bodies()
    once = list(dict.fromkeys(bodies))
    came = sum(read(b)[1] for b in once)
    rig.check(len(once) == made, f"{run.name}: {made} payloads were made, {len(once)} came")
    rig.check(came + inside.outside(status) == int(status["samples"]), f"{run.name}: {status['samples']} samples were taken, {came} came")
    lost = {k: status[k] for k in (*([] if inside.is_inside() else ["samples_dropped"]), "export.sink.payloads_dropped",
                                   "export.sink.samples_dropped")}
    # A host that gives the profiler no CPU for seconds fills the kernel's buffers.
    rig.check(set(lost.values()) == {"0"}, f"{run.name}: {lost}, and {status['samples_lost']} before they were taken")
    rig.check(len(bodies) - len(once) <= 1, f"{run.name}: {len(bodies) - len(once)} payloads came twice")
    found = sorted(map(window_of, once))
    missing, reach = 0.0, found[0][0]
    for begin, end in found:
        missing += max(0, begin - reach) / 1e9
        reach = max(reach, end)
    # The window in which the clock is put back ends with its last sample.
    most = MAX_HOLE if run.name != "clock" else 0.25
    seconds = (reach - found[0][0]) / 1e9
    rig.check(missing < most and seconds > 0.9 * SECONDS and len(found) > 0.5 * SECONDS,
              f"{run.name}: {len(found)} windows, {seconds:.1f} s without a hole ({missing:.3f} s)")
    order(run)
    # What does not fit on a full disk waits in memory.
    most = RSS_MAX_KIB + run.queue_kib
    rig.check(0 < run.peak < most, f"{run.name}: the exporter took {run.peak} KiB at the most (limit {most})")
    status, _ = run.daemon.stop()
    rig.check(status == 0 and not os.listdir(run.daemon.spool), f"{run.name}: leaves with {status}, the spool is empty")
    run.sinks[1].__exit__()


def order(run):
    """What is live goes before what was on disk when the receiver was reached; each in its order."""
    reached = run.sinks[1].requests[0].time * 1e9
    begins = [window_of(b)[0] for b in dict.fromkeys(run.sinks[1].payloads())]
    for what, some in (("from before", [b for b in begins if b < reached - 3e9]),
                       ("live", [b for b in begins if b > reached + 0.5e9])):
        wrong = disorder(some)
        for a, b in zip(some, some[1:]):
            if a > b:  # in seconds after it was reached
                rig.say(f"{run.name}: {what}: after the window of {(a - reached) / 1e9:.2f} comes that of "
                        f"{(b - reached) / 1e9:.2f}")
        rig.check(some and wrong == 0, f"{run.name}: {len(some)} payloads {what} came in their order, "
                  f"but for {wrong} jumps")


def clock_of_its_own():
    """Environment of a daemon with a clock that clock(offset) sets."""
    library, path = rig.path("clock.so"), rig.path("clock")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, os.path.join(rig.WORKLOADS, "clock.c")], check=True)

    def clock(offset):
        with open(path, "r+b" if os.path.exists(path) else "wb") as f:
            f.write(struct.pack("=q", offset))

    clock(0)
    return {"LD_PRELOAD": library, "CLOCK_OFFSET": path}, clock


def main():
    rig.need_root()
    rig.need_programs("gcc")
    full = rig.path("full.spool")
    os.mkdir(full)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", full], check=False).returncode != 0:
        rig.skip("no tmpfs can be mounted here")
    try:
        rig.start(["nice", "-n", "5", "./chain", "30"], cwd=rig.build_workloads("chain"), stdout=subprocess.DEVNULL)
        env, clock = clock_of_its_own()
        runs = [Run("alone"), Run("killed", killed=True), Run("full", spool=full),
                Run("clock", env=env)]
        away(runs, lambda: clock(-STEP))
        rig.check("cannot be written: only the reserve" in runs[2].daemon.log(), "the disk was full")
        back(runs)
        # One that dies young again and again is started after a longer and longer pause, half a minute at last.
        rig.check(runs[1].kills >= max(3, SECONDS / 40), f"the exporter was killed {runs[1].kills} times")
        stepped = [b for b in runs[3].bodies() if was_put_back(b)]
        rig.check(len(stepped) > SECONDS / 4, f"the clock was put back by an hour before {len(stepped)} windows")
        for run in runs:
            end_sampling(run)
        for run in runs:
            judge(run)
    finally:
        rig.end_started()
        subprocess.run(["umount", "-l", full], check=False)


rig.run(main)
