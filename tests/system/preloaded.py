# SPDX-License-Identifier: Apache-2.0
# Rooms: src/profiler src/broker src/sample src/cmd alloc
"""[alloc] in the daemon: what is in use at the end of each window, of processes that were started before it
and after, and of those that preload a copy of the library, each block once wherever the file is mounted; what
happens where a budget is used up. The truth is what the workload says of itself. Needs root."""
import os
import re
import shutil
import signal
import subprocess

import alloc_model
import rig
from alloc_model import KINDS
from sink import Sink, paused_ms

MEAN = 262144
NAME = "heap-preloaded"
CONFIG = """[profiler]
reporter_interval = 1s
ring_size = 16M
[alloc]
enabled = {enabled}
budget = {budget}
[filter]
include_comm = {name}
[export:sink]
endpoint = {endpoint}
"""


class Heap:
    """The workload, which has told the truth of itself and lives on."""
    def __init__(self, program, preload, mean=MEAN):
        self.process = rig.start(["env", f"LD_PRELOAD={preload}", f"PERFWALK_ALLOC_BYTES={mean}", program, "wait"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        text = ""
        while "allocate_grown" not in text:
            line = self.process.stdout.readline()
            if not line:
                rig.fail(f"the workload ended: {text}")
            text += line
        self.truth = alloc_model.truth(text)

    def end(self):
        self.process.communicate(timeout=rig.PATIENCE)


def ctl(d, *args):
    return subprocess.run([rig.perfwalk(), "ctl", "-s", d.control, *args], capture_output=True, text=True, timeout=60, check=False)


def values_of(d):
    return dict(line.split(" ", 1) for line in ctl(d, "status", "--all").stdout.splitlines())


def windows(sink):
    """By window, in their order: {type: {function the block was allocated in: sum}}"""
    found, seen = {}, set()
    for view in sink.views():
        for profile in (p for r in view.message.resource_profiles for s in r.scope_profiles for p in s.profiles):
            if profile.profile_id in seen:
                continue  # sent again, as the first answer came too late
            seen.add(profile.profile_id)
            kind = view.strings[profile.sample_type.type_strindex]
            unit = view.strings[profile.sample_type.unit_strindex]
            if kind not in KINDS:
                continue
            if unit != ("bytes" if kind.endswith("space") else "count"):
                rig.fail(f"{kind} is told in {unit}")
            sums = found.setdefault(profile.time_unix_nano, {k: {} for k in KINDS})[kind]
            for s in profile.samples:
                path = next((f for f in reversed(view.frames(s.stack_index)) if f.startswith("allocate_")), "other")
                sums[path] = sums.get(path, 0) + sum(s.values)
    return [found[t] for t in sorted(found)]


def total(sums):
    """What was allocated in all windows, and is in use at the end of the last one."""
    ret = {kind: {} for kind in KINDS}
    for window in sums:
        for kind in KINDS[::2]:
            for path, v in window[kind].items():
                ret[kind][path] = ret[kind].get(path, 0) + v
    for kind in KINDS[1::2]:
        ret[kind] = sums[-1][kind] if sums else {}
    return ret


def compare(found, truth, times, what, kinds=KINDS, mean=MEAN):
    # As whole numbers at least once for each stack and window, too.
    alloc_model.compare(found, truth, times, what, mean, kinds, times)


def take_a_sample(d):
    """A window without a sample, as an idle host has, makes no payload: what it tells comes with the next one."""
    before = int(values_of(d)["samples"])
    burner = rig.start(["sh", "-c", "while :; do :; done"])
    rig.wait_for("a sample", lambda: int(values_of(d)["samples"]) > before)
    rig.end(burner)


def flush(d, sink):
    """All that was allocated before is with the receiver."""
    take_a_sample(d)
    for _ in range(2):
        rig.check(ctl(d, "flush").returncode == 0, "flush")

    def all_sent():
        v = values_of(d)
        return v["export.sink.queue_payloads"] == "0" and int(v["export.sink.payloads_sent"]) <= sink.count()
    rig.wait_for("all payloads", all_sent, 60)


def nothing_is_lost(d):
    v = values_of(d)
    lost = [v[f"event.{x}.{y}"] for x in ("alloc_space", "inuse_space") for y in ("samples_lost", "stood_still_ms")
            if f"event.{x}.{y}" in v]
    rig.check(all(x == "0" for x in lost), f"nothing was lost: {lost}")


def of_windows(d, sink, program):
    heap = Heap(program, alloc_model.library())
    flush(d, sink)
    compare(total(windows(sink)), heap.truth, 1, "a process")
    before = len(windows(sink))
    rig.wait_for("three windows more", lambda: ctl(d, "flush") and len(windows(sink)) > before + 2, 60)
    compare(windows(sink)[-1], heap.truth, 1, "what is in use is in each window", KINDS[1::2])
    rig.check(not windows(sink)[-1]["alloc_space"], "and nothing was allocated in the last one")
    heap.end()
    flush(d, sink)
    # One more window has nothing in it, or is not even sent.
    last = windows(sink)[-1]
    n = len(windows(sink))
    flush(d, sink)
    rig.check(len(windows(sink)) == n or not windows(sink)[-1]["inuse_space"], f"what ended has nothing in use: {last['inuse_space']}")


def overlays(count):
    """Mounts that have the library in one lower layer."""
    lower = rig.path("lower")
    os.mkdir(lower)
    shutil.copy(alloc_model.library(), lower)
    mounts = []
    for i in range(count):
        upper, work, merged = (rig.path(f"{x}{i}") for x in ("upper", "work", "merged"))
        for name in (upper, work, merged):
            os.mkdir(name)
        p = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", merged],
                           check=False, stderr=subprocess.PIPE, text=True)
        if p.returncode != 0:
            rig.leave_out(f"overlayfs cannot be mounted: {p.stderr.strip()}")
            break
        mounts.append(merged)
    return mounts if len(mounts) == count else []


def n_copies(d):
    return d.log().count("a copy of the allocation library is sampled")


def n_probes(d):
    with open("/sys/kernel/tracing/uprobe_events", encoding="ascii") as f:
        return sum(f":perfwalk_{d.pid}_" in line for line in f)


def first_of(d, path, n):
    """A process that has it mapped: what others allocate from now on is seen."""
    p = rig.start(["env", f"LD_PRELOAD={path}", "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    rig.wait_for(f"copy {n} is sampled", lambda: n_copies(d) == n, 60)
    return p


def of_copies(d, sink, program):
    """A file of another inode; two views of one file; and a third, which was changed and so is a file of its own."""
    plain = rig.path("libperfwalk-alloc.so")
    shutil.copy(alloc_model.library(), plain)
    mounts = overlays(3)
    files = [os.path.join(m, "libperfwalk-alloc.so") for m in mounts]
    firsts = [first_of(d, plain, 1)]
    heaps = [Heap(program, plain)]
    if files:
        os.utime(files[2])
        firsts.append(first_of(d, files[0], 2))
        heaps += [Heap(program, files[0]), Heap(program, files[1])]
        firsts.append(first_of(d, files[2], 3))
        heaps.append(Heap(program, files[2]))
    flush(d, sink)
    truth = heaps[0].truth
    compare(windows(sink)[-1], truth, len(heaps), f"{len(heaps)} processes with copies", KINDS[1::2])
    rig.check(n_copies(d) == (3 if files else 1), "a file in two mounts is one file")
    other = rig.path("other", "libperfwalk-alloc.so")
    os.mkdir(os.path.dirname(other))
    shutil.copy(alloc_model.library(), other)
    with open(other, "ab") as f:
        f.write(b"x")
    stranger = Heap(program, other)
    flush(d, sink)
    compare(windows(sink)[-1], truth, len(heaps), "a file with other contents is not sampled", KINDS[1::2])
    for p in firsts:
        rig.end(p)
    for h in (*heaps, stranger):
        h.end()
    rig.wait_for("the probes in the copies are gone", lambda: n_probes(d) == 2, 60)
    for m in mounts:
        # Files of it may be open still, also in other daemons of this host.
        subprocess.run(["umount", "-l", m], check=True)


def of_missing_ends(d, sink, program, config):
    """Somebody uses up the budget of the ends: those that nobody saw are found in the library's own table."""
    rig.write("daemon.conf", CONFIG.format(enabled="yes", budget=400, **config))
    rig.check(ctl(d, "reload").returncode == 0, "a reload")
    # A budget is each CPU's.
    floods = [rig.start(["taskset", "-c", str(cpu), "env", f"LD_PRELOAD={alloc_model.library()}", os.path.join(os.path.dirname(program), "liar"), "ends"])
              for cpu in os.sched_getaffinity(0)]

    def stood_still():
        return int(values_of(d).get("event.inuse_space.stood_still_ms", 0))
    rig.wait_for("ends are not seen", lambda: stood_still() > 2000 * len(floods), 60)
    before = stood_still()
    # So few that the budget does for the blocks.
    heap = Heap(program, alloc_model.library(), 8 * MEAN)
    rig.wait_for("ends are not seen meanwhile", lambda: stood_still() > before + 500, 60)
    flush(d, sink)
    compare(windows(sink)[-1], heap.truth, 1, "what is in use, of which nobody saw the ends", KINDS[1::2], 8 * MEAN)
    for flood in floods:
        rig.end(flood)
    heap.end()


def of_a_killed_profiler(d, sink, program):
    """The next one tells of what is in use, too, without the stacks; what ends counts no more."""
    heap = Heap(program, alloc_model.library())
    flush(d, sink)
    compare(windows(sink)[-1], heap.truth, 1, "before it is killed", KINDS[1::2])
    before = windows(sink)[-1]
    profiler = d.role("profiler")
    rig.kill(profiler, signal.SIGKILL)
    rig.wait_for("another profiler", lambda: d.role("profiler") not in (0, profiler), 60)
    flush(d, sink)
    after = windows(sink)[-1]
    for kind in KINDS[1::2]:
        # Sums are whole numbers for each stack, of which the workload has less than 50.
        apart = abs(sum(after[kind].values()) - sum(before[kind].values()))
        rig.check(apart < 50 and set(after[kind]) == {"other"},
                  f"{kind} is the same after it was killed, without its stacks: {before[kind]}, {after[kind]}")
    rig.check("are those of the profiler before this one" in d.log(), "the log says so")
    heap.end()
    flush(d, sink)
    n = len(windows(sink))
    flush(d, sink)
    rig.check(len(windows(sink)) == n or not windows(sink)[-1]["inuse_space"], "what ended has nothing in use")


def of_a_pause(d, sink, program):
    """What ends while nobody looks."""
    heap = Heap(program, alloc_model.library())
    flush(d, sink)
    compare(windows(sink)[-1], heap.truth, 1, "before the pause", KINDS[1::2])
    rig.check(ctl(d, "pause").returncode == 0, "pause")
    before = int(values_of(d)["windows"])
    # These have nothing but what is in use: no sample tells one from the one before it.
    rig.wait_for("windows of the pause alone", lambda: int(values_of(d)["windows"]) > before + 2)
    rig.check(ctl(d, "resume").returncode == 0, "resume")
    flush(d, sink)
    said, told = paused_ms(sink.views()), values_of(d)
    rig.check(said == int(told["paused_ms"]) > 1000, f"the profiles say how long it was: {said} ms of {told['paused_ms']}")
    rig.check(told["payloads"] == told["export.sink.payloads_sent"],
              f"of {told['payloads']} payloads {told['export.sink.payloads_sent']} were sent")
    rig.check(ctl(d, "pause").returncode == 0, "another pause")
    heap.end()
    rig.check(ctl(d, "resume").returncode == 0, "resume")
    flush(d, sink)
    n = len(windows(sink))
    flush(d, sink)
    rig.check(len(windows(sink)) == n or not windows(sink)[-1]["inuse_space"], "what ended during a pause has nothing in use")


def of_a_flood(d, sink, directory, config):
    """Whoever calls the markers in a loop gets the budget, and others what is left of it."""
    budget = 50
    rig.write("daemon.conf", CONFIG.format(enabled="yes", budget=budget, **config))
    rig.check(ctl(d, "reload").returncode == 0, "a reload for a small budget")
    flood = rig.start(["env", f"LD_PRELOAD={alloc_model.library()}", os.path.join(directory, "liar"), "on"], stdout=subprocess.DEVNULL)

    def stood_still():
        v = values_of(d)
        return all(int(v.get(f"event.{x}.stood_still_ms", 0)) > 2000 for x in ("alloc_space", "inuse_space"))
    rig.wait_for("both events stand still for a while", stood_still, 90)
    before, t = values_of(d), os.times().elapsed
    rig.wait_for("five seconds more", lambda: os.times().elapsed > t + 5, 60)
    after, seconds = values_of(d), os.times().elapsed - t
    n = int(after["event.alloc_space.samples"]) - int(before["event.alloc_space.samples"])
    rig.check(n <= budget * os.cpu_count() * (seconds + 3), f"{n} samples in {seconds:.0f} s by a flood, with a budget of {budget}")
    rig.check("has used up its budget" in d.log() and "[alloc]" in d.log(), "the log says so")
    rig.end(flood)


def main():
    rig.need_root()
    rig.need_allocations()
    directory = rig.build_workloads("heap", "liar")
    program = os.path.join(directory, NAME)
    os.rename(os.path.join(directory, "heap"), program)
    with Sink() as sink:
        config = {"endpoint": sink.endpoint, "name": NAME}
        early = Heap(program, alloc_model.library())
        d = rig.Daemon(CONFIG.format(enabled="no", budget=100000, **config))
        d.wait_up()
        rig.check("event.alloc_space.samples" not in values_of(d), "without [alloc] there is none")
        rig.write("daemon.conf", CONFIG.format(enabled="yes", budget=100000, **config))
        p = ctl(d, "reload")
        if p.returncode != 0 and "may not set probes" in d.log():
            rig.check(d.alive(), "refused here, and the daemon goes on")
            rig.skip("this daemon may not set probes")
        rig.check(p.returncode == 0, f"a reload: {p.stderr}")
        rig.wait_for("a profiler that samples them", lambda: "event.alloc_space.samples" in values_of(d), 60)
        of_windows(d, sink, program)
        of_copies(d, sink, program)
        nothing_is_lost(d)
        early.end()
        of_a_killed_profiler(d, sink, program)
        of_a_pause(d, sink, program)
        of_missing_ends(d, sink, program, config)
        of_a_flood(d, sink, directory, config)
        rig.check(not sink.problems(), f"the receiver finds nothing wrong: {sink.problems()[:3]}")
        d.stop()


rig.run(main)
