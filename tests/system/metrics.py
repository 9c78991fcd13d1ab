# SPDX-License-Identifier: Apache-2.0
# Rooms: src/metrics src/http src/broker src/profile
"""The endpoint of [metrics]: what it says, read by parsers of others and held against what a receiver
got, /proc and `perfwalk ctl status`; health in good days and bad; profiles for go tool pprof, counted
against the CPU time of a program; and clients that ask nonsense, are many, or do not read."""
import gzip
import http.client
import math
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import inside
import otlp
import rig
from pprof_file import fields
from sink import Sink

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's, when another Python comes first
try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    text_string_to_metric_families = None

RATE = 99
CONFIG = """
[profiler]
samples_per_second = {rate}
reporter_interval = 2s
[metrics]
listen = {listen}
[export:sink]
endpoint = {endpoint}
"""
# Each family there must be, and one of its labels.
FAMILIES = {
    "event_samples": "event", "event_samples_lost": "event", "event_throttles": "event",
    "event_stood_still_seconds": "event",
    "samples": None, "samples_lost": "reason", "samples_filtered": None, "user_stacks": None,
    "stacks_truncated": None, "unwind_errors": "cause", "windows": None, "payloads": None, "payload_bytes": None,
    "export_payloads_sent": "destination", "export_payloads_dropped": "reason", "export_retries": "destination",
    "export_queue_payloads": "destination", "export_queue_bytes": "destination", "export_spool_bytes": "destination",
    "export_spool_files": "destination", "export_request_duration_seconds": "destination",
    "drain_gap_max_seconds": None, "drain_cpu_max_seconds": None,
    "store_samples_lost": None, "process_cpu_seconds": "role", "process_resident_memory_bytes": "role",
}


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def get(where, path, timeout=120, **headers):
    """(status, headers, body) of where: a port, or the path of a socket."""
    c = http.client.HTTPConnection("127.0.0.1", where, timeout=timeout) if isinstance(where, int) else \
        UnixConnection(where)
    c.request("GET", path, headers=headers)
    r = c.getresponse()
    body = r.read()
    c.close()
    return r.status, r.headers, body


def values(where):
    """{(name, labels): value} of /metrics, without the prefix, as the foreign parser has it."""
    status, _, body = get(where, "/metrics")
    rig.check(status == 200, f"/metrics: {status}, {len(body)} bytes") if status != 200 else None
    found = {}
    for family in text_string_to_metric_families(body.decode()):
        for s in family.samples:
            found[s.name.removeprefix("perfwalk_"), *sorted(s.labels.items())] = s.value
    return found


def ctl(daemon, command):
    p = subprocess.run([rig.perfwalk(), "ctl", "-s", daemon.control, *rig.ctl_words(command)], capture_output=True, text=True,
                       timeout=120, check=False)
    if p.returncode != 0:
        rig.fail(f"ctl {command}: {p.stderr}")
    return dict(line.split(" ", 1) for line in p.stdout.splitlines())


def healthy(where, path="/healthz"):
    return rig.wait_for(f"{path} says ok", lambda: get(where, path)[0] == 200, 20)


# ---- What it says ----


def promtool(text):
    p = subprocess.run(["sh", os.path.join(rig.HERE, "fetch-promtool.sh")], capture_output=True, text=True, check=False)
    if p.returncode == 77:
        rig.skip(p.stderr.strip())
    rig.check(p.returncode == 0, f"promtool is here {p.stderr[-500:] if p.returncode else ''}")
    p = subprocess.run([p.stdout.strip(), "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    rig.check(p.returncode == 0 and not p.stdout and not p.stderr, f"promtool has nothing to say {p.stderr}")


def formats(port):
    text = get(port, "/metrics")[2].decode()
    families = {f.name.removeprefix("perfwalk_"): f for f in text_string_to_metric_families(text)}
    for name, label in FAMILIES.items():
        f = families.get(name)
        if not f or not f.documentation or f.type not in ("counter", "gauge", "histogram") or not f.samples or \
                (label and any(label not in s.labels for s in f.samples)):
            rig.fail(f"/metrics has no good {name}")
    rig.check(all(f.documentation.endswith(".") for f in families.values()),
              f"python's parser reads {len(families)} families, each with HELP and TYPE")
    rig.apart(promtool, text)
    status, headers, body = get(port, "/")
    rig.check(status == 200 and b"/debug/pprof/profile" in body and headers["Connection"] == "close",
              "/ lists what there is")


def samples_in(sink):
    return sum(x[3] for body in sink.payloads() for x in otlp.view_of(body).samples())


def agreement(daemon, port, sink):
    """Sampling stands still, and everything under way has come: all counts must be the same."""
    ctl(daemon, "pause")
    ctl(daemon, "flush")
    rig.wait_for("the last payload", lambda: values(port)["export_payloads_sent_total", ("destination", "sink")] ==
                 values(port)["payloads_total",] == sink.count())

    def both():
        """Windows close even so: what both say between two equal answers."""
        before, v, after = ctl(daemon, "status"), values(port), ctl(daemon, "status")
        return all(before[x] == after[x] for x in ("windows", "payloads", "samples")) and (v, after)
    v, said = rig.wait_for("a moment between two windows", both)
    dest = ("destination", "sink")
    sent, body = samples_in(sink), sum(len(r.raw) for r in sink.requests)
    lost = v["samples_lost_total", ("reason", "ring_full")]
    rig.check(v["samples_total",] == sent + inside.outside(said) > 0 and lost == int(said["samples_lost"]),
              f"{sent} samples: counted ({v['samples_total',]:.0f}, {lost:.0f} lost), and at the receiver")
    rig.check(v["export_samples_sent_total", dest] == sent and v["export_sent_bytes_total", dest] == body,
              f"{body:.0f} bytes were sent, and came")
    rig.check(v["payload_bytes_total",] == sum(len(b) for b in sink.payloads()), "and so many before compression")
    n = v["export_request_duration_seconds_count", dest]
    buckets = [x for k, x in v.items() if k[0] == "export_request_duration_seconds_bucket"]
    rig.check(n == sink.count() and buckets == sorted(buckets) and buckets[-1] == n and
              0 < v["export_request_duration_seconds_sum", dest] < 60, f"{n:.0f} requests in the histogram")
    pairs = {"samples": "samples_total", "windows": "windows_total", "user_stacks": "user_stacks_total",
             "stacks_truncated": "stacks_truncated_total", "frames_unnamed": "frames_unnamed_total",
             "frames_put_off": "frames_put_off_total"}
    event = said["event"]
    pairs_of_event = {"samples": "event_samples_total", "samples_lost": "event_samples_lost_total",
                      "throttled": "event_throttles_total"}
    rig.check(all(int(said[f"event.{event}.{a}"]) == v[b, ("event", event)] == int(said[a])
                  for a, b in pairs_of_event.items()), f"all of them are of {event}")
    rig.check(all(int(said[a]) == v[b,] for a, b in pairs.items()) and
              int(said["export.sink.payloads_sent"]) == n and int(said["export.sink.samples_sent"]) == sent,
              "ctl status says the same")
    for role, pid in {**daemon.roles(), "broker": daemon.pid, "metrics": daemon.role("metrics")}.items():
        def usage(role=role, pid=pid):
            """It may grow between the one look and the other."""
            now = values(port)
            rss, cpu = (now[f"process_{x}", ("role", role)] for x in ("resident_memory_bytes", "cpu_seconds_total"))
            return abs(rss / 1024 - rig.rss_kib(pid)) < rss / 4096 and 0 <= cpu < 60 and f"{rss / 1024:.0f} KiB, {cpu} s"
        rig.say(f"ok: {role}: " + rig.wait_for(f"the {role}'s memory in /metrics to be that in /proc", usage))
    status, _, text = get(port, "/readyz")
    rig.check(status == 503 and b"paused" in text, f"/readyz while paused: {status} {text.decode().strip()}")
    rig.check(get(port, "/healthz")[0] == 200, "/healthz then: 200")
    ctl(daemon, "resume")
    healthy(port, "/readyz")
    return v


# ---- Profiles ----


class CpuTime:
    """CPU time of a process over the time of day."""

    def __init__(self, pid):
        self.points, self.ends = [], False
        self.thread = threading.Thread(target=self.read, args=(pid,), daemon=True)
        self.thread.start()

    def read(self, pid):
        while not self.ends:
            try:
                with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
                    self.points.append((time.time(), int(f.read().split()[0]) / 1e9))
            except OSError:
                return
            time.sleep(0.02)

    def at(self, t):
        before, after = (next(p for p in points if ok(p[0])) for points, ok in
                         ((reversed(self.points), lambda x: x <= t), (self.points, lambda x: x >= t)))
        part = (t - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0
        return before[1] + part * (after[1] - before[1])

    def between(self, begin, end):
        return self.at(end) - self.at(begin)


def raw_profile(path):
    """(begin, seconds, {pid: samples}) as go tool pprof reads it."""
    text = subprocess.run(["go", "tool", "pprof", "-raw", path], capture_output=True, text=True, check=True,
                          env={**os.environ, "TZ": "UTC"}).stdout
    begin = subprocess.run(["date", "-u", "-d", re.search(r"^Time: (.*) UTC$", text, re.M)[1], "+%s.%N"],
                           capture_output=True, text=True, check=True).stdout
    seconds = re.search(r"^Duration: ([\d.]+)s?", text, re.M)[1]
    found, n = {}, 0
    for line in text.partition("\nSamples:\n")[2].partition("\nLocations")[0].splitlines():
        m = re.match(r"\s+(\d+)\s+\d+: ", line)
        n = int(m[1]) if m else n
        m = re.search(r"\bpid:\[(\d+)\]", line)
        if m:
            found[int(m[1])] = found.get(int(m[1]), 0) + n
    return float(begin), float(seconds), found


def pprof_addresses(data):
    """Of locations, and where mappings begin and end."""
    wanted = {4: (3,), 3: (2, 3)}
    return [v for number, message in fields(data) if number in wanted
            for n, v in fields(message) if n in wanted[number]]


def judge(path, seconds, cpu, pid):
    begin, duration, found = raw_profile(path)
    # Until the thread that reads the CPU time has seen the end.
    rig.wait_for("the end", lambda: cpu.points[-1][0] > begin + duration)
    expected, got = cpu.between(begin, begin + duration) * RATE, found.get(pid, 0)
    # Where others want the CPU, too, each sample falls on the program by chance.
    rig.check(duration == seconds and abs(got - expected) <= 3 + 4 * math.sqrt(expected) and got > 0,
              f"{seconds} s: {got} samples of the program, its CPU time makes {expected:.1f}; {sum(found.values())} in all")


def ask_and_wait(port):
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(b"GET /debug/pprof/profile?seconds=600 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return s


def profiles(port, pid):
    if not shutil.which("go"):
        os.environ["PATH"] += ":/usr/local/go/bin"
    has_go = shutil.which("go") is not None
    cpu, results = CpuTime(pid), {}

    def pull(name, seconds):
        """Again where one of those before still has its place."""
        results[name] = rig.wait_for(f"a place for {name}", lambda: (lambda r: r[0] != 503 and r)(
            get(port, f"/debug/pprof/profile?seconds={seconds}")))

    away = [ask_and_wait(port) for _ in range(2)]
    status, headers, body = rig.wait_for("a third to be refused", lambda: (lambda r: r[0] == 503 and r)(
        get(port, "/debug/pprof/profile?seconds=1")), 20)
    rig.check(int(headers["Retry-After"]) >= 1 and b"retry in" in body,
              f"a third at a time: {status}, {body.decode().strip()}")
    for s in away:
        s.close()
    rig.wait_for("a place that a client has left", lambda: get(port, "/debug/pprof/profile?seconds=1")[0] == 200)
    begin = time.monotonic()
    threads = [threading.Thread(target=pull, args=a, daemon=True) for a in (("long", 5), ("short", 3))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    rig.check(results["long"][0] == 200 and results["short"][0] == 200 and time.monotonic() - begin >= 5,
              f"two profiles at once, after {time.monotonic() - begin:.1f} s")
    for name, seconds in (("long", 5), ("short", 3)):
        body = results[name][2]
        addresses = pprof_addresses(gzip.decompress(body))
        rig.check(addresses and max(addresses) < 1 << 63,
                  f"{name}: {len(addresses)} addresses, none of them the kernel's own")
        rig.check(gzip.decompress(body) and results[name][1]["Content-Type"] == "application/octet-stream",
                  f"{name}: {len(body)} bytes of gzip")
        if has_go:
            with open(rig.path(f"{name}.pb.gz"), "wb") as f:
                f.write(body)
            judge(rig.path(f"{name}.pb.gz"), seconds, cpu, pid)
    if has_go:
        url = f"http://127.0.0.1:{port}/debug/pprof/profile?seconds=3"
        p = subprocess.run(["go", "tool", "pprof", "-proto", "-output", rig.path("go.pb.gz"), url], capture_output=True,
                           text=True, check=False, env={**os.environ, "PPROF_TMPDIR": rig.workdir()})
        rig.check(p.returncode == 0, f"go tool pprof {url}: {p.returncode} {p.stderr.strip()}")
        judge(rig.path("go.pb.gz"), 3, cpu, pid)
    else:
        rig.leave_out("go tool pprof: there is no go")
    cpu.ends = True
    for bad in ("0", "601", "x", "-1", "1.5", "", "99999999999999999999"):
        status, _, body = get(port, f"/debug/pprof/profile?seconds={bad}")
        if status != 400 or b"whole number, 1 .. 600" not in body:
            rig.fail(f"seconds={bad}: {status} {body}")
    rig.say("ok: other seconds are refused with 400")


def flushes():
    """Whoever reaches the port may ask for profiles one after the other: that closes a window in 5 seconds, and no more."""
    port, statuses = rig.free_port(), []
    with Sink() as sink:
        daemon = rig.Daemon(f"[profiler]\nreporter_interval = 60s\nsamples_per_second = {RATE}\n"
                            f"[metrics]\nlisten = 127.0.0.1:{port}\n[export:sink]\nendpoint = {sink.endpoint}\n", "flushes")
        daemon.wait_up()
        healthy(port, "/readyz")
        begin = time.monotonic()
        before = values(port)[("windows_total",)]

        def pull():
            while time.monotonic() < begin + 15:
                statuses.append(get(port, "/debug/pprof/profile?seconds=1")[0])
                if statuses[-1] != 200:
                    time.sleep(0.1)
        threads = [threading.Thread(target=pull, daemon=True) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        closed = values(port)[("windows_total",)] - before
        seconds = time.monotonic() - begin
        rig.check(statuses.count(200) >= 3 and closed <= seconds / 5 + 1 + seconds / 60 + 1,
                  f"{statuses.count(200)} profiles of a second within {seconds:.1f} s: {closed:.0f} windows were closed for them")
        daemon.stop()


# ---- Clients ----


def send_raw(port, data, half=False):
    with socket.create_connection(("127.0.0.1", port), timeout=120) as s:
        s.sendall(data)
        if half:
            return b""
        said = b""
        try:
            while part := s.recv(65536):
                said += part
        except ConnectionResetError:
            pass
        return said.split(b"\r\n")[0]


def bad_clients(daemon, port):
    pid = daemon.role("metrics")
    head = b" HTTP/1.1\r\nHost: localhost\r\n"
    for what, data, wanted in (
            ("POST", b"POST /metrics" + head + b"Content-Length: 5\r\n\r\nhello", b" 405 "),
            ("a body without end", b"PUT /metrics" + head + b"Content-Length: 99999999999\r\n\r\nhello", b" 405 "),
            ("another path", b"GET /metrics/x" + head + b"\r\n", b" 404 "),
            ("a path that climbs", b"GET /../../etc/passwd" + head + b"\r\n", b" 404 "),
            ("a page of another site", b"GET /metrics" + head + b"Sec-Fetch-Site: cross-site\r\n\r\n", b" 403 "),
            ("a page of another origin", b"GET /metrics" + head + b"Origin: https://evil.example\r\n\r\n", b" 403 "),
            ("somebody at a browser", b"GET /healthz" + head + b"Sec-Fetch-Site: none\r\n\r\n", b" 200 "),
            ("a page of its own", b"GET /healthz" + head + b"Origin: http://localhost\r\n\r\n", b" 200 "),
            ("another host", b"GET /metrics HTTP/1.1\r\nHost: rebound.example:9464\r\n\r\n", b" 403 "),
            ("an address as host", b"GET /healthz HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", b" 200 "),
            ("headers of 60 KiB", b"GET /metrics" + head + b"X: " + b"a" * 60000 + b"\r\n\r\n", b" 431 "),
            ("garbage", bytes(range(256)) * 8 + b"\r\n\r\n", b"")):
        said = send_raw(port, data)
        if wanted not in said and not (what.startswith("headers") and not said):
            rig.fail(f"{what}: {said}")
        rig.say(f"ok: {what}: {said.decode(errors='replace')[:60]!r}")
    for i in range(50):
        send_raw(port, b"GET /metr" if i % 2 else b"GET /metrics" + head + b"\r\n", half=True)
    rig.check(daemon.role("metrics") == pid and get(port, "/healthz")[0] == 200,
              "50 that hang up: the same process answers")
    # 40 that say nothing, or one byte a second, have a place each; after some seconds they have none.
    idle = [socket.socket() for _ in range(40)]
    for s in idle:
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", port))
    begin = time.monotonic()
    done = threading.Event()

    def trickle():
        while not done.wait(0.5):
            for s in idle[:20]:
                try:
                    s.send(b"G")
                except OSError:
                    pass

    thread = threading.Thread(target=trickle, daemon=True)
    thread.start()
    status = get(port, "/metrics", timeout=120)[0]
    rig.check(status == 200, f"40 that say nothing: a scrape is answered after {time.monotonic() - begin:.1f} s")
    # One that asks and never reads holds up nobody.
    slow = [socket.socket() for _ in range(8)]
    for s in slow:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        s.connect(("127.0.0.1", port))
        s.sendall(b"GET /metrics" + head + b"\r\n")
    begin = time.monotonic()
    status = get(port, "/metrics", timeout=120)[0]
    done.set()
    rig.check(status == 200 and rig.anon_kib(pid) < 20 << 10 and daemon.role("metrics") == pid,
              f"8 that do not read: answered after {time.monotonic() - begin:.1f} s, {rig.anon_kib(pid)} KiB")
    for s in idle + slow:
        s.close()


# ---- Bad days ----


def monotonic(before, after, text):
    """No counter but those of single processes goes back."""
    back = [k for k, v in before.items() if k[0].endswith("_total") and not k[0].startswith("process_cpu") and
            after.get(k, 0) < v]
    rig.check(not back, f"{text}: no counter goes back {back}")


def missed(daemon, port):
    """Kills the exporter if it runs; what /healthz says when it misses it."""
    if pid := daemon.role("exporter"):
        rig.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
    status, _, text = get(port, "/healthz")
    return b"the exporter is not running" in text and (status, text)


def bad_days(daemon, port, sink):
    before = values(port)
    for role in ("exporter", "profiler", "symbolizer", "metrics"):
        old = daemon.role(role)
        rig.kill(old, signal.SIGKILL)
        rig.wait_for(f"another {role}", lambda: daemon.role(role) not in (0, old), 10)  # pylint: disable=W0640
        # The metrics process is gone for a moment; its socket is not.
        healthy(port, "/readyz")
        after = values(port)
        rig.check(after["process_starts_total", ("role", role)] == 2, f"{role} was started twice")
        monotonic(before, after, f"kill -9 of the {role}")
        before = after
    gone = rig.wait_for("/healthz to miss an exporter that dies again and again", lambda: missed(daemon, port), 20)
    rig.check(gone[0] == 503 and get(port, "/readyz")[0] == 503, f"and /readyz: {gone[1].decode().strip()}")
    healthy(port, "/readyz")
    rig.kill(daemon.role("profiler"), signal.SIGSTOP)
    try:
        status, text = rig.wait_for("/healthz to see it", lambda: (lambda r: r[0] == 503 and (r[0], r[2]))(
            get(port, "/healthz")), 20)
        rig.check(b"rings were last read" in text, f"a profiler that stands still: {status} {text.decode().strip()}")
    finally:
        rig.kill(daemon.role("profiler"), signal.SIGCONT)
    healthy(port)
    sink.__exit__()
    text = rig.wait_for("/readyz to name the destination", lambda: (
        lambda r: b"export:sink is unreachable" in r[2] and (r[0], r[2]))(get(port, "/readyz")), 20)
    rig.check(text[0] == 200, f"a destination that is away: {text[0]} {text[1].decode().strip()}")
    v = values(port)
    dest = ("destination", "sink")
    rig.check(v["export_down", dest] == 1 and v["export_failures_total", dest] > 0 and
              v["export_retries_total", dest] > 0, "and /metrics counts failures and retries")
    rig.wait_for("the queue to show", lambda: values(port)["export_queue_payloads", dest] > 0, 10)


def places(daemon, port):
    """A socket instead of a port, by a reload; a place that is taken; none."""
    path = rig.path("run", "metrics")
    with open(daemon.config, encoding="utf-8") as f:
        config = f.read()

    def listen(where):
        with open(daemon.config, "w", encoding="utf-8") as f:
            f.write(re.sub(r"listen = .*", f"listen = {where}", config))
        ctl(daemon, "reload")

    listen(f"unix:{path}")
    healthy(path) if os.path.exists(path) else rig.fail("no socket after the reload")
    mode = os.stat(path)
    rig.check(stat.S_IMODE(mode.st_mode) in (0o600, 0o660) and stat.S_ISSOCK(mode.st_mode),
              f"a socket, {stat.S_IMODE(mode.st_mode):o}: /healthz is answered")
    rig.check(values(path)["samples_total",] > 0, "and so is /metrics")
    try:
        get(port, "/healthz", timeout=120)
        rig.fail("the port is still served")
    except ConnectionRefusedError:
        rig.say("ok: the port is closed")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen(f"127.0.0.1:{taken.getsockname()[1]}")
        rig.check("Address already in use" in daemon.log() and not os.path.exists(path) and daemon.alive(),
                  "a port that is taken: said, and the rest goes on")
    listen("")
    rig.wait_for("the metrics process to leave", lambda: not daemon.role("metrics"), 10)
    rig.say("ok: nothing is served any more")
    listen(f"127.0.0.1:{port}")
    healthy(port)


def without_library(library, sink):
    """Where libmicrohttpd is missing, the log names it and its package once, and all else goes on."""
    port = rig.free_port()
    hidden = rig.with_file(rig.write("none.so", ""), os.path.realpath(library))
    daemon = rig.Daemon(CONFIG.format(rate=RATE, listen=f"127.0.0.1:{port}", endpoint=sink.endpoint), "bare", argv_prefix=hidden)
    daemon.wait_up()
    rig.wait_for("the log to name libmicrohttpd", lambda: "install the libmicrohttpd package" in daemon.log(), 10)
    sink.wait_for(sink.count() + 2)
    said = [l for l in daemon.log().splitlines() if "libmicrohttpd" in l]
    rig.check(len(said) == 1 and f"127.0.0.1:{port}" in said[0] and not daemon.role("metrics")
              and all(daemon.roles().values()), f"without it: {said}")
    status, _ = daemon.stop()
    rig.check(status == 0, f"and the daemon leaves with {status}")


def main():
    rig.need_root()
    if not text_string_to_metric_families:
        rig.skip("python3-prometheus-client is not installed")
    chain = rig.start(["./chain", "50"], cwd=rig.build_workloads("chain"), stdout=subprocess.DEVNULL)
    port = rig.free_port()
    sink = Sink()
    daemon = rig.Daemon(CONFIG.format(rate=RATE, listen=f"127.0.0.1:{port}", endpoint=sink.endpoint), "metrics")
    daemon.wait_up()
    rig.wait_for("the metrics process", lambda: daemon.role("metrics"))
    healthy(port)
    healthy(port, "/readyz")
    libraries = {name: open(f"/proc/{pid}/maps", encoding="ascii").read() for name, pid in
                 {**daemon.roles(), "broker": daemon.pid, "metrics": daemon.role("metrics")}.items()}
    # The profiler maps every file that is sampled, but for reading.
    rig.check([n for n, maps in libraries.items() if re.search("r-xp .*libmicrohttpd", maps)] == ["metrics"],
              "libmicrohttpd is in the metrics process alone")
    rig.check(rig.status_of(daemon.role("metrics"))["Uid"].split()[0] != "0", "which is not root")
    formats(port)
    profiles(port, chain.pid)
    agreement(daemon, port, sink)
    bad_clients(daemon, port)
    bad_days(daemon, port, sink)
    places(daemon, port)
    flushes()
    with Sink() as other:
        rig.apart(without_library, re.search(r"\S*/libmicrohttpd\S*", libraries["metrics"])[0], other)
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.sendall(b"GET /debug/pprof/profile?seconds=60 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(0.3)
        status, seconds = daemon.stop()
    rig.check(status == 0 and seconds < 6, f"leaves with {status} after {time.monotonic() - begin:.1f} s, "
                                           "with a profile half taken")


rig.run(main)
