# SPDX-License-Identifier: Apache-2.0
"""What it costs to read Python's stacks: CPU time of the readers for each sample, and how much longer the program
itself takes for the same work, alternating with and without. readers.py PERFWALK [--rate HZ] [--rounds N]
[--python PATH]..., as root. A busy host shows more of both."""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

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


def run(python, seconds, recorder):
    """Seconds of CPU time for each piece of work, and nanoseconds of the readers for each wake-up."""
    with subprocess.Popen([python, "-c", WORK, str(seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as p:
        p.stdout.readline()
        r = subprocess.Popen([*recorder, "-p", str(p.pid)], stderr=subprocess.DEVNULL) if recorder else None
        time.sleep(2 if recorder else 0)
        before = used(r.pid) if r else None
        p.stdin.write("go\n")
        p.stdin.flush()
        cost = float(p.stdout.readline())
        after = used(r.pid) if r else None
        p.stdin.write("end\n")
        p.stdin.flush()
        p.wait()
        if r:
            r.terminate()
            r.wait()
    return cost, (after[0] - before[0]) / max(1, after[1] - before[1]) if r else 0


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
            recorder = [args.perfwalk, "record", "-q", "-F", args.rate, "-o", os.path.join(directory, "x.folded")]
            plain, read, reader = [], [], []
            for _ in range(args.rounds):
                plain.append(run(python, args.seconds, None)[0])
                cost, ns = run(python, args.seconds, recorder)
                read.append(cost)
                reader.append(ns)
        slower = statistics.median(b / a - 1 for a, b in zip(plain, read))
        print(f"{python} at {args.rate} Hz: readers {statistics.median(reader) / 1000:.1f} us a sample; "
              f"the program {slower:+.2%} (each round: " + " ".join(f"{b / a - 1:+.1%}" for a, b in zip(plain, read)) + ")")


main()
