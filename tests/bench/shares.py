# SPDX-License-Identifier: Apache-2.0
"""How right the shares of CPU time are where CPUs have more work than they can do: programs that work for 6 ms and sleep
for 4, beside programs that never sleep, on each CPU. Their samples in captures of the host are held against the
scheduler's account, with readers of interpreters (a Python program sleeps beside them) and without.
shares.py PERFWALK [--rates 99,499] [--seconds N] [--rounds N], as root. Where all is right a ratio is 1, by chance up to
the number behind it (95%) off."""
import argparse
import os
import subprocess
import sys
import tempfile
import time

SLEEPER = """
import sys, time
print("ready", flush=True)
while True:
    end = time.thread_time() + 0.006
    while time.thread_time() < end:
        pass
    time.sleep(0.004)
"""


def account(pids):
    """Seconds of CPU time, as the scheduler counts it."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total / 1e9


def capture(program, rate, seconds, pids, *options):
    """Seconds by samples, seconds by the scheduler, and the number of samples."""
    with tempfile.TemporaryDirectory() as d:
        out = os.path.join(d, "shares.perf.txt")
        p = subprocess.Popen([program, "record", "-a", "-F", str(rate), "-d", str(seconds), "-o", out, *options],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while "recording" not in p.stderr.readline():
            pass
        before, began = account(pids), time.monotonic()
        time.sleep(seconds - 0.5)
        used = (account(pids) - before) / (time.monotonic() - began) * seconds
        p.stderr.read()
        if p.wait() != 0:
            sys.exit("the capture failed")
        with open(out, encoding="utf-8", errors="replace") as f:
            heads = [line.split() for line in f if line[0] not in "\t\n#"]
    wanted = {str(pid) for pid in pids}
    periods = [int(head[-2]) for head in heads if any(word.split("/")[0] in wanted for word in head if "/" in word)]
    return sum(periods) / 1e9, used, len(periods)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rates", default="99,199,499,997")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    n = os.cpu_count()
    sleepers = [subprocess.Popen([sys.executable, "-c", SLEEPER], stdout=subprocess.PIPE) for _ in range(n + 1)]
    hogs = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * n)]
    try:
        for p in sleepers:
            p.stdout.readline()
        for rate in map(int, args.rates.split(",")):
            for what, options in ("with readers", ()), ("without", ("--no-interpreters",)):
                sums = [0, 0, 0]
                for _ in range(args.rounds):
                    sums = [a + b for a, b in zip(sums, capture(args.program, rate, args.seconds, [p.pid for p in sleepers], *options))]
                print(f"{rate} Hz, {what}: {sums[0]:.2f} s of {sums[1]:.2f}, ratio {sums[0] / sums[1]:.3f} ± {1.96 / sums[2] ** 0.5:.3f}", flush=True)
    finally:
        for p in sleepers + hogs:
            p.kill()


main()
