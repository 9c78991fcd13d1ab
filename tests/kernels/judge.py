# SPDX-License-Identifier: Apache-2.0
"""judge.py NAME FILE [SAID]: PASS or FAIL, and why: what a guest has recorded of a workload, or of one in another flavour
(NAME-FLAVOUR), as workloads.py judges its folded stacks; or of calls.* in an interpreter, as its system test does. SAID:
the chains of calls that the program says itself, or of truth-* what HotSpot does. Of heap the file has what it said and perf script's text, and its sums
are judged as allocations.py judges them."""
import contextlib
import importlib
import io
import os
import re
import sys

import alloc_model
import allocators
import java
import java_truth
import rig
from chained import Chains
from expect import Expectation

WANTED = 200  # user samples
MEAN = 65536  # the guest's PERFWALK_ALLOC_BYTES
# How the chains are divided that they say.
INTERPRETERS = {"python": None, "python-perf": None, "php": " ", "ruby": "|", "node": None}


def judge_interpreter(name, folded, said):
    """An emulated reader may be late, and says so; what it reads must be right."""
    module = importlib.import_module(name.partition("-")[0])
    stacks = [s for s in rig.read_folded(folded) if s.user]
    if INTERPRETERS[name]:
        with open(said[0], encoding="utf-8") as f:
            chains = [line.split(INTERPRETERS[name]) for line in f.read().splitlines()]
        counts, wrong = Chains(chains, module.NATIVE).judge(stacks)
    else:
        counts, wrong = (module if name == "node" else module.KNOWN).judge(stacks)
    n = rig.total(stacks)
    # Threads of the collector and the compiler have no chain.
    in_time = n - counts["late"]
    # By -X perf each function has a name in a perf map, too, and is no second one.
    counts["twice"] = rig.total([s for s in stacks if any(f.startswith("py::") for f in s.user)])
    good = (counts["right"] >= WANTED and counts["right"] > 0.6 * in_time and counts["unproven"] < 0.1 * in_time
            and counts["wrong"] <= n // 1000 and counts["twice"] <= 2)
    print("PASS" if good else "FAIL", f"{n} samples:", ", ".join(f"{v} {k}" for k, v in counts.items()),
          "".join(f"; wrong: {w}" for w in wrong[:3]))


def judge_java(name, folded):
    """As java.py does, but the profiler of a slow machine may be late, and says so."""
    stacks = [s for s in rig.read_folded(folded) if s.user]
    counts, _, wrong = java.judge(stacks, name == "java-inlined")
    in_time = sum(counts.values()) - counts["late"]
    good = counts["whole"] >= WANTED and counts["whole"] > 0.9 * in_time and not counts["wrong"]
    print("PASS" if good else "FAIL", ", ".join(f"{v} {k}" for k, v in counts.items()), "".join(f"; {w.user}" for w in wrong[:5]))


def judge_java_polls(folded):
    n, right, wrong = java_truth.judge_polls([s for s in rig.read_folded(folded) if not any("not read in time" in f for f in s.user)])
    print("PASS" if n >= WANTED // 4 and right >= n - 1 - n // 100 else "FAIL", f"{right} of {n} are those of the poll",
          "".join(f"; wrong: {s.user}" for s in wrong[:3]))


def judge_java_truth(texts, said):
    samples = java_truth.read_samples(texts)
    in_time = [s for s in samples if not any("not read in time" in frame for frame, _ in s[2])]
    counts, different = java_truth.judge(java_truth.read_truths(said), in_time)
    counts["late"] = len(samples) - len(in_time)
    n = sum(counts[v] for v in java_truth.JUDGED)
    good = n >= WANTED and sum(counts[v] for v in java_truth.JUDGED[:3]) > 0.9 * n and counts["different"] <= 1 + n // 50
    print("PASS" if good else "FAIL", f"{n} judged:", ", ".join(f"{v} {k}" for k, v in counts.most_common()),
          "".join(f"; HotSpot: {t}, perfwalk: {f}" for t, f in different[:3]))


def judge_java_heap(texts):
    """All together is what the program allocates; no method has more than its own, and some has none of what was not read
    in time. The last buffer of a method may be used by the next one."""
    with contextlib.redirect_stdout(io.StringIO()):
        found = allocators.sums(texts, r"allocate\w+")
    with open(texts, encoding="utf-8") as f:
        total = sum(map(int, re.findall(r": +(\d+) alloc_space:", f.read())))
    sums = {method: found["alloc_space"].get(method, (0, 0))[0] for method in allocators.JAVA}
    truth = sum(allocators.JAVA.values())
    good = (abs(total - truth) <= allocators.JAVA_BUFFERS + 0.02 * truth and sum(sums.values()) > 0.2 * truth
            and all(sums[m] <= allocators.JAVA_BUFFERS + 1.01 * n for m, n in allocators.JAVA.items()))
    print("PASS" if good and not found["inuse_space"] else "FAIL", f"{total} of {truth} bytes:",
          ", ".join(f"{m} {sums[m]} of {n}" for m, n in allocators.JAVA.items()))


def judge_heap(name):
    with open(name, encoding="utf-8") as f:
        paths = alloc_model.truth(f.read())
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            rig.check(len(paths) == 6, f"{len(paths)} paths")
            alloc_model.compare(alloc_model.sums(name), paths, 1, "allocations", MEAN)
    except rig.Failure as e:
        print("FAIL", e)
    else:
        print("PASS", said.getvalue().splitlines()[-1].removeprefix("ok: "))


def judge_stacks(name, folded):
    # Where a record was lost, timeout(1) of busybox has the name of the program that it becomes.
    stacks = [s for s in rig.read_folded(folded)
              if s.user and s.comm == name[:15] and not s.user[0].startswith("[busybox")]
    verdicts = [(rig.total(stacks) >= WANTED, f"{rig.total(stacks)} user samples (wanted {WANTED})")]
    if stacks:
        expectation = Expectation(os.path.join(rig.WORKLOADS, name.partition("-")[0] + ".expect"))
        expectation.entries.append("[ld-linux*")  # starting takes long in an emulated machine
        verdicts += expectation.judge(stacks)
    holds = all(good for good, _ in verdicts)
    print("PASS" if holds else "FAIL", "; ".join(text for good, text in verdicts if good == holds))


def main():
    name, file, *said = sys.argv[1:]
    if name in INTERPRETERS:
        judge_interpreter(name, file, said)
    elif name == "java-heap":
        judge_java_heap(file)
    elif name.startswith("java-polls"):
        judge_java_polls(file)
    elif name.startswith("java-"):
        judge_java(name, file)
    elif name.startswith("truth-"):
        judge_java_truth(file, said[0])
    elif name == "heap":
        judge_heap(file)
    else:
        judge_stacks(name, file)


main()
