# SPDX-License-Identifier: Apache-2.0
# Rooms: src/broker src/process
"""What the service manager is told: ready, how it goes, reloading, stopping, and the watchdog, which
stops being fed when the profiler hangs and is fed again when it goes on."""
import os
import signal
import socket
import time

import rig


class Manager:
    """The receiving end of NOTIFY_SOCKET."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.setblocking(False)
        self.seen = []

    def read(self):
        while True:
            try:
                lines = self.socket.recv(4096).decode().split("\n")
            except BlockingIOError:
                return self.seen
            self.seen += [(time.monotonic(), line) for line in lines]

    def lines(self, start):
        return [line for _, line in self.read() if line.startswith(start)]

    def times(self, start):
        return [t for t, line in self.read() if line.startswith(start)]

    def wait_for(self, start, n=1):
        rig.wait_for(f"{n} of {start}", lambda: len(self.lines(start)) >= n)


def daemon_of(name, address, **variables):
    config = f"[export:x]\nendpoint = http://127.0.0.1:{rig.free_port()}\n"
    return rig.Daemon(config, name, env={**os.environ, "NOTIFY_SOCKET": address, **variables})


def watched():
    address = rig.path("notify")
    manager = Manager(address)
    daemon = daemon_of("watched", address, WATCHDOG_USEC="2000000")
    manager.wait_for("READY=1")
    rig.check(manager.seen[0][1] == "READY=1", "READY=1 comes first")
    manager.wait_for("WATCHDOG=1", 6)
    times = manager.times("WATCHDOG=1")
    # Half of them: on a busy host one may be late, or read late.
    most = sorted(b - a for a, b in zip(times, times[1:]))[2]
    rig.check(most < 2, f"the watchdog of 2 s is fed in time ({most:.2f} s at most)")
    rig.check("samples" in manager.lines("STATUS=")[-1], manager.lines("STATUS=")[-1])

    profiler = daemon.role("profiler")
    rig.kill(profiler, signal.SIGSTOP)
    rig.wait_for("it is fed no more", lambda: time.monotonic() - manager.times("WATCHDOG=1")[-1] > 2)
    rig.check(True, "a profiler that hangs feeds it no more")
    n = len(manager.lines("WATCHDOG=1"))
    rig.kill(profiler, signal.SIGCONT)
    manager.wait_for("WATCHDOG=1", n + 2)
    rig.check(daemon.role("profiler") == profiler, "when it goes on, it does again")
    gap, cpu = (int(daemon.status()[f"drain_{x}_max_ms"]) for x in ("gap", "cpu"))
    rig.check(gap > 1000 and cpu < gap, f"the rings were left alone for {gap} ms at most, {cpu} ms of them its own work")

    rig.kill(daemon.pid, signal.SIGHUP)
    manager.wait_for("READY=1", 2)
    order = [line.split("=")[0] for _, line in manager.seen if line[0] in "RM"]
    rig.check(order == ["READY", "RELOADING", "MONOTONIC_USEC", "READY"], f"SIGHUP: {order}")
    daemon.stop()
    rig.check(manager.lines("STOPPING=1"), "SIGTERM: STOPPING=1")


def not_watched():
    """An abstract socket, and a watchdog that is another process's."""
    address = f"perfwalk-test-{os.getpid()}"
    manager = Manager("\0" + address)
    daemon = daemon_of("abstract", "@" + address, WATCHDOG_USEC="1000000", WATCHDOG_PID="1")
    manager.wait_for("READY=1")
    manager.wait_for("STATUS=")
    rig.check(not manager.lines("WATCHDOG=1"), "another's watchdog is left alone")
    daemon.stop()


def main():
    rig.need_root()
    watched()
    not_watched()


rig.run(main)
