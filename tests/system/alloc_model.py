# SPDX-License-Identifier: Apache-2.0
"""What the tests of allocations share: the library that is preloaded, what the workload heap says of itself, and the
model of what is sampled of it."""
import glob
import math
import os
import re

import rig

KINDS = ("alloc_space", "inuse_space", "alloc_objects", "inuse_objects")


def library():
    """Of the program under test: beside it, or installed."""
    here = os.path.join(os.path.dirname(rig.perfwalk()), "alloc", "libperfwalk-alloc.so")
    return here if os.path.exists(here) else glob.glob("/usr/*lib*/perfwalk/libperfwalk-alloc.so")[0]


def truth(text):
    """[(path, size, blocks allocated, blocks in use)]"""
    return [(m[1], *map(int, m.groups()[1:]))
            for m in re.finditer(r"^(allocate_\w+) size (\d+) allocated (\d+) in-use (\d+)$", text, re.M)]


def compare(found, paths, times, what, mean, kinds=KINDS, rounded=0):
    """Each sum {kind: {path: sum}} is that of the paths, so many times, by five standard deviations. rounded: how
    often each sum was rounded besides once for each block."""
    worst = 0, ""
    for path, size, allocated, in_use in paths:
        picked = 1 - math.exp(-size / mean)  # how likely a block is
        for kind in kinds:
            n = times * (allocated if kind.startswith("alloc") else in_use)
            unit = size if kind.endswith("space") else 1
            # So many of n are picked, each told for 1 / picked; objects as whole numbers.
            sd = unit * math.sqrt(n * (1 - picked) / picked + n * picked / 4 + rounded)
            z = (found[kind].get(path, 0) - n * unit) / sd
            worst = max(worst, (abs(z), f"{kind} of {path} is {found[kind].get(path, 0)}, not {n * unit}"))
    rig.check(worst[0] < 5, f"{what}: the worst of {len(paths) * len(kinds)} sums is {worst[0]:.1f} standard deviations "
              f"off: {worst[1]}")
