# SPDX-License-Identifier: Apache-2.0
# Rooms: src/import src/perf-data src/render src/symbolizer src/profile proto
"""Generated files against the independent model of tests/oracle, for some seconds: what convert, report
and diff make of pprof, OTLP, folded and perf.data files, and what go tool pprof, perf script and two viewers make
of ours. ORACLE_SECONDS and ORACLE_SEED choose; make check-oracle runs longer. Needs no root."""
import os
import re
import subprocess
import sys

import rig


def main():
    command = [sys.executable, os.path.join(rig.TOP, "tests", "oracle", "run.py"), "--real",
               "--seconds", os.environ.get("ORACLE_SECONDS", "20"), "--keep", rig.path("oracle")]
    if os.environ.get("ORACLE_SEED"):
        command += ["--seed", os.environ["ORACLE_SEED"]]
    p = subprocess.Popen(command + [rig.perfwalk()], stdout=subprocess.PIPE, text=True)
    missing = []
    for line in p.stdout:
        rig.say(line.rstrip("\n"))
        left_out = re.match(r"left out: (.*)", line)
        missing += [left_out[1]] if left_out else []
    rig.check(p.wait() == 0, "no output differs from the model")
    for reason in missing:
        rig.leave_out(reason)


rig.run(main)
