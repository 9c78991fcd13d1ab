# SPDX-License-Identifier: Apache-2.0
"""The laws, each with a generator of cases for it. A case is made of profiles to be written as files
(so that a failing one can be made smaller) and of options; check() writes the files, runs the program
and raises Mismatch."""
import fnmatch
import os
import random
import re
import subprocess
from collections import Counter, defaultdict

import expect
import folded
import generate
import otlp
import otlpjson
import perfdata
import pprof
from expect import Mismatch, chosen_type, read, same
from model import (FILE, KERNEL, MARKER, RUNTIME, Frame, Line, Profile, Sample, Task, add_up, comm_of, clean, difference,
                   folded_path, folded_sums, functions, module_name, base, service_of, write_file)

ENCODERS = {"pprof": pprof.encode, "otlp": otlp.encode, "folded": folded.encode}
SUFFIXES = {"pprof": ("pb.gz", "pprof"), "otlp": ("otlp",), "folded": ("folded", "txt")}
OUTPUTS = {"folded": "folded", "pprof": "pb.gz", "otlp": "otlp", "perf": "perf.txt", "speedscope": "speedscope.json",
           "ndjson": "ndjson", "firefox": "json.gz", "json": "otlp.json", "page": "html", "svg": "svg"}


class Input:
    """A profile, the format it is written in, and the seed for what the format leaves open."""

    def __init__(self, profile, form, rng=None, seed=None):
        self.profile, self.form = profile, form
        self.seed = seed if seed is not None else rng.randrange(1 << 32)

    def replaced(self, profile):
        return Input(profile, self.form, seed=self.seed)

    def encode(self):
        return ENCODERS[self.form](self.profile, random.Random(self.seed))

    def suffix(self, data):
        names = SUFFIXES[self.form] if data[:2] == b"\x1f\x8b" or self.form != "pprof" else ("pprof", "pb")
        return names[self.seed % len(names)]

    def smaller(self):
        """The same with fewer samples or shorter stacks."""
        samples = self.profile.samples
        ways = [samples[:len(samples) // 2], samples[len(samples) // 2:]]
        ways += [samples[:k] + samples[k + 1:] for k in range(len(samples))]
        for k, s in enumerate(samples):
            ways += [samples[:k] + [s._replace(stack=s.stack[:j] + s.stack[j + 1:])] + samples[k + 1:]
                     for j in range(len(s.stack))]
        for way in ways:
            if way and way != samples:
                yield self.replaced(self.profile.replaced(samples=way))

    def describe(self):
        p = self.profile
        yield f"{self.form}, types {p.types}, period {p.period} {p.period_type}, default {p.default!r}"
        for s in p.samples[:6]:
            yield f"  {s.values} {s.task} times {s.times}"
            yield from (f"    {f.kind} {f.module or '-'} {f.address:#x} {[n.name for n in f.lines]}" for f in s.stack[:8])


class Recorded:
    """A file of perf record, and the seed for what its format leaves open."""

    def __init__(self, recording, seed):
        self.recording, self.seed = recording, seed

    def encode(self):
        return perfdata.encode(self.recording, random.Random(self.seed))

    def suffix(self, data):
        return "perf.data"

    def smaller(self):
        """The same with fewer samples: everything else is what they rest on."""
        r = self.recording
        samples = [s for s in r.steps if s.kind == perfdata.SAMPLE]
        n = len(samples) // 2
        while n:
            for k in range(0, len(samples), n):
                gone = set(map(id, samples[k:k + n]))
                steps = [s for s in r.steps if id(s) not in gone]
                yield Recorded(perfdata.Recording(r.events, steps, r.clock), self.seed)
            n //= 2

    def describe(self):
        yield f"perf.data, seed {self.seed}, events {self.recording.events}"
        yield from (f"  {s}" for s in self.recording.steps[:30])


class Case:
    def __init__(self, law, inputs, **options):
        self.law, self.inputs, self.options = law, inputs, options

    def replaced(self, inputs):
        return Case(self.law, inputs, **self.options)


class Tool:
    """Runs the program in a directory, and remembers its command lines."""

    def __init__(self, program, directory):
        self.program, self.directory = program, directory
        self.commands, self.n_runs, self.n_outputs = [], 0, 0

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, inputs):
        names = []
        for i, x in enumerate(inputs):
            data = x.encode()
            names.append(f"in{i}.{x.suffix(data)}")
            write_file(self.path(names[-1]), data)
        return names

    def run(self, *args, status=0):
        self.commands.append(args)
        self.n_runs += 1
        p = subprocess.run([self.program, *args], cwd=self.directory, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=60, check=False)
        self.stderr = p.stderr.decode(errors="replace")
        if status is not None and p.returncode != status:
            raise Mismatch(f"exit status {p.returncode}, expected {status}: {self.stderr.strip()}")
        return p.stdout

    def convert(self, names, forms=tuple(OUTPUTS), options=(), prefix="out", command="convert"):
        outs = [f"{prefix}.{OUTPUTS[f]}" for f in forms]
        self.run(command, *names, *options, *(x for o in outs for x in ("-o", o)))
        self.n_outputs += len(outs)
        result = {}
        for form, out in zip(forms, outs):
            with open(self.path(out), "rb") as f:
                result[form] = f.read()
        return result


LAWS = {}


def law(weight):
    def register(cls):
        LAWS[cls.__name__.lower()] = (cls, weight)
        return cls
    return register


def check_outputs(samples, outs, kind=None, period=1, proportional=False, times=False):
    """All outputs against the model. kind: of values that are no plain samples."""
    expect.check_folded(samples, outs["folded"], proportional)
    for form, data in outs.items():
        if form == "pprof":
            expect.check_pprof(samples, data, kind, proportional)
        elif form == "otlp":
            expect.check_otlp(samples, data, proportional, times)
        elif form == "perf":
            expect.check_perf_script(samples, data, period, proportional, times)
        elif form == "speedscope":
            expect.check_speedscope(samples, data, period, proportional)
        elif form == "ndjson":
            expect.check_ndjson(samples, data, period, proportional)
        elif form == "firefox":
            expect.check_firefox(samples, data, kind, proportional, times)
        elif form == "json":
            expect.check_otlp(samples, data, proportional, times, otlpjson.decode)
        elif form == "page":
            expect.check_page(samples, data, proportional, times)
        elif form == "svg" and not proportional:
            expect.check_svg(samples, data)


def kind_of(profile, i):
    return None if profile.types[i][0] == "samples" else profile.types[i]


def period_of(profile, i):
    return profile.period if profile.types[i][0] == "samples" and profile.period else 1


@law(8)
class Convert:
    """One file into every format: each holds what it can hold of it, and nothing else."""

    @staticmethod
    def make(rng):
        form = rng.choice(("pprof", "otlp", "folded"))
        p = generate.profile(rng, form)
        names = [t for t, _ in p.types]
        event = rng.choice(names) if form == "pprof" and len(names) > 1 and rng.random() < 0.5 else None
        return Case("convert", [Input(p, form, rng)], event=event)

    @staticmethod
    def check(case, tool):
        x = case.inputs[0]
        event = case.options["event"]
        outs = tool.convert(tool.write(case.inputs), options=("-e", event) if event else ())
        i = chosen_type(x.profile, event)
        samples = read(x.profile, x.form, event)
        times = all(s.times and all(v == 1 for _, v in s.times) for s in samples)
        check_outputs(samples, outs, kind_of(x.profile, i), period_of(x.profile, i), times=times)


@law(3)
class Back:
    """There and back, through pprof or OTLP, once and twice: the same folded stacks and tables."""

    @staticmethod
    def make(rng):
        form = rng.choice(("pprof", "otlp", "folded"))
        return Case("back", [Input(generate.profile(rng, form), form, rng)],
                    way=[rng.choice(("pprof", "otlp")) for _ in range(rng.choice((1, 2, 3)))])

    @staticmethod
    def check(case, tool):
        names = tool.write(case.inputs)
        want = read(case.inputs[0].profile, case.inputs[0].form)
        for i, form in enumerate(case.options["way"]):
            tool.convert(names, (form,), prefix=f"way{i}")
            names = [f"way{i}.{OUTPUTS[form]}"]
        expect.check_folded(want, tool.convert(names, ("folded",))["folded"])
        table = tool.run("report", *names, "-s", "comm,service,module,symbol", *ALL)
        check_table(want, table, ("comm", "service", "module", "symbol"))


def same_kind(rng, n):
    """n files whose values add up: the same types, the same period."""
    period = rng.choice((1010101, 10**7))
    inputs = []
    for _ in range(n):
        form = rng.choice(("pprof", "otlp", "folded"))
        types = (("samples", "count"),)
        if form == "pprof":
            types += (("cpu", "nanoseconds"),)
        inputs.append(Input(generate.profile(rng, form, types, period), form, rng))
    return inputs


@law(5)
class Merge:
    """Several files of the same kind: sums, in any order and grouping."""

    @staticmethod
    def make(rng):
        inputs = same_kind(rng, rng.choice((2, 2, 3, 4, 6)))
        order = list(range(len(inputs)))
        rng.shuffle(order)
        return Case("merge", inputs, order=order, middle=rng.choice(("pprof", "otlp", "folded")),
                    cut=rng.randrange(1, len(inputs)))

    @staticmethod
    def check(case, tool):
        names = tool.write(case.inputs)
        want = [s for x in case.inputs for s in read(x.profile, x.form)]
        timed = {x.form for x in case.inputs} == {"otlp"}
        outs = tool.convert(names)
        times = timed and all(s.times and all(v == 1 for _, v in s.times) for s in want)
        periods = {period_of(x.profile, 0) for x in case.inputs}
        if len(periods) > 1:  # folded stacks have none
            del outs["perf"], outs["speedscope"], outs["ndjson"]
        check_outputs(want, outs, period=max(periods), times=times)
        order = [i for i in case.options["order"] if i < len(names)]
        other = tool.convert([names[i] for i in order], ("folded",), prefix="order")["folded"]
        same("the same files in another order", folded.sums(outs["folded"]), folded.sums(other))
        if len(names) > 1:
            cut = min(case.options["cut"], len(names) - 1)
            middle = case.options["middle"]
            tool.convert(names[:cut], (middle,), prefix="middle")
            other = tool.convert([f"middle.{OUTPUTS[middle]}"] + names[cut:], ("folded",), prefix="nested")["folded"]
            # Samples of no known period are a kind of their own: what has one is left out then, and named.
            sums = folded.sums(outs["folded"])
            if middle != "folded" and {x.form for x in case.inputs[:cut]} == {"folded"} != {x.form for x in case.inputs}:
                sums = add_up(item for x in case.inputs if x.form == "folded"
                              for item in folded_sums(read(x.profile, x.form)).items())
                if "left out" not in tool.stderr:
                    raise Mismatch(f"nothing is said of what has a period: {tool.stderr!r}")
            same(f"the first {cut} added up as {middle} before", sums, folded.sums(other))


@law(2)
class Periods:
    """Files of different sampling distances: added up in the distance's unit, in any order."""

    @staticmethod
    def make(rng):
        inputs = []
        unit, kinds = rng.choice((("nanoseconds", ("pprof", "otlp")), ("count", ("pprof",))))
        for _ in range(rng.choice((2, 2, 3))):
            form = rng.choice(kinds)
            period = rng.choice((10**6, 10**7, 1010101, 20408163)) if unit == "nanoseconds" else rng.choice((10, 1000, 7))
            types = (("samples", "count"),)
            if form == "pprof":
                types += (("cpu", "nanoseconds") if unit == "nanoseconds" else ("branches", "count"),)
            p = generate.profile(rng, form, types, period)
            if unit == "count":
                p.period_type, p.period = types[1], period
                p.samples = [s._replace(values=(s.values[0], s.values[0] * period)) for s in p.samples]
            inputs.append(Input(p, form, rng))
        return Case("periods", inputs)

    @staticmethod
    def check(case, tool):
        names = tool.write(case.inputs)
        want = [s._replace(values=(s.values[0] * x.profile.period,), times=())
                for x in case.inputs for s in read(x.profile, x.form)]
        outs = tool.convert(names)
        check_outputs(want, outs, proportional=True)
        have = pprof.decode(outs["pprof"])
        total = sum(s.values[-1] for s in have.samples)
        if total != sum(s.values[0] for s in want):
            raise Mismatch(f"pprof: {have.types[-1]} add up to {total}, expected {sum(s.values[0] for s in want)}")
        other = tool.convert(names[::-1], ("pprof",), prefix="order")["pprof"]
        same("the other order", add_up((folded_path(s), s.values[-1]) for s in have.samples),
             add_up((folded_path(s), s.values[-1]) for s in pprof.decode(other).samples))


@law(2)
class Kinds:
    """Files, or profiles of one file, of different kinds: never added; the others are named; -e takes each."""

    SETS = (("pprof", (("samples", "count"), ("cpu", "nanoseconds"))), ("pprof", (("alloc_space", "bytes"),)),
            ("pprof", (("inuse_objects", "count"), ("inuse_space", "bytes"))), ("otlp", (("samples", "count"),)),
            ("pprof", (("contentions", "count"), ("delay", "nanoseconds"))), ("otlp", (("wait", "nanoseconds"),)))

    @staticmethod
    def make(rng):
        sets = rng.sample(Kinds.SETS, rng.choice((2, 2, 3)))
        return Case("kinds", [Input(generate.profile(rng, f, t, 10**7), f, rng) for f, t in sets])

    @staticmethod
    def check(case, tool):
        names = tool.write(case.inputs)
        sums = defaultdict(Counter)  # by kind
        for x in case.inputs:
            kind = kind_of(x.profile, chosen_type(x.profile)) or x.profile.period_type
            sums[kind] += folded_sums(read(x.profile, x.form))
        data = tool.convert(names, ("folded",))["folded"]
        if folded.sums(data) not in list(sums.values()):
            raise Mismatch("kinds are mixed, got:\n" + difference(next(iter(sums.values())), folded.sums(data)))
        if len(sums) > 1 and "left out" not in tool.stderr:
            raise Mismatch(f"nothing is said of kinds left out: {tool.stderr!r}")
        for x in case.inputs:
            for i, (event, unit) in enumerate(x.profile.types):
                if event in ("samples", "cpu"):
                    continue
                want = Counter()
                for y in case.inputs:
                    if (event, unit) in y.profile.types:
                        want += folded_sums(read(y.profile, y.form, event))
                # A file without any may be refused.
                tool.run("convert", *names, "-e", event, "-o", f"e{i}.folded", status=None)
                if "no values called" in tool.stderr and any((event, unit) not in y.profile.types for y in case.inputs):
                    continue
                with open(tool.path(f"e{i}.folded"), "rb") as f:
                    same(f"-e {event}", want, folded.sums(f.read()))


@law(2)
class OtlpKinds:
    """Several profiles of one OTLP message: kinds differ by name, unit and what the period is of."""

    @staticmethod
    def make(rng):
        pool = [(("events", "nanoseconds"), ("", ""), 0), (("events", "count"), ("", ""), 0),
                (("samples", "count"), ("cpu", "nanoseconds"), 10**7), (("alloc_space", "bytes"), ("", ""), 0),
                (("samples", "count"), ("alloc", "bytes"), 512)]
        inputs = []
        for kind, period_type, period in rng.sample(pool, rng.choice((2, 3))):
            p = generate.profile(rng, "otlp", (kind,))
            p.period_type, p.period = period_type, period
            inputs.append(Input(p, "otlp", rng))
        return Case("otlpkinds", inputs, bare=rng.random() < 0.5)

    @staticmethod
    def check(case, tool):
        parts = []
        for x in case.inputs:
            data = otlp.encode_message(x.profile, random.Random(x.seed))
            parts.append(len(data).to_bytes(4, "big") + data)
        write_file(tool.path("in.otlp"), b"".join(parts))
        have = folded.sums(tool.convert(["in.otlp"], ("folded",))["folded"])
        want = [folded_sums(read(x.profile, "otlp")) for x in case.inputs]
        if have not in want:
            raise Mismatch("kinds are mixed, got:\n" + difference(want[0], have))
        if len(case.inputs) > 1 and "left out" not in tool.stderr:
            raise Mismatch(f"nothing is said of kinds left out: {tool.stderr!r}")
        for x, w in zip(case.inputs, want):
            event = x.profile.types[0][0] if x.profile.types[0][0] != "samples" else x.profile.period_type[0]
            if event == "events":
                continue  # either of two
            same(f"-e {event}", w, folded.sums(tool.convert(["in.otlp"], ("folded",), ("-e", event))["folded"]))


@law(1)
class Twins:
    """Two types of one name are told apart by their units; a difference of two files is no profile."""

    @staticmethod
    def make(rng):
        types = [("cpu", "count"), ("cpu", "nanoseconds"), ("space", "bytes")]
        rng.shuffle(types)
        return Case("twins", [Input(generate.profile(rng, "pprof", tuple(types), 10**7), "pprof", rng)])

    @staticmethod
    def check(case, tool):
        x = case.inputs[0]
        names = tool.write(case.inputs)
        for i, (name, unit) in enumerate(x.profile.types):
            want = folded_sums([s._replace(values=(s.values[i],)) for s in x.profile.samples])
            for event in (f"{name}:{unit}", f"{name}/{unit}"):
                same(f"-e {event}", want, folded.sums(tool.convert(names, ("folded",), ("-e", event))["folded"]))
        if all(s.stack for s in x.profile.samples):
            tool.run("diff", *names, *names, "-o", "two.folded")
            tool.run("report", "two.folded", status=1)


@law(1)
class OffCpu:
    """Off-CPU time is exact, but in folded stacks, which have whole microseconds of each."""

    @staticmethod
    def make(rng):
        return Case("offcpu", [Input(generate.profile(rng, "otlp", (("off_cpu", "nanoseconds"),)), "otlp", rng)])

    @staticmethod
    def check(case, tool):
        x = case.inputs[0]
        outs = tool.convert(tool.write(case.inputs), ("folded", "pprof", "otlp"))
        samples, kind = read(x.profile, x.form), x.profile.types[0]
        want = Counter({path: ns // 1000 for path, ns in folded_sums(samples).items() if ns >= 1000})
        same("folded", want, folded.sums(outs["folded"]))
        expect.check_pprof(samples, outs["pprof"], kind)
        expect.check_otlp(samples, outs["otlp"])


@law(1)
class Negative:
    """A difference of profiles has values below zero, which count."""

    @staticmethod
    def make(rng):
        form = rng.choice(("pprof", "otlp"))
        p = generate.profile(rng, form, (("samples", "count"),) if form == "otlp" else None)
        p.samples = [s if rng.random() < 0.5 else s._replace(
            values=tuple(-v for v in s.values), times=tuple((t, -v) for t, v in s.times)) for s in p.samples]
        return Case("negative", [Input(p, form, rng)])

    @staticmethod
    def check(case, tool):
        x = case.inputs[0]
        outs = tool.convert(tool.write(case.inputs), ("pprof", "otlp"))
        samples = read(x.profile, x.form)
        expect.check_pprof(samples, outs["pprof"], kind_of(x.profile, chosen_type(x.profile)))
        expect.check_otlp(samples, outs["otlp"])
        # Folded stacks are counts: what is below 0 is left out, and said.
        have = tool.convert(tool.write(case.inputs), ("folded",))["folded"]
        said = tool.stderr
        want = {k: v for k, v in folded_sums(samples).items() if v > 0}
        same("folded", Counter(want), folded.sums(have))
        if any(v < 0 for v in folded_sums(samples).values()) and not said:
            raise Mismatch("nothing is said of values below 0 that are left out")
        rows = tool.run("report", *tool.write(case.inputs), "-s", "comm", *ALL).decode().splitlines()[1:]
        want = add_up((comm_of(s.task), s.values[0]) for s in samples)
        same("report", want, add_up((r.split("\t")[3], int(r.split("\t")[2])) for r in rows))


@law(1)
class Deep:
    """Stacks deeper than what is kept lose their root, never their leaf, and say so."""

    @staticmethod
    def make(rng):
        n = rng.choice((4090, 4096, 4097, 5000))
        form = rng.choice(("folded", "pprof", "otlp"))
        stack = tuple(Frame(lines=(Line(f"f{i}"),)) for i in range(n))
        p = Profile([("samples", "count")], [Sample(Task("p", thread="p"), stack, (7,))], time=generate.DAY)
        return Case("deep", [Input(p, form, rng)])

    @staticmethod
    def check(case, tool):
        data = tool.convert(tool.write(case.inputs), ("folded",))["folded"].decode().strip()
        names = data.rsplit(" ", 1)[0].split(";")[1:]
        want = [f.lines[-1].name for f in case.inputs[0].profile.samples[0].stack]
        if names[::-1] == want:
            return
        if len(want) <= 4090:
            raise Mismatch(f"a stack of {len(want)} frames has {len(names)}")
        if names[0] != "[truncated stack]":
            raise Mismatch(f"a cut stack begins with {names[0]!r} and ends with {names[-1]!r}")
        if names[:0:-1] != want[:len(names) - 1]:
            raise Mismatch(f"a cut stack ends with {names[-1]!r}, expected {want[0]!r}")


@law(1)
class Inlined:
    """A location of many inlined functions keeps the function itself."""

    @staticmethod
    def make(rng):
        n = rng.choice((100, 255, 256, 257, 300))
        lines = tuple(Line(f"i{i}") for i in range(n)) + (Line("outer"),)
        p = Profile([("samples", "count")], [Sample(Task("p", thread="p"), (Frame(lines=lines),), (7,))])
        return Case("inlined", [Input(p, rng.choice(("pprof", "otlp")), rng)])

    @staticmethod
    def check(case, tool):
        data = tool.convert(tool.write(case.inputs), ("folded",))["folded"].decode().strip()
        names = data.rsplit(" ", 1)[0].split(";")[1:]
        if names[0] not in ("outer", "[truncated stack]") or "outer" not in names[:2]:
            raise Mismatch(f"the outermost function is {names[0]!r}, expected 'outer'")


@law(1)
class Labels:
    """Labels that perfwalk has no meaning for go from pprof to pprof, and tell samples apart."""

    @staticmethod
    def make(rng):
        p = generate.profile(rng, "pprof", (("samples", "count"),))
        pool = (("request", "/a", 0, ""), ("request", "/b", 0, ""), ("bytes", "", 4096, "bytes"), ("k\u00e9y", "v;1", 0, ""))
        p.samples = [s._replace(labels=tuple(sorted(set(rng.sample(pool[rng.choice((0, 1)):], rng.choice((0, 1, 2)))))))
                     for s in p.samples]
        return Case("labels", [Input(p, "pprof", rng)])

    @staticmethod
    def check(case, tool):
        x = case.inputs[0]
        data = tool.convert(tool.write(case.inputs), ("pprof",))["pprof"]

        def sums(samples):
            return add_up(((comm_of(s.task), s.labels, folded_path(s)), s.values[0]) for s in samples)

        same("labels", sums(read(x.profile, "pprof")), sums(pprof.decode(data).samples))


@law(1)
class MadeUp:
    """Frames without an address have none in any output."""

    @staticmethod
    def make(rng):
        form = rng.choice(("pprof", "otlp", "folded"))
        p = generate.profile(rng, form, generate.SETS[form][0])
        if form != "folded":
            bare = Frame(FILE, rng.choice(("", "/bin/x")), 0)
            p.samples.append(p.samples[0]._replace(stack=(bare,) + p.samples[0].stack))
            high = Frame(FILE, "", (1 << 63) + rng.randrange(1, 4), (Line("high"),))
            p.samples.append(p.samples[0]._replace(stack=(high,) + p.samples[0].stack))
        return Case("madeup", [Input(p, form, rng)])

    @staticmethod
    def check(case, tool):
        outs = tool.convert(tool.write(case.inputs), ("folded", "pprof", "otlp", "perf"))
        if b"0x80000000" in outs["folded"] or b" 80000000" in outs["perf"]:
            raise Mismatch("an address that nobody has stands in the output")
        given = {f.address for x in case.inputs for s in x.profile.samples for f in s.stack} | {0}
        frames = [f for s in pprof.decode(outs["pprof"]).samples for f in s.stack]
        frames += [f for p in otlp.decode(outs["otlp"]) for s in p.samples for f in s.stack]
        for f in frames:
            if f.address not in given:
                raise Mismatch(f"address {f.address:#x} is of no frame of the input: {f}")


@law(1)
class Names:
    """Names that differ only far behind stay apart, whatever they are cut to."""

    @staticmethod
    def make(rng):
        n = rng.choice((2040, 2047, 2048, 2100, 4100, 9000))
        long = "".join(rng.choice("ab<>:,\u00e9") for _ in range(n))
        form = rng.choice(("pprof", "otlp", "folded"))
        samples = [Sample(Task("p", thread="p"), (Frame(lines=(Line(long + end),)),), (value,))
                   for end, value in (("1", 2), ("2", 1), ("3", 4))]
        return Case("names", [Input(Profile([("samples", "count")], samples, time=generate.DAY), form, rng)])

    @staticmethod
    def check(case, tool):
        outs = tool.convert(tool.write(case.inputs))
        want = sorted(s.values[0] for s in case.inputs[0].profile.samples)
        names = {f.lines[-1].name for s in case.inputs[0].profile.samples for f in s.stack}

        def apart(what, sums):
            if sorted(sums.values()) != want:
                raise Mismatch(f"{what}: functions of {sorted(sums.values())}, expected {want}")
            for name in sums:
                # Whole, or its beginning and a mark.
                if name not in names and not any(x.startswith(name[:1000]) for x in names):
                    raise Mismatch(f"{what}: a name became {name[:80]!r}")

        apart("folded", Counter({k.split(";", 1)[1]: v for k, v in folded.sums(outs["folded"]).items()}))
        apart("pprof", add_up((s.stack[0].lines[0].name, s.values[0]) for s in pprof.decode(outs["pprof"]).samples))
        apart("OTLP", add_up((s.stack[0].lines[0].name, s.values[0])
                             for p in otlp.decode(outs["otlp"]) for s in p.samples))
        every = expect.viewers.speedscope(outs["speedscope"])[0]
        apart("speedscope", Counter({k[1]: v for k, v in every.items()}))
        sums, *_ = expect.viewers.firefox(outs["firefox"])
        apart("Firefox", Counter({k[4][0][0]: v for k, v in sums.items()}))
        table = tool.run("report", *tool.write(case.inputs), "-s", "symbol", *ALL).decode().splitlines()[1:]
        apart("report", Counter({r.split("\t")[3]: int(r.split("\t")[2]) for r in table}))
        table = tool.run("diff", *tool.write(case.inputs), *tool.write(case.inputs), "--csv", "--percent-limit", "0",
                         "--top", "0").decode().splitlines()[1:]
        if len(table) != len(want):
            raise Mismatch(f"diff: {len(table)} rows, expected {len(want)}")


# ---- Tables ----

ALL = ("--csv", "--percent-limit", "0")
KEYS = ("comm", "container", "unit", "thread", "service", "module", "symbol", "line")
OWNER_KEYS = KEYS[:5]


def owner_value(key, task):
    if key == "comm":
        return comm_of(task)
    if key == "container":
        return clean(task.container_name) or task.container[:12]
    if key == "unit":
        return clean(task.unit)
    if key == "service":
        return service_of(task)
    tid = str(task.tid) if task.tid else ""
    return clean(task.thread) + ("/" if task.thread and tid else "") + tid


def place_value(key, name, frame, line):
    if key == "module":
        return module_name(frame)
    if key == "symbol":
        return name
    if line is None or not line.file or frame.kind == MARKER:
        return ""
    return f"{clean(base(line.file))}:{line.line}"


def rows_of(samples, keys):
    """Row to [self, total]."""
    rows = defaultdict(lambda: [0, 0])
    owner_only = all(k in OWNER_KEYS for k in keys)
    for s in samples:
        value = s.values[0]
        places = [(None, None, None)] if owner_only else [
            (name, f, line) for f in s.stack for name, _, line in reversed(functions(f))]
        seen = []
        for name, f, line in places:
            seen.append(tuple(owner_value(k, s.task) if k in OWNER_KEYS else place_value(k, name, f, line)
                              for k in keys))
        if seen:
            rows[seen[0]][0] += value
        for row in set(seen):
            rows[row][1] += value
    return rows


def check_table(samples, data, keys, wanted=lambda row: True):
    """A table of --csv: every row, its value and shares."""
    lines = data.decode().split("\n")[:-1]
    if lines[0] != "\t".join(("self", "total", "value") + tuple(k.upper() for k in keys)):
        raise Mismatch(f"head of the table: {lines[0]!r}")
    total = sum(s.values[0] for s in samples)
    have = {}
    for line in lines[1:]:
        self_share, total_share, value, *row = line.split("\t")
        if tuple(row) in have:
            raise Mismatch(f"a row stands twice: {row}")
        have[tuple(row)] = (int(value), float(self_share), float(total_share))
    want = {r: v for r, v in rows_of(samples, keys).items() if wanted(r)}
    same(f"report -s {','.join(keys)}", Counter({r: v[0] for r, v in want.items()}),
         Counter({r: v[0] for r, v in have.items()}))
    if set(want) != set(have):
        raise Mismatch(f"rows: {set(want) ^ set(have)}")
    for row, (value, self_share, total_share) in have.items():
        for what, part, share in (("self", value, self_share), ("total", want[row][1], total_share)):
            if abs(share - 100 * part / total) > 0.0001:
                raise Mismatch(f"{row}: {what} {share}, expected {100 * part / total:.4f}")
    if sum(v[1] for v in have.values()) > 100.01:
        raise Mismatch("the shares add up to more than 100%")


def filtered(samples, options):
    """The samples that --comm and --container choose, and the arguments."""
    args = []
    comm, container = options["comm"], options["container"]
    if comm:
        args += ["-c", comm]
        samples = [s for s in samples if fnmatch.fnmatchcase(comm_of(s.task), comm)]
    if container:
        args += ["--container", container]
        samples = [s for s in samples if any(fnmatch.fnmatchcase(t, container) for t in (
            s.task.container, s.task.container[:12], s.task.container_name))]
    return samples, args


def filters(rng):
    return {"comm": rng.choice((None, None, "p", "[pq]", "*o*", "nobody")),
            "container": rng.choice((None, None, None, "web", "0123*", "fedcba987654", "ns/*"))}


@law(6)
class Report:
    """Tables by every combination of keys, with filters, which choose what all files have, too."""

    @staticmethod
    def make(rng):
        inputs = same_kind(rng, rng.choice((1, 1, 2)))
        keys = rng.sample(KEYS, rng.choice((1, 1, 2, 3, 4)))
        return Case("report", inputs, keys=tuple(keys), **filters(rng),
                    symbol=rng.choice((None, None, "^main$", "a|b", "std::", "^$")) if "symbol" in keys else None)

    @staticmethod
    def check(case, tool):
        o = case.options
        names = tool.write(case.inputs)
        samples = [s for x in case.inputs for s in read(x.profile, x.form)]
        everything = sum(s.values[0] for s in samples)
        samples, args = filtered(samples, o)
        if args:
            forms = ("folded", "pprof", "otlp", "ndjson", "page") if samples else ("folded",)
            outs = tool.convert(names, forms, args, command="report")
            check_outputs(samples, outs, period=period_of(case.inputs[0].profile, 0), proportional=len(names) > 1)
        args = ["report", *names, "-s", ",".join(o["keys"]), *ALL, *args]
        wanted = lambda row: True
        if o["symbol"]:
            args += ["-S", o["symbol"]]
            at = o["keys"].index("symbol")
            wanted = lambda row: re.search(o["symbol"], row[at])
        data = tool.run(*args)
        check_table(samples, data, o["keys"], wanted)
        head = tool.run("report", *names, "-s", "comm").decode()
        m = re.search(r"^(\d+) samples", head, re.M)
        if not m or int(m[1]) != everything:
            raise Mismatch(f"the head says {m and m[0]!r}, expected {everything} samples")


def interval(part, whole):
    """Wilson's, of 95%, in per cent."""
    z2 = 1.959963984540054 ** 2
    middle, half = part + z2 / 2, (z2 * (part * (whole - part) / whole + z2 / 4)) ** 0.5
    return 100 * max(0, middle - half) / (whole + z2), 100 * (middle + half) / (whole + z2)


@law(3)
class Rows:
    """Which rows there are, in which order, and how sure their shares are."""

    @staticmethod
    def make(rng):
        return Case("rows", same_kind(rng, rng.choice((1, 2))), keys=tuple(rng.sample(KEYS, rng.choice((1, 2, 3)))),
                    order=rng.choice((None, "--children", "--no-children")), top=rng.choice((0, 0, 1, 2, 5)),
                    limit=rng.choice((0, 0.1, 5, 20, 50)), confidence=rng.random() < 0.3, **filters(rng))

    @staticmethod
    def check(case, tool):
        o = case.options
        names = tool.write(case.inputs)
        samples, args = filtered([s for x in case.inputs for s in read(x.profile, x.form)], o)
        rows, total = rows_of(samples, o["keys"]), sum(s.values[0] for s in samples)
        args += ["-s", ",".join(o["keys"]), "--top", str(o["top"]), "--percent-limit", str(o["limit"])]
        args += ([o["order"]] if o["order"] else []) + (["--confidence"] if o["confidence"] else [])
        own, wide = o["order"] == "--no-children", o["order"] == "--children"
        good = {r: v for r, v in rows.items() if 100 * v[0 if own else 1] / total >= o["limit"]}
        order = sorted(((v[1], v[0]) if wide else tuple(v) for v in good.values()), reverse=True)
        order = order[:o["top"]] if o["top"] else order
        have = []
        for line in tool.run("report", *names, *args, "--csv").decode().split("\n")[1:-1]:
            cells = line.split("\t")
            row, head = tuple(cells[-len(o["keys"]):]), cells[:-len(o["keys"])]
            if row not in good:
                raise Mismatch(f"row {row} has {rows.get(row)} of {total} and is shown")
            have.append(good[row][::-1] if wide else good[row])
            if o["confidence"]:
                want = interval(good[row][0], total) + interval(good[row][1], total)
                if any(abs(a - float(b)) > 0.0001 for a, b in zip(want, head[3:])):
                    raise Mismatch(f"{row}: intervals {head[3:]}, expected {want}")
        if [tuple(h) for h in have] != order:
            raise Mismatch(f"rows {' '.join(args)}: {have}, expected {order}")
        said = re.search(r"^ *([\d.]+)% +(\d+) more rows?$", tool.run("report", *names, *args).decode(), re.M)
        rest = 100 * (sum(v[0] for v in rows.values()) - sum(v[1 if wide else 0] for v in order)) / (total or 1)
        if len(rows) - len(order) != (int(said[2]) if said else 0) or said and abs(float(said[1]) - rest) > 0.0051:
            raise Mismatch(f"{said and said[0]!r}, expected {rest:.2f}% in {len(rows) - len(order)} rows")


@law(2)
class Trees:
    """Callers and callees of what matches a pattern, or of the first row."""

    @staticmethod
    def make(rng):
        return Case("trees", same_kind(rng, rng.choice((1, 2))), callers=rng.random() < 0.5,
                    symbol=rng.choice((None, "^main$", "^a$", "^f", "b|c")), top=rng.choice((1, 3)), **filters(rng))

    @staticmethod
    def expected(samples, callers, matches):
        want = Counter()
        for s in samples:
            path = [n for f in s.stack for n, _, _ in reversed(functions(f))]  # leaf first
            at = [i for i, n in enumerate(path) if matches(n)]
            if not at:
                continue
            way = path[at[0]:] if callers else path[:at[-1] + 1][::-1]
            for depth in range(1, min(len(way), 32) + 1):
                want[tuple(way[:depth])] += s.values[0]
        return want

    @staticmethod
    def check(case, tool):
        names = tool.write(case.inputs)
        callers, symbol = case.options["callers"], case.options["symbol"]
        samples, args = filtered([s for x in case.inputs for s in read(x.profile, x.form)], case.options)
        total = sum(s.values[0] for s in samples)
        args += ["-s", "symbol", "--callers" if callers else "--callees", *ALL]
        args += ["-S", symbol] if symbol else ["--top", str(case.options["top"])]
        trees = []
        for line in tool.run("report", *names, *args).decode().split("\n")[:-1]:
            share, depth, name = line.split("\t", 2)
            if depth == "0" and not (symbol and trees):
                trees.append((name, Counter()))
            way = [] if depth == "0" else way[:int(depth)]
            way, have = way + [name], trees[-1][1]
            if tuple(way) in have:
                raise Mismatch(f"a way stands twice: {way}")
            have[tuple(way)] = round(float(share) * total / 100)
            if abs(have[tuple(way)] - float(share) * total / 100) > 0.0001 * total:
                raise Mismatch(f"{way}: {share}% of {total}")
        for root, have in trees or [(None, Counter())]:
            want = Trees.expected(samples, callers, (lambda n: re.search(symbol, n)) if symbol else lambda n: n == root)
            # Shares have four digits: compared as these.
            rounded = Counter({k: round(round(100 * v / total, 4) * total / 100) for k, v in want.items()})
            same("callers" if callers else "callees", rounded, have)
        if not symbol:
            rows = rows_of(samples, ("symbol",))
            want = sorted(map(tuple, rows.values()), reverse=True)[:case.options["top"]]
            same("the trees' roots", Counter(want), Counter(tuple(rows[(root,)]) for root, _ in trees))


@law(3)
class Diff:
    """Two files: each function's shares of either, new and gone; stacks with both counts."""

    @staticmethod
    def make(rng):
        return Case("diff", same_kind(rng, 2))

    @staticmethod
    def check(case, tool):
        names = tool.write(case.inputs)
        sides = [read(x.profile, x.form) for x in case.inputs]
        modules = all(any(f.kind in (FILE, RUNTIME) and f.module for s in side for f in s.stack) for side in sides)
        rows = defaultdict(lambda: [0, 0, 0, 0])
        for i, side in enumerate(sides):
            total = sum(s.values[0] for s in side)
            for s in side:
                keys = [(n, module_name(f) if modules else "") for f in s.stack for n, _, _ in reversed(functions(f))]
                if keys:
                    rows[keys[0]][i] += 100 * s.values[0] / total
                for k in set(keys):
                    rows[k][2 + i] += 100 * s.values[0] / total
        data = tool.run("diff", *names, "--csv", "--percent-limit", "0", "--top", "0", "-o", "diff.folded")
        have = {}
        for line in data.decode().split("\n")[1:-1]:
            cells = line.split("\t")
            key = (cells[7], cells[8])
            if key in have:
                raise Mismatch(f"diff: a row stands twice: {key}")
            have[key] = cells
        if set(have) != set(rows):
            raise Mismatch(f"diff: rows {set(have) ^ set(rows)}")
        for key, (b, a, tb, ta) in rows.items():
            mark = "new" if tb == 0 else "gone" if ta == 0 else ""
            got = have[key]
            for want, text in zip((b, a, a - b, tb, ta, ta - tb), got):
                if abs(want - float(text)) > 0.0002:
                    raise Mismatch(f"diff: {key}: {got[:7]}, expected {(b, a, a - b, tb, ta, ta - tb, mark)}")
            if got[6] != mark:
                raise Mismatch(f"diff: {key} is marked {got[6]!r}, expected {mark!r}")
        with open(tool.path("diff.folded"), "rb") as f:
            both = folded.decode_two(f.read())
        want = {}
        for i, side in enumerate(sides):
            for path, value in folded_sums(side).items():
                want.setdefault(path, [0, 0])[i] = value
        if {k: tuple(v) for k, v in want.items()} != both:
            raise Mismatch(f"diff.folded: {set(both.items()) ^ {(k, tuple(v)) for k, v in want.items()}}")


@law(2)
class Last:
    """The local store: the payloads of the time asked for, added up."""

    @staticmethod
    def make(rng):
        inputs = []
        for _ in range(rng.choice((1, 2, 3, 5))):
            inputs.append(Input(generate.profile(rng, "otlp", (("samples", "count"),), 10**7), "otlp", rng))
        return Case("last", inputs, ages=[rng.choice((30, 90, 500, 7000)) for _ in inputs], **filters(rng))

    @staticmethod
    def check(case, tool):
        import gzip
        import shutil
        import time
        store = tool.path("store")
        shutil.rmtree(store, ignore_errors=True)
        os.mkdir(store)
        now = time.time_ns()
        for i, (x, age) in enumerate(zip(case.inputs, case.options["ages"])):
            n = sum(s.values[0] for s in x.profile.samples)
            data = otlp.encode_message(x.profile, random.Random(x.seed), [("perfwalk.samples", n)])
            write_file(os.path.join(store, f"{now - age * 10**9:020}-{i:08x}.otlp.gz"), gzip.compress(data, 1))
        for last, seconds in (("1m", 60), ("5m", 300), ("1h", 3600), ("1d", 86400)):
            samples = [s for x, age in zip(case.inputs, case.options["ages"]) if age < seconds
                       for s in read(x.profile, "otlp")]
            if not samples:
                tool.run("report", "--last", last, "--store", "store", status=1)
                continue
            chosen, args = filtered(samples, case.options)
            out = tool.run("report", "--last", last, "--store", "store", "-s", "comm,symbol", *ALL, *args, "-o", "last.folded")
            check_table(chosen, out, ("comm", "symbol"))
            with open(tool.path("last.folded"), "rb") as f:
                expect.check_folded(chosen, f.read())


@law(3)
class PerfData:
    """A file of perf record: the samples of the event that is asked for, in every format and in tables."""

    @staticmethod
    def make(rng):
        r = perfdata.recording(rng)
        return Case("perfdata", [Recorded(r, rng.randrange(1 << 32))],
                    event=rng.choice((None, *range(len(r.events)))), keys=tuple(rng.sample(("comm", "thread", "module", "symbol"), 2)))

    @staticmethod
    def check(case, tool):
        recording, event = case.inputs[0].recording, case.options["event"]
        chosen = perfdata.first_choice(recording) if event is None else event
        options = () if event is None else ("-e", recording.events[event].name)
        e = recording.events[chosen]
        samples = perfdata.read(recording, chosen)
        names = tool.write(case.inputs)
        if not samples:
            return
        weighted = perfdata.weighted(e)
        outs = tool.convert(names, options=options)
        check_outputs(samples, outs, (e.name, "count") if weighted else None, perfdata.period(e), times=not weighted)
        keys = case.options["keys"]
        check_table(samples, tool.run("report", *names, *options, "-s", ",".join(keys), *ALL), keys)


@law(2)
class Captures:
    """Captures of different perf events, converted and merged: those of one kind are added up, whatever each
    sample stands for; the others are left out, and named."""

    @staticmethod
    def make(rng):
        recordings = []
        while len(recordings) < 3:
            r = perfdata.recording(rng)
            if any(s.kind == perfdata.SAMPLE and s.fields[0] == 0 for s in r.steps):
                recordings.append(Recorded(r, rng.randrange(1 << 32)))
        return Case("captures", recordings, forms=[rng.choice(("pprof", "otlp")) for _ in recordings])

    @staticmethod
    def check(case, tool):
        parts = []
        names = tool.write(case.inputs)
        for i, x in enumerate(case.inputs):
            e, samples = x.recording.events[0], perfdata.read(x.recording, 0)
            if not samples:
                return
            form = case.options["forms"][i]
            tool.convert(names[i:i + 1], (form,), ("-e", e.name), prefix=f"part{i}")
            kind = "cpu" if perfdata.is_time(e) else e.name
            parts.append((f"part{i}.{OUTPUTS[form]}", kind, perfdata.weighted(e), perfdata.period(e), samples))

        def total(kind):
            mine = [p for p in parts if p[1] == kind]
            counted = len({p[3] for p in mine}) == 1 and not any(p[2] for p in mine)
            return add_up((k, v * (1 if counted or weighted else period)) for _, _, weighted, period, samples in mine
                          for k, v in folded_sums(samples).items())

        files, kinds = [p[0] for p in parts], [p[1] for p in parts]
        for order in (files, files[::-1]):
            have = folded.sums(tool.convert(order, ("folded",), prefix="sum")["folded"])
            same("the first file's kind", total(kinds[files.index(order[0])]), have)
            others = {k for k in kinds if k != kinds[files.index(order[0])]}
            if ("left out" in tool.stderr) != bool(others) or any(k not in tool.stderr for k in others):
                raise Mismatch(f"left out are {others}, said is {tool.stderr!r}")
        for kind in set(kinds):
            mine = [f for f, k in zip(files, kinds) if k == kind]
            same(f"-e {kind}", total(kind), folded.sums(tool.convert(mine, ("folded",), ("-e", kind))["folded"]),
                 proportional=True)
            if len(mine) < len(files):  # one that has none such is refused
                tool.run("convert", *files, "-e", kind, "-o", "none.folded", status=1)


@law(1)
class Head:
    """Of files with and without a number of samples in them, the head says them all."""

    @staticmethod
    def make(rng):
        inputs = []
        for _ in range(rng.choice((2, 3))):
            inputs.append(Input(generate.profile(rng, "otlp", (("samples", "count"),), 10**7), "otlp", rng))
        return Case("head", inputs, counted=[rng.random() < 0.5 for _ in inputs])

    @staticmethod
    def check(case, tool):
        parts, total = [], 0
        for x, counted in zip(case.inputs, case.options["counted"]):
            n = sum(s.values[0] for s in x.profile.samples)
            total += n
            data = otlp.encode_message(x.profile, random.Random(x.seed), [("perfwalk.samples", n)] if counted else [])
            parts.append(len(data).to_bytes(4, "big") + data)
        write_file(tool.path("in.otlp"), b"".join(parts))
        head = tool.run("report", "in.otlp", "-s", "comm").decode()
        m = re.search(r"^(\d+) samples", head, re.M)
        if not m or int(m[1]) != total:
            raise Mismatch(f"the head says {m and m[0]!r}, expected {total} samples")


@law(1)
class Nobody:
    """A process without a name stays without one, in every format and back."""

    @staticmethod
    def make(rng):
        p = generate.profile(rng, "otlp", (("samples", "count"),), 10**7)
        p.samples = [s._replace(task=s.task._replace(comm="", exe="")) for s in p.samples]
        return Case("nobody", [Input(p, "otlp", rng)])

    @staticmethod
    def check(case, tool):
        names = tool.write(case.inputs)
        want = read(case.inputs[0].profile, "otlp")
        for form in ("pprof", "otlp"):
            tool.convert(names, (form,))
            outs = tool.convert([f"out.{OUTPUTS[form]}"], ("folded",), prefix="back")
            expect.check_folded(want, outs["folded"])


@law(1)
class Empty:
    """Folded lines with empty names: the first is the process, whatever it is."""

    @staticmethod
    def make(rng):
        return Case("empty", [], lines=rng.choice((";main;foo 3", ";main 1", ";a;;b 2", "p;;x 2")))

    @staticmethod
    def check(case, tool):
        line = case.options["lines"]
        write_file(tool.path("in.folded"), (line + "\n").encode())
        have = folded.sums(tool.convert(["in.folded"], ("folded",))["folded"])
        (path, value), = have.items()
        names = [x for x in line.split(" ")[0].split(";")[1:] if x]
        got = path.split(";")[1:]
        if value != int(line.split(" ")[1]) or [x for x in got if x in names] != names:
            raise Mismatch(f"{line!r} became {path!r} {value}")


__all__ = ["LAWS", "Tool", "Case", "Input", "Mismatch", "KERNEL"]
