# SPDX-License-Identifier: Apache-2.0
# Rooms: src/exporter src/store
"""What cannot be sent waits on disk. A receiver that is away while the exporter is killed again and
again, a daemon that is stopped and started without any receiver, a spool that is full: each window
arrives in its order, nothing is sent that is damaged, and sampling goes on."""
import os
import re
import signal
import stat
import struct
import subprocess
import time
import zlib

import inside
import otlp
import rig
from sink import Sink, windows

INTERVAL = 1.0


def config(port, extra=""):
    return f"""
[profiler]
samples_per_second = 49
reporter_interval = {INTERVAL:g}s
[export:sink]
endpoint = http://127.0.0.1:{port}
{extra}"""


def files(daemon, suffix=".otlp"):
    try:
        return sorted(n for n in os.listdir(daemon.spool) if n.endswith(suffix))
    except FileNotFoundError:
        return []


def begin_of(body):
    """When the window of one payload began."""
    return windows([otlp.view_of(body)])[0][0]


def holes(found):
    """Time between the windows that none covers, in seconds."""
    total, reach = 0.0, None
    for begin, end in found:
        if reach is not None and begin > reach:
            total += (begin - reach) / 1e9
        reach = max(end, reach or 0)
    return total


def read_spool(daemon):
    """(body as it will be sent, samples that its header counts) of each file."""
    found = []
    for name in files(daemon):
        with open(os.path.join(daemon.spool, name), "rb") as f:
            data = f.read()
        n_name, n_body, n_samples = struct.unpack_from("<IQQ", data, 20)
        if data[:7] != b"PWSPOOL" or len(data) != 56 + n_name + n_body:
            rig.fail(f"{name} is not complete")
        found.append((data[56 + n_name:], n_samples))
    return found


def n_samples_in(body):
    return sum(x[3] for x in otlp.view_of(body).samples())


def samples_of(sink, pid):
    """Samples of a process in what was accepted, each payload counted once."""
    return sum(x[3] for body in set(sink.payloads()) for x in otlp.view_of(body).samples()
               if x[0].get("process.pid") == pid)


def disorder(bodies):
    """Pairs of neighbours that came in the wrong order."""
    begins = [begin_of(b) for b in bodies]
    return sum(a > b for a, b in zip(begins, begins[1:]))


def once(sequence):
    seen = set()
    return [x for x in sequence if not (x in seen or seen.add(x))]


class Marked:
    """A program with a secret on its stack, which is in the bytes that are copied with each of its samples."""

    def __init__(self):
        self.mark = os.urandom(16).hex().encode()
        self.process = rig.start([os.path.join(rig.build_workloads("secret"), "secret")], stdin=subprocess.PIPE)
        self.process.stdin.write(self.mark + b"\n")
        self.process.stdin.flush()

    def check(self, views, places):
        """It was sampled down to main, which lies behind the secret on the stack; and none of the places has that."""
        whole = sum(x[3] for v in views for x in v.samples() if x[0].get("process.pid") == self.process.pid
                    and rig.contains_path(x[2], ["main", "secret_caller", "secret_leaf"]))
        rig.check(whole > 5, f"{whole} stacks of a program were walked over a secret that lies on them")
        for what, contents in places.items():
            # Whole, or the words of it that registers hold.
            pieces = [self.mark[i:i + 8] for i in range(0, 32, 8)]
            found = [piece for content in contents for piece in pieces if piece in content or piece[::-1] in content]
            if what != "the log":
                rig.check(any(b"secret_leaf" in c for c in contents), f"{what}: they can be read, and contain it")
            rig.check(contents and not found, f"it is nowhere in {len(contents)} of {what}, {sum(map(len, contents))} bytes")


def contents_of(directory):
    """Of all its files, as they are and without their compression."""
    found = []
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), "rb") as f:
            found.append(f.read())
        at = found[-1].find(b"\x1f\x8b\x08")
        if at >= 0:
            found.append(zlib.decompressobj(31).decompress(found[-1][at:]))
    return found


def away_and_killed(chain):
    marked, store = Marked(), rig.path("away.store")
    with Sink() as first:
        port = first.port
        daemon = rig.Daemon(config(port, f"[store]\nenabled = yes\npath = {store}\n"), "away")
        daemon.wait_up()
        first.wait_for(2)
    before = first.payloads()
    rig.check(not files(daemon), "nothing is written while the receiver takes what it gets")
    kills, begin = 0, time.monotonic()
    while time.monotonic() < begin + 12 or (len(files(daemon)) < 5 and time.monotonic() < begin + rig.PATIENCE):
        time.sleep(4)
        pid = daemon.role("exporter")
        if pid:
            rig.kill(pid, signal.SIGKILL)
            kills += 1
    rig.wait_for("a new exporter", lambda: daemon.role("exporter"), 10)
    waiting = files(daemon)
    kept = read_spool(daemon)
    rig.check(kills >= 2 and len(waiting) >= 5,
              f"{len(waiting)} payloads are on disk after 12 s without a receiver and {kills} SIGKILLs")
    places = {"the spool's files": contents_of(daemon.spool), "the store's files": contents_of(store)}
    s = os.stat(daemon.spool)
    owners = {os.stat(os.path.join(daemon.spool, n)).st_uid for n in waiting}
    rig.check(stat.S_IMODE(s.st_mode) == 0o700 and s.st_uid != 0 and owners == {s.st_uid},
              "the directory is open to perfwalk's user alone, who owns the files")
    back = time.time_ns()
    with Sink(port) as second:
        rig.wait_for("the spool is empty", lambda: second.count() and not files(daemon), 60)
        n = second.count()
        second.wait_for(n + 3)
        status, _ = daemon.stop()
        after = second.payloads()
        rig.check(status == 0, "the daemon leaves with 0")
        every = before + after
        found = windows(first.views() + second.views())
        rig.check(holes(found) < 0.05,
                  f"every window has arrived: {len(found)}, {holes(found):.3f} s are missing")
        doubles = len(every) - len(set(every))
        rig.check(doubles <= kills + 1, f"{doubles} payloads came twice after {kills} SIGKILLs")
        # The window in which the receiver came back may be of either kind.
        backlog = [b for b in once(after) if begin_of(b) < back - 1.5 * INTERVAL * 1e9]
        rig.check(len(backlog) >= len(waiting) - 2 and disorder(backlog) == 0,
                  f"{len(backlog)} payloads from disk came in their order")
        live = [b for b in once(after) if begin_of(b) > back]
        rig.check(disorder(live) == 0, f"and so did {len(live)} live ones")
        problems = second.problems(rate=49)
        rig.check(not problems, "all hold every rule" + "".join("\n    " + p for p in problems[:9]))
        arrived = {r.raw: r.body for r in second.requests}
        rig.check(all(body in arrived for body, _ in kept), "every file was sent as it was")
        told, came = sum(n for _, n in kept), sum(n_samples_in(arrived[body]) for body, _ in kept)
        rig.check(told == came, f"{came} samples came of {told} that were counted into the files")
        rig.check(samples_of(second, chain.pid) > 20 and not files(daemon, ""),
                  f"{samples_of(second, chain.pid)} of the workload; nothing is left in the directory")
    rig.end(marked.process)
    marked.check(first.views() + second.views(), {
        **places, "the payloads": every, "the log": [daemon.log().encode()]})
    rig.check("are kept in" in daemon.log() and "the spool is empty again" in daemon.log(),
              "the log says that the spool is in use, and that it is empty again")


def killed(pids):
    for pid in pids:
        rig.kill(pid, signal.SIGKILL)


def without_receiver():
    port, spool = rig.free_port(), rig.path("restart.spool")
    stopped = []
    for i, what in enumerate(("SIGTERM", "SIGKILL of the broker", "SIGKILL of all")):
        daemon = rig.Daemon(config(port), f"restart{i}", spool=spool)
        pids = [daemon.pid, *daemon.wait_up().values()]
        n = stopped[-1][1] if stopped else 0
        rig.wait_for("three more payloads on disk", lambda d=daemon, n=n: len(files(d)) >= n + 3)
        if i == 0:
            status, seconds = daemon.stop()
            rig.check(status == 0 and seconds < 4.5, f"without a receiver it leaves with {status} after {seconds:.2f} s")
        else:
            killed(pids if i == 2 else pids[:1])
            daemon.process.wait(rig.PATIENCE)
            rig.wait_for("the other processes to leave", lambda p=pids: not any(map(rig.comm_of, p)), 10)
        stopped.append((time.time_ns(), len(files(daemon))))
        rig.check("lost" not in daemon.log() and "dropped" not in daemon.log(),
                  f"{what}: {len(files(daemon))} payloads are on disk, and none is lost")
    counts = [n for _, n in stopped]
    rig.check(counts[2] >= counts[1] + 2 >= counts[0] + 4 >= 7, f"those of the starts before are still there: {counts}")
    with Sink(port) as sink:
        daemon = rig.Daemon(config(port), "restart3", spool=spool)
        rig.wait_for("the spool is empty", lambda: not files(daemon), 30)
        sink.wait_for(counts[2] + 2)
        daemon.stop()
        bodies = sink.payloads()
        rig.check(len(bodies) == len(set(bodies)), "each payload came once")
        old = [b for b in bodies if begin_of(b) < stopped[2][0]]
        rig.check(len(old) == counts[2] and disorder(old) == 0,
                  f"all {len(old)} payloads of the three starts came, in their order")
        rig.check("of an earlier run" in daemon.log(), "the log says what was left")


def broken_files():
    """A file that is damaged while nobody looks is set aside and never sent."""
    port, spool = rig.free_port(), rig.path("broken.spool")
    daemon = rig.Daemon(config(port), "broken0", spool=spool)
    daemon.wait_up()
    rig.wait_for("payloads on disk", lambda: len(files(daemon)) >= 3)
    daemon.stop()
    names = files(daemon)
    with open(os.path.join(spool, names[0]), "r+b") as f:
        f.seek(200)
        byte = f.read(1)
        f.seek(200)
        f.write(bytes([byte[0] ^ 1]))
    os.truncate(os.path.join(spool, names[1]), 100)
    with open(os.path.join(spool, "00000000000000009999.tmp"), "wb") as f:
        f.write(b"half")
    with Sink(port) as sink:
        daemon = rig.Daemon(config(port), "broken1", spool=spool)
        daemon.wait_up()
        rig.wait_for("the spool is empty", lambda: not files(daemon), 30)
        sink.wait_for(len(names))
        daemon.stop()
        rig.check(not sink.problems(rate=49), "nothing damaged is sent")
        rig.check(len(files(daemon, ".bad")) == 2 and not files(daemon, ".tmp"),
                  "two files are set aside, and the half one is gone")
        rig.check(re.search(r"damaged; it is set aside", daemon.log()), "the log says so")


def full_disk(chain):
    if not rig.can_mount():
        rig.leave_out("a full disk: no tmpfs can be mounted")
        return
    directory = rig.path("full.spool")
    os.mkdir(directory)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", directory], check=True)
    try:
        port = rig.free_port()
        daemon = rig.Daemon(config(port), "full", spool=directory)
        roles = daemon.wait_up()
        rig.wait_for("the log says that the spool is full",
                     lambda: "cannot be written: only the reserve" in daemon.log(), 40)
        time.sleep(3)
        rig.check(daemon.alive() and daemon.roles() == roles, "a full disk: all processes live on")
        rig.check(daemon.log().count("cannot be written") == 1, "and it is said once")
        with Sink(port) as sink:
            rig.wait_for("the spool is empty", lambda: not files(daemon), 60)
            n = sink.count()
            sink.wait_for(n + 2)
            daemon.stop()
            found = windows(sink.views())
            rig.check(holes(found) < 0.05, f"every window arrives ({len(found)}): from disk and from memory")
            rig.check(samples_of(sink, chain.pid) > 0, "sampling went on")
    finally:
        subprocess.run(["umount", "-l", directory], check=False)


def not_ours():
    """Directories that are not perfwalk's to take."""
    if inside.wanted() == "rootless.conf":
        return  # all that the test makes is the daemon's user's
    directory = rig.path("theirs")
    os.mkdir(directory)
    os.chmod(directory, 0o755)
    with open(os.path.join(directory, "file"), "w", encoding="utf-8"):
        pass
    os.symlink(directory, rig.path("link"))
    with Sink() as sink:
        for spool, reason in ((directory, "has files of others in it"), (rig.path("link"), "cannot be opened")):
            daemon = rig.Daemon(config(sink.port), "theirs", spool=spool)
            daemon.wait_up()
            sink.wait_for(sink.count() + 1)
            daemon.stop()
            rig.check(reason in daemon.log(), f"{os.path.basename(spool)}: not used, and the log says why")
    s = os.stat(directory)
    rig.check(s.st_uid == 0 and stat.S_IMODE(s.st_mode) == 0o755, "it is as it was")


def main():
    rig.need_root()
    directory = rig.build_workloads("chain")
    chain = rig.start(["./chain", "30"], cwd=directory)
    away_and_killed(chain)
    without_receiver()
    broken_files()
    full_disk(chain)
    not_ours()


rig.run(main)
