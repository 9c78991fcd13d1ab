# SPDX-License-Identifier: Apache-2.0
# Rooms: any
"""What configure asked the compiler and the linker for is in the program: each protection is read back from it.
Needs no root. The tests bundle and packages look at the programs that these ship (check_shipped())."""
import os
import re
import subprocess

import rig

PAGE = 0x1000
AARCH64_PROBE = 0x10000  # how much of the stack one step may skip: the smallest guard that the compilers assume

# The flag against jumps to elsewhere, and what functions begin with then.
JUMPS = {"x86_64": ("-fcf-protection=full", "endbr64"),
         "aarch64": ("-mbranch-protection=standard", "paciasp|hint\t#0x19|bti")}


def read(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace", check=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout


def takes(compiler, flag):
    """Whether the compiler of the build knows a flag that old ones lack."""
    return subprocess.run([*compiler, "-Werror", flag, "-S", "-o", os.devnull, "-x", "c", os.devnull], check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def variable(build, name):
    with open(os.path.join(build, "Makefile"), encoding="utf-8") as f:
        return re.search(rf"^{name} = ?(.*)$", f.read(), re.M)[1]


def segments(program):
    """(type, flags) of each program header."""
    rows = re.findall(r"^  ([A-Z_]+) +(?:0x[0-9a-f]+ +){5}([RWE ]{3}) ", read("readelf", "-lW", program), re.M)
    rig.check(len(rows) >= 8, f"readelf shows {len(rows)} segments")
    return rows


def check_segments(program):
    rows = segments(program)
    rig.check(("GNU_STACK", "RW ") in rows, "the stack is not executable")
    rig.check("GNU_RELRO" in (kind for kind, _ in rows), "a part of the data is read-only after the start (RELRO)")
    loaded = [flags for kind, flags in rows if kind == "LOAD"]
    rig.check(not [f for f in rows if "W" in f[1] and "E" in f[1]], f"nothing is both written and run: {loaded}")
    rig.check("R E" in loaded and "R  " in loaded, "code is apart from what is only read")


def check_dynamic(program):
    text = read("readelf", "-dW", program)
    flags = " ".join(re.findall(r"\(FLAGS(?:_1)?\) +(?:Flags: )?(.*)", text)).split()
    rig.check("PIE" in flags, "the program goes to any address (PIE)")
    rig.check(("BIND_NOW" in flags or "(BIND_NOW)" in text) and "NOW" in flags,
              "all its calls are bound at its start, so RELRO covers their table")
    rig.check("(TEXTREL)" not in text, "no relocations in code")
    return text


def functions(program):
    """Name and instructions of each function."""
    text = read("objdump", "-d", "--no-show-raw-insn", program)
    for name, body in re.findall(r"^[0-9a-f]+ <([^>@]+)>:\n((?:(?!\n\n).)*)", text, re.M | re.S):
        yield name, [line.split("\t", 1)[1].strip() for line in body.splitlines() if "\t" in line]


def foreign(compiler):
    """Functions of libiberty, which is linked in, and which its packager compiled."""
    archive = read(*compiler, "-print-file-name=libiberty.a").strip()
    return {line.split()[-1] for line in read("nm", "--defined-only", archive).splitlines() if " t " in line.lower()}


def skipped_stack(program, others, machine):
    """Functions of ours that move the stack by more than a guard page without touching it."""
    limit = PAGE if machine == "x86_64" else AARCH64_PROBE
    move = r"sub +\$0x([0-9a-f]+),%rsp" if machine == "x86_64" else r"sub\tsp, sp, #0x([0-9a-f]+)"
    found = []
    n = 0
    for name, body in functions(program):
        if name.split(".")[0] in others:
            continue
        n += 1
        for line in body:
            m = re.search(move, line)
            step = int(m[1], 16) << (12 if "lsl" in line else 0) if m else 0
            if limit < step < 1 << 31:
                found.append(f"{name}: {line}")
    rig.check(n > 1000, f"objdump shows {n} functions of ours")
    return found


def check_imports(program):
    imported = set(re.findall(r" [Uw] (\w+)", read("nm", "-D", program)))
    rig.check("__stack_chk_fail" in imported, "overwritten stacks are noticed")
    checked = sorted(name for name in imported if re.fullmatch(r"__\w+_chk", name))
    rig.check(len(checked) >= 5, f"the C library checks sizes: {' '.join(checked)}")


def check_shadow_stack(program, compiler, machine):
    if machine == "x86_64" and takes(compiler, JUMPS[machine][0]):
        rig.check("SHSTK" in read("readelf", "-nW", program), "it may run with a shadow stack")


def check_flags(build, debug):
    """gcc writes its options into the debugging information of each file that it compiles."""
    flags = [x for x in variable(build, "HARDENING_CFLAGS").split() if x.startswith("-f") and "=/" not in x and "-map=" not in x]
    rows = re.findall(r"DW_AT_producer .*: (GNU C\d.*)", read("readelf", "--debug-dump=info", "--dwarf-depth=1", debug))
    if not rows:
        rig.leave_out("which options the compiler had: only gcc tells")
        return
    lacking = sorted({flag for row in rows for flag in flags if flag not in row.split()})
    rig.check(len(rows) > 100 and not lacking, f"{len(rows)} files were compiled with {' '.join(flags)}"
              + "".join(f"\n    not all with {flag}" for flag in lacking))


def check_shipped(program, debug, build, libraries=()):
    """One that was stripped, what was taken from it (None: it is not shipped), and where alone it looks for its libraries."""
    check_segments(program)
    path = re.findall(r"\((?:RPATH|RUNPATH)\) .*\[(.*)\]", check_dynamic(program))
    rig.check(path == list(libraries), f"the path of its libraries: {path or 'the usual one'}")
    check_imports(program)
    check_shadow_stack(program, variable(build, "CC").split(), variable(build, "host_cpu"))
    if debug:
        check_flags(build, debug)


def check_code(program, compiler, machine):
    guards = sum("__stack_chk_fail" in line for _, body in functions(program) for line in body)
    rig.check(guards > 200, f"the stack is checked at {guards} places: more than where there are arrays of bytes")
    if machine not in JUMPS:
        rig.leave_out(f"how a program of {machine} moves its stack, and which jumps it refuses, is not known here")
        return
    if takes(compiler, "-fstack-clash-protection"):
        found = skipped_stack(program, foreign(compiler), machine)
        rig.check(not found, "no function skips the page that guards the stack" + "".join("\n    " + f for f in found))
    flag, first = JUMPS[machine]
    if takes(compiler, flag):
        bodies = dict(functions(program))
        rig.check(re.match(first, bodies["main"][0]), f"main begins with {bodies['main'][0]}: jumps to elsewhere are refused")
    if takes(compiler, "-ftrivial-auto-var-init=zero"):
        rig.check("-ftrivial-auto-var-init=zero" in variable(os.path.dirname(program), "HARDENING_CFLAGS"),
                  "configure asks for locals that begin with 0")


def main():
    rig.need_programs("readelf", "objdump", "nm")
    program = rig.perfwalk()
    build = os.path.dirname(program)
    if not os.path.exists(os.path.join(build, "Makefile")):
        rig.skip("the program under test is not in its build directory")
    if "-fsanitize" in variable(build, "PW_CFLAGS"):
        rig.skip("the program has sanitizers")
    check_shipped(program, program, build)
    check_code(program, variable(build, "CC").split(), variable(build, "host_cpu"))


if __name__ == "__main__":
    rig.run(main)
