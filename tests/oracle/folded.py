# SPDX-License-Identifier: Apache-2.0
"""Folded stacks, written and read: "process;function;function COUNT", the leaf last."""
from collections import Counter

from model import FILE, JIT, KERNEL, MARKER, MARKERS, Frame, Line, Profile, Sample, Task, folded_path


def encode(profile, rng):
    lines = [f"{folded_path(s)} {s.values[0]}" for s in profile.samples]
    if rng.random() < 0.1:
        lines.insert(0, "# a comment")
    end = "\r\n" if rng.random() < 0.1 else "\n"
    return (end.join(lines) + (end if rng.random() < 0.9 else "")).encode("utf-8", "surrogateescape")


def read_path(path):
    """A task and a stack, leaf first. What follows a function with _[i] was inlined into it."""
    comm, *names = path.split(";")
    frames = []
    for i, name in enumerate(names):
        mark = name[-2] if len(name) > 4 and name[-4:-2] == "_[" and name[-1] == "]" and name[-2] in "kji" else ""
        name = name[:-4] if mark else name
        if mark == "i" and i > 0:
            frames[-1] = frames[-1]._replace(lines=(Line(name),) + frames[-1].lines)
            continue
        kind = {"k": KERNEL, "j": JIT}.get(mark, MARKER if name in MARKERS else FILE)
        frames.append(Frame(kind, lines=(Line(name),)))
    return Task(comm, thread=comm), tuple(reversed(frames))


def decode(data):
    """A Profile of one count; with two counts a line (of a diff) the values are two."""
    profile = Profile()
    for line in data.decode().splitlines():
        if not line or line[0] == "#":
            continue
        path, *values = line.rsplit(" ", 1)
        profile.samples.append(Sample(*read_path(path), tuple(map(int, values))))
    return profile


def sums(data):
    c = Counter()
    for line in data.decode().split("\n"):
        if line:
            path, value = line.rsplit(" ", 1)
            c[path] += int(value)
    return c


def decode_two(data):
    """Stacks with two counts."""
    found = {}
    for line in data.decode().split("\n"):
        if line:
            path, before, after = line.rsplit(" ", 2)
            if path in found:
                raise ValueError(f"{path} stands twice")
            found[path] = (int(before), int(after))
    return found
