# SPDX-License-Identifier: Apache-2.0
"""Functions of one shape that are made and freed, for CPython 3.6 and later: their numbers only grow. Python puts new
ones where those were that it has freed."""
import time


def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def make(number):
    name = "made_%06d" % number
    space = {"spin": spin}
    exec("def %s():\n    spin(0.0007)\n" % name, space)
    return space.pop(name)


def main():
    number = 0
    while True:
        number += 1
        made = make(number)
        made()
        # What it refers to refers to it.
        made.__globals__.clear()
        del made


main()
