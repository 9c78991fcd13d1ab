# SPDX-License-Identifier: Apache-2.0
# Rooms: src/reader src/broker
"""A program puts memory that never answers in the place of some that is being read: its readers cannot even be killed.
Others have their places soon, read all other programs, and that one only when its time is up, but at once who gets its
number later. Nor does the context that it publishes there stop the opener."""
import os
import re
import shutil
import subprocess
import sys
import time

import rig
from sink import Sink

UNPROVEN = "[runtime frames not proven]"
TIMES = r"(\d+) times a process was set aside"


def python():
    """One whose data stack waits.py knows."""
    for name in ("python3", "python3.11", "python3.12", "python3.13", sys.executable):
        path = shutil.which(name)
        p = subprocess.run([path, "-c", "import sys; print(sys.version_info[1])"], capture_output=True, text=True,
                           check=False) if path else None
        if p and p.stdout.strip() in ("11", "12", "13"):
            return path
    return rig.skip("no CPython 3.11 to 3.13")


def ctl(d, word):
    return subprocess.run([rig.perfwalk(), "ctl", "-s", d.control, word], capture_output=True, text=True, check=True).stdout


def row(d, pattern):
    m = re.search(pattern, ctl(d, "status"))
    return int(m[1]) if m else 0


def n_read(d):
    return row(d, r"known, (\d+) stacks read")


def readers_of(d, name="pw-reader"):
    """{pid: the state of its process} of the readers."""
    found = {}
    for pid in rig.children_of(d.pid):
        if rig.comm_of(pid) == name:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                found[pid] = f.read().rpartition(")")[2].split()[0]
    return found


def start_as(pid, argv):
    """A process of that number, which is free once the last one of its session has ended."""
    def start():
        with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as f:
            f.write(str(pid - 1))
        p = rig.start(argv, stdout=subprocess.DEVNULL)
        if p.pid == pid:
            return p
        rig.end(p)
        return None
    return rig.wait_for(f"a process with the number {pid}", start)


def has_frame(views, pid, begins, *times):
    """Whether a sample of that process has such a frame; with times (Unix, in seconds), one taken between them."""
    return any(x[0].get("process.pid") == pid and any(f.startswith(begins) for f in x[2])
               for v in views for x in v.samples(*times))


def hang(d, program, directory):
    """A program at whose memory a reader has begun to wait."""
    had, flag = list(readers_of(d).values()).count("D"), directory + ".flag"
    os.mkdir(directory)
    waits = rig.start(["unshare", "-m", "--propagation", "private", program, os.path.join(rig.WORKLOADS, "waits.py"),
                       directory, flag])
    rig.wait_for("the memory that does not answer", lambda: os.path.exists(flag) or waits.poll() is not None)
    if waits.poll() is not None:
        rig.skip("no filesystem can be mounted here")
    rig.wait_for("a reader that hangs", lambda: list(readers_of(d).values()).count("D") > had)
    return waits


def wait_aside(d, pid, most):
    """Until ctl lists that process, and says when it is read again: at most so many seconds later. Returns that time."""
    pattern = rf"the memory of process {pid}: the reader ended while reading it; it is read again in ([0-9.]+)s\n"
    listed = rig.wait_for("its process to be set aside", lambda: re.fullmatch(pattern, ctl(d, "set-aside")))
    rig.check(most / 2 < float(listed[1]) <= most, f"ctl names it: {listed[0].strip()}")
    return time.time() + float(listed[1])


def try_all(sink):
    program = python()
    d = rig.Daemon("[profiler]\nsamples_per_second = 97\nreporter_interval = 1s\n[export:sink]\n"
                   f"endpoint = {sink.endpoint}\n", "unanswered")
    d.wait_up()
    other = rig.start([program, os.path.join(rig.WORKLOADS, "calls.py"), "1"])
    rig.wait_for("stacks of another program", lambda: n_read(d) > 20)
    waits = hang(d, program, rig.path("first"))
    until = wait_aside(d, waits.pid, 10)
    begun = time.time() + 1  # all readers know by then
    cpus = len(os.sched_getaffinity(0))
    rig.wait_for("other readers", lambda: list(readers_of(d).values()).count("S") == cpus)
    had = n_read(d)
    rig.wait_for("stacks of the other program", lambda: n_read(d) > had + 20)
    rig.check("D" in readers_of(d).values(), f"others read while {list(readers_of(d).values()).count('D')} hang")
    rig.check(row(d, TIMES) == 1, "one process is not read for now")
    rig.wait_for("who opens files, which did not read its context", lambda: list(readers_of(d, "pw-opener").values()) == ["S"])
    # That memory is seen to be a file's by now, and left alone. (What ctl said is a little older than the clock here.)
    rig.wait_for("it to be read again", lambda: has_frame(sink.views(), waits.pid, UNPROVEN, until - 0.5, until + 60))
    rig.check(ctl(d, "set-aside") == "", "which happens when the time is up, and ctl does not list it any more")
    aside = (begun, until - 0.5)
    rig.check(has_frame(sink.views(), waits.pid, "", *aside) and not has_frame(sink.views(), waits.pid, UNPROVEN, *aside),
              "while it is set aside its samples are taken, and it is not read")
    second = hang(d, program, rig.path("second"))
    wait_aside(d, second.pid, 10)
    rig.check(ctl(d, "clear-set-aside") == "files_read_again 0\nprocesses_read_again 1\n", "ctl takes another one back at once")
    rig.end(second)
    rig.end(waits)
    rig.wait_for("the ones that hung to end", lambda: len(readers_of(d)) == cpus)
    rig.end(other)
    heir = start_as(waits.pid, [program, os.path.join(rig.WORKLOADS, "calls.py"), "1"])
    rig.wait_for("names of a program that got the same number", lambda: has_frame(sink.views(), heir.pid, "chain_"))
    rig.end(heir)
    d.stop()



def main():
    rig.need_root()
    if not os.path.exists("/dev/fuse"):
        rig.skip("no /dev/fuse")
    with Sink() as sink:
        try_all(sink)


rig.run(main)
