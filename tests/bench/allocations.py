# SPDX-License-Identifier: Apache-2.0
"""allocations.py PERFWALK [RUNS]: how right and how dear --alloc is, beside heaptrack and jemalloc's own profiler
(JEMALLOC=/path/libjemalloc.so.2) where these are installed.

Runs the workload heap so often, each time with other blocks picked, which the seed decides: z of each sum against what
the workload counts (its error by the sum's own standard deviation; about 1 on average). Exits with 1 if |z| is 5 or
more in any. Then the CPU time of the workload alone, with the library, with a capture, and with the others; and what
the library adds to a malloc() and its free(), by callgrind and by the thread's clock. As root, with tracefs
mounted."""
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


def scores(perfwalk, heap, directory, seed):
    """[(z, what)] of one run."""
    name = os.path.join(directory, "heap.perf.txt")
    p = subprocess.run([perfwalk, "record", "-q", "--alloc", "-o", name, "--", heap], stdout=subprocess.PIPE, text=True,
                       check=True, env={**os.environ, "PERFWALK_ALLOC_BYTES": str(MEAN), "PERFWALK_ALLOC_SEED": str(seed)})
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


def in_use(heap, **environment):
    text = subprocess.run([heap], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True,
                          env={**os.environ, **environment}).stdout
    return sum(size * n for _, size, _, n in truth_of(text))


def of_heaptrack(heap, directory, alone):
    if not shutil.which("heaptrack"):
        print("heaptrack is not installed")
        return
    out = os.path.join(directory, "ht")
    print(f"  with heaptrack: x {cpu_of(['heaptrack', '-o', out, heap]) / alone:.2f}")
    text = subprocess.run(["heaptrack_print", *glob.glob(out + "*")[:1], "-a", "0", "-T", "0", "-p", "0"], capture_output=True, text=True, check=False).stdout
    found = sums_of(os.path.join(directory, "heap.perf.txt"))["inuse_space"]
    print(f"  in use at the end: {in_use(heap) / 1e6:.1f} MB by the workload itself, "
          f"{sum(found.values()) / 1e6:.1f} MB in the last capture")
    print("  heaptrack's own count:", *(line for line in text.splitlines() if line.startswith(("calls to allocation", "peak heap", "total memory leaked"))), sep="\n    ")


def of_jemalloc(heap, directory):
    """Against jemalloc without its profiler, and what that says is in use, of one block in 64 KiB as ours."""
    library = os.environ.get("JEMALLOC") or next(iter(glob.glob("/usr/lib/*/libjemalloc.so.2")), None)
    if not library:
        print("jemalloc is not installed")
        return
    dump = os.path.join(directory, "jemalloc")
    profiler = "prof:true,prof_final:true,lg_prof_sample:{},prof_prefix:" + dump
    alone = cpu_of([heap], LD_PRELOAD=library)
    print(f"  with jemalloc's profiler, 512 KiB, against jemalloc: x {cpu_of([heap], LD_PRELOAD=library, MALLOC_CONF=profiler.format(19)) / alone:.2f}")
    for name in glob.glob(dump + "*"):
        os.remove(name)
    truth, found = in_use(heap, LD_PRELOAD=library, MALLOC_CONF=profiler.format(16)), 0
    with open(glob.glob(dump + "*")[0], encoding="ascii") as f:
        stacks = re.findall(r"^@.*\n\s*t\*: (\d+): (\d+) ", f.read(), re.M)
    for n, size in ((int(n), int(size)) for n, size in stacks if n != "0"):
        found += size / (1 - math.exp(-size / n / 65536))  # as jeprof does
    print(f"  in use at the end: {truth / 1e6:.1f} MB by the workload itself, {found / 1e6:.1f} MB by jemalloc's profiler, 64 KiB")


def of_pairs(library, directory):
    """What the library adds to malloc(48) and free()."""
    pairs = os.path.join(directory, "pairs")
    subprocess.run(["cc", "-O2", "-o", pairs, os.path.join(HERE, "pairs.c")], check=True)

    def run(preload, *command):
        p = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "LD_PRELOAD": preload})
        return p.stdout + p.stderr

    def instructions(preload, n):
        text = run(preload, "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", pairs, str(n))
        return int(re.search(r"Collected : (\d+)", text)[1])
    if shutil.which("valgrind"):
        plain, ours = ((instructions(x, 110000) - instructions(x, 10000)) / 100000 for x in ("", library))
        print(f"a pair of malloc(48) and free(): {plain:.1f} instructions, {ours:.1f} with the library")
    plain, ours = (min(float(run(x, pairs)) for _ in range(5)) for x in ("", library))
    print(f"  {plain:.2f} ns, {ours:.2f} with the library: {ours - plain:.2f} more")


def main():
    perfwalk, runs = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10
    library = os.path.join(os.path.dirname(perfwalk), "alloc", "libperfwalk-alloc.so")
    if not os.path.exists(library):
        library = glob.glob("/usr/*lib*/perfwalk/libperfwalk-alloc.so")[0]
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(["sh", os.path.join(HERE, "..", "workloads", "build.sh"), directory, "heap"], check=True)
        heap = os.path.join(directory, "heap")
        all_scores = [score for seed in range(1, runs + 1)
                      for score in scores(perfwalk, heap, directory, seed)]
        worst = max(all_scores, key=lambda s: abs(s[0]))
        z = [s[0] for s in all_scores]
        print(f"{runs} runs, {len(z)} sums: mean z {statistics.mean(z):+.2f}, its standard deviation {statistics.stdev(z):.2f}, "
              f"the worst {worst[0]:+.1f}: {worst[1]}", flush=True)
        alone = cpu_of([heap])
        print(f"CPU seconds of the workload alone: {alone:.2f}")
        print(f"  with the library: x {cpu_of([heap], LD_PRELOAD=library) / alone:.2f}")
        capture = [perfwalk, "record", "-q", "--alloc", "-o", os.path.join(directory, "x.pb.gz"), "--", heap]
        print(f"  with a capture, 512 KiB, all of perfwalk: x {cpu_of(capture) / alone:.2f}")
        of_heaptrack(heap, directory, alone)
        of_jemalloc(heap, directory)
        of_pairs(library, directory)
    if abs(worst[0]) >= 5:
        sys.exit("the worst sum is too far off")


main()
