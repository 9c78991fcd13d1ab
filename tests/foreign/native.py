# SPDX-License-Identifier: Apache-2.0
"""native.py aarch64 [ROOT [TEST...]]: HEAD is built by the compiler of that processor in a Debian of it, as somebody there
would, and its unit tests run there. ROOT has what debootstrap --foreign makes with the packages that the build needs
(etc/quickstart.sh), and is changed; TESTs are some unit tests (tests/unit/test-NAME) in the place of all.

qemu-user runs all of it: it has no perf events, no filters of system calls and no tracing of processes. Tests that cannot
do without say so (SKIP); UNTRIED has those that fail, and why."""
import os
import re
import sys
import time

from host import Host, debootstrap, run  # which finds the others

import rig

SLOW = "it has a limit of CPU time"
NOT_THERE, AS_QEMU = "qemu-user has no perf events and no filters of system calls", "the kernel knows a program there as qemu's"
UNTRIED = {
    **dict.fromkeys(("test-broker-tree", "test-explain", "test-util"), NOT_THERE),
    **dict.fromkeys(("test-context", "test-host-proc", "test-judge", "test-opener", "test-peers", "test-supervisor",
                     "test-symbolizer", "test-tasks"), AS_QEMU),
    **dict.fromkeys(("test-symbolize-dwarf-hostile", "test-symbolize-perf-map"), SLOW),
}
TOOLS = ["binutils", "g++"]  # of the tests
HOURS = 4 * 3600  # an emulated compiler on a busy host
# Without optimisation the compiler takes a third of the time; nothing here is built twice.
BUILD = ("autoreconf -fi", "mkdir build && cd build && ../configure --enable-werror --disable-dependency-tracking CFLAGS=-O0",
         "make -C build -s -j2")


def needed():
    with open(os.path.join(rig.TOP, "etc/quickstart.sh"), encoding="utf-8") as f:
        return re.search(r'^needed="([^"]*)"', f.read(), re.M)[1].split()


def make_host(processor, root):
    os.mkdir(rig.path("srv"))
    host = Host(processor, root)
    if os.path.exists(root + "/debootstrap"):
        with open(root + "/etc/dpkg/dpkg.cfg.d/native", "w", encoding="ascii") as f:
            f.write("force-unsafe-io\n")  # a root that is thrown away need not survive a power cut
        # As an lxc container it makes no devices, which a user namespace could not.
        host.run("env", "container=lxc", "/debootstrap/debootstrap", "--second-stage", timeout=HOURS)
    run("git", "-C", rig.TOP, "archive", "-o", rig.path("srv/head.tar"), "HEAD")
    host.run("sh", "-c", "rm -rf /head && mkdir /head && tar -xf /srv/head.tar -C /head")
    return host


def unbuilt(said):
    """What make says of programs that it could not build: it runs none of them then."""
    return [line for line in said.splitlines() if re.search(r"error: |undefined reference|not remade", line)][:40]


def check_tests(host, tests):
    chosen = [f"TESTS={' '.join(tests)}"] if tests else []
    status, said = host.try_run("make", "-C", "/head/build", "-s", "-k", "-j2", "check", *chosen, timeout=HOURS)
    results = re.findall(r"^(PASS|FAIL|ERROR|SKIP): (\S+)", said, re.M)
    names = {verdict: sorted(os.path.basename(t) for v, t in results if v == verdict) for verdict in ("PASS", "SKIP", "FAIL", "ERROR")}
    rig.say(f"skipped: {', '.join(names['SKIP'])}")
    for name, why in sorted(UNTRIED.items()):
        rig.say(f"untried: {name}: {why}")
    failed = set(names["FAIL"] + names["ERROR"])
    rig.check(names["PASS"] and failed <= set(UNTRIED) and (status == 0 or failed),
              f"unit tests: {len(names['PASS'])} passed, {len(names['SKIP'])} skipped"
              + "".join(f"\n    {name} failed" for name in sorted(failed - set(UNTRIED)))
              + ("" if results else "".join("\n    " + line for line in unbuilt(said)) or said[-3000:]))


def main():
    rig.need_root()
    rig.need_programs("unshare", "git")
    processor = sys.argv[1]
    host = make_host(processor, sys.argv[2] if len(sys.argv) > 2 else debootstrap(processor, needed() + TOOLS))
    for step in BUILD:
        begin = time.monotonic()
        host.run("sh", "-c", "cd /head && " + step, timeout=HOURS)
        rig.say(f"{step}: {time.monotonic() - begin:.0f} s")
    said = host.run("/head/build/perfwalk", "--version")
    rig.check(said.startswith("perfwalk "), f"built there: {said.strip()}")
    check_tests(host, sys.argv[3:])


rig.run(main)
