# SPDX-License-Identifier: Apache-2.0
# Rooms: unwind symbolize src/sample src/host src/profiler src/symbolizer src/opener
"""Programs whose call tree is known, in the languages people run: 99% of each program's user samples
reach its entry, and the hot path's names come out in order. Each is captured from its exec on
(mappings known from events) and, as far as one process has it all, a second time while it runs
(mappings known from /proc).

Some lose their file while they run: it is deleted, replaced, or a FIFO stands in its place.

    workloads.py [NAME...]     all, or only those
"""
import atexit
import os
import re
import shutil
import subprocess
import sys

import rig
from expect import Expectation, in_order

RATE = 999
WANTED = 500  # user samples
CPU_SECONDS = (1, 3, 10)  # of a capture; the next when there are fewer samples

TABLE = {}


class Workload:
    """argv runs in the build directory. before(file) is done to a copy of the program before it
    runs, after(file) while it does. more(directory) judges what the expectation cannot say. in_stages:
    its CPU time is that of several processes."""

    def __init__(self, name, argv, build, expect, by_exec, by_pid, before, after, more, in_stages):
        self.name, self.argv, self.build = name, argv, build
        self.by_exec, self.by_pid, self.before, self.after = by_exec, by_pid, before, after
        self.more, self.in_stages = more, in_stages
        self.expect = os.path.join(rig.WORKLOADS, f"{expect}.expect")


def workload(name, *argv, build=None, expect=None, by_exec=True, by_pid=True, before=None, after=None,
             more=None, in_stages=False):
    TABLE[name] = Workload(name, argv or (f"./{name}",), build or [name], expect or name,
                           by_exec, by_pid, before, after, more, in_stages)


def split_debug_file(file):
    """As distributions do: the symbols go to a file of their own, found by the build id."""
    notes = subprocess.run(["readelf", "-n", file], stdout=subprocess.PIPE, text=True, check=True).stdout
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)[1]
    debug = f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    rig.make_directory(os.path.dirname(debug))
    atexit.register(lambda: os.path.exists(debug) and os.unlink(debug))
    subprocess.run(["objcopy", "--only-keep-debug", file, debug], check=True)
    subprocess.run(["strip", file], check=True)


def replace_by_another(file):
    """As an upgrade does: another program, by rename, under the same name."""
    shutil.copy(os.path.join(os.path.dirname(file), "recurse"), file + ".new")
    os.rename(file + ".new", file)


def replace_by_fifo(file):
    os.unlink(file)
    os.mkfifo(file)


def read_perf_script(name):
    """Yields the frames of each sample, leaf first: address in the file, name, file."""
    with open(name, encoding="utf-8") as f:
        for block in f.read().split("\n\n"):
            yield [(int(address, 16), function, file) for address, function, file in
                   re.findall(r"^\s+([0-9a-f]+) (.*) \((.*)\)$", block, re.M)]


def check_32_bit():
    """A 32-bit program is not walked, but its samples have their program counter and say so."""
    if os.uname().machine != "x86_64":
        return
    name = rig.path("thirty-two")
    source = rig.write("thirty-two.c", """
volatile unsigned sink;
__attribute__((noinline)) void burn(void) { for (unsigned i = 0; i < 300000000; i++) sink += i; }
void _start(void) { burn(); __asm__ volatile("int $0x80" : : "a"(1), "b"(0)); }
""")
    flags = ("-m32", "-O1", "-static", "-nostdlib", "-fno-pie", "-no-pie", "-fno-stack-protector", "-fcf-protection=none")
    subprocess.run(["gcc", *flags, "-o", name, source], check=True)
    out = rig.path("thirty-two.folded")
    r = rig.record("-F", RATE, "-o", out, "--", name)
    user = [s for s in rig.read_folded(out) if s.comm == "thirty-two"]
    n, right = rig.total(user), rig.total(s for s in user if re.fullmatch(
        r"\[32-bit program\];\[thirty-two\+0x[0-9a-f]+\]", ";".join(s.user)))
    rig.check(n > 50 and right >= n * 0.95, f"{right} of {n} samples of a 32-bit program have its address, and say that it is one")
    rig.check(re.search(r"^  of 32-bit programs +\d", r.out, re.M) and "no registers" not in r.out, "and so does the summary")


THROW = ["_Unwind_RaiseException", "__cxa_throw", *["shop::thrower(int)*"] * 13, "shop::catcher()", "shop::work()"]


def judge_throw(directory):
    """The callers of _Unwind_RaiseException are right, but where it has written over its return address:
    the program steps through a throw and tells the addresses of these instructions."""
    rig.say("cxx: a throw, as far as the stack has it")
    p = rig.start(["./cxx", "landing"], cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    lost = {int(address, 16) for address in p.stdout.readline().split()}
    out = rig.path("throw.perf.txt")
    r = rig.record_cpu(2, [p.pid], "-F", RATE, "-o", out, "--no-inline", "-p", p.pid)
    rig.end(p)
    rig.check(r.status == 0 and lost, f"{len(lost)} instructions of libgcc run without its return address"
              if r.status == 0 else r.text())

    samples = [[f for f in frames if "kernel" not in f[2]] for frames in read_perf_script(out)]
    there = [frames for frames in samples if any(name == THROW[0] for _, name, _ in frames)]
    judged = [frames for frames in there if not ("libgcc" in frames[0][2] and frames[0][0] in lost)]
    right = [frames for frames in judged if rig.contains_path([name for _, name, _ in frames], THROW)]
    rig.say(f"  {len(there) - len(judged)} of {len(there)} samples in {THROW[0]} were taken there")
    holds, text = in_order(len(right), len(judged), THROW[0])
    holds = holds and len(judged) > 100
    rig.say(f"  {'ok' if holds else 'NOT OK'}: {text}")
    for frames in [] if holds else [f for f in judged if f not in right][:4]:
        rig.say(f"      {' '.join(f'{address:x}:{name}' for address, name, _ in frames[:8])}")
    return holds


workload("chain")
for variant in ("static", "static-pie", "nopie", "dynsym", "debugframe", "offset"):
    workload(f"chain-{variant}", expect="chain", by_pid=False)
workload("chain-stripped")
workload("chain-split", build=["chain"], expect="chain", by_pid=False, before=split_debug_file)
for variant, after in (("deleted", os.unlink), ("replaced", replace_by_another), ("fifo", replace_by_fifo)):
    workload(f"chain-{variant}", build=["chain", "recurse"], expect="chain", by_exec=False, after=after)
workload("recurse")
workload("frames")
workload("registers")
workload("handler")
workload("host", "./host", "./plugin.so")
workload("stages", "./stages", "./chain", build=["stages", "chain"], by_pid=False, in_stages=True)
workload("vdso")
workload("jit")
workload("cxx", more=judge_throw)
workload("rusty")
workload("gopher")
workload("pyloop", "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable,
         "pyloop.py")
# Without inlining, and with a stub of native code per interpreted function, so that every
# function of the script is a frame of its own from the first sample on.
workload("jsloop", "node", "--perf-basic-prof", "--interpreted-frames-native-stack",
         "--no-turbo-inlining", "jsloop.js")


def enough(name, record):
    """The user stacks of a capture with enough samples: by the program's CPU time, as a busy host gives it less."""
    out = rig.path(f"{name}.folded")
    for seconds in CPU_SECONDS:
        r = record(seconds, out)
        # 124, 137: the command's own status, when timeout(1) or its limit ended it.
        rig.check(r.status in (0, 124, 137), f"a capture of {seconds} s" if r.status in (0, 124, 137) else r.text())
        stacks = [s for s in rig.read_folded(out) if s.user]
        if rig.total(stacks) >= WANTED:
            break
    rig.check(rig.total(stacks) >= WANTED, f"{rig.total(stacks)} user samples (wanted {WANTED})")
    return stacks


def judge(stacks, expectation):
    good = True
    for holds, text in expectation.judge(stacks):
        rig.say(f"  {'ok' if holds else 'NOT OK'}: {text}")
        good = good and holds
    return good


def run_by_exec(w, directory):
    """Captures it from its exec on, until it has had its CPU time, which the kernel limits."""
    def record(seconds, out):
        limit = ["sh", "-c", f'ulimit -t {seconds} && exec "$@"', "sh"]
        if w.in_stages:
            limit = ["timeout", 2 * seconds]
        return rig.record("-F", RATE, "-o", out, "--", *limit, *w.argv, cwd=directory)
    return [s for s in enough(w.name, record) if s.comm not in ("sh", "timeout")]


def run_by_pid(w, directory, program):
    """Starts it, does to its file what is to be done, captures it by its process id."""
    p = rig.start(w.argv, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    rig.wait_for("it runs", lambda: rig.cpu_seconds(p.pid) >= 0.3)
    if w.after:
        w.after(program)
    stacks = enough(w.name, lambda seconds, out: rig.record_cpu(
        seconds, [p.pid], "-F", RATE, "-o", out, "-p", p.pid, cwd=directory))
    rig.end(p)
    return stacks


def one(name):
    w = TABLE[name]
    directory = rig.build_workloads(*w.build)
    program = os.path.join(directory, w.name)
    if w.before or w.after:
        shutil.copy(os.path.join(directory, w.build[0]), program)
    if w.before:
        w.before(program)
    expectation = Expectation(w.expect)
    good = True
    if w.by_exec:
        rig.say(f"{name}: from its exec on")
        good = judge(run_by_exec(w, directory), expectation)
    if w.by_pid:
        rig.say(f"{name}: while it runs")
        good = judge(run_by_pid(w, directory, program), expectation) and good
    if w.more:
        good = w.more(directory) and good
    return good


def main():
    failed, skipped = [], []
    if len(sys.argv) == 1:
        check_32_bit()
    for name in sys.argv[1:] or TABLE:
        try:
            if not one(name):
                failed.append(name)
        except rig.Failure as e:
            rig.say(f"  NOT OK: {e}")
            failed.append(name)
        except rig.Skip as e:
            rig.say(f"{name}: SKIP: {e}")
            skipped.append(f"{name} ({e})")
    rig.check(not failed, f"all workloads come out right{': not ' + ', '.join(failed) if failed else ''}")
    if skipped:
        rig.skip("not built: " + ", ".join(skipped))


rig.run(main)
