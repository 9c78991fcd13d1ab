# SPDX-License-Identifier: Apache-2.0
# Rooms: src/store src/exporter src/import src/cmd
"""The local store: a daemon without destinations keeps its profiles on this host, report --last
reads them, and the limits, a full disk, kill -9 and damaged files are borne."""
import glob
import gzip
import os
import re
import signal
import subprocess
import time

import rig

CONFIG = """[profiler]
reporter_interval = 1s
[store]
path = {path}
max_bytes = {max_bytes}
"""


def files(path):
    return sorted(glob.glob(os.path.join(path, "*.otlp.gz")))


def report(*args, status=0):
    p = subprocess.run([rig.perfwalk(), "report", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True, timeout=120, check=False)
    rig.check(p.returncode == status, f"report {' '.join(map(os.path.basename, args))} ends with {status}"
              + ("" if p.returncode == status else f", not {p.returncode}:\n{p.stdout}{p.stderr}"))
    return p.stdout if status == 0 else p.stderr


def samples(text):
    m = re.search(r"^(\d+) samples, (\d+) lost", text, re.M)
    rig.check(m, f"the report knows samples and losses: {text[:200]}")
    return int(m[1])


def main():
    rig.need_root()
    path = rig.path("store")
    chain = rig.start([os.path.join(rig.build_workloads("chain"), "chain"), "600"], stdout=subprocess.DEVNULL)
    daemon = rig.Daemon(CONFIG.format(path=path, max_bytes="1M"))
    daemon.wait_up()
    rig.check("report --last" in daemon.log(), "the daemon says where its profiles go")
    rig.wait_for("four profiles", lambda: len(files(path)) >= 4, 15)

    # Nothing is lost or kept twice when the process that writes dies.
    rig.kill(daemon.role("exporter"), signal.SIGKILL)
    n = len(files(path))
    rig.wait_for("profiles after kill -9", lambda: len(files(path)) >= n + 3, 20)
    daemon.stop()
    rig.check(not glob.glob(os.path.join(path, "*.tmp")), "no half-written file is left")
    for name in files(path):
        with gzip.open(name) as f:
            rig.check(len(f.read()) > 100, f"{os.path.basename(name)} is whole")
    names = [os.path.basename(n)[:20] for n in files(path)]
    rig.check(names == sorted(set(names)), "their names are in the order of time")

    out = report("--last", "10m", "--store", path)
    everything = samples(out)
    rig.check(re.search(r"\bchain\b", out), "the report has the program")
    rig.check(samples(report("--last", "4s", "--store", path)) < everything, "a shorter time has fewer samples")
    page = rig.path("last.html")
    report("--last", "10m", "--store", path, "-o", page)
    rig.check(os.path.getsize(page) > 10000, "the page of the last ten minutes")
    one = files(path)[0]
    rig.check(samples(report(one)) > 0, "a file of the store is a file as any other")
    pipe = os.path.join(path, f"{2**63:020}-00000000.otlp.gz")
    os.mkfifo(pipe)
    rig.check(samples(report("--last", "10m", "--store", path)) == everything, "a named pipe among them is no file")
    os.remove(pipe)
    decoded = subprocess.run("gzip -dc %s | protoc --decode_raw | head -c 100" % one, shell=True, check=False,
                             stdout=subprocess.PIPE).stdout
    rig.check(decoded, "protoc decodes it")
    rig.end(chain)

    # Limits: the oldest go.
    daemon = rig.Daemon(CONFIG.format(path=path, max_bytes="1M"), name="again")
    daemon.wait_up()
    big = os.path.join(path, "00000000000000000001-00000000.otlp.gz")
    daemon.stop()
    with open(big, "wb") as f:
        f.write(os.urandom(1 << 20))
    os.chown(big, os.stat(path).st_uid, os.stat(path).st_gid)
    rig.start(["./chain", "30"], cwd=rig.path("workloads"), stdout=subprocess.DEVNULL)  # an idle host may have no profile for long
    daemon = rig.Daemon(CONFIG.format(path=path, max_bytes="1M"), name="trim")
    rig.wait_for("the oldest file to go", lambda: not os.path.exists(big), 15)
    daemon.stop()
    rig.check(sum(os.path.getsize(f) for f in files(path)) <= 1 << 20, "the store is within its limit")

    # A damaged file is named; what cannot be is said.
    with open(files(path)[-1], "r+b") as f:
        f.truncate(50)
    err = report("--last", "10m", "--store", path, status=1)
    rig.check(path in err and "truncated" in err, f"a damaged file: {err.strip()}")
    err = report("--last", "10m", "--store", rig.path("not-there"), status=1)
    rig.check("[store] enabled = yes" in err, f"no store: {err.strip()}")
    err = report("--last", "soon", status=2)
    rig.check("10m" in err, f"a bad time: {err.strip()}")

    # The first interval has not ended yet: that, and not how to configure what is configured.
    fresh = rig.path("fresh")
    daemon = rig.Daemon(f"[profiler]\nreporter_interval = 1h\n[store]\npath = {fresh}\n", name="fresh")
    daemon.wait_up()
    err = report("--last", "10m", "--store", fresh, status=1)
    rig.check("yet" in err and "reporter_interval" in err and "[export:" not in err, f"too early: {err.strip()}")
    rig.check("perfwalk ctl flush" in err, "and how to have one at once")
    chain = rig.start(["./chain"], cwd=rig.path("workloads"), stdout=subprocess.DEVNULL)
    rig.wait_for("some CPU time", lambda: rig.cpu_seconds(chain.pid) >= 0.5)
    rig.wait_for("the control socket", lambda: os.path.exists(daemon.control))
    subprocess.run([rig.perfwalk(), "ctl", "-s", daemon.control, "flush"], check=True, timeout=120)
    rig.wait_for("a profile", lambda: files(fresh), 15)
    rig.check(samples(report("--last", "10m", "--store", fresh)) > 0, "which works")
    daemon.stop()

    # A full disk: said once, and the daemon goes on.
    disk = rig.path("disk")
    os.mkdir(disk)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], check=True)
    try:
        os.mkdir(os.path.join(disk, "store"))
        with open(os.path.join(disk, "fill"), "wb") as f:
            f.write(bytes(60 << 10))
        daemon = rig.Daemon(CONFIG.format(path=os.path.join(disk, "store"), max_bytes="1M"), name="full")
        rig.wait_for("the full disk in the log", lambda: "No space left" in daemon.log(), 15)
        time.sleep(2)
        rig.check(daemon.log().count("No space left") == 1, "a full disk is said once")
        os.unlink(os.path.join(disk, "fill"))
        rig.wait_for("profiles again", lambda: files(os.path.join(disk, "store")), 15)
        rig.wait_for("the log to say that there is room again", lambda: "kept again" in daemon.log(), 5)
        daemon.stop()
    finally:
        rig.end_started()
        subprocess.run(["umount", disk], check=False)


rig.run(main)
