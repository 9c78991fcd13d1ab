# SPDX-License-Identifier: Apache-2.0
"""allocations.py PERFWALK [RUNS]: how right and how dear --alloc is, beside heaptrack where that is installed.

Runs the workload heap so often, each time with other blocks picked: z of each sum against what the workload counts
(its error by the sum's own standard deviation; right if |z| < 5 in all, and about 1 on average), then the CPU time
of the workload alone, with the library, with a capture, and with heaptrack. As root, with tracefs mounted."""
import glob
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MEAN = 65536
KINDS = ("alloc_space", "inuse_space", "alloc_objects", "inuse_objects")


def truth_of(text):
    return [(m[1], *map(int, m.groups()[1:])) for m in re.finditer(r"^(allocate_\w+) size (\d+) allocated (\d+) in-use (\d+)$", text, re.M)]


def sums_of(name):
    found = {kind: {} for kind in KINDS}
    with open(name, encoding="utf-8") as f:
        entries = f.read().split("\n\n")
    for entry in entries:
        lines = [x for x in entry.splitlines() if not x.startswith("#")]
        m = re.fullmatch(r".+? +\d+/\d+ +\[\d+\] [\d.]+: +(\d+) (\S+):", lines[0]) if lines else None
        if m and m[2] in found:
            path = lines[1].split()[1].split("+")[0]
            found[m[2]][path] = found[m[2]].get(path, 0) + int(m[1])
    return found


def scores(perfwalk, heap, directory):
    """[(z, what)] of one run."""
    name = os.path.join(directory, "heap.perf.txt")
    p = subprocess.run([perfwalk, "record", "-q", "--alloc", "-o", name, "--", heap], stdout=subprocess.PIPE, text=True,
                       check=True, env={**os.environ, "PERFWALK_ALLOC_BYTES": str(MEAN)})
    found, result = sums_of(name), []
    for path, size, allocated, in_use in truth_of(p.stdout):
        picked = 1 - math.exp(-size / MEAN)
        for kind in KINDS:
            n, unit = allocated if kind.startswith("alloc") else in_use, size if kind.endswith("space") else 1
            sd = unit * math.sqrt(n * (1 - picked) / picked + n * picked / 4)
            result.append(((found[kind].get(path, 0) - n * unit) / sd, f"{kind} of {path}"))
    return result


def cpu_of(command, **environment):
    """The least CPU seconds of five runs."""
    least = math.inf
    for _ in range(5):
        before = os.times()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, env={**os.environ, **environment})
        after = os.times()
        least = min(least, after.children_user + after.children_system - before.children_user - before.children_system)
    return least


def main():
    perfwalk, runs = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10
    library = os.path.join(os.path.dirname(perfwalk), "alloc", "libperfwalk-alloc.so")
    if not os.path.exists(library):
        library = glob.glob("/usr/*lib*/perfwalk/libperfwalk-alloc.so")[0]
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(["sh", os.path.join(HERE, "..", "workloads", "build.sh"), directory, "heap"], check=True)
        heap = os.path.join(directory, "heap")
        all_scores = [score for _ in range(runs) for score in scores(perfwalk, heap, directory)]
        worst = max(all_scores, key=lambda s: abs(s[0]))
        z = [s[0] for s in all_scores]
        print(f"{runs} runs, {len(z)} sums: mean z {statistics.mean(z):+.2f}, its standard deviation {statistics.stdev(z):.2f}, "
              f"the worst {worst[0]:+.1f}: {worst[1]}", flush=True)
        alone = cpu_of([heap])
        print(f"CPU seconds of the workload alone: {alone:.2f}")
        print(f"  with the library: x {cpu_of([heap], LD_PRELOAD=library) / alone:.2f}")
        capture = [perfwalk, "record", "-q", "--alloc", "-o", os.path.join(directory, "x.pb.gz"), "--", heap]
        print(f"  with a capture, 512 KiB, all of perfwalk: x {cpu_of(capture) / alone:.2f}")
        if not shutil.which("heaptrack"):
            print("heaptrack is not installed")
            return
        out = os.path.join(directory, "ht")
        print(f"  with heaptrack: x {cpu_of(['heaptrack', '-o', out, heap]) / alone:.2f}")
        text = subprocess.run(["heaptrack_print", *glob.glob(out + "*")[:1], "-a", "0", "-T", "0", "-p", "0"], capture_output=True, text=True, check=False).stdout
        truth = truth_of(subprocess.run([heap], stdout=subprocess.PIPE, text=True, check=True).stdout)
        found = sums_of(os.path.join(directory, "heap.perf.txt"))["inuse_space"]
        print(f"  in use at the end: {sum(size * n for _, size, _, n in truth) / 1e6:.1f} MB by the workload itself, "
              f"{sum(found.values()) / 1e6:.1f} MB in the last capture")
        print("  heaptrack's own count:", *(line for line in text.splitlines() if line.startswith(("calls to allocation", "peak heap", "total memory leaked"))), sep="\n    ")


main()
