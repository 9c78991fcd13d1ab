# SPDX-License-Identifier: Apache-2.0
"""CPU of converting one perf.data file with 32 KiB stacks: perfwalk convert, samply import, perf script.

    perfdata.py [FILE]     without FILE the whole host is recorded for 20 s, with compilers and scripts

PERFWALK and SAMPLY name the programs (default: build/perfwalk, samply in PATH). Best of seven, one
after the other in turn, user and system time of the program and its children, in seconds, and times
what samply and perf took. The work is equal in the first three rows but that samply finds no names:
perf is told to find none for inlined functions, and prints no lines. Then whose stacks are short: of perfwalk's
those that end in a marker; of perf's those with fewer frames than the same sample has with perfwalk, which
reached the entry.
"""
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
WORKLOADS = os.path.join(TOP, "tests", "workloads")
SECONDS = 20


def cpu_seconds(rows):
    """Best of seven of each, in turn: what else the machine does then falls on all of them."""
    def used():
        r = resource.getrusage(resource.RUSAGE_CHILDREN)
        return r.ru_utime + r.ru_stime
    best = [1e9] * len(rows)
    for _ in range(7):
        for i, (_, argv) in enumerate(rows):
            before = used()
            subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            best[i] = min(best[i], used() - before)
    return best


def record(work):
    """Two loads side by side: C++ compiled again and again, and Python at work on JSON."""
    out = os.path.join(work, "perf.data")
    perf = subprocess.Popen(["perf", "record", "-q", "-e", "cpu-clock", "-F", "299", "-a", "--call-graph",
                             "dwarf,32768", "-o", out, "--", "sleep", str(SECONDS)])
    end = time.monotonic() + SECONDS
    compile_one = ["g++", "-O2", "-c", "-o", "/dev/null", os.path.join(WORKLOADS, "cxx.cc")]
    script = ("import json\nfor i in range(300): "
              "json.loads(json.dumps({'a': [{'b': k} for k in range(500)]}))")
    loads = {}
    while time.monotonic() < end:
        for name, argv in (("c++", compile_one), ("python", [sys.executable, "-c", script])):
            if name not in loads or loads[name].poll() is not None:
                loads[name] = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
        time.sleep(0.02)
    for p in loads.values():
        p.kill()
        p.wait()
    perf.wait()
    return out


def user_stacks(argv):
    """{tid: [(number of user frames, reaches the entry) of each sample with user frames or not]}"""
    text = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True,
                          errors="replace").stdout
    threads = {}
    for block in re.split(r"\n\s*\n", text):
        lines = [x for x in block.splitlines() if not x.startswith("#")]
        head = re.match(r".*?\s(\d+/)?(\d+)\s+\[\d+\]", lines[0]) if lines else None
        if not head:
            continue
        frames = [x.split() for x in lines[1:]]
        user = [x for x in frames if not re.match(r"ffff[0-9a-f]{12}$", x[0])]
        marked = any("[" in x[1] and x[1] != "[unknown]" for x in user[-1:] if len(x) > 1)
        threads.setdefault(head[2], []).append((len(user) - marked, not marked))
    return threads


def short_stacks(perfwalk, source):
    ours = user_stacks([perfwalk, "convert", "-q", "--no-inline", "--no-lines", source, "--format",
                        "perf-script", "-o", "-"])
    perf = user_stacks(["perf", "script", "--no-inline", "-i", source])
    total = own = short = 0
    for tid, samples in ours.items():
        for (n, complete), (m, _) in zip(samples, perf.get(tid, [])):
            if not n and not m:
                continue
            total += 1
            own += not complete
            short += not complete or m < n
    print(f"{total} samples with user frames; short: perfwalk {100 * own / total:.1f}%, "
          f"perf {100 * short / total:.1f}%")


def main():
    work = tempfile.mkdtemp(prefix="perfwalk-bench.")
    try:
        source = sys.argv[1] if len(sys.argv) > 1 else record(work)
        out = os.path.join(work, "out.folded")
        perfwalk = os.environ.get("PERFWALK", os.path.join(TOP, "build", "perfwalk"))
        samply = os.environ.get("SAMPLY") or shutil.which("samply")
        rows = [
            ("perfwalk convert --no-inline --no-lines",
             [perfwalk, "convert", "--no-inline", "--no-lines", source, "-o", out]),
            ("perf script --no-inline", ["perf", "script", "--no-inline", "-i", source]),
        ]
        if samply:
            rows.append(("samply import (addresses only)",
                         [samply, "import", "-s", "-n", source, "-o", os.path.join(work, "out.json.gz")]))
        else:
            print("samply is not installed (cargo install samply)")
        rows += [
            ("perfwalk convert -o .folded, inlined", [perfwalk, "convert", source, "-o", out]),
            ("perfwalk convert -o .pb.gz, and lines",
             [perfwalk, "convert", source, "-o", os.path.join(work, "out.pb.gz")]),
        ]
        times = cpu_seconds(rows)
        with open(out, encoding="utf-8") as f:
            samples = sum(int(line.rsplit(" ", 1)[1]) for line in f)
        print(f"{samples} samples, {os.path.getsize(source) >> 20} MiB")
        for (name, _), seconds in zip(rows, times):
            print(f"{name:42} {seconds:7.3f} s  {1e6 * seconds / samples:7.1f} us a sample  "
                  f"{seconds / times[1]:5.2f} of perf" + (f"  {seconds / times[2]:5.2f} of samply" if samply else ""))
        short_stacks(perfwalk, source)
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
