# SPDX-License-Identifier: Apache-2.0
"""OTLP profiles (v1development, as in proto/), written and read."""
import gzip

from model import (FILE, JIT, KERNEL, MARKER, RUNTIME, RUNTIMES, VDSO, Frame, Line, Profile, Sample, Task,
                   kind_of_module)
from wire import (Strings, blob, first, fixed64, fixed64s, loose, loose_fixed64, message, number, numbers, packed,
                  packed_fixed64, signed, text)

MAPPING, LOCATION, FUNCTION, LINK, STRING, ATTRIBUTE, STACK = range(1, 8)
FRAME_TYPES = {KERNEL: "kernel", JIT: "v8js", MARKER: "abort-marker", FILE: "native", VDSO: "native"}


def any_value(value):
    return blob(1, value) if isinstance(value, str) else number(3, value, True)


class Writer:
    def __init__(self, rng):
        self.rng = rng
        self.strings = Strings()
        self.tables = {t: {b"": 0} for t in (MAPPING, LOCATION, FUNCTION, LINK, ATTRIBUTE, STACK)}
        self.packed = packed if rng.random() < 0.8 else loose

    def row(self, table, content):
        rows = self.tables[table]
        return rows.setdefault(content, len(rows))

    def attribute(self, key, value):
        if isinstance(value, str) and value and self.rng.random() < 0.2:
            body = number(8, self.strings(value), True)
        else:
            body = any_value(value)
        return self.row(ATTRIBUTE, number(1, self.strings(key)) + blob(2, body))

    def mapping(self, frame):
        # What a runtime has compiled has an address or a mapping, its other frames have neither.
        jit = "[jit]" if not frame.address else ""
        module = frame.module or {VDSO: "[vdso]", KERNEL: "[kernel]" if frame.build_id else "", JIT: jit}.get(frame.kind, "")
        if not module or frame.kind == RUNTIME:
            return 0
        ids = []
        if frame.build_id:
            ids = [self.attribute("process.executable.build_id.gnu", frame.build_id)]
        return self.row(MAPPING, number(4, self.strings(module)) + self.packed(5, ids))

    def location(self, frame):
        s = self.strings
        lines = b""
        for x in frame.lines:
            function = number(1, s(x.name)) + number(2, s(x.system)) + number(3, s(x.file)) + number(4, x.start)
            lines += blob(3, number(1, self.row(FUNCTION, function)) + number(2, x.line) + number(3, x.column))
        kind = frame.module[1:-1] if frame.kind == RUNTIME else FRAME_TYPES[frame.kind]
        types = [self.attribute("profile.frame.type", kind)]
        return self.row(LOCATION, number(1, self.mapping(frame)) + number(2, frame.address) + lines
                        + self.packed(4, types))

    def stack(self, stack):
        return self.row(STACK, self.packed(1, [self.location(f) for f in stack]))

    def sample(self, sample, value):
        task = sample.task
        attributes = [self.attribute("thread.id", task.tid), self.attribute("cpu.logical_number", sample.cpu)]
        if task.thread:
            attributes.append(self.attribute("thread.name", task.thread))
        body = number(1, self.stack(sample.stack)) + self.packed(2, attributes)
        if not sample.times:
            return body + self.packed(4, [value])
        if any(v != 1 for _, v in sample.times) or self.rng.random() < 0.3:
            body += self.packed(4, [v for _, v in sample.times])
        stamps = packed_fixed64 if self.rng.random() < 0.8 else loose_fixed64
        return body + stamps(5, [t for t, _ in sample.times])

    def value_type(self, pair):
        return number(1, self.strings(pair[0])) + number(2, self.strings(pair[1]))

    def profile(self, profile, samples, index, attributes):
        times = [t for s in samples for t, _ in s.times] or [profile.time]
        head = blob(1, self.value_type(profile.types[index])) + blob(5, self.value_type(profile.period_type))
        head += number(6, profile.period) + fixed64(3, min(times + [profile.time]))
        head += number(4, max(times) + 1 - min(times + [profile.time]))
        head += self.packed(11, [self.attribute(k, v) for k, v in attributes])
        return head + b"".join(blob(2, self.sample(s, s.values[index])) for s in samples if s.values[index])

    def resource(self, task, comm_in_profile):
        pairs = [("process.pid", task.pid), ("container.id", task.container), ("systemd.unit", task.unit)]
        if task.container_name.count("/") == 2:
            keys = ("k8s.namespace.name", "k8s.pod.name", "k8s.container.name")
            pairs += zip(keys, task.container_name.split("/"))
        else:
            pairs.append(("container.name", task.container_name))
        pairs.append(("process.executable.path", task.exe))
        if task.comm and not comm_in_profile:
            key = "process.executable.name" if task.exe else self.rng.choice(("process.executable.name", "service.name"))
            pairs.append((key, task.comm))
        return b"".join(blob(1, text(1, k) + blob(2, any_value(v))) for k, v in pairs if v)

    def dictionary(self):
        out = b""
        for table, rows in self.tables.items():
            out += b"".join(blob(table, content) for content in rows)
        return out + b"".join(blob(STRING, s) for s in self.strings.rows)


def encode_message(profile, rng, counters=()):
    """One ProfilesData: a resource for each process, in it a profile for each type. counters: of the first one, as
    perfwalk writes them."""
    w = Writer(rng)
    by_task = {}
    for s in profile.samples:
        key = s.task._replace(tid=0, thread="")
        by_task.setdefault(key, []).append(s)
    body = b""
    for task, samples in by_task.items():
        in_profile = bool(task.comm) and rng.random() < 0.5
        attributes = [("perfwalk.comm", task.comm)] if in_profile else []
        if not body:
            attributes += counters
        profiles = b"".join(blob(2, w.profile(profile, samples, i, attributes)) for i in range(len(profile.types)))
        scope = blob(1, text(1, "perfwalk" if counters else "oracle")) + profiles
        body += blob(1, blob(1, w.resource(task, in_profile)) + blob(2, scope))
    return body + blob(2, w.dictionary())


def encode(profile, rng):
    n = rng.choice((1, 1, 1, 2, 3))
    if n == 1:
        data = encode_message(profile, rng)
        return gzip.compress(data, 1) if rng.random() < 0.2 else data
    # Each message behind its length; gzipped or not.
    out = b""
    for i in range(n):
        part = profile.replaced(samples=profile.samples[i::n])
        if part.samples:
            data = encode_message(part, rng)
            data = gzip.compress(data, 1) if rng.random() < 0.3 else data
            out += len(data).to_bytes(4, "big") + data
    return out


class Dictionary:
    def __init__(self, data):
        found = message(data)
        self.strings = [x.decode() for x in found.get(STRING, [])]
        self.tables = {t: [message(x) for x in found.get(t, [])] for t in range(1, 8) if t != STRING}

    def text(self, m, field):
        return self.strings[first(m, field)]

    def attributes(self, m, field):
        pairs = []
        for i in numbers(m.get(field, [])):
            a = self.tables[ATTRIBUTE][i]
            value = message(first(a, 2, b""))
            pairs.append((self.text(a, 1), value_of(value, self.strings)))
        return dict(pairs)

    def frame(self, index):
        m = self.tables[LOCATION][index]
        mapping = self.tables[MAPPING][first(m, 1)]
        module = self.text(mapping, 4)
        lines = []
        for line in map(message, m.get(3, [])):
            f = self.tables[FUNCTION][first(line, 1)]
            lines.append(Line(self.text(f, 1), self.text(f, 2), self.text(f, 3), first(line, 2), first(line, 3),
                              first(f, 4)))
        what = self.attributes(m, 4).get("profile.frame.type", "")
        kind = {"kernel": KERNEL, "abort-marker": MARKER}.get(what, kind_of_module(module))
        if what in RUNTIMES:
            kind, module = (JIT, module) if module or first(m, 2) else (RUNTIME, f"[{what}]")
        return Frame(kind, module, first(m, 2), tuple(lines),
                     self.attributes(mapping, 5).get("process.executable.build_id.gnu", ""))


def value_of(value, strings=()):
    if 8 in value:
        return strings[value[8][0]]
    return value[1][0].decode() if 1 in value else first(value, 3)


def pairs_of(messages):
    return {first(m, 1, b"").decode(): value_of(message(first(m, 2, b""))) for m in map(message, messages)}


def task_of(resource, attributes):
    parts = [resource.get("k8s." + k + ".name", "") for k in ("namespace", "pod", "container")]
    return Task(attributes.get("perfwalk.comm") or resource.get("process.executable.name")
                or resource.get("service.name", ""), resource.get("process.pid", 0),
                container=resource.get("container.id", ""),
                container_name=resource.get("container.name", "") or "/".join(x for x in parts if x),
                unit=resource.get("systemd.unit", ""), exe=resource.get("process.executable.path", ""))


def decode_profile(d, m, resource):
    def type_of(data):
        t = message(data)
        return d.text(t, 1), d.text(t, 2)

    attributes = d.attributes(m, 11)
    profile = Profile([type_of(first(m, 1, b""))], period_type=type_of(first(m, 5, b"")), period=first(m, 6),
                      time=first(m, 3), duration=first(m, 4))
    profile.attributes, profile.resource = attributes, resource
    task = task_of(resource, attributes)
    for s in map(message, m.get(2, [])):
        facts = d.attributes(s, 2)
        stack = tuple(d.frame(i) for i in numbers(d.tables[STACK][first(s, 1)].get(1, [])))
        values = [signed(v) for v in numbers(s.get(4, []))]
        times = fixed64s(s.get(5, []))
        if times and values and len(times) != len(values):
            raise ValueError("values and timestamps differ in number")
        pairs = tuple(zip(times, values or [1] * len(times)))
        who = task._replace(tid=facts.get("thread.id", 0), thread=facts.get("thread.name", ""))
        profile.samples.append(Sample(who, stack, (sum(values) if values else len(times),), pairs,
                                      facts.get("cpu.logical_number", 0)))
    return profile


def decode(data):
    """All profiles of a file, each of one type."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    found = message(data)
    d = Dictionary(found[2][0])
    profiles = []
    for rp in map(message, found.get(1, [])):
        resource = pairs_of(message(first(rp, 1, b"")).get(1, []))
        for scope in map(message, rp.get(2, [])):
            profiles += [decode_profile(d, message(x), resource) for x in scope.get(2, [])]
    return profiles
