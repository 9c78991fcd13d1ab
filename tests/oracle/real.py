# SPDX-License-Identifier: Apache-2.0
"""The same laws with the tools whose formats these are: go tool pprof, perf, speedscope's and the
Firefox Profiler's importers; and a capture, whose numbers must agree in every output. Each runs a
few times, for a process of theirs costs as much as hundreds of ours."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter

import expect
import folded
import generate
import otlp
import perfdata
import pprof
import viewers
from cases import Input, Mismatch, check_outputs, period_of, read, same
from model import add_up, comm_of, flat_and_cum, functions, write_file

HERE = os.path.dirname(os.path.abspath(__file__))


class Missing(Exception):
    """A tool is not here."""


def run(*args, **options):
    p = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=120,
                       check=False, **options)
    if p.returncode != 0:
        raise Mismatch(f"{' '.join(args[:4])} ends with {p.returncode}: {p.stderr.decode(errors='replace')[-500:]}")
    return p.stdout.decode()


def need(*programs):
    for name in programs:
        if not shutil.which(name):
            raise Missing(f"{name} is not installed")


def named_profile(rng, form, types):
    """Every frame with a name that no tool takes apart."""
    p = generate.profile(rng, form, types, 10**7, n=8)
    good = [s._replace(stack=tuple(f for f in s.stack if f.lines and all(re.fullmatch(r"\w+", x.name) for x in f.lines)))
            for s in p.samples]
    p.samples = [s for s in good if s.stack] or [s._replace(stack=(generate.Frame(lines=(generate.Line("f"),)),))
                                                 for s in p.samples[:1]]
    return p


# ---- go tool pprof ----

def go_top(path, index):
    text = run("go", "tool", "pprof", "-top", "-nodecount=1000000", "-nodefraction=0", "-symbolize=none",
               f"-sample_index={index}", path)
    flat, cum = Counter(), Counter()
    for line in text.splitlines():
        m = re.match(r"\s*(-?\d+)\s+{0}\s+{0}\s+(-?\d+)\s+{0}\s+(.*)".format(r"-?[\d.]+(?:e-\d+)?%"), line)
        if m:
            name = re.sub(r" \((partial-)?inline\)$", "", m[3])
            flat[name] += int(m[1])
            cum[name] += int(m[2])
    return flat, cum


def go_tool(rng, tool):
    """go tool pprof has the same flat and cumulative numbers of a file, of what we write of it, and of the table."""
    need("go")
    p = named_profile(rng, "pprof", rng.choice(((("samples", "count"),), (("alloc_objects", "count"),))))
    names = tool.write([Input(p, "pprof", rng)])
    tool.convert(names, ("pprof",))
    flat, cum = flat_and_cum(read(p, "pprof"))
    index = p.types[0][0]
    for name in (names[0], "out.pb.gz"):
        have_flat, have_cum = go_top(tool.path(name), index)
        same(f"go tool pprof on {name}, flat", add_up(flat.items()), add_up(have_flat.items()))
        same(f"go tool pprof on {name}, cumulative", cum, have_cum)


# ---- perf ----

PERF_EVENTS = (("-e", "cpu-clock", "-F", "999", "-g"), ("-e", "page-faults", "-c", "1"),
               ("-e", "page-faults", "-c", "7", "-g"), ("-e", "cpu-clock,page-faults", "-g"))
PERF_GROUPS = (("-e", "{cpu-clock,page-faults}:S", "-F", "1999", "-g"),
               ("-e", "{cpu-clock,page-faults,context-switches}:S", "--call-graph", "dwarf,4096"))
WORK = "import os\nfor i in range(3):\n x = bytearray(4 << 20)\n os.path.exists('/')\nsum(range(300000))\n"


def perf_script(rng, tool):
    """perf script has the same samples, with their times, tasks and periods, of each event of a file."""
    need("perf")
    for what in (rng.choice(PERF_EVENTS), rng.choice(PERF_GROUPS)):
        perf_file(tool, what)


def perf_file(tool, what):
    data = tool.path("perf.data")
    if subprocess.run(["perf", "record", "-q", "-o", data, *what, "--", "python3", "-c", WORK], check=False,
                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
        raise Missing("perf record cannot run here")
    by_event = {}
    for line in run("perf", "script", "-i", data, "-F", "pid,tid,time,event,period", "--ns").splitlines():
        m = re.match(r"\s*(\d+)/(\d+)\s+(\d+)\.(\d{9}):\s+(\d+)\s+(\S+?):", line)
        if m:
            key = (int(m[1]), int(m[2]), int(m[5]))
            by_event.setdefault(m[6], []).append((int(m[3]) * 10**9 + int(m[4]), key))
    group = "{" in what[1]
    for i, (event, want) in enumerate(sorted(by_event.items())):
        leader = event.startswith("cpu-clock")
        outs = tool.convert(["perf.data"], ("perf", "folded"), ("-e", event), prefix=f"perf{i}")
        have = viewers.perf_script(outs["perf"])
        # Of time at a rate each sample is one period, whatever the timer's delays made of it.
        period = (lambda k: k[:2]) if leader else (lambda k: k)
        same(f"perf script: {event} of {' '.join(what)}", Counter(period(k) for _, k in want),
             Counter(period(s[1:3] + (s[5],)) for s in have))
        if leader or group or "-c" in what:
            same(f"folded: {event}", Counter({"sum": len(want) if leader or "-c" in what else sum(k[2] for _, k in want)}),
                 Counter({"sum": sum(folded.sums(outs["folded"]).values())}))


def perf_reads(rng, tool):
    """perf script finds in generated files what the model says of them."""
    need("perf")
    r = perfdata.recording(rng)
    cpus = all(e.sample_type & perfdata.CPU for e in r.events)
    write_file(tool.path("made.data"), perfdata.encode(r, rng))
    text = run("perf", "script", "-i", tool.path("made.data"), "--ns", "-F",
               "comm,pid,tid,time,event,period,ip" + (",cpu" if cpus else ""))
    have = Counter()
    for head, addresses in re.findall(r"(?m)^ *(\S.*?): *([0-9a-f]*(?:\n\s+[0-9a-f]+)*) *\n", text):
        m = re.match(r"(.*?) +(\d+)/(\d+) +(?:\[(\d+)\] +)?(\d+)\.(\d{9}): +(\d+) +(\S+)$", head)
        if not m:
            raise Mismatch(f"perf script: {head!r}")
        have[(m[1], int(m[2]), int(m[3]), int(m[4] or 0), int(m[5]) * 10**9 + int(m[6]), int(m[7]), m[8],
              tuple(int(a, 16) for a in addresses.split()))] += 1
    same("perf script of a generated file", Counter(perfdata.as_perf_tells(r)), have)


# ---- The viewers' own importers ----

def viewer_directory():
    need("node", "npm")
    p = subprocess.run(["sh", os.path.join(HERE, "..", "system", "build-viewers.sh")], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True, check=False)
    if p.returncode != 0:
        raise Missing(p.stderr.strip()[-300:])
    return p.stdout.strip()


def rows_of(samples, period=1, process=False):
    """(name, self, total) of each function: one of that name, module and source file."""
    flat, cum = Counter(), Counter()
    for s in samples:
        path = [(comm_of(s.task), s.task._replace(tid=0, thread=""))] if process else []
        path += [(n, expect.module_key(f), x.file if x and f.kind != "marker" else "")
                 for f in reversed(s.stack) for n, _, x in functions(f)]
        if path:
            flat[path[-1]] += s.values[0] * period
        for key in set(path):
            cum[key] += s.values[0] * period
    return sorted([key[0], flat[key], cum[key]] for key in cum)


def by_thread(samples):
    threads = {}
    for s in samples:
        threads.setdefault(s.task, []).append(s)
    return threads.values()


SPEEDSCOPE_KINDS = (("samples", "count"), ("alloc_space", "bytes"), ("alloc_objects", "count"), ("off_cpu", "nanoseconds"))


def speedscope(rng, tool):
    """speedscope's importer has the model's self and total weights, of the sum and of each thread."""
    directory = viewer_directory()
    bundle, = glob.glob(os.path.join(directory, "node_modules/speedscope/dist/release/speedscope-*.js"))
    models, files = [], []
    for i in range(8):
        form = rng.choice(("pprof", "otlp", "folded"))
        kind = ("samples", "count") if form == "folded" else rng.choice(SPEEDSCOPE_KINDS)
        x = Input(generate.profile(rng, form, (kind,), 10**7), form, rng)
        tool.convert(tool.write([x]), ("speedscope",), prefix=f"s{i}")
        models.append(x)
        files.append(tool.path(f"s{i}.speedscope.json"))
    have = json.loads(run("node", os.path.join(HERE, "speedscope.js"), bundle, *files))
    for file, x in zip(files, models):
        samples = read(x.profile, x.form)
        kind = x.profile.types[0]
        period = period_of(x.profile, 0) if kind[0] == "samples" else 1
        if have[file] is None:
            raise Mismatch(f"speedscope cannot read {file}")
        unit = expect.viewers.speedscope(open(file, "rb").read())[2]
        if kind[0] != "samples" and unit != (kind[1] if kind[1] != "count" else "none"):
            raise Mismatch(f"speedscope: {kind} is in {unit}")
        want = rows_of(samples, period, True)
        if sorted(have[file][0]["frames"]) != want or have[file][0]["total"] != sum(s.values[0] for s in samples) * period:
            raise Mismatch(f"speedscope, {file}: {have[file][0]}, expected {want}")
        want = sorted(rows_of(t, period) for t in by_thread(samples))
        got = sorted(sorted(p["frames"]) for p in have[file][1:])
        if want != got:
            raise Mismatch(f"speedscope, threads of {file}: {got}, expected {want}")


def firefox(rng, tool):
    """The Firefox Profiler's importer has the model's self and total samples of each thread."""
    directory = viewer_directory()
    cli = os.path.join(directory, "node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js")
    p = named_profile(rng, "otlp", (("samples", "count"),))
    x = Input(p, "otlp", rng)
    tool.convert(tool.write([x]), ("firefox",))
    environment = {**os.environ, "HOME": tool.directory, "PROFILER_CLI_SESSION_DIR": tool.path("session")}

    def ask(*args):
        return run("node", cli, *args, env=environment)

    def load():
        # Its daemon has half a second to come up: in front of others, where that is allowed.
        q = subprocess.run(["nice", "-n", "-15", "node", cli, "load", tool.path("out.json.gz")], capture_output=True, text=True,
                           timeout=60, env=environment, check=False)
        late = re.search(r"still be running as pid (\d+)", q.stdout + q.stderr)
        if late:
            os.kill(int(late[1]), signal.SIGKILL)
        return q.returncode == 0

    try:
        end = time.monotonic() + 120
        while not load() and time.monotonic() < end:
            pass
        if time.monotonic() > end:
            raise Missing("the profiler's daemon does not come up")
        threads = viewers.load(open(tool.path("out.json.gz"), "rb").read())["threads"]
        got = []
        for i in range(len(threads)):
            answer = json.loads(ask("thread", "functions", "--thread", f"t-{i}", "--limit", "0", "--include-idle", "--json"))
            got.append(sorted([f["name"], f["selfSamples"], f["totalSamples"]] for f in answer["functions"]))
    finally:
        subprocess.run(["node", cli, "stop", "--all"], env=environment, check=False, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    want = sorted(rows_of(t) for t in by_thread(read(p, "otlp")))
    if sorted(got) != want:
        raise Mismatch(f"Firefox Profiler: {sorted(got)}, expected {want}")


# ---- A capture ----

LONG = "f" * 2101
# Each turn is of another length: turns as long as a period would always be sampled in the same function. It prints how
# long each function ran: how long a turn of a loop takes is a matter of the processor and of alignment.
CAPTURED = f"""
#include <stdio.h>
#include <time.h>
static volatile int x;
static double cpu_seconds(void)
{{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}}
__attribute__((noinline)) void {LONG}1(int n) {{ for (int i = 0; i < 2 * n; i++) x += i; }}
__attribute__((noinline)) void {LONG}2(int n) {{ for (int i = 0; i < n; i++) x += i; }}
int main(void)
{{
	double a = 0, b = 0;
	for (int i = 0; i < 1800; i++) {{
		double t0 = cpu_seconds();
		{LONG}1(50000 + i * 7919 % 100000);
		double t1 = cpu_seconds();
		{LONG}2(50000 + i * 7919 % 100000);
		a += t1 - t0;
		b += cpu_seconds() - t1;
	}}
	fprintf(stderr, "ran %f %f\\n", a, b);
	return 0;
}}
"""

def capture(rng, tool):
    """A capture: the summary, every output, the report and what is read back say the same numbers."""
    need("gcc")
    with open(tool.path("work.c"), "w", encoding="ascii") as f:
        f.write(CAPTURED)
    run("gcc", "-O1", "-g", "-o", tool.path("work"), tool.path("work.c"))
    names = ("c.folded", "c.pb.gz", "c.otlp", "c.perf.txt", "c.speedscope.json", "c.json.gz")
    summary = tool.run("record", "-F", str(rng.choice((499, 999))), *(x for n in names for x in ("-o", n)), "--",
                       tool.path("work"), status=None).decode()
    said = tool.stderr
    data = {n: open(tool.path(n), "rb").read() for n in names if os.path.exists(tool.path(n))}
    if len(data) < len(names):
        raise Missing("record cannot run here: " + said.strip()[-200:])
    have = folded.sums(data["c.folded"])
    total = sum(have.values())
    m = re.search(r"Samples\s+([\d,]+)", summary)
    if not m or int(m[1].replace(",", "")) != total:
        raise Mismatch(f"the summary says {m and m[0]!r}, folded stacks {total}")
    p = pprof.decode(data["c.pb.gz"])
    sums = {"pprof": sum(s.values[0] for s in p.samples), "pprof's time": sum(s.values[1] for s in p.samples) / p.period,
            "OTLP": sum(s.values[0] for x in otlp.decode(data["c.otlp"]) for s in x.samples),
            "perf script": len(viewers.perf_script(data["c.perf.txt"])),
            "speedscope": sum(viewers.speedscope(data["c.speedscope.json"])[0].values()) / p.period,
            "Firefox": sum(viewers.firefox(data["c.json.gz"])[0].values())}
    for what, n in sums.items():
        if n != total:
            raise Mismatch(f"{what}: {n} samples of {total}")
    for name in ("c.pb.gz", "c.otlp"):
        same(f"{name} read back", have, folded.sums(tool.convert([name], ("folded",), prefix="back")["folded"]))
    table = tool.run("report", "c.pb.gz", "-s", "symbol", "--csv", "--percent-limit", "0").decode().splitlines()[1:]
    rows = {r.split("\t")[3]: int(r.split("\t")[2]) for r in table}
    if sum(rows.values()) != total:
        raise Mismatch(f"the table's rows add up to {sum(rows.values())} of {total}")
    # Names this long are cut, and end with a hash.
    long = sorted(v for k, v in rows.items() if k.startswith(LONG[:2000]))
    ran = sorted(float(t) for t in re.search(r"^ran (\S+) (\S+)$", said, re.M).groups())
    share = ran[0] / sum(ran)
    # On a busy host each sample is a throw of dice: five standard deviations.
    if len(long) != 2 or abs(long[0] - sum(long) * share) > 5 * (sum(long) * share * (1 - share)) ** 0.5:
        raise Mismatch(f"two functions with long names that ran {ran} s have {long} samples")


CHECKS = {"go_tool": (go_tool, 4), "perf_script": (perf_script, 2), "perf_reads": (perf_reads, 3),
          "speedscope": (speedscope, 1), "firefox": (firefox, 1),
          "capture": (capture, 1)}

__all__ = ["CHECKS", "Missing", "check_outputs"]
