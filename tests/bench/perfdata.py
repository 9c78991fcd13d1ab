# SPDX-License-Identifier: Apache-2.0
"""CPU of converting one perf.data file with 32 KiB stacks: perfwalk convert, samply import, perf script.

    perfdata.py [FILE]     without FILE the whole host is recorded for 20 s, with compilers and scripts

PERFWALK and SAMPLY name the programs (default: build/perfwalk, samply in PATH). Best of three, user
and system time of the program and its children, in seconds.
"""
import os
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


def cpu_seconds(argv):
    def used():
        r = resource.getrusage(resource.RUSAGE_CHILDREN)
        return r.ru_utime + r.ru_stime
    best = None
    for _ in range(3):
        before = used()
        subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        best = min(best or 1e9, used() - before)
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


def main():
    work = tempfile.mkdtemp(prefix="perfwalk-bench.")
    try:
        source = sys.argv[1] if len(sys.argv) > 1 else record(work)
        out = os.path.join(work, "out.folded")
        perfwalk = os.environ.get("PERFWALK", os.path.join(TOP, "build", "perfwalk"))
        samply = os.environ.get("SAMPLY") or shutil.which("samply")
        rows = [
            ("perfwalk convert", [perfwalk, "convert", source, "-o", out]),
            ("perfwalk convert --no-inline --no-lines",
             [perfwalk, "convert", "--no-inline", "--no-lines", source, "-o", out]),
        ]
        if samply:
            rows.append(("samply import (addresses only)",
                         [samply, "import", "-s", "-n", source, "-o", os.path.join(work, "out.json.gz")]))
        else:
            print("samply is not installed (cargo install samply)")
        rows.append(("perf script --no-inline", ["perf", "script", "--no-inline", "-i", source]))
        times = [(name, cpu_seconds(argv)) for name, argv in rows]
        with open(out, encoding="utf-8") as f:
            samples = sum(int(line.rsplit(" ", 1)[1]) for line in f)
        print(f"{samples} samples, {os.path.getsize(source) >> 20} MiB")
        for name, seconds in times:
            print(f"{name:42} {seconds:7.3f} s  {1e6 * seconds / samples:7.1f} us a sample  "
                  f"{seconds / times[0][1]:6.2f}")
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
