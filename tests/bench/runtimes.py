# SPDX-License-Identifier: Apache-2.0
"""What a stack of each interpreter here costs whoever reads it: reads of the process's memory, and CPU time.
runtimes.py PROGRAM [--rounds N] [--command "COMMAND..."]...; PROGRAM is the one of runtimes.c."""
import argparse
import os
import re
import shutil
import subprocess
import time

WORKLOADS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../workloads")
DEFAULT = ["python3 calls.py 1", "php calls.php", "php -d opcache.enable_cli=1 -d opcache.jit_buffer_size=32M calls.php",
           "ruby calls.rb", "ruby --yjit calls.rb", "node calls.js"]
# The most telling first.
FILES = [r"/libpython3\.\d+m?\.so", r"/python3\.\d+m?$", r"/libphp[\d.]*\.so", r"/php[\d.]*$", r"/libruby\S*\.so", r"/ruby[\d.]*$",
         r"/libjvm\.so", r"/libnode\.so", r"/node$"]


def image_of(pid):
    """Where the first byte of the interpreter's file is."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        lines = f.read().splitlines()
    return next(line.partition("-")[0] for pattern in FILES for line in lines if re.search(pattern, line))


def cpu_seconds(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0]) / 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--command", action="append")
    args = parser.parse_args()
    program = os.path.abspath(args.program)
    for command in args.command or DEFAULT:
        if not shutil.which(command.split()[0]):
            continue
        with subprocess.Popen(command.split(), cwd=WORKLOADS, stdout=subprocess.DEVNULL) as p:
            while cpu_seconds(p.pid) < 0.7:
                time.sleep(0.05)
            print(command, flush=True)
            subprocess.run([program, str(p.pid), image_of(p.pid), str(args.rounds)], check=False)
            p.kill()


main()
