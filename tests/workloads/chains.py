# SPDX-License-Identifier: Apache-2.0
"""Python threads in known and odd chains of calls. For CPython 3.6 and later.

chains.py parked FILE [CHAIN...]
                        every thread waits; FILE gets {tid: [[function, file, line], ...]}, innermost first, as the
                        interpreter itself sees them, then the program waits until its input ends
chains.py forked FILE   the same in a child
chains.py nested FILE   in an interpreter within the interpreter
chains.py busy FILE     one thread works; on SIGUSR1 faulthandler appends its stack to FILE
"""
import asyncio
import faulthandler
import functools
import importlib
import json
import os
import signal
import sys
import tempfile
import threading
import time

GATE = threading.Lock()
GATE.acquire()
PARK = """
def park():
    GATE.acquire()
"""
exec(compile(PARK, "park.py", "exec"))
PARKED_LINE = 3
TIDS = {}


def tid():
    return int(os.readlink("/proc/thread-self").rsplit("/", 1)[1])


# Chains. Each ends in park().

def recursion(n=30):
    if n:
        return recursion(n - 1)
    return park()


def deep():
    return recursion(400)


def inner_generator():
    yield 1
    park()
    yield 2


def outer_generator():
    yield 0
    yield from inner_generator()


def generators():
    return [x for x in outer_generator()]


class Ordered:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        park()
        return self.value < other.value

    def __getattr__(self, name):
        return park()

    @property
    def size(self):
        return [park()
                for _ in range(1)]

    class Inner:
        @staticmethod
        def method(*arguments):
            def local():
                return park()
            return local()


def sorting():
    return sorted([Ordered(2), Ordered(1)])


def sort_key():
    return sorted([1, 2], key=lambda x: park())


def attribute():
    return Ordered(1).nothing


def properties():
    return Ordered(1).size


def nested_class():
    return functools.partial(Ordered.Inner.method, 1)(2)


def reducing():
    return functools.reduce(
        lambda a, b: (a,
                      park()),
        [1, 2])


def mapping():
    return list(map(lambda x: [park() for _ in [x]], (1, 2)))


def decorated(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        try:
            return function(*arguments)
        finally:
            pass
    return wrapper


@decorated
@decorated
def wrapped(a,
            b=2):
    try:
        raise ValueError(a)
    except ValueError:
        with Manager():
            pass


class Manager:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        park()


def wrappers():
    return wrapped(
        1,
        2,
    )


def class_body():
    class Body:
        value = park()
    return Body


def letters():
    source = "def größe(park):\n\n    return 名前(park)\n\ndef 名前(park):\n    return 𐎀𐎁(park)\n" \
             "def 𐎀𐎁(park):\n    park()\ngröße(park)\n"
    exec(compile(source, "Verzeichnis/größe 名前.py", "exec"), {"park": park})


def far_lines():
    """Steps of lines and of bytecode that do not fit a byte, up and down."""
    source = "def far(park):\n" + "\n" * 700 + "    x = (1,\n" + "\n" * 300 + "         park(),\n" + \
             "    )\n" + "\n" * 70000 + "    return x\n" + "\nfar(park)\n"
    exec(compile(source, "far.py", "exec"), {"park": park})


def long_code():
    source = "def long(park, x=0):\n" + "".join(f"    x = x + {i}\n" for i in range(2000)) + \
             "    for i in range(3):\n        park()\nlong(park)\n"
    exec(compile(source, "long.py", "exec"), {"park": park})


def evaluated():
    return eval("(lambda f: f())(park)")


async def coroutine(n):
    if n:
        return await coroutine(n - 1)
    return park()


async def gather():
    await asyncio.gather(coroutine(3), asyncio.sleep(1))


def tasks():
    loop = asyncio.new_event_loop()
    return loop.run_until_complete(gather())


async def async_generator():
    yield 1
    park()
    yield 2


async def async_for():
    return [x async for x in async_generator()]


def async_generators():
    return asyncio.new_event_loop().run_until_complete(async_for())


def importing():
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "parks_when_imported.py"), "w") as f:
            f.write("import builtins\n\n\ndef at_import():\n    builtins.park_for_import()\n\n\nat_import()\n")
        import builtins
        builtins.park_for_import = park
        sys.path.insert(0, directory)
        importlib.invalidate_caches()
        import parks_when_imported
        return parks_when_imported


CHAINS = [recursion, deep, generators, sorting, sort_key, attribute, properties, nested_class, reducing, mapping, wrappers,
          class_body, letters, far_lines, long_code, evaluated, tasks, async_generators, importing]


def run(chain):
    TIDS[threading.get_ident()] = tid()
    chain()


# What the interpreter says.

def chain_of(frame):
    chain = []
    while frame:
        code = frame.f_code
        chain.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return chain


def is_parked(chain):
    return chain[0][0] == "park" and chain[0][2] == PARKED_LINE


def write(name, value):
    with open(name + ".new", "w") as f:
        json.dump(value, f)
    os.rename(name + ".new", name)


def judge(n, name):
    """Says what the others do once all wait, and waits itself."""
    while True:
        time.sleep(0.01)
        frames = sys._current_frames()
        chains = {TIDS[ident]: chain_of(frames[ident]) for ident in list(TIDS) if ident in frames}
        del frames
        if len(chains) == n and all(is_parked(c) for c in chains.values()):
            break
    write(name, chains)
    sys.stdin.read()
    os._exit(0)


def parked(name, chains):
    for chain in chains:
        threading.Thread(target=run, args=(chain,), daemon=True).start()
    threading.Thread(target=judge, args=(len(chains) + 1, name), daemon=True).start()
    run(recursion)


def forked(name):
    child = os.fork()
    if child == 0:
        parked(name, [sorting, generators])
    os.waitpid(child, 0)


# An interpreter within.

NESTED = """
import os, time
def within(n):
    if n:
        return within(n - 1)
    with open({name!r} + ".new", "w") as f:
        f.write(os.readlink("/proc/thread-self").rsplit("/", 1)[1])
    os.rename({name!r} + ".new", {name!r})
    time.sleep(1000)
within(2)
"""


def nested(name):
    try:
        import _interpreters as interpreters
        execute = interpreters.exec
    except ImportError:
        import _xxsubinterpreters as interpreters
        execute = interpreters.run_string
    execute(interpreters.create(), NESTED.format(name=name))


# Work.

def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def numbers(n):
    for i in range(n):
        yield i * i


def work():
    fibonacci(12)
    sum(x for x in numbers(100))
    sorted(range(60), key=lambda x: -x)
    functools.reduce(lambda a, b: a + b, map(lambda x: x * 2, range(50)))
    "{} {}".format([str(x) for x in range(20)], {x: [x] for x in range(20)})
    eval("[x for x in (lambda n: range(n))(30)]")


def busy(name):
    with open(name, "w") as f:
        faulthandler.register(signal.SIGUSR1, file=f, all_threads=False)
        while True:
            work()


def main():
    mode, name, *chains = sys.argv[1:]
    if mode == "parked":
        parked(name, [c for c in CHAINS if not chains or c.__name__ in chains])
    else:
        {"forked": forked, "nested": nested, "busy": busy}[mode](name)


main()
