# SPDX-License-Identifier: Apache-2.0
"""Programs whose call tree is known, in the languages people run: 99% of each program's user samples
reach its entry, and the hot path's names come out in order. Each is captured from its exec on
(mappings known from events) and, as far as one process has it all, a second time while it runs
(mappings known from /proc).

    workloads.py [NAME...]     all, or only those
"""
import os
import subprocess
import sys
import time

import rig
from expect import Expectation

RATE = 999
WANTED = 500  # user samples

# name: (what is built, command line in the build directory, expectation, also by process id)
TABLE = {}


def workload(name, *argv, build=None, expect=None, by_pid=True):
    TABLE[name] = (build or [name], argv or (f"./{name}",), expect or name, by_pid)


workload("chain")
for variant in ("static", "static-pie", "nopie", "dynsym", "debugframe", "offset"):
    workload(f"chain-{variant}", expect="chain", by_pid=False)
workload("chain-stripped")
workload("recurse")
workload("frames")
workload("handler")
workload("host", "./host", "./plugin.so")
workload("stages", "./stages", "./chain", build=["stages", "chain"], by_pid=False)
workload("vdso")
workload("jit")
workload("cxx")
workload("rusty")
workload("gopher")
workload("pyloop", "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable,
         "pyloop.py")
# Without inlining, and with a stub of native code per interpreted function, so that every
# function of the script is a frame of its own from the first sample on.
workload("jsloop", "node", "--perf-basic-prof", "--interpreted-frames-native-stack",
         "--no-turbo-inlining", "jsloop.js")


def capture(name, options, directory, seconds):
    """One capture; the user stacks in it."""
    out = rig.path(f"{name}.folded")
    r = rig.record("-F", RATE, "-d", seconds, "-o", out, *options, cwd=directory)
    rig.check(r.status == 0, f"perfwalk record leaves with 0{'' if r.status == 0 else chr(10) + r.text()}")
    return [s for s in rig.read_folded(out) if s.user]


def enough(name, options, directory):
    """Captures until there are enough samples: on a busy host a program gets less of the CPU."""
    for seconds in (2, 6, 15):
        stacks = capture(name, options, directory, seconds)
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


def one(name):
    build, argv, expect, by_pid = TABLE[name]
    directory = rig.build_workloads(*build)
    expectation = Expectation(os.path.join(rig.WORKLOADS, f"{expect}.expect"))
    rig.say(f"{name}: from its exec on")
    good = judge(enough(name, ["--", *argv], directory), expectation)
    if by_pid:
        rig.say(f"{name}: while it runs")
        p = rig.start(argv, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        time.sleep(0.5)
        good = judge(enough(name, ["-p", p.pid], directory), expectation) and good
        rig.end(p)
    return good


def main():
    failed, skipped = [], []
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
