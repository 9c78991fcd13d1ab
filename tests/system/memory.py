# SPDX-License-Identifier: Apache-2.0
# Rooms: src/sample src/profiler src/profile src/opener src/render src/import src/exporter
"""Memory growth: pages touched for the first time, in bytes, by the stack that touched them. The truth is what the
kernel says of the workload's mappings, plain pages and huge ones. Needs root."""
import glob
import gzip
import json
import os
import re
import resource
import subprocess
import sys

import cgroup_dirs
import inside
import rig
from sink import Sink

MIB = 1 << 20
# Says what it has in memory, ten times a second, while it takes more and gives some back.
STEPS = """
import mmap, os, time
def stay():
    end = time.monotonic() + 2
    while time.monotonic() < end:
        with open("/proc/self/statm") as f:
            bytes = int(f.read().split()[1]) * mmap.PAGESIZE
        print(time.time_ns(), bytes, flush=True)
        time.sleep(0.1)
print(os.getpid())
maps = []
for i in range(2):
    maps.append(mmap.mmap(-1, 48 << 20))
    maps[-1].write(bytes(48 << 20))
    stay()
maps.pop().close()
stay()
"""
NAME = f"g{os.getpid()}"  # of the workload: another test may run one of its own


def growth(directory, small, huge):
    return [os.path.join(directory, NAME), str(small), str(huge)]


def truth(text):
    """(plain bytes, bytes in huge pages, all bytes where there may be huge ones) of the workload's line."""
    m = re.search(r"^small (\d+) huge (\d+) of (\d+)$", text, re.M)
    if not m:
        rig.fail(f"the workload said nothing of itself: {text[-500:]!r}")
    return tuple(map(int, m.groups()))


def record(*args):
    p = subprocess.run([rig.perfwalk(), "record", *args], capture_output=True, text=True, check=False, timeout=120,
                       stdin=subprocess.DEVNULL)
    rig.check(p.returncode == 0, f"record {' '.join(args[:4])}: {p.returncode} {p.stderr[-300:] if p.returncode else ''}")
    return p.stdout


def under(stacks, function):
    return sum(s.n for s in stacks if function in s.user)


def each_page(directory):
    """With a period of 1 the bytes are those of the kernel, to the page."""
    folded = rig.path("each.folded")
    out = record("-e", "memory_growth/period=1/", "-o", folded, "--", *growth(directory, 4, 8))
    small, in_huge, huge = truth(out)
    stacks = rig.read_folded(folded)
    rig.check(re.search(r"^  lost +0 ", out, re.M), "nothing is lost")
    seen = under(stacks, "growth_small")
    rig.check(seen == small == 4 * MIB, f"plain pages: {seen} bytes of {small}")
    seen = under(stacks, "growth_huge")
    rig.check(seen == huge, f"{in_huge} bytes in huge pages: {seen} bytes of {huge}")
    rig.check(under(stacks, "growth_again") == 0, "what is used again is not touched for the first time")
    rig.check(re.search(r"^Samples +[\d,]+ +[\d.]+ MiB of memory_growth$", out, re.M), "the summary has it in bytes")


def sampled(directory):
    """As a rule one page in 13 stands for all, in every output, also 20 KiB deep."""
    names = [rig.path(f"memory.{suffix}") for suffix in ("folded", "pb.gz", "otlp", "html")]
    out = record("--memory", *(x for name in names for x in ("-o", name)), "--", *growth(directory, 64, 0), "20")
    small, _, _ = truth(out)
    stacks = [s for s in rig.read_folded(names[0]) if "growth_small" in s.user]
    seen, whole = under(stacks, "growth_small"), under(stacks, "main")
    rig.check(abs(seen - small) < 0.02 * small, f"--memory: {seen} bytes of {small}")
    rig.check(whole == seen, f"stacks that reach main(): {whole} bytes of {seen}")
    for name in names[1:3]:
        again = rig.path("again.folded")
        p = subprocess.run([rig.perfwalk(), "report", name, "-o", again], capture_output=True, text=True, check=False)
        rig.check(p.returncode == 0, f"report {name}: {p.stderr.strip()}")
        rig.check(under(rig.read_folded(again), "growth_small") == seen, f"{name.rsplit('/', 1)[1]} has the same bytes")
    with open(names[3], encoding="utf-8") as f:
        page = f.read()
    rig.check("memory_growth" in page and '"bytes"' in page, "the page says what is counted, and in what")


SHORT = """
import resource, subprocess, sys
for _ in range(200):
    subprocess.run(["/bin/true"])
print("faults", sum(resource.getrusage(who).ru_minflt for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
"""


def short_processes():
    """Each task has a count of its own, and ends with up to twelve pages since its last sample: these are not left out."""
    folded = rig.path("short.folded")
    out = record("--memory", "-o", folded, "--", sys.executable, "-c", SHORT)
    faults = int(re.search(r"^faults (\d+)$", out, re.M)[1])
    stacks = rig.read_folded(folded)
    seen, unseen = (sum(s.n for s in stacks if ("[not seen]" in s.user) == x) for x in (False, True))
    # The kernel counts its own accesses to a task's memory, too, which are no faults of the event: some five at each exec.
    whole = faults * resource.getpagesize()
    rig.check(0.9 * whole < seen + unseen <= 1.01 * whole, f"{faults} faults of short processes, {whole} bytes: {seen} of stacks, "
              f"{unseen} not seen")
    rig.check(unseen > 0.1 * whole, "of which a part can have no stack")


def error_of(out):
    m = re.search(r"^Samples .* MiB of memory_growth ± ([\d.]+)%$", out, re.M)
    return float(m[1]) / 100 if m else None


def errors(directory):
    """The summary says how far the sum may be off: not at all where all pages are alike, and with huge ones among them as far
    as a stack more or less of these."""
    small, _, huge = truth(out := record("--memory", "--", *growth(directory, 64, 0)))
    rig.check(error_of(out) is None or error_of(out) < 0.05, f"the error of {small} bytes in plain pages: {error_of(out)}")
    small, in_huge, huge = truth(out := record("--memory", "--", *growth(directory, 64, 128)))
    if not in_huge:
        rig.leave_out("the error of huge pages: there are none")
        return
    told = float(re.search(r"^Samples .* ([\d.]+) MiB of", out, re.M)[1]) * MIB
    # Twice the standard deviation is what is told; of many runs one in a thousand is beyond this.
    rig.check(error_of(out) and abs(told - small - huge) <= 1.7 * error_of(out) * told,
              f"{told / MIB:.0f} MiB ± {error_of(out)} of {(small + huge) / MIB:.0f}")


def beside_time(directory):
    out = record("-e", "cpu-clock", "--memory", "-o", rig.path("both.pb.gz"), "--", *growth(directory, 16, 0))
    rig.check(re.search(r"^  memory_growth +[\d,]+ ", out, re.M) and "  cpu-clock " in out, "two types in one capture")
    # A rate is that of CPU time: at a rate the kernel guesses how many pages a sample stands for.
    out = record("--memory", "-F", "499", "-o", rig.path("both.folded"), "--", *growth(directory, 16, 0))
    small, seen = truth(out)[0], under(rig.read_folded(rig.path("both.folded")), "growth_small")
    rig.check(abs(seen - small) < 0.05 * small, f"a rate is not that of memory growth: {seen} bytes of {small}")


def captures_of(name):
    with open(name, encoding="utf-8") as f:
        return json.loads(re.search(r'id="data">(.*?)</script>', f.read(), re.S)[1])


def memory_of(name):
    """{pid: [(ns, bytes)]} of the page's lines."""
    captures = captures_of(name)
    rig.check(not any("memory" in c for c in captures[1:]), "only the first of several types has the lines")
    start = captures[0]["meta"]["startMs"]
    return {pid: [(start * 10**6 + us * 1000, size) for us, size in points]
            for _, pid, _, points in captures[0].get("memory", [])}


def compare_curves(out, page):
    """What a process has in memory, by its own account just before and just after each look at it. Its pid, and the
    points of the page."""
    pid = int(re.search(r"^\d+$", out, re.M)[0])
    own = [tuple(map(int, m)) for m in re.findall(r"^(\d+) (\d+)$", out, re.M)]
    points = memory_of(page).get(pid, [])
    rig.say(f"its own account: {len(own)} lines; looked at: {[(t - own[0][0], size) for t, size in points]}")
    for t, size in ((t, size) for t, size in points if own[0][0] < t < own[-1][0]):
        around = max(o for o in own if o[0] <= t)[1], min(o for o in own if o[0] >= t)[1]
        rig.check(min(around) - MIB < size < max(around) + MIB, f"{size} bytes, by its own account {around}")
    for at in (0, 1, 2):  # each lasts two seconds, and it is looked at each second
        level = own[len(own) * (2 * at + 1) // 6][1]
        rig.check(any(size and abs(size - level) < MIB for _, size in points), f"{level} bytes are in the lines")
    rig.check(points[-1][1] == 0, "it has ended")
    return pid, points


def curve():
    page = rig.path("curve.html")
    out = record("-e", "cpu-clock", "--memory", "-o", page, "--", sys.executable, "-c", STEPS)
    pid, points = compare_curves(out, page)
    most = re.search(rf"^ +([\d.]+) MiB +([\d.]+) MiB +([\d.]+) MiB +{pid}  \S+", out, re.M)
    rig.check(most, "the summary has a line of it")
    highest, last = max(size or 0 for _, size in points) / MIB, [size for _, size in points if size][-1] / MIB
    rig.check(abs(float(most[3]) - highest) < 0.6 and abs(float(most[2]) - last) < 0.6, f"{most[0]}: {last} and {highest}")


def n_killed():
    with open("/proc/vmstat", encoding="utf-8") as f:
        return int(re.search(r"^oom_kill (\d+)$", f.read(), re.M)[1])


def has_syslog():
    """Reads the kernel's log without the right to, if everybody may."""
    with open("/proc/sys/kernel/dmesg_restrict", encoding="ascii") as f:
        return f.read().strip() == "0"


def maybe_killed():
    """Without the log nobody says which process it was, but the one that ended is listed."""
    limit = cgroup_dirs.MemoryLimit(f"perfwalk-m{NAME}", 64 * MIB)
    if limit.missing or has_syslog():
        rig.leave_out(limit.missing or "everybody may read the kernel's log")
        return
    page = rig.path("maybe.html")
    script = (f"sleep 1; (echo 0 > {limit.path}/cgroup.procs; exec sh -c 'echo victim $$; exec {sys.executable} -c "
              "\"x = [0] * (5 << 20); import time; time.sleep(2); [0] * (30 << 20)\"'); sleep 1.5")
    p = subprocess.run(["setpriv", "--bounding-set", "-syslog", "--inh-caps", "-syslog", rig.perfwalk(), "record", "-e",
                        "cpu-clock", "--memory", "-o", page, "--", "sh", "-c", script], capture_output=True, text=True,
                       check=False, timeout=120)
    limit.remove()
    pid = int(re.search(r"^victim (\d+)$", p.stdout, re.M)[1])
    victims = captures_of(page)[0].get("victims", [])
    rig.check([v[2] for v in victims if v[4]] == [], f"nobody is said to be it: {victims}")
    rig.check(pid in [v[2] for v in victims], f"but {pid}, which ended, is listed")
    rig.check(re.search(rf"^  ended, PID +{pid} +python\S* .*maybe", p.stdout, re.M), "in the summary, too")


def killed():
    """A control group that is too small for its process."""
    limit = cgroup_dirs.MemoryLimit(f"perfwalk-{NAME}", 64 * MIB)
    if limit.missing:
        rig.leave_out(limit.missing)
        return
    before, page = n_killed(), rig.path("killed.html")
    script = (f"sleep 1; (echo 0 > {limit.path}/cgroup.procs; exec sh -c 'echo victim $$; exec {sys.executable} -c \"[0] * (30 << 20)\"'); "
              "echo ended $?; date +%s%N; sleep 1.5")
    out = record("-e", "cpu-clock", "--memory", "-o", page, "--", "sh", "-c", script)
    rig.check("ended 137" in out, "it was killed")
    rig.check(limit.killed() in (None, 1), "by the kernel, in its control group")
    limit.remove()
    n, data = n_killed() - before, captures_of(page)[0]
    rig.check(sum(k for _, k in data["kills"]) == n >= 1, f"killed: {data['kills']}, {n} by the kernel's own account")
    at = (int(re.search(r"^\d{19}$", out, re.M)[0]) / 1e6 - data["meta"]["startMs"]) * 1e3
    rig.check(any(at - 1e6 < us < at + 2e6 for us, _ in data["kills"]), f"the one at {at} us is told of in time")
    rig.check(re.search(rf"^Out of memory +{n} +processes killed on this host, seen at ", out, re.M), "the summary says so")
    pid = int(re.search(r"^victim (\d+)$", out, re.M)[1])
    names = {v[2]: (v[1], v[4]) for v in data.get("victims", [])}
    if inside.is_inside() and names:  # the kernel's log has the numbers of the host
        pid = min(names)
    rig.check(names.get(pid, ("",))[0].startswith("python") and names[pid][1] == 1, f"{pid} is named: {names}")
    rig.check(len(data["victims"]) == n, "and nobody who was not")
    rig.check(re.search(rf"^  killed, PID +{pid} +python", out, re.M), "the summary names it")


def no_curve():
    record("-e", "cpu-clock", "-o", rig.path("none.html"), "--", sys.executable, "-c", "sum(range(3000000))")
    rig.check(not memory_of(rig.path("none.html")), "nobody looks at the memory if it is not asked for")


CONFIG = """[profiler]
reporter_interval = 1s
memory_growth = yes
[filter]
include_comm = {comm}
[export:sink]
endpoint = {endpoint}
"""


def ctl(daemon, *args):
    return subprocess.run([rig.perfwalk(), "ctl", "-s", daemon.control, *args], capture_output=True, text=True,
                          timeout=60, check=False)


def values_of(daemon):
    return dict(line.split(" ", 1) for line in ctl(daemon, "status", "--all").stdout.splitlines())


def sums_of(view):
    """Bytes of the type by the functions that are in their stacks."""
    sums = {}
    for rp in view.message.resource_profiles:
        for profile in (p for sp in rp.scope_profiles for p in sp.profiles):
            kind = view.strings[profile.sample_type.type_strindex], view.strings[profile.sample_type.unit_strindex]
            for s in profile.samples if kind == ("memory_growth", "bytes") else ():
                for function in set(view.frames(s.stack_index)):
                    sums[function] = sums.get(function, 0) + sum(s.values)
    return sums


def daemon(directory):
    """The daemon has it as a type of its profiles; pages of the whole host come by chance to be the 61st."""
    def numbers(d, sink):
        rig.check(ctl(d, "flush").returncode == 0, "flush")
        rig.wait_for("all payloads", lambda: int(values_of(d)["payloads"]) == sink.count() > 0, 60)
        values = values_of(d)
        return (sum(sums_of(view).get("growth_small", 0) for view in sink.views()),
                *(int(values[f"event.memory_growth.{x}"]) for x in ("samples_lost", "stood_still_ms")))

    with Sink() as sink:
        d = rig.Daemon(CONFIG.format(comm=NAME, endpoint=sink.endpoint))
        d.wait_up()
        before, rounds = (0, 0, 0), 0
        while True:
            p = subprocess.run(growth(directory, 128, 0), capture_output=True, text=True, check=True, timeout=120)
            small, _, _ = truth(p.stdout)
            now = numbers(d, sink)
            seen, lost, stood_still = (x - y for x, y in zip(now, before))
            before, rounds = now, rounds + 1
            lost *= 61 * 4096
            rig.check(seen < 1.25 * small, f"the daemon: {seen} bytes of {small}")
            # On a busy host pages of others use up the budget that all have together: then once more.
            if stood_still == 0 or rounds == 20:
                break
        rig.check(stood_still == 0 and 0.75 * small < seen + lost and seen > 0.25 * small,
                  f"the daemon, in round {rounds}: {seen} bytes of {small}, {lost} lost, stood still for {stood_still} ms")
        wrong = [x for x in sink.problems() if "C4" not in x]  # which is of CPU time alone
        rig.check(not wrong, f"the receiver finds nothing wrong: {wrong[:3]}")
        d.stop()


STORE_CONFIG = """[profiler]
reporter_interval = 1s
memory_growth = {growth}
[store]
enabled = yes
path = {path}
[export:sink]
endpoint = {endpoint}
"""


def report_last(path, name):
    page = rig.path(name)
    p = subprocess.run([rig.perfwalk(), "report", "--last", "10m", "--store", path, "-o", page], capture_output=True,
                       text=True, check=False, timeout=120)
    rig.check(p.returncode == 0, f"report --last: {p.returncode} {p.stderr.strip()}")
    return page


def fields_of(message):
    """Numbers of its fields."""
    decoded = subprocess.run(["protoc", "--decode_raw"], input=message, capture_output=True, check=True).stdout
    return {int(number) for number in re.findall(rb"^(\d+)", decoded, re.M)}


def file_fields(name):
    with gzip.open(name) as f:
        return fields_of(f.read())


def stored():
    """The daemon looks at it at the end of each window, and the store has it; who it exports to has not."""
    path = rig.path("store")
    with Sink() as sink:
        d = rig.Daemon(STORE_CONFIG.format(path=path, growth="yes", endpoint=sink.endpoint), name="stored")
        d.wait_up()
        limit = cgroup_dirs.MemoryLimit(f"perfwalk-s{NAME}", 64 * MIB)
        before = n_killed()
        p = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, text=True, check=True, timeout=120)
        if not limit.missing:
            subprocess.run(["sh", "-c", f"echo 0 > {limit.path}/cgroup.procs; exec {sys.executable} -c '[0] * (30 << 20)'"],
                           check=False, timeout=120)
            limit.remove()
        rig.check(ctl(d, "flush").returncode == 0, "flush")
        d.stop()
        n = n_killed() - before
        wrong = [x for x in sink.problems() if "C4" not in x]
        rig.check(sink.count() > 0 and not wrong, f"the receiver finds nothing wrong: {wrong[:3]}")
        rig.check(all(fields_of(body) == {1, 2} for body in sink.payloads()), "and gets OTLP alone")
    page = report_last(path, "stored.html")
    pid, _ = compare_curves(p.stdout, page)
    fields = [file_fields(name) for name in glob.glob(f"{path}/*.otlp.gz")]
    rig.check({1, 2, 15} in fields and all(f <= {1, 2, 15} for f in fields), "the files have more than OTLP")
    if n:
        kills = captures_of(page)[0]["kills"]
        rig.check(sum(k for _, k in kills) == n, f"killed: {kills}, {n} by the kernel's own account")
        victims = captures_of(page)[0]["victims"]
        rig.check(len(victims) == n and any(v[1].startswith("python") and v[4] for v in victims), f"and named: {victims}")
    shorter = captures_of(report_last(path, "again.html"))[0]
    rig.check(any(row[1] == pid for row in shorter["memory"]), "each report has it")


def not_stored():
    path = rig.path("none")
    d = rig.Daemon(STORE_CONFIG.split("[export", maxsplit=1)[0].format(path=path, growth="no"), name="none")
    d.wait_up()
    subprocess.run([sys.executable, "-c", "sum(range(9000000))"], check=True, timeout=120)
    rig.check(ctl(d, "flush").returncode == 0, "flush")
    d.stop()
    rig.check(not memory_of(report_last(path, "none.html")), "without memory_growth nothing is kept of it")


def main():
    rig.need_root()
    directory = rig.build_workloads("growth")
    os.rename(os.path.join(directory, "growth"), os.path.join(directory, NAME))
    each_page(directory)
    sampled(directory)
    short_processes()
    errors(directory)
    beside_time(directory)
    curve()
    no_curve()
    killed()
    maybe_killed()
    daemon(directory)
    stored()
    not_stored()


rig.run(main)
