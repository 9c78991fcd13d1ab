# SPDX-License-Identifier: Apache-2.0
"""Stacks of programs whose chains of calls are known, because the program itself has said them."""
import re

import rig

LATE = "[interpreter not read in time]"
UNPROVEN = "[runtime frames not proven]"


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rpartition(")")[2].split()[0]


class Chains:
    """chains: lists of functions, outermost first. native: {innermost function: pattern of native functions that only
    it calls}."""

    def __init__(self, chains, native):
        self.native = native
        self.names = {name for chain in chains for name in chain}
        self.prefixes = {tuple(chain[:n]) for chain in chains for n in range(len(chain) + 1)}

    def verdict(self, frames):
        """"right", "late", "unproven", or "wrong"; None: not of the part that is known."""
        if LATE in frames:
            return "late"
        if UNPROVEN in frames:
            return "unproven"
        ours = [f for f in frames if f in self.names]
        if not ours:
            return None
        if tuple(ours) not in self.prefixes:
            return "wrong"
        inside = frames[len(frames) - frames[::-1].index(ours[-1]):]
        for leaf, pattern in self.native.items():
            if ours[-1] != leaf and any(re.match(pattern, f) for f in inside):
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
        """All chains are such that the program has, and nearly all are known: the host may be busy."""
        counts, wrong = self.judge(stacks)
        n = sum(counts.values())
        text = f"{what}: {n} samples: " + ", ".join(f"{v} {k}" for k, v in counts.items())
        rig.check(n > 50 and counts["right"] > 0.9 * n, text)
        rig.check(counts["wrong"] <= n // 1000, f"{what}: {counts['wrong']} with a chain that the program does not have"
                  + "".join(f"\n{w}" for w in wrong[:5]))
