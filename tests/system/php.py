# SPDX-License-Identifier: Apache-2.0
# Rooms: runtimes src/reader src/profiler src/opener src/broker src/cmd
"""Frames of PHP, without an extension and without flags: a program whose chains of calls PHP itself has said is read at
each sample. `PHP="COMMAND..."` names other commands than the host's php (a comma stands for a space)."""
import os
import re
import shutil
import subprocess

import rig
from chained import Chains, state_of

SECONDS = float(os.environ.get("PHP_SECONDS", "2"))
RATE = os.environ.get("PHP_RATE", "199")
PROGRAM = os.path.join(rig.WORKLOADS, "calls.php")
# Native functions that only one of them calls.
NATIVE = {"chain_sha": "PHP_SHA1", "chain_md5": "PHP_MD5", "chain_match": "pcre2_"}


def chains_of(php):
    out = subprocess.run([*php, PROGRAM, "once"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [line.split() for line in out.splitlines()]


def start(php):
    p = rig.start([*php, PROGRAM])
    rig.wait_for("the program to run", lambda: rig.cpu_seconds(p.pid) > 0.3)
    return p


def record(p, seconds, *options):
    folded = rig.path("php.folded")
    rig.record_cpu(seconds, [p.pid], "-p", p.pid, "-F", RATE, *options, "-o", folded)
    return rig.read_folded(folded)


def check_version(what, php):
    chains = chains_of(php)
    rig.check(len(chains) >= 60, f"{what}: it says {len(chains)} chains of calls")
    p = start(php)
    stacks = record(p, SECONDS)
    rig.end(p)
    Chains(chains, NATIVE).check(what, stacks)


def check_parked(what, php):
    """debug runtime says what PHP itself says of a chain that goes through all, with the lines."""
    p = rig.start([*php, PROGRAM, "parked"], stdout=subprocess.PIPE, text=True)
    truth = []
    while not truth or not truth[-1].startswith("{main} "):
        truth.append(p.stdout.readline().rstrip("\n") or rig.fail(f"{what}: the program ended"))
    rig.wait_for("the program to sleep", lambda: state_of(p.pid) == "S")
    out = subprocess.run([rig.perfwalk(), "debug", "runtime", str(p.pid)], stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    rig.end(p)
    release = re.match(r"PHP (7\.4|8\.\d+)", out)
    rig.check(release and "untested" not in out, f"{what}: it is PHP {release and release[1]}")
    frames = re.findall(r"^  (\S+)(?: \(.*?(?::(\d+))?\))?(?:, native code called it)?$", out.partition("thread ")[2], re.M)
    ours = [f"{name} {line or 0}" for name, line in frames]
    rig.check(ours == ["sleep 0", *truth], f"{what}: {len(truth)} frames with lines, as PHP has them"
              + "".join(f"\n{a} - {b}" for a, b in zip(ours[1:], truth) if a != b))


def check_switches(php):
    p = start(php)
    frames = {f for s in record(p, 0.3, "--no-interpreters") for f in s.user}
    rig.check("execute_ex" in frames and "chain_main" not in frames, "--no-interpreters: native frames alone")
    stacks = [s for s in record(p, 1, "--no-native-frames") if "chain_main" in s.user]
    native = {f for s in stacks for f in s.user if f.startswith(("execute_ex", "zend_"))}
    rig.check(len(stacks) > 10 and not native, f"--no-native-frames: {len(stacks)} stacks without them {native or ''}")
    rig.end(p)


def main():
    rig.need_root()
    if "PHP" not in os.environ:
        rig.need_programs("php")
    phps = [c.split(",") for c in os.environ.get("PHP", os.path.realpath(shutil.which("php") or "php")).split()]
    for php in phps:
        check_version(" ".join(php), php)
        check_parked(" ".join(php), php)
    check_switches(phps[0])


rig.run(main)
