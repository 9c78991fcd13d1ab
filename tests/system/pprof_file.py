# SPDX-License-Identifier: Apache-2.0
"""Small pprof files, made byte by byte: for tests that know what every value is. And reading lines of others."""
import gzip

import rig


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


class Strings:
    def __init__(self):
        self.rows = [""]

    def __call__(self, text):
        if text not in self.rows:
            self.rows.append(text)
        return self.rows.index(text)


def location(*names, address=0, mapping=""):
    """names: innermost first."""
    return (names, address, mapping)


def pprof(name, samples, types, period=None, default="", build="", **head):
    """samples: [(stack, values)] or [(stack, values, labels)], a stack leaf first of locations or names;
    types: [(name, unit)]; period: (name, unit, n). The path of the file."""
    s, out, ids = Strings(), b"", {}

    def number(kind, key, encode):
        nonlocal out
        if (kind, key) not in ids:
            ids[kind, key] = n = sum(k[0] == kind for k in ids) + 1
            out += field(kind, field(1, n) + encode())
        return ids[kind, key]

    def line(function):
        return field(4, field(1, number(5, function, lambda: field(2, s(function)))) + field(2, 1))

    for row in samples:
        stack, values, labels = row if len(row) == 3 else (*row, ())
        where = []
        for loc in stack:
            names, address, mapping = location(loc) if isinstance(loc, str) else loc
            lines = b"".join(line(n) for n in names)
            mapped = field(2, number(3, mapping, lambda m=mapping: field(5, s(m)) + field(6, s(build)))) if mapping else b""
            where.append(number(4, (names, address, mapping), lambda: mapped + field(3, address) + lines))
        out += field(2, field(1, b"".join(map(varint, where))) + field(2, b"".join(map(varint, values)))
                     + b"".join(field(3, field(1, s(k)) + (field(2, s(v)) if isinstance(v, str) else
                                                           field(3, v[0]) + field(4, s(v[1])))) for k, v in labels))
    for kind, unit in types:
        out += field(1, field(1, s(kind)) + field(2, s(unit)))
    if period:
        out += field(11, field(1, s(period[0])) + field(2, s(period[1]))) + field(12, period[2])
    out += field(14, s(default)) + field(9, head.get("time", 0)) + field(10, head.get("duration", 0))
    out += field(7, s(head.get("drop", ""))) + field(8, s(head.get("keep", "")))
    path = rig.path(name)
    with open(path, "wb") as f:
        f.write(out + b"".join(field(6, x) for x in s.rows))
    return path


def numbers(data):
    """Those of a packed field, or of anything that consists of nothing else."""
    found, n, shift = [], 0, 0
    for byte in data:
        n |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            found.append(n)
            n = shift = 0
    return found


def fields(data):
    """(number, value) of a message: whole numbers and bytes."""
    at = 0

    def number():
        nonlocal at
        begin = at
        while data[at] & 128:
            at += 1
        at += 1
        return numbers(data[begin:at])[0]

    while at < len(data):
        key = number()
        value = number()
        if key & 7 == 2:
            at += value
            value = data[at - value:at]
        yield key >> 3, value


def calls_with_lines(path):
    """(function, line) of each frame that has called another one."""
    with gzip.open(path) as f:
        profile = list(fields(f.read()))
    texts = [v.decode() for k, v in profile if k == 6]
    functions = {m[1]: texts[m.get(2, 0)] for k, v in profile if k == 5 for m in [dict(fields(v))]}
    locations = {}
    for k, v in profile:
        if k == 4:
            lines = [dict(fields(line)) for n, line in fields(v) if n == 4]
            locations[dict(fields(v))[1]] = [(functions[line[1]], line.get(2, 0)) for line in lines]
    for k, v in profile:
        if k == 2:
            ids = numbers(next(packed for n, packed in fields(v) if n == 1))
            yield from [line for i in ids for line in locations[i]][1:]
