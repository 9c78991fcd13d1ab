# SPDX-License-Identifier: Apache-2.0
"""How far two distributions of call chains, a Counter each, agree."""
import collections
import random
import statistics


def agreement(a, b):
    """The common part of two distributions: 1 if they are the same."""
    n, m = a.total(), b.total()
    return sum(min(a[key] / n, b[key] / m) for key in a if key in b)


def by_chance(a, b):
    both = list((a + b).elements())
    return statistics.mean(agreement(collections.Counter(both[:a.total()]), collections.Counter(both[a.total():]))
                           for _ in range(20) if not random.shuffle(both))


def leaves(counts):
    out = collections.Counter()
    for chain, n in counts.items():
        out[chain[-1]] += n
    return out


def show(a, b):
    """Prints how far leaves and whole chains agree, beside what two samples of that size of one program would."""
    for what, x, y in (("leaves", leaves(a), leaves(b)), ("whole stacks", a, b)):
        print(f"  {what} of {a.total()} and {b.total()} samples agree to {agreement(x, y):.1%}; "
              f"by chance alone {by_chance(x, y):.1%}")
