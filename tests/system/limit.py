# SPDX-License-Identifier: Apache-2.0
# Rooms: src/broker src/process src/profiler src/symbolizer src/render src/metrics src/config
"""[limits] cpu: with a limit that the daemon cannot keep it does without one thing after the other, and says so in the
log, by perfwalk ctl status, in the metrics and in the profiles; with one that it can keep it takes all of that back. The
CPU time of a load by its own clock is in the profiles at each rate."""
import json
import os
import signal
import subprocess
import time

import otlp
import rig
from sink import Sink

RATE = 99
LOADS = 3
STEPS = ["lines", "lines,inlines", "lines,inlines,names", "lines,inlines,names,stacks",
         "lines,inlines,names,stacks,rate/2", "lines,inlines,names,stacks,rate/4", "lines,inlines,names,stacks,rate/8"]
SAID = ["source lines", "inlined functions", "names of functions that are rarely seen", "stack copies of more than 8K",
        "half of the samples", "half of the samples that were left", "half of the samples that were left"]
CPU_SECONDS = 10.0  # 120 samples at the least rate: 9% by chance
TOLERANCE = 0.35


def config(port, limit):
    return f"""[profiler]
samples_per_second = {RATE}
reporter_interval = 1s
[filter]
include_comm = deep
[symbolizer]
lines = yes
inline = yes
[limits]
cpu = {limit}
[metrics]
listen = unix:{rig.path("metrics")}
[export:sink]
endpoint = http://127.0.0.1:{port}
"""


def ask(daemon):
    p = subprocess.run([rig.perfwalk(), "ctl", "-s", daemon.control, "status", "--json"], stdout=subprocess.PIPE, text=True,
                       check=False)
    return json.loads(p.stdout) if p.returncode == 0 else {}


def metrics(name):
    """The lines of one, as curl would show them."""
    p = subprocess.run(["python3", "-c", """import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b"GET /metrics HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n")
print(b"".join(iter(lambda: s.recv(65536), b"")).decode())""", rig.path("metrics")], stdout=subprocess.PIPE, text=True, check=True)
    return [line for line in p.stdout.splitlines() if line.startswith("perfwalk_" + name)]


def each_profile(sink, begin):
    for body in sink.payloads()[begin:]:
        view = otlp.view_of(body)
        for rp in view.message.resource_profiles:
            resource = otlp.attributes(rp.resource, view.strings)
            for sp in rp.scope_profiles:
                for profile in sp.profiles:
                    yield view, resource, profile


def seconds_between(sink, begin, end, pids):
    """CPU seconds of these processes by their samples, each with the period of its profile."""
    return sum(sum(begin <= t / 1e9 < end for t in s.timestamps_unix_nano) * profile.period / 1e9
               for _, resource, profile in each_profile(sink, 0) if resource.get("process.pid") in pids
               for s in profile.samples)


def tell(pids, what):
    for pid in pids:
        rig.kill(pid, what)


def check_sum(sink, pids, rate, what):
    """The load's clock for a while, against its samples of that while; returns when it began."""
    def clock():
        return time.time(), sum(rig.cpu_seconds(pid) for pid in pids)

    tell(pids, signal.SIGCONT)
    n = sink.count()
    begin, before = clock()
    rig.wait_for("the load gets its CPU time", lambda: clock()[1] - before >= CPU_SECONDS, 120)
    end, after = clock()
    rig.wait_for("the profiles of that time", lambda: any(
        p.time_unix_nano / 1e9 > end for _, _, p in each_profile(sink, max(n, sink.count() - 1))), 120)
    rates = {round(1e9 / p.period) for _, _, p in each_profile(sink, n) if p.time_unix_nano / 1e9 > begin}
    rig.check(rates == {rate}, f"{what}: all samples at {rate} Hz")
    found = seconds_between(sink, begin, end, pids)
    rig.check(abs(found / (after - before) - 1) <= TOLERANCE,
              f"{what}: {found:.2f} s of CPU time in profiles, {after - before:.2f} s by the clock of the load")
    tell(pids, signal.SIGSTOP)
    return begin


def reduced(sink, begin):
    """What the profiles that began after that time say of it, in the order in which it changes."""
    said = [""]
    for view, _, profile in each_profile(sink, 0):
        facts = view.table_attributes(profile.attribute_indices)
        if profile.time_unix_nano / 1e9 > begin and "perfwalk.samples" in facts and facts.get("perfwalk.reduced", "") != said[-1]:
            said.append(facts.get("perfwalk.reduced", ""))
    return said


def watch(daemon, pids, until, seconds):
    """Until perfwalk ctl status has that word. A fifth of a load is more than the daemon may take: other tests can
    have the rest of the CPUs."""
    def now():
        tell(pids[:1], signal.SIGCONT)
        time.sleep(0.1)
        tell(pids[:1], signal.SIGSTOP)
        time.sleep(0.4)
        return ask(daemon).get("reduced", "") == until
    rig.wait_for(f"reduced: {until}", now, seconds)


def down(daemon, sink, pids):
    n = len(STEPS)
    watch(daemon, pids, STEPS[-1], 150)
    log = [line for line in daemon.log().splitlines() if "quality goes down: without " in line]
    said = [line.split(": without ")[1].split(" (")[0] for line in log]
    rig.check(said == SAID, f"the log has {n} steps down: {said}")
    least = RATE // 8
    rig.wait_for(f"{least} Hz", lambda: ask(daemon).get("rate_hz") == least, 40)  # when the profiler has left
    rig.check(ask(daemon)["stack_size"] == 8192, f"{least} Hz, stack copies of 8192")
    rig.check("perfwalk_reduced{what=\"rate\"} 1" in metrics("reduced"), f"metrics: {metrics('reduced')}")
    rig.check(metrics("cpu_limit_ratio") == ["perfwalk_cpu_limit_ratio 0.000100"], "metrics: the limit")
    check_sum(sink, pids, least, "at the least rate")
    said = reduced(sink, 0)
    rig.check(said[-1] == STEPS[-1] and set(said[1:]) <= set(STEPS), f"the profiles say: {said}")


def up(daemon, sink, pids):
    rig.write("limit.conf", config(sink.port, "90%"))
    os.kill(daemon.pid, 1)
    rig.wait_for("the config is read", lambda: "config reloaded" in daemon.log(), 30)
    before = daemon.role("symbolizer")
    watch(daemon, pids, "no", 200)
    said = [line.split(": again with ")[1].split(" (")[0] for line in daemon.log().splitlines()
            if "quality goes up: again with " in line]
    rig.check(said == SAID[::-1], f"the log has as many steps up: {said}")
    rig.wait_for(f"{RATE} Hz", lambda: ask(daemon).get("rate_hz") == RATE, 40)
    rig.check(True, f"{RATE} Hz again")
    rig.check(daemon.role("symbolizer") == before, "the symbolizer stays")
    begin = check_sum(sink, pids, RATE, "at the full rate")
    rig.check(reduced(sink, begin) == [""], "the profiles say nothing of it any more")


def main():
    rig.need_root()
    directory = rig.build_workloads("deep")
    loads = [rig.start(["./deep", "8"], cwd=directory) for _ in range(LOADS)]
    pids = [p.pid for p in loads]
    tell(pids, signal.SIGSTOP)
    with Sink() as sink:
        daemon = rig.Daemon(config(sink.port, "0.01%"), "limit")
        daemon.wait_up(30)
        down(daemon, sink, pids)
        up(daemon, sink, pids)
        status, _ = daemon.stop()
        rig.check(status == 0, "the daemon leaves with 0")
        problems = sink.problems()
    rig.check(not problems, "the payloads hold every rule" + "".join("\n    " + p for p in problems[:20]))


rig.run(main)
