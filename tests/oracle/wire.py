# SPDX-License-Identifier: Apache-2.0
"""Protobuf by hand: just enough to write and read pprof and OTLP without generated code."""

MASK = (1 << 64) - 1


def varint(n):
    n &= MASK
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n, always=False):
    """A varint field; zero is the default and left out."""
    return varint(field << 3) + varint(n) if n or always else b""


def blob(field, value):
    data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def text(field, value):
    return blob(field, value) if value else b""


def packed(field, numbers):
    return blob(field, b"".join(varint(n) for n in numbers)) if numbers else b""


def loose(field, numbers):
    """A repeated number as old writers put it: one field each."""
    return b"".join(number(field, n, True) for n in numbers)


def fixed64(field, n):
    return varint(field << 3 | 1) + (n & MASK).to_bytes(8, "little") if n else b""


def packed_fixed64(field, numbers):
    return blob(field, b"".join(n.to_bytes(8, "little") for n in numbers)) if numbers else b""


def loose_fixed64(field, numbers):
    return b"".join(varint(field << 3 | 1) + n.to_bytes(8, "little") for n in numbers)


def _varint_at(data, at):
    n = shift = 0
    while True:
        byte = data[at]
        at += 1
        n |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return n, at


def fields(data):
    """(field, value) of a message: an int or the bytes of a length-delimited field."""
    at = 0
    while at < len(data):
        tag, at = _varint_at(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint_at(data, at)
        elif kind == 1:
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
        elif kind == 2:
            n, at = _varint_at(data, at)
            if at + n > len(data):
                raise ValueError("a field is cut")
            value, at = data[at:at + n], at + n
        elif kind == 5:
            value, at = int.from_bytes(data[at:at + 4], "little"), at + 4
        else:
            raise ValueError(f"wire type {kind}")
        yield tag >> 3, value


def message(data):
    """Field number to the list of its values."""
    found = {}
    for field, value in fields(data):
        found.setdefault(field, []).append(value)
    return found


def numbers(values):
    """A repeated varint field, packed or not."""
    out = []
    for v in values:
        if isinstance(v, int):
            out.append(v)
            continue
        at = 0
        while at < len(v):
            n, at = _varint_at(v, at)
            out.append(n)
    return out


def fixed64s(values):
    out = []
    for v in values:
        if isinstance(v, int):
            out.append(v)
        else:
            out += [int.from_bytes(v[i:i + 8], "little") for i in range(0, len(v), 8)]
    return out


def signed(n):
    return n - (1 << 64) if n >> 63 else n


def first(found, field, default=0):
    return found.get(field, [default])[0]


class Strings:
    """A string table: "" is 0."""

    def __init__(self):
        self.rows = {"": 0}

    def __call__(self, value):
        return self.rows.setdefault(value, len(self.rows))
