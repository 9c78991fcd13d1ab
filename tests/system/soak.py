# SPDX-License-Identifier: Apache-2.0
"""`make check-soak`: SOAK_MINUTES (360) on a busy, hostile host. Processes come and go, files are deleted while they
run, containers too where podman is there, and files that are bombs (bombs.py). The receivers go away and come back,
and the config is read again every 10 s. Of two daemons one is left alone otherwise: its memory and descriptors do
not grow. Of the other each child is killed once a minute. Of both, what came and what is told to be lost are all
samples of CPU time that were taken, and nothing came twice without a reason. With SOAK_TYPES=all both also sample off-CPU
time, memory growth and allocations, and keep all in a store.

SOAK_OUT (soak/) gets soak.csv while it runs, and soak.html with the charts and the verdicts at its end. As root."""
import collections
import csv
import hashlib
import itertools
import os
import queue
import random
import shutil
import signal
import statistics
import subprocess
import threading
import time

import alloc_model
import bombs
import containers
import otlp
import plot
import rig
from cgroup_dirs import MemoryLimit
from sink import Sink

MINUTES = float(os.environ.get("SOAK_MINUTES", "360"))
OUT = os.path.abspath(os.environ.get("SOAK_OUT", "soak"))
ALL = os.environ.get("SOAK_TYPES") == "all"
ROLES = ("broker", "profiler", "symbolizer", "exporter")
TOLD = ("samples_lost_with_process", "samples_dropped")  # of what was read from the rings
LOSSES = {"full rings": "samples_lost", "with a process": TOLD[0], "dropped": TOLD[1], "payloads twice": "again"}
RELOAD_EVERY, KILL_EVERY = 10, 20  # seconds; three children take turns
OUTAGE, BETWEEN_OUTAGES = 20, 70
# Few files are kept open, so that their number is reached before growth is measured.
CONFIG = """
[profiler]
samples_per_second = 19
reporter_interval = 5s
[symbolizer]
lines = yes
inline = yes
[limits]
max_open_files = 128
[resource]
soak.turn = {turn}
[export:sink]
endpoint = http://127.0.0.1:{port}
"""
MORE = """
[profiler]
memory_growth = yes
[off_cpu]
enabled = yes
[alloc]
enabled = yes
[store]
enabled = yes
path = {store}
max_bytes = 32M
"""


class Ledger:
    """What came to a receiver: sums, and a digest of each payload; no bodies, it is for hours."""

    def __init__(self):
        self.sums = collections.Counter()
        self.seen, self.again = set(), 0
        self.queue = queue.Queue()
        threading.Thread(target=self.read_all, daemon=True).start()

    def read_all(self):
        while True:
            self.read(self.queue.get())
            self.queue.task_done()

    def read(self, body):
        key = hashlib.sha256(body).digest()
        if key in self.seen:
            self.again += 1
            return
        self.seen.add(key)
        view = otlp.View(otlp.decode(body))
        for scope in (sp for rp in view.message.resource_profiles for sp in rp.scope_profiles):
            for p in scope.profiles:
                self.sums[view.strings[p.sample_type.type_strindex]] += len(p.samples)
            # A switch is a sample of off-CPU time, and comes to nobody by itself.
            scope.profiles = [p for p in scope.profiles if view.strings[p.sample_type.type_strindex] == "samples"]
        for sample in view.samples():
            self.sums["kept"] += sample[3]
            self.sums["honest"] += sample[3] if sample[1].get("thread.name") == "chain" else 0
        for p in (p for rp in view.message.resource_profiles for sp in rp.scope_profiles for p in sp.profiles):
            for name, value in view.table_attributes(p.attribute_indices).items():
                if name.removeprefix("perfwalk.") in TOLD:
                    self.sums[name.removeprefix("perfwalk.")] += value

    def settled(self):
        return self.sums["kept"] + sum(self.sums[x] for x in TOLD)


class Receiver(Sink):
    """Answers at once; a thread of the ledger reads what came."""

    def __init__(self, ledger, port=0):
        self.ledger = ledger
        super().__init__(port)

    def take(self, request):
        answer = super().take(request)
        with self.lock:
            self.requests.clear()
        self.ledger.queue.put(request.body)
        return answer


class Run:
    """A daemon, its receiver, what was seen of both."""

    def __init__(self, name):
        self.name, self.ledger, self.turn = name, Ledger(), 0
        self.receiver = Receiver(self.ledger)
        self.port = self.receiver.port
        self.rows, self.kills, self.outages, self.refused = [], [], [], 0
        self.daemon = rig.Daemon(self.config(), name)
        self.daemon.wait_up(60)

    def config(self):
        return CONFIG.format(turn=self.turn, port=self.port) + ALL * MORE.format(store=rig.path(f"{self.name}.store"))

    def ctl(self, *words):
        """The answer, or None: while a child is started anew some have to be asked twice."""
        p = subprocess.run([rig.perfwalk(), "ctl", "-s", self.daemon.control, *words], capture_output=True, text=True,
                           check=False)
        return p.stdout if p.returncode == 0 else None

    def status(self):
        return dict(x.split(" ", 1) for x in (self.ctl("status", "--all") or "").splitlines() if " " in x)

    def reload(self):
        self.turn += 1
        rig.write(f"{self.name}.conf", self.config())
        self.refused += self.ctl("reload") is None

    def kill(self, role):
        pid = self.daemon.role(role)
        if pid:
            os.kill(pid, signal.SIGKILL)
            self.kills.append((time.monotonic(), role))

    def away(self):
        self.outages.append(time.monotonic())
        self.receiver.__exit__()
        self.receiver = None

    def back(self):
        self.receiver = self.receiver or Receiver(self.ledger, self.port)

    def measure(self, seconds):
        told = self.status()
        row = {"seconds": round(seconds, 1), "daemon": self.name}
        for role in ROLES:
            pid = self.daemon.pid if role == "broker" else self.daemon.role(role)
            row[f"{role}_kib"] = rig.anon_kib(pid) if pid else ""
            row[f"{role}_descriptors"] = rig.n_descriptors(pid) if pid else ""
        for name in ("samples", "samples_lost", *TOLD, "files_set_aside", "spool_bytes"):
            row[name] = told.get(name, "")
        row |= {"received": self.ledger.sums["kept"], "again": self.ledger.again, "kills": len(self.kills)}
        self.rows.append(row)
        return row

    def series(self, column, zeros=False):
        """Without zeros where they stand for a process that was not there."""
        return [(r["seconds"], float(r[column])) for r in self.rows if r[column] != "" and (zeros or float(r[column]))]


# ---- The host ----


class Noise:
    """What goes on beside the daemons, each in a thread of its own, at a low priority."""

    def __init__(self, directory):
        self.directory, self.bombs = directory, None
        self.stop, self.rootfs = threading.Event(), None
        self.counts = collections.Counter()
        self.failure = None
        jobs = [self.churn, self.deletions, self.explosions, *([self.allocations] if ALL else [])]
        if shutil.which("podman") and shutil.which("runc") and shutil.which("busybox"):
            self.rootfs = containers.make_rootfs()
            jobs.append(self.containers)
        else:
            rig.say("without containers: podman, runc or busybox is not installed")
        self.threads = [threading.Thread(target=self.again_and_again, args=(job,), daemon=True) for job in jobs]
        for thread in self.threads:
            thread.start()

    def again_and_again(self, job):
        while not self.stop.is_set() and not self.failure:
            try:
                job()
            except Exception as e:  # told by the thread that can end the test
                self.failure = f"{job.__name__}: {e}"

    def run(self, name, *argv, seconds=None):
        """Runs a program to its end, or for that long."""
        p = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "nice", "-n", "15", *argv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             start_new_session=True)
        try:
            p.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:
            status = rig.end(p)
        self.counts[name if status in (0, -signal.SIGKILL) else f"{name} that failed"] += 1

    def churn(self):
        self.run("processes", os.path.join(self.directory, "blip"), "5")
        self.stop.wait(0.05)

    def allocations(self):
        self.run("programs that allocate", "env", f"LD_PRELOAD={alloc_model.library()}", os.path.join(self.directory, "heap"))
        self.stop.wait(1)

    def deletions(self):
        """A program of its own path, taken away while it runs."""
        name = rig.path(f"gone-{self.counts['deleted files']}")
        # Not by this process: what its threads start meanwhile has the file open for writing, which then cannot run.
        subprocess.run(["cp", os.path.join(self.directory, "blip"), name], check=True)
        p = subprocess.Popen([name, "300"], start_new_session=True)
        os.unlink(name)
        p.wait(600)
        self.counts["deleted files"] += 1
        self.stop.wait(2)

    def explosions(self):
        if not self.bombs:
            self.bombs = bombs.build()  # which takes minutes of a busy host
        name = random.choice(list(self.bombs))
        self.run("bombs", self.bombs[name], seconds=3)
        self.stop.wait(3)

    def containers(self):
        podman = ["podman", "--runtime", "runc", "run", "--rm", "--cgroups=enabled", "--cgroup-manager=cgroupfs",
                  "--network=none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--rootfs", self.rootfs]
        self.run("containers", *podman, f"/bin/{containers.own('blip')}", "200", seconds=300)
        self.stop.wait(10)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(130)


# ---- The run ----


def events(seconds):
    """(when, what) for the whole run, in order."""
    roles = itertools.cycle(("profiler", "symbolizer", "exporter"))
    found = [(t, "reload", None) for t in range(RELOAD_EVERY, int(seconds), RELOAD_EVERY)]
    found += [(t + 3, "kill", next(roles)) for t in range(KILL_EVERY, int(seconds), KILL_EVERY)]
    for t in range(30, int(seconds) - OUTAGE, OUTAGE + BETWEEN_OUTAGES):
        found += [(t, "away", None), (t + OUTAGE, "back", None)]
    step = max(2.0, seconds / 2000)
    found += [(i * step, "measure", None) for i in range(1, int(seconds / step))]
    return sorted(found, key=lambda e: e[0])


def soak(runs, noise, seconds, writer):
    begin = measured = time.monotonic()
    for when, what, role in events(seconds):
        time.sleep(max(0, begin + when - time.monotonic()))
        now = time.monotonic()
        late = now - begin - when
        if when + late > seconds or (what == "measure" and late > 2 and now - measured < 60):
            continue  # a host that is too busy sees fewer of them; it does not take longer
        if what == "measure":
            measured = now
        for run in runs:
            if not run.daemon.alive():
                rig.fail(f"{run.name}: the daemon ended with {run.daemon.process.returncode}:\n{run.daemon.log()[-3000:]}")
            if what == "measure":
                writer(run.measure(time.monotonic() - begin))
            elif what != "kill":
                getattr(run, what)()
            elif run.name == "killed":
                run.kill(role)
        if noise.failure:
            rig.fail(noise.failure)


def settle(run):
    """The last window is at the receiver, and nothing more is to come."""
    rig.wait_for(f"{run.name}: a pause", lambda: run.ctl("pause") is not None, 120)
    rig.wait_for(f"{run.name}: a flush", lambda: run.ctl("flush") is not None, 120)
    truth = taken(rig.wait_for(f"{run.name}: a status", run.status, 60))
    deadline = time.monotonic() + 600
    # On a busy host what came may wait much longer to be read here.
    while run.ledger.settled() < truth and run.daemon.alive() and (
            run.ledger.queue.unfinished_tasks or time.monotonic() < deadline):
        time.sleep(0.5)
    return rig.wait_for(f"{run.name}: a status", run.status, 60)


def taken(told):
    """Samples of CPU time: of what a filter leaves out no type is told, and there is none."""
    return int(told[f"event.{told['event']}.samples" if ALL else "samples"]) - int(told["samples_filtered"])


def verdicts(run, told):
    truth, sums = taken(told), run.ledger.sums
    yield (run.ledger.settled() == truth,
           f"{run.name}: {sums['kept']} samples came, {sums['samples_lost_with_process']} were lost with a process, "
           f"{sums['samples_dropped']} dropped: together {run.ledger.settled()} of {truth} taken")
    # Whose answer did not come, as the receiver went away or was slow, is sent again; or its exporter was killed.
    reasons = int(told["export.sink.failures"]) + sum(role == "exporter" for _, role in run.kills)
    yield (run.ledger.again <= reasons, f"{run.name}: of {len(run.ledger.seen)} payloads {run.ledger.again} came again, "
           f"after {reasons} attempts without an answer")
    yield (sums["honest"] > 0, f"{run.name}: {sums['honest']} samples of the honest program")
    if ALL:
        kinds = ("off_cpu", "memory_growth", "alloc_space", "inuse_space")
        yield (all(sums[k] > 0 for k in kinds), f"{run.name}: " + ", ".join(f"{sums[k]} stacks of {k}" for k in kinds))
    yield (run.refused <= len(run.kills) // 10, f"{run.name}: {run.turn} reloads, {run.refused} refused")
    if run.name == "killed":
        return
    half = run.rows[-1]["seconds"] / 3  # before that tables and caches fill
    for column, least in [(f"{r}_kib", 4096) for r in ROLES] + [(f"{r}_descriptors", 16) for r in ROLES]:
        line = [p for p in run.series(column) if p[0] >= half]
        middle, grown = statistics.median(y for _, y in line), plot.growth(line)
        yield (grown < max(least, middle / 4),
               f"{run.name}: {column} grows by {grown:,.0f} in {(line[-1][0] - line[0][0]) / 60:.0f} minutes, "
               f"around {middle:,.0f}, at most {max(y for _, y in line):,.0f}")


def main():
    rig.need_root()
    rig.need_programs("gcc", "objcopy", "setpriv")
    os.makedirs(OUT, exist_ok=True)
    directory = rig.build_workloads("chain", "blip", "heap")
    rig.start(["nice", "-n", "15", "./chain"], cwd=directory, stdout=subprocess.DEVNULL)
    runs = [Run("calm"), Run("killed")]
    limit = MemoryLimit(f"perfwalk-soak-{os.getpid()}", 512 << 20)
    if limit.path:
        limit.take([runs[0].daemon.pid, *runs[0].daemon.roles().values()])
    else:
        rig.say(f"not within 512 MiB: {limit.missing}")
    noise = Noise(directory)
    try:
        with open(os.path.join(OUT, "soak.csv"), "w", encoding="utf-8", newline="") as f:
            rows = None

            def write(row):
                nonlocal rows
                if not rows:
                    rows = csv.DictWriter(f, row.keys())
                    rows.writeheader()
                rows.writerow(row)
                f.flush()
            soak(runs, noise, MINUTES * 60, write)
        noise.end()
        for run in runs:
            run.back()
        found = [v for run in runs for v in verdicts(run, settle(run))]
        if limit.path:
            found.append((not limit.killed(), f"calm: processes killed for want of memory within 512 MiB: {limit.killed()}"))
        for run in runs:
            status, _ = run.daemon.stop()
            found.append((status == 0 and not os.listdir(run.daemon.spool), f"{run.name}: leaves with {status}, its spool is empty"))
    finally:
        noise.stop.set()
        limit.remove()
        for run in runs:
            shutil.copy(run.daemon.log_path, os.path.join(OUT, f"{run.name}.log"))
    for what in ("processes", "deleted files", "bombs", *(["containers"] if noise.rootfs else [])):
        found.append((noise.counts[what] > 0, f"{noise.counts[what]} {what}, {noise.counts[what + ' that failed']} that failed"))
    charts = {f"{run.name}: {what}": {role: run.series(f"{role}_{column}") for role in ROLES}
              for run in runs for what, column in (("memory, KiB", "kib"), ("descriptors", "descriptors"))}
    charts |= {f"{run.name}: samples": {c: run.series(c) for c in ("samples", "received")} for run in runs}
    charts |= {f"{run.name}: samples lost, and payloads that came twice": {
        name: run.series(c, zeros=True) for name, c in LOSSES.items()} for run in runs}
    with open(os.path.join(OUT, "soak.html"), "w", encoding="utf-8") as f:
        f.write(plot.page(f"perfwalk: {MINUTES:g} minutes on a hostile host", charts, found))
    rig.say(f"seen in {MINUTES:g} minutes: {len(runs[1].kills)} kills, {len(runs[0].outages)} outages")
    for held, text in found:
        rig.say(f"{'ok' if held else 'BROKEN'}: {text}")
    rig.check(all(held for held, _ in found), f"all {len(found)} verdicts; charts in {OUT}/soak.html")


rig.run(main)
