# SPDX-License-Identifier: Apache-2.0
# Rooms: src/render src/symbolizer
"""How sure estimates are. Captures are made up here, by chance from shares that are known: about 95%
of the intervals that report gives must contain them, diff must find few changes where nothing did
change, and real ones as often as theory says. Bounds and probabilities are also those of a model
here, of the formula and of fractions. Needs no root."""
import bisect
import itertools
import math
import os
import random
import re
import subprocess
from fractions import Fraction
from statistics import NormalDist

import rig
from pprof_file import pprof

Z = NormalDist().inv_cdf(0.975)
random.seed(4)


def perfwalk(*args, status=0):
    p = subprocess.run([rig.perfwalk(), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       stdin=subprocess.DEVNULL, timeout=120, check=False)
    if p.returncode != status:
        rig.fail(f"perfwalk {' '.join(args)} ends with {p.returncode}:\n{p.stdout}{p.stderr}")
    return p.stdout if status == 0 else p.stderr


def table(*args):
    """Rows by their symbol."""
    lines = [l.split("\t") for l in perfwalk(*args, "--csv", "--percent-limit", "0", "--top", "0").splitlines()]
    return {row[lines[0].index("SYMBOL")]: dict(zip(lines[0], row)) for row in lines[1:]}


def report(name, *args):
    return table("report", name, "--confidence", "--sort", "symbol", *args)


# ---- Made up captures ----

def shares(n):
    """Of n functions, the largest some fifty times the smallest."""
    raw = [1 / (i + n / 50) for i in range(n)]
    return {f"f{i}": x / sum(raw) for i, x in enumerate(raw)}


def draw(truth, n):
    sums = list(itertools.accumulate(truth.values()))
    names = list(truth)
    counts = dict.fromkeys(names, 0)
    for _ in range(n):
        counts[names[bisect.bisect(sums, random.random() * sums[-1])]] += 1
    return counts


def folded(name, counts):
    return rig.write(name, "".join(f"p;main;{f} {k}\n" for f, k in counts.items() if k))


# ---- The model ----

def wilson(k, n):
    middle, half = k / n + Z * Z / 2 / n, Z * math.sqrt(k / n * (1 - k / n) / n + Z * Z / 4 / n / n)
    return [100 * (middle + sign * half) / (1 + Z * Z / n) for sign in (-1, 1)]


def fisher(k0, n0, k1, n1):
    """Twice the smaller tail, with half of what was seen; None: no outcome has less than 5%."""
    both = k0 + k1
    chance = {x: Fraction(math.comb(n1, x) * math.comb(n0, both - x), math.comb(n0 + n1, both))
              for x in range(max(0, both - n0), min(both, n1) + 1)}
    if min(chance[min(chance)], chance[max(chance)]) >= 0.05:
        return None
    tails = [sum(c for x, c in chance.items() if x * sign < k1 * sign) + chance[k1] / 2 for sign in (1, -1)]
    return float(min(1, 2 * min(tails)))


def corrected(p):
    """Benjamini and Hochberg's, by its definition."""
    tested = sorted(x for x in p.values() if x is not None)
    least = {x: min(y * len(tested) / (j + 1) for j, y in enumerate(tested) if y >= x) for x in set(tested)}
    return {f: 1 if x is None else min(1, least[x]) for f, x in p.items()}


# ---- What is checked ----

def bounds():
    counts = {"never": 0, "once": 1, "some": 37, "many": 2000, "most": 7962}
    n = sum(counts.values())
    file = folded("bounds.folded", counts)
    rows = report(file)
    for f, k in counts.items():
        have = [float(rows[f][x]) for x in ("self_low", "self_high")] if k else None
        rig.check(not k or max(abs(a - b) for a, b in zip(have, wilson(k, n))) < 1e-4,
                  f"{k} of {n}: {have}, by the formula {wilson(k, n)}")
    rig.check([float(rows["main"][x]) for x in ("self_low", "total_high")] == [0, 100], "none and all have their ends")
    out = perfwalk("report", file, "--confidence")
    rig.check(re.search(r"of 10000 samples, if that is what the file counts", out), "the head says what it rests on")
    low, high = wilson(2000, n)
    rig.check(re.search(rf"20\.00% +{low:.2f}-{high:.2f} +20\.00% +{low:.2f}-{high:.2f} .* many", out), "the table")
    out = perfwalk("report", file, "--confidence", "--symbol", "^many$", "--callers")
    rig.check(re.search(rf"20\.00% +{low:.2f}-{high:.2f} +many", out), "the tree")
    rig.check(report(file, "--comm", "p") == rows, "a selection is all there is")


def coverage():
    """Functions of which at least eight samples are expected: the others may be in no table at all."""
    truth = shares(150)
    hits = [(low <= 100 * truth[f] <= high) for i in range(30) for f, low, high in
            ((f, float(r["self_low"]), float(r["self_high"]))
             for f, r in report(folded("counts.folded", draw(truth, 5000))).items() if f in truth)]
    rate = sum(hits) / len(hits)
    rig.check(len(hits) > 4000 and 0.93 < rate < 0.97, f"{100 * rate:.1f}% of {len(hits)} intervals contain the truth")


def weighted(sizes, what, merged=False, n=2500, at_most=0.975):
    """Each sample has a size of its own, in the mean that of its function."""
    truth = shares(40)
    whole = sum(p * sizes(f) for f, p in truth.items())
    hits = {sizes(f): [] for f in truth}
    for _ in range(25):
        samples = [(f, [1, 1 + int(random.gammavariate(2, 5e5 * sizes(f)))])
                   for f, k in draw(truth, n).items() for _ in range(k)]
        if merged:
            sums = {f: [0, 0] for f in truth}
            for f, (one, size) in samples:
                sums[f] = [sums[f][0] + one, sums[f][1] + size]
            samples = list(sums.items())
        path = pprof("sizes.pb", [([f], values) for f, values in samples], [("samples", "count"), ("alloc", "bytes")])
        rows = report(path, "--event", "alloc")
        for f, p in truth.items():
            share = 100 * p * sizes(f) / whole
            hits[sizes(f)].append(float(rows[f]["self_low"]) <= share <= float(rows[f]["self_high"]))
    for size, hit in hits.items():
        rate = sum(hit) / len(hit)
        rig.check(0.925 < rate < at_most, f"{what}: {100 * rate:.1f}% of {len(hit)} intervals contain the truth, size {size}")


def not_known():
    heap = pprof("heap.pb", [(["f"], [900]), (["g"], [100])], [("alloc_space", "bytes")])
    out = perfwalk("report", heap, "--confidence")
    rig.check("does not say how many samples" in out and "INTERVAL" not in out, "bytes alone: no interval, and why")
    rig.check([report(heap)["f"][x] for x in ("self_low", "self_high")] == ["", ""], "and none for programs")
    less = pprof("less.pb", [(["f"], [90]), (["g"], [-10])], [("samples", "count")])
    out = perfwalk("report", less, "--confidence")
    rig.check("differences" in out and "INTERVAL" not in out, f"values below 0: no interval, and why: {out.strip()!r}")
    rig.check([report(less)["f"][x] for x in ("self_low", "self_high")] == ["", ""], "and none for programs")
    counts = folded("heap.folded", {"f": 10, "g": 20})
    for files, which in (((heap, counts), "first"), ((counts, heap), "second")):
        out = perfwalk("diff", *files)
        rig.check(f"the {which} file does not say how many samples" in out and "~" not in out, "diff says which file")
        rig.check({r["self_p"] for r in table("diff", *files).values()} == {""}, "and has no probabilities")


def probabilities():
    truth = shares(200)
    before, after = draw(truth, 3000), draw(truth, 1000)
    before["f3"], after["f3"], before["f190"], after["f190"] = 110, 90, 5, 15
    files = folded("before.folded", before), folded("after.folded", after)
    sums = [sum(side.values()) for side in (before, after)]
    want = corrected({f: fisher(before[f], sums[0], after[f], sums[1]) for f in truth if before[f] + after[f]}
                     | {"main": None})
    rows = table("diff", *files)
    have = {f: float(r["self_p"]) for f, r in rows.items()}
    wrong = [(f, have[f], want[f]) for f in want if abs(have[f] - want[f]) > 0.006 * want[f]]
    rig.check(have.keys() == want.keys() and not wrong, f"the probabilities of {len(want)} functions are the model's {wrong[:3]}")
    out = perfwalk("diff", *files, "--top", "0", "--percent-limit", "0")
    marks = {m[2]: m[1] for m in re.finditer(r"[-+][\d.]+([~ ]) +[-+][\d.]+[~ ].{7}(\S+)", out)}
    rig.check(marks == {f: "~" if p >= 0.05 and float(rows[f]["self_change"]) else " " for f, p in have.items()},
              f"~ is on {list(marks.values()).count('~')} of them")
    rig.check(max(have["f3"], have["f190"]) < 0.05, f"and not on the two that are real, {have['f3']} and {have['f190']}")


def found(p, n, level, runs=200):
    """How often one function of two is found to have changed; it and its rest have the same probability."""
    times = 0
    for _ in range(runs):
        files = [folded(f"side{i}.folded", draw({"f": p[i], "g": 1 - p[i]}, n[i])) for i in (0, 1)]
        times += float(table("diff", *files)["f"]["self_p"]) < level
    return times / runs


def power(p, n, level):
    """Of the test of two proportions."""
    mean = (p[0] * n[0] + p[1] * n[1]) / sum(n)
    limit = NormalDist().inv_cdf(1 - level / 2) * math.sqrt(mean * (1 - mean) * (1 / n[0] + 1 / n[1]))
    real = NormalDist(abs(p[1] - p[0]), math.sqrt(sum(q * (1 - q) / m for q, m in zip(p, n))))
    return 1 - real.cdf(limit) + real.cdf(-limit)


def changes():
    for p, n in (((0.1, 0.1), (600, 250)), ((0.1, 0.15), (600, 600)), ((0.02, 0.05), (1200, 400))):
        rate, theory = found(p, n, 0.05), power(p, n, 0.05)
        rig.check(abs(rate - theory) < 0.07, f"a share of {p[0]}, then {p[1]}, of {n} samples: {100 * rate:.0f}% are "
                  f"found to differ, by theory {100 * theory:.0f}%")


def many():
    """Three hundred functions, ten of which have three times the share in half of the comparisons."""
    truth = shares(300)
    chosen = [f"f{i}" for i in range(100, 300, 20)]
    after = {f: p * (3 if f in chosen else 1) for f, p in truth.items()}
    scale = sum(after.values())
    right = wrong = alone = 0
    for _ in range(20):
        side = folded("many0.folded", draw(truth, 10000))
        rows = table("diff", side, folded("many1.folded", draw(truth, 10000)))
        alone += sum(float(r["self_p"]) < 0.05 for r in rows.values())
        rows = table("diff", side, folded("many2.folded", draw(after, 10000)))
        real = {f for f, r in rows.items() if float(r["self_p"]) < 0.05}
        right, wrong = right + len(real.intersection(chosen)), wrong + len(real.difference(chosen))
    level = 0.05 * right / 20 / 301  # where the correction of so many lies
    theory = sum(power((truth[f], after[f] / scale), (10000, 10000), level) for f in chosen) / len(chosen)
    rig.check(alone <= 6, f"of 20 comparisons of 300 functions that did not change {alone} rows are not marked as noise")
    rig.check(wrong <= 0.1 * (right + wrong), f"of {right + wrong} rows that are found to change {wrong} did not")
    rig.check(abs(right / 200 - theory) < 0.08, f"{right / 2:.0f}% of those that did are found, by theory {100 * theory:.0f}%")


def main():
    bounds()
    coverage()
    weighted(lambda f: 1, "values of equal mean")
    weighted(lambda f: 1 + int(f[1:]) % 2 * 9, "values of other means")
    weighted(lambda f: 1, "values added up by stack", merged=True)
    weighted(lambda f: 1 + int(f[1:]) % 3, "the same, of other means", merged=True, at_most=1.01)
    not_known()
    probabilities()
    changes()
    many()


rig.run(main)
