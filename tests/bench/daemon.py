#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What two builds of perfwalk cost, both at the same time on the same load.

    python3 tests/bench/daemon.py OLD NEW [--load mixed|builds|sizes] [--warm-up 60] [--seconds 60]
                                          [--interval 5] [--captures 5] [--interpreters] [--only-load]

Runs both as daemons at 99 Hz against a receiver on loopback each, then both as captures of the
host. Prints for each process the CPU time per sample (of the scheduler, in nanoseconds), how often
it was woken per second, and the memory that is its own and its share of pages. Interpreters are
left out unless asked for, so that builds before they were read can be compared. On a busy host
--only-load keeps other programs' samples out of the daemons. Of "sizes" 150 programs have another
size each time that they run, so each may have published a process context. Nothing is asserted:
read the ratios.
"""
import argparse
import glob
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import otlp  # noqa: E402
import rig  # noqa: E402
from sink import Sink  # noqa: E402

HZ = 99

LOADS = {
    "mixed": (("chain", "cxx", "gopher", "rusty"), (
        "g++ -O2 -x c++ -c -o /dev/null %(w)s/cxx.cc",
        "head -c 8M /dev/urandom | xz -1 >/dev/null",
        "openssl speed -seconds 1 sha256 >/dev/null 2>&1")),
    "builds": ((), (
        "go build -a -o %(d)s/gopher.out %(w)s/gopher.go 2>/dev/null || sleep 1",
        "gcc -O1 -c -o /dev/null %(w)s/chain.c; true; /bin/true; expr 1 + 1 >/dev/null")),
    "sizes": ((), ("%(d)s/sizes 150",)),
}
COMMS = {
    "mixed": "chain, cxx, gopher, rusty, sh, g++, cc1plus, as, collect2, ld, head, xz, openssl",
    "builds": "sh, go, compile, asm, link, gcc, cc1, as, collect2, ld, true, expr",
    "sizes": "sizes",
}
SIZES = r"""
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static void burn(double ms)
{
	while (clock() * 1e3 / CLOCKS_PER_SEC < ms)
		;
}
int main(int argc, char **argv)
{
	int n = atoi(argv[1]), i;
	for (i = 1; i < n && fork(); i++)
		;
	srand(i);
	for (int j = 0; j < 60; j++)
		if (mmap(NULL, 65536, j % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
			return 1;
	usleep(rand() % 10500000);
	for (int turn = 1;; turn++) {
		burn(15 * turn);
		if (mmap(NULL, 4096 * (1 + rand() % 64), turn % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
			return 1;
		usleep(10500000);
	}
}
"""


def start_load(kind):
    directory = rig.path("load")
    programs, loops = LOADS[kind]
    commands = []
    for name in programs:
        done = subprocess.run(["sh", os.path.join(rig.WORKLOADS, "build.sh"), directory, name],
                              capture_output=True, check=False)
        if done.returncode == 0:
            commands.append([os.path.join(directory, name)])
    os.makedirs(directory, exist_ok=True)
    if kind == "sizes":
        subprocess.run(["gcc", "-O1", "-w", "-o", os.path.join(directory, "sizes"), rig.write("sizes.c", SIZES)], check=True)
    for loop in loops:
        loop = loop % {"d": directory, "w": rig.WORKLOADS}
        commands.append(["sh", "-c", f"while :; do {loop}; done"])
    for argv in commands:
        rig.start(["nice", "-n", "5", *argv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                  stdin=subprocess.DEVNULL)


class Build:
    """A daemon of one build, with a receiver of its own."""

    def __init__(self, name, program, interpreters, interval, comms=None):
        self.name, self.program, self.interval, self.comms = name, program, interval, comms
        default = subprocess.run([program, "run", "--print-default-config"], capture_output=True, text=True, check=True)
        self.reads = not interpreters and "interpreters =" in default.stdout
        self.is_limited = "\n#cpu =" in default.stdout
        self.sink = Sink()

    def start(self):
        self.sink.__enter__()
        config = rig.write(f"{self.name}.conf", f"[profiler]\nsamples_per_second = {HZ}\nreporter_interval = {self.interval}s\n"
                           + ("interpreters = no\n" if self.reads else "")
                           + ("[limits]\ncpu = 100%\n" if self.is_limited else "")
                           + (f"[filter]\ninclude_comm = {self.comms}\n" if self.comms else "")
                           + f"[spool]\npath = {rig.path(self.name + '.spool')}\n"
                           f"[process]\ncontrol = {rig.path(self.name + '.control')}\n"
                           f"[export:bench]\nendpoint = {self.sink.endpoint}\n")
        with open(rig.path(self.name + ".log"), "wb") as log:
            self.process = rig.start([self.program, "run", "-c", config], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def pids(self):
        return [self.process.pid, *rig.children_of(self.process.pid)]

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.sink.__exit__(None, None, None)

    def samples(self, begin, end):
        """Those of a time, from all that has come."""
        return sum(begin <= t < end for body in self.sink.payloads() for rp in otlp.decode(body).resource_profiles
                   for sp in rp.scope_profiles for p in sp.profiles for s in p.samples
                   for t in s.timestamps_unix_nano)

    def capture(self, seconds):
        """Its CPU time in microseconds, and its samples."""
        folded = rig.path(f"{self.name}.folded")
        argv = [self.program, "record", "-a", "-F", str(HZ), "-d", str(seconds), *(["--no-interpreters"] if self.reads else []),
                "-o", folded, "-o", rig.path(f"{self.name}.html")]
        return folded, subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def used(pid):
    """(nanoseconds of CPU time, wake-ups), of all threads."""
    ns = wakes = 0
    for task in glob.glob(f"/proc/{pid}/task/*"):
        try:
            with open(f"{task}/schedstat", encoding="utf-8") as f:
                ns += int(f.read().split()[0])
            with open(f"{task}/status", encoding="utf-8") as f:
                wakes += next(int(line.split()[1]) for line in f if line.startswith("voluntary"))
        except OSError:
            pass
    return ns, wakes


def memory_kib(pid):
    """(private, proportional)."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as f:
            rows = {line.split(":")[0]: int(line.split()[1]) for line in f if line.endswith("kB\n")}
    except OSError:
        return 0, 0
    return rows["Private_Clean"] + rows["Private_Dirty"], rows["Pss"]


class Meter:
    """What each process of a daemon has used since the start, also of those that come and go."""

    def __init__(self, build):
        self.build = build
        self.begin = {pid: used(pid) for pid in build.pids()}
        self.last, self.roles = dict(self.begin), {}

    def look(self):
        for pid in self.build.pids():
            now = used(pid)
            if now[0]:
                self.begin.setdefault(pid, (0, 0))
                self.last[pid] = now
                self.roles[pid] = "broker" if pid == self.build.process.pid else rig.comm_of(pid).removeprefix("pw-")

    def rows(self, samples, seconds):
        """By role: microseconds a sample, wake-ups a second, KiB private, KiB of shared pages."""
        rows = {}
        for pid, role in self.roles.items():
            row = ((self.last[pid][0] - self.begin[pid][0]) / 1000 / max(samples, 1),
                   (self.last[pid][1] - self.begin[pid][1]) / seconds, *memory_kib(pid))
            rows[role] = tuple(map(sum, zip(row, rows.get(role, (0, 0, 0, 0)))))
        return rows


def daemons(builds, warm_up, seconds):
    for b in builds:
        b.start()
    time.sleep(warm_up)
    begin = time.time_ns()
    meters = [Meter(b) for b in builds]
    while time.time_ns() < begin + seconds * 10**9:
        time.sleep(0.5)
        for m in meters:
            m.look()
    end = time.time_ns()
    time.sleep(2 * builds[0].interval + 2)
    # All of them before one ends: pages of libraries that it shares would become the others' own.
    counts = [m.build.samples(begin, end) for m in meters]
    rows_of = [m.rows(n, seconds) for m, n in zip(meters, counts)]
    totals = []
    for m, n, rows in zip(meters, counts, rows_of):
        totals.append([sum(column) for column in zip(*rows.values())])
        print(f"  {m.build.name}, {n} samples")
        for name, row in (*rows.items(), ("all", totals[-1])):
            print("    %-12s %6.2f us a sample  %6.1f wake-ups/s  %6d KiB private  %6d KiB PSS" % (name, *row))
    for m, n in zip(meters, counts):
        m.build.stop()
        if not n:
            rig.fail(f"no samples of {m.build.program}")
    print(f"  ratio: CPU a sample {totals[1][0] / totals[0][0]:.3f}, PSS {totals[1][3] / totals[0][3]:.3f}", flush=True)


def captures(builds, rounds, seconds):
    cpu, samples = {b.name: 0.0 for b in builds}, {b.name: 0 for b in builds}
    for _ in range(rounds):
        running = [(b, *b.capture(seconds)) for b in builds]
        for b, folded, process in running:
            _, _, usage = os.wait4(process.pid, 0)
            cpu[b.name] += usage.ru_utime + usage.ru_stime
            with open(folded, encoding="utf-8") as f:
                samples[b.name] += sum(int(line.rpartition(" ")[2]) for line in f)
    per = []
    for b in builds:
        per.append(cpu[b.name] / max(samples[b.name], 1) * 1e6)
        print(f"  {b.name:12} {cpu[b.name]:6.2f} s CPU  {samples[b.name]:6} samples  {per[-1]:6.1f} us a sample")
    print(f"  ratio: {per[1] / per[0]:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--load", choices=sorted(LOADS), default="mixed")
    parser.add_argument("--warm-up", type=int, default=60)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--captures", type=int, default=5)
    parser.add_argument("--capture-seconds", type=int, default=10)
    parser.add_argument("--interval", type=int, default=5)
    parser.add_argument("--interpreters", action="store_true")
    parser.add_argument("--only-load", action="store_true")
    args = parser.parse_args()
    rig.need_root()
    start_load(args.load)
    comms = COMMS[args.load] if args.only_load else None
    builds = [Build(name, os.path.abspath(program), args.interpreters, args.interval, comms)
              for name, program in (("old", args.old), ("new", args.new))]
    if args.seconds:
        print(f"daemons, {args.seconds} s after {args.warm_up} s, load average {os.getloadavg()[0]:.1f} before", flush=True)
        daemons(builds, args.warm_up, args.seconds)
    if args.captures:
        print(f"captures, {args.captures} of {args.capture_seconds} s", flush=True)
        captures(builds, args.captures, args.capture_seconds)
    print(f"load average {os.getloadavg()[0]:.1f} after")


rig.run(main)
