# SPDX-License-Identifier: Apache-2.0
# Rooms: src/profiler src/broker src/sample src/cmd symbolize
"""--alloc of programs that allocate by themselves, without a flag and without an agent: a Go program's blocks are
those of its own profile, byte for byte, and a Java VM's those of JFR's events in the same run. Both also against
what the workloads allocate; and in one daemon, beside a program that preloads the library. `JAVA="PATH..."` names
other programs than the host's java. Needs root."""
import itertools
import json
import math
import os
import re
import shutil
import subprocess
import sys

import alloc_model
import otlp
import rig
from sink import Sink

RATE = 512 << 10
MEAN = 65536
KINDS = ("alloc_space", "alloc_objects", "inuse_space", "inuse_objects")
GO = {"main.allocateSmall": (128, 400000, 400000), "main.allocateFreed": (8192, 10000, 0),
      "main.allocateLarge": (1 << 20, 64, 64), "main.allocateDeep": (1 << 19, 3000, None)}
FUNCTION = re.compile(r"(main\.)?allocate\w+")
NUMBERS = itertools.count()
FIRST, LIKE_OTHERS = ("nice", "-n", "-15"), ("nice", "-n", "15")  # on a busy host, so that the rings do not fill up
JAVA = {"allocateSmall": 136 * 1000000, "allocateMedium": 4016 * 30000, "allocateLarge": 3000016 * 40}
JAVA_BUFFERS = 4 << 20  # the last one of a method may be used by the next


def sums(name, pattern):
    """{type: {function: [sum, samples]}}, by the innermost function of that pattern."""
    found = {kind: {} for kind in KINDS}
    with open(name, encoding="utf-8") as f:
        entries = f.read().split("\n\n")
    for entry in entries:
        lines = [x for x in entry.splitlines() if not x.startswith("#")]
        m = re.fullmatch(r".+? +\d+/\d+ +\[\d+\] [\d.]+: +(\d+) (\S+):", lines[0]) if lines else None
        if not m or m[2] not in found:
            continue
        names = [line.split()[1].split("+")[0] for line in lines[1:]]
        function = next((x for x in names if re.search(pattern, x)), None)
        if function:
            s = found[m[2]].setdefault(re.search(pattern, function)[0], [0, 0])
            s[0] += int(m[1])
            s[1] += 1
            if s[1] == 1 and kind_is_space(m[2]):
                rig.check(names[0] == function, f"the stack of {m[2]} begins in the program: {names[:3]}")
    return found


def kind_is_space(kind):
    return kind.endswith("_space")


# ---- Go ----

class Program:
    """A workload, which waits."""
    def __init__(self, *command):
        self.process = rig.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.said = ""
        self.wait("ready")

    def wait(self, word):
        line = ""
        while not line.startswith(word):
            line = self.process.stdout.readline()
            if not line:
                rig.fail(f"the workload ended: {self.said}")
            self.said += line
        return True

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.wait("done")

    def end(self):
        self.process.communicate("\n", timeout=rig.PATIENCE)


def own_go(said):
    """{function: {type: sum}} by the program's own profile."""
    return {m[1]: dict(zip(KINDS, map(int, m.groups()[1:]))) for m in re.finditer(r"^(main\.\w+) (\d+) (\d+) (\d+) (\d+)$", said, re.M)}


def compare_go(name, said, what, rate=None):
    found = sums(name, r"main\.allocate\w+")
    own = own_go(said)
    if rate == 0:
        # Of each CPU the runtime had drawn the next one already.
        few = {path: v for path, (v, n) in found["alloc_space"].items() if n <= 2 * os.cpu_count()}
        rig.check({path: v["alloc_space"] for path, v in own.items()} == few, f"{what}: next to nothing is picked: {few}, own {own}")
        return
    rig.check(set(own) == set(GO), f"{what}: its own profile has {sorted(own)}")
    worst = 0, ""
    for path, (size, n, in_use) in GO.items():
        picked = 1 - math.exp(-size / RATE)
        for kind in KINDS:
            got, n_samples = found[kind].get(path, (0, 0))
            expected = own[path][kind]
            # What is in use is told place by place; objects are rounded by chance, blocks to bytes.
            slack = n_samples + 1 if kind_is_space(kind) else 3 * math.sqrt(n_samples + 1) + 1
            # Some are still to be swept.
            if kind.startswith("inuse") and in_use is None:
                continue
            rig.check(abs(got - expected) <= slack, f"{what}: {kind} of {path} is {got}, by Go's own profile {expected}")
            if rate or not kind_is_space(kind):
                continue  # a small block of the runtime's own stands for thousands
            blocks = n if kind.startswith("alloc") else in_use
            sd = size * math.sqrt(blocks * (1 - picked) / picked)
            z = abs(got - blocks * size) / sd if sd else 0
            worst = max(worst, (z, f"{kind} of {path} is {got}, not {blocks * size}"))
    rig.check(worst[0] < 5, f"{what}: the worst sum is {worst[0]:.1f} standard deviations off: {worst[1]}")


def build_go():
    out = rig.path("heap-go")
    env = {**os.environ, "GOFLAGS": "-buildvcs=false"}
    p = subprocess.run(["go", "build", "-o", out, os.path.join(rig.WORKLOADS, "heap.go")], capture_output=True,
                       text=True, env=env, check=False)
    if p.returncode != 0:
        rig.fail(f"heap.go does not build:\n{p.stderr}")
    return out


def is_probed(log, pid=r"\d+"):
    """Whether all CPUs have their probes. The first of them puts the breakpoint into the code, which tells nothing of the
    others."""
    return re.search(rf"the allocator of a Go program is sampled, too \(of process {pid}\)", log) is not None


def record(*args, **options):
    return rig.Record([*FIRST, rig.perfwalk(), "record", *map(str, args)], **options)


def check_live_go(program):
    """perfwalk top of a program that has run, and allocates later."""
    p = Program(program)
    live = alloc_model.Live("-p", str(p.process.pid))
    p.go()
    live.wait(3)
    found, slack = live.newest(os.path.basename(program))
    own = own_go(p.said)
    for path in ("main.allocateSmall", "main.allocateLarge"):  # of which nothing is still to be swept
        for kind in KINDS:
            got, expected = found[kind].get(path, 0), own[path][kind]
            # Objects are rounded by chance, block by block.
            off = slack(kind, got) + (0.001 * expected if kind_is_space(kind) else 3 * math.sqrt(expected) + 1)
            rig.check(abs(got - expected) <= off, f"top: {kind} of {path} is {got:.0f}, by Go's own profile {expected}")
    live.end()
    p.end()


def check_go():
    program = build_go()
    check_live_go(program)
    # As in a container without the allocation library.
    apart = ["unshare", "-m", "sh", "-c", f"mount -t tmpfs none {os.path.dirname(alloc_model.library())} && exec {program}"]
    for what, command, options in (("one process", [program], lambda p: ["-p", p.process.pid]),
                                   ("one in a container", apart, lambda p: ["-p", p.process.pid]),
                                   ("the whole host", [program], lambda p: ["-a"])):
        p, name = Program(*command), rig.path("go.perf.txt")
        summary = record(*options(p), "--alloc", "-o", name, until=p.go)
        rig.check(re.search(r"^  lost +0 ", str(summary.out), re.M), f"{what}: nothing was lost")
        compare_go(name, p.said, what)
        p.end()
    for rate, less in ((1, 400), (4096, 10), (RATE, 10), (0, 10)):
        what, name = f"a rate of {rate}", rig.path("rate.perf.txt")
        p = Program(program, f"rate={rate}", f"less={less}")
        summary = record("-p", p.process.pid, "--alloc", "-o", name, until=p.go)
        rig.check(re.search(r"^  lost +0 ", str(summary.out), re.M), f"{what}: nothing was lost")
        compare_go(name, p.said, what, rate)
        p.end()
    # One that starts later gets its probe when it has been mapped. It runs as all others do.
    name = rig.path("command.perf.txt")
    with open(rig.path("command.err"), "w+", encoding="utf-8") as err:
        r = rig.start([*FIRST, rig.perfwalk(), "record", "-v", "--alloc", "-o", name, "--", *LIKE_OTHERS, program],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True)
        rig.wait_for("probes in a command", lambda: is_probed(os.pread(err.fileno(), 1 << 20, 0).decode()), 60)
        out, _ = r.communicate("\n\n", timeout=rig.PATIENCE)
    rig.check(re.search(r"^  lost +0 ", out, re.M), "a command: nothing was lost")
    compare_go(name, out, "a command")


# ---- Java ----

EVENTS = """<?xml version="1.0" encoding="UTF-8"?>
<configuration version="2.0">
<event name="jdk.ObjectAllocationInNewTLAB"><setting name="enabled">true</setting><setting name="stackTrace">true</setting></event>
<event name="jdk.ObjectAllocationOutsideTLAB"><setting name="enabled">true</setting><setting name="stackTrace">true</setting></event>
</configuration>
"""


def jfr_sums(recording):
    """{method: bytes}, as JFR's events say: of a thread's new buffer, all of it."""
    jfr = os.path.join(os.path.dirname(os.path.realpath(shutil.which("java"))), "jfr")
    names = "jdk.ObjectAllocationInNewTLAB,jdk.ObjectAllocationOutsideTLAB"
    text = subprocess.run([jfr, "print", "--json", "--events", names, "--stack-depth", "8", recording], capture_output=True,
                          text=True, check=True).stdout
    found = {}
    for event in json.loads(text)["recording"]["events"]:
        v = event["values"]
        methods = [f["method"]["name"] for f in (v["stackTrace"] or {"frames": []})["frames"]]
        method = next((m for m in methods if m.startswith("allocate")), None)
        if method:
            found[method] = found.get(method, 0) + (v["tlabSize"] if "tlabSize" in v else v["allocationSize"])
    return found


class Vm(Program):
    """The workload in a Java VM, which records its own events."""
    def __init__(self, java, *arguments):
        self.java, self.recording = java, rig.path(f"{next(NUMBERS)}.jfr")
        super().__init__(java, "-XX:+UseSerialGC", "-Xmx256m",
                         f"-XX:StartFlightRecording:filename={self.recording},settings={rig.path('events.jfc')}",
                         "-cp", rig.path("classes"), "Heap", *arguments)

    def compare(self, found, what, slack=lambda n: 0):
        """found: {method: bytes}, each as exact as slack says."""
        self.process.communicate(timeout=rig.PATIENCE)
        own = jfr_sums(self.recording)
        for method, truth in JAVA.items():
            got = found.get(method, 0)
            rig.check(abs(got - own.get(method, 0)) <= slack(got), f"{what}: alloc_space of {method} is {got}, by JFR's events {own.get(method, 0)}")
            rig.check(abs(got - truth) <= JAVA_BUFFERS + 0.01 * truth + slack(got), f"and {truth} by the program")


def javas():
    return os.environ.get("JAVA", shutil.which("java")).split()


def build_java():
    subprocess.run(["javac", "--release", "11", "-d", rig.path("classes"), os.path.join(rig.WORKLOADS, "Heap.java")], check=True)
    rig.write("events.jfc", EVENTS)


def check_live_java():
    """perfwalk top: what was allocated, and nothing of what is in use on the heap, which is not known."""
    p = Vm(javas()[0])
    live = alloc_model.Live("-p", str(p.process.pid))
    p.go()
    live.wait(3)
    found, slack = live.newest("java")
    live.end()
    sums_of = {}
    for function, n in found["alloc_space"].items():
        method = re.search(r"allocate\w+", function)
        sums_of[method and method[0]] = sums_of.get(method and method[0], 0) + n
    p.compare(sums_of, "top", lambda n: 2 * slack("alloc_space", n))
    rig.check(not found["inuse_space"], f"top: nothing is said to be in use: {found['inuse_space']}")


def check_java():
    check_live_java()
    for java in javas():
        p, name = Vm(java), rig.path("java.perf.txt")
        record("-p", p.process.pid, "--alloc", "-o", name, until=p.go)
        found = sums(name, r"allocate\w+")
        p.compare({method: v for method, (v, _) in found["alloc_space"].items()}, java)
        rig.check(not found["inuse_space"], f"{java}: nothing is said to be in use: {found['inuse_space']}")


# ---- The daemon ----

CONFIG = """[profiler]
reporter_interval = 1s
ring_size = 4M
[alloc]
enabled = yes
budget = 100000
[filter]
include_comm = heap-go, heap-c, java
[export:sink]
endpoint = {}
"""


# ---- Python ----

PYTHON = """
import sys
class Node:
    __slots__ = ("value", "next")
def large(n):
    return [bytes(100_000) for _ in range(n)]
def small(n):
    head = None
    for i in range(n):
        node = Node()
        node.value, node.next, head = i + 0.5, head, node
    return head
n_large, n_small = map(int, sys.argv[1:])
kept = large(n_large), small(n_small)
print("python", n_large * sys.getsizeof(bytes(100_000)), n_small * (sys.getsizeof(Node()) + sys.getsizeof(0.5) + sys.getsizeof(n_small)))
"""
PYTHON_SIZES = "400", "300000"


def python_sum(allocator, sizes):
    """(alloc_space of all, bytes of large blocks, bytes of small objects)"""
    name = rig.path(f"python-{next(NUMBERS)}.folded")
    p = record("--alloc", "-o", name, "--", sys.executable, "-c", PYTHON, *sizes,
               env={**os.environ, "PERFWALK_ALLOC_BYTES": str(MEAN), "PYTHONMALLOC": allocator})
    return rig.total(rig.read_folded(name)), *map(int, re.search(r"^python (\d+) (\d+)$", p.text(), re.M).groups())


def check_python():
    """CPython takes small objects out of pieces of its own, which no malloc() is called for; a variable changes that."""
    for allocator, sees_small in (("pymalloc", False), ("malloc", True)):
        empty = python_sum(allocator, ("0", "0"))[0]
        whole, large, small = python_sum(allocator, PYTHON_SIZES)
        want = large + (small if sees_small else 0)
        # Of either sum, and of what else Python allocates in between: its lists.
        slack = 5 * math.sqrt(MEAN * (whole + empty)) + 0.03 * want
        rig.check(abs(whole - empty - want) <= slack, f"Python, {allocator}: {whole - empty} bytes more than a program that does nothing, "
                  f"of {large} in large blocks and {small} in small objects")


def told(sink):
    """{type: {pid: {function of the workload: sum}}} of all windows."""
    found, seen = {kind: {} for kind in KINDS}, set()
    for view in sink.views():
        for r in view.message.resource_profiles:
            pid = otlp.attributes(r.resource, view.strings).get("process.pid")
            for profile in (p for s in r.scope_profiles for p in s.profiles):
                kind = view.strings[profile.sample_type.type_strindex]
                if kind not in KINDS or profile.profile_id in seen:
                    continue  # seen: sent again, as the first answer came too late
                seen.add(profile.profile_id)
                sums = found[kind].setdefault(pid, {})
                for s in profile.samples:
                    m = next((m for m in map(FUNCTION.search, reversed(view.frames(s.stack_index))) if m), None)
                    sums[m and m[0]] = sums.get(m and m[0], 0) + sum(s.values)
    return found


def start_heap(program):
    """The workload that preloads the library, and what it says of itself."""
    p = rig.start([program, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                  env={**os.environ, "LD_PRELOAD": alloc_model.library(), "PERFWALK_ALLOC_BYTES": str(MEAN)})
    text = ""
    while "allocate_grown" not in text:
        text += p.stdout.readline()
    return p, alloc_model.truth(text)


def ask(d, command):
    p = subprocess.run([rig.perfwalk(), "ctl", "-s", d.control, *rig.ctl_words(command)], capture_output=True, text=True, check=False)
    if p.returncode != 0:
        rig.fail(f"ctl {command}: {p.stderr}")
    return dict(line.split(" ", 1) for line in p.stdout.splitlines() if " " in line)


def is_refused(d):
    return "[alloc]" in d.log()


def check_daemon():
    """All of them at the same time."""
    go, directory = rig.path("heap-go"), rig.build_workloads("heap")
    os.rename(os.path.join(directory, "heap"), os.path.join(directory, "heap-c"))
    program, vms = Program(go, "busy"), [Vm(java, "busy") for java in javas()]
    with Sink() as sink:
        d = rig.Daemon(CONFIG.format(sink.endpoint))
        rig.wait_for("the daemon begins, or is refused", lambda: not d.alive() or all(d.roles().values()))
        if not d.alive() and is_refused(d):
            rig.skip("this daemon may not set probes")
        for pid in (d.pid, *d.wait_up().values()):
            os.setpriority(os.PRIO_PROCESS, pid, -15)
        rig.wait_for("a probe in a program that runs", lambda: is_probed(d.log(), program.process.pid) or is_refused(d), 60)
        if is_refused(d):
            rig.skip("this daemon may not set probes")
        rig.wait_for("probes in all VMs", lambda: d.log().count("the allocator of a Java VM is sampled") == len(vms), 60)
        heap, truth = start_heap(os.path.join(directory, "heap-c"))
        for p in (program, *vms):
            p.go()
        own = int(re.search(r"^main\.allocateLarge (\d+)", program.said, re.M)[1])
        of_go = program.process.pid

        def go_told():
            return told(sink)["alloc_space"].get(of_go, {}).get("main.allocateLarge", 0)
        rig.wait_for("windows with all of it", lambda: go_told() >= own - 100, 60)
        rig.check(go_told() <= own + 100, f"the daemon tells {go_told()} bytes of main.allocateLarge, Go's own profile {own}")
        ask(d, "flush")
        # Each VM is in earlier windows, too: the last one is there when as many payloads have come as there were then.
        last = int(ask(d, "status")["payloads"])
        rig.wait_for("the last window", lambda: int(ask(d, "status")["export.sink.payloads_sent"]) >= last, 60)
        found = told(sink)
        in_c = {kind: found[kind].get(heap.pid, {}) for kind in KINDS}
        alloc_model.compare(in_c, truth, 1, "a program with the library", MEAN, ("alloc_space",), 1)
        for vm in vms:
            vm.compare(found["alloc_space"].get(vm.process.pid, {}), f"the daemon: {vm.java}")
            rig.check(not found["inuse_space"].get(vm.process.pid), "of which nothing is said to be in use")
        for p in (program.process, heap):
            p.communicate("\n", timeout=rig.PATIENCE)
        d.stop()


def main():
    rig.need_root()
    rig.need_allocations()
    rig.need_programs("go", "java", "javac")
    check_go()
    check_python()
    build_java()
    check_java()
    check_daemon()


if __name__ == "__main__": # tests/kernels has its judges
    rig.run(main)
