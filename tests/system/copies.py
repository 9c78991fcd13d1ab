# SPDX-License-Identifier: Apache-2.0
# Rooms: src/host src/symbolizer src/render
"""One stripped program under one path, but two files one after the other, and programs that end
before anybody can open their file: each Mapping in OTLP has lines for all of its locations or for
none, and no location lies outside of its Mapping. Of a program that another was copied over nothing
has a name of that other one; one that was only touched keeps its names."""
import os
import shutil
import signal
import subprocess

import otlp
import rig
from otlp_check import check as problems_of

N = 8
SOURCE = """
#include <time.h>
static volatile unsigned long sink;
static int spent(long ms)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000 >= ms;
}
#define BURN for (int i = 0; i < 100000; i++) sink += i
__attribute__((noinline)) void exported(void) { BURN; }
static __attribute__((noinline)) void hidden(void) { BURN; }
int main(int argc, char **argv)
{
	long ms = argc > 2 ? 40 : 400;
	while (!spent(ms))
		argc > 1 ? exported() : hidden();
	return 0;
}
"""


def build():
    # No -pie: an offset in the file is not the address that it has in memory.
    p = subprocess.run(["cc", "-O1", "-no-pie", "-s", "-Wl,--export-dynamic-symbol=exported",
                        "-Wl,--build-id", "-o", rig.path("copied"), rig.write("copied.c", SOURCE)],
                       stderr=subprocess.PIPE, text=True, check=False)
    rig.check(p.returncode == 0, f"the program builds {p.stderr}")


# A file with a named frame, then another that has none; programs that are away when their first
# samples are read, and there again when they have been.
WORKLOAD = """
set -e
cd "$1"
"$1/copied" named
cp copied new
mv new copied
"$1/copied"
wait_for() { : >"$1"; while [ ! -e "$2" ]; do sleep 0.1; done; }
wait_for began go
for i in $(seq "$2"); do
	"$1/short-$i" named short
	mv short-$i away-$i
done
wait_for away back
for i in $(seq "$2"); do
	mv away-$i short-$i
	"$1/short-$i" named
done
"""


def wait_for_turns(profiler):
    """It reads its rings at least every 200 ms that it gets to run, and waits in between."""
    def turns():
        return int(rig.status_of(profiler)["voluntary_ctxt_switches"])
    begin = turns()
    rig.wait_for("the profiler reads", lambda: turns() - begin >= 10, 60)


# Both run under one name and in one inode: 0.3 s of the first, 0.1 s of the second. And one that
# gets another time between two runs, and while it runs.
OVER = """
cp "$2" written-over
"$1/written-over" spent 300
cp "$3" written-over
"$1/written-over" spent 100
cp "$2" touched
"$1/touched" spent 100
touch -d 2001-02-03 touched
"$1/touched" spent 300 &
sleep 0.1
touch touched
wait
"""
SPENDER = """
#include <time.h>
#include <stdlib.h>
static volatile unsigned long sink;
%s
__attribute__((noinline)) void burn_%s(void) { for (int i = 0; i < 100000; i++) sink += i; }
int main(int argc, char **argv)
{
	struct timespec t;
	do {
		burn_%s();
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	} while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < atoi(argv[2]));
	return 0;
}
"""


def check_copied_over():
    # Functions in front, so the first one's places are in those of the second.
    more = "".join(f"void before_{i}(void) {{ sink -= {i}; sink *= 3; }}\n" for i in range(20))
    for name, front in (("first", ""), ("second", more)):
        source = rig.write(f"{name}.c", SPENDER % (front, name, name))
        p = subprocess.run(["cc", "-O1", "-no-pie", "-Wl,--build-id", "-o", rig.path(name), source],
                           stderr=subprocess.PIPE, text=True, check=False)
        rig.check(p.returncode == 0, f"{name} builds {p.stderr}")
    script = 'cd "$1"\n' + OVER
    r = rig.record("-F", "499", "-o", rig.path("over.folded"), "--", "sh", "-c", script, "sh", rig.workdir(), "first", "second")
    rig.check(r.status == 0, "a program is copied over another" + ("" if r.status == 0 else r.text()))
    stacks = [s for s in rig.read_folded(rig.path("over.folded")) if s.comm == "written-over" and s.user]
    of = {name: sum(s.n for s in stacks if f"burn_{name}" in s.user) for name in ("first", "second")}
    wrong = [s.user for s in stacks if any(f.startswith("before_") for f in s.user)]
    touched = [s for s in rig.read_folded(rig.path("over.folded")) if s.comm == "touched" and s.user]
    named = sum(s.n for s in touched if "burn_first" in s.user)
    rig.check(named > 100 and named > 0.9 * rig.total(touched),
              f"a program that was touched has names: {named} of {rig.total(touched)} samples")
    rig.check(20 < of["second"] < 75 and not wrong, f"{of} of {rig.total(stacks)} samples have names, the second's are "
              f"its own; wrong: {wrong[:2]}")


def main():
    rig.need_root()
    check_copied_over()
    build()
    for i in range(N):
        shutil.copy(rig.path("copied"), rig.path(f"short-{i + 1}"))
    p = rig.start([rig.perfwalk(), "record", "-F", "499", "-d", "100", "-o", rig.path("copies.otlp"),
                   "--", "sh", "-c", WORKLOAD, "sh", rig.workdir(), str(N)], stdin=subprocess.DEVNULL,
                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    rig.wait_for("the first two have run", lambda: os.path.exists(rig.path("began")), 90)
    profiler = next(c for c in rig.children_of(p.pid) if rig.comm_of(c) == rig.ROLES["profiler"])
    rig.kill(profiler, signal.SIGSTOP)  # on a busy host it would see the programs while they run
    rig.write("go", "")
    rig.wait_for("the programs are away", lambda: os.path.exists(rig.path("away")), 90)
    rig.kill(profiler, signal.SIGCONT)
    wait_for_turns(profiler)
    rig.write("back", "")
    text, _ = p.communicate(timeout=120)
    rig.check(p.returncode == 0, "a capture" if p.returncode == 0 else text)
    with open(rig.path("copies.otlp"), "rb") as f:
        binary = f.read()
    problems = problems_of(binary, rate=499, file=True)
    rig.check(not problems, "every Mapping is whole"
              + "".join(f"\n    {rule}: {what}" for rule, what in problems[:10]))
    d = otlp.decode(binary).dictionary
    mappings = [(d.string_table[m.filename_strindex], m.memory_limit)
                for m in (d.mapping_table[l.mapping_index] for l in d.location_table)]
    n = sum(name == rig.path("copied") for name, _ in mappings)
    rig.check(n > 5, f"{n} locations of the program that was replaced")
    n = sum(name.startswith(rig.path("short-")) and not limit for name, limit in mappings)
    rig.check(n, f"{n} locations of programs whose file was away")


rig.run(main)
