# SPDX-License-Identifier: Apache-2.0
"""Threads that fight for a lock of Python's, for as many rounds as the argument says. One of them waits in each round: who
has the lock keeps it until the kernel says so, and then for 8 ms. Prints how long it waited: KIND WAITS NANOSECONDS UNSURE.
UNSURE is from when it asks for the lock until it waits, and from when the lock is free until it goes on: there it may run,
wait for a CPU, or for the interpreter's own lock."""
import sys
import threading
import time

ROUNDS = int(sys.argv[1])
lock = threading.Lock()
turn = threading.Barrier(2)
sure = whole = 0
fighting = None  # who goes for the lock now


def take_turn():
    lock.acquire()


def waits_for_ever(tid):
    """It is in futex(2) or another wait without a time-out, as for a lock: waits for the interpreter's have one."""
    with open(f"/proc/self/task/{tid}/stat", encoding="ascii") as f:
        state = f.read().rsplit(")", 1)[1].split()[0]
    with open(f"/proc/self/task/{tid}/syscall", encoding="ascii") as f:
        call = f.read().split()
    return state == "S" and len(call) > 4 and int(call[4], 16) == 0


def hold():
    global sure
    for _ in range(ROUNDS):
        with lock:
            turn.wait()
            while fighting is None or not waits_for_ever(fighting):
                time.sleep(0.001)
            seen = time.perf_counter_ns()
            time.sleep(0.008)
            sure += time.perf_counter_ns() - seen
        turn.wait()


def fight():
    global whole, fighting
    for _ in range(ROUNDS):
        turn.wait()
        began = time.perf_counter_ns()
        fighting = threading.get_native_id()
        take_turn()
        fighting = None
        whole += time.perf_counter_ns() - began
        lock.release()
        turn.wait()


threads = [threading.Thread(target=x) for x in (hold, fight)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("python", ROUNDS, sure, whole - sure)
