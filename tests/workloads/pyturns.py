# SPDX-License-Identifier: Apache-2.0
"""pyturns.py ROUNDS: a thread that waits for long, in two functions in turn: the native stack is the same. Prints how many
nanoseconds it waited in each."""
import sys
import threading
import time

waited = {"shorter": 0, "longer": 0}


def shorter():
    time.sleep(0.06)


def longer():
    time.sleep(0.18)


def turns():
    for i in range(2 * int(sys.argv[1])):
        wait = (shorter, longer)[i % 2]
        begin = time.perf_counter_ns() - time.thread_time_ns()
        wait()
        waited[wait.__name__] += time.perf_counter_ns() - time.thread_time_ns() - begin


thread = threading.Thread(target=turns)
thread.start()
thread.join()
for name, ns in waited.items():
    print(name, ns)
