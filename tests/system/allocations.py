# SPDX-License-Identifier: Apache-2.0
# Rooms: src/profiler src/sample src/cmd alloc
"""record --alloc: bytes and objects that were allocated and that are in use, by path, against what the
workload itself counts. Which blocks are picked is chance; so is by how much a sum may be wrong, and a bound
of five standard deviations is computed for each. Needs root."""
import math
import os
import re
import shutil
import signal
import subprocess
import threading

import alloc_model
import rig

MEAN = 65536
SEEDS = range(1, 11)


def capture(*command, environment=None, status=0, options=()):
    name = rig.path("allocations.perf.txt")
    p = subprocess.run([rig.perfwalk(), "record", "--alloc", *options, "-o", name, "--", *command], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True, timeout=120, check=False,
                       env={**os.environ, "PERFWALK_ALLOC_BYTES": str(MEAN), **(environment or {})})
    if p.returncode != status:
        rig.fail(f"record --alloc {' '.join(command)}: {p.returncode}\n{p.stdout}{p.stderr}")
    rig.check(re.search(r"^  lost +0 ", p.stdout, re.M), "nothing was lost")
    return p.stdout, alloc_model.sums(name)


def compare(text, found, times=1):
    paths = alloc_model.truth(text)
    rig.check(len(paths) == 6 * times, f"{len(paths)} paths")
    alloc_model.compare(found, paths[:6], times, "all that was allocated", MEAN)


def check_musl():
    """A program of another C library, whose functions call each other by the names that the library has."""
    if not shutil.which("musl-gcc"):
        rig.say("left out: musl-gcc is not installed")
        return
    heap = rig.path("heap-musl")
    subprocess.run(["musl-gcc", "-O1", "-pthread", "-o", heap, os.path.join(rig.WORKLOADS, "heap.c")], check=True)
    text, found = capture(heap)
    compare(text, found)


def check_unseen():
    """A program that cannot have the library: the summary says that such programs are not seen."""
    program = rig.path("static")
    subprocess.run(["gcc", "-static", "-O1", "-pthread", "-o", program, os.path.join(rig.WORKLOADS, "heap.c")], check=True)
    text, found = capture(program)
    rig.check(not any(found.values()) and "no block was picked" in text, f"a static program is not seen: {text}")
    p = rig.start(["sleep", "1000"])
    text = rig.record("--alloc", "-p", p.pid, "-d", "0.1", "-o", rig.path("late.html")).text()
    rig.check("runs already" in text and "LD_PRELOAD=" in text, f"nor one that runs without the library; how it would be: {text}")
    rig.end(p)


def library_for(compiler):
    """The library, as the makefile has it built."""
    with open(os.path.join(rig.TOP, "alloc", "local.mk"), encoding="utf-8") as f:
        text = f.read().replace("\\\n", " ")
    name, arch = rig.path(f"{compiler}.so"), "aarch64" if "aarch64" in compiler else "x86_64"
    of_arch = re.search(rf"{arch}\.c\n(?:#.*\n)?ALLOC_ARCH_FLAGS =(.*)", text)[1]
    flags = re.search(r"^ALLOC_FLAGS = (.*)", text, re.M)[1] + of_arch
    subprocess.run([compiler, *flags.split(), f"-I{rig.TOP}", "-o", name,
                    *(os.path.join(rig.TOP, "alloc", f"{x}.c") for x in ("alloc", f"arch-{arch}"))], check=True)
    return name


def check_told(compiler, *emulator):
    """What the library tells its markers, without a kernel that sets probes: so on other processors, too."""
    missing = [x for x in (compiler, *emulator[:1]) if not shutil.which(x)]
    if missing:
        rig.say(f"left out: {missing[0]} is not installed")
        return
    name = rig.path(f"told-{compiler}")
    subprocess.run([compiler, "-O1", "-rdynamic", "-o", name, os.path.join(rig.WORKLOADS, "told.c"), "-lm"], check=True)
    preload = library_for("gcc" if compiler == "musl-gcc" else compiler)
    said = set()
    for seed in (*SEEDS, SEEDS[0]):
        environment = {"LD_PRELOAD": preload, "PERFWALK_ALLOC_BYTES": str(MEAN), "PERFWALK_ALLOC_SEED": str(seed)}
        options = [x for name_and_value in environment.items() for x in ("-E", "=".join(name_and_value))] if emulator else []
        p = subprocess.run([*emulator, *options, name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                           timeout=120, env={**os.environ, **({} if emulator else environment)})
        rig.check(p.returncode == 0, f"{compiler}, seed {seed}: {p.stdout.strip()}")
        said.add(p.stdout)
    rig.check(len(said) == len(SEEDS), f"{compiler}: other blocks with each seed, and the same with the same one")


def check_errors(summary, text):
    """How far the totals may be off is that of a model which knows what was allocated."""
    for kind in alloc_model.KINDS:
        m = re.search(rf"^  {kind} .* ± ([\d.e+]+)%", summary, re.M)
        if not m:
            rig.fail(f"the summary says of {kind} how far it may be off:\n{summary}")
        total = variance = 0
        for _, size, allocated, in_use in alloc_model.truth(text):
            picked, n = 1 - math.exp(-size / MEAN), allocated if kind.startswith("alloc") else in_use
            unit = size if kind.endswith("space") else 1
            total += n * unit
            variance += n * unit ** 2 * (1 - picked) / picked
        percent = 196 * math.sqrt(variance) / total
        rig.check(0.6 * percent < float(m[1]) < 1.5 * percent, f"{kind} may be off by {m[1]}%, by a model {percent:.1f}%")


def check_grown():
    """Of what a program has in use only what came after a moment, so none of what it keeps from its start."""
    leak = os.path.join(rig.build_workloads("leak"), "leak")
    text, found = capture(leak, "0", options=("-o", rig.path("leak.pb.gz")))
    picked = 1 - math.exp(-4096 / MEAN)
    for kind in ("alloc_space", "inuse_space"):
        n = round(sum(found[kind].values()) * picked / 4096)  # all blocks are of one size
        told = int(re.search(rf"^  {kind} +([\d,]+) ", text, re.M)[1].replace(",", ""))
        reported = subprocess.run([rig.perfwalk(), "report", "-e", kind, rig.path("leak.pb.gz")], stdout=subprocess.PIPE, text=True,
                                  check=True).stdout
        rig.check(n == told and f"\n{n} samples " in reported, f"{kind}: {n} blocks were picked, the summary says {told}: {reported[:300]}")
    rig.check({"allocate_kept", "allocate_lost"} <= set(found["inuse_space"]), f"without the option both are in use: {found['inuse_space']}")
    options = ("--grown-after", "3s")
    text, found = capture(leak, "4000", options=options)
    lost = int(re.search(r"^lost (\d+)$", text, re.M)[1])
    sd = 4096 * math.sqrt(lost / 4096 * (1 - picked) / picked)
    z = (found["inuse_space"].get("allocate_lost", 0) - lost) / sd
    rig.check(abs(z) < 5, f"what grew: {found['inuse_space'].get('allocate_lost', 0)} of {lost} bytes, {z:.1f} standard deviations off")
    rig.check(set(found["inuse_space"]) == {"allocate_lost"}, f"and nothing else: {found['inuse_space']}")
    rig.check({"allocate_kept", "allocate_lost", "allocate_freed"} <= set(found["alloc_space"]), "all of it was allocated")


def check_beside_off_cpu(heap):
    """Both in one capture, with the locks and all time of threads: each as exact as alone."""
    text, found = capture(heap, options=("--locks", "--wall"))
    compare(text, found)
    types = re.findall(r"^  ([a-z][\w-]+) +[\d,]+(?:  |$)", text.split("\n  lost ")[0], re.M)
    rig.check(types[0] in ("cpu-clock", "cycles") and {*alloc_model.KINDS, "off_cpu", "lock_wakeups", "wall"} == set(types[1:]),
              f"all types in one capture: {types}")


def check_live(heap, liar):
    """perfwalk top: what is in use is that of the moment, however many refreshes the window covers; what was allocated
    adds up."""
    heap = shutil.copy(heap, rig.path("heap-of-top"))  # a name that no other program of the host has
    live = alloc_model.Live()
    environment = {**os.environ, "LD_PRELOAD": alloc_model.library(), "PERFWALK_ALLOC_BYTES": str(MEAN)}
    p, text = rig.start([heap, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment), ""
    while "allocate_grown" not in text:
        text += p.stdout.readline()
    live.wait(3)  # on a busy host some that began before are still being named
    for refresh in ("first", "second", "third"):
        live.wait(1)
        found, slack = live.newest(os.path.basename(heap))
        alloc_model.compare(found, alloc_model.truth(text), 1, f"top, {refresh} refresh", MEAN, rounded=40, slack=slack)
    p.communicate("\n", timeout=rig.PATIENCE)

    def is_empty():
        live.wait(1)
        found, _ = live.newest(os.path.basename(heap))
        return not found["inuse_space"] and not found["inuse_objects"]
    rig.wait_for("nothing is in use, when it has ended", is_empty)
    found, slack = live.newest(os.path.basename(heap))
    alloc_model.compare(found, alloc_model.truth(text), 1, "what it allocated is there when it has ended", MEAN,
                        ("alloc_space", "alloc_objects"), 40, slack)
    subprocess.run([liar], env=environment, check=True, stdout=subprocess.DEVNULL)
    live.wait(2)
    found, _ = live.newest("liar")
    rig.check(found["alloc_space"], "a program that lies about terabytes leaves the table readable")
    live.end()


READ_ONLY = ["unshare", "-m", "sh", "-c", "mount --bind /sys/kernel/tracing /sys/kernel/tracing && "
             'mount -o remount,ro,bind /sys/kernel/tracing && exec "$0" "$@"']


def hold_symbolizer(seconds):
    record = next(p for p in rig.children_of(os.getpid()) if rig.comm_of(p) == "perfwalk")
    pid = next(p for p in rig.children_of(record) if rig.comm_of(p) == "pw-symbolizer")
    os.kill(pid, signal.SIGSTOP)
    threading.Timer(seconds, os.kill, (pid, signal.SIGCONT)).start()


def check_running(heap, *before, slow=False):
    """One that was started with the library, and does not end. slow: the last window stays for longer than a window."""
    name = rig.path("running.perf.txt")
    said, p = [], None

    def go():
        nonlocal p
        p = rig.start([heap, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                      env={**os.environ, "LD_PRELOAD": alloc_model.library(), "PERFWALK_ALLOC_BYTES": str(MEAN)})
        while not said or not said[-1].startswith("allocate_grown"):
            said.append(p.stdout.readline())
        if slow:
            hold_symbolizer(5)
        return True

    rig.Record([*before, rig.perfwalk(), "record", "-a", "--alloc", "-o", name], until=go)
    compare("".join(said), alloc_model.sums(name, p.pid))


def main():
    rig.need_root()
    rig.need_allocations()
    directory = rig.build_workloads("heap", "liar")
    heap = os.path.join(directory, "heap")
    text, found = capture(heap)
    compare(text, found)
    check_errors(text, text)
    rig.check(re.search(r"^  complete ", text, re.M) and not re.search(r"^  truncated ", text, re.M), "12 KiB of a stack are not too deep")
    rig.check(not any(path.startswith(("malloc", "perfwalk_")) for kind in alloc_model.KINDS for path in found[kind]),
              "no stack begins in the library")
    text, found = capture("sh", "-c", '"$0" & "$0"; wait', heap)
    compare(text, found, 2)
    rig.say("a shell, and what it forks and executes")
    check_running(heap)
    check_running(heap, slow=True)
    rig.say("a tracefs that is read-only, as a container may have it")
    check_running(heap, *READ_ONLY)
    check_live(heap, os.path.join(directory, "liar"))
    check_beside_off_cpu(heap)
    check_grown()
    check_musl()
    check_unseen()
    check_told("gcc")
    check_told("musl-gcc")
    check_told("aarch64-linux-gnu-gcc", "qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")
    text, found = capture(os.path.join(directory, "liar"))
    total = sum(found["alloc_space"].values())
    rig.check("lied" in text and total < 200 * 2 ** 49, f"nonsense that a caller gives the markers is counted: {total} bytes")
    nm = subprocess.run(["readelf", "-d", alloc_model.library()], stdout=subprocess.PIPE, text=True, check=True).stdout
    rig.check("NEEDED" not in nm, "the library needs no other")


rig.run(main)
