# SPDX-License-Identifier: Apache-2.0
# Rooms: runtimes src/reader src/profiler src/opener src/broker src/render
"""Samples of Go programs have the labels of their goroutine (runtime/pprof.Do), and its spans as links: in functions
that tell the span, below one that tells the worker. No sample has another's, none without labels has any. Names of
spans, as Pyroscope's tracer sets them, are beside their ids in each output. With two versions of Go, whose labels are a
map and a list; stripped; linked with a C library; and while labels are freed, and others put in their place, all the
time."""
import collections
import os
import re
import subprocess
import threading
import time

import inside
import otelcol
import otlp
import rig
import spans

LENGTH = float(os.environ.get("SPANS_LENGTH", "1"))  # of captures; make check-spans has longer ones
WANTED = 1000 * LENGTH  # samples in spans, of each program
ALL = collections.Counter()
MAP_VERSION = "go1.23.4"
WORKER = re.compile(r"main\.(?:init|glob\.)\.func(\d+)$")


class Program:
    def __init__(self, name, *args):
        self.process = rig.start([os.path.join(rig.build_workloads(name), name), *args], stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        lines = [line.split() for line in self.process.stdout]
        self.spans = {(int(worker), function): span for worker, function, span in lines}

    def expected(self, frames):
        """(worker or None, function, spans that it may have) of a stack."""
        function = next((f[5:] for f in frames if f.startswith("main.in") and not WORKER.match(f)), None)
        workers = [int(m.group(1)) - 1 for m in map(WORKER.match, frames) if m]
        worker = workers[0] if workers else None
        return worker, function, {s for (w, f), s in self.spans.items() if f == function and worker in (None, w)}


def samples_of(message, pid):
    """(time, frames, attributes, trace, span), sorted."""
    view, found = otlp.View(message), []
    for rp in message.resource_profiles:
        if otlp.attributes(rp.resource, view.strings).get("process.pid") != pid:
            continue
        for s in (s for sp in rp.scope_profiles for profile in sp.profiles for s in profile.samples):
            link, attributes = view.dictionary.link_table[s.link_index], view.table_attributes(s.attribute_indices)
            # A link has both ids; a span alone is an attribute.
            ids = (link.trace_id.hex(), link.span_id.hex()) if s.link_index else ("", attributes.get("span_id", ""))
            found += [(t, view.frames(s.stack_index), attributes, *ids) for t in s.timestamps_unix_nano]
    return sorted(found, key=lambda s: s[0])


class Mover(threading.Thread):
    """Moves all threads of a process to another CPU all the time."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.ended, self.n = pid, False, 0

    def run(self):
        cpus = sorted(os.sched_getaffinity(0))
        while not self.ended:
            self.n += 1
            for tid in os.listdir(f"/proc/{self.pid}/task"):
                try:
                    os.sched_setaffinity(int(tid), {cpus[self.n % len(cpus)]})
                except OSError:
                    pass  # it has ended
            time.sleep(50e-6)


def check_moved(name, min_share):
    """The kernel, or the C library, says where a thread is: one that has gone on elsewhere has no span, rather than
    another's."""
    program = Program(name)
    mover = Mover(program.pid)
    mover.start()
    out = rig.path("moved.otlp")
    r = rig.record_cpu(1.5 * LENGTH, [program.pid], "-F", "1999", "-p", program.pid, "-o", out)
    mover.ended = True
    mover.join()
    rig.check(r.status == 0, f"a capture of threads of {name} that were moved {mover.n} times")
    rig.end(program.process)
    with open(out, "rb") as f:
        message = otlp.decode(f.read())
    known = [(s, *program.expected(s[1])) for s in samples_of(message, program.pid)]
    linked = [k for k in known if k[0][4]]
    wrong = [k for k in linked if is_wrong(*k) and (k[3] or k[2] == "inNone")]
    rig.check(len(linked) >= WANTED / 10 and not wrong, f"moved {name}: none of {len(linked)} samples has another's span: {wrong[:3]}")
    inside = [k for k in known if k[3] and k[0][0] >= min(k[0][0] for k in linked)]
    rig.check(len(linked) >= min_share * len(inside), f"moved {name}: {len(linked)} of {len(inside)} have their own")


def named(worker):
    """Its spans have names, and no traces, as Pyroscope's tracer writes them."""
    return worker % 4 == 3


def is_wrong(sample, worker, _, spans_of_it):
    _, _, attributes, trace, span = sample
    worker = int(span, 16) >> 32 & 7 if worker is None else worker
    expected = ("", f"GET /{span}") if named(worker) else (f"{worker + 1:032x}", None)
    return span not in spans_of_it or (trace, attributes.get("span_name")) != expected


def check_samples(samples, message, program, what):
    first = next((s[0] for s in samples if s[4]), None)
    rig.check(first, f"{what}: samples have spans")
    known = [(s, *program.expected(s[1])) for s in samples if s[0] > first]
    inside = [k for k in known if k[3]]
    wrong = [k for k in inside if k[0][4] and is_wrong(*k)]
    right = sum(bool(k[0][4]) for k in inside) - len(wrong)
    ALL.update(inside=len(inside), right=right, wrong=len(wrong))
    rig.check(len(inside) >= WANTED, f"{what}: {len(inside)} samples in spans")
    rig.check(not wrong, f"{what}: none has another's span: {wrong[:3]}")
    spans.check_share(right, len(inside), message, what)
    kinds = {k[2] for k in inside if k[0][4]}
    rig.check(kinds == {"inOuter", "inInner", "inSystem", "inInherited"}, f"{what}: in each function: {kinds}")
    none = [k[0] for k in known if k[2] == "inNone"]
    rig.check(none and not any(s[4] or "route" in s[2] for s in none), f"{what}: none of {len(none)} without labels")
    check_attributes([k[0] for k in inside if k[0][4]], what)


def check_attributes(samples, what):
    rig.check(all(s[2].get("route") == "/cart" for s in samples), f"{what}: other labels are attributes")
    threads = {s[2].get("thread.id") for s in samples}
    rig.check(all(isinstance(t, int) and t > 7 for t in threads) and not any({"comm", "container"} & s[2].keys() for s in samples),
              f"{what}: no label has a key by which perfwalk says whose a sample is: {threads}")
    ids = {s[2].get("goroutine.id") for s in samples}
    rig.check(len(ids) > 8 and all(isinstance(i, int) and 0 < i < 1 << 40 for i in ids),
              f"{what}: numbers of {len(ids)} goroutines")


def check_names(samples, files):
    """Names of spans are beside their ids in each output that has labels, and an id alone chooses samples for those that
    have none."""
    mine = collections.Counter((s[4], s[2]["span_name"]) for s in samples if "span_name" in s[2])
    rig.check(len(mine) == 4, f"two goroutines with two spans each have names: {mine}")
    found, n = collections.Counter(), 0
    for line in subprocess.run(["go", "tool", "pprof", "-raw", files["pb.gz"]], capture_output=True, text=True, check=True).stdout.splitlines():
        n = int(line.split()[0]) if re.match(r" +\d+ +\d+: ", line) else n
        label = re.search(r"span_id:\[(.*?)\] span_name:\[(.*?)\]", line)
        found.update({label.groups(): n} if label else {})
    rig.check(found == mine, f"labels of pprof: {found}")
    with open(files["html"], encoding="utf-8") as f:
        page = f.read()
    rig.check(set(re.findall(r"span_name=(GET /\w+)", page)) == {name for _, name in mine}, "labels of the page")
    for (span, _), n in mine.items():
        name = rig.path("one.folded")
        p = subprocess.run([rig.perfwalk(), "report", "--span", span, "-o", name, files["otlp"]], check=False, capture_output=True, text=True)
        rig.check(p.returncode == 0 and rig.total(rig.read_folded(name)) == n, f"--span {span}: its {n} samples in folded stacks: {p.stderr}")


def check_capture(name, what, *args):
    program = Program(name, *args)
    files = {suffix: rig.path(f"{name}.{suffix}") for suffix in ("otlp", "pb.gz", "html")}
    r = rig.record_cpu(2.5 * LENGTH, [program.pid], "-F", "1999", "-p", program.pid, *(x for f in files.values() for x in ("-o", f)))
    rig.check(r.status == 0, f"a capture of {what}")
    with open(files["otlp"], "rb") as f:
        message = otlp.decode(f.read())
    samples, said = samples_of(message, program.pid), spans.counts_of(message)
    check_samples(samples, message, program, what)
    check_names(samples, files)
    n_with = sum(bool(s[4]) for s in samples)
    rig.check(said["linked"] == n_with and n_with < sum(said.values()) <= len(samples),
              f"{what}: {n_with} of {len(samples)} samples are counted as linked: {said}")
    rig.end(program.process)


def check_denied():
    """What the config does not allow leaves no daemon, nor do numbers of goroutines, by default."""
    collector = otelcol.start({"plain": ("http", "")})
    program = Program("labelled")
    d = rig.Daemon("[profiler]\nsamples_per_second = 199\nreporter_interval = 1s\n[attributes]\nallow = process.pid, goroutine.*, secret.*\n"
                   f"[export:c]\nendpoint = http://127.0.0.1:{collector.ports['plain']}\n[process]\nuser = root\n")

    def linked():
        return [s for m in collector.messages("plain") for s in samples_of(otlp.decode(m), program.pid) if s[4]]
    rig.wait_for("samples in spans", lambda: len(linked()) > 20, 60)
    keys = {key for s in linked() for key in s[2]}
    rig.check("secret.key" in keys and not keys & {"route", "span_name", "goroutine.id"}, f"denied labels stay here: {keys}")
    d.stop()
    rig.end(program.process)
    collector.stop()


def main():
    rig.need_root()
    rig.need_programs("go")
    check_capture("labelled", "a program")
    check_capture("labelled", "one that collects its memory all the time", "collect")
    check_capture("labelled-stripped", "a stripped one")
    check_capture("labelled-linked", "one with a C library")
    os.environ["GOTOOLCHAIN"] = MAP_VERSION
    if subprocess.run(["go", "version"], check=False, capture_output=True).returncode == 0:
        check_capture("labelled", "one whose labels are a map", "collect")
    else:
        rig.say(f"{MAP_VERSION} cannot be fetched: labels in maps are not tried")
    del os.environ["GOTOOLCHAIN"]
    check_moved("labelled", 0.5)
    check_moved("labelled-linked", 0.5)
    if inside.gives_priority():
        check_denied()
    else:
        rig.leave_out(inside.NO_PRIORITY)
    rig.say(f"of {ALL['inside']} samples in spans {ALL['right']} have their own, {ALL['wrong']} another's")


if __name__ == "__main__":
    rig.run(main)
