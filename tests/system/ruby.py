# SPDX-License-Identifier: Apache-2.0
# Rooms: runtimes src/reader src/profiler src/opener src/broker src/cmd
"""Frames of Ruby, without a gem and without flags: a program whose chains of calls Ruby itself has said is read at each
sample. `RUBY="COMMAND..."` names other commands than the host's ruby (a comma stands for a space)."""
import os
import re
import shutil
import subprocess

import rig
from chained import Chains, state_of

SECONDS = float(os.environ.get("RUBY_SECONDS", "2"))
RATE = os.environ.get("RUBY_RATE", "199")
PROGRAM = os.path.join(rig.WORKLOADS, "calls.rb")
# Native functions that only one of them calls.
NATIVE = {"chain_md5": "rb_Digest_MD5|MD5_", "chain_crc": "crc32", "chain_join": "rb_ary_join"}


def chains_of(ruby):
    out = subprocess.run([*ruby, PROGRAM, "once"], stdout=subprocess.PIPE, text=True, check=True).stdout
    chains = [line.split("|") for line in out.splitlines()]
    # Of the threads that work, nothing is outside of their blocks.
    inner = [["block (2 levels) in <main>"] + c[1:] for c in chains if c[0] == "<main>"]
    return chains, chains[-1:] + inner + [c for c in chains if c[0] != "<main>"]


def start(ruby, *arguments):
    p = rig.start([*ruby, PROGRAM, *arguments])
    rig.wait_for("the program to run", lambda: rig.cpu_seconds(p.pid) > 0.5)
    return p


def record(p, seconds, *options):
    folded = rig.path("ruby.folded")
    rig.record_cpu(seconds, [p.pid], "-p", p.pid, "-F", RATE, *options, "-o", folded)
    return rig.read_folded(folded)


def check_version(what, ruby):
    main, threads = chains_of(ruby)
    rig.check(len(main) >= 60, f"{what}: it says {len(main)} chains of calls")
    for chains, arguments in ((main, []), (threads, ["threads"])):
        p = start(ruby, *arguments)
        stacks = record(p, SECONDS)
        rig.end(p)
        Chains(chains, NATIVE).check(" ".join([what, *arguments]), stacks)


def check_parked(what, ruby):
    """debug runtime says what Ruby itself says of a chain that goes through all, with the lines of what is in Ruby."""
    p = rig.start([*ruby, PROGRAM, "parked"], stdout=subprocess.PIPE, text=True)
    truth = []
    while not truth or not truth[-1].endswith("|each") or not truth[-2].endswith("|each"):
        truth.append(p.stdout.readline().rstrip("\n") or rig.fail(f"{what}: the program ended"))
    rig.wait_for("the program to sleep", lambda: state_of(p.pid) == "S")
    out = subprocess.run([rig.perfwalk(), "debug", "runtime", str(p.pid)], stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    rig.end(p)
    release = re.match(r"Ruby (\d\.\d)", out)
    rig.check(release and "untested" not in out, f"{what}: it is Ruby {release and release[1]}")
    thread = re.search(rf"^thread {p.pid},.*\n((?:  .*\n)+)", out, re.M)[1]
    frames = re.findall(r"^  (.*?)(?: \(\S*?(?::(\d+))?\))?(?:, native code called it)?$", thread, re.M)[:-1]
    ours = [name if not line else f"{line}|{name}" for name, line in frames]
    # Ruby gives a method that is written in C the line of its caller.
    expected = ["sleep"] + [t if "|" in o else t.partition("|")[2] for o, t in zip(ours[1:], truth)]
    rig.check(ours == expected and len(ours) == len(truth) + 1,
              f"{what}: {len(truth)} frames with lines, as Ruby has them"
              + "".join(f"\n{a} - {b}" for a, b in zip(ours, expected) if a != b))


def check_switches(ruby):
    p = start(ruby)
    frames = {f for s in record(p, 0.3, "--no-interpreters") for f in s.user}
    rig.check("rb_ary_each" in frames and "chain_main" not in frames, "--no-interpreters: native frames alone")
    stacks = [s for s in record(p, 1, "--no-native-frames") if "chain_main" in s.user]
    native = {f for s in stacks for f in s.user if f.startswith(("rb_vm_", "ruby_"))}
    rig.check(len(stacks) > 10 and not native, f"--no-native-frames: {len(stacks)} stacks without them {native or ''}")
    rig.end(p)


def main():
    rig.need_root()
    if "RUBY" not in os.environ:
        rig.need_programs("ruby")
    rubies = [c.split(",") for c in os.environ.get("RUBY", os.path.realpath(shutil.which("ruby") or "ruby")).split()]
    for ruby in rubies:
        check_version(" ".join(ruby), ruby)
        check_parked(" ".join(ruby), ruby)
    check_switches(rubies[0])


rig.run(main)
