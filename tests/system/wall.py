# SPDX-License-Identifier: Apache-2.0
# Rooms: src/sample src/profiler src/profile src/symbolizer src/render src/cmd
"""record --wall: what a thread did with all of its time, by its own clocks; --everything has it beside the other kinds.
Needs root and tracefs."""
import os
import re
import signal
import subprocess
import sys
import time

import cgroup_dirs
import rig

# Burns CPU time, then sleeps: prints how long each was, by the clocks of the only thread.
SCRIPT = """
import time
start, began = time.perf_counter_ns(), time.thread_time_ns()
while time.thread_time_ns() - began < 700_000_000:
    sum(range(1000))
wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
busy = wall - start
for _ in range(10):
    time.sleep(0.05)
slept = time.perf_counter_ns() - wall - (time.thread_time_ns() - cpu)
print("truth", time.thread_time_ns(), busy, slept)
"""


def number_of(text):
    n, unit = text.split()
    return float(n) * {"s": 1e6, "ms": 1e3, "us": 1, "ns": 1e-3}[unit]


def states_of(name):
    """{the outermost frame: us}, and us on a CPU with a stack."""
    subprocess.run([rig.perfwalk(), "convert", "-e", "wall", name, "-o", "w.folded"], check=True, cwd=rig.workdir(),
                   stdout=subprocess.DEVNULL)
    states, with_stack = {}, 0
    with open(rig.path("w.folded"), encoding="utf-8") as f:
        for line in f:
            stack, us = line.rsplit(" ", 1)
            frames = stack.split(";")[1:]
            states[frames[0]] = states.get(frames[0], 0) + int(us)
            with_stack += int(us) if frames[0] == "[on CPU]" and len(frames) > 1 else 0
    return states, with_stack


def of_a_thread():
    began = time.monotonic_ns()
    p = subprocess.run([rig.perfwalk(), "record", "--wall", "-o", "w.pb.gz", "--", sys.executable, "-c", SCRIPT], cwd=rig.workdir(),
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    elapsed = (time.monotonic_ns() - began) / 1000
    truth = re.search(r"^truth (\d+) (\d+) (\d+)$", p.stdout, re.M)
    rig.check(p.returncode == 0 and truth, f"record ends with 0, not {p.returncode}: {p.stderr[-300:]}")
    cpu, busy, slept = (int(x) / 1000 for x in truth.groups())
    states, with_stack = states_of("w.pb.gz")
    on, waited = states["[on CPU]"], states.get("[waiting for a CPU]", 0)
    # Its own count leaves out interrupts, and what the hypervisor takes; so there is no other bound above.
    rig.check(on >= 0.97 * cpu - 5000, f"on a CPU: {on} us, by its own count {cpu:.0f}")
    rig.check(on + waited >= 0.97 * busy and sum(states.values()) <= elapsed,
              f"on a CPU or waiting for one: {on + waited} us, at work {busy:.0f}, all of it {sum(states.values())} of {elapsed:.0f}")
    rig.check(with_stack >= 0.9 * on, f"of these {with_stack} us have a stack")
    sleep = states["[wait: sleep]"]
    rig.check(slept - waited - 5000 <= sleep <= slept + 5000, f"asleep: {sleep} us of {slept:.0f}, waiting for a CPU {waited}")
    whole = number_of(re.search(r"^Time of threads +([\d.]+ \w+)", p.stdout, re.M).group(1))
    unknown = sum(number_of(x) for x in re.findall(r"^  (?:not known|not yet run|stopped) +([\d.]+ \w+)", p.stdout, re.M))
    rig.check(abs(sum(states.values()) + unknown - whole) <= 0.01 * whole, f"all of {whole:.0f} us: {states}")
    rows = re.findall(r"^ *([\d.]+ \w+) +([\d.]+ \w+) +([\d.]+ \w+) +([\d.]+ \w+)  (\[[\w: ]+\]|) +.* \(\d+\)$", p.stdout, re.M)
    rig.check(rows and all(abs(number_of(r[0]) - sum(map(number_of, r[1:4]))) <= 0.01 * number_of(r[0]) + 1 for r in rows),
              f"the summary's threads add up: {rows}")
    rig.check(rows[0][4] == "[wait: sleep]", f"the thread that ran most slept most: {rows[0]}")


# Processes that never wait for anything, and one that executes programs: prints their CPU time.
SHORT = """
import os, resource, sys, time
for _ in range(40):
    if os.fork() == 0:
        while time.process_time() < 0.01:
            pass
        os._exit(0)
    os.wait()
n = int(sys.argv[1])
if n:
    os.execv(sys.executable, [sys.executable, "-c", os.environ["SHORT"], str(n - 1)])
print("cpu", *(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))))
"""


def of_short_lives():
    """All of a thread counts, from its first moment to its last."""
    p = subprocess.run([rig.perfwalk(), "record", "--wall", "-o", "s.pb.gz", "--", sys.executable, "-c", SHORT, "2"], cwd=rig.workdir(),
                       capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "SHORT": SHORT})
    cpu = sum(float(x) for x in re.search(r"^cpu ([\d.]+) ([\d.]+)$", p.stdout, re.M).groups())
    on = number_of(re.search(r"^  on a CPU +([\d.]+ \w+)", p.stdout, re.M)[1]) / 1e6
    rig.check(on >= 0.88 * cpu, f"short lives: {on:.2f} s on a CPU, by the kernel's count {cpu:.2f}")


# One process that never waits, and one that naps, until there is a file of that name; prints all CPU time.
HELD = """
import os, resource, sys, time
pid = os.fork()
if pid == 0:
    while not os.path.exists("end"):
        sum(range(1000))
    os._exit(0)
with open("pids.new", "w") as f:
    print(os.getpid(), pid, file=f)
os.rename("pids.new", "pids")
while not os.path.exists("end"):
    time.sleep(0.02)
os.wait()
"""


def hold(pids, begin, done, end, seconds):
    """Holds both processes for so long: us for which both were held for sure, and us in which they may have been."""
    first = time.monotonic()
    begin()
    rig.wait_for("both are held", done)
    held = time.monotonic()
    time.sleep(seconds)  # a wait of that length is what is measured
    sure = time.monotonic() - held
    end()
    return sure * 1e6 * len(pids), (time.monotonic() - first) * 1e6 * len(pids)


def cpu_of(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0])


def run_on(pid):
    now = cpu_of(pid)
    rig.wait_for("it goes on", lambda: cpu_of(pid) > now + 50_000_000)


def of_held_threads():
    """A frozen control group and SIGSTOP: what threads did not do meanwhile is no CPU time, and no nap."""
    with cgroup_dirs.Freezer(f"perfwalk-{os.getpid()}") as freezer:
        p = rig.start([rig.perfwalk(), "record", "--wall", "-o", "h.pb.gz", "--", sys.executable, "-c", HELD], cwd=rig.workdir(),
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        rig.wait_for("two processes", lambda: os.path.exists(rig.path("pids")))
        with open(rig.path("pids"), encoding="ascii") as f:
            pids = [int(x) for x in f.read().split()]
        freezer.take(pids)
        run_on(pids[1])
        frozen = hold(pids, freezer.freeze, lambda: True, freezer.thaw, 2)
        run_on(pids[1])

        def kill(number):
            for pid in pids:
                os.kill(pid, number)
        stopped = hold(pids, lambda: kill(signal.SIGSTOP), lambda: all(rig.status_of(pid)["State"].startswith("T") for pid in pids),
                       lambda: kill(signal.SIGCONT), 0.5)
        run_on(pids[1])
        rig.write("end", "")
        out, err = p.communicate(timeout=120)
    rig.check(p.returncode == 0, f"record ends with 0, not {p.returncode}: {err[-300:]}")
    states, _ = states_of("h.pb.gz")
    for what, us, (sure, most) in (("frozen", states.get("[wait: freezer]", 0), frozen),
                                   ("stopped", number_of((re.search(r"^  stopped +([\d.]+ \w+)", out, re.M) or ["", "0 us"])[1]), stopped)):
        rig.check(0.97 * sure <= us <= 1.03 * most, f"{what}: {us:.0f} us of {sure:.0f} to {most:.0f}: {states}")


# Touches memory, sleeps, and lets a thread wait for a lock.
OF_EVERYTHING = """
import threading, time
kept, lock = bytearray(16 << 20), threading.Lock()
for _ in range(5):
    with lock:
        t = threading.Thread(target=lambda: lock.acquire() and lock.release())
        t.start()
        time.sleep(0.05)
    t.join()
"""


def everything():
    p = subprocess.run([rig.perfwalk(), "record", "--everything", "--memory", "-o", "e.pb.gz", "--", sys.executable, "-c", OF_EVERYTHING],
                       cwd=rig.workdir(), capture_output=True, text=True, timeout=120, check=False)
    types = re.findall(r"^  ([\w-]+) +[\d,]+(?:  |$)", p.stdout, re.M)
    rig.check(p.returncode == 0 and types[0] in ("cpu-clock", "cycles") and types[1:5] == ["memory_growth", "off_cpu", "lock_wakeups", "wall"],
              f"--everything: {types}: {p.stderr[-200:]}")
    for kind in types[1:5]:
        n = re.search(rf"^  {kind} +([\d,]+)", p.stdout, re.M)[1].replace(",", "")
        reported = subprocess.run([rig.perfwalk(), "report", "-e", kind, rig.path("e.pb.gz")], stdout=subprocess.PIPE, text=True,
                                  check=True).stdout
        rig.check(n != "0" and f"\n{n} samples " in reported, f"{kind}: {n} samples, in a report, too: {reported[:300]}")


def everything_without_tracefs():
    """It has all kinds that work there, and says what it lacks; who asks for locks alone gets an error."""
    hidden = ["unshare", "-m", "sh", "-c", 'umount /sys/kernel/tracing && exec "$0" "$@"', rig.perfwalk(), "record"]
    p = subprocess.run([*hidden, "--everything", "-o", "n.pb.gz", "--", sys.executable, "-c", OF_EVERYTHING],
                       cwd=rig.workdir(), capture_output=True, text=True, timeout=120, check=False)
    types = re.findall(r"^  ([\w-]+) +[\d,]+(?:  |$)", p.stdout, re.M)
    rig.check(p.returncode == 0 and types[1:4] == ["memory_growth", "off_cpu", "wall"] and "lock_wakeups" not in types,
              f"--everything without tracefs: {types}: {p.stderr[-300:]}")
    rig.check(re.search(r"warning: --everything leaves locks out: .*mount -t tracefs", p.stderr), f"it says what is left out: {p.stderr[:300]}")
    p = subprocess.run([*hidden, "--everything", "--locks", "true"], capture_output=True, text=True, timeout=60, check=False)
    rig.check(p.returncode == 2 and "tracefs" in p.stderr, f"locks that are asked for are not left out: {p.stderr[:200]}")


def main():
    rig.need_root()
    rig.need_tracefs()
    of_a_thread()
    of_short_lives()
    rig.apart(of_held_threads)
    everything()
    everything_without_tracefs()


rig.run(main)
