# SPDX-License-Identifier: Apache-2.0
# Rooms: unwind src/cmd
"""perfwalk debug: the rows of real libraries are those that readelf computes, a recorded sample is explained,
and damaged or hostile files get an error that names file and cause. Needs no root."""
import glob
import gzip
import os
import random
import re
import subprocess

import rig

DATA = os.path.join(os.path.dirname(__file__), "..", "data", "unwind")


def debug(*args, status=0):
    p = subprocess.run([rig.perfwalk(), "debug", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       timeout=120, check=False)
    err = p.stderr.decode()
    if p.returncode != status:
        rig.fail(f"perfwalk debug {' '.join(args)}: exit {p.returncode}, not {status}: {err}")
    return p.stdout.decode() if status == 0 else err


def readelf_rows(path):
    """{address: {"CFA": text, register: text}} of .eh_frame, for FDEs with rows of their own."""
    text = subprocess.run(["readelf", "--debug-dump=frames-interp", path], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False, text=True).stdout
    rows, columns, end = {}, None, 0
    for line in text.splitlines():
        m = re.search(r" FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
        if m:
            end = int(m.group(2), 16)
            columns = None
        elif " CIE " in line:
            end = 0
        elif line.lstrip().startswith("LOC"):
            columns = line.split()[1:]
        elif columns and end and re.match(r"[0-9a-f]{16} ", line):
            fields = line.split()
            address = int(fields[0], 16)
            if address < end:
                rows[address] = dict(zip(columns, fields[1:]))
    return rows


def our_rows(path):
    rows = {}
    for line in debug("unwind", path).splitlines():
        m = re.match(r"\s*([0-9a-f]+)-([0-9a-f]+)\s+\.eh_frame\s+(.*)", line)
        if m:
            rest = re.sub(r"\{[^}]*\}", "exp", m.group(3))
            rows[int(m.group(1), 16)] = dict(f.split("=", 1) for f in rest.split() if "=" in f)
    return rows


DWARF_NAMES = {f"r{i}": name for i, name in enumerate("rax rdx rcx rbx rsi rdi rbp rsp".split())}


def same(theirs, ours):
    """readelf says u for a register without a rule, exp for every expression."""
    for name, value in theirs.items():
        have = ours.get(name, "u")
        if value in ("exp", "vexp"):
            # r + offset and a load from it are expressions for readelf, and have a simpler form here
            good = have not in ("u",)
        elif name == "CFA":
            good = have == value.replace("+0", "")
        elif value in ("u", "s"):
            good = have in ("u", "undefined", "same")
        else:
            good = have in (f"[{value}]", DWARF_NAMES.get(value, value))
        if not good:
            return False
    return True


def rows():
    programs = [p for pattern in ("/usr/bin/true", "/lib/x86_64-linux-gnu/libm.so.6", "/lib/x86_64-linux-gnu/libgcc_s.so.1")
                for p in glob.glob(pattern)]
    for program in programs:
        theirs, ours = readelf_rows(program), our_rows(program)
        missing = [a for a in theirs if a not in ours]
        wrong = [a for a in theirs if a in ours and not same(theirs[a], ours[a])]
        # Rows of one address after another: readelf shows them all, the last holds.
        rig.check(len(theirs) > 20 and not missing and not wrong,
                  f"{program}: {len(theirs)} rows as readelf has them" +
                  (f"; missing {missing[:3]}, wrong {[(hex(a), theirs[a], ours[a]) for a in wrong[:3]]}"
                   if missing or wrong else ""))
    address = next(iter(our_rows(programs[0])))
    one = debug("unwind", programs[0], hex(address))
    rig.check(f"{address:x}-" in one and one.count("CFA=") == 1, "one row by its address")


def samples():
    name = os.path.join(DATA, "signal.samples.gz")
    text = debug("sample", name, "0")
    with open(os.path.join(DATA, "signal.expect"), encoding="utf-8") as f:
        expected = f.read().split("sample 1:")[0].splitlines()
    outcome = re.match(r"sample 0: ([a-z ]+),", expected[0]).group(1)
    frames = [line.split()[0] for line in expected[1:] if line.startswith("\t")]
    shown = [os.path.basename(line.split()[1]) for line in text.splitlines() if line.startswith("#")]
    rig.check(shown == frames, f"sample 0 is explained frame by frame: {len(shown)} of them")
    rig.check(f"{len(frames)} frames, {outcome}:" in text and "read  ra" in text and ".eh_frame: CFA=" in text,
              "with rules, words read, and why it ended")
    everything = debug("sample", name)
    rig.check(everything.count("\nsample ") > 5 and "(signal frame)" in everything, "all samples without a number")


def bad_files():
    with open(os.path.join(DATA, "signal.samples.gz"), "rb") as f:
        packed = f.read()
    good = gzip.decompress(packed)
    cases = {
        "noise": (os.urandom(300), "not a file of recorded samples"),
        "cut.gz": (packed[:len(packed) // 2], "ends too early"),
        "cut": (good[:-1], "in the middle of a block"),
        "version": (good[:8] + b"\x09" + good[9:], "version 9"),
        "machine": (good[:12] + b"\x28" + good[13:], "ELF machine 40; this perfwalk walks those of x86_64"),
        "bomb.gz": (gzip.compress(b"PWSAMPLE" + bytes(80 << 20), 1), "larger than 64 MiB"),
    }
    for name, (content, why) in cases.items():
        with open(rig.path(name), "wb") as f:
            f.write(content)
        err = debug("sample", rig.path(name), status=1)
        rig.check(name in err and why in err, f"{name}: {err.strip()}")
    err = debug("sample", os.path.join(DATA, "aarch64", "signed.samples.gz"), status=1)
    rig.check("samples of aarch64; this perfwalk walks those of x86_64" in err, f"of another processor: {err.strip()}")
    rnd = random.Random(1)
    for i in range(12):
        bad = bytearray(good)
        for _ in range(30):
            bad[rnd.randrange(16, len(bad))] = rnd.randrange(256)
        with open(rig.path("mutated"), "wb") as f:
            f.write(bad)
        p = subprocess.run([rig.perfwalk(), "debug", "sample", rig.path("mutated")], stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, timeout=120, check=False)
        if p.returncode not in (0, 1) or b"died" in p.stderr:
            rig.fail(f"mutation {i}: exit {p.returncode}: {p.stderr.decode()}")
    rig.check(True, "12 mutations are read or refused")
    for args, status, why in ((("unwind", "/etc/passwd"), 1, "not an ELF"), (("unwind", "/usr/bin/true", "1"), 1, "no code at 0x1"),
                              (("unwind", "/usr/bin/true", "x"), 2, "expected an address"), (("sample",), 2, "needs a file"),
                              ((), 2, "sample or unwind"), (("sample", "/nowhere"), 1, "No such file"),
                              (("sample", os.path.join(DATA, "signal.samples.gz"), "9999"), 1, "has no sample 9999")):
        err = debug(*args, status=status)
        rig.check(why in err, f"debug {' '.join(map(os.path.basename, args))}: {err.strip()}")


def main():
    rig.need_programs("readelf")
    rows()
    samples()
    bad_files()


rig.run(main)
