# SPDX-License-Identifier: Apache-2.0
# Rooms: src/sample src/profiler src/profile src/render
"""Several events in one capture: each sample is of the event that it is of, in every format that holds
all, for each kind of target, and nothing gets lost in silence. The truth is the workload's own: page
faults that the kernel counted for it, and its own clock of the CPU time it burnt. Needs root."""
import gzip
import json
import os
import re
import signal
import subprocess
import time

import otlp
import rig
from pprof_file import fields, numbers
from sink import Sink

PAGES, MS, ROUNDS = 150, 40, 20
NAME = f"c{os.getpid()}"  # of the workload: another test may run one of its own


class Truth:
    """What the workload prints."""

    def __init__(self, text):
        m = re.search(r"^faults (\d+) burnt (\d+) all (\d+)$", text, re.M)
        if not m:
            rig.fail(f"the workload said nothing of itself: {text[-500:]!r}")
        self.faults, self.burnt_ns, self.all_ns = map(int, m.groups())
        self.burnt = self.burnt_ns / self.all_ns


def workload(directory, rounds=ROUNDS):
    return [os.path.join(directory, NAME), "both", str(PAGES), str(MS), str(rounds)]


def line():
    """Standard input of a workload that need not wait."""
    with open(rig.write("line", "\n"), "rb") as f:
        return os.dup(f.fileno())


def capture(*args, prefix=(), **options):
    """A finished capture of a command: its text and messages."""
    fd = line()
    p = rig.start([*prefix, options.pop("program", rig.perfwalk()), "record", *args], stdin=fd, stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE, text=True, **options)
    os.close(fd)
    out, err = p.communicate(timeout=120)
    if p.returncode != 0:
        rig.fail(f"record {' '.join(args)}: {p.returncode}\n{out}{err}")
    return out, err


def counted(text, name):
    """A number of the summary."""
    m = re.search(rf"^ *{re.escape(name)} +([\d,]+)( |$)", text, re.M)
    return int(m[1].replace(",", "")) if m else 0


def missing(text):
    """Samples of faults that a summary says are not there, at most: it does not tell whose were dropped."""
    m = re.search(r"^  page-faults .*?([\d,]+) lost\b", text, re.M)
    return (int(m[1].replace(",", "")) if m else 0) + sum(
        counted(text, name) for name in ("dropped", "lost with a process"))


def perf_text(name):
    """[(comm, event, value, functions from leaf to root)] of text as perf script prints it."""
    with open(name, encoding="utf-8") as f:
        entries = f.read().split("\n\n")
    for entry in entries:
        lines = [x for x in entry.splitlines() if not x.startswith("#")]
        m = re.fullmatch(r"(.+?) +(\d+)/(\d+) +\[\d+\] [\d.]+: +(\d+) (\S+):", lines[0]) if lines else None
        if m:
            yield m[1], m[5], int(m[4]), [x.split()[1].split("+")[0] for x in lines[1:]]


def totals(samples, comm=None):
    """{event: {function: the sum of the values of samples that it is in, "": of all}}."""
    sums = {}
    for who, event, value, functions in samples:
        if comm is None or who == comm:
            of = sums.setdefault(event, {})
            for f in {"", *functions}:
                of[f] = of.get(f, 0) + value
    return sums


def near(a, b, share):
    return abs(a - b) <= share * b


def check_truth(what, sums, truth, lost=0, clock="cpu-clock"):
    """Faults within 1%; the CPU time burnt, of all, as the clock of the workload says: within 6 of 100."""
    faults, cpu = sums.get("page-faults", {}), sums.get(clock, {})
    n = faults.get("counted_touch", 0)
    rig.check(near(n + lost, truth.faults, 0.01), f"{what}: {n} faults, {lost} lost, of {truth.faults}")
    share = cpu.get("counted_burn", 0) / max(1, cpu.get("", 0))
    rig.check(abs(share - truth.burnt) < 0.06, f"{what}: {share:.1%} of CPU time is burnt, of {truth.burnt:.1%}")
    rig.check(faults.get("counted_burn", 0) == 0, f"{what}: who burns has no faults")


# ---- Formats ----


def one(message, number, default=0):
    return next((v for k, v in fields(message) if k == number), default)


def pprof_samples(name):
    """As perf_text(), a sample for each of its values that is not 0; the events are the types' names."""
    with gzip.open(name) as f:
        profile = list(fields(f.read()))
    strings = [v.decode() for k, v in profile if k == 6]
    types = [strings[one(v, 1)] for k, v in profile if k == 1]
    functions = {one(v, 1): strings[one(v, 2)] for k, v in profile if k == 5}
    locations = {one(v, 1): [functions[one(x, 1)] for k2, x in fields(v) if k2 == 4] for k, v in profile if k == 4}
    for k, v in profile:
        if k == 2:
            names = [f for i in numbers(one(v, 1, b"")) for f in locations[i]]
            for event, value in zip(types, numbers(one(v, 2, b""))):
                if value:
                    yield "", event, value, names


def otlp_samples(name):
    """The same of OTLP: a profile is of what its period is of, and a sample stands for its times."""
    with open(name, "rb") as f:
        yield from view_samples(otlp.View(otlp.decode(f.read())))


def view_samples(view):
    for rp in view.message.resource_profiles:
        for profile in (p for sp in rp.scope_profiles for p in sp.profiles):
            event = view.strings[profile.period_type.type_strindex]
            for s in profile.samples:
                yield "", event, sum(s.values) or len(s.timestamps_unix_nano), view.frames(s.stack_index)


def check_all_types(truth, lost):
    for name, read in (("both.pb.gz", pprof_samples), ("both.otlp", otlp_samples)):
        sums = totals(read(rig.path(name)))
        rig.say(f"{name} has {', '.join(sorted(sums))}")
        check_truth(name, {"page-faults": sums.get("page-faults", {}),
                           "cpu-clock": sums.get("cpu", {})}, truth, lost)


def formats(directory):
    out, err = capture("-e", "cpu-clock/freq=499/", "-e", "page-faults", "-o", rig.path("both.pb.gz"), "-o",
                       rig.path("both.otlp"), "-o", rig.path("both.html"), "-o", rig.path("both.folded"), "-o", rig.path("both.perf.txt"),
                       "--", *workload(directory))
    truth, lost = Truth(out), missing(out)
    rig.check("cpu-clock at 499 Hz and page-faults (each one) on" in err and
              "cpu-clock at 499 Hz and page-faults (each one) for" in out, "what is recorded is said")
    rig.check(re.search(r"both\.folded will hold cpu-clock alone, without page-faults: .*pprof", err) and
              err.count("will hold") == 1, "so is what a format leaves out, which, and what holds all")
    samples = list(perf_text(rig.path("both.perf.txt")))
    check_truth("perf script text", totals(samples, NAME), truth, lost)
    n = {e: sum(x[1] == e for x in samples) for e in ("cpu-clock", "page-faults")}
    rig.check(len(samples) == sum(n.values()) == counted(out, "Samples") and
              all(counted(out, e) == n[e] for e in n), f"the summary counts each: {n}")
    rig.check(rig.total(rig.read_folded(rig.path("both.folded"))) == n["cpu-clock"],
              "folded stacks are those of the first event")
    with open(rig.path("both.html"), encoding="utf-8") as f:
        page = json.loads(re.search(r'id="data">(.*?)</script>', f.read(), re.S)[1])
    rig.check([(c["meta"]["event"], c["total"], c["counters"]["samples"]) for c in page] == [(e, n[e], n[e]) for e in n],
              "the page has both")
    check_all_types(truth, lost)


# ---- Distances ----


def distances(directory):
    """-F and -c are for all, wherever they stand; what stands behind an event comes first."""
    text = rig.path("rates.perf.txt")

    def record(*args):
        out, _ = capture(*args, "-q", "-o", text, "--", *workload(directory))
        truth, sums = Truth(out), {}
        for _, event, value, _ in perf_text(text):
            n, total = sums.get(event, (0, 0))
            sums[event] = n + 1, total + value
        return truth, sums

    truth, sums = record("-e", "cpu-clock,page-faults/period=10,stack-size=1K/", "-F", "999")
    n, total = sums["page-faults"]
    rig.check(total == 10 * n and near(total, truth.faults, 0.1), f"period=10: {n} samples of {truth.faults} faults")
    n, total = sums["cpu-clock"]
    rig.check(near(n, truth.all_ns / 1e9 * 999, 0.2), f"-F 999 of the other: {n} in {truth.all_ns / 1e9:.2f} s")
    truth, sums = record("-c", "1000000", "-e", "cpu-clock", "-e", "page-faults/period=1/", "-e", "task-clock/freq=99/")
    rig.check(near(sums["cpu-clock"][0], truth.all_ns / 1e6, 0.2) and
              near(sums["task-clock"][0], truth.all_ns / 1e9 * 99, 0.25) and sums["page-faults"][0] >= truth.faults * 0.99,
              f"-c of one, terms of two: {sums}")


def refusals():
    for args, words in ((["-e", "cs,cs"], "twice"), (["-e", "faults", "-e", "page-faults"], "twice"),
                        (["-e", "{cs,faults}"], "grouped"), (["-e", "cs/depth=1/"], "freq=HZ"),
                        (["-e", "cs/period=0/"], "period=COUNT"), (["-e", "cs/period=1"], "period=COUNT"),
                        (["-e", "cs,"], "unknown event"), (["-e", "cs/name=a b/"], "name=TEXT"),
                        (["-e", "cs/name=x/,faults/name=x/"], "give one of them another"), (["-e", "cs/filter=/"], "filter=EXPRESSION"),
                        (["-e", "cs/filter=x==1/"], "only tracepoints have fields"), (["--filter", "x==1"], "the event before it"), (["-e", "cs,page-fautls"], "did you mean page-faults"),
                        (["-e", "cpu-clock,cs", "-c", "10"], "EVENT/period=COUNT/"),
                        (["-U", "-e", "cpu-clock,cs"], "context-switches: it happens inside the kernel"),
                        (["-e", "cpu-clock,task-clock,cs,faults,minor-faults,major-faults,migrations"], "6 events")):
        r = rig.record(*args, "-d", "1", "-o", rig.path("no.pb.gz"))
        rig.check(r.status == 2 and words in r.err, f"{' '.join(args)}: {r.err.strip()[:120]}")


# ---- Targets ----


def wait_recording(p):
    """What it said until it records: a host may have it warn before. All that it said if it ends."""
    said = ""
    for line in p.stderr:
        said += line
        if "recording" in line:
            break
    return said


def beside(directory, *args, rounds=ROUNDS):
    """A capture that is there before the workload goes on: what both say."""
    target = rig.start(workload(directory, rounds), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    args = [str(target.pid) if a == "PID" else a for a in args]
    p = rig.start([rig.perfwalk(), "record", *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE, text=True)
    err = wait_recording(p)
    if "recording" not in err:
        rig.fail(f"record {' '.join(args)}: {err}")
    own, _ = target.communicate("\n", timeout=120)
    if "-a" in args:
        rig.kill(p.pid, signal.SIGINT)
    out, err = p.communicate(timeout=120)
    rig.check(p.returncode == 0, f"record {' '.join(args[:4])}... ends with {p.returncode}: {err.strip()[-200:]}")
    return Truth(own), out


def targets(directory):
    text = rig.path("target.perf.txt")
    truth, out = beside(directory, "-p", "PID", "-e", "page-faults", "-e", "cpu-clock/freq=499/", "-o", text)
    check_truth("-p", totals(perf_text(text), NAME), truth, missing(out))
    # Faults of the whole host come by chance to be the tenth, and whose they are.
    truth, out = beside(directory, "-a", "--comm", NAME, "-e", "cpu-clock/freq=499/,page-faults/period=10/", "-o", text)
    faults = totals(perf_text(text), NAME)["page-faults"]["counted_touch"]
    good = missing(out) > 0 or near(faults, truth.faults, 0.25)
    rig.check(good, f"-a: {faults} faults of {truth.faults}" + ("" if good else f"\n{out}"))


def tracepoint(directory):
    """The scheduler's tracepoint and its counter happen at the same moments."""
    text = rig.path("switches.perf.txt")
    out, _ = capture("-e", "cpu-clock", "-e", "context-switches,sched:sched_switch", "-o", text, "--",
                     os.path.join(directory, NAME), "switches", "300")
    own = int(re.search(r"^switches (\d+)$", out, re.M)[1])
    sums = {e: s[""] for e, s in totals(perf_text(text), NAME).items() if e != "cpu-clock"}
    counter, point = sums.pop("context-switches", 0), sums.pop("sched:sched_switch", 0)
    rig.check(not sums and own <= counter <= own + 300 and abs(counter - point) <= 3,
              f"three events, of a program that says {own} switches: {counter}, {point}")
    by_filter()
    bad_filters()
    daemon_by_filter()


def by_filter():
    """Of programs that end with one status or another, the kernel takes those that a filter names."""
    text = rig.path("filtered.perf.txt")
    script = "for i in 1 2 3 4 5 6 7; do (exit 3); done; for i in 1 2 3; do (exit 5); done; exit 0"
    event = "syscalls:sys_enter_exit_group/filter=error_code==%d,name=%s/"
    out, _ = capture("-e", "cpu-clock", "-e", event % (3, "three"), "-e", event % (5, "five"), "-e",
                     "syscalls:sys_enter_exit_group", "--filter", "error_code >= 3", "--filter", "error_code < 5", "-o", text, "--",
                     "sh", "-c", script)
    sums = {e: s[""] for e, s in totals(perf_text(text)).items() if e != "cpu-clock"}
    rig.check(sums == {"three": 7, "five": 3, "syscalls:sys_enter_exit_group": 7}, f"filters keep what they name: {sums}")


def daemon_by_filter():
    """One tracepoint under two names of the config, each with its filter."""
    # Statuses that no other program of the host ends with at the moment, most likely.
    events = "".join(f"[event:{name}]\nevent = syscalls:sys_enter_exit_group\nfilter = error_code == {code}\nperiod = 1\n"
                     for name, code in (("three", 93), ("five", 95)))
    store = rig.path("filter-store")
    daemon = rig.Daemon(DAEMON.format(comm="sh", store=store, endpoint="http://127.0.0.1:9", events=events), "filtered")
    daemon.wait_up()
    subprocess.run(["sh", "-c", "for i in 1 2 3 4 5 6 7; do (exit 93); done; for i in 1 2 3; do (exit 95); done; exit 0"], check=True)
    rig.check(ctl(daemon, "flush").returncode == 0, "flush")
    said = values_of(daemon)
    rig.check([said[f"event.{name}.samples"] for name in ("three", "five")] == ["7", "3"],
              f"the daemon: {[x for x in said.items() if x[0].startswith('event.')]}")
    daemon.stop()


def bad_filters():
    for event, words in (("sched:sched_switch/filter=prev_stat==2/", "no field of sched:sched_switch: prev_stat (did you mean prev_state?)"),
                         ("sched:sched_switch/filter=prev_state==/", "(Invalid argument): a filter is FIELD OPERATOR VALUE"),
                         ("sched:sched_swich", "did you mean sched:sched_switch?")):
        r = subprocess.run([rig.perfwalk(), "record", "-e", event, "-d", "1", "-o", rig.path("no.pb.gz")],
                           capture_output=True, text=True, check=False)
        rig.check(r.returncode == 2 and words in r.stderr, f"{event}: {r.stderr.strip()[:160]}")


# ---- Losses ----


def killed(directory):
    """The profiler dies half-way: its rings are read by the next one."""
    text = rig.path("killed.perf.txt")
    fd = line()
    p = rig.start([rig.perfwalk(), "record", "-e", "cpu-clock/freq=499/", "-e", "page-faults", "-o", text, "--",
                   *workload(directory, 90)], stdin=fd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    os.close(fd)
    err = wait_recording(p)
    rig.check("recording" in err, err.strip())
    profiler = rig.wait_for("the profiler", lambda: next(
        (c for c in rig.children_of(p.pid) if rig.comm_of(c) == rig.ROLES["profiler"]), 0))
    try:
        p.communicate(timeout=2.7)
    except subprocess.TimeoutExpired:
        pass
    rig.kill(profiler, signal.SIGKILL)
    out, err = p.communicate(timeout=120)
    rig.check("profiler" in err, f"its death is told: {err.strip()[:150]}")
    truth = Truth(out)
    sums = totals(perf_text(text), NAME)
    n, burnt = sums["page-faults"]["counted_touch"], sums["cpu-clock"]["counted_burn"]
    # What it had read of a window of 2 s dies with it, of both events, and is reported; losses.py does the sum.
    gap = truth.faults - n
    rig.check(0 <= gap <= missing(out), f"{gap} faults of {truth.faults} are missing, {missing(out)} samples told")
    # The lost moments have more of the one or of the other, and time is sampled.
    rig.check(abs(n / truth.faults - burnt / truth.burnt_ns) < 0.15,
              f"{n / truth.faults:.1%} of the faults are there, and {burnt / truth.burnt_ns:.1%} of the time")
    rig.check("counted_burn" not in sums["page-faults"], "the next profiler tells the events apart")


def told_by(name, event):
    """(samples, lost) as a report of a recorded file says."""
    r = subprocess.run([rig.perfwalk(), "report", "--event", event, rig.path(name)], capture_output=True,
                       text=True, check=False)
    m = re.search(r"^(\d+) samples.*?, (\d+) lost", r.stdout, re.M)
    if not m:
        rig.fail(f"report --event {event} {name}: {r.stdout}{r.stderr}")
    return int(m[1]), int(m[2])


def losses(directory):
    """Nobody reads the rings for a while: the faults do not fit theirs, the few samples of time do. Each
    event has its own losses, and they are the same wherever they are read."""
    outputs = [x for name in ("lossy.otlp", "lossy.pb.gz") for x in ("-o", rig.path(name))]
    p = rig.start([rig.perfwalk(), "record", "-e", "cpu-clock/freq=49,stack-size=1K/", "-e",
                   "page-faults/period=1,stack-size=65528/", *outputs, "--", *workload(directory, 60)],
                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    err = wait_recording(p)
    rig.check("recording" in err, err.strip())
    profiler = rig.wait_for("the profiler", lambda: next(
        (c for c in rig.children_of(p.pid) if rig.comm_of(c) == rig.ROLES["profiler"]), 0))
    rig.kill(profiler, signal.SIGSTOP)
    p.stdin.write("\n")
    p.stdin.flush()
    rig.wait_for("the workload's end", lambda: not any(
        rig.comm_of(c) == NAME for c in rig.children_of(p.pid)), 120)
    rig.kill(profiler, signal.SIGCONT)
    out, err = p.communicate(timeout=120)
    truth = Truth(out)
    lost = counted(out, "lost")
    rig.check(lost > 100, f"{lost} of {truth.faults} faults did not fit")
    m = re.search(r"^  page-faults +([\d,]+) +([\d,]+) lost", out, re.M)
    rig.check(m and not re.search(r"^  cpu-clock .* lost", out, re.M) and int(m[2].replace(",", "")) == lost,
              "the summary says whose they are")
    n = int(m[1].replace(",", ""))
    rig.check(0 <= n + lost - truth.faults <= 0.05 * truth.faults + 100, f"{n} faults and {lost}: {truth.faults}")
    for name in ("lossy.otlp", "lossy.pb.gz"):
        of_time, of_faults = told_by(name, "cpu"), told_by(name, "page-faults")
        rig.check(told_by(name, "cpu-clock") == of_time, f"{name}: cpu-clock is cpu")
        rig.check(of_faults == (n, lost) and of_time == (counted(out, "cpu-clock"), 0),
                  f"{name}, read again: {of_time} of the clock, {of_faults} of the faults")


# ---- The daemon ----

DAEMON = """[profiler]
reporter_interval = 1s
samples_per_second = 499
[filter]
include_comm = {comm}
[store]
enabled = yes
path = {store}
[export:sink]
endpoint = {endpoint}
{events}
"""
# Without a budget: the host may have more faults than that just now.
EVENTS = """[event:page-faults]
period = 10
budget = 0
stack_size = 1K
kernel = no
[event:task-clock]
samples_per_second = 99
"""


def ctl(daemon, *args):
    return subprocess.run([rig.perfwalk(), "ctl", "-s", daemon.control, *args], capture_output=True, text=True,
                          timeout=120, check=False)


def values_of(daemon):
    return dict(line.split(" ", 1) for line in ctl(daemon, "status", "--all").stdout.splitlines())


def all_sent(daemon, sink, before=0):
    """All payloads of the windows that are settled, and there are more than before."""
    said = values_of(daemon)
    return int(said["payloads"]) == int(said["export.sink.payloads_sent"]) == sink.count() > before


def sampled_by(daemon, sink, directory):
    """What a run of the workload says, and what came of it."""
    seen = sink.count()
    target = rig.start(workload(directory), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    out, _ = target.communicate("\n", timeout=120)
    rig.check(ctl(daemon, "flush").returncode == 0, "flush")
    rig.wait_for("all payloads", lambda: all_sent(daemon, sink, seen), 30)
    samples = [x for view in sink.views()[seen:] for x in view_samples(view)]
    return Truth(out), samples


def daemon_events(directory):
    """The daemon has the events of its config as types of its profiles, also after a reload."""
    store = rig.path("store")
    with Sink() as sink:
        config = {"store": store, "endpoint": sink.endpoint, "comm": NAME}
        daemon = rig.Daemon(DAEMON.format(events=EVENTS, **config))
        daemon.wait_up()
        truth, samples = sampled_by(daemon, sink, directory)
        sums, said = totals(samples), values_of(daemon)
        # Faults of the whole host come by chance to be the tenth, and whose they are.
        n, lost = 10 * sums["page-faults"]["counted_touch"], int(said["event.page-faults.samples_lost"])
        rig.check(n + 10 * lost > 0.75 * truth.faults and n < 1.25 * truth.faults,
                  f"the daemon: {n} faults of {truth.faults}, {lost} samples lost")
        burnt = sums["cpu"]["counted_burn"] / sums["cpu"][""]
        rig.check(abs(burnt - truth.burnt) < 0.06, f"and {burnt:.1%} of CPU time is burnt, of {truth.burnt:.1%}")
        rig.check(set(sums) == {"cpu", "page-faults", "task-clock"}, f"three types: {sorted(sums)}")
        n, seconds = sums["task-clock"][""], truth.all_ns / 1e9
        rig.check(near(n, 99 * seconds, 0.3), f"task-clock has a rate of its own: {n} in {seconds:.2f} s")
        rig.check(not any("do_syscall_64" in x[3] for x in samples if x[1] == "page-faults"),
                  "kernel = no: no fault of the kernel's")
        rig.check(sum(int(said[f"event.{e}.samples"]) for e in (said["event"], "page-faults", "task-clock")) ==
                  int(said["samples"]), "the status counts each")
        rig.check(re.search(r"^ +page-faults: \d+ taken, \d+ lost$", ctl(daemon, "status").stdout, re.M), "also for people")
        wrong = [x for x in sink.problems() if "C4" not in x]  # which is of CPU time alone
        rig.check(not wrong, f"the receiver finds nothing wrong: {wrong[:3]}")
        stored(store, sums)
        other_config(daemon, sink, directory, config)
        daemon.stop()


BUDGET = """[profiler]
reporter_interval = 1s
[filter]
include_comm = {comm}
[event:page-faults]
period = 10
budget = 50
[export:sink]
endpoint = {endpoint}
"""


def budget(directory):
    """The kernel itself stops an event that has used up its budget of a second, says for how long, and lets it go on."""
    with Sink() as sink:
        begin = time.monotonic()
        daemon = rig.Daemon(BUDGET.format(comm=NAME, endpoint=sink.endpoint), "budget")
        daemon.wait_up()

        def of_faults(what):
            return int(values_of(daemon)[f"event.page-faults.{what}"])

        subprocess.run([os.path.join(directory, NAME), "faults", "20000"], check=True)
        rig.wait_for("the standstill", lambda: of_faults("stood_still_ms") > 0, 60)
        first = of_faults("samples")
        rig.check("page-faults has used up its budget of 50 samples a second on CPU" in daemon.log(), "it is said")
        # It comes back: with 50 a second of each CPU, and not all at once.
        rig.wait_for("further samples", lambda: subprocess.run(
            [os.path.join(directory, NAME), "faults", "2000"], check=True) and of_faults("samples") > first, 60)
        rig.check(ctl(daemon, "pause").returncode == 0 and ctl(daemon, "resume").returncode == 0, "a pause")
        subprocess.run([os.path.join(directory, NAME), "faults", "20000"], check=True)
        rig.check(ctl(daemon, "flush").returncode == 0, "flush")
        n, seconds = of_faults("samples"), time.monotonic() - begin
        # The second that began before us, the one that is under way, and one more after the pause.
        most = 50 * os.cpu_count() * (seconds + 10)
        rig.check(0 < n <= most, f"{n} samples in {seconds:.1f} s, at most {most:.0f}")

        def periods():
            return all_sent(daemon, sink) and {
                p.period for view in sink.views() for rp in view.message.resource_profiles for sp in rp.scope_profiles
                for p in sp.profiles if view.strings[p.period_type.type_strindex] == "page-faults"}

        # A symbolizer that is behind has made payloads of the first windows only, and all of these are sent.
        found = rig.wait_for("all payloads, also of faults", periods, 60)
        rig.check(found == {10}, f"each sample stands for its period, as without a budget: {found}")
        daemon.stop()


def stored(store, sums):
    """What is kept on this host has them, too: the clock's unless another is asked for."""
    for args, event in ((), "cpu"), (("-e", "page-faults"), "page-faults"), (("-e", "task-clock"), "task-clock"):
        name = rig.path("last.folded")
        r = subprocess.run([rig.perfwalk(), "report", "--store", store, "--last", "1h", *args, "-o", name],
                           capture_output=True, text=True, check=False)
        n = rig.total(rig.read_folded(name)) if r.returncode == 0 else r.stderr
        rig.check(n == sums[event][""], f"report --last {' '.join(args)}: {n} of {sums[event]['']}")


def other_config(daemon, sink, directory, config):
    """A reload takes events away and brings others; one that cannot be is refused, and all goes on."""
    for events, words in (("[event:page-fautls]", "[event:page-fautls]: unknown event (did you mean page-faults?)"),
                          ("[event:cpu-clock]", "[event:cpu-clock]: CPU time is sampled in any case"),
                          ("[event:faults]\n[event:page-faults]", "[event:page-faults]: another section has the same"),
                          ("[event:cs]\nkernel = no", "[event:cs]: it happens inside the kernel"),
                          ("[event:task-clock]\nperiod = 1000000", "[event:task-clock]: a clock is sampled at a rate"),
                          ("[event:x]\nevent = cs\nfilter = y == 1", "[event:x]: only tracepoints have fields"),
                          ("[event:x]\nevent = cs\n[event:y]\nevent = context-switches", "[event:y]: another section")):
        with open(daemon.config, "w", encoding="utf-8") as f:
            f.write(DAEMON.format(events=events, **config))
        r = ctl(daemon, "reload")
        log = daemon.log()
        rig.check(r.returncode != 0 and f"{daemon.config}: {words}" in log,
                  f"refused: {words} {'' if words in log else log[-300:]}")
    rig.check("event.page-faults.samples" in values_of(daemon), "the events before are still sampled")
    with open(daemon.config, "w", encoding="utf-8") as f:
        f.write(DAEMON.format(events="[event:context-switches]\nperiod = 1\n[event:page-faults]\nbudget = 0", **config))
    profiler = daemon.role("profiler")
    rig.check(ctl(daemon, "reload").returncode == 0, "a reload with another event")
    rig.wait_for("another profiler", lambda: daemon.role("profiler") not in (0, profiler), 20)
    rig.wait_for("its first look", lambda: ctl(daemon, "flush").returncode == 0, 20)
    truth, samples = sampled_by(daemon, sink, directory)
    sums, said = totals(samples), values_of(daemon)
    burnt = sums["cpu"]["counted_burn"] / sums["cpu"][""]
    rig.check("task-clock" not in sums and "event.task-clock.samples" not in said and abs(burnt - truth.burnt) < 0.06,
              f"of one nothing comes any more, and {burnt:.1%} of CPU time is burnt, of {truth.burnt:.1%}")
    # 150 at a time, of which one or two are the hundredth; those of other programs fall between.
    n = 100 * sums.get("page-faults", {}).get("counted_touch", 0)
    rig.check(0.3 * truth.faults < n < 2 * truth.faults, f"without a period, each hundredth fault: {n} of {truth.faults}")
    rig.check(int(said["event.context-switches.samples"]) > 0, "the new one is sampled")


def without_root(directory):
    """As with systemd's and the kernel's older default, 64 KiB beside perf_event_mlock_kb, for three events."""
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="utf-8") as f:
        if int(f.read()) > 2:
            rig.skip("perf_event_paranoid is above 2: nobody but root may sample")
    home, uid = rig.path("home"), 200000 + os.getpid()  # Linux 6.18 charges a user for the second mapping, for ever
    os.mkdir(home)
    os.chown(home, uid, 65534)
    become = ["prlimit", "--memlock=65536:65536", "setpriv", f"--reuid={uid}", "--regid=65534", "--clear-groups",
              "--inh-caps=-all"]
    out, err = capture("-e", "cpu-clock/freq=499/", "-e", "page-faults/period=25/", "-e", "task-clock", "-o",
                       "own.perf.txt", "--", *workload(directory), cwd=home, prefix=become,
                       program=rig.perfwalk_for_others())
    truth, sums = Truth(out), totals(perf_text(os.path.join(home, "own.perf.txt")), NAME)
    rig.check("the kernel allows rings of" in err, "little locked memory: " + err.strip()[:150])
    check_truth("without root", sums, truth, 25 * missing(out))
    rig.check(near(sums["task-clock"][""], truth.all_ns, 0.25), f"the third event: {sums['task-clock']['']} ns of {truth.all_ns}")


def main():
    rig.need_root()
    rig.need_tracefs()
    directory = rig.build_workloads("counted")
    os.rename(os.path.join(directory, "counted"), os.path.join(directory, NAME))
    refusals()
    formats(directory)
    distances(directory)
    targets(directory)
    tracepoint(directory)
    killed(directory)
    losses(directory)
    daemon_events(directory)
    budget(directory)
    rig.apart(without_root, directory)


rig.run(main)
