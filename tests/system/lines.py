# SPDX-License-Identifier: Apache-2.0
# Rooms: symbolize src/symbolizer src/render
"""Source lines and inlined functions through the whole tree: a program built with -g, its debugging
information in the file itself, in a separate one found by build id, and split off (.dwo, .dwp); folded
stacks, the flame graph page and pprof show them, and the options take them away."""
import base64
import gzip
import os
import re
import subprocess

import rig

SOURCE = r"""
#include <stdint.h>
static inline __attribute__((always_inline)) uint64_t inner(uint64_t a)
{
	for (int i = 0; i < 1000; i++)
		a = a * 31 + (a >> 7);
	return a;
}
static inline __attribute__((always_inline)) uint64_t middle(uint64_t a)
{
	return inner(a) + 1;
}
__attribute__((noinline)) uint64_t outer(uint64_t a)
{
	return middle(a) ^ 5;
}
int main(void)
{
	uint64_t s = 1;
	for (int i = 0; i < 500000; i++)
		s += outer(s);
	return s == 7;
}
"""
CHAIN = ["main", "outer", "middle_[i]", "inner_[i]"]


def capture(program, *options):
    """The folded stacks, the page and the pprof file of a run of the program."""
    files = {s: rig.path(f"lines.{s}") for s in ("html", "folded", "pb.gz")}
    r = rig.record("-F", "199", *options, *(x for f in files.values() for x in ("-o", f)), "--", program)
    rig.check(r.status == 0, "the capture" + ("" if r.status == 0 else r.text()))
    with open(files["html"], encoding="utf-8") as f:
        page = f.read()
    with gzip.open(files["pb.gz"]) as f:
        pprof = f.read()
    return rig.read_folded(files["folded"]), page, pprof


def share(stacks, names):
    """How many of the stacks that are in outer have these names next to each other."""
    mine = [s for s in stacks if "outer" in s.user]
    right = sum(s.n for s in mine if any(s.user[i:i + len(names)] == names
                                             for i in range(len(s.user))))
    return right, sum(s.n for s in mine)


def check_shown(what, program):
    stacks, page, pprof = capture(program)
    right, n = share(stacks, CHAIN)
    rig.check(n > 20 and right >= 0.9 * n, f"{what}: {right} of {n} stacks hold {' > '.join(CHAIN)}")
    rig.check(b"lines.c" in pprof, f"{what}: pprof names the source file")
    # "kind" 3: see enum frame_kind. The loader may have some of its own, where libc has lines.
    kinds = re.search(r'"kind":"([A-Za-z0-9+/=]*)"', page)
    rig.check(kinds and base64.b64decode(kinds.group(1)).count(3) >= 2, f"{what}: the page marks two functions")


def check_split(source):
    """-gsplit-dwarf: in the place the compiler wrote to, beside the program, in a package, nowhere."""
    os.mkdir(rig.path("objects"))
    program, dwo = rig.path("splitted"), rig.path("objects", "lines.dwo")
    subprocess.run(["gcc", "-g", "-gsplit-dwarf", "-gdwarf-4", "-O2", "-c", source], cwd=rig.path("objects"), check=True)
    subprocess.run(["gcc", "-o", program, rig.path("objects", "lines.o")], check=True)
    check_shown("split", program)
    os.rename(dwo, rig.path("lines.dwo"))
    check_shown("split, beside the program", program)
    subprocess.run(["dwp", "-o", program + ".dwp", rig.path("lines.dwo")], check=True)
    os.unlink(rig.path("lines.dwo"))
    check_shown("split, in a package", program)
    # Only what is really called so is opened: a link to it could be a link to anything.
    os.rename(program + ".dwp", rig.path("package"))
    os.symlink("package", program + ".dwp")
    stacks, _, pprof = capture(program)
    right, n = share(stacks, CHAIN[:2])
    rig.check(n > 20 and right >= 0.9 * n and not any(name == CHAIN[2] for s in stacks for name in s.user),
              f"split, package behind a link: {right} of {n} stacks end in outer")
    rig.check(b"lines.c" in pprof, "split, package behind a link: the lines are the program's own")


def main():
    rig.need_programs("gcc", "objcopy", "dwp")
    rig.need_root()
    program, source = rig.path("lines"), rig.write("lines.c", SOURCE)
    subprocess.run(["gcc", "-g", "-O2", "-Wl,--build-id=sha1", "-o", program, source], check=True)
    check_shown("in the file", program)

    stacks, _, pprof = capture(program, "--no-inline")
    right, n = share(stacks, CHAIN[:2])
    rig.check(n > 20 and right >= 0.9 * n and not any("[i]" in name for s in stacks for name in s.user),
              f"--no-inline: {right} of {n} stacks end in outer")
    rig.check(b"lines.c" in pprof, "--no-inline: the lines stay")
    stacks, _, pprof = capture(program, "--no-lines")
    right, n = share(stacks, CHAIN)
    rig.check(n > 20 and right >= 0.9 * n, f"--no-lines: {right} of {n} stacks hold inlined functions")
    rig.check(b"lines.c" not in pprof, "--no-lines: pprof names no source file")

    check_split(source)
    p = subprocess.run(["readelf", "-n", program], stdout=subprocess.PIPE, text=True, check=True)
    build_id = re.search(r"Build ID: ([0-9a-f]+)", p.stdout).group(1)
    directory = f"/usr/lib/debug/.build-id/{build_id[:2]}"
    debug = f"{directory}/{build_id[2:]}.debug"
    rig.make_directory(directory)
    try:
        subprocess.run(["objcopy", "--only-keep-debug", "--compress-debug-sections=zlib", program, debug],
                       check=True)
        subprocess.run(["strip", program], check=True)
        check_shown("in a separate file", program)
    finally:
        os.unlink(debug)


rig.run(main)
