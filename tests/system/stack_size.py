# SPDX-License-Identifier: Apache-2.0
# Rooms: src/sample src/profiler unwind
"""stack_size = auto: the daemon's copies grow for a program whose stacks are deep until they are complete,
shrink when only shallow ones are left (also after the profiler was killed), and no sample is lost over it; a
fixed size stays. Beyond the largest copy the kernel's callchain continues stacks with frame pointers, and
those alone."""
import os
import subprocess

import rig
from sink import Sink

# Only the program here counts, whatever else the host does. Rings that have room for any size.
CONFIG = """
[profiler]
samples_per_second = 499
reporter_interval = 1h
ring_size = 32M
stack_size = {size}
[filter]
include_comm = deep
[export:sink]
endpoint = {endpoint}
"""
LEVELS = 20  # of 2 KiB: 40 KiB
BEYOND = 60  # 120 KiB


def ctl(daemon, what):
    p = subprocess.run([rig.perfwalk(), "ctl", "-s", daemon.control, *rig.ctl_words(what)], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    if p.returncode != 0:
        rig.fail(f"ctl {what}: {p.stderr}")
    return dict(line.split(" ", 1) for line in p.stdout.splitlines())


def window(daemon, sink):
    """What is in the window that ends now: views of its payloads."""
    at, seen = sink.count(), len(list(sink.views()))
    ctl(daemon, "flush")
    sink.wait_for(at + 1, 10)
    return list(sink.views())[seen:]


def counter(views, name):
    """The sum of the profiles' attribute perfwalk.NAME."""
    return sum(int(v.table_attributes(profile.attribute_indices).get("perfwalk." + name, 0))
               for v in views for rp in v.message.resource_profiles for sp in rp.scope_profiles
               for profile in sp.profiles)


def burn(processes, seconds):
    """Until they have had so much more CPU time together."""
    def used():
        return sum(rig.cpu_seconds(p.pid) for p in processes)
    begin = used()
    rig.wait_for(f"{seconds} s of CPU time", lambda: used() - begin >= seconds, 40)


def beyond(directory, program):
    """Shares of the stacks of a capture: cut at the copy's end; of those to main, and with each of its levels."""
    out = rig.path(f"{program}.folded")
    p = rig.start([f"./{program}", str(BEYOND)], cwd=directory)
    r = rig.record_cpu(1, [p.pid], "-p", p.pid, "-F", "199", "--stack-size", "65528", "--no-inline", "-o", out)
    rig.end(p)
    if r.status != 0:
        rig.fail(r.text())
    cut = main = whole = 0
    with open(out, encoding="utf-8") as f:
        for line in f:
            stack, n = line.rsplit(" ", 1)
            frames = stack.split(";")
            if "[truncated stack]" not in frames:
                continue
            cut += int(n)
            main += "main" in frames and int(n)
            whole += (frames.count("deep_down") == BEYOND and frames[-1] == "deep_bottom") and int(n)
    rig.check(cut > 50, f"{program}: {cut} stacks are cut")
    return main / cut, whole / cut, "  continued " in r.out + r.err


def main():
    rig.need_root()
    directory = rig.build_workloads("deep", "deep-fp")
    to_main, whole, told = beyond(directory, "deep-fp")
    rig.check(to_main > 0.95 and whole > 0.8 and told,
              f"with frame pointers {100 * to_main:.1f}% go on to main, {100 * whole:.1f}% at the bottom with all levels")
    to_main, _, told = beyond(directory, "deep")
    rig.check(to_main == 0 and not told, "without they end with the copy")
    with Sink() as sink:
        d = rig.Daemon(CONFIG.format(size="auto", endpoint=sink.endpoint))
        d.wait_up()
        rig.wait_for("the control socket", lambda: os.path.exists(d.control))
        rig.check(ctl(d, "status")["stack_size"] == "16384", "it begins with 16 KiB")

        deep = [rig.start(["./deep", str(LEVELS)], cwd=directory) for _ in range(2)]
        rig.wait_for("copies that grow", lambda: ctl(d, "status")["stack_size"] == "65528", 40)
        first = window(d, sink)
        stacks, cut = counter(first, "user_stacks"), counter(first, "stacks_truncated")
        rig.check(cut > 250, f"{cut} of {stacks} stacks were cut before")
        burn(deep, 0.8)
        second = window(d, sink)
        stacks = counter(second, "user_stacks")
        whole = {k: counter(second, f"stacks_within_{k}k") for k in (8, 16, 32, 64)}
        # Where else than at the bottom the program is sampled, and how often, is up to the processor.
        rig.check(stacks > 100 and whole[64] > 0.5 * stacks and sum(whole.values()) >= 0.98 * stacks,
                  f"then {sum(whole.values())} of {stacks} reach their entry, within so many KiB: {whole}")
        rig.check(counter(second, "stack_size") == 65528, "and the profile says by which size")

        used = sum(rig.cpu_seconds(p.pid) for p in deep)
        for p in deep:
            rig.end(p)
        views = window(d, sink) + first + second
        taken = counter(views, "user_stacks")
        rig.check(abs(taken / 499 / used - 1) < 0.2 and counter(views, "samples_lost") == 0,
                  f"no sample is missing: {taken} of {used:.1f} s, none lost")

        shallow = [rig.start(["./deep", "1"], cwd=directory) for _ in range(2)]
        old = d.role("profiler")
        rig.kill(old, 9)
        rig.wait_for("another profiler", lambda: d.role("profiler") not in (0, old))
        rig.wait_for("copies that shrink", lambda: ctl(d, "status")["stack_size"] == "16384", 60)
        views = window(d, sink)
        rig.check(counter(views, "stacks_truncated") == 0, "and cut nothing")
        rig.check(d.log().count("stack copies of") == 4, "four changes in all")

        rig.write(os.path.basename(d.config), CONFIG.format(size="8K", endpoint=sink.endpoint))
        ctl(d, "reload")
        rig.wait_for("the size of the new config", lambda: ctl(d, "status")["stack_size"] == "8192")
        for p in shallow:
            rig.end(p)
        deep = rig.start(["./deep", str(LEVELS)], cwd=directory)
        burn([deep], 1.5)
        rig.check(ctl(d, "status")["stack_size"] == "8192", "a size that is given stays")
        rig.end(deep)
        rig.check(d.stop()[0] == 0, "stopped")


if __name__ == "__main__":
    rig.run(main)
