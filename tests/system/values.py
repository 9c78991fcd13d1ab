# SPDX-License-Identifier: Apache-2.0
# Rooms: src/import src/render src/profile proto
"""Values of recorded files, made here byte by byte, come out as they are: under the right names, in
their units, added up with their periods, whatever order the files are given in. Where go is
installed, go tool pprof says what it reads from the same files."""
import gzip
import re
import subprocess

import rig
from pprof_file import Strings, field, location, pprof, varint


# ---- Files ----

def head(scope, time, duration, counters):
    """What turns a profile of otlp() into one of a scope, at a time, with attributes."""
    return scope, fixed64(3, time, packed=False) + field(4, duration), counters


def otlp(name, *profiles, heads=()):
    """profiles: (type, unit, period type, unit, period, [(stack, values)]), names leaf first; of a tuple of three
    the third are more fields of the sample."""
    s, stacks, out = Strings(), [()], b""
    functions = []
    for *_, samples in profiles:
        functions += [f for stack, *_ in samples for f in stack if f not in functions]
        stacks += [stack for stack, *_ in samples if stack not in stacks]
    attributes = [b""]
    for i, (kind, unit, period_kind, period_unit, period, samples) in enumerate(profiles):
        scope, fields, counters = heads[i] if heads else ("", b"", {})
        for key, value in counters.items():
            attributes.append(field(1, s(key)) + field(2, field(3, value)))
            fields += field(11, len(attributes) - 1)
        out += field(2, field(1, field(1, scope)) + field(2, fields + field(1, field(1, s(kind)) + field(2, s(unit)))
                     + field(5, field(1, s(period_kind)) + field(2, s(period_unit))) + field(6, period)
                     + b"".join(field(2, field(1, stacks.index(stack)) + field(4, b"".join(map(varint, values)))
                                      + b"".join(more)) for stack, values, *more in samples)))
    tables = {1: [b""], 2: [b""] + [field(3, field(1, i + 1)) for i in range(len(functions))],
              3: [b""] + [field(1, s(f)) for f in functions], 4: [b""], 6: attributes,
              7: [field(1, b"".join(varint(functions.index(f) + 1) for f in stack)) for stack in stacks]}
    tables[5] = [x.encode() for x in s.rows]
    dictionary = b"".join(field(n, row) for n in sorted(tables) for row in tables[n])
    path = rig.path(name)
    with open(path, "wb") as f:
        f.write(field(1, field(1, b"") + out) + field(2, dictionary))
    return path


# ---- What is made of them ----

def run(*args, status=0):
    p = subprocess.run([rig.perfwalk(), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       stdin=subprocess.DEVNULL, timeout=120, check=False)
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


NS = 10**6
CPU, BYTES = ("cpu", "nanoseconds"), ("alloc_space", "bytes")


def cpu_profile(name, stack, n, period_ms, **head):
    return pprof(name, [(stack, [n, n * period_ms * NS])], [COUNT, CPU], (*CPU, period_ms * NS), **head)


def periods():
    """Samples of different periods are added up by their time, whatever comes first."""
    a, b = cpu_profile("10ms.pb", ["a"], 100, 10), cpu_profile("1ms.pb", ["b"], 1000, 1)
    c = cpu_profile("10ms-too.pb", ["c"], 5, 10)
    want = {"a": 1000 * NS, "b": 1000 * NS, "c": 50 * NS}
    expect({"a": 100, "c": 5}, "samples of one period are counted", a, c)
    for order in ((a, b, c), (b, c, a), (c, a, b)):
        expect(want, "samples of several are added up by their time", *order)
    out = run("report", a, b).stdout
    rig.check("samples of 10 ms, samples of 1 ms" in out and "1 ms" in out and "1100 samples" in out, f"the head says so: {' | '.join(out.splitlines()[:3])}")
    for suffix in ("pb.gz", "otlp"):
        both = rig.path(f"both.{suffix}")
        run("convert", a, b, "-o", both)
        expect(want, f"what is written as {suffix} can be added to", both, c)
        expect(want, "in either order", c, both)
    kinds = [("samples", "count", *CPU, n * NS, [((f,), [100])]) for f, n in (("a", 10), ("b", 1))]
    expect({"a": 1000 * NS, "b": 100 * NS}, "two profiles of an OTLP file", otlp("two.otlp", *kinds))
    expect({"a": 1000 * NS, "b": 100 * NS}, "in the other order", otlp("owt.otlp", *kinds[::-1]))
    events = [pprof(f"{n}.pb", [(["e"], [100, 100 * n])], [COUNT, ("branches", "count")], ("branches", "count", n))
              for n in (10, 1000)]
    for order in (events, events[::-1]):
        expect({"e": 101000}, "events of fixed distances", *order)
    folded = rig.write("counts.folded", "p;f 3\n")
    expect({"a": 100, "f": 3}, "folded stacks count as samples", a, folded)
    for files in ((a, b, folded), (folded, a, b), (a, folded, b)):
        err = run("convert", *files, "--format", "folded", "-o", "-", status=1).stderr
        rig.check("not say what their counts are" in err, f"but not where samples differ: {err.strip()}")


def kinds():
    """Values of different kinds are never added up."""
    cpu = cpu_profile("cpu.pb", ["a"], 3, 10)
    heap = pprof("heap.pb", [(["b"], [5, 7000])], [("alloc_objects", "count"), BYTES])
    err = expect({"a": 3}, "the first file's kind is read", cpu, heap)
    rig.check("heap.pb" in err and "left out" in err and "alloc_space:bytes" in err, f"and the others are named: {err}")
    expect({"b": 7000}, "whichever is first", heap, cpu)
    more = pprof("more.pb", [(["c"], [1000, 9])], [BYTES, ("inuse_objects", "count")])
    expect({"b": 7000, "c": 1000}, "a file's values of that kind are found", heap, more)
    for pair, words in (((cpu, heap), "cpu:nanoseconds"), ((heap, cpu), "alloc_space:bytes")):
        err = run("diff", *pair, status=1).stderr
        rig.check("the other file" in err and words in err, f"diff refuses different kinds: {err.strip()}")
    err = run("convert", heap, rig.write("n.folded", "p;f 3\n"), "--format", "folded", "-o", "-", status=1).stderr
    rig.check("alloc_space:bytes" in err, f"numbers of nothing are not added to bytes: {err.strip()}")
    # Kinds are told apart by unit and period type, too.
    f = otlp("units.otlp", ("events", "nanoseconds", "", "", 0, [(("a",), [5 * NS])]),
             ("events", "count", "", "", 0, [(("b",), [3])]))
    err = expect({"a": 5 * NS}, "events in nanoseconds are not events counted", f)
    rig.check("events:count" in err, f"what is left out: {err.strip()}")
    expect({"b": 3}, "--event NAME:UNIT chooses", f, "-e", "events:count")
    err = expect({"a": 5 * NS}, "NAME takes the first", f, "-e", "events")
    rig.check("events:count" in err, f"and says which others have that name: {err.strip()}")
    f = otlp("periods.otlp", ("samples", "count", *CPU, 10 * NS, [(("a",), [3])]),
             ("samples", "count", "alloc", "bytes", 512, [(("b",), [70])]))
    expect({"a": 3}, "samples of time are not samples of bytes", f)
    for event, want in (("cpu", {"a": 3}), ("alloc", {"b": 70}), ("alloc/bytes", {"b": 70})):
        expect(want, f"--event {event}", f, "-e", event)


def choice():
    """Of several values of a sample the one that was asked for."""
    f = pprof("default.pb", [(["a"], [3, 3000]), (["b"], [1, 9000])], [COUNT, BYTES], default="alloc_space")
    expect({"a": 3000, "b": 9000}, "the default", f)
    expect({"a": 3000, "b": 9000}, "the default by name", f, "-e", "alloc_space")
    expect({"a": 3, "b": 1}, "its samples", f, "-e", "samples")
    f = pprof("time.pb", [(["a"], [1, 5 * NS]), (["b"], [1, 95 * NS])], [COUNT, CPU], (*CPU, 10 * NS))
    for event in ((), ("-e", "cpu")):
        expect({"a": 5 * NS, "b": 95 * NS}, "a time that is not samples by period", f, *event)
    f = cpu_profile("go.pb", ["a"], 220, 10)
    expect({"a": 220}, "samples where both say the same", f)
    expect({"a": 2200 * NS}, "--event cpu is the time", f, "-e", "cpu")
    f = pprof("three.pb", [(["a"], [1, 10 * NS, 77])], [COUNT, CPU, BYTES], (*CPU, 10 * NS))
    for event, want in (((), 77), (("-e", "alloc_space"), 77), (("-e", "cpu"), 10 * NS), (("-e", "samples"), 1)):
        expect({"a": want}, f"three types {' '.join(event)}", f, *event)
    f = pprof("twins.pb", [(["a"], [3, 30 * NS])], [("cpu", "count"), CPU])
    expect({"a": 30 * NS}, "two types of one name: the last", f)
    for event, want in (("cpu", 3), ("cpu:count", 3), ("cpu:nanoseconds", 30 * NS), ("cpu/nanoseconds", 30 * NS)):
        expect({"a": want}, f"--event {event}", f, "-e", event)


def units():
    """Bytes and times stay what they are."""
    heap = pprof("bytes.pb", [(["a"], [2, 3 << 20])], [("inuse_objects", "count"), ("inuse_space", "bytes")])
    for unit, scale in (("microseconds", 1000), ("milliseconds", NS), ("seconds", 10**9)):
        f = pprof(f"{unit}.pb", [(["a"], [3, 30])], [COUNT, ("delay", unit)], ("delay", unit, 10))
        expect({"a": 3}, f"{unit}: samples", f)
        expect({"a": 30 * scale}, f"{unit}: nanoseconds", f, "-e", "delay")
        run("convert", f, "-o", rig.path("delay.pb.gz"))
        expect({"a": 30 * scale}, "and again", rig.path("delay.pb.gz"), "-e", "delay:nanoseconds")
    for time in ("off_cpu", "wall"):
        f = pprof(f"{time}.pb", [(["a"], [3, 30000])], [COUNT, (time, "nanoseconds")], (time, "nanoseconds", 10000))
        expect({"a": 3}, f"{time}: samples", f)
        expect({"a": 30}, f"{time}: microseconds", f, "-e", time)
    f = pprof("no-period.pb", [(["a"], [3, 30 * NS])], [COUNT, CPU])
    expect({"a": 30 * NS}, "a time without a period", f)
    for file, text in ((heap, b"bytes"), (f, b"nanoseconds")):
        for suffix in ("pb.gz", "otlp", "speedscope.json"):
            run("convert", file, "-o", rig.path(f"unit.{suffix}"))
            with open(rig.path(f"unit.{suffix}"), "rb") as o:
                data = o.read()
            data = gzip.decompress(data) if suffix == "pb.gz" else data
            rig.check(text in data, f"{suffix} says {text.decode()}")


def fixed64(number, *values, packed):
    data = [v.to_bytes(8, "little") for v in values]
    return field(number, b"".join(data)) if packed else b"".join(varint(number << 3 | 1) + d for d in data)


def timestamps():
    times = [(1700000000 + i) * 10**9 for i in range(3)]
    forms = {"packed": fixed64(5, *times, packed=True), "not packed": fixed64(5, *times, packed=False),
             "in two pieces": fixed64(5, *times[:1], packed=True) + fixed64(5, *times[1:], packed=True)}
    for name, form in forms.items():
        for values, n in (([], 3), ([4, 5, 6], 15), ([8], 8)):
            f = otlp("times.otlp", ("samples", "count", *CPU, 10 * NS, [(("f",), values, form)]))
            out = run("convert", f, "--format", "perf-script", "-o", "-").stdout
            have = [float(x) for x in re.findall(r" ([0-9.]+): ", out)]
            rig.check(have == [t / 1e9 for t in times], f"timestamps {name}, {len(values)} values: {have}")
            expect({"f": n}, "and the values", f)


def heads():
    """Counts and times of files in which several writers are, and of several files."""
    start, second = 1700000000 * 10**9, 10**9
    mine = {"perfwalk.samples": 12, "perfwalk.samples_lost": 3}
    rows_ = [("samples", "count", *CPU, 10 * NS, [((f,), [10])]) for f in "ab"]
    for order in (0, 1):
        parts = [(rows_[0], head("perfwalk", start, 5 * second, mine)), (rows_[1], head("other", start, second, {}))]
        profiles, facts = zip(*parts[::-1] if order else parts)
        out = run("report", otlp("mixed.otlp", *profiles, heads=facts)).stdout
        rig.check("22 samples, 3 lost" in out, f"samples that a writer counted, and the others': {out.splitlines()[1]}")
    out = run("report", otlp("uncounted.otlp", rows_[0], heads=[head("perfwalk", start, second, {})])).stdout
    rig.check("10 samples" in out, "counters that are missing")
    days = [cpu_profile(f"day{i}.pb", ["a"], 5, 10, time=start + i * 86400 * second, duration=10 * second) for i in range(3)]
    out = run("report", *days[::-1]).stdout
    rig.check("for 30.0 s of 172810.0 s" in out, f"times that lie apart: {out.splitlines()[0]}")
    out = run("report", days[0], cpu_profile("overlap.pb", ["a"], 5, 10, time=start + 5 * second, duration=10 * second)).stdout
    rig.check("for 15.0 s" in out and " of 15" not in out, f"times that overlap: {out.splitlines()[0]}")
    run("convert", *days, "-o", rig.path("days.pb.gz"))
    rig.check("for 30.0 s" in run("report", rig.path("days.pb.gz")).stdout, "pprof says how long was sampled, as when pprof merges")


MARK = "[truncated stack]"


def cuts():
    """What is too deep is cut, marked and counted, and never the leaf."""
    for n in (4095, 4096, 4097, 5000):
        names = [f"f{i}" for i in range(n - 1)] + ["LEAF"]
        want = names if n <= 4096 else [MARK] + names[-4095:]
        deep = {"folded": rig.write("deep.folded", f"sh;{';'.join(names)} 7\n"),
                "pprof": pprof("deep.pb", [(names[::-1], [7])], [COUNT]),
                "OTLP": otlp("deep.otlp", ("samples", "count", "", "", 0, [(tuple(names[::-1]), [7])]))}
        for format_, f in deep.items():
            have, err = stacks(f)
            rig.check(have == {";".join(want): 7}, f"{format_}: of {n} frames the leaf is there, and the root is marked")
            rig.check(("7 samples" in err and MARK in err) == (n > 4096), f"and it is said: {err.strip()!r}")
        run("convert", deep["pprof"], "-o", rig.path("deep.pb.gz"))
        rig.check(stacks(rig.path("deep.pb.gz")) == ({";".join(want): 7}, ""), "what is cut once is not cut again")
    for n in (256, 257, 301):
        lines = [f"i{i}" for i in range(n)]
        want = (lines if n <= 256 else lines[:254] + [MARK, lines[-1]])[::-1]
        f = pprof("lines.pb", [([location(*lines, address=0x1000), "main"], [5])], [COUNT])
        have, err = stacks(f)
        rig.check(have == {";".join(["main"] + want): 5}, f"of {n} functions at one place the innermost are there")
        rig.check(("5 samples" in err and MARK in err) == (n > 256), f"and it is said: {err.strip()!r}")
        f = rig.write("inlined.folded", f"p;main;{lines[-1]};{';'.join(l + '_[i]' for l in lines[-2::-1])} 5\n")
        rig.check(stacks(f)[0] == have, "the same of folded stacks")


def folded():
    f = rig.write("empty.folded", ";main;foo 3\np;a;;b 4\np;a;b; 5\np 6\n")
    expect({"main;foo": 3, "a;[unknown];b": 4, "a;b;[unknown]": 5, "": 6}, "empty names are kept", f)
    rig.check(rows(f) == {"foo": 3, "b": 4, "[unknown]": 5, "main": 0, "a": 0}, f"as frames: {rows(f)}")
    expect({"f": 9, "": 7}, "a process may be called #1, a comment is none", rig.write("hash.folded", "# p;f 2\n#1;f 9\n#x\n#2 7\n"))
    a, b = rig.write("one.folded", "p;fn 27 0;f 60\n"), rig.write("two.folded", "p;fn 27 0;f 6\n")
    expect({"fn 27 0;f": 60}, "numbers in names", a)
    run("diff", a, b, "-o", rig.path("difference.folded"))
    err = run("report", rig.path("difference.folded"), status=1).stderr
    rig.check("two counts" in err, f"a difference is no count: {err.strip()}")


def labels_of(path):
    """[(stack, labels)] of a pprof, as go tool pprof -raw shows them."""
    p = subprocess.run(["go", "tool", "pprof", "-raw", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    part = p.stdout.split("Samples:\n")[1].split("Locations\n")[0].splitlines()[1:]
    names = dict(re.findall(r"^ +(\d+): 0x\S+ (?:M=\d+ )?(\S+) ", p.stdout.split("Locations\n")[1], re.M))
    out = []
    for line in part:
        m = re.match(r" +([-0-9 ]+): ([0-9 ]+)$", line)
        if m:
            out.append((m[1].split(), [names[i] for i in m[2].split()], []))
        else:
            out[-1][2].extend(re.findall(r"(\S+:\[[^]]*\])", line))
    return sorted((stack, sorted(labels), values) for values, stack, labels in out)


def labels():
    """Labels that mean nothing here go from pprof to pprof, and samples that differ by them stay apart."""
    text, bytes_ = ("request", "/a;b"), ("bytes", (4096, "bytes"))
    f = pprof("labels.pb", [(["a"], [1], [text]), (["a"], [2], [("request", "/c"), ("pprof::base", "true")]), (["a"], [4], [bytes_]),
                            (["a"], [8], [("thread", (7, "")), ("retries", (-3, ""))]), (["a"], [16])], [COUNT])
    out = rig.path("labels.pb.gz")
    run("convert", f, "-o", out)
    expect({"a": 31}, "labels do not change what is added up", out)
    run("convert", f, f, "-o", rig.path("labels.speedscope.json"))
    with open(rig.path("labels.speedscope.json"), encoding="utf-8") as j:
        rig.check(j.read().count('"type":"sampled"') == 2, "and a thread stays one thread")
    run("convert", f, f, "-o", rig.path("labels-twice.pb.gz"))
    if subprocess.run(["go", "version"], stdout=subprocess.DEVNULL, check=False).returncode != 0:
        rig.leave_out("go is not installed")
        return
    rig.check(labels_of(out) == labels_of(f), "go tool pprof finds the labels that were there"
              + ("" if labels_of(out) == labels_of(f) else f": {labels_of(out)}, not {labels_of(f)}"))
    twice = [([str(2 * int(v)) for v in values]) for _, _, values in labels_of(f)]
    rig.check([v for _, _, v in labels_of(rig.path("labels-twice.pb.gz"))] == twice, "samples of equal labels are added up")


def identities():
    """Processes and modules of several files are one only where everything that is known of them is equal."""
    label = [[("pid", (4711, "")), ("comm", "nginx"), (key, name)] for key in ("unit", "container_name") for name in ("a", "b")]
    files = [pprof(f"who{i}.pb", [(["f"], [1 << i], l)], [COUNT]) for i, l in enumerate(label)]
    out = run("report", *files, "--csv", "-s", "unit,container").stdout.splitlines()[1:]
    have = sorted((r.split("\t")[3:], int(r.split("\t")[2])) for r in out)
    want = sorted([(["a", ""], 1), (["b", ""], 2), (["", "a"], 4), (["", "b"], 8)])
    rig.check(have == want, f"units and containers stay apart: {have}")
    files = [pprof(f"build{i}.pb", [([location("f", address=0x401000, mapping="/bin/x")], [1])], [COUNT], build=b)
             for i, b in enumerate(("aa" * 20, "bb" * 20))]
    for way in (files, files[::-1]):
        run("convert", *way, "-o", rig.path("builds.pb.gz"))
        with gzip.open(rig.path("builds.pb.gz")) as g:
            data = g.read()
        rig.check(b"aa" * 20 in data and b"bb" * 20 in data, "two builds of a file stay apart")


def dropped():
    """drop_frames and keep_frames do what they do in go tool pprof."""
    allocator = ["memcpy", location("inner", "malloc", "my_new"), "f", "main"]
    samples = [(["free", "malloc(unsigned long)", "f", "main"], [1]), (allocator, [2]), (["malloc"], [4]),
               (["x", "tcmalloc::keep", "main"], [8]), (["x", "std::(anonymous namespace)::drop(int)", "main"], [16]),
               (["y9", "main"], [32]), (["y", "main"], [64])]
    rules = r"(?:malloc|free)|tcmalloc::.*?|std::\(anonymous namespace\)::drop|y\d+|[z]+"
    f = pprof("drop.pb", samples, [COUNT], drop=rules, keep="tcmalloc::k.*")
    want = {"main;f": 1, "main;f;my_new": 2, "malloc": 4, "main;tcmalloc::keep;x": 8, "main": 48, "main;y": 64}
    expect(want, "what is dropped", f)
    if subprocess.run(["go", "version"], stdout=subprocess.DEVNULL, check=False).returncode == 0:
        p = subprocess.run(["go", "tool", "pprof", "-traces", f], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
        have = {}
        for part in p.stdout.split("-----------+-------------------------------------------------------\n")[1:-1]:
            m = re.match(r"\s+(\d+)\s+(.*)", part)
            names = [m[2]] + [l.strip() for l in part.splitlines()[1:]]
            stack = ";".join(n.replace(" (inline)", "") for n in names[::-1])
            have[stack] = have.get(stack, 0) + int(m[1])
        rig.check(have == want, f"go tool pprof drops the same: {have}")
    for bad in (r"\pL+", "a{3}", "(?i)x", "[\\d]", "("):
        err = run("report", pprof("bad.pb", samples, [COUNT], drop=bad), status=1).stderr
        rig.check("drop_frames" in err and bad in err, f"refused: {err.strip()}")


def go_tool():
    """What go tool pprof makes of what is written: [(flat, function)] and the names of the values."""
    if subprocess.run(["go", "version"], stdout=subprocess.DEVNULL, check=False).returncode != 0:
        rig.leave_out("go is not installed")
        return
    def top(path, *args):
        p = subprocess.run(["go", "tool", "pprof", "-top", "-nodefraction=0", *args, path],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
        return p.stdout
    heap = pprof("go-heap.pb", [(["a"], [2, 3 << 20]), (["b"], [1, 1 << 20])], [("inuse_objects", "count"), ("inuse_space", "bytes")])
    run("convert", heap, "-o", rig.path("go-heap.pb.gz"))
    out = top(rig.path("go-heap.pb.gz"))
    rig.check("Type: inuse_space" in out and "3MB 75.00%" in out, f"bytes are bytes:\n{out}")
    a, b = cpu_profile("go-a.pb", ["a"], 100, 10), cpu_profile("go-b.pb", ["b"], 400, 1)
    run("convert", b, a, "-o", rig.path("go-both.pb.gz"))
    out = top(rig.path("go-both.pb.gz"))
    rig.check(re.search(r"1000ms 71.43%.* a$", out, re.M) and re.search(r"400ms 28.57%.* b$", out, re.M), f"times are times:\n{out}")
    out = top(rig.path("go-both.pb.gz"), "-sample_index=samples")
    rig.check(re.search(r"400 80.00%.* b$", out, re.M), f"and samples are samples:\n{out}")


def main():
    names()
    negative()
    periods()
    kinds()
    choice()
    units()
    timestamps()
    heads()
    cuts()
    folded()
    labels()
    identities()
    dropped()
    go_tool()


rig.run(main)
