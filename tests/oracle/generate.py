# SPDX-License-Identifier: Apache-2.0
"""Profiles by chance: small, from few names and addresses, so that they collide."""
from model import FILE, JIT, KERNEL, MARKER, MARKERS, RUNTIME, RUNTIMES, VDSO, Frame, Line, Profile, Sample, Task

NAMES = ("a", "b", "c", "f", "g", "main", "[x+0x1000]", "operator<", 'quo"te', "n\u00e4me\u2713", "two words", "a;b",
         "std::map<int, std::less<int> >::at(int&)", "back\\slash", "x\ty", "f(int)", "0", "samples", "[unknown]")
MODULES = ("/bin/x", "/usr/lib/libx.so", "/opt/libx.so", "libm-2.so.6", "/opt/two words (1).so", "/z/\u00e9.so")
ADDRESSES = (0, 0, 0, 0x1000, 0x1001, 0x401000, 0x401001, (1 << 47) - 1, (1 << 63) + 1, (1 << 63) + 2)
FILES = ("", "", "a.c", "/src/b.cc", "/src/b b.go")
COMMS = ("p", "q", "x", "kworker/0:1", "two words", "a;b", "\u00fcber", "r 2", "#1")
DAY = 1700000000 * 10**9


def lines(rng, n):
    out = []
    for _ in range(n):
        name = rng.choice(NAMES)
        system = rng.choice(("", name, "_Z" + name))
        file = rng.choice(FILES)
        out.append(Line("" if system and rng.random() < 0.05 else name, system, file,
                        rng.randrange(60) if file else 0, rng.choice((0, 7)) if file else 0,
                        rng.choice((0, 3)) if file else 0))
    return tuple(out)


class Frames:
    """build_ids: of each module one. plain: names alone, as folded stacks have them."""

    def __init__(self, rng, plain=False, build_ids=None):
        self.rng, self.plain = rng, plain
        ids = (f"{i:02x}" * 20 if rng.random() < 0.5 else "" for i in range(1, 99))
        self.build_ids = build_ids or dict(zip(MODULES, ids))
        self.pool = [self.make() for _ in range(rng.choice((4, 8, 16)))]

    def make(self):
        rng = self.rng
        kind = rng.choice((FILE,) * 8 + (KERNEL, JIT, MARKER) + ((VDSO, RUNTIME, RUNTIME) if not self.plain else ()))
        if kind == MARKER:
            return Frame(MARKER, lines=(Line(rng.choice(MARKERS)),))
        n = rng.choice((1, 1, 1, 1, 2, 3)) if kind == FILE or not self.plain else 1
        if self.plain:
            return Frame(kind, lines=tuple(Line(rng.choice(NAMES).replace(";", ":").replace("\t", "-"))
                                           for _ in range(n)))
        module = rng.choice(MODULES + ("",)) if kind == FILE else ""
        address = rng.choice(ADDRESSES)
        named = address >> 63 or rng.random() < 0.85  # nobody's code is there: no name would say it
        if kind == RUNTIME:
            return Frame(RUNTIME, f"[{rng.choice(RUNTIMES)}]", 0, lines(rng, n))
        if kind == KERNEL:
            address = rng.choice((0, 0xffffffff81000000, 0xffffffff81000010))
        if address and not named:
            return Frame(kind, module, address, (), self.build_ids.get(module, ""))
        return Frame(kind, module, address, lines(rng, n), self.build_ids.get(module, ""))

    def stack(self):
        rng = self.rng
        n = rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5, 8, 12))
        if rng.random() < 0.02:
            n = 200
        return tuple(rng.choice(self.pool) for _ in range(n))


def task(rng, plain=False):
    comm = rng.choice(COMMS)
    if plain:
        comm = comm.replace(";", ":").replace("#", "_")
        return Task(comm, thread=comm)
    pid = rng.choice((1, 4711, 4711, 99999))
    container = rng.choice(("", "", "0123456789abcdef" * 4, "fedcba9876543210" * 4))
    name = {"": "", "0": "web", "f": "ns/pod/db"}[container[:1]]
    return Task(comm, pid, rng.choice((pid, pid + 1)), rng.choice((comm, "worker", "t 1", "")), container, name,
                rng.choice(("", "nginx.service")), rng.choice(("", "", "/usr/bin/shop", "/opt/a b/x (deleted)")))


SETS = {
    "pprof": ((("samples", "count"),), (("samples", "count"), ("cpu", "nanoseconds")),
              (("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_space", "bytes")),
              (("contentions", "count"), ("delay", "nanoseconds")),
              (("samples", "count"), ("alloc_space", "bytes")),
              (("samples", "count"), ("cpu", "nanoseconds"), ("alloc_space", "bytes"))),
    "otlp": ((("samples", "count"),), (("samples", "count"),), (("alloc_space", "bytes"),),
             (("wait", "nanoseconds"),)),
    "folded": ((("samples", "count"),),),
}


def values_of(rng, types, period):
    out = []
    for name, unit in types:
        v = rng.choice((1, 1, 1, 2, 3, 10, 97, 1000, 10**6 + 1))
        if unit == "bytes":
            v *= rng.choice((1, 8, 4096))
        if name == "cpu" and types[0][0] == "samples":
            v = out[0] * period
        out.append(v)
    return tuple(out)


def profile(rng, form, types=None, period=None, build_ids=None, n=None):
    """A profile that this format can hold; its values go by types[0] for folded stacks."""
    types = types or rng.choice(SETS[form])
    p = Profile(types, time=DAY + rng.randrange(10**9), duration=rng.choice((0, 10**9, 3 * 10**9)))
    names = [t for t, _ in types]
    if form == "pprof" and "cpu" in names or form == "otlp" and names == ["samples"]:
        p.period_type, p.period = ("cpu", "nanoseconds"), period or rng.choice((1010101, 10**6, 10**7, 10**7))
    if form == "pprof" and len(types) > 2 and rng.random() < 0.5:
        p.default = rng.choice(types)[0]
    frames = Frames(rng, form == "folded", build_ids)
    tasks = [task(rng, form == "folded") for _ in range(rng.choice((1, 2, 4)))]
    timed = form == "otlp" and rng.random() < 0.6
    ones = timed and rng.random() < 0.6
    for _ in range(n or rng.choice((1, 2, 3, 5, 8, 20))):
        values, times = values_of(rng, types, p.period), ()
        if timed:
            k = rng.choice((1, 1, 2, 4))
            times = tuple((p.time + rng.randrange(10**9), 1 if ones else rng.choice((1, 2, 5))) for _ in range(k))
            times = tuple(sorted(times))
            values = (sum(v for _, v in times),)
        stack = frames.stack()
        if form == "folded":
            stack = stack or frames.stack()[:1]
        p.samples.append(Sample(rng.choice(tasks), stack, values, times, rng.choice((0, 0, 1, 3)) if timed else 0))
    return p
