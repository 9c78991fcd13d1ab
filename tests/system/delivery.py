# SPDX-License-Identifier: Apache-2.0
# Rooms: any
"""From the daemon to the receiver when things are not well: answers that ask for a retry, answers
that forbid one, a receiver that is away for a while, SIGTERM in the middle of a window, and SIGHUP
with a good and with a bad file."""
import glob
import os
import re
import signal
import socket
import subprocess
import time

import inside
import otlp
import rig
from sink import Sink, windows


def config(port, interval="1s", rate=49, extra=""):
    return f"""
[profiler]
samples_per_second = {rate}
reporter_interval = {interval}
[export:sink]
endpoint = http://127.0.0.1:{port}
{extra}
"""


def covered(sink):
    """Longest hole between the windows that were accepted, in seconds."""
    holes, reach = [0.0], None
    for begin, end in windows(sink.views()):
        if reach is not None:
            holes.append((begin - reach) / 1e9)
        reach = max(end, reach or 0)
    return max(holes)


def retries():
    with Sink() as sink:
        sink.answers = [200, 503, (429, {"Retry-After": "1"}, b""), 502, 200]
        daemon = rig.Daemon(config(sink.port), "retries")
        daemon.wait_up()
        sink.wait_for(9, 40)
        # A payload that has gone to disk meanwhile may be left to the next start.
        rig.wait_for("nothing is on disk any more", lambda: not glob.glob(daemon.spool + "/*.otlp"), 20)
        daemon.stop()
        requests = sink.requests
        for status in (503, 429, 502):
            refused = next(r for r in requests if r.status == status)
            again = [r for r in requests if r is not refused and r.body == refused.body]
            rig.check(again, f"{status}: the same payload comes again")
        refused = next(r for r in requests if r.status == 429)
        again = next(r for r in requests if r.body == refused.body and r.time > refused.time)
        rig.check(again.time - refused.time >= 0.95,
                  f"429 with Retry-After: 1 is obeyed ({again.time - refused.time:.2f} s)")
        accepted = sink.payloads()
        rig.check(len(set(accepted)) == len(accepted), "no payload is delivered twice")
        rig.check(covered(sink) < 0.05, f"no window is missing (largest hole {covered(sink):.3f} s)")


def refusals():
    with Sink() as sink:
        sink.answers = [200, 400, 200, 413]
        daemon = rig.Daemon(config(sink.port), "refusals")
        daemon.wait_up()
        sink.wait_for(7, 40)
        daemon.stop()
        for status in (400, 413):
            refused = next(r for r in sink.requests if r.status == status)
            n = sum(r.body == refused.body for r in sink.requests)
            rig.check(n == 1, f"{status}: not sent again")
        rig.check("400" in daemon.log(), "the log says that the receiver answered 400")


def away():
    with Sink() as first:
        port = first.port
        daemon = rig.Daemon(config(port), "away")
        daemon.wait_up()
        first.wait_for(2)
    seen = set(windows(first.views()))  # when no more can come
    time.sleep(4)
    with Sink(port) as second:
        second.wait_for(5, 60)
        rig.wait_for("the windows of the time without a receiver",
                     lambda: covered_both(seen, second) < 0.05, 30)
        rig.check(True, "a receiver that was away for 4 s gets every window of that time")
        daemon.stop()


def covered_both(seen, sink):
    holes, reach = [0.0], None
    for begin, end in sorted(seen | set(windows(sink.views()))):
        if reach is not None:
            holes.append((begin - reach) / 1e9)
        reach = max(end, reach or 0)
    return max(holes)


def flush(chain):
    with Sink() as sink:
        daemon = rig.Daemon(config(sink.port, "60s"), "flush")
        daemon.wait_up()
        used = rig.cpu_seconds(chain.pid)
        rig.wait_for("a second of CPU time", lambda: rig.cpu_seconds(chain.pid) - used >= 1, 40)
        rig.check(sink.count() == 0, "nothing is sent within an interval of 60 s")
        status, seconds = daemon.stop()
        rig.check(status == 0 and seconds < 5, f"SIGTERM: leaves with {status} after {seconds:.2f} s")
        n = sum(x[3] for v in sink.views() for x in v.samples() if x[0].get("process.pid") == chain.pid)
        rig.check(n > 30, f"the window that was open has been sent: {n} samples of the workload")
        rig.check(not sink.problems(rate=49), "it holds every rule")
    daemon = rig.Daemon(config(rig.free_port(), "2s"), "nobody")
    daemon.wait_up()
    time.sleep(3)
    status, seconds = daemon.stop()
    rig.check(seconds < 5, f"SIGTERM without any receiver: leaves with {status} after {seconds:.2f} s")


def reload():
    with Sink() as one, Sink() as two:
        daemon = rig.Daemon(config(one.port), "reload")
        roles = daemon.wait_up()
        one.wait_for(2)
        rig.write("reload.conf", "[profiler]\nreporter_interval = never\n")
        rig.kill(daemon.pid, signal.SIGHUP)
        rig.wait_for("the log names the bad line", lambda: "reload.conf:2:" in daemon.log(), 5)
        n = one.count()
        one.wait_for(n + 2)
        rig.check(daemon.alive() and daemon.role("profiler") == roles["profiler"],
                  "SIGHUP with a bad file: everything goes on as before")
        rig.write("reload.conf", config(two.port, rate=97))
        rig.kill(daemon.pid, signal.SIGHUP)
        two.wait_for(4)
        rig.check(daemon.alive(), "SIGHUP with another file: the new receiver gets the profiles")
        n = one.count()
        two.wait_for(two.count() + 2)
        rig.check(one.count() <= n, "and the old one no more")
        rates = {p.period for v in two.views()[-2:] for rp in v.message.resource_profiles
                 for sp in rp.scope_profiles for p in sp.profiles}
        rig.check(all(abs(r - 1e9 / 97) < 2 for r in rates), f"at the new rate: periods {rates}")
        daemon.stop()


def ctl(daemon, *words):
    """The exit status, and the lines of the answer as a dictionary; what it says on errors is in "error"."""
    p = subprocess.run([rig.perfwalk(), "ctl", "-s", daemon.control, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       check=False, text=True, timeout=120)
    return p.returncode, {"error": p.stderr, **dict(line.split(" ", 1) for line in p.stdout.splitlines() if " " in line)}


def reload_now(daemon):
    """Once the reload before is done; the exit status."""
    return rig.wait_for("the reload before", lambda: (lambda a: None if "previous request" in a[1]["error"] else a)(
        ctl(daemon, "reload")))[0]


def reloads(n):
    """Good and bad files in turns, while all is busy: each is taken or refused, and nothing is lost on the way."""
    with Sink() as sink:
        # Small samples: rings that hold seconds of them, on a busy host too.
        # And no readers of interpreters: their number follows what else runs.
        more = "[profiler]\nstack_size = 1K\ninterpreters = no\n"
        good = [config(sink.port, rate=97, extra=more),
                config(sink.port, rate=99, extra=more + "[limits]\nmax_processes = 10000\n")]
        bad = ["[profiler]\nsamples_per_second = often\n", "[export:sink]\nendpoint = nowhere\n"]
        daemon = rig.Daemon(good[0], "reloads")

        def cost():
            daemon.wait_up()
            sink.wait_for(sink.count() + 2)
            return rig.n_descriptors(daemon.pid), rig.anon_kib(daemon.pid)
        cost()
        found = []
        for i in range(n):
            if i == 6:  # each kind was there
                found.append(cost())
            rig.write("reloads.conf", (good[i // 2 % 2], bad[i // 2 % 2])[i % 2])
            status = reload_now(daemon)
            if status != i % 2:
                rig.fail(f"reload {i + 1}: exit status {status}: {daemon.log()[-500:]}")
        rig.check(daemon.alive(), f"{n} reloads: {(n + 1) // 2} taken, {n // 2} refused")
        found.append(cost())
        rig.check(found[1][0] <= found[0][0] + 4 and (rig.is_sanitized() or found[1][1] < found[0][1] + 1024),
                  f"broker: descriptors and KiB of its own memory after 6 and after all: {found}")
        ctl(daemon, "pause")
        ctl(daemon, "flush")
        said = []

        def settled():
            told = ctl(daemon, "status", "--all")[1]
            # A payload whose answer has not come before the exporter left comes again.
            came = sum(x[3] for body in set(sink.payloads()) for x in otlp.view_of(body).samples())
            said.append((told, came))
            return came + int(told["samples_dropped"]) >= int(told["samples"])
        try:
            rig.wait_for("all samples", settled)
        finally:
            told, came = said[-1]
            rig.say(f"{told['samples']} samples were taken, {came} came, {told['samples_dropped']} dropped; {told['payloads']} "
                    f"payloads, {sink.count()} at the receiver")
        lost = {k: int(told[k]) for k in ("samples_lost_with_process", "export.sink.samples_dropped", "samples_lost")}
        rig.check(came + inside.outside(told) == int(told["samples"]) and sum(lost.values()) == lost["samples_lost"],
                  f"nothing was lost or dropped but what a busy host leaves in full rings: {lost}")
        daemon.stop()


def unanswered():
    """A receiver that takes connections and never answers, beside one that does: at the end the log says of the first
    how many samples it did not get, however often it has said before that some were dropped. That is what the other
    one got."""
    with Sink() as sink, socket.create_server(("127.0.0.1", 0)) as silent:
        daemon = rig.Daemon(config(sink.port, rate=97, extra=f"""
[export:silent]
endpoint = http://127.0.0.1:{silent.getsockname()[1]}
max_elapsed_time = 1s
[spool]
enabled = no
"""), "unanswered")
        daemon.wait_up()
        rig.wait_for("a line of dropped payloads", lambda: "could not be delivered" in daemon.log())
        sink.wait_for(sink.count() + 3)
        # What a busy host does not send in 3.5 s is dropped at the end for the other one, too.
        for command in ("pause", "flush"):
            ctl(daemon, command)
        rig.wait_for("the other one has all", lambda: (lambda told: told["export.sink.payloads_sent"] == told["payloads"])(daemon.status()))
        daemon.stop()
        bodies = set(sink.payloads())  # one whose answer came too late was sent again
        n, payloads = sum(x[3] for body in bodies for x in otlp.view_of(body).samples()), len(bodies)
        told = re.search(r"export:silent: (\d+) payload\(s\) with (\d+) samples were dropped", daemon.log())
        rig.check(told and (int(told[1]), int(told[2])) == (payloads, n),
                  f"{payloads} payloads with {n} samples, and of the silent one: {told[0] if told else daemon.log()}")
        rig.check("export:sink" not in daemon.log().partition("Terminated")[2], "and nothing of the other")


def stands_still():
    """An exporter that stands still is killed at the end: the log says what it had."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        daemon = rig.Daemon(config(silent.getsockname()[1], rate=97) + "[spool]\nenabled = no\n", "still")
        daemon.wait_up()
        rig.wait_for("some payloads", lambda: int(daemon.status().get("export.sink.queue_payloads", 0)) >= 3)
        for command in ("pause", "flush"):
            subprocess.run([rig.perfwalk(), "ctl", "-s", daemon.control, command], check=True, stdout=subprocess.DEVNULL)
        status = daemon.status()
        n = int(status["samples"]) - int(status["samples_dropped"])
        rig.wait_for("the exporter has the last one", lambda: int(daemon.status()["export.sink.queue_payloads"])
                     == int(daemon.status()["payloads"]))
        os.kill(daemon.role("exporter"), signal.SIGSTOP)
        daemon.process.send_signal(signal.SIGTERM)
        daemon.process.wait(rig.PATIENCE)
        told = re.search(r"(\d+) samples are lost: the processes", daemon.log())
        rig.check(told and int(told[1]) == n, f"{n} samples, and the log: {told[0] if told else daemon.log()}")


def main():
    rig.need_root()
    directory = rig.build_workloads("chain")
    chain = rig.start(["./chain", "30"], cwd=directory)
    retries()
    refusals()
    away()
    unanswered()
    stands_still()
    flush(chain)
    reload()
    reloads(int(os.environ.get("RELOADS", "12")))


rig.run(main)
