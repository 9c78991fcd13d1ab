# SPDX-License-Identifier: Apache-2.0
# Rooms: runtimes src/reader src/profiler src/opener src/broker src/render src/import src/profile proto
"""Samples have the span of their thread: of a program that publishes its thread contexts (OTEP 4947) in
functions that tell the span, with the variable in the program, static or not, and in a library that is loaded
later. No sample has another's, none outside of a span has one, and a broken record is none. That holds for spans of a
microsecond, too, while the thread moves between CPUs, or the reader has to wait. A real collector gets the links, a
report of one span has its function alone, and the windows of a daemon with samples of one are listed."""
import collections
import glob
import gzip
import os
import re
import shutil
import subprocess

import inside
import otelcol
import otlp
import rig

LENGTH = float(os.environ.get("SPANS_LENGTH", "1"))  # of captures; make check-spans has longer ones
WANTED = 700 * LENGTH  # samples in spans, of each kind of library; about 1,000 where no CPU is missing
SECONDS = 1.2 * LENGTH
ALL = collections.Counter()
OWN = ("in_outer", "in_inner", "in_wild")
HANDED = [f"in_handed_{i}" for i in range(8)]


class Program:
    def __init__(self, name, *libraries, comm=None):
        directory = rig.build_workloads(name)
        program = shutil.copy(os.path.join(directory, name), rig.path(comm)) if comm else os.path.join(directory, name)
        self.process = rig.start([program, *(os.path.join(directory, x) for x in libraries)],
                                 stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        # Those that are handed over, and of each of 4 threads its own.
        lines = [self.process.stdout.readline().split() for _ in range(len(HANDED) + 4 * len(OWN))]
        self.spans = {(int(tid), function): span for tid, function, span in lines}

    def expected(self, tid, function):
        return self.spans.get((tid, function)) or self.spans.get((0, function))


def linked(message):
    """(resource, thread id, function, span, attributes, times) of each sample."""
    view = otlp.View(message)
    for rp in message.resource_profiles:
        resource = otlp.attributes(rp.resource, view.strings)
        for sp in rp.scope_profiles:
            for profile in sp.profiles:
                for s in profile.samples:
                    link = view.dictionary.link_table[s.link_index]
                    mine = [f for f in view.frames(s.stack_index) if f.startswith("in_")]
                    yield (resource, view.table_attributes(s.attribute_indices).get("thread.id"),
                           mine[-1] if mine else None, link.span_id.hex() if s.link_index else "",
                           link.trace_id.hex() if s.link_index else "", s.timestamps_unix_nano)


def samples_of(message, program):
    """(time, thread, function, span, trace), sorted, from the first span of the last thread on: each is asked for
    once, and the memory of each is looked for once."""
    mine = sorted((t, tid, function, span, trace) for resource, tid, function, span, trace, times in linked(message)
                  if resource.get("process.pid") == program.pid for t in times)
    first = {}
    for t, tid, _, span, _ in mine:
        if span:
            first.setdefault(tid, t)
    return [s for s in mine if s[0] > max(first.values())] if first else []


def check_share(right, inside, message, what):
    """Of the samples inside of spans nearly all have theirs. A busy host reads some too late, or its readers have used up
    their share by wake-ups, which the window counts."""
    said = counts_of(message)
    late = 0 if LENGTH > 1 else min(said["unread"] + said["late"] + said["moved"], 0.25 * inside)
    rig.check(right >= 0.995 * inside - late, f"{what}: {right} of {inside} have their own: {dict(said)}")


def check_samples(message, program, what):
    samples = samples_of(message, program)
    inside = [(s, program.expected(s[1], s[2])) for s in samples if s[2] in (*OWN, *HANDED)]
    right = sum(s[3] == span for s, span in inside)
    wrong = [(s, span) for s, span in inside if s[3] and s[3] != span]
    ALL.update(inside=len(inside), right=right, wrong=len(wrong))
    rig.check(len(inside) >= WANTED, f"{what}: {len(inside)} samples in spans")
    rig.check(not wrong, f"{what}: none has another's span: {wrong[:3]}")
    check_share(right, len(inside), message, what)
    outside = [s for s in samples if s[2] in ("in_none", "in_torn")]
    threads = collections.Counter(f for f, _ in {(s[2], s[1]) for s, span in inside if s[3] == span and s[2] in HANDED})
    rig.check(threads and max(threads.values()) > 1, f"{what}: a span has samples of {max(threads.values())} threads")
    rig.check(outside and not any(s[3] for s in outside), f"{what}: none of {len(outside)} outside of spans has one")


def check_capture(name, *libraries, seconds=SECONDS):
    """The program, a table of its samples, and what to call it."""
    program = Program(name, *libraries)
    what = libraries[0] if libraries else name
    out, table = rig.path(f"{what}.otlp"), rig.path(f"{what}.pb.gz")
    r = rig.record_cpu(seconds, [program.pid], "-F", "1999", "-p", program.pid, "-o", out, "-o", table)
    rig.check(r.status == 0, f"a capture of {what}")
    with open(out, "rb") as f:
        message = otlp.decode(f.read())
    check_samples(message, program, what)
    rig.end(program.process)
    return program, table, what, message


def fast_samples(program, *words):
    """(span, the one that its function tells) of each sample in a span."""
    directory = rig.build_workloads(program)
    p = rig.start([os.path.join(directory, program), *words], stdout=subprocess.PIPE, text=True)
    rig.check(p.stdout.readline() == "ready\n", f"{program} {' '.join(words)}")
    out = rig.path("fast.otlp")
    r = rig.record_cpu(2 * LENGTH, [p.pid], "-F", "1999", "-p", p.pid, "-o", out)
    rig.check(r.status == 0, f"a capture of {program} {' '.join(words)}")
    rig.end(p)
    with open(out, "rb") as f:
        samples = [(span, f"{int(function[-1]) + 1:02x}" * 8) for resource, _, function, span, _, times
                   in linked(otlp.decode(f.read())) if resource.get("process.pid") == p.pid and function for _ in times]
    return samples, "which is read again in" in r.err


def check_fast(program, *words, min_share):
    """Of spans that last a microsecond, none is another's. A program that a reader waited for is set aside for longer than
    the capture."""
    what = " ".join([program, *words])
    samples, given_up = fast_samples(program, *words)
    wrong = [s for s in samples if s[0] and s[0] != s[1]]
    right = sum(span == expected for span, expected in samples)
    rig.check(len(samples) >= 50 * LENGTH, f"{what}: {len(samples)} samples in spans")
    rig.check(not wrong, f"{what}: none has another's span: {len(wrong)}, {wrong[:3]}")
    rig.check(right >= min_share * len(samples) or given_up, f"{what}: {right} of {len(samples)} have their own")
    return right


def check_all_fast():
    check_fast("spans-fast", "move", min_share=0.5)
    # As long as readers wait, the share is that of the time in which nobody maps memory.
    check_fast("spans-fast", "map", min_share=0.01)
    check_fast("spans-fast", "map", "move", min_share=0.01)
    rig.check(check_fast("spans-fast", "realtime", min_share=0) == 0,
              "a thread with a higher priority than a reader has no span")
    if shutil.which("musl-gcc"):
        # Without the C library's word on the CPU: away and back again within some 30 us.
        check_fast("spans-fast-musl", "move", "move", min_share=0.2)
        check_fast("spans-fast-musl", "map", "move", min_share=0.01)


def check_musl():
    if not shutil.which("musl-gcc"):
        rig.leave_out("musl-gcc is not installed")
        return
    check_capture("spans-musl")
    check_capture("spans-musl-static")
    check_capture("spans-musl-loaded", "libspan-slot-musl.so")
    check_capture("spans-musl-loaded", "libspan-slot-musl-gnu2.so")


def check_stripped():
    """Without symbols nobody knows where a static program has the variable: that is said."""
    program = Program("spans-stripped")
    out = rig.path("stripped.otlp")
    r = rig.record_cpu(1.2, [program.pid], "-v", "-F", "199", "-p", program.pid, "-o", out)
    rig.check(f"process {program.pid}: its samples have no spans" in r.err, "it is said why there are none")
    with open(out, "rb") as f:
        spans = [s[3] for s in linked(otlp.decode(f.read()))]
    rig.check(spans and not any(spans), f"none of {len(spans)} samples of a stripped static program has a span")
    rig.end(program.process)


def check_counted():
    """Readers follow an event at a rate: that is said where there is none."""
    program = Program("spans")
    r = rig.record_cpu(0.5, [program.pid], "-e", "cpu-clock/period=500000/", "-p", program.pid, "-o", rig.path("counted.otlp"))
    rig.check(r.err.count("samples no spans: readers need an event at a rate") == 1, f"it is said once: {r.err}")
    rig.end(program.process)


def check_no_priority():
    """A reader without a real-time priority sees threads that have gone on."""
    program, out = Program("spans"), rig.path("late.otlp")
    r = rig.record_cpu(1, [program.pid], "-F", "199", "-p", program.pid, "-o", out,
                       argv_prefix=["setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice"])
    rig.check(r.status == 0 and "samples have no spans: the reader may not have a real-time priority" in r.err,
              f"it is said that readers lack it: {r.err}")
    with open(out, "rb") as f:
        spans = [s[3] for s in linked(otlp.decode(f.read())) if s[2] == "in_outer"]
    rig.check(spans and not any(spans), f"none of {len(spans)} samples has a span then")
    rig.end(program.process)


class Sleeper:
    """tests/workloads/spans-waits.c"""

    def __init__(self, name, factor):
        self.process = rig.start([os.path.join(rig.build_workloads(name), name), str(factor)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid

    def end(self):
        """(thread, function, span, begin, ns) of each sleep, by its own clock."""
        out, _ = self.process.communicate(timeout=60)
        for line in out.decode().splitlines():
            tid, function, span, begin, end = line.split()
            yield int(tid), function, "" if span == "-" else span, int(begin), int(end) - int(begin)


def values_of(message, kind, pid):
    """(thread, ns, span, frames) of each sample of a type in nanoseconds."""
    view = otlp.View(message)
    for rp in message.resource_profiles:
        if otlp.attributes(rp.resource, view.strings).get("process.pid") != pid:
            continue
        for profile in (p for sp in rp.scope_profiles for p in sp.profiles):
            if view.strings[profile.sample_type.type_strindex] != kind:
                continue
            for s in profile.samples:
                span = view.dictionary.link_table[s.link_index].span_id.hex() if s.link_index else ""
                tid = view.table_attributes(s.attribute_indices).get("thread.id")
                yield tid, sum(s.values), span, view.frames(s.stack_index)


def check_blocked(name, *args):
    """Sleeps in one place of the code have the span of each, if a reader saw it: none has another's, and nearly all
    time of long ones has its own from when the spans of the program are known."""
    # Of a whole host few blocks are sampled, and it takes some 100 ms until the others are looked at.
    program, what = Sleeper(name, 10 if args else 1), f"{name} {' '.join(args)}"
    out, table = rig.path("blocked.otlp"), rig.path("blocked.pb.gz")
    r = rig.record("--wall", "--idle", "-d", str((8 if args else 3) + LENGTH), "-F", "499", "-o", out, "-o", table,
                   *(args or ("-p", str(program.pid))))
    sleeps = list(program.end())
    rig.check(r.status == 0, f"a capture of {what}: {r.err}")
    with open(out, "rb") as f:
        message = otlp.decode(f.read())
    blocks = list(values_of(message, "off_cpu", program.pid))
    linked_times = [t for resource, _, _, span, _, times in linked(message) for t in times
                    if span and resource.get("process.pid") == program.pid]
    mine, planted, after, kinds = collections.Counter(), collections.Counter(), collections.Counter(), {}
    for tid, ns, span, _ in blocks:
        if span:
            mine[tid, span] += ns
    known_ns = min(linked_times) + 500_000_000
    last_ns = max(t for resource, _, _, _, _, times in linked(message) for t in times if resource.get("process.pid") == program.pid)
    for tid, function, span, begin, ns in sleeps:
        planted[tid, span] += ns
        kinds[span] = function
        after[function] += ns if begin > known_ns and begin + ns < last_ns else 0
    wrong = {k: (ns, planted[k]) for k, ns in mine.items() if ns > 1.01 * planted[k] + 100_000}
    rig.check(not wrong, f"{what}: no block has another's span: {len(wrong)} {list(wrong.items())[:3]}")
    of = collections.Counter()
    for (_, span), ns in mine.items():
        of[kinds.get(span)] += ns
    # Where others switch so often that blocks are followed in turns, few are seen whole.
    share = 0 if "off-CPU time is measured 1/" in r.err else 0.95
    rig.check(after["in_long"] > 0 and of["in_long"] > share * after["in_long"],
              f"{what}: long ones: {of['in_long'] / 1e9:.3f} s have their span, {after['in_long'] / 1e9:.3f} s were after it was known")
    if not args:  # of a whole host others count, too
        # The thread that waits for the others is in no span, either.
        sleepers = {tid for tid, _, _, _, _ in sleeps}
        outside_ns = sum(ns for _, _, span, _, ns in sleeps if not span) + sum(ns for tid, ns, _, _ in blocks if tid not in sleepers)
        check_blocked_sum(message, program.pid, mine, outside_ns, what)
    rig.check(of["in_short"] > 0, f"{what}: short ones: {of['in_short'] / 1e9:.3f} s of {after['in_short'] / 1e9:.3f} s, those that were sampled")
    check_wall(message, table, program.pid, blocks, what)


def check_blocked_sum(message, pid, linked_ns, outside_ns, what):
    """All blocked time of a program is counted as that of a span, of none, or of one that is not known."""
    counts = counts_of(message)
    us = {k: counts[f"blocked_{k}_us"] for k in ("linked", "outside", "unproven")}
    blocked = sum(ns for _, ns, _, _ in values_of(message, "off_cpu", pid)) / 1000
    rig.check(us["linked"] and abs(us["linked"] - sum(linked_ns.values()) / 1000) <= 100,
              f"{what}: {us} us, in spans are {sum(linked_ns.values()) / 1000:.0f}")
    rig.check(us["outside"] and us["outside"] <= outside_ns / 1000 * 1.01 + 100,
              f"{what}: of {outside_ns / 1000:.0f} us outside of spans not more are counted: {us['outside']}")
    rig.check(abs(sum(us.values()) - blocked) <= 100, f"{what}: {sum(us.values())} us are counted, {blocked:.0f} us were blocked")


def check_wall(message, table, pid, blocks, what):
    """Wall time of a span is that of its blocks, and of its time on a CPU."""
    walls = collections.Counter()
    for _, ns, span, frames in values_of(message, "wall", pid):
        walls[span, frames[0] if frames[0] in ("[on CPU]", "[waiting for a CPU]") else "blocked"] += ns
    blocked = collections.Counter()
    for _, ns, span, _ in blocks:
        blocked[span] += ns
    rig.check({s: ns for (s, state), ns in walls.items() if state == "blocked"} == +blocked, f"{what}: wall time has the blocks of each span")
    rig.check(sum(ns for (s, state), ns in walls.items() if state == "[on CPU]" and s) > 0, f"{what}: and time on a CPU")
    rows = {row[-1]: int(row[2]) for row in report("-e", "off_cpu", "-c", what[:15].split()[0], "--by", "span", "--percent-limit", "0", table)}
    rig.check(rows and all(rows.get(s, 0) == ns for s, ns in blocked.items()),
              f"{what}: report --by span has the blocked time of each of {len(rows)} spans")


def report(*args):
    p = subprocess.run([rig.perfwalk(), "report", "--csv", *args], check=False, capture_output=True, text=True)
    rig.check(p.returncode == 0, f"report {args[:4]} {p.stderr}")
    return [line.split("\t") for line in p.stdout.splitlines()[1:]]


def check_table(table, samples, what):
    """The CPU time of each span, against the samples of the same capture in OTLP."""
    counts = collections.Counter(s[3] for s in samples)
    rows = {row[-1]: row for row in report("--by", "span", "--percent-limit", "0", table)}
    mine = {span: int(row[2]) for span, row in rows.items()}
    rig.check(mine == counts, f"{what}: --by span has the samples of each: {set(mine.items()) ^ set(counts.items())}")
    wrong = {span: row[0] for span, row in rows.items() if abs(float(row[0]) - 100 * counts[span] / len(samples)) > 0.001}
    rig.check(not wrong, f"{what}: and their shares: {wrong}")
    ids = sorted({s[4] for s in samples if s[4]})
    for trace in ids[:2]:
        counts = collections.Counter(s[3] for s in samples if s[4] == trace)
        mine = {row[-1]: int(row[2]) for row in report("--by", "span", "--percent-limit", "0", "--trace", trace.upper(), table)}
        rig.check(mine == counts, f"{what}: --trace {trace[:6]} has its {sum(counts.values())} samples: {mine}")
        check_files(trace, counts, what)
    rig.check(not report("--trace", "f" * 32, table) and len(ids) > 1, f"{what}: none has another trace")


def check_files(trace, counts, what):
    """Files of a report of a trace have the samples of this trace alone."""
    outs = {suffix: rig.path(f"one.{suffix}") for suffix in ("otlp", "folded", "html", "pb.gz")}
    report("--trace", trace, *(x for out in outs.values() for x in ("-o", out)), rig.path(f"{what}.otlp"))
    with open(outs["otlp"], "rb") as f:
        message = otlp.decode(f.read())
    mine = collections.Counter((its, span) for _, _, _, span, its, times in linked(message) for _ in times)
    rig.check(mine == {(trace, span): n for span, n in counts.items()}, f"{what}: OTLP has them alone: {mine}")
    rig.check(rig.total(rig.read_folded(outs["folded"])) == sum(counts.values()), f"{what}: folded stacks have as many")
    rows = report("--by", "span", "--percent-limit", "0", outs["pb.gz"])
    rig.check({row[-1]: int(row[2]) for row in rows} == counts, f"{what}: pprof has them")
    with open(outs["html"], encoding="utf-8") as f:
        found = set(re.findall(r"trace_id=([0-9a-f]{32})", f.read()))
    rig.check(found == {trace}, f"{what}: the page knows no other trace: {found}")


def check_report(program, table, what, message):
    check_table(table, [(t, tid, f, span, trace) for _, tid, f, span, trace, times in linked(message) for t in times], what)
    (tid, _), span = next((k, v) for k, v in program.spans.items() if k[1] == "in_inner")
    rows = report("--span", span.upper(), "--sort", "thread,symbol", table)
    functions = {row[-1] for row in rows if row[-1].startswith("in_")}
    rig.check(functions == {"in_inner"} and {row[-2].split("/")[-1] for row in rows} == {str(tid)},
              f"{what}: a report of a span has its function alone: {functions}")
    rows = report("--by", "span", table)
    rig.check(set(program.spans.values()) <= {row[-1] for row in rows}, f"{what}: a row for each of {len(rows)} spans")
    with subprocess.Popen(["go", "tool", "pprof", "-tags", table], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL) as p:
        tags = p.stdout.read()
    rig.check("http.route" in tags and "/cart" in tags and "http.method" in tags and "GET" in tags,
              f"{what}: attributes of the records are labels, by the list of keys")


def list_windows(*args, status=0):
    """{file: samples} of perfwalk list windows."""
    p = subprocess.run([rig.perfwalk(), "list", "windows", *args], check=False, capture_output=True, text=True)
    rig.check(p.returncode == status, f"list windows {args[2:]} ends with {status}: {p.returncode} {p.stderr}")
    rows = [line.split() for line in p.stdout.splitlines()[1:]]
    return {row[-1]: int(row[1]) for row in rows} if status == 0 else p.stderr


def check_stored():
    """Of the windows that a daemon keeps those with samples of a trace, a span or a service are listed, with so many
    samples as the files have."""
    store, other = rig.path("store"), rig.start([os.path.join(rig.build_workloads("chain"), "chain"), "30"], stdout=subprocess.DEVNULL)
    d = rig.Daemon(f"[profiler]\nsamples_per_second = 199\nreporter_interval = 1s\n[store]\nenabled = yes\npath = {store}\n")

    def files():
        return sorted(glob.glob(os.path.join(store, "*.otlp.gz")))
    rig.wait_for("two windows", lambda: len(files()) > 1, 30)
    service = f"shop-{os.getpid()}"
    program = Program("spans", comm=service)
    began = len(files())
    rig.wait_for("windows of the program", lambda: len(files()) > began + 3, 60)
    rig.end(program.process)
    ended = len(files())
    rig.wait_for("windows after it", lambda: len(files()) > ended + 2, 60)
    d.stop()
    rig.end(other)
    counts = {"trace": collections.defaultdict(collections.Counter), "span": collections.defaultdict(collections.Counter), "service": collections.Counter()}
    for name in files():
        with gzip.open(name) as f:
            for resource, _, _, span, trace, times in linked(otlp.decode(f.read())):
                counts["service"][name] += len(times) * (resource.get("service.name") == service)
                if span:
                    counts["trace"][trace][name] += len(times)
                    counts["span"][span][name] += len(times)
    rig.check(0 < len(counts["service"] - collections.Counter()) < len(files()), f"some of {len(files())} windows have samples of the program")
    for option in ("trace", "span"):
        for id_, expected in sorted(counts[option].items())[:3]:
            mine = list_windows("--store", store, f"--{option}", id_.upper())
            rig.check(mine == expected, f"--{option} {id_} lists the {len(expected)} windows with samples of it: {mine}, {dict(expected)}")
    rig.check(len(counts["trace"]) > 1 and len(counts["span"]) > 2, "of several traces and spans")
    mine = list_windows("--store", store, "--service", service)
    rig.check(mine == +counts["service"], f"--service: {set(mine.items()) ^ set((+counts['service']).items())}")
    rig.check(set(list_windows("--store", store)) == set(files()), "without a filter all are listed")
    rig.check(not list_windows("--store", store, "--trace", "f" * 32), "of no such trace there is none")
    rig.check("hexadecimal" in list_windows("--store", store, "--span", "12", status=2), "an id that is none is refused")
    rig.check("no profile of that time" in list_windows("--store", rig.path("none"), status=1), "a store that is not there is said")
    with open(files()[0], "r+b") as f:
        f.truncate(40)
    rig.check(files()[0] in list_windows("--store", store, status=1), "a damaged file is named")


def counts_of(message):
    """What a window says of its samples: "linked" ..."""
    said, view = collections.Counter(), otlp.View(message)
    for profile in (p for rp in message.resource_profiles for sp in rp.scope_profiles for p in sp.profiles):
        said.update({k[len("perfwalk.spans_"):]: n for k, n in view.table_attributes(profile.attribute_indices).items()
                     if k.startswith("perfwalk.spans_")})
    return said


def check_window(message, program):
    """Each sample of a window is counted once, as what the program says of the function that it was in."""
    said, samples = counts_of(message), collections.Counter()
    for resource, _, function, span, _, times in linked(message):
        if resource.get("process.pid") == program.pid:
            kind = "inside" if function in (*OWN, *HANDED) else function or "elsewhere"
            samples.update({"all": len(times), kind: len(times), "linked": len(times) if span else 0})
    lost, elsewhere = said["unread"] + said["late"] + said["moved"], samples["elsewhere"]
    rig.check(sum(said.values()) == samples["all"] and said["linked"] == samples["linked"],
              f"a window's {samples['all']} samples are counted, {samples['linked']} as linked: {said}")
    rig.check(samples["in_torn"] - lost <= said["half_written"] <= samples["in_torn"] + elsewhere,
              f"half-written in in_torn: {said} {samples}")
    rig.check(samples["in_none"] - lost <= said["outside"] + said["unreadable"] <= samples["in_none"] + elsewhere,
              f"outside, or not readable, in in_none: {said} {samples}")
    rig.check(samples["inside"] - lost <= said["linked"] <= samples["inside"] + elsewhere, f"linked in spans: {said} {samples}")
    return samples["all"]


def check_counts():
    """Every sample of a program that tells its spans is linked, outside, or not proven, by cause."""
    collector = otelcol.start({"plain": ("http", "")})
    program = Program("spans", comm=f"spans-{os.getpid()}")
    d = rig.Daemon("[profiler]\nsamples_per_second = 999\nreporter_interval = 1s\n"
                   f"[filter]\ninclude_comm = spans-{os.getpid()}\n"
                   f"[export:c]\nendpoint = http://127.0.0.1:{collector.ports['plain']}\n[process]\nuser = root\n")
    rig.wait_for("windows", lambda: list(collector.messages("plain")), 60)
    rig.wait_for("samples in spans", lambda: int(d.status()["spans_linked"]) > 300 * LENGTH, 120)
    said = {k[len("spans_"):]: int(n) for k, n in d.status().items() if k.startswith("spans_")}
    d.stop()
    rig.end(program.process)
    collector.stop()
    totals, n = collections.Counter(), 0
    for message in map(otlp.decode, collector.messages("plain")):
        # In the first window with spans the program was not known from the beginning.
        n += check_window(message, program) if totals["linked"] else 0
        totals.update(counts_of(message))
    rig.check(n > 100 * LENGTH, f"{n} samples are counted")
    rig.check(all(said[k] <= totals[k] for k in said) and said["linked"], f"ctl status has them: {said}, in the end {totals}")
    rig.check(all(totals[k] for k in ("linked", "outside", "half_written", "unreadable")), f"of each kind: {totals}")


def check_collector():
    collector = otelcol.start({"plain": ("http", "")})
    program = Program("spans")
    d = rig.Daemon("[profiler]\nsamples_per_second = 99\nreporter_interval = 1s\n"
                   f"[export:c]\nendpoint = http://127.0.0.1:{collector.ports['plain']}\n[process]\nuser = root\n")
    trace = "10" * 16

    def joined():
        """What a backend finds by the trace of thread 0."""
        return {s[3] for m in collector.messages("plain") for s in samples_of(otlp.decode(m), program) if s[4] == trace}
    wanted = {"2020202020202001", "2020202020202002"}
    rows = [line.split()[:2] for line in subprocess.run([rig.perfwalk(), "list", "services"], stdout=subprocess.PIPE,
                                                        text=True, check=True).stdout.splitlines()]
    rig.check(["spans", "tlsdesc_v1_dev"] in rows, f"list services has how its threads tell their spans: {rows}")
    rig.wait_for("the samples of a trace", lambda: wanted <= joined(), 60)
    rig.check(joined() <= wanted | {"2020202020202004"}, "by its trace a collector finds the samples of its spans")
    d.stop()
    rig.end(program.process)
    collector.stop()


def main():
    rig.need_root()
    rig.need_tracefs()
    rig.need_programs("go", "setpriv")
    check_report(*check_capture("spans", seconds=1.5 * SECONDS))
    check_report(*check_capture("spans-loaded", "libspan-slot.so"))
    check_report(*check_capture("spans-loaded", "libspan-slot-gnu2.so"))
    check_capture("spans-static")
    check_capture("spans-static-pie")
    check_stripped()
    check_counted()
    check_no_priority()
    check_musl()
    check_blocked("spans-waits")
    check_blocked("spans-waits", "-a")
    if shutil.which("musl-gcc"):
        check_blocked("spans-waits-musl", "-a")
    check_all_fast()
    if inside.gives_priority():
        check_counts()
        check_collector()
        check_stored()
    else:
        rig.leave_out(inside.NO_PRIORITY)
    rig.say(f"of {ALL['inside']} samples in spans {ALL['right']} have their own, {ALL['wrong']} another's")


if __name__ == "__main__":
    rig.run(main)
