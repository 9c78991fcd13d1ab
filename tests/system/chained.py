# SPDX-License-Identifier: Apache-2.0
"""Stacks of programs whose chains of calls are known, because the program itself has said them."""
import os
import re
import shutil
import subprocess

import rig

LATE = "[interpreter not read in time]"
UNPROVEN = "[runtime frames not proven]"
UNREAD = "[interpreter not read]"


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rpartition(")")[2].split()[0]


class Interpreter:
    """tests/workloads/calls.* in an interpreter, "php" or "ruby". PHP="COMMAND..." names other commands than the host's
    php (a comma stands for a space), PHP_SECONDS and PHP_RATE how it is sampled."""

    def __init__(self, name, program):
        self.name, self.program = name, os.path.join(rig.WORKLOADS, program)
        self.seconds = float(os.environ.get(f"{name.upper()}_SECONDS", "2"))
        self.rate = os.environ.get(f"{name.upper()}_RATE", "199")

    def commands(self):
        """Skips the test without any."""
        named = os.environ.get(self.name.upper())
        if named is None:
            rig.need_programs(self.name)
            named = os.path.realpath(shutil.which(self.name))
        return [c.split(",") for c in named.split()]

    def says(self, command):
        """Lines: the chains of calls that it says itself."""
        r = subprocess.run([*command, self.program, "once"], stdout=subprocess.PIPE, text=True, check=True)
        return r.stdout.splitlines()

    def start(self, command, *arguments):
        p = rig.start([*command, self.program, *arguments])
        rig.wait_for("the program to run", lambda: rig.cpu_seconds(p.pid) > 0.5)
        return p

    def record(self, p, seconds, *options):
        folded = rig.path("chained.folded")
        rig.record_cpu(seconds, [p.pid], "-p", p.pid, "-F", self.rate, *options, "-o", folded)
        return rig.read_folded(folded)

    def parked(self, command, is_all):
        """Its pid; the lines that it says of the stack in which it sleeps, until is_all(lines); and what debug runtime says
        of it then."""
        p = rig.start([*command, self.program, "parked"], stdout=subprocess.PIPE, text=True)
        truth = []
        while not is_all(truth):
            truth.append(p.stdout.readline().rstrip("\n") or rig.fail(f"{self.name}: the program ended"))
        rig.wait_for("the program to sleep", lambda: state_of(p.pid) == "S")
        r = subprocess.run([rig.perfwalk(), "debug", "runtime", str(p.pid)], stdout=subprocess.PIPE, text=True, check=True)
        rig.end(p)
        return p.pid, truth, r.stdout

    def check_switches(self, command, evaluates, own):
        """--no-interpreters and --no-native-frames. evaluates: a native function that is in each stack of it; own: how
        names of its native functions begin."""
        p = self.start(command)
        frames = {f for s in self.record(p, 0.3, "--no-interpreters") for f in s.user}
        rig.check(evaluates in frames and "chain_main" not in frames, "--no-interpreters: native frames alone")
        stacks = [s for s in self.record(p, 1, "--no-native-frames") if "chain_main" in s.user]
        native = {f for s in stacks for f in s.user if f.startswith(own)}
        rig.check(len(stacks) > 10 and not native, f"--no-native-frames: {len(stacks)} stacks without them {native or ''}")
        rig.end(p)


def check_growing(what, name, pattern):
    """name: samples of one thread, in perf's text. Functions whose names have a number, which only grows, ran one after the
    other: a sample with an earlier one than a sample before it has the name of one that is gone."""
    samples = []
    with open(name, encoding="utf-8") as f:
        for entry in f.read().split("\n\n"):
            time, numbers = re.search(r"(\d+\.\d{6}):", entry), re.findall(pattern, entry)
            if time and numbers:
                samples.append((float(time[1]), int(numbers[0])))
    latest, gone = 0, []
    for _, number in sorted(samples):
        gone += [(number, latest)] if number < latest else []
        latest = max(latest, number)
    n = len({number for _, number in samples})
    rig.check(len(samples) > 20 and n > len(samples) // 10 and latest > n and not gone,
              f"{what}: {len(samples)} samples in {n} functions up to number {latest}, {len(gone)} with the name of one that "
              f"is gone {gone[:5] or ''}")


class Chains:
    """chains: lists of functions, outermost first. native: {innermost function: pattern of native functions that only
    it and those of through call}. plain: makes the name of a frame that of the chains."""

    def __init__(self, chains, native, through=(), plain=str):
        self.native, self.through, self.plain = native, set(through), plain
        self.names = {name for chain in chains for name in chain}
        self.prefixes = {tuple(chain[:n]) for chain in chains for n in range(len(chain) + 1)}

    def verdict(self, frames):
        """"right", "late", "unproven", or "wrong"; None: not of the part that is known."""
        if LATE in frames:
            return "late"
        if UNPROVEN in frames:
            return "unproven"
        frames = [self.plain(f) for f in frames]
        ours = [f for f in frames if f in self.names]
        if not ours:
            return None
        if tuple(ours) not in self.prefixes:
            return "wrong"
        inside = frames[len(frames) - frames[::-1].index(ours[-1]):]
        for leaf, pattern in self.native.items():
            if ours[-1] not in {leaf, *self.through} and any(re.match(pattern, f) for f in inside):
                return "wrong"
        return "right"

    def judge(self, stacks):
        """{verdict: samples}, and the wrong stacks."""
        counts, wrong = {"right": 0, "late": 0, "unproven": 0, "wrong": 0}, []
        for s in stacks:
            v = self.verdict(s.user)
            if v:
                counts[v] += s.n
            if v == "wrong":
                wrong.append((s.n, s.user))
        return counts, wrong

    def check(self, what, stacks):
        """All chains are such that the program has, and nearly all are known: the host may be busy, but nearly all that
        were read in time are right. One without any function that is known counts, too."""
        counts, wrong = self.judge(stacks)
        n = sum(s.n for s in stacks if s.user)
        text = f"{what}: {n} samples: " + ", ".join(f"{v} {k}" for k, v in counts.items())
        holds = n > 50 and counts["right"] > 0.9 * n and counts["right"] >= 0.97 * (n - counts["late"]) - 1
        unknown = [s.user for s in stacks if s.user and self.verdict(s.user) is None]
        rig.check(holds, text + ("" if holds else "".join(f"\n{u}" for u in unknown[:5])))
        rig.check(counts["wrong"] <= n // 1000, f"{what}: {counts['wrong']} with a chain that the program does not have"
                  + "".join(f"\n{w}" for w in wrong[:5]))
