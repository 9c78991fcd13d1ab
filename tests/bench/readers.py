# SPDX-License-Identifier: Apache-2.0
"""What it costs to read Python's stacks: CPU time of the readers for each sample, and how much longer the program
itself takes for the same work, in turns with none, with perfwalk, and with py-spy if that is in PATH. And how far both
agree on a program of known chains of calls, in leaves and in whole stacks, beside what two samples of that size of one
program would. readers.py PERFWALK [--rate HZ] [--rounds N] [--python PATH]..., as root. A busy host shows more of all."""
import argparse
import collections
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import agreement  # beside this file

WORK = """
import sys, time
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
def work():
    for _ in range(20):
        fibonacci(15)
        sorted(range(2000), key=lambda x: -x)
work()
print("ready", flush=True)
sys.stdin.readline()
n, start = 0, time.process_time()
while time.process_time() - start < float(sys.argv[1]):
    work()
    n += 1
print((time.process_time() - start) / n, flush=True)
sys.stdin.readline()
"""


def used(parent):
    """Nanoseconds of CPU time, and wake-ups, of all readers so far."""
    ns = wakes = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as f:
                head, _, rest = f.read().rpartition(")")
            if int(rest.split()[1]) == parent and head.endswith("(pw-reader"):
                with open(f"/proc/{name}/schedstat", encoding="ascii") as f:
                    values = f.read().split()
                ns, wakes = ns + int(values[0]), wakes + int(values[2])
        except (OSError, IndexError):
            pass
    return ns, wakes


def cpu_ns(pid):
    """Of all threads of a process."""
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total


def run(python, seconds, recorder):
    """Seconds of CPU time for each piece of work, nanoseconds of the readers for each wake-up, and the recorder's share
    of a CPU without its children."""
    with subprocess.Popen([python, "-c", WORK, str(seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as p:
        p.stdout.readline()
        r = subprocess.Popen([*recorder, str(p.pid)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) if recorder else None
        time.sleep(2 if recorder else 0)
        before, own, began = (used(r.pid), cpu_ns(r.pid), time.monotonic()) if r else ((0, 0), 0, 0)
        p.stdin.write("go\n")
        p.stdin.flush()
        cost = float(p.stdout.readline())
        after = used(r.pid) if r else (0, 0)
        share = (cpu_ns(r.pid) - own) / 1e9 / (time.monotonic() - began) if r else 0
        p.stdin.write("end\n")
        p.stdin.flush()
        p.wait()
        if r:
            r.terminate()
            r.wait()
    return cost, (after[0] - before[0]) / max(1, after[1] - before[1]), share


# ---- Agreement ----

def chains(path):
    """Samples by the functions of the known part, the innermost last."""
    counts = collections.Counter()
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            stack, _, n = line.rpartition(" ")
            names = [frame.split(" (")[0].rpartition(".")[2] for frame in stack.split(";")]
            ours = tuple(name for name in names if name.startswith("chain_"))
            if ours:
                counts[ours] += int(n)
    return counts


def compare(python, seconds, recorders):
    """Each records the program in turn."""
    program = os.path.join(os.path.dirname(__file__), "../workloads/calls.py")
    seen = {}
    for name, (command, path) in recorders.items():
        with subprocess.Popen([python, program, "1"], stdout=subprocess.DEVNULL) as p:
            time.sleep(1)
            with subprocess.Popen([*command, str(p.pid)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as r:
                time.sleep(seconds)
                r.send_signal(2)
            p.kill()
        seen[name] = chains(path)
    a, b = seen.values()
    agreement.show(a, b)


def judge(python, args, recorders):
    costs = {name: [] for name in recorders}
    plain, readers, shares = [], [], []
    for _ in range(args.rounds):
        plain.append(run(python, args.seconds, None)[0])
        for name, (command, _) in recorders.items():
            cost, ns, share = run(python, args.seconds, command)
            costs[name].append(cost / plain[-1] - 1)
            (readers if name == "perfwalk" else shares).append(ns if name == "perfwalk" else share)
    print(f"{python} at {args.rate} Hz, load {os.getloadavg()[0]:.0f}: readers {statistics.median(readers) / 1000:.1f} us a sample")
    for name, slower in costs.items():
        print(f"  the program with {name} {statistics.median(slower):+.2%} (each round: " + " ".join(f"{x:+.1%}" for x in slower) + ")")
    if shares:
        print(f"  py-spy itself {1e6 * statistics.median(shares) / float(args.rate):.0f} us a sample")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("perfwalk")
    parser.add_argument("--rate", default="99")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--python", action="append")
    args = parser.parse_args()
    for python in args.python or [sys.executable]:
        with tempfile.TemporaryDirectory() as directory:
            folded, raw = os.path.join(directory, "x.folded"), os.path.join(directory, "x.raw")
            recorders = {"perfwalk": ([args.perfwalk, "record", "-q", "-F", args.rate, "-o", folded, "-p"], folded)}
            if shutil.which("py-spy"):
                recorders["py-spy"] = (["py-spy", "record", "-r", args.rate, "-f", "raw", "-d", "600", "-o", raw, "-p"], raw)
            judge(python, args, recorders)
            if len(recorders) > 1:
                compare(python, 4 * args.seconds, recorders)


main()
