# SPDX-License-Identifier: Apache-2.0
"""Known chains of calls, for CPython 3.6 and later: calls.py THREADS [SECONDS]. The innermost function of each chain
spends its time in a C function that no other one calls, so that the native stack says which one it must be."""
import sys
import threading
import time
import zlib

NUMBERS = [i * 7919 % 1009 for i in range(300)]
WORDS = ["word%d" % i for i in range(300)]
TEXT = "abracadabra " * 100
BYTES = bytes(range(256)) * 40
MODULUS = 2 ** 521 - 1


def chain_sort():
    sorted(NUMBERS)


def chain_join():
    ",".join(WORDS)


def chain_crc():
    zlib.crc32(BYTES)


def chain_pow():
    pow(3, 2 ** 64 + 1, MODULUS)


def chain_replace():
    TEXT.replace("ab", "cd")


def chain_loop():
    n = 0
    for i in range(300):
        n ^= i


LEAVES = [chain_sort, chain_join, chain_crc, chain_pow, chain_replace, chain_loop]


def chain_inner(leaf):
    leaf()


def chain_middle(leaf):
    chain_inner(leaf)


def chain_outer(leaf):
    chain_middle(leaf)


def chain_deep(leaf, depth):
    if depth:
        chain_deep(leaf, depth - 1)
    else:
        leaf()


def chain_called(leaf):
    leaf()


def chain_callback(leaf):
    list(map(chain_called, [leaf]))


def chain_generate(leaf):
    leaf()
    yield 1
    leaf()
    yield 2


def chain_consume(leaf):
    for _ in chain_generate(leaf):
        pass


def chain_key(leaf):
    leaf()
    return 1


def chain_by_key(leaf):
    sorted([leaf], key=chain_key)


class Shape:
    def __init__(self, leaf):
        self.leaf = leaf

    @property
    def chain_area(self):
        self.leaf()


def chain_shape(leaf):
    return Shape(leaf).chain_area


def chain_raise(leaf):
    leaf()
    raise ValueError


def chain_catch(leaf):
    try:
        chain_raise(leaf)
    except ValueError:
        pass


def chain_turn():
    for leaf in LEAVES:
        leaf()
        chain_outer(leaf)
        chain_deep(leaf, 20)
        chain_callback(leaf)
        chain_consume(leaf)
        chain_by_key(leaf)
        chain_shape(leaf)
        chain_catch(leaf)


def chain_main(end):
    while time.time() < end:
        chain_turn()


def main():
    end = time.time() + (float(sys.argv[2]) if len(sys.argv) > 2 else 3600)
    threads = [threading.Thread(target=chain_main, args=[end]) for _ in range(int(sys.argv[1]) - 1)]
    for t in threads:
        t.start()
    chain_main(end)
    for t in threads:
        t.join()


main()
