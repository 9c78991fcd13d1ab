# SPDX-License-Identifier: Apache-2.0
"""Threads that fight for a lock of Python's, for as many rounds as the argument says. Prints how often one of them
waited, and how long by its own clocks: KIND WAITS NANOSECONDS. A wait ends once the lock is taken: what a thread then
waits for the interpreter's own lock is in it, too."""
import sys
import threading
import time

ROUNDS = int(sys.argv[1])
lock, sums = threading.Lock(), threading.Lock()
turn = threading.Barrier(2)
waits = waited = 0


def take_turn():
    lock.acquire()


def hold():
    for _ in range(ROUNDS):
        with lock:
            turn.wait()
            time.sleep(0.008)
        turn.wait()


def fight():
    global waits, waited
    for _ in range(ROUNDS):
        turn.wait()
        if not lock.acquire(blocking=False):
            began, ran = time.perf_counter_ns(), time.thread_time_ns()
            take_turn()
            waited += time.perf_counter_ns() - began - (time.thread_time_ns() - ran)
            waits += 1
        lock.release()
        turn.wait()


threads = [threading.Thread(target=x) for x in (hold, fight)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("python", waits, waited)
