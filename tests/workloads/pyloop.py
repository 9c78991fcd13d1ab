# SPDX-License-Identifier: Apache-2.0
"""Keeps the interpreter busy; the test looks at the interpreter's own C frames."""


def leaf(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


def outer():
    while True:
        sorted(range(200), key=lambda x: leaf(5))


outer()
