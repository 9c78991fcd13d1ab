# SPDX-License-Identifier: Apache-2.0
"""What spans cost a sample in all: the CPU time of the readers, with their wake-ups, and of perfwalk's other processes,
for each sample of a program that publishes its spans, in turns with a capture that reads none (--no-interpreters).
spans.py PERFWALK [--rate HZ] [--rounds N] [--seconds S] [--programs DIRECTORY], as root. The programs are those of
tests/workloads, built there by tests/workloads/build.sh. A busy host shows more of all."""
import argparse
import os
import statistics
import subprocess
import time

PROGRAMS = ("spans", "labelled", "labelled-linked")  # C; Go, with labels that each turn sets anew


def run_ns(path):
    """CPU time, and how often the task was put on a CPU."""
    with open(path, encoding="ascii") as f:
        values = f.read().split()
    return int(values[0]), int(values[2])


def used(parent):
    """{name: (nanoseconds, wake-ups)} of a process and its children, so far."""
    found = {"broker": run_ns(f"/proc/{parent}/schedstat")}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as f:
                head, _, rest = f.read().rpartition(")")
            if int(rest.split()[1]) == parent:
                kind = head.partition("(")[2].removeprefix("pw-").rstrip("0123456789")
                ns, wakes = run_ns(f"/proc/{name}/schedstat")
                before = found.get(kind, (0, 0))
                found[kind] = (before[0] + ns, before[1] + wakes)
        except (OSError, IndexError):
            pass  # it has ended
    return found


def cpu_ns(pid):
    return sum(run_ns(f"/proc/{pid}/task/{tid}/schedstat")[0] for tid in os.listdir(f"/proc/{pid}/task"))


def run(args, program, *options):
    """Microseconds a sample: of readers, of all processes; and of a reader for each wake-up."""
    with subprocess.Popen([program], stdout=subprocess.DEVNULL) as p:
        command = [args.perfwalk, "record", "-q", "-F", str(args.rate), *options, "-o", "/dev/null", "--format", "pprof", "-p", str(p.pid)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as r:
            time.sleep(2)  # until the readers know the program
            before, ns = used(r.pid), cpu_ns(p.pid)
            time.sleep(args.seconds)
            after, ns = used(r.pid), cpu_ns(p.pid) - ns
            r.terminate()
        p.kill()
    n = ns * args.rate / 1e9
    grown = {k: (v[0] - before.get(k, (0, 0))[0], v[1] - before.get(k, (0, 0))[1]) for k, v in after.items()}
    readers = grown.get("reader", (0, 0))
    return readers[0] / n / 1000, sum(v[0] for v in grown.values()) / n / 1000, readers[0] / 1000 / max(1, readers[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("perfwalk")
    parser.add_argument("--rate", type=int, default=99)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--programs", default=os.path.join(os.path.dirname(__file__), "../workloads"))
    args = parser.parse_args()
    for name in PROGRAMS:
        rounds = [(run(args, os.path.join(args.programs, name)), run(args, os.path.join(args.programs, name), "--no-interpreters"))
                  for _ in range(args.rounds)]
        readers, everything, wake = (statistics.median(r[0][i] for r in rounds) for i in range(3))
        without = [statistics.median(r[1][i] for r in rounds) for i in range(2)]
        print(f"{name} at {args.rate} Hz, load {os.getloadavg()[0]:.0f}: readers {readers:.1f} us a sample ({wake:.1f} a wake-up), "
              f"all {everything:.1f}; without spans {without[0]:.1f}, all {without[1]:.1f}", flush=True)


main()
