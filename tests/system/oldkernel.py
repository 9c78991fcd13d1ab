# SPDX-License-Identifier: Apache-2.0
# Rooms: src/process src/opener src/sample src/profiler
"""On a kernel that has no more than Linux 3.10 (workloads/lacking.c takes the rest away; tests/kernels/run.sh has real ones
from 3.16 on): system calls, events, their attributes. A capture and the daemon do what they do elsewhere, with names, and
leave nothing behind in /dev/shm and /tmp."""
import glob
import os
import platform
import re
import subprocess

import rig
from sink import Sink

# What perf_event_open() refuses there, in the words of -v.
LATER = {"dummy event", "mmap2", "comm_exec", "clockid", "cgroup", "build_id", "read lost"}
REFUSED = """
import errno, os, fcntl
def error(call, *args):
    try:
        call(*args)
    except OSError as e:
        return errno.errorcode[e.errno]
print(error(os.memfd_create, "x"), error(os.getrandom, 1), error(os.open, "/tmp", os.O_TMPFILE | os.O_RDWR),
      error(fcntl.fcntl, 0, 1034))
"""


def left_behind():
    return glob.glob("/dev/shm/perfwalk-*") + glob.glob("/tmp/perfwalk-window*") + glob.glob("/tmp/perfwalk-payload*")


def check_stacks(stacks, what):
    mine = [s for s in stacks if s.comm == "chain" and s.user]
    n = rig.total(mine)
    right = rig.total(s for s in mine if rig.contains_path(s.user, ["_start", "...", "main", "chain_one", "chain_two"]))
    rig.check(n >= 50 and right >= 0.9 * n, f"{what}: {right} of {n} stacks from _start, with names")


def main():
    rig.need_root()
    if platform.machine() != "x86_64":
        rig.skip("the numbers of system calls here are x86_64's")
    directory = rig.build_workloads("chain", "lacking")
    lacking = [os.path.join(directory, "lacking")]
    p = subprocess.run([*lacking, "python3", "-c", REFUSED], capture_output=True, text=True, check=False)
    if "seccomp" in p.stderr:
        rig.skip(f"this kernel's filters pass no call on: {p.stderr.strip()}")
    rig.check(p.stdout.split() == ["ENOSYS", "ENOSYS", "EISDIR", "EINVAL"],
              f"no memfd_create, getrandom, O_TMPFILE, seals: {(p.stdout + p.stderr).strip()}")
    before = set(left_behind())
    rig.start(["./chain"], cwd=directory)

    out = rig.path("old.folded")
    r = rig.Record([*lacking, rig.perfwalk(), "record", "-a", "-d", "2", "-F", "199", "--no-inline", "-v", "-o", out], 60)
    rig.check(r.status == 0, f"record -a leaves with {r.status}" + ("" if r.status == 0 else f"\n{r.text()}"))
    no = set(re.findall(r"perf feature (.*): no", r.text()))
    rig.check(no >= LATER, f"record -a does without {', '.join(sorted(no))}")
    check_stacks(rig.read_folded(out), "record -a")

    with Sink() as sink:
        d = rig.Daemon(f"[profiler]\nreporter_interval = 1s\n[export:sink]\nendpoint = {sink.endpoint}\n",
                       argv_prefix=lacking)
        d.wait_up()
        sink.wait_for(3)
        status, _ = d.stop()
        names = {name for view in sink.views() for x in view.samples() for name in x[2]}
        rig.check(status == 0 and "chain_two" in names,
                  f"run: {sink.count()} payloads with {len(names)} names; left with {status}")
    p = subprocess.run([*lacking, rig.perfwalk(), "top", "--batch", "-n", "1", "-d", "1"], capture_output=True, text=True,
                       check=False, timeout=120)
    rig.check(p.returncode == 0 and "chain" in p.stdout, f"top --batch leaves with {p.returncode}{p.stderr[-300:]}")
    p = subprocess.run([*lacking, rig.perfwalk(), "check"], capture_output=True, text=True, check=False, timeout=120)
    said = re.search(r"^note +interpreters .*", p.stdout, re.M)
    rig.check(said and "cannot be passed" in said[0], f"check: {said[0] if said else p.stdout}")
    rig.check(set(left_behind()) <= before, "nothing is left behind")


rig.run(main)
