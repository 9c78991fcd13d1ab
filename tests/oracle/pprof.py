# SPDX-License-Identifier: Apache-2.0
"""pprof (profile.proto), written and read."""
import gzip

from model import FILE, KERNEL, MARKER, MARKERS, Frame, Line, Profile, Sample, Task, kind_of_module
from wire import Strings, blob, first, loose, message, number, numbers, packed, signed

MODULE_OF_KIND = {KERNEL: "[kernel.kallsyms]", "jit": "[jit]", "vdso": "[vdso]", MARKER: "", FILE: ""}
OURS = ("pid", "tid", "thread", "comm", "container", "container_name", "unit")


def labels_of(task):
    texts = {"thread": task.thread, "comm": task.comm, "container": task.container,
             "container_name": task.container_name, "unit": task.unit}
    labels = [("pid", "", task.pid, ""), ("tid", "", task.tid, "")]
    return labels + [(k, v, 0, "") for k, v in texts.items() if v]


class Writer:
    """Tables with ids of the rng's choice; in any order, packed or not: all of it is allowed."""

    def __init__(self, rng):
        self.rng = rng
        self.strings = Strings()
        self.tables = {3: {}, 4: {}, 5: {}}  # by field of Profile: content to id
        self.messages = []
        self.packed = packed if rng.random() < 0.8 else loose
        self.step = rng.choice((1, 1, 7, 1 << 40))

    def row(self, field, content):
        table = self.tables[field]
        if content not in table:
            table[content] = 1 + len(table) * self.step
            self.messages.append((field, number(1, table[content]) + content))
        return table[content]

    def function(self, line):
        s = self.strings
        return self.row(5, number(2, s(line.name)) + number(3, s(line.system)) + number(4, s(line.file))
                        + number(5, line.start))

    def location(self, frame):
        s = self.strings
        module = frame.module or MODULE_OF_KIND[frame.kind]
        mapping = 0
        if module:
            mapping = self.row(3, number(5, s(module)) + number(6, s(frame.build_id)))
        lines = b"".join(blob(4, number(1, self.function(x)) + number(2, x.line) + number(3, x.column))
                         for x in frame.lines)
        return self.row(4, number(2, mapping) + number(3, frame.address) + lines)

    def sample(self, sample):
        s = self.strings
        labels = labels_of(sample.task) + list(sample.labels)
        self.rng.shuffle(labels)
        body = self.packed(1, [self.location(f) for f in sample.stack]) + self.packed(2, sample.values)
        for key, text, n, unit in labels:
            body += blob(3, number(1, s(key)) + number(2, s(text)) + number(3, n) + number(4, s(unit)))
        self.messages.append((2, body))


def encode(profile, rng):
    w = Writer(rng)
    s = w.strings
    head = b"".join(blob(1, number(1, s(t)) + number(2, s(u))) for t, u in profile.types)
    if any(profile.period_type):
        head += blob(11, number(1, s(profile.period_type[0])) + number(2, s(profile.period_type[1])))
    head += number(12, profile.period) + number(9, profile.time) + number(10, profile.duration)
    head += number(14, s(profile.default))
    for sample in profile.samples:
        w.sample(sample)
    if rng.random() < 0.3:
        rng.shuffle(w.messages)
    data = head + b"".join(blob(f, m) for f, m in w.messages) + b"".join(blob(6, x) for x in s.rows)
    return gzip.compress(data, 1) if rng.random() < 0.8 else data


def decode(data):
    """A Profile as it stands there, but for the program's own labels, which make the task."""
    found = message(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    strings = [x.decode() for x in found.get(6, [])]
    table = {f: {first(m, 1): m for m in map(message, found.get(f, []))} for f in (3, 4, 5)}

    def text(m, field):
        return strings[first(m, field)]

    def type_of(data):
        m = message(data)
        return text(m, 1), text(m, 2)

    def frame(i):
        m = table[4][i]
        mapping = table[3].get(first(m, 2), {})
        module = text(mapping, 5)
        lines = []
        for line in map(message, m.get(4, [])):
            f = table[5][first(line, 1)]
            lines.append(Line(text(f, 2), text(f, 3), text(f, 4), first(line, 2), first(line, 3), first(f, 5)))
        kind = kind_of_module(module)
        if len(lines) == 1 and lines[0].name in MARKERS:
            kind = MARKER
        return Frame(kind, module, first(m, 3), tuple(lines), text(mapping, 6))

    frames = {i: frame(i) for i in table[4]}
    profile = Profile([type_of(x) for x in found.get(1, [])])
    if 11 in found:
        profile.period_type = type_of(found[11][0])
    profile.period = signed(first(found, 12))
    profile.time, profile.duration = first(found, 9), first(found, 10)
    profile.default = text(found, 14)
    profile.comments = [strings[i] for i in numbers(found.get(13, []))]
    for m in map(message, found.get(2, [])):
        labels = {}
        others = []
        for label in map(message, m.get(3, [])):
            key, value = text(label, 1), text(label, 2) or signed(first(label, 3))
            if key in OURS:
                labels[key] = value
            else:
                others.append((key, text(label, 2), signed(first(label, 3)), text(label, 4)))
        task = Task(labels.get("comm", ""), labels.get("pid", 0), labels.get("tid", 0), labels.get("thread", ""),
                    labels.get("container", ""), labels.get("container_name", ""), labels.get("unit", ""))
        profile.samples.append(Sample(task, tuple(frames[i] for i in numbers(m.get(1, []))),
                                      tuple(signed(v) for v in numbers(m.get(2, []))), labels=tuple(sorted(others))))
    return profile
