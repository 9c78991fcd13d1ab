# SPDX-License-Identifier: Apache-2.0
"""What each output must hold of a profile, by the documentation: the model of the writers."""
from collections import Counter, defaultdict
from fractions import Fraction

import folded
import otlp
import pprof
import viewers
from model import (FILE, JIT, KERNEL, MARKER, NONE, RUNTIME, VDSO, add_up, base, clean, comm_of, difference, fallback_name,
                   folded_path, functions, line_name, module_name)

TIMES = ("nanoseconds", "microseconds", "milliseconds", "seconds")


class Mismatch(Exception):
    pass


def same(what, want, have, proportional=False):
    """proportional: where periods differ, values are all multiples of one unit, whichever it is."""
    if proportional and sum(want.values()) and sum(have.values()):
        factor = Fraction(sum(have.values()), sum(want.values()))
        want = Counter({k: v * factor for k, v in want.items()})
    if want != have:
        raise Mismatch(f"{what}:\n{difference(want, have)}")


def chosen_type(profile, event=None):
    """Which of its values counts: the one asked for; else the default or the last, but samples for a
    time or for events of a fixed distance."""
    names = [t for t, _ in profile.types]
    if event:
        return names.index(event)
    i = names.index(profile.default) if profile.default else len(names) - 1
    fixed = profile.period_type[1] == "count" and profile.period > 1
    if "samples" in names and (profile.types[i][1] in TIMES or fixed):
        return names.index("samples")
    return i


def read(profile, form, event=None):
    """The samples that a reader makes of a file: one value each."""
    i = chosen_type(profile, event)
    out = []
    for s in profile.samples:
        task = s.task
        if form == "pprof" and not task.thread:
            task = task._replace(thread=task.comm)
        if form != "otlp":
            task = task._replace(exe="")  # these files do not have it
        out.append(s._replace(task=task, values=(s.values[i],)))
    return out


class Addresses:
    """Where one file and address has two texts only one can have the address; and no address of user
    code is beyond 2^63."""

    def __init__(self, samples):
        texts = defaultdict(set)
        for s in samples:
            for f in s.stack:
                texts[(f.kind, f.module, f.address)].add((f.lines, f.build_id))
        self.shared = {k for k, v in texts.items() if len(v) > 1}

    def of(self, kind, module, address):
        if kind == MARKER or (kind, module, address) in self.shared or (kind != KERNEL and address >> 63):
            return 0
        return address


def task_key(task, *fields):
    return tuple(clean(getattr(task, f)) if isinstance(getattr(task, f), str) else getattr(task, f) for f in fields)


def lines_key(frame, fallback_system=True):
    """The lines as written: every function has a name."""
    if not frame.lines or frame.kind == MARKER:
        name = frame.lines[0].name if frame.lines else fallback_name(frame)
        return ((name, name if fallback_system else "", "", 0, 0, 0),)
    return tuple((line_name(x), clean(x.system or x.name), clean(x.file), x.line, x.column, x.start)
                 for x in frame.lines)


def module_key(frame):
    if frame.kind == FILE:
        return clean(frame.module) or "[unknown]"
    return module_name(frame)


# ---- folded ----

def check_folded(samples, data, proportional=False):
    same("folded", add_up((folded_path(s), s.values[0]) for s in samples), folded.sums(data), proportional)


# ---- pprof ----

PPROF_TASK = ("comm", "pid", "tid", "thread", "container", "container_name", "unit")


def pprof_frame(frame, addresses):
    return (module_key(frame), addresses.of(frame.kind, frame.module, frame.address), frame.build_id,
            lines_key(frame))


def decoded_frame(frame, addresses):
    """Of a file read back: as it stands there."""
    module = frame.module or "[unknown]" if frame.kind == FILE else module_name(frame)
    key = frame.module if module != "[unknown]" and frame.kind == FILE else ""
    lines = tuple((x.name, x.system or x.name, x.file, x.line, x.column, x.start) for x in frame.lines)
    return (module, addresses.of(frame.kind, key, frame.address), frame.build_id, lines or lines_key(frame))


def check_pprof(samples, data, kind=None, proportional=False):
    """kind: (type, unit) of the values, None: plain samples."""
    have = pprof.decode(data)
    names = [t for t, _ in have.types]
    if kind and kind not in have.types:
        raise Mismatch(f"pprof: the types are {have.types}, expected {kind} among them")
    column = have.types.index(kind) if kind else names.index("samples") if not proportional else len(names) - 1
    addresses = Addresses(samples)
    want = add_up((task_key(s.task, *PPROF_TASK) + tuple(pprof_frame(f, addresses) for f in s.stack), s.values[0])
                  for s in samples)
    got = add_up((task_key(s.task, *PPROF_TASK) + tuple(decoded_frame(f, addresses) for f in s.stack),
                  s.values[column]) for s in have.samples)
    same("pprof", want, got, proportional)
    if kind is None and not proportional and have.period_type[1] == "nanoseconds":
        for s in have.samples:
            if s.values[1] != s.values[0] * have.period:
                raise Mismatch(f"pprof: {s.values[1]} ns are not {s.values[0]} samples of {have.period}")
    return have


# ---- OTLP ----

OTLP_TASK = ("comm", "pid", "tid", "thread", "container", "container_name")


def check_otlp(samples, data, proportional=False, times=False, decode=otlp.decode):
    """times: every value is 1, so the file has the time of each."""
    got, stamps = [], []
    addresses = Addresses(samples)
    for p in decode(data):
        for s in p.samples:
            key = task_key(s.task, *OTLP_TASK) + tuple(decoded_frame(f, addresses) for f in s.stack)
            got.append((key, s.values[0]))
            stamps += [(key, t) for t, _ in s.times]
            if not s.times and times:
                raise Mismatch("OTLP: no timestamps")
            if any(not p.time <= t < p.time + p.duration for t, _ in s.times):
                raise Mismatch("OTLP: a timestamp outside of its profile's window")

    def key_of(s):
        return task_key(s.task, *OTLP_TASK) + tuple(pprof_frame(f, addresses) for f in s.stack)

    same("OTLP", add_up((key_of(s), s.values[0]) for s in samples), add_up(got), proportional)
    if times:
        same("OTLP times", Counter((key_of(s), t) for s in samples for t, _ in s.times), Counter(stamps))


# ---- the text of perf script ----

def perf_comm(task):
    """No blank at the ends or before a digit, no # at the start: its readers take the head apart there."""
    name = clean(task.thread) or comm_of(task)
    out = []
    for i, c in enumerate(name):
        odd = c == " " and (i == 0 or i + 1 == len(name) or name[i + 1].isdigit() and name[i + 1].isascii())
        out.append("_" if odd or i == 0 and c == "#" else c)
    return "".join(out)


def perf_module(frame, inlined):
    if inlined:
        return "inlined"
    if frame.kind == FILE:
        name = clean(frame.module) or "[unknown]"
        return "".join("_" if c in " ()" else c for c in name)
    return {KERNEL: "[kernel.kallsyms]", JIT: "[jit]", VDSO: "[vdso]", MARKER: "perfwalk", NONE: "[unknown]",
            RUNTIME: frame.module}[frame.kind]


def perf_stack(sample, addresses):
    out = []
    for frame in reversed(sample.stack):
        address = addresses.of(frame.kind, frame.module, frame.address)
        for i, (name, _, _) in enumerate(functions(frame)):
            if not frame.lines and frame.kind != MARKER:
                name = "[unknown]"
            out.append((name, address, perf_module(frame, i > 0)))
    return tuple(out)


def check_perf_script(samples, data, period=1, proportional=False, times=False):
    addresses = Addresses(samples)
    blind = {a for (_, _, a) in addresses.shared}

    def visible(stack):
        return tuple((n, 0 if a in blind or a >> 63 and "kernel" not in m else a, m) for n, a, m in stack)

    want, stamps = [], []
    for s in samples:
        key = (perf_comm(s.task), s.task.pid, s.task.tid, s.cpu, visible(perf_stack(s, addresses)))
        want.append((key, s.values[0] * period))
        stamps += [(key, t // 1000) for t, _ in s.times]
    have = viewers.perf_script(data)
    got = add_up(((comm, pid, tid, cpu, visible(stack)), value) for comm, pid, tid, cpu, _, value, _, stack in have)
    same("perf script", add_up(want), got, proportional)
    if times:
        same("perf script's times", Counter(stamps),
             Counter(((c, p, t, cpu, visible(st)), us) for c, p, t, cpu, us, _, _, st in have))


# ---- ndjson ----

def check_ndjson(samples, data, period=1, proportional=False):
    def key_of(s):
        t = s.task
        return (clean(t.comm), t.pid, clean(t.thread), t.tid, clean(t.container), clean(t.container_name), clean(t.unit),
                tuple(n for f in reversed(s.stack) for n, _, _ in functions(f)),
                tuple(module_name(f) for f in reversed(s.stack) for _ in functions(f)))

    same("ndjson", add_up((key_of(s), s.values[0] * period) for s in samples), viewers.ndjson(data), proportional)


# ---- speedscope, Firefox ----

def check_speedscope(samples, data, period=1, proportional=False):
    every, threads, _ = viewers.speedscope(data)
    want = add_up(((comm_of(s.task),) + tuple(n for f in reversed(s.stack) for n, _, _ in functions(f)),
                   s.values[0] * period) for s in samples)
    same("speedscope, the sum", want, add_up(every.items()), proportional)

    def title(t):
        return f"{comm_of(t)} (pid {t.pid}, tid {t.tid} {t.thread})"

    want = add_up(((title(s.task),) + tuple(n for f in reversed(s.stack) for n, _, _ in functions(f)),
                   s.values[0] * period) for s in samples)
    got = add_up((tuple(clean(x) for x in k), v) for k, v in threads.items())
    same("speedscope, threads", add_up((tuple(clean(x) for x in k), v) for k, v in want.items()), got, proportional)


def owner_of(task):
    owner = task.unit
    if task.container:
        owner = f"container {task.container_name}{' ' if task.container_name else ''}{task.container[:12]}"
    return clean(owner)


def firefox_process(task):
    return comm_of(task) + (f" ({owner_of(task)})" if owner_of(task) else "")


FIREFOX_KINDS = {"bytes": "bytes", "nanoseconds": "tracing-ms"}


def check_firefox(samples, data, kind=None, proportional=False, times=False):
    def key_of(s):
        places = []
        for frame in reversed(s.stack):
            module = "" if frame.kind in (MARKER, NONE) else module_name(frame)
            for name, _, line in functions(frame):
                known = line is not None and frame.kind != MARKER
                places.append((name, module, clean(line.file) if known else "", line.line if known else 0))
        process = firefox_process(s.task)
        return process, clean(s.task.thread) or process, str(s.task.pid), str(s.task.tid), tuple(places)

    sums, stamps, weights = viewers.firefox(data)
    if kind and weights != FIREFOX_KINDS.get(kind[1], "samples"):
        raise Mismatch(f"Firefox: weights of {kind} are {weights}")
    same("Firefox", add_up((key_of(s), s.values[0]) for s in samples), add_up(sums.items()), proportional)
    if times:
        start = viewers.load(data)["meta"]["startTime"]
        want = Counter(key_of(s) for s in samples for _ in s.times)
        same("Firefox times", want, Counter(k for k, _, _ in stamps))
        want = sorted(t for s in samples for t, _ in s.times)
        have = sorted(start * 1e6 + t * 1e6 for _, t, _ in stamps)
        if any(abs(a - b) > 1000 for a, b in zip(want, have)):
            raise Mismatch("Firefox: times differ by more than a microsecond")


# ---- The page and the picture ----

KINDS = {"": 0, "k": 1, "j": 2, "i": 3}
OWN_KINDS = {MARKER: 4, RUNTIME: 6}
PICTURE_WIDTH, BOX_WIDTH = 1376, Fraction(1, 4)


def call_path(sample):
    """(name, module, kind) from the process on."""
    path = [(comm_of(sample.task), owner_of(sample.task), 5)]
    for frame in reversed(sample.stack):
        path += [(name, module_name(frame), OWN_KINDS.get(frame.kind, KINDS[mark]))
                 for name, mark, _ in functions(frame)]
    return tuple(path)


def check_page(samples, data, proportional=False, times=False):
    rows, _ = viewers.page(data)
    want = add_up((((s.task.tid, s.task.pid, clean(s.task.thread), comm_of(s.task), owner_of(s.task)), s.cpu,
                    call_path(s)), s.values[0]) for s in samples)
    have = add_up(((thread, cpu, tuple(x[:3] for x in path)), value) for thread, cpu, path, _, value, _ in rows)
    same("page", want, have, proportional)
    if times:
        first = min(t for s in samples for t, _ in s.times)
        want = sorted((t - first) // 1000 for s in samples for t, _ in s.times)
        have = sorted(t for _, _, _, t, _, _ in rows)
        if len(want) != len(have) or any(abs(b - have[0] - a) > 1 for a, b in zip(want, have)):
            raise Mismatch(f"page: times {have[:9]}, expected {want[:9]}")


def check_svg(samples, data):
    have, total = viewers.svg(data)
    nodes = Counter()
    for s in samples:
        path = call_path(s)
        for i in range(len(path) + 1):
            nodes[path[:i]] += s.values[0]
    if total != nodes[()]:
        raise Mismatch(f"svg: {total} samples, expected {nodes[()]}")
    want = Counter()
    for path, value in nodes.items():
        if value * PICTURE_WIDTH >= BOX_WIDTH * total:
            want[tuple(name + (f" ({module})" if module else "") for name, module, _ in path)] += value
    same("svg", want, have)


__all__ = [n for n in dir() if n.startswith("check_")] + ["Mismatch", "read", "chosen_type", "same", "base"]
