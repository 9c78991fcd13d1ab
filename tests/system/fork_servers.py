# SPDX-License-Identifier: Apache-2.0
# Rooms: runtimes src/reader src/profiler src/opener src/broker src/host
"""Servers that fork their workers, from before the first fork on: php-fpm and gunicorn under requests, and a Ruby
program. The functions in each worker's samples are those that this very worker told, whose chain is its own."""
import collections
import glob
import http.client
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading

import otlp
import rig

GUNICORN_VERSION = "23.0.0"
WORKERS = 3
MARKERS = ("[interpreter not read in time]", "[runtime frames not proven]")


# ---- Requests ----

def fcgi_record(kind, content=b""):
    return struct.pack("!BBHHBx", 1, kind, 1, len(content), 0) + content


def ask_fcgi(path, script):
    """A request without a body to a FastCGI responder; the reply's body."""
    parameters = {b"REQUEST_METHOD": b"GET", b"SCRIPT_FILENAME": script.encode()}
    text = b"".join(bytes([len(k), len(v)]) + k + v for k, v in parameters.items())
    begin, params, end, stdin, stdout = 1, 4, 3, 5, 6
    with socket.socket(socket.AF_UNIX) as s, s.makefile("rb") as reply:
        s.connect(path)
        s.sendall(fcgi_record(begin, struct.pack("!HB5x", 1, 0)) + fcgi_record(params, text) + fcgi_record(params)
                  + fcgi_record(stdin))
        out = b""
        while True:
            _, kind, _, n, padding = struct.unpack("!BBHHBx", reply.read(8))
            content = reply.read(n + padding)[:n]
            if kind == end:
                return out.partition(b"\r\n\r\n")[2].decode()
            out += content if kind == stdout else b""


def ask_http(port):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=rig.PATIENCE)
    c.request("GET", "/")
    return c.getresponse().read().decode()


def told(lines):
    """{pid: its chain}"""
    words = [line.split() for line in lines if line.strip()]
    return {int(w[0]): w[1:] for w in words}


def ask_all(ask, *where):
    """Requests, as many at once as there are workers, until each has answered three times."""
    lines = []

    def go():
        lines.append(ask(*where))
    for _ in range(30):
        threads = [threading.Thread(target=go) for _ in range(WORKERS)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        n = collections.Counter(line.split()[0] for line in lines)
        if len(n) == WORKERS and min(n.values()) >= 3:
            return told(lines)
    rig.fail(f"not every worker answers: {n}")


# ---- Samples ----

def samples_of(path):
    """{pid: [(frames, outermost first; samples)]}"""
    found = collections.defaultdict(list)
    with open(path, "rb") as f:
        view = otlp.View(otlp.decode(f.read()))
    for resource, _, frames, n in view.samples():
        found[int(resource.get("process.pid", 0))].append((frames, n))
    return found


def verdict(names, chain):
    """What a sample says of its worker's chain. What else it calls stands behind fork_spin."""
    ours = [n for n in names if n.startswith("fork_") and n != "fork_cpu"]
    if any(m in names for m in MARKERS):
        return "markers"
    if not ours:
        return "none"
    return "right" if ours == chain else "begun" if ours == chain[:len(ours)] else "wrong"


def judge(what, path, chains):
    samples = samples_of(path)
    rig.check(len(chains) >= WORKERS, f"{what}: {len(chains)} workers")
    total = collections.Counter()
    for pid, chain in chains.items():
        counts, wrong = collections.Counter(), []
        for names, n in samples[pid]:
            v = verdict(names, chain)
            counts[v] += n
            wrong += [names] if v == "wrong" else []
        rig.check(counts["right"] > 20 and not wrong, f"{what}: worker {pid} has its own {len(chain)}: {dict(counts)}"
                  + "".join(f"\n{w}" for w in wrong[:3]))
        total += counts
    n = sum(total.values()) - total["none"]
    # The others say so: how many a reader is too late for depends on what else the host does.
    rig.check(total["right"] > 0.6 * n, f"{what}: {total['right']} of {n} samples have all of it")


def record(out, *command, **options):
    return rig.start([rig.perfwalk(), "record", "-q", "-F", "199", "-o", out, "--", *command], **options)


def under_requests(what, command, ask, is_up, where, **options):
    """where: what ask() takes."""
    out = rig.path(f"{what}.otlp")
    p = record(out, *command, **options)
    rig.wait_for(f"{what} to answer", is_up)
    chains = ask_all(ask, *where)
    parents = {int(rig.status_of(pid)["PPid"]) for pid in chains}
    rig.check(len(parents) == 1, f"{what}: one process has forked all workers")
    rig.kill(parents.pop(), signal.SIGTERM)
    rig.check(p.wait(rig.PATIENCE) == 0, f"{what}: a capture: {p.returncode}")
    judge(what, out, chains)


# ---- Servers ----

def check_php():
    found = [p for d in os.environ["PATH"].split(":") + ["/usr/sbin"] for p in glob.glob(f"{d}/php-fpm*")]
    if not found:
        rig.skip("php-fpm is not installed")
    script = shutil.copy(os.path.join(rig.WORKLOADS, "forks.php"), rig.path("forks.php"))
    where = rig.path("fpm.socket")
    config = rig.write("fpm.conf", f"[global]\ndaemonize = no\nerror_log = {rig.path('fpm.log')}\n[www]\nuser = nobody\n"
                       f"group = nogroup\nlisten = {where}\npm = static\npm.max_children = {WORKERS}\n")
    under_requests("php-fpm", [found[0], "-F", "-y", config], ask_fcgi, lambda: os.path.exists(where), (where, script))


def check_gunicorn():
    environment = dict(os.environ, PYTHONPATH=rig.python_package("gunicorn", GUNICORN_VERSION), PYTHONDONTWRITEBYTECODE="1")
    port = rig.free_port()

    def is_up():
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0
    under_requests("gunicorn", [sys.executable, "-m", "gunicorn", "-w", str(WORKERS), "-b", f"127.0.0.1:{port}", "--chdir",
                                rig.WORKLOADS, "--worker-tmp-dir", rig.workdir(), "forks:application"],
                   ask_http, is_up, (port,), env=environment, stderr=subprocess.DEVNULL)


def check_ruby():
    rig.need_programs("ruby")
    out = rig.path("ruby.otlp")
    p = record(out, "ruby", os.path.join(rig.WORKLOADS, "forks.rb"), stdout=subprocess.PIPE, text=True)
    lines = [line for line in p.communicate(timeout=rig.PATIENCE)[0].splitlines() if re.match(r"\d+ fork_", line)]
    rig.check(p.returncode == 0, "ruby: a capture")
    judge("ruby", out, told(lines))


def main():
    rig.need_root()
    for part in (check_php, check_gunicorn, check_ruby):
        rig.apart(part)


rig.run(main)
