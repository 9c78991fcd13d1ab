# SPDX-License-Identifier: Apache-2.0
"""Values of recorded files, made here byte by byte, come out as they are: under the right names, in
their units, added up with their periods, whatever order the files are given in. Where go is
installed, go tool pprof says what it reads from the same files."""
import gzip
import re
import subprocess

import rig


# ---- Files ----

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


def pprof(name, samples, types, period=None, default="", **head):
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
            mapped = field(2, number(3, mapping, lambda m=mapping: field(5, s(m)))) if mapping else b""
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


# ---- What is made of them ----

def run(*args, status=0):
    p = subprocess.run([rig.perfwalk(), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       stdin=subprocess.DEVNULL, timeout=60, check=False)
    if p.returncode != status:
        rig.fail(f"perfwalk {' '.join(args)} ends with {p.returncode}: {p.stdout}{p.stderr}")
    return p


def stacks(*args):
    """{stack without the process: value} and what standard error says."""
    p = run("convert", *args, "--format", "folded", "-o", "-")
    rows = [l.rsplit(" ", 1) for l in p.stdout.splitlines()]
    return {re.sub(r"_\[[kji]\]", "", k).partition(";")[2]: int(v) for k, v in rows}, p.stderr


def expect(want, what, *args):
    have, err = stacks(*args)
    rig.check(have == want, what + ("" if have == want else f": got {have}, expected {want}"))
    return err


COUNT = ("samples", "count")


def names():
    """A frame keeps its name, whatever address it has, or has not."""
    f = pprof("made-up.pb", [([location("g", address=1 << 63 | 2)], [1]), ([location("h")], [2])], [COUNT])
    expect({"g": 1, "h": 2}, "an address above 2^63 is one like others", f)
    same = pprof("same.pb", [([location("f", address=0x401000, mapping="/bin/x")], [1]),
                             ([location("f", address=0x401000, mapping="/lib/y.so")], [2]),
                             ([location("g", address=0x401000, mapping="/bin/x")], [4]),
                             ([location("h", address=0x401000)], [8]), (["k"], [16]), (["k2"], [32])], [COUNT])
    want = {"f": 3, "g": 4, "h": 8, "k": 16, "k2": 32}
    expect(want, "one address, several names", same)
    for suffix in ("pb.gz", "otlp"):
        again = rig.path(f"again.{suffix}")
        run("convert", same, "-o", again)
        expect(want, f"the same of a {suffix} file", again)
        expect({k: 2 * v for k, v in want.items()}, f"and of two {suffix} files", again, again)
    with gzip.open(rig.path("again.pb.gz")) as f:
        data = f.read()
    rig.check(b"\x80" * 7 not in data, "no address is made up in an output")
    f = pprof("nothing.pb", [([location()], [1]), ([location(mapping="/lib/y.so")], [2])], [COUNT])
    expect({"[unknown]": 1, "[y.so]": 2}, "frames with nothing are called so", f)


def rows(path, *args):
    """{function: self} as report has it."""
    out = run("report", path, "--csv", "--sort", "symbol", "--percent-limit", "0", *args).stdout
    return {r.split("\t")[3]: int(r.split("\t")[2]) for r in out.splitlines()[1:]}


def negative():
    """The difference of two profiles, as go tool pprof -proto -diff_base writes it."""
    f = pprof("difference.pb", [(["a", "main"], [10]), (["b", "main"], [-4]), (["a", "main"], [-3])], [COUNT])
    rig.check(rows(f) == {"a": 7, "b": -4, "main": 0}, f"report adds them up: {rows(f)}")
    for suffix in ("pb.gz", "otlp"):
        run("convert", f, "-o", rig.path(f"minus.{suffix}"))
        have = rows(rig.path(f"minus.{suffix}"))
        rig.check(have == {"a": 7, "b": -4, "main": 0}, f"{suffix} holds them: {have}")
    err = expect({"main;a": 7}, "folded stacks cannot", f)
    rig.check("1 stacks" in err and " -4 in all" in err, f"and what they cannot hold is said: {err.strip()}")
    for suffix in ("html", "svg", "speedscope.json", "json", "perf.txt"):
        err = run("convert", f, "-o", rig.path(f"minus.{suffix}"), status=1).stderr
        rig.check("below 0" in err and f"minus.{suffix}" in err, f"{suffix} is refused: {err.strip()}")
    err = run("diff", f, f, status=1).stderr
    rig.check("below 0" in err and "difference.pb" in err, f"diff refuses it: {err.strip()}")
    out = run("report", f).stdout
    rig.check(re.search(r"-36\.36% +-36\.36%.*\bb$", out, re.M), "shares are of the sum of the sizes, as pprof's are")


def main():
    names()
    negative()


rig.run(main)
