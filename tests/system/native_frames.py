# SPDX-License-Identifier: Apache-2.0
# Rooms: src/profile src/import src/render src/symbolizer src/cmd
"""Stacks without the native frames of interpreters, of recorded files in both formats and in the page: as a model of
some lines says, for stacks in which several runtimes, their files and other libraries call each other in any order."""
import collections
import itertools
import random
import re
import subprocess

import browser
import rig
from pprof_file import location, pprof

MODULES = ["[cpython]", "[v8js]", "[jvm]", "/usr/lib/libpython3.11.so.1.0", "/usr/bin/node", "/usr/lib/libjvm.so",
           "/usr/lib/libc.so.6", "[jit]", "[kernel.kallsyms]"]
KERNEL = len(MODULES) - 1


def is_runtime(module):
    return module in MODULES[:3]


def interpreters(stack, sure=False):
    """stack: leaf first, of (function, module). Files that call a runtime's frame; sure: one that is not the innermost."""
    modules = [m for _, m in stack]
    return {m for i, m in enumerate(modules) if m[0] == "/" and i > 0 and is_runtime(modules[i - 1])
            and (not sure or i > 1 and (modules[i - 2][0] == "/" or is_runtime(modules[i - 2])))}


def folded(stack, everywhere):
    """Without frames of these files, and without runs of compiled code that have a runtime's frame at an end."""
    kept, hidden = [], interpreters(stack) | everywhere
    if not any(is_runtime(m) for _, m in stack):
        return ";".join(name for name, _ in reversed(stack))
    runs = [list(run) for _, run in itertools.groupby(stack, lambda frame: (frame[1] == "[jit]", is_runtime(frame[1])))]
    for before, run, behind in zip([None, *runs], runs, [*runs[1:], None]):
        compiled = run[0][1] == "[jit]" and any(r and is_runtime(r[0][1]) for r in (before, behind))
        kept += [name for name, m in run if not compiled and m not in hidden]
    return ";".join(reversed(kept))


def report(path, *options):
    out = rig.path("out.folded")
    subprocess.run([rig.perfwalk(), "report", *options, path, "-o", out], check=True, capture_output=True)
    counts = collections.Counter()
    with open(out, encoding="utf-8") as f:
        for line in f:
            stack, _, n = line.rpartition(" ")
            counts[re.sub("_\\[[ijk]\\]", "", stack.partition(";")[2])] += int(n)
    return counts


def check_page(path, whole, want):
    """The switch of the page, back and forth."""
    page = rig.path("native.html")
    subprocess.run([rig.perfwalk(), "report", path, "-o", page], check=True, capture_output=True)
    b = browser.Browser()
    try:
        b.open(page)
        for key, expected in (("", whole), ("i", want), ("i", whole)):
            if key:
                b.key(key)
            have = collections.Counter()
            for stack, n in b.js("""(() => { const {tree, samples} = perfwalk.captures[0], s = perfwalk.symbols, out = [];
                for (let i = 0; i < samples.n; i++) {
                    const names = [];
                    for (let at = samples.node[i]; tree.depth[at] > 1; at = tree.parent[at]) names.push(s.name[tree.symbol[at]]);
                    out.push([names.reverse().join(";"), samples.value[i]]);
                }
                return out; })()"""):
                have[stack] += n
            rig.check(have == expected, f"the page {'after key i' if key else 'at first'}: {len(have)} stacks")
            # What the view adds up is the tree's.
            b.key("2")
            rows = dict(b.js("""[...document.querySelectorAll("#table tbody tr")].map((r) => [r.cells[2].textContent, r.cells[0].textContent])"""))
            leaves = collections.Counter()
            for stack, n in expected.items():
                leaves[stack.rpartition(";")[2]] += n
            wrong = [(name, rows.get(name), n) for name, n in leaves.items() if str(n) not in re.findall(r"[0-9]+", rows.get(name, ""))]
            rig.check(not wrong, f"its table of functions adds up the same {wrong[:3] or ''}")
            b.key("1")
        rig.check(b.complaints == [], f"complaints of the browser: {b.complaints}")
        b.open(page, "#native=hidden")
        n = b.js("perfwalk.captures[0].tree.n")
        b.open(page)
        rig.check(n < b.js("perfwalk.captures[0].tree.n"), "a link keeps the choice")
    finally:
        b.close()


def random_stacks(rng):
    """Two files call runtimes in some stacks, two others their innermost frames alone. Every fifth is in the kernel."""
    stacks = []
    while len(stacks) < 2000:
        chosen = [MODULES[m] for m in rng.choices(range(KERNEL), k=rng.randrange(1, 12))]
        stack = [(f"f{rng.randrange(4)}_{MODULES.index(m)}", m) for m in chosen]
        if len(stacks) % 5 == 0:
            stack.insert(0, (f"kernel_{KERNEL}", MODULES[KERNEL]))
        if interpreters(stack, True) <= set(MODULES[3:5]):
            stacks.append(stack)
    return stacks


def main():
    stacks = random_stacks(random.Random(7))
    path = pprof("native.pb", [([location(name, mapping=m) for name, m in s], [1]) for s in stacks], [("samples", "count")])
    otlp = rig.path("native.otlp")
    subprocess.run([rig.perfwalk(), "convert", path, "-o", otlp], check=True, capture_output=True)
    everywhere = set().union(*(interpreters(s, True) for s in stacks))
    rig.check(everywhere == set(MODULES[3:5]), f"files that surely call runtimes: {everywhere}")
    want = collections.Counter(folded(s, everywhere) for s in stacks)
    whole = collections.Counter(";".join(n for n, _ in reversed(s)) for s in stacks)
    rig.check(len(want) < len(whole), f"{len(whole)} stacks become {len(want)}")
    for name in (path, otlp):
        kept = report(name)
        rig.check(kept == whole, f"{name[-5:]}: all frames without the option"
                  + ("" if kept == whole else f"\n{list((kept - whole).items())[:3]}\n{list((whole - kept).items())[:3]}"))
        have = report(name, "--no-native-frames")
        rig.check(have == want, f"{name[-5:]}: --no-native-frames leaves what the model does"
                  + ("" if have == want else f"\n{list((have - want).items())[:3]}\n{list((want - have).items())[:3]}"))
    if browser.find():
        check_page(path, whole, want)
    else:
        print("not tested: the page, for which there is no chromium")


rig.run(main)
