# SPDX-License-Identifier: Apache-2.0
"""pywaits.py ROUNDS: threads that wait in every way that Python has. Prints for each function how many nanoseconds it
waited: for sure, and in calls in which its thread was also preempted. One thread waits in two functions that have the
same native stack where calls of Python functions do not show there."""
import queue
import resource
import select
import socket
import sys
import threading
import time

ROUNDS = int(sys.argv[1])
waited = {}
mutex = threading.Lock()
items = queue.Queue()
a, b = socket.socketpair()
poller = select.poll()
poller.register(a, select.POLLIN)


def told(wait):
    """Adds up the wall time less the CPU time of each call."""
    sums = waited.setdefault(wait.__name__, [0, 0])

    def call(*args):
        switches, wall, cpu = resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw, time.perf_counter_ns(), time.thread_time_ns()
        wait(*args)
        ns = time.perf_counter_ns() - wall - (time.thread_time_ns() - cpu)
        # The clocks are read one after the other: of a call that did not wait some may be missing.
        sums[resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw > switches] += max(0, ns)
    return call


@told
def naps():
    time.sleep(0.007)


@told
def dozes():
    time.sleep(0.003)


@told
def locks():
    mutex.acquire()
    mutex.release()


@told
def polls():
    poller.poll()
    a.recv(1)


@told
def gets():
    items.get()


def sleeper():
    for _ in range(ROUNDS):
        naps()
        dozes()


def waiter():
    for _ in range(ROUNDS):
        polls()
        locks()
        gets()


def giver():
    """Lets the waiter wait for one thing after the other."""
    for _ in range(ROUNDS):
        mutex.acquire()
        time.sleep(0.003)
        b.send(b"x")
        time.sleep(0.004)
        mutex.release()
        time.sleep(0.003)
        items.put(1)


threads = [threading.Thread(target=t) for t in (sleeper, waiter, giver)]
for t in threads:
    t.start()
for t in threads:
    t.join()
for name, (sure, unsure) in waited.items():
    print(name, sure, unsure)
