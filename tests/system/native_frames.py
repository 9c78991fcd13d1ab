# SPDX-License-Identifier: Apache-2.0
# Rooms: src/profile src/import src/render src/symbolizer src/cmd
"""Stacks without the native frames of interpreters, of recorded files in both formats: as a model of three lines says,
for stacks in which several runtimes, their files and other libraries call each other in any order."""
import collections
import random
import re
import subprocess

import rig
from pprof_file import location, pprof

MODULES = ["[cpython]", "[v8js]", "[jvm]", "/usr/lib/libpython3.11.so.1.0", "/usr/bin/node", "/usr/lib/libjvm.so",
           "/usr/lib/libc.so.6", "[kernel.kallsyms]"]


def is_runtime(module):
    return module in MODULES[:3]


def folded(stack):
    """stack: leaf first, of (function, module)."""
    interpreters = {m for (_, callee), (_, m) in zip(stack, stack[1:]) if is_runtime(callee) and m[0] == "/"}
    return ";".join(name for name, m in reversed(stack) if m not in interpreters)


def report(path, *options):
    out = rig.path("out.folded")
    subprocess.run([rig.perfwalk(), "report", *options, path, "-o", out], check=True, capture_output=True)
    counts = collections.Counter()
    with open(out, encoding="utf-8") as f:
        for line in f:
            stack, _, n = line.rpartition(" ")
            counts[re.sub("_\\[[ijk]\\]", "", stack.partition(";")[2])] += int(n)
    return counts


def main():
    rng = random.Random(7)
    stacks = [[(f"f{rng.randrange(4)}_{m}", module) for m, module in
               ((m, MODULES[m]) for m in rng.choices(range(7), k=rng.randrange(1, 12)))] for _ in range(2000)]
    for stack in stacks[::5]:
        stack.insert(0, ("kernel_7", MODULES[7]))
    path = pprof("native.pb", [([location(name, mapping=m) for name, m in s], [1]) for s in stacks], [("samples", "count")])
    otlp = rig.path("native.otlp")
    subprocess.run([rig.perfwalk(), "convert", path, "-o", otlp], check=True, capture_output=True)
    want = collections.Counter(map(folded, stacks))
    whole = collections.Counter(";".join(n for n, _ in reversed(s)) for s in stacks)
    rig.check(len(want) < len(whole), f"{len(whole)} stacks become {len(want)}")
    for name in (path, otlp):
        kept = report(name)
        rig.check(kept == whole, f"{name[-5:]}: all frames without the option"
                  + ("" if kept == whole else f"\n{list((kept - whole).items())[:3]}\n{list((whole - kept).items())[:3]}"))
        have = report(name, "--no-native-frames")
        rig.check(have == want, f"{name[-5:]}: --no-native-frames leaves what the model does"
                  + ("" if have == want else f"\n{list((have - want).items())[:3]}\n{list((want - have).items())[:3]}"))


rig.run(main)
