# SPDX-License-Identifier: Apache-2.0
"""Threads that hang in every way that Python has. Each says in which functions, from the outermost on, before it does."""
import queue
import select
import socket
import sys
import threading
import time

lock = threading.Lock()
lock.acquire()
event = threading.Event()
items = queue.Queue()
a, b = socket.socketpair()


def tell(*further):
    """The functions that called this, and those of the library that will be called."""
    frame, chain = sys._getframe(1), list(reversed(further))
    while frame:
        chain.append(getattr(frame.f_code, "co_qualname", frame.f_code.co_name))
        frame = frame.f_back
    sys.stdout.write(";".join(reversed(chain)) + "\n")
    sys.stdout.flush()


def in_lock():
    tell()
    lock.acquire()


def in_sleep():
    tell()
    time.sleep(1000)


def in_socket():
    tell()
    a.recv(1)


def in_event():
    tell("Event.wait", "Condition.wait")
    event.wait()


def in_queue():
    tell("Queue.get", "Condition.wait")
    items.get()


def in_select():
    tell()
    select.select([a], [], [])


class Deep:
    def method(self, n):
        if n:
            self.method(n - 1)
        else:
            list(map(self.call, [0]))

    def call(self, _):
        tell()
        b.recv(1)


def in_method():
    Deep().method(20)


for target in (in_lock, in_sleep, in_socket, in_event, in_queue, in_select, in_method):
    threading.Thread(target=target).start()


def in_main():
    tell()
    lock.acquire()


in_main()
