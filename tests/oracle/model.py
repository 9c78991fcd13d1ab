# SPDX-License-Identifier: Apache-2.0
"""What a profile is, independent of any file and of the program: samples of tasks with stacks of
frames, leaf first, and what the documentation says frames and tasks are called."""
import os
import re
from collections import Counter
from typing import NamedTuple

FILE, KERNEL, JIT, VDSO, MARKER = "file", "kernel", "jit", "vdso", "marker"
RUNTIME, NONE = "runtime", "none"  # an interpreter's own frames, "[cpython]", without addresses; in no mapping
RUNTIMES = ("beam", "cpython", "dotnet", "hermes", "jvm", "luajit", "perl", "php", "ruby", "v8js")
MARKERS = ("[truncated stack]", "[no mapping]", "[file not readable]", "[no unwind information]",
           "[bad unwind information]", "[broken stack]", "[too deep]", "[no user registers]", "[32-bit program]",
           "[interpreter not read in time]", "[interpreter not read]")
MAX_NAME = 2047  # bytes of a name in any output


class Line(NamedTuple):
    name: str
    system: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    start: int = 0


class Frame(NamedTuple):
    """lines: the innermost inlined function first, the function itself last; none: not named."""
    kind: str = FILE
    module: str = ""
    address: int = 0
    lines: tuple = ()
    build_id: str = ""


class Task(NamedTuple):
    comm: str = ""
    pid: int = 0
    tid: int = 0
    thread: str = ""
    container: str = ""
    container_name: str = ""
    unit: str = ""
    exe: str = ""


class Sample(NamedTuple):
    task: Task
    stack: tuple
    values: tuple  # one for each of the profile's types
    times: tuple = ()  # (time, value) of each single sample, where the file has them
    cpu: int = 0
    labels: tuple = ()  # (key, text, number, unit) that perfwalk has no meaning for


class Profile:
    def __init__(self, types=(("samples", "count"),), samples=(), period_type=("", ""), period=0, default="",
                 time=0, duration=0):
        self.types = list(types)
        self.samples = list(samples)
        self.period_type = period_type
        self.period = period
        self.default = default
        self.time = time
        self.duration = duration

    def replaced(self, **fields):
        p = Profile(self.types, self.samples, self.period_type, self.period, self.default, self.time, self.duration)
        p.__dict__.update(fields)
        return p


def clean(text):
    """Control characters and bytes that are no UTF-8 become '?'."""
    return "".join("?" if ord(c) < 32 or 127 <= ord(c) < 160 or 0xd800 <= ord(c) < 0xe000 else c for c in text)


def base(path):
    name = path.rsplit("/", 1)[-1]
    return name or path


def module_name(frame):
    if frame.kind == FILE:
        return clean(base(frame.module)) or "[unknown]"
    return {KERNEL: "[kernel]", JIT: "[jit]", VDSO: "[vdso]", MARKER: "", NONE: "[unknown]",
            RUNTIME: frame.module}[frame.kind]


def fallback_name(frame):
    """Of a frame without a name."""
    if frame.kind == FILE:
        module = module_name(frame)
        return f"[{'?' if module[0] == '[' else module}+{frame.address:#x}]"
    if frame.kind == VDSO:
        return f"[vdso+{frame.address:#x}]"
    return module_name(frame)


def line_name(line):
    return clean(line.name or line.system)


def functions(frame):
    """(name, mark, line) of a frame's functions, outermost first; mark: k, j, i (inlined) or ''."""
    own = {KERNEL: "k", JIT: "j"}.get(frame.kind, "")
    if not frame.lines:
        return [(fallback_name(frame), own, None)]
    plain = own or frame.kind == RUNTIME
    return [(line_name(line), own if plain or i == 0 else "i", line) for i, line in enumerate(reversed(frame.lines))]


def comm_of(task):
    return clean(task.comm) or f"[{task.pid}]"


def service_of(task):
    """What names itself has its own name; nobody here does."""
    return clean(base(task.exe).removesuffix(" (deleted)")) or comm_of(task)


def folded_path(sample):
    path = [comm_of(sample.task).replace(";", ":")]
    for frame in reversed(sample.stack):
        for name, mark, _ in functions(frame):
            path.append(name.replace(";", ":") + (f"_[{mark}]" if mark else ""))
    return ";".join(path)


def names_of(stack):
    """Root first, without marks: what tools that know no kinds of functions see."""
    return tuple(name for frame in reversed(stack) for name, _, _ in functions(frame))


def add_up(pairs):
    """A Counter without zeros: a stack whose values cancel out is none."""
    c = Counter()
    for key, value in pairs:
        c[key] += value
    return Counter({k: v for k, v in c.items() if v})


def folded_sums(samples):
    return add_up((folded_path(s), s.values[0]) for s in samples)


def flat_and_cum(samples, key=lambda sample, name, frame, line: name):
    """Of each key of functions: the values of samples whose leaf it is, and in which it is."""
    flat, cum = Counter(), Counter()
    for s in samples:
        keys = [key(s, name, f, line) for f in reversed(s.stack) for name, _, line in functions(f)]
        if keys:
            flat[keys[-1]] += s.values[0]
        for k in set(keys):
            cum[k] += s.values[0]
    return flat, cum


def difference(want, have, limit=6):
    """What differs between two Counters, as text; '' when nothing does."""
    lines = []
    for key in list(want) + [k for k in have if k not in want]:
        if want.get(key, 0) != have.get(key, 0):
            text = repr(key) if len(repr(key)) < 400 else repr(key)[:200] + " ... " + repr(key)[-190:]
            lines.append(f"  {text}: expected {want.get(key, 0)}, got {have.get(key, 0)}")
    more = f"\n  and {len(lines) - limit} more" if len(lines) > limit else ""
    return "\n".join(lines[:limit]) + more


def kind_of_module(name):
    if re.match(r"\[kernel|\[guest\.kernel", name):
        return KERNEL
    if name == "[vdso]":
        return VDSO
    if name in ("[jit]", "//anon"):
        return JIT
    if name[:1] == "[" and name[-1:] == "]" and name[1:-1] in RUNTIMES:
        return RUNTIME
    return FILE


def write_file(path, data):
    with open(path, "wb") as f:
        f.write(data)


def suffix(path):
    name = os.path.basename(path)
    return name[name.index("."):]
