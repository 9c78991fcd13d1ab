# SPDX-License-Identifier: Apache-2.0
"""A request to a worker (WSGI): it works in a chain of calls that is as deep as its pid says, and tells its pid and the
chain as Python itself has it, outermost first."""
import os
import sys
import time


def fork_spin():
    names, frame = [], sys._getframe()
    while frame:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    until = time.process_time() + 0.25
    while time.process_time() < until:
        for i in range(20000):
            i % 7
    return names[::-1]


def fork_deep(n):
    return fork_deep(n - 1) if n else fork_spin()


def fork_work():
    return fork_deep(os.getpid() % 17)


def application(_, start_response):
    text = f"{os.getpid()} {' '.join(n for n in fork_work() if n.startswith('fork_'))}\n".encode()
    start_response("200 OK", [("Content-Length", str(len(text)))])
    return [text]
