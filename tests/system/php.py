# SPDX-License-Identifier: Apache-2.0
# Rooms: runtimes src/reader src/profiler src/opener src/broker src/cmd
"""Frames of PHP, without an extension and without flags: a program whose chains of calls PHP itself has said is read at
each sample. `PHP="COMMAND..."` names other commands than the host's php (a comma stands for a space)."""
import re

import rig
from chained import Chains, Interpreter

PHP = Interpreter("php", "calls.php")
# Native functions that only one of them calls.
NATIVE = {"chain_sha": "PHP_SHA1", "chain_md5": "PHP_MD5", "chain_match": "pcre2_"}


def check_version(what, php):
    chains = [line.split() for line in PHP.says(php)]
    rig.check(len(chains) >= 60, f"{what}: it says {len(chains)} chains of calls")
    p = PHP.start(php)
    stacks = PHP.record(p, PHP.seconds)
    rig.end(p)
    Chains(chains, NATIVE).check(what, stacks)


def check_parked(what, php):
    """debug runtime says what PHP itself says of a chain that goes through all, with the lines."""
    _, truth, out = PHP.parked(php, lambda lines: lines and lines[-1].startswith("{main} "))
    release = re.match(r"PHP (7\.4|8\.\d+)", out)
    rig.check(release and "untested" not in out, f"{what}: it is PHP {release and release[1]}")
    frames = re.findall(r"^  (\S+)(?: \(.*?(?::(\d+))?\))?(?:, native code called it)?$", out.partition("thread ")[2], re.M)
    ours = [f"{name} {line or 0}" for name, line in frames]
    rig.check(ours == ["sleep 0", *truth], f"{what}: {len(truth)} frames with lines, as PHP has them"
              + "".join(f"\n{a} - {b}" for a, b in zip(ours[1:], truth) if a != b))


def main():
    rig.need_root()
    phps = PHP.commands()
    for php in phps:
        check_version(" ".join(php), php)
        check_parked(" ".join(php), php)
    PHP.check_switches(phps[0], "execute_ex", ("execute_ex", "zend_"))


if __name__ == "__main__": # tests/kernels has its judges
    rig.run(main)
