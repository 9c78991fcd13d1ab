# SPDX-License-Identifier: Apache-2.0
"""What is known of a workload's call tree (tests/workloads/NAME.expect), and the judge of stacks.

    # comment
    entry PATTERN          an outermost frame that counts as the program's entry; repeatable
    switch PATTERN         a function that has changed to another stack: nothing above it can be told; repeatable
    depth PERCENT FRAMES   at least PERCENT of the samples have at least FRAMES user frames
    hot PERCENT            at least PERCENT of the samples hold the frames below, next to each other
      PATTERN              root to leaf; `*` any text, a line `...` any number of frames
    seen PERCENT           the same, and no more is wanted of it

A PERCENT follows from the program, by its loops or its own clock, and not from what something costs on
one processor. Every hot path ends in a function of interest. Of all samples that hold this function, 99% must hold
one of the hot paths that end in it: its callers are right, and in order.
"""
import rig

ENTRY_PERCENT = 99.0
ORDER_PERCENT = 99.0
ORDER_SPARE = 2  # samples: one of a hundred is no percentage


# They say what is missing of an interpreter's own frames; the native stack is whole.
OF_INTERPRETERS = ("[interpreter not read in time]", "[interpreter not read]", "[runtime frames not proven]")


def entry_of(stack):
    """The outermost frame, in a list; an empty one, if the stack ends before it."""
    user = stack.user[1:] if stack.user[:1] and stack.user[0] in OF_INTERPRETERS else stack.user
    return user[:1] if user[:1] and user[0] not in rig.MARKERS else []


class Expectation:
    def __init__(self, name):
        self.entries, self.switches, self.hot, self.seen, self.depth = [], [], [], [], None
        paths = None
        with open(name, encoding="utf-8") as f:
            for line in f:
                words = line.split()
                if not words or words[0].startswith("#"):
                    continue
                if line.startswith(" "):
                    paths[-1][1].append(line.strip())
                elif words[0] == "entry":
                    self.entries.append(line.split(None, 1)[1].strip())
                elif words[0] == "switch":
                    self.switches.append(line.split(None, 1)[1].strip())
                elif words[0] == "depth":
                    self.depth = (float(words[1]), int(words[2]))
                elif words[0] in ("hot", "seen"):
                    paths = self.hot if words[0] == "hot" else self.seen
                    paths.append((float(words[1]), []))
                else:
                    rig.fail(f"{name}: no idea what {line.strip()!r} means")

    def is_whole(self, stack):
        if stack.user[:1] == ["[truncated stack]"]:
            return any(rig.matches(frame, p) for frame in stack.user[1:2] for p in self.switches)
        return any(rig.matches(frame, p) for frame in entry_of(stack) for p in self.entries)

    def judge(self, stacks):
        """Yields (holds, text) for every demand; stacks have user frames."""
        n = rig.total(stacks)
        reached = [s for s in stacks if self.is_whole(s)]
        percent = 100.0 * rig.total(reached) / n if n else 0.0
        text = f"{percent:.2f}% of {n} user samples reach the entry (wanted {ENTRY_PERCENT:g}%)"
        if percent < ENTRY_PERCENT:
            text += worst(s for s in stacks if s not in reached)
        yield percent >= ENTRY_PERCENT, text

        if self.depth:
            wanted, frames = self.depth
            percent = 100.0 * rig.total(s for s in stacks if len(s.user) >= frames) / n
            yield percent >= wanted, f"{percent:.1f}% are {frames} frames deep (wanted {wanted:g}%)"

        for wanted, path in self.hot + self.seen:
            percent = 100.0 * rig.total(s for s in stacks if rig.contains_path(s.user, path)) / n
            shown = path if len(path) <= 8 else path[:3] + [f"[{len(path) - 6} more]"] + path[-3:]
            yield percent >= wanted, f"{percent:.1f}% hold {' > '.join(shown)} (wanted {wanted:g}%)"

        for last in {path[-1] for _, path in self.hot}:
            paths = [path for _, path in self.hot if path[-1] == last]
            there = [s for s in stacks if any(rig.matches(f, last) for f in s.user)]
            right = [s for s in there if any(rig.contains_path(s.user, p) for p in paths)]
            holds, text = in_order(rig.total(right), rig.total(there), last)
            if not holds:
                text += worst(s for s in there if s not in right)
            yield holds, text


def in_order(right, there, last):
    percent = 100.0 * right / max(there, 1)
    return (percent >= ORDER_PERCENT or there - right <= ORDER_SPARE,
            f"{percent:.2f}% of {there} samples in {last} have the right callers in order "
            f"(wanted {ORDER_PERCENT:g}%, or all but {ORDER_SPARE})")


def worst(stacks, n=4):
    """The most frequent of the stacks that fail a demand, for the reader of the log."""
    shown = sorted(stacks, key=lambda s: -s.n)[:n]
    return "".join(f"\n      {s.n}: {';'.join(clip(s.user))}" for s in shown)


def clip(frames):
    return frames if len(frames) <= 24 else frames[:12] + ["..."] + frames[-12:]
