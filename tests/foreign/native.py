# SPDX-License-Identifier: Apache-2.0
"""native.py aarch64 [TEST...]: the sources of HEAD with their configure script, as an archive has them, are built by the
compiler, the assembler and the linker of that processor, and the unit tests run in the files of a Debian of it, or only
TESTs (tests/unit/test-NAME). Those files (sysroot.sh) stay in ~/.cache/perfwalk-tests for later runs.

What runs the compiler, make and the shell of configure, is this host's: emulated, these would take most of the time.
qemu-user runs the rest: it has no perf events, no filters of system calls and no tracing of processes. Tests that cannot
do without say so (SKIP); UNTRIED has those that fail, and why."""
import multiprocessing.pool
import os
import shutil
import subprocess
import sys
import time

from host import Host, run  # which finds the others

import rig

HERE = os.path.dirname(os.path.abspath(__file__))
SLOW = "it has a limit of CPU time"
NOT_THERE, AS_QEMU = "qemu-user has no perf events and no filters of system calls", "the kernel knows a program there as qemu's"
UNTRIED = {
    **dict.fromkeys(("test-broker-tree", "test-explain", "test-util"), NOT_THERE),
    **dict.fromkeys(("test-context", "test-host-proc", "test-judge", "test-opener", "test-peers", "test-supervisor",
                     "test-symbolizer", "test-tasks"), AS_QEMU),
    **dict.fromkeys(("test-symbolize-dwarf-hostile", "test-symbolize-perf-map"), SLOW),
}
HOURS = 4 * 3600  # an emulated compiler on a busy host
CPU_SECONDS = 1200  # of one test: four seconds of this processor are some hundred
# Without optimisation the compiler takes a third of the time. Where this host has ccache, a later run takes less of it.
BUILD = ("../configure --build=$HOST --host=$HOST --enable-werror CFLAGS=-O0", "make -s -j2", "make -s -j2 check TESTS=")
SETTINGS = """
	cd "$0/head/build" || exit 1
	export HOST=%s-linux-gnu QEMU_LD_PREFIX="$ROOT" AR="$ROOT/usr/bin/ar" RANLIB="$ROOT/usr/bin/ranlib" NM="$ROOT/usr/bin/nm"
	export CC="$(command -v ccache) $ROOT/usr/bin/gcc --sysroot=$ROOT -B$ROOT/usr/bin/" PKG_CONFIG=pkg-config PKG_CONFIG_SYSROOT_DIR="$ROOT"
	export PKG_CONFIG_LIBDIR="$ROOT/usr/lib/$HOST/pkgconfig:$ROOT/usr/share/pkgconfig"
"""


def make_host(processor):
    os.mkdir(rig.path("srv"))
    p = subprocess.run(["sh", os.path.join(HERE, "sysroot.sh"), processor, "native"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       check=False)
    if p.returncode:
        (rig.skip if p.returncode == 77 else rig.fail)(p.stderr[-2000:])
    root = p.stdout.strip() + "/root"
    # The scripts of packages, which make these, have not run: that takes an emulated dpkg most of an hour.
    for name in ("passwd", "group"):
        shutil.copy(f"{root}/usr/share/base-passwd/{name}.master", f"{root}/etc/{name}")
    for name, program in (("awk", "mawk"), ("cc", "gcc"), ("c++", "g++")):
        if not os.path.lexists(f"{root}/usr/bin/{name}"):
            os.symlink(program, f"{root}/usr/bin/{name}")
    return Host(processor, root)


def unpack():
    os.makedirs(rig.path("srv/head/build"))
    run("git", "-C", rig.TOP, "archive", "-o", rig.path("head.tar"), "HEAD")
    run("tar", "-xf", rig.path("head.tar"), "-C", rig.path("srv/head"))
    run("autoreconf", "-fi", cwd=rig.path("srv/head"))


def timed(what, step):
    begin, used = time.monotonic(), sum(os.times()[2:4])
    result = step()
    rig.say(f"{what}: {time.monotonic() - begin:.0f} s, {sum(os.times()[2:4]) - used:.0f} s of CPU time")
    return result


def build(host, processor):
    for step in BUILD:
        timed(step, lambda step=step: host.run("sh", "-ec", SETTINGS % processor + step, host.srv, where="outside", timeout=HOURS))


def all_tests():
    said = run("make", "-s", "-f", "Makefile", "-f", "../tests/links.mk", "links", cwd=rig.path("srv/head/build"))
    return [line.split()[0] for line in said.splitlines()]


def check_tests(host, tests):
    def run_test(test):
        status, said = host.try_run("sh", "-c", "ulimit -t $1 && cd /srv/head/build && srcdir=.. exec ./$0", test, str(CPU_SECONDS),
                                    timeout=HOURS)
        with open(rig.path("srv/head/build", test + ".log"), "w", encoding="utf-8") as f:
            f.write(said)
        return {0: "PASS", 77: "SKIP"}.get(status, "FAIL"), os.path.basename(test), said

    with multiprocessing.pool.ThreadPool(2) as pool:
        results = timed(f"{len(tests)} tests", lambda: pool.map(run_test, tests, 1))
    passed, skipped, failed = ([r for r in results if r[0] == verdict] for verdict in ("PASS", "SKIP", "FAIL"))
    rig.say(f"skipped: {', '.join(sorted(name for _, name, _ in skipped))}")
    for name, why in sorted(UNTRIED.items()):
        rig.say(f"untried: {name}: {why}")
    wrong = [r for r in failed if r[1] not in UNTRIED]
    rig.check(passed and not wrong, f"unit tests: {len(passed)} passed, {len(skipped)} skipped"
              + "".join(f"\n    {name} failed: {said[-300:]}" for _, name, said in wrong))


def main():
    rig.need_root()
    rig.need_programs("unshare", "git", "autoreconf", "make", "pkg-config")
    processor = sys.argv[1]
    host = make_host(processor)
    unpack()
    build(host, processor)
    said = host.run("/srv/head/build/perfwalk", "--version")
    rig.check(said.startswith("perfwalk "), f"built there: {said.strip()}")
    check_tests(host, sys.argv[2:] or all_tests())


rig.run(main)
