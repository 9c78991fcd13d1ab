# SPDX-License-Identifier: Apache-2.0
# Rooms: runtimes unwind src/profiler src/opener src/broker src/cmd
"""Stacks of Java threads beside HotSpot's own word for them, sample by sample: a signal interrupts a thread anywhere,
its handler passes a probe, at which perfwalk takes a sample of the whole stack, and asks AsyncGetCallTrace() for the
frames that it interrupted (tests/workloads/asgct.c). And stacks of a thread that is stopped at a poll in a known chain
of calls, of which HotSpot's word is wrong. `JAVA="PATH..."` names other programs than the host's java, JAVA_SAMPLES how
many it takes of each."""
import collections
import glob
import os
import re
import shutil
import signal
import subprocess

import rig

SAMPLES = int(os.environ.get("JAVA_SAMPLES", "0")) # 0: some hundred, in two ways
SHOW = int(os.environ.get("JAVA_SHOW", "0")) # of those that differ
PERIOD_NS = 503000
MODES = {
    "as it is": [],
    "interpreted": ["-Xint"],
    "by C1": ["-XX:TieredStopAtLevel=1"],
    "by C2": ["-XX:-TieredCompilation"],
    "code that comes and goes": ["-XX:ReservedCodeCacheSize=3m", "-XX:+UseCodeCacheFlushing"],
}
HEAD = re.compile(r"^.* (\d+)/(\d+) +\[\d+\] (\d+)\.(\d{6}):")
FRAME = re.compile(r"^\t *[0-9a-f]+ (.*) \(([^()]*)\)$")


OUTERMOST = ("Mix.main", "java.lang.Thread.run")
JUDGED = ("equal", "entered", "one more", "not to the end", "different")


def build(java):
    """The directory with the agent and the program, for that version."""
    out = rig.build_workloads("asgct")
    sources = [os.path.join(rig.WORKLOADS, name) for name in ("../runtimes/Mix.java", "Polls.java")]
    version = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    release = "8" if 'version "1.8' in version else "11"
    p = subprocess.run(["javac", "--release", release, "-d", out, *sources], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, check=False)
    if p.returncode != 0:
        rig.fail(f"the programs do not compile:\n{p.stdout}")
    return out


def plain(method):
    """Classes without a name of their own have a number behind it that each tool writes otherwise."""
    return re.sub(r"[/+.](0x[0-9a-f]+|\d+)(?=[.]|$)|0x[0-9a-f]+", "", method)


def read_truths(name):
    """By thread: [(time in us, what the call returned, methods innermost first)]."""
    truths = collections.defaultdict(list)
    with open(name, encoding="utf-8") as f:
        for line in f:
            tid, before, behind, n, *methods = line.split()
            truths[int(tid)].append(((int(before) + int(behind)) // 2000, int(n), [plain(m) for m in methods]))
    return truths


def read_samples(name):
    """[(thread, time in us, frames innermost first)]."""
    samples = []
    with open(name, encoding="utf-8") as f:
        for entry in f.read().split("\n\n"):
            lines = entry.splitlines()
            head = HEAD.match(lines[0]) if lines else None
            if head:
                frames = [m.groups() for m in map(FRAME.match, lines[1:]) if m]
                samples.append((int(head[2]), int(head[3]) * 1000000 + int(head[4]), frames))
    return samples


def java_frames(frames):
    """The methods among them, innermost first, and whether they end with what says that there are more."""
    methods, module = [], ""
    for name, its in reversed(frames):
        # Those that were inlined stand in front of the one that they are in.
        module = its if its != "inlined" else module
        if module == "[jvm]" and "." in name and " " not in name:
            methods.append(plain(name))
    return methods[::-1], frames[-1][1] == "perfwalk"


def verdict(truth, frames):
    methods, cut = java_frames(frames)
    if methods == truth:
        return "equal"
    if cut and methods == truth[:len(methods)]:
        return "not to the end"
    # In Java 11 it does not get through some interpreted frames of strings that are put together.
    if methods[:len(truth)] == truth and methods[-1] in OUTERMOST and truth[-1] not in OUTERMOST:
        return "HotSpot's cut"
    # Of a thread that is stopped at a poll HotSpot says what was put into the method at the next place that it has notes of
    # (is_decipherable_compiled_frame() in forte.cpp). check_polls() shows who is right. The callers are the same.
    if "SafepointBlob" in (name for name, _ in frames) and calls(methods) & calls(truth) and methods[-1] == truth[-1]:
        return "HotSpot's next"
    if methods[1:] != truth:
        return "different"
    # Behind the agent's handler stands the C library's __restore_rt, which may have no name.
    handler = max(i for i, (_, module) in enumerate(frames) if module.endswith("libasgct.so"))
    inside = [name for name, _ in frames[handler + 2:]]
    # HotSpot knows a method only once it has made its frame; and none that was inlined where it looks for a handler of
    # an exception, or for the method that is called.
    return "entered" if plain(inside[0]) == methods[0] else "one more"


def calls(methods):
    return set(zip(methods, methods[1:]))


def judge(truths, samples):
    """{verdict: samples}, and what differs. Only stacks of which HotSpot knows one are judged. Its own word is wrong now
    and then where a method is entered or left, and has calls that no stack has that both agree on."""
    counts, different, agreed = collections.Counter(), [], set()
    for tid, at, frames in samples:
        near = [t for t in truths[tid] if abs(t[0] - at) < PERIOD_NS // 3000]
        if len(near) != 1:
            counts["alone"] += 1
        elif near[0][1] <= 0:
            counts[f"HotSpot's {near[0][1]}"] += 1
        else:
            v = verdict(near[0][2], frames)
            counts[v] += 1
            if v == "equal":
                agreed |= calls(near[0][2])
            if v == "different":
                different.append((near[0][2], frames))
    wrong = [d for d in different if calls(java_frames(d[1])[0]) <= agreed and not calls(d[0]) <= agreed]
    counts["different"] -= len(wrong)
    counts["HotSpot's wrong"] = len(wrong)
    return counts, [d for d in different if d not in wrong]


def check_mode(java, out, what, options, samples):
    words, stacks = rig.path("truths"), rig.path("truth.perf.txt")
    agent = f"{out}/libasgct.so"
    p = rig.start([java, "-Xmx64m", f"-agentpath:{agent}={words},{PERIOD_NS}", *options, "-cp", out, "Mix"])
    rig.wait_for("the program to run", lambda: rig.cpu_seconds(p.pid) > 1.5)
    # The handler and the registers that it saves are on the same stack.
    rig.record_cpu(samples * PERIOD_NS / 1e9, [p.pid], "-p", p.pid, "--stack-size", "65528", "-e",
                   f"uprobe:{agent}:truth_mark", "-o", stacks)
    os.kill(p.pid, signal.SIGTERM)
    p.wait()
    counts, different = judge(read_truths(words), read_samples(stacks))
    n = sum(counts[v] for v in JUDGED)
    said = sum(counts[v] for v in JUDGED[:3])
    # Stacks that do not go to the end say so.
    rig.check(n > samples / 10 and said > 0.9 * n and counts["different"] <= 1 + n // 50,
              f"{what}: " + ", ".join(f"{n} {v}" for v, n in counts.most_common())
              + "".join(f"\nHotSpot: {' '.join(truth)}\nperfwalk: {' '.join(f'{name}' for name, _ in frames[3:])}"
                        for truth, frames in different[:SHOW]))
    return counts


# ---- Polls ----

# The function that a thread at a poll calls, and how the stack goes on below it.
STOP = "_ZN20ThreadSafepointState29handle_polling_page_exceptionEv"
AT_POLL = ["Polls.turns", "Polls.both", "Polls.first", "SafepointBlob"]


def judge_polls(stacks):
    """Of those of a thread at a poll: how many there are, how many are right, and the others."""
    stacks = [s for s in stacks if "SafepointBlob" in s.user]
    wrong = [s for s in stacks if not s.complete() or s.user[:s.user.index("SafepointBlob") + 1][-len(AT_POLL):] != AT_POLL]
    n = rig.total(stacks)
    return n, n - rig.total(wrong), wrong


def check_polls(java, out, what, options):
    """A thread that is stopped at a poll has what was put into its method there, not what the next poll has."""
    p = rig.start([java, "-Xmx64m", "-XX:+UseSerialGC", *options, "-cp", out, "Polls"])
    rig.wait_for("the program to run", lambda: rig.cpu_seconds(p.pid) > 1.5)
    library = glob.glob(os.path.dirname(os.path.dirname(os.path.realpath(java))) + "/**/server/libjvm.so", recursive=True)[0]
    folded = rig.path("polls.folded")
    rig.record_cpu(1, [p.pid], "-p", p.pid, "--stack-size", 65528, "-e", f"uprobe:{library}:{STOP}", "-o", folded)
    rig.end(p)
    n, right, wrong = judge_polls(rig.read_folded(folded))
    # Some hundred-thousandths are in the other method, more where the program was just compiled.
    rig.check(n > 10 and right >= n - 1 - n // 100, f"stopped at polls, {what}: {right} of {n} stacks are those of the poll"
              + "".join(f"\n{s.n} {s.user}" for s in wrong[:5]))


def main():
    rig.need_root()
    rig.need_programs("java", "javac")
    rig.need_tracefs()
    modes = MODES if SAMPLES else {what: MODES[what] for what in ("as it is", "interpreted")}
    for java in os.environ.get("JAVA", shutil.which("java")).split():
        out, total = build(java), collections.Counter()
        for what, options in modes.items():
            total += check_mode(java, out, what, options, SAMPLES // len(MODES) or 600)
        for what in ("by C1", "by C2"):
            check_polls(java, out, what, MODES[what])
        n = sum(total[v] for v in JUDGED)
        rig.check(sum(total[v] for v in JUDGED[:3]) > (0.98 if SAMPLES else 0.9) * n
                  and total["different"] <= 1 + n // 100, f"{java}: of {n} stacks "
                  + ", ".join(f"{total[v]} {v}" for v in JUDGED))


if __name__ == "__main__": # tests/kernels has its judges
    rig.run(main)
