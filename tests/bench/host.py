#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What perfwalk costs a busy host, beside perf on the same load in the same run.

    python3 tests/bench/host.py [--seconds 30] [--daemon-seconds 60] [--warm-up 60]

Starts a mixed load, then in turn, all at 99 Hz and 32 KiB of stack:
  capture   perf record + perf script --no-inline + the folding and drawing they still lack (not
            counted), against perfwalk record with flame graph and folded stacks, without source
            lines and inlined functions as that perf script is, and with
  daemon    perfwalk run against a receiver on loopback: CPU per sample and resident memory of all
            its processes together, from the second minute on
  start     from exec to the first sample that reaches the receiver
CPU is user + system time of the tool's own processes, from wait4 and /proc/PID/stat. Nothing here
is asserted: the host is shared and noisy; read the ratios.
"""
import argparse
import os
import resource
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import otlp  # noqa: E402
import rig  # noqa: E402
from sink import Sink  # noqa: E402

HZ = 99
TICK = os.sysconf("SC_CLK_TCK")


def start_load(directory, churn=False):
    """Compiled, interpreted, just-in-time compiled and short-lived code; about two busy CPUs."""
    built = []
    for name in ("chain", "cxx", "gopher", "rusty"):
        done = subprocess.run(["sh", os.path.join(rig.WORKLOADS, "build.sh"), directory, name],
                              capture_output=True, check=False)
        if done.returncode == 0:
            built.append([os.path.join(directory, name)])
    loops = [
        "while :; do g++ -O2 -x c++ -c -o /dev/null %s; done" % os.path.join(rig.WORKLOADS, "cxx.cc"),
        "while :; do head -c 8M /dev/urandom | xz -1 >/dev/null; done",
        "while :; do openssl speed -seconds 1 sha256 >/dev/null 2>&1; done",
    ]
    if churn:
        loops.append("while :; do i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done; sleep 1; done")
    commands = built + [["sh", "-c", loop] for loop in loops]
    if shutil.which("python3"):
        commands.append(["python3", os.path.join(rig.WORKLOADS, "pyloop.py")])
    if shutil.which("java"):
        source = rig.write("Loop.java", "class Loop { static long f(long x) { return x < 2 ? x : f(x - 1) + f(x - 2); }"
                           " public static void main(String[] a) { for (;;) f(30); } }")
        commands.append(["java", "-XX:ActiveProcessorCount=1", source])
    if shutil.which("node"):
        commands.append(["node", "--perf-basic-prof", os.path.join(rig.WORKLOADS, "jsloop.js")])
    for argv in commands:
        rig.start(["nice", "-n", "5", *argv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                  stdin=subprocess.DEVNULL)
    return [os.path.basename(argv[0]) if argv[0] != "sh" else argv[2].split("do ")[1].split()[0]
            for argv in commands]


def cpu_of(argv, **options):
    """Runs a command; its CPU seconds with all its children, and the largest resident set in KiB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", check=False, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, done


def capture(seconds, directory):
    perf_data = os.path.join(directory, "perf.data")
    rows = []
    if shutil.which("perf"):
        record, _ = cpu_of(["perf", "record", "-a", "-F", str(HZ), "-e", "cpu-clock", "--call-graph",
                            "dwarf,32768", "-o", perf_data, "--", "sleep", str(seconds)])
        script, done = cpu_of(["perf", "script", "--no-inline", "-i", perf_data])
        samples = sum(1 for line in done.stdout.splitlines() if line and not line[0].isspace())
        rows.append(("perf record + script", record + script, samples))
        print(f"  perf record {record:.2f} s, perf script --no-inline {script:.2f} s, "
              f"{os.path.getsize(perf_data) >> 20} MiB on disk")
        os.unlink(perf_data)
    else:
        print("  perf is not installed: nothing to compare with")
    folded = os.path.join(directory, "out.folded")
    for name, options in (("perfwalk record, flame graph", ["--no-lines", "--no-inline"]),
                          ("the same with lines, inlines", [])):
        cpu, done = cpu_of([rig.perfwalk(), "record", "-a", "-F", str(HZ), "-d", str(seconds), *options,
                            "-o", folded, "-o", os.path.join(directory, "out.html")])
        with open(folded, encoding="utf-8") as f:
            rows.append((name, cpu, sum(int(line.rpartition(" ")[2]) for line in f)))
    for name, cpu, samples in rows:
        print(f"  {name:32} {cpu:6.2f} s CPU  {samples:6} samples  {cpu / max(samples, 1) * 1e6:6.1f} us a sample")
    if len(rows) == 3:
        print(f"  perfwalk takes {rows[1][1] / rows[0][1]:.2f} of perf's CPU "
              f"({rows[1][1] / rows[1][2] / (rows[0][1] / rows[0][2]):.2f} a sample)")
    print("".join("    " + line + "\n" for line in done.stdout.splitlines()[3:12]), end="")


def ticks(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            fields = f.read().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except OSError:
        return 0


def pss_kib(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def rings_kib(pid):
    """What of the resident set is the kernel's rings, mapped."""
    total, inside = 0, False
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as f:
        for line in f:
            if "-" in line.split()[0] and ":" not in line.split()[0]:
                inside = "[perf_event]" in line
            elif inside and line.startswith("Rss:"):
                total += int(line.split()[1])
    return total


def wire_samples(sink):
    for body in sink.payloads():
        for rp in otlp.decode(body).resource_profiles:
            for sp in rp.scope_profiles:
                for profile in sp.profiles:
                    yield from profile.samples


def n_samples(sink):
    return sum(len(s.timestamps_unix_nano) for s in wire_samples(sink))


def daemon(warm_up, seconds):
    with Sink() as sink:
        begin = time.time()
        d = rig.Daemon(f"[profiler]\nsamples_per_second = {HZ}\nreporter_interval = 5s\n"
                       f"[export:bench]\nendpoint = {sink.endpoint}\n")
        d.wait_up()
        sink.wait_for(1, 30)
        first = min(t for s in wire_samples(sink) for t in s.timestamps_unix_nano)
        print(f"  from exec to the first sample: {first / 1e9 - begin:.3f} s")
        time.sleep(warm_up)
        pids = {"broker": d.pid, **d.roles()}
        before = {name: ticks(pid) for name, pid in pids.items()}
        had = n_samples(sink)
        time.sleep(seconds)
        after = {name: ticks(pid) for name, pid in pids.items()}
        rss = {name: rig.rss_kib(pid) - rings_kib(pid) for name, pid in pids.items()}
        pss = {name: pss_kib(pid) for name, pid in pids.items()}
        got = n_samples(sink) - had
        total = sum(after.values()) - sum(before.values())
        for name in pids:
            cpu = (after[name] - before[name]) / TICK
            print(f"  {name:12} {cpu:6.2f} s CPU  {cpu / max(got, 1) * 1e6:6.1f} us a sample  "
                  f"{rss[name] / 1024:6.1f} MiB resident without rings")
        print(f"  all          {total / TICK:6.2f} s CPU  {total / TICK / max(got, 1) * 1e6:6.1f} us a sample  "
              f"{sum(rss.values()) / 1024:6.1f} MiB ({got} samples in {seconds} s, "
              f"{total / TICK / seconds * 100:.2f}% of a CPU; shared pages counted once: "
              f"{sum(pss.values()) / 1024:.1f} MiB with rings)")
        d.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--warm-up", type=int, default=60)
    parser.add_argument("--daemon-seconds", type=int, default=60)
    parser.add_argument("--churn", action="store_true", help="add 200 short processes a second")
    args = parser.parse_args()
    rig.need_root()
    directory = rig.path("load")
    print("load: " + ", ".join(start_load(directory, args.churn)), flush=True)
    time.sleep(2)
    print(f"capture of the host, {args.seconds} s at {HZ} Hz", flush=True)
    capture(args.seconds, rig.workdir())
    print(f"daemon, {args.daemon_seconds} s after {args.warm_up} s", flush=True)
    daemon(args.warm_up, args.daemon_seconds)


if __name__ == "__main__":
    rig.run(main)
