# SPDX-License-Identifier: Apache-2.0
# Rooms: any
"""`perfwalk record` picking out what it is asked for: each target, filter, event and kind of stack on
a real capture; and captures when the host, the target or the disk is not as one would wish. Always a
file that can be used, or an error with its cause and the right exit status."""
import contextlib
import ctypes
import gzip
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import textwrap
import time

import rig
from cgroup_dirs import Cgroups, digits, mount_point, start_in
from pprof_file import fields, numbers
from sink import Sink

def capture(what, *args, timeout=120, **options):
    """A capture that succeeds: its stacks and what it printed."""
    out = rig.path("capture.folded")
    r = rig.record("-o", out, *args, timeout=timeout, **options)
    if r.status != 0:
        rig.fail(f"{what}: {r.text()}")
    if os.stat(out).st_mode & 0o777 != 0o600:
        rig.fail(f"{what}: others can read the capture: {os.stat(out).st_mode:o}")
    return rig.read_folded(out), r


def enough(what, is_enough, *args, **options):
    """A capture that is as short as is enough: on a busy host what is looked for hardly gets a CPU."""
    for duration in ("500ms", "2", "8", "30"):
        stacks, r = capture(what, "-F", "199", "-d", duration, *args, **options)
        if is_enough(stacks):
            break
    return stacks, r


def some(stacks):
    return rig.total(stacks) >= 20


def filtered(r):
    m = re.search(r"^ +left out +([0-9,]+)", r.out, re.M)
    return int(m[1].replace(",", "")) if m else 0


def said(r):
    """Nothing is missed that is there."""
    return "no running process" in r.err


def only(what, wanted, *args, leaves_out=True):
    """A short capture in which nothing but processes of these names is, beside another that
    is busy too: on an idle host there may be nothing to leave out."""
    other = rig.start(["sh", "-c", "while :; do :; done"])
    stacks, r = enough(what, lambda stacks: rig.total(stacks) >= 5 and {s.comm for s in stacks} >= wanted, *args)
    rig.end(other)
    comms = {s.comm for s in stacks}
    rig.check(comms == wanted and rig.total(stacks) >= 5 and not said(r) and "the whole host" not in r.err,
              f"{what}: {comms} in {rig.total(stacks)} samples, {filtered(r)} filtered")
    rig.check((filtered(r) > 0) == leaves_out,
              f"{what}: what was left out is {'counted' if leaves_out else 'not even sampled'}")
    return stacks


def names(stacks):
    return {f for s in stacks for f in s.user}


# ---- Targets and filters ----


def targets(directory):
    chain = rig.start(["./chain"], cwd=directory)
    threads = rig.start(["./counted", "threads"], cwd=directory, stdout=subprocess.PIPE, text=True)
    tid = int(threads.stdout.readline())
    stacks, _ = enough("-t", some, "-t", tid)
    rig.check("counted_two" in names(stacks) and "counted_one" not in names(stacks),
              f"-t: the thread asked for and not the others of its process: {rig.total(stacks)} samples")
    stacks, _ = enough("-t with two", lambda s: {"counted_two", "chain_leaf"} <= names(s), "-t", f"{tid},{chain.pid}")
    rig.check({"counted_two", "chain_leaf"} <= names(stacks) and "counted_one" not in names(stacks),
              "-t with two threads of two processes")
    stacks, _ = enough("--comm", some, "--comm", "*-two")
    rig.check("counted_two" in names(stacks) and "counted_one" not in names(stacks),
              "--comm takes a thread by its own name, with a pattern")
    rig.end(threads)
    only("--comm", {"chain"}, "--comm", "chai?")
    only("--comm within -p", {"chain"}, "--comm", "chain", "-p", chain.pid, leaves_out=False)

    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) > 1:
        # Under names that nothing else on this host has.
        pinned = []
        for i in (0, 1):
            shutil.copy(os.path.join(directory, "chain"), os.path.join(directory, f"pinned{i}"))
            pinned.append(rig.start([f"./pinned{i}"], cwd=directory))
            os.sched_setaffinity(pinned[i].pid, {cpus[i]})
        stacks, r = enough("-C", lambda stacks: any(s.comm == "pinned1" for s in stacks), "-C", cpus[1])
        comms = {s.comm for s in stacks}
        rig.check("pinned1" in comms and "pinned0" not in comms and "on 1 CPU" in r.out,
                  f"-C {cpus[1]}: what runs on CPU {cpus[0]} is not there: {sorted(comms)}")
        stacks, _ = enough("-C with -p", some, "-C", cpus[0], "-p", f"{pinned[0].pid},{pinned[1].pid}")
        rig.check({s.comm for s in stacks} == {"pinned0"}, "-C with -p: only one of two processes is there")
        for p in pinned:
            rig.end(p)
    rig.end(chain)


def users(directory):
    someone = pwd.getpwnam("daemon").pw_uid
    chain = rig.start(["./chain"], cwd=directory, user=someone)
    rig.start(["./recurse"], cwd=directory)
    only("-u by name", {"chain"}, "-u", "daemon")
    only("-u by number", {"chain"}, "-u", someone)
    rig.end(chain)
    # Gone before anybody can ask whose it was: it counts as its parent's.
    shell = rig.start(["sh", "-c", "while :; do ./blip 5; done"], cwd=directory, user=someone)
    def blips(stacks):
        return sum(s.n for s in stacks if s.comm == "blip")
    stacks, _ = enough("-u of short-lived processes", lambda stacks: blips(stacks) >= 5, "-u", "daemon")
    n = blips(stacks)
    rig.check(n >= 5, f"-u: {n} samples of processes that lived 5 ms")
    rig.end(shell)


def named_containers(container):
    """By the names that engines keep in their files: laid out as docker's and containerd's, in a mount
    namespace of its own. containers.py has a real engine."""
    if not rig.can_mount():
        rig.leave_out("containers by name: nothing can be mounted here")
        return
    number = container.rsplit("/", 1)[1]
    docker = f"/var/lib/docker/containers/{number}"
    bundle = f"/run/containerd/io.containerd.runtime.v2.task/k8s.io/{number}"
    annotations = {f"io.kubernetes.cri.{k}": v for k, v in
                   (("sandbox-namespace", "shop"), ("sandbox-name", "cart-0"), ("container-name", "redis"))}
    script = ('mount --make-rprivate / && mount -t tmpfs none /var/lib && mount -t tmpfs none /run && '
              'mkdir -p "$(dirname "$1")" && printf %s "$2" >"$1" && shift 2 && exec "$@"')
    out = rig.path("named.folded")
    # Names that no process may have: what is not asked for would be in the result otherwise.
    for file, content, wanted, other in (
            (f"{docker}/config.v2.json", {"Config": {"Labels": {"Name": "no"}}, "Name": "/web-7"}, ["web", "web-7"],
             "no"),
            (f"{bundle}/config.json", {"ociVersion": "1.1", "annotations": annotations},
             ["shop/cart", "cart-0", "redis", "shop/cart-0/redis"], "art-0")):
        def inside(*args, file=file, content=content):
            return rig.Record(["unshare", "-m", "sh", "-c", script, "sh", file, json.dumps(content),
                               rig.perfwalk(), *args], 60)
        for name in wanted + [other]:
            for duration in ("300ms",) if name == other else ("300ms", "2", "8", "30"):
                r = inside("record", "-F", "199", "-d", duration, "--container", name, "-o", out)
                comms = {s.comm for s in rig.read_folded(out)} if r.status == 0 else r.text()
                if comms:
                    break
            rig.check(comms == ({"chain"} if name != other else set()), f"--container {name}: {comms}")
        table = inside("list", "containers").out
        line = next((x for x in table.splitlines() if x.startswith(number)), "")
        rig.check(line.split()[1:2] == [wanted[-1]], f"list containers has the name: {line!r}")


def groups(directory):
    chain = os.path.join(directory, "chain")
    top = mount_point()
    with Cgroups(top) as cgroups:
        container = f"docker/{digits('7c')}"
        in_container = start_in(cgroups.make(container), [chain])
        in_unit = start_in(cgroups.make("system.slice/perfwalk-captures.service/inner"),
                           [os.path.join(directory, "recurse")])
        other = rig.start([os.path.join(directory, "frames")])
        only("--container with the first digits of its id", {"chain"}, "--container", digits("7c")[:12])
        named_containers(container)
        only("--unit without its suffix", {"recurse"}, "--unit", "perfwalk-captures")
        only("--unit with a pattern", {"recurse"}, "--unit", "perfwalk-capt*.service")
        only("two kinds, both of which must hold", {"recurse"}, "--unit", "perfwalk-captures",
             "--comm", "recurse,chain")
        only("--cgroup, by the kernel", {"recurse"}, "--cgroup", "/system.slice/perfwalk-captures.service",
             leaves_out=False)
        only("--cgroup by its directory, two of them, one inside the other", {"recurse", "chain"},
             "--cgroup", f"{top}/{container},{top}/system.slice/perfwalk-captures.service",
             "--cgroup", "/system.slice/perfwalk-captures.service/inner", leaves_out=False)
        only("--cgroup within -p", {"chain"}, "--cgroup", f"/{container}",
             "-p", f"{in_container.pid},{other.pid}")
        for p in in_container, in_unit, other:
            rig.end(p)


def hotplug(directory):
    """The list of CPUs online, as perfwalk sees it, grows during the capture; in a mount namespace of
    its own, so that no CPU of this machine has to go."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2 or not rig.can_mount():
        rig.leave_out("CPUs that come online: this machine has one, or nothing can be mounted")
        return
    first, late = cpus[0], cpus[1]
    script = ('mount --make-rprivate / && echo "$1" > online && '
              "mount --bind online /sys/devices/system/cpu/online && shift && exec \"$@\"")
    # The chains are moved to the CPU that comes late: one that was there before it came.
    chains = f"taskset -pc {late} $$ >/dev/null; ./chain & ./chain & echo $(jobs -p); read x; kill $(jobs -p)"
    target = rig.start(["bash", "-c", chains], cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pids = target.stdout.readline().split()
    for what, args in (("a command", ("--", "bash", "-c", chains)), ("-p", ("-d", "600", "-p", ",".join(pids)))):
        log = rig.path("hotplug.log")
        with open(log, "w", encoding="utf-8") as f:
            p = rig.start(["unshare", "-m", "sh", "-c", script, "sh", str(first), rig.perfwalk(), "record", "-F", "199",
                           "-o", "late.folded", *args], cwd=directory, stdin=subprocess.PIPE, stdout=f, stderr=f, text=True)

        def said():
            with open(log, encoding="utf-8") as f:
                return f.read()
        rig.wait_for("it records", lambda: "recording" in said() or p.poll() is not None)
        mine = pids if what == "-p" else rig.wait_for("its chains", lambda: re.findall(
            r"^(?:\d+ )+\d+$", said(), re.M))[0].split()
        with open(os.path.join(directory, "online"), "w", encoding="utf-8") as f:
            f.write(f"{first}-{late}\n" if late == first + 1 else f"{first},{late}\n")
        rig.wait_for("the CPU is there", lambda: f"CPU {late} came online" in said() or p.poll() is not None)

        def used():
            return sum(rig.cpu_seconds(int(pid)) for pid in set(mine))
        begin = used()
        rig.wait_for("they run", lambda: used() - begin >= 0.5)
        if what == "-p":
            rig.kill(p.pid, signal.SIGINT)
        p.communicate("go\n", timeout=120)
        stacks = [s for s in rig.read_folded(os.path.join(directory, "late.folded")) if s.comm == "chain"]
        rig.check(f"CPU {late} came online" in said() and rig.total(stacks) >= 30,
                  f"{what} on a CPU that comes online half-way: {rig.total(stacks)} samples there of 0.5 s")
    target.communicate("go\n", timeout=120)


# ---- Events and stacks ----


def pprof_types(name):
    """[(type, unit), ...], the sums of both values, and the period."""
    with gzip.open(name) as f:
        profile = list(fields(f.read()))
    strings = [v.decode() for k, v in profile if k == 6]
    types = [tuple(strings[x] for _, x in fields(v)) for k, v in profile if k == 1]
    sums = [0, 0]
    for sample in (v for k, v in profile if k == 2):
        values = next(v for k, v in fields(sample) if k == 2)
        sums = [a + b for a, b in zip(sums, numbers(values))]
    return types, sums, next((v for k, v in profile if k == 12), 0)


def events(directory):
    pprof = rig.path("events.pb.gz")

    def count(event, *args, command):
        r = rig.record("-e", event, "-o", pprof, "--strict", *args, "--", *command, cwd=directory)
        if r.status != 0:
            rig.fail(f"-e {event}: {r.text()}")
        return (*pprof_types(pprof), r)

    def check_switches(event):
        """The program's own count is of what it gave up; it is preempted, too."""
        types, (n, _), _, r = count(event, command=("./counted", "switches", "500"))
        own = int(re.search(r"^switches (\d+)$", r.out, re.M)[1])
        rig.check(own <= n <= own + 300 and types[1] == (event, "count"),
                  f"-e {event}: {n} of a program that says {own}")

    faults = ("./counted", "faults", "3000")
    types, (n, sum_), period, r = count("page-faults", command=faults)
    rig.check(types == [("samples", "count"), ("page-faults", "count")] and period == 1,
              f"-e page-faults: value types {types}, period {period}")
    rig.check(3000 <= n <= 3400 and sum_ == n and "page-faults (each one) for" in r.out and
              "page-faults (each one) on" in r.err,
              f"-e page-faults: {n} samples of a program that has 3000 and some at its start")
    types, (n, sum_), period, r = count("faults", "-c", "100", command=faults)
    rig.check("page-faults (one in 100) on" in r.err and "page-faults (one in 100) for" in r.out and
              f"stand for {sum_:,} page-faults" in r.out,
              f"-c 100 is said: {r.err.strip()}")
    rig.check(28 <= n <= 34 and sum_ == 100 * n and period == 100,
              f"-c 100: {n} samples that stand for {sum_} page faults")
    types, (n, sum_), period, r = count("page-faults", "-F", "500", command=("./counted", "faults", "100000"))
    rig.check(0 < n < 20000 and sum_ > 20000 and period == 1 and "500 Hz" in r.out,
              f"-F with page-faults: {n} samples, each with its own worth, {sum_} faults")
    rig.check("page-faults at a rate" in r.err and "page-faults/period=COUNT/" in r.err, f"which are guessed: {r.err.strip()}")
    check_switches("context-switches")
    # No fraction of a tick: at 2 ms each sample would see the same moment after the scheduler's choice.
    types, (n, sum_), period, r = count("cpu-clock", "-c", "1900000", command=("./blip", "400"))
    rig.check(150 <= n <= 270 and types[1] == ("cpu", "nanoseconds") and period == 1900000,
              f"-e cpu-clock -c 1900000: {n} samples of 400 ms, {types}")
    types, (n, sum_), period, r = count("task-clock", "-F", "499", command=("./blip", "400"))
    rig.check(100 <= n <= 300 and abs(sum_ / n - 1e9 / 499) < 100, f"-e task-clock: {n} samples of 400 ms, each of {sum_ / n / 1e6:.3f} ms")
    for event in "cpu-migrations", "minor-faults", "major-faults":
        count(event, command=("./blip", "50"))
        rig.say(f"ok: -e {event}")

    tracefs = any(os.path.exists(f"{d}/events/sched/sched_switch/id")
                  for d in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"))
    if tracefs:
        check_switches("sched:sched_switch")
    r = rig.record("-e", "sched:no_such_thing", "-d", "1")
    rig.check(r.status == 2 and ("no such tracepoint" in r.err or "tracefs" in r.err),
              f"a tracepoint that is not there: {r.status}, {r.err.strip()[:120]!r}")
    for event in "cycles", "instructions", "r01c2":
        r = rig.record("-e", event, "-d", "1", "-o", pprof)
        rig.check((r.status == 0 and event in r.out) or
                  (r.status == 4 and event in r.err and "cpu-clock" in r.err),
                  f"-e {event}: {'counted' if r.status == 0 else r.err.strip()[:150]}")


def modes(directory):
    chain = rig.start(["./chain-fp"], cwd=directory)
    reader = rig.start(["dd", "if=/dev/zero", "of=/dev/null", "bs=64k"], stderr=subprocess.DEVNULL)
    both = "-p", f"{chain.pid},{reader.pid}"
    stacks, _ = enough("--all-kernel", lambda stacks: some(stacks) and any(s.user for s in stacks), "--all-kernel", *both)
    rig.check(stacks and all(s.kernel for s in stacks) and any(s.user for s in stacks),
              "-K: every sample is the kernel's, and says who called it")
    stacks, _ = enough("--all-user", some, "-U", *both)
    rig.check(rig.total(stacks) >= 20 and not any(s.kernel for s in stacks), "-U: no sample is")
    # A leaf that makes no frame of its own hides its caller from frame pointers.
    path = ["main", "chain_one", "chain_two", "chain_three", "chain_four", "...", "chain_leaf"]
    for mode in "fp", "dwarf", "dwarf,8K", "auto":
        def of_chain(stacks):
            return [s for s in stacks if s.comm == "chain-fp"]
        stacks, r = enough(f"--call-graph {mode}", lambda stacks: some(of_chain(stacks)), "--call-graph", mode, *both)
        mine = of_chain(stacks)
        good = sum(s.n for s in mine if rig.contains_path(s.user, path))
        rig.check(good >= 0.8 * rig.total(mine) > 5, f"--call-graph {mode}: {good} of {rig.total(mine)} whole")
        rig.check(("complete" in r.out) == (mode != "fp"), "only where it is known, it is said")
    def whole(stacks):
        return any(rig.contains_path(s.user, path) for s in stacks)
    stacks, r = enough("-g", whole, "-g", *both)
    rig.check(whole(stacks), "-g takes no argument, as perf's")
    rig.end(chain)
    rig.end(reader)


def refusals():
    cases = [
        (["-c", "10"], 2, "-e"), (["-e", "faults", "-c", "10", "-F", "9"], 2, "-F"),
        (["-e", "cpu-clock", "-c", "10"], 2, "100000"), (["-e", "page-fautls"], 2, "page-faults"),
        (["-K", "-U"], 2, "--all-user"), (["-U", "-e", "cs"], 2, "kernel"),
        (["--call-graph", "lbr"], 2, "fp"), (["--call-graph", "dwarf,1"], 2, "1K"),
        (["-u", "no-such-user"], 2, "no-such-user"), (["-C", "1-"], 2, "0-3"),
        (["-C", "4000"], 4, "online"), (["--container", "a b"], 2, "list containers"),
        (["--cgroup", "x"], 2, "/system.slice"), (["--cgroup", "/no/such"], 1, "/no/such"),
        (["-t", "4194300"], 1, "4194300"), (["-t", "1", "-p", "1"], 2, "-t"),
    ]
    for args, status, word in cases:
        r = rig.record(*args, "-d", "1", "-o", rig.path("never.folded"), timeout=120)
        rig.check(r.status == status and word in r.err and not os.path.exists(rig.path("never.folded")),
                  f"{' '.join(args)}: {r.status}, {r.err.strip()[:130]!r}")
        rig.check("waits for" not in r.err, f"{' '.join(args)}: a capture that is refused does not wait")
    earlier = rig.write("earlier.folded", "what an earlier capture wrote 1\n" * 9)
    r = rig.record("-p", "4194300", "-d", "1", "-o", earlier, timeout=120)
    with open(earlier, encoding="utf-8") as f:
        rig.check(r.status == 1 and len(f.readlines()) == 9,
                  "a capture that is refused leaves an earlier one as it was")
    r = rig.record("-d", "100ms", "--comm", "no-such-process", "--format", "folded", "-o", earlier, "-o", "/dev/null")
    rig.check(os.path.getsize(earlier) == 0, "and one that is not begins it anew")
    rig.check("the capture waits for one" in r.err, f"it waits for what it selects: {r.err}")
    named = rig.path("named-pipe")
    os.mkfifo(named)
    reader = rig.start(["cat", named], stdout=subprocess.PIPE)
    r = rig.record("--format", "html", "-o", named, "-d", "100ms")
    rig.check(r.status == 0 and len(reader.communicate(timeout=120)[0]) > 10000, "a named pipe is an output, too")


# ---- The daemon's [filter] ----


def daemon(directory):
    rig.start(["./chain"], cwd=directory)
    rig.start(["./recurse"], cwd=directory)
    with Sink() as sink:
        text = f"[profiler]\nsamples_per_second = 99\nreporter_interval = 1s\n[export:s]\nendpoint = {sink.endpoint}\n"
        d = rig.Daemon(text + "[filter]\ninclude_comm = chain, recurse\nexclude_comm = rec*\n")
        d.wait_up()
        sink.wait_for(2)
        seen = {x[0].get("process.executable.name") for v in sink.views() for x in v.samples()}
        rig.check(seen == {"chain"}, f"[filter] include_comm and exclude_comm: {seen}")
        rig.check("profiling the selection of [filter]" in d.log(), "which the daemon says at its start")
        d.stop()


# ---- Situations ----


def nothing_runs():
    other = rig.start(["sh", "-c", "while :; do :; done"])
    for option, name, kind in (("--unit", "nosuch", "units"), ("--container", "nosuch", "containers"),
                               ("--comm", "no-such-process", "processes")):
        stacks, r = capture("nothing", "-d", "1", option, name, "-o", rig.path("none.html"), "-o", rig.path("none.pb.gz"))
        first = r.err.splitlines()
        rig.check(f"no running process matches {option} {name}" in first[0] and f"perfwalk list {kind}" in first[0] and
                  first[1].startswith(f"perfwalk: recording what matches {option} {name} at 99 Hz"), f"{first[:2]}")
        rig.check(re.search(r"^Samples +0$", r.out, re.M) and filtered(r) > 10,
                  f"samples that were left out are not among those that count: {filtered(r)}")
    rig.end(other)
    rig.check(not stacks and "No samples" in r.out and os.path.getsize(rig.path("none.html")) > 10000,
              "nothing of what was asked for ran: said, with files that are whole")
    pprof_types(rig.path("none.pb.gz"))


def many_processes(directory):
    script = ("import os,time\nfor i in range(500):\n if os.fork()==0:\n  os.execv('./blip',['blip','5'])\n"
              "for i in range(500): os.wait()")
    stacks, r = capture("500 processes", "-F", "997", "--", "python3", "-c", script, cwd=directory)
    mine = [s for s in stacks if s.comm == "blip"]
    seen = re.search(r"^ *[0-9.]+% +([0-9,]+) +blip", r.out, re.M)
    rig.check(rig.total(mine) >= 500 and seen and int(seen[1].replace(",", "")) >= 450,
              f"500 processes at once: {rig.total(mine)} samples of {seen and seen[1]}")


def busy_host(directory):
    """Every CPU busy several times over, programs that come and go, and 500 that sleep."""
    sleepers = ("import os,sys\nr,w=os.pipe()\nfor i in range(500):\n if os.fork()==0:\n"
                "  os.close(w);os.read(r,1);os._exit(0)\nprint(1,flush=True)\nos.close(r)\nsys.stdin.read()")
    crowd = rig.start(["python3", "-c", sleepers], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    crowd.stdout.readline()
    busy = [rig.start(["./chain"], cwd=directory) for _ in range(3 * len(os.sched_getaffinity(0)))]
    busy.append(rig.start(["sh", "-c", "while :; do ./blip 20; done"], cwd=directory))
    stacks, r = capture("a busy host", "-a", "-F", "199", "-d", "2", "-o", rig.path("busy.html"),
                        "-o", rig.path("busy.pb.gz"))
    for p in busy:
        rig.end(p)
    crowd.stdin.close()
    chain = [s for s in stacks if s.comm == "chain"]
    complete = rig.total(s for s in chain if s.complete())
    rig.check(rig.total(chain) >= 50 and complete >= 0.95 * rig.total(chain),
              f"a busy host with 500 more processes: {complete} of {rig.total(chain)} samples of what is busy reach "
              f"their entry; {rig.total(stacks)} samples")
    rig.check(any(s.comm == "blip" for s in stacks), "and what comes and goes is there")
    lost = re.search(r"^ +lost +([0-9,]+)", r.out, re.M)
    rig.check(lost and "busy.html" in r.out and os.path.getsize(rig.path("busy.pb.gz")) > 1000,
              f"what was lost is said: {lost and lost[1]}; the other outputs are there")


def strict(directory):
    """The profiler stands still while more happens than the rings can hold."""
    def run(script):
        p = rig.start([rig.perfwalk(), "record", "--strict", "-e", "page-faults", "-o", rig.path("strict.folded"), "--",
                       "sh", "-c", f"read x; {script}"], cwd=directory, stdin=subprocess.PIPE,
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        def child(name):
            return next((c for c in rig.children_of(p.pid) if rig.comm_of(c) == name), None)
        rig.wait_for("the command", lambda: child("sh"))  # it runs when all is sampled
        profiler = rig.wait_for("the profiler", lambda: child(rig.ROLES["profiler"]))
        rig.kill(profiler, signal.SIGSTOP)
        p.stdin.write("go\n")
        p.stdin.flush()
        rig.wait_for("the end of its work", lambda: os.path.exists(rig.path("faulted")))
        os.remove(rig.path("faulted"))
        rig.kill(profiler, signal.SIGCONT)
        text, _ = p.communicate(timeout=120)
        return p.returncode, re.search(r"^ +lost +([0-9,]+)", text, re.M)

    faults, done = "./counted faults 20000", f">{rig.path('faulted')}"
    status, lost = run(f"{faults}; : {done}")
    rig.check(status == 5 and lost, f"--strict and {lost and lost[1]} lost of a command that ended with 0: {status}")
    status, lost = run(f"{faults}; : {done}; exit 7")
    rig.check(status == 7 and lost, f"--strict and {lost and lost[1]} lost of a command that ended with 7: {status}")


def short_command(directory):
    stacks, r = capture("50 ms", "-F", "997", "--", "./blip", "50", cwd=directory)
    n = sum(s.n for s in stacks if "blip_burn" in s.user)
    rig.check(30 <= n <= 60 and r.status == 0, f"a command that lives 50 ms: {n} samples of it")


# Each thread, and each process, burns 3 ms of CPU time: less than a third of a period. It prints all CPU time of the
# program, by the kernel's accounts.
SHORT_LIVES = """
import os, resource, sys, threading, time
def burn():
    end = time.thread_time() + 0.003
    while time.thread_time() < end:
        pass
for i in range(300):
    if sys.argv[1] == "threads":
        t = threading.Thread(target=burn)
        t.start()
        t.join()
    elif os.fork() == 0:
        burn()
        os._exit(0)
    else:
        os.wait()
print(sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
"""


def short_lives(_):
    """Who lives for less than a period is sampled, too."""
    for what in "threads", "processes":
        r = rig.record("-o", rig.path("short.folded"), "--", "python3", "-c", SHORT_LIVES, what)
        truth = float(re.findall(r"^\d+\.\d+$", r.out, re.M)[0])
        n = rig.total(rig.read_folded(rig.path("short.folded")))
        rig.check(r.status == 0 and truth > 0.9 and 0.6 * truth < n / 99 < 1.5 * truth,
                  f"{what} of 3 ms each: {n} samples at 99 Hz for {truth:.2f} s of CPU time")
    server = rig.start(["python3", "-c", f"while True:\n{textwrap.indent(SHORT_LIVES, ' ')}", "processes"],
                       stdout=subprocess.DEVNULL)
    rig.start(["sh", "-c", "while :; do :; done"])
    r = rig.record("-d", "4", "-o", rig.path("server.folded"), "-p", str(server.pid))
    stacks = rig.read_folded(rig.path("server.folded"))
    rig.check(r.status == 0 and rig.total(stacks) > 20 and {s.comm for s in stacks} == {"python3"},
              f"-p: {rig.total(stacks)} samples of what a process forks for 3 ms each, and none of others")


def private_programs(directory):
    """Gone before anybody asks for their files, which only their owner could open by name. Each is a file of its own,
    so no process that still lives has it mapped."""
    private = rig.path("private")
    os.mkdir(private, 0o700)
    for i in range(40):
        shutil.copy(os.path.join(directory, "blip"), os.path.join(private, f"blip{i}"))
    stacks, _ = capture("programs in a private directory", "-F", "997", "--", "sh", "-c",
                        "for i in $(seq 0 39); do ./blip$i 12; done", cwd=private)
    seen = {s.comm for s in stacks if re.fullmatch(r"blip\d+", s.comm)}
    named = {s.comm for s in stacks if "blip_burn" in s.user}
    rig.check(len(seen) >= 30 and len(named) >= 0.9 * len(seen),
              f"{len(named)} of {len(seen)} programs in a private directory have names after their end")


def target_dies(directory):
    for waits in (True, False):
        one_target_dies(directory, waits)


def one_target_dies(directory, waits):
    """waits: its parent does, so that nothing is left of it."""
    chain = rig.start(["./chain"], cwd=directory)
    out = rig.path("dies.folded")
    begin, ended = [], []

    def dies():
        if not ended:
            begin.append(rig.cpu_seconds(chain.pid))
            if begin[-1] - begin[0] >= 0.3:
                ended.append(rig.end(chain) if waits else rig.kill(chain.pid, signal.SIGKILL))
    r = rig.record("-F", "199", "-d", "600", "-p", chain.pid, "-o", out, until=dies)
    stacks = rig.read_folded(out)
    rig.check(r.status == 0 and "has ended" in r.err, f"a process that dies half-way ends the capture, its parent waits: {waits}: {r.status}")
    rig.check(any("chain_leaf" in s.user for s in stacks), f"with what it did: {rig.total(stacks)} samples")


def interrupted_twice():
    out = rig.path("twice.folded")
    p = rig.start([rig.perfwalk(), "record", "-a", "-d", "600", "-o", out], stdout=subprocess.PIPE,
                  stderr=subprocess.PIPE, text=True)
    rig.wait_until_it_records(p)
    rig.kill(p.pid, signal.SIGSTOP)  # both wait for it
    rig.kill(p.pid, signal.SIGINT)
    rig.kill(p.pid, signal.SIGTERM)
    watch = rig.Stopwatch(p.pid)
    rig.kill(p.pid, signal.SIGCONT)
    _, seconds = watch.wait(p)
    text, err = p.communicate()
    rig.check(p.returncode == 1 and "incomplete" in err and seconds < 10,
              f"a second Ctrl-C ends it at once and says what it means: {p.returncode}, {err.strip()[-80:]!r}")
    rig.check(not os.path.exists(out) and "Files" not in text, "no empty file is left behind, or listed")
    rig.check(not rig.children_of(p.pid), "nothing is left running")


def interrupted_by_timeout():
    """timeout(1) sends its signal to perfwalk and to its process group: that is one wish to stop."""
    out = rig.path("timeout.folded")
    p = rig.start([rig.perfwalk(), "record", "-a", "-d", "600", "-o", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    p.stderr.readline()  # it records
    rig.kill(p.pid, signal.SIGSTOP)
    rig.kill(p.pid, signal.SIGINT)
    ctypes.CDLL(None).tgkill(p.pid, p.pid, signal.SIGINT)  # to the thread, so that both wait for it
    rig.kill(p.pid, signal.SIGCONT)
    text, err = p.communicate(timeout=rig.PATIENCE)
    rig.check(p.returncode == 0 and "incomplete" not in err and "Files" in text and os.path.exists(out),
              f"the same signal twice at once ends the capture as one does: {p.returncode}, {err.strip()[-80:]!r}")


def disk(directory):
    if not rig.can_mount():
        rig.leave_out("a full disk: no tmpfs can be mounted")
        return
    full = rig.path("full")
    os.mkdir(full)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", full], check=True)
    try:
        good = rig.path("good.folded")
        r = rig.record("-d", "1", "-o", f"{full}/x.html", "-o", good)
        rig.check(r.status == 1 and "x.html" in r.err and "No space left" in r.err,
                  f"a full disk: {r.status}, {r.err.strip()[-150:]!r}")
        rig.check(not os.path.exists(f"{full}/x.html"), "no half of a file is left on it")
        files = r.out.partition("\nFiles\n")[2].splitlines()
        rig.check(len(files) == 2 and re.fullmatch(r" .*x\.html +-  not written: No space left on device", files[0]) and
                  re.fullmatch(r" .*good\.folded +[\d.]+ .*", files[1]), f"the summary ends with what was written: {files}")
        rig.check(os.path.exists(good), "and the other output is whole, if empty where nothing ran")
        os.remove(good)
        r = rig.record("-o", f"{full}/x.html", "-o", good, "--", "./blip", "300", cwd=directory)
        rig.check(rig.total(rig.read_folded(good)) > 10, "or not empty")
        r = rig.record("-o", f"{full}/y.html", "--", "./blip", "300", cwd=directory)
        rig.check(r.status == 125, f"the same with a command: {r.status}")
    finally:
        subprocess.run(["umount", full], check=False)
    r = rig.record("-d", "1", "-o", "/no/such/directory/x.html")
    rig.check(r.status == 1 and "/no/such/directory/x.html cannot be written" in r.err and "recording" not in r.err,
              f"a path that cannot be: {r.status}, {r.err.strip()!r}, before anything is recorded")
    r = rig.record("-o", "/no/such/directory/x.html", "--", "true")
    rig.check(r.status == 125, f"the same with a command: {r.status}")
    os.mkdir(rig.path("dir.folded"))
    r = rig.record("-d", "1", "-o", rig.path("dir.folded"))
    rig.check(r.status == 1 and "dir.folded" in r.err and os.path.isdir(rig.path("dir.folded")),
              f"an output that is a directory: {r.status}, {r.err.strip()!r}")


def nobody_reads(directory):
    out = rig.path("unread.folded")
    for how, redirection in (("closed", ">&-"), ("full", ">/dev/full"), ("a pipe nobody reads", "| true")):
        script = f'"$@" {redirection}; echo ${{PIPESTATUS[0]}} >&2'
        p = subprocess.run(["bash", "-c", script, "bash", rig.perfwalk(), "record", "-F", "199", "-o", out, "--",
                            "./blip", "300"], cwd=directory, stderr=subprocess.PIPE, text=True, check=False,
                           timeout=120)
        rig.check(p.stderr.split()[-1] == "0" and rig.total(rig.read_folded(out)) > 20,
                  f"standard output {how}: {p.stderr.split()[-1]}, and the file is there")
        os.unlink(out)


# A host of many CPUs: the CPUs that are not there have events of those that are, without records of processes.
MANY = r"""
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <sys/syscall.h>
long syscall(long number, ...)
{
	static long (*real)(long, ...);
	struct perf_event_attr attr;
	va_list l;
	long a[6];

	va_start(l, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(l, long);
	va_end(l);
	if (!real)
		real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	if (number == SYS_perf_event_open && (int)a[2] >= HERE) {
		__builtin_memcpy(&attr, (void *)a[0], ((struct perf_event_attr *)a[0])->size);
		attr.mmap = attr.mmap2 = attr.comm = attr.task = 0;
		a[0] = (long)&attr;
		a[2] = (int)a[2] % HERE;
	}
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
"""


def many_cpus(directory):
    """Two descriptors for each CPU, and few for all else."""
    cpus = sorted(os.sched_getaffinity(0))
    with open("/proc/meminfo", encoding="ascii") as f:
        free = next(int(line.split()[1]) for line in f if line.startswith("MemAvailable"))
    if cpus != list(range(os.cpu_count())) or not rig.can_mount():
        rig.leave_out("a host of many CPUs: not all CPUs may be used, or nothing can be mounted")
        return
    n = 512 if free > 2 << 20 else 64
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-D_GNU_SOURCE", f"-DHERE={len(cpus)}", "-o", rig.path("many.so"),
                    rig.write("many.c", MANY)], check=True)
    script = ('mount --make-rprivate / && mount --bind "$1" /sys/devices/system/cpu/online && export LD_PRELOAD="$2" && '
              'ulimit -n "$3" && shift 3 && exec "$@"')
    limit, log, out = 2 * n + 64, rig.path("many.log"), rig.path("many.folded")
    with open(log, "w", encoding="utf-8") as f:
        p = rig.start(["unshare", "-m", "sh", "-c", script, "sh", rig.write("online", f"0-{n - 1}\n"), rig.path("many.so"),
                       str(limit), rig.perfwalk(), "record", "-a", "-F", "10", "-d", "600", "-o", out], stdin=subprocess.DEVNULL,
                      stdout=f, stderr=f)

    def said():
        with open(log, encoding="utf-8") as f:
            return f.read()

    def descriptors(pid):
        found = []
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
                found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        return len(found), sum("perf_event" in x for x in found)
    rig.wait_for("it records", lambda: "recording" in said() or p.poll() is not None)
    rig.check(f"on {n} CPUs" in said(), f"a host of {n} CPUs, with {limit} descriptors" + ("" if p.poll() is None else said()))
    profiler = rig.wait_for("the profiler", lambda: next((c for c in rig.children_of(p.pid) if rig.comm_of(c) ==
                                                          rig.ROLES["profiler"]), 0))
    rig.wait_for("the profiler has all events", lambda: descriptors(profiler)[1] == 2 * n)
    for name, pid in (("broker", p.pid), ("profiler", profiler)):
        every, events = descriptors(pid)
        rig.check(events <= 2 * n and every <= limit, f"{name}: {every} descriptors, {events} of them of events")
    chain = rig.start(["./chain"], cwd=directory, stdout=subprocess.DEVNULL)
    rig.wait_for("some CPU time", lambda: rig.cpu_seconds(chain.pid) > 0.5)
    p.send_signal(signal.SIGINT)
    rig.check(p.wait(rig.PATIENCE) == 0, "SIGINT ends it" + ("" if p.returncode == 0 else said()))
    seen = rig.total(s for s in rig.read_folded(out) if s.comm == "chain")
    rig.check(seen > n / 4, f"{seen} samples of a program")


def ends_at_start(directory):
    """What runs when the capture begins, and ends before anybody has read a sample of it."""
    named = 0
    for _ in range(20):
        chain = rig.start(["./chain"], cwd=directory)
        rig.wait_for_cpu(chain.pid, 0.05)
        p = rig.start([rig.perfwalk(), "record", "-a", "-F", "199", "-d", "0.3", "-o", rig.path("ends.folded")], stdout=subprocess.DEVNULL,
                      stderr=subprocess.PIPE, text=True)
        rig.wait_until_it_records(p)
        time.sleep(0.02)
        rig.end(chain)
        rig.communicate(p)
        stacks = rig.read_folded(rig.path("ends.folded"))
        rig.check(not any(s.comm == f"[{chain.pid}]" for s in stacks), f"all samples of process {chain.pid} have its name")
        named += any(s.comm == "chain" for s in stacks)
        if named == 5:
            return
    rig.fail("it had no CPU at the start of most captures")


def main():
    rig.need_root()
    rig.need_programs("unshare", "taskset", "bash")
    directory = rig.build_workloads("chain", "chain-fp", "recurse", "frames", "blip", "counted")
    for test in (targets, users, groups, hotplug, events, modes, busy_host, many_processes, strict, short_command, short_lives,
                 private_programs, target_dies, disk, nobody_reads, daemon, many_cpus, ends_at_start):
        begin = time.monotonic()
        test(directory)
        rig.end_started()
        rig.say(f"{test.__name__}: {time.monotonic() - begin:.1f} s")
    refusals()
    nothing_runs()
    interrupted_twice()
    interrupted_by_timeout()


rig.run(main)
