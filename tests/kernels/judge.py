# SPDX-License-Identifier: Apache-2.0
"""judge.py NAME FOLDED: PASS or FAIL, and why: what a guest has recorded of a workload, or of one in another flavour
(NAME-FLAVOUR), as workloads.py judges it."""
import os
import sys

import rig
from expect import Expectation

WANTED = 200  # user samples


def main():
    name, folded = sys.argv[1:]
    # Where a record was lost, timeout(1) of busybox has the name of the program that it becomes.
    stacks = [s for s in rig.read_folded(folded)
              if s.user and s.comm == name[:15] and not s.user[0].startswith("[busybox")]
    verdicts = [(rig.total(stacks) >= WANTED, f"{rig.total(stacks)} user samples (wanted {WANTED})")]
    if stacks:
        expectation = Expectation(os.path.join(rig.WORKLOADS, name.partition("-")[0] + ".expect"))
        expectation.entries.append("[ld-linux*")  # starting takes long in an emulated machine
        verdicts += expectation.judge(stacks)
    holds = all(good for good, _ in verdicts)
    print("PASS" if holds else "FAIL", "; ".join(text for good, text in verdicts if good == holds))


main()
