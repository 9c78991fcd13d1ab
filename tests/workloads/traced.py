# SPDX-License-Identifier: Apache-2.0
"""Threads that work in spans of ddtrace, nested, and tasks of one event loop that take turns in theirs. Each span
that ends is a line: its id, its trace, the thread, the function that works in it."""
import asyncio
import sys
import threading
import time

from ddtrace.trace import tracer


def spin():
    end = time.thread_time() + 0.02
    while time.thread_time() < end:
        pass


def in_outer():
    spin()


def in_inner():
    spin()


def in_task():
    spin()


def in_none():
    spin()


def tell(span, function):
    sys.stdout.write(f"{span.span_id:016x} {span.trace_id:032x} {threading.get_native_id()} {function}\n")
    sys.stdout.flush()


def run():
    while True:
        with tracer.trace("outer") as outer:
            in_outer()
            with tracer.trace("inner") as inner:
                in_inner()
            tell(inner, "in_inner")
            in_outer()
        tell(outer, "in_outer")
        in_none()


async def job():
    while True:
        with tracer.trace("task") as span:
            for _ in range(3):
                in_task()
                await asyncio.sleep(0)
        tell(span, "in_task")
        in_none()
        await asyncio.sleep(0)


async def jobs():
    await asyncio.gather(job(), job(), job())


for _ in range(2):
    threading.Thread(target=run, daemon=True).start()
asyncio.run(jobs())
