# SPDX-License-Identifier: Apache-2.0
# Rooms: runtimes src/reader src/profiler src/opener src/broker src/cmd
"""Frames of Ruby, without a gem and without flags: a program whose chains of calls Ruby itself has said is read at each
sample. `RUBY="COMMAND..."` names other commands than the host's ruby (a comma stands for a space)."""
import re
import subprocess

import rig
from chained import Chains, Interpreter

RUBY = Interpreter("ruby", "calls.rb")
# Native functions that only one of them calls.
NATIVE = {"chain_md5": "rb_Digest_MD5|MD5_", "chain_crc": "crc32", "chain_join": "rb_ary_join"}


def chains_of(ruby):
    chains = [line.split("|") for line in RUBY.says(ruby)]
    # Of the threads that work, nothing is outside of their blocks.
    inner = [["block (2 levels) in <main>"] + c[1:] for c in chains if c[0] == "<main>"]
    return chains, chains[-1:] + inner + [c for c in chains if c[0] != "<main>"]


def check_version(what, ruby):
    main, threads = chains_of(ruby)
    rig.check(len(main) >= 60, f"{what}: it says {len(main)} chains of calls")
    passing = threads + [["<main>", "loop", "block in <main>", name] for name in ("start", "value")]
    for chains, arguments in ((main, []), (threads, ["threads"]), (passing, ["passing"])):
        p = RUBY.start(ruby, *arguments)
        stacks = RUBY.record(p, RUBY.seconds)
        rig.end(p)
        Chains(chains, NATIVE).check(" ".join([what, *arguments]), stacks)


def check_parked(what, ruby):
    """debug runtime says what Ruby itself says of a chain that goes through all, with the lines of what is in Ruby."""
    pid, truth, out = RUBY.parked(ruby, lambda lines: len(lines) > 1 and all(x.endswith("|each") for x in lines[-2:]))
    release = re.match(r"Ruby (\d\.\d)", out)
    rig.check(release and "untested" not in out, f"{what}: it is Ruby {release and release[1]}")
    thread = re.search(rf"^thread {pid},.*\n((?:  .*\n)+)", out, re.M)[1]
    frames = re.findall(r"^  (.*?)(?: \(\S*?(?::(\d+))?\))?(?:, native code called it)?$", thread, re.M)[:-1]
    if release[1] >= "3.4":
        # It leaves these out of its own backtraces.
        frames = [f for f in frames if not f[0].startswith(("rescue in ", "ensure in "))]
    ours = [name if not line else f"{line}|{name}" for name, line in frames]
    # Ruby gives a method that is written in C the line of its caller.
    expected = ["sleep"] + [t if "|" in o else t.partition("|")[2] for o, t in zip(ours[1:], truth)]
    rig.check(ours == expected and len(ours) == len(truth) + 1,
              f"{what}: {len(truth)} frames with lines, as Ruby has them"
              + "".join(f"\n{a} - {b}" for a, b in zip(ours, expected) if a != b))


def check_compiled(what, ruby):
    """A native walk ends in code that YJIT has compiled."""
    # Without YJIT, some versions only warn of the option.
    if subprocess.run([*ruby, "--yjit", "-e", "exit RubyVM::YJIT.enabled?"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print(f"not tested: {what} has no YJIT")
        return
    p = RUBY.start([*ruby, "--yjit"])
    for options, all_hidden in (([], False), (["--no-native-frames"], True)):
        stacks = [s.user for s in RUBY.record(p, 0.7, *options) if "chain_main" in s.user]
        n = sum(any(f.startswith("[jit]") for f in s) for s in stacks)
        rig.check(len(stacks) > 5 and (n == 0) == all_hidden,
                  f"{what}, YJIT {' '.join(options)}: {n} of {len(stacks)} stacks have compiled code")
    rig.end(p)


def main():
    rig.need_root()
    rubies = RUBY.commands()
    for ruby in rubies:
        check_version(" ".join(ruby), ruby)
        check_parked(" ".join(ruby), ruby)
    check_compiled(" ".join(rubies[0]), rubies[0])
    RUBY.check_switches(rubies[0], "rb_ary_each", ("rb_vm_", "ruby_"))


if __name__ == "__main__": # tests/kernels has its judges
    rig.run(main)
