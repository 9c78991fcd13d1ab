# SPDX-License-Identifier: Apache-2.0
"""Files of perf record (perf.data in file mode), written, and what happened in them: tasks that are
made, named, mapped and ended, and samples of several events, with callchains as the kernel makes
them. The records of each CPU are in order; those of several CPUs are mixed as perf mixes them."""
import struct
from collections import namedtuple

from model import FILE, KERNEL, NONE, Frame, Sample, Task

IP, TID, TIME, ADDR, CALLCHAIN, ID, CPU, PERIOD, IDENTIFIER = (1 << b for b in (0, 1, 2, 3, 5, 6, 7, 8, 16))
COMM, EXIT, FORK, SAMPLE, MMAP2, FINISHED_ROUND = 3, 4, 7, 9, 10, 68
HOSTNAME, OSRELEASE, ARCH, NRCPUS, EVENT_DESC, CLOCK_DATA = 3, 4, 6, 7, 12, 29
CONTEXT_KERNEL, CONTEXT_USER = (1 << 64) - 128, (1 << 64) - 512
IN_KERNEL, IN_USER, COMM_EXEC, HAS_BUILD_ID = 1, 2, 1 << 13, 1 << 14
HARDWARE, SOFTWARE, RAW = 0, 1, 4
N_CPUS = 4

# name, type, config, rate (else a period), the number
Event = namedtuple("Event", "name type config freq number sample_type")
# what happens at a time: kind and its fields
Step = namedtuple("Step", "time cpu kind pid tid fields")
Map = namedtuple("Map", "start size offset path build_id")


class Recording:
    """events, steps in the order of time; the seed of what the format leaves open comes with encode()."""

    def __init__(self, events, steps, clock):
        self.events, self.steps, self.clock = events, steps, clock


# ---- Written ----

def string8(text):
    data = text.encode() + b"\0"
    return data + bytes(-len(data) % 8)


def header_string(text):
    data = text.encode() + b"\0"
    data += bytes(-len(data) % 64)
    return struct.pack("<I", len(data)) + data


def record(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


class Writer:
    attr_sizes = (112, 120, 128)  # of Linux 4.1 to 6.1: perf refuses what is longer than it knows

    def __init__(self, recording, rng):
        self.rng, self.events, self.steps = rng, recording.events, recording.steps
        self.clock = recording.clock
        self.ids = [[1000 + 100 * i + cpu for cpu in range(N_CPUS)] for i in range(len(self.events))]
        # Without times everything but samples has to be there before.
        self.id_all = any(s.time and s.kind != SAMPLE for s in self.steps) or rng.random() < 0.5

    def attr(self, event, size):
        # inherit, mmap, comm, task, mmap2, comm_exec
        flags = 1 << 1 | 1 << 8 | 1 << 9 | 1 << 13 | 1 << 23 | 1 << 24 | event.freq << 10 | self.id_all << 18
        body = struct.pack("<IIQQQQQ", event.type, size, event.config, event.number, event.sample_type, 4, flags)
        return (body + bytes(136))[:size]

    def trailer(self, step, event, made_up):
        if not self.id_all:
            return b""
        kind, time = self.events[event].sample_type, 0 if made_up else step.time
        number = 0 if made_up else self.ids[event][step.cpu]
        out = struct.pack("<II", step.pid, step.tid) if kind & TID else b""
        out += struct.pack("<Q", time) if kind & TIME else b""
        out += struct.pack("<Q", number) if kind & ID else b""
        out += struct.pack("<II", step.cpu, 0) if kind & CPU else b""
        return out + (struct.pack("<Q", number) if kind & IDENTIFIER else b"")

    def sample(self, step):
        event, period, kernel, user = step.fields
        kind, number = self.events[event].sample_type, self.ids[event][step.cpu]
        side = IN_KERNEL if kernel else IN_USER
        chain = ((CONTEXT_KERNEL,) + kernel if kernel else ()) + ((CONTEXT_USER,) + user if user else ())
        out = struct.pack("<Q", number) if kind & IDENTIFIER else b""
        out += struct.pack("<QIIQ", (kernel or user)[0], step.pid, step.tid, step.time)
        out += struct.pack("<Q", 0xdead) if kind & ADDR else b""
        out += struct.pack("<Q", number) if kind & ID else b""
        out += struct.pack("<II", step.cpu, 0) if kind & CPU else b""
        out += struct.pack("<Q", period) if kind & PERIOD else b""
        if kind & CALLCHAIN:
            out += struct.pack(f"<{1 + len(chain)}Q", len(chain), *chain)
        return record(SAMPLE, side, out)

    def mmap(self, step):
        m, = step.fields
        misc, where = IN_USER, struct.pack("<IIQQ", 8, 1, 77, 0)
        if m.build_id:
            misc |= HAS_BUILD_ID
            where = struct.pack("<BBH20s", 20, 0, 0, bytes.fromhex(m.build_id))
        return misc, struct.pack("<IIQQQ", step.pid, step.tid, m.start, m.size, m.offset) + where \
            + struct.pack("<II", 5, 2) + string8(m.path)

    def step(self, step, made_up=False):
        if step.kind == SAMPLE:
            return self.sample(step)
        misc = 0
        if step.kind == MMAP2:
            misc, body = self.mmap(step)
        elif step.kind == COMM:
            name, executed = step.fields
            misc = COMM_EXEC if executed else 0
            body = struct.pack("<II", step.pid, step.tid) + string8(name)
        else:  # FORK, EXIT
            parent, parent_tid = step.fields
            body = struct.pack("<IIIIQ", step.pid, parent, step.tid, parent_tid, step.time)
        return record(step.kind, misc, body + self.trailer(step, 0, made_up))

    def rounds(self):
        """perf drains one CPU's ring after the other, as far as each has come by then, and marks the end of the
        round."""
        rings = [[s for s in self.steps if s.time and s.cpu == c] for c in range(N_CPUS)]
        out = b"".join(self.step(s, True) for s in self.steps if not s.time)
        marks = self.rng.random() < 0.8
        last = max((s.time for s in self.steps), default=0)
        now = min((s.time for s in self.steps if s.time), default=0)
        while any(rings):
            for ring in self.rng.sample(rings, len(rings)):
                now += self.rng.randrange(1 + (last - now) // self.rng.choice((2, 5, 20)) + 1)
                now = last if now >= last or not marks else now
                n = sum(s.time <= now for s in ring)
                out += b"".join(map(self.step, ring[:n]))
                del ring[:n]
            out += record(FINISHED_ROUND, 0, b"") if marks else b""
        return out

    def features(self, attrs):
        described = struct.pack("<II", len(attrs), len(attrs[0]))
        for e, attr, ids in zip(self.events, attrs, self.ids):
            described += attr + struct.pack("<I", len(ids)) + header_string(e.name) + struct.pack(f"<{len(ids)}Q", *ids)
        found = {HOSTNAME: header_string("oracle"), OSRELEASE: header_string("9.9.9-oracle"), EVENT_DESC: described,
                 ARCH: header_string("x86_64"), NRCPUS: struct.pack("<II", N_CPUS, N_CPUS),
                 CLOCK_DATA: struct.pack("<IIQQ", 1, 1, self.clock, 0)}
        return {k: found[k] for k in sorted(found)}

    def file(self):
        size = self.rng.choice(self.attr_sizes)
        attrs = [self.attr(e, size) for e in self.events]
        n = len(attrs)
        id_bytes = b"".join(struct.pack(f"<{N_CPUS}Q", *ids) for ids in self.ids)
        attrs_at = 104 + len(id_bytes)
        data_at = attrs_at + n * (size + 16)
        data, features = self.rounds(), self.features(attrs)
        bits = sum(1 << k for k in features)
        out = b"PERFILE2" + struct.pack("<8Q", 104, size + 16, attrs_at, n * (size + 16), data_at, len(data), 0, 0)
        out += struct.pack("<QQQQ", bits, 0, 0, 0) + id_bytes
        for i, attr in enumerate(attrs):
            out += attr + struct.pack("<QQ", 104 + 8 * N_CPUS * i, 8 * N_CPUS)
        out += data
        at = len(out) + 16 * len(features)
        for body in features.values():
            out += struct.pack("<QQ", at, len(body))
            at += len(body)
        return out + b"".join(features.values())


def encode(recording, rng):
    return Writer(recording, rng).file()


# ---- Read: who did what ----

class Process:
    def __init__(self, comm="", maps=()):
        self.comm, self.maps, self.threads = comm, list(maps), {}

    def map(self, new):
        end = new.start + new.size
        kept = []
        for m in self.maps:  # what lies below is cut
            if m.start < new.start:
                kept.append(m._replace(size=min(m.size, new.start - m.start)))
            if m.start + m.size > end:
                at = max(m.start, end)
                kept.append(Map(at, m.start + m.size - at, m.offset + at - m.start, m.path, m.build_id))
        self.maps = kept + [new]

    def frame(self, address):
        """Nothing of a file that is not here is known but its path: the address is its offset, which no build id
        goes with."""
        for m in self.maps:
            if m.start <= address < m.start + m.size:
                return Frame(FILE, m.path, address - m.start + m.offset)
        return Frame(NONE, "", address)


def advance(processes, step):
    p = processes.setdefault(step.pid, Process())
    if step.kind == MMAP2:
        p.map(step.fields[0])
    elif step.kind == COMM:
        name, executed = step.fields
        if executed:
            p.maps, p.threads = [], {}
        if step.tid == step.pid:
            p.comm = name
        else:
            p.threads[step.tid] = name
    elif step.kind == FORK and step.fields[0] != step.pid:
        parent, parent_tid = step.fields
        parent = processes[parent]
        processes[step.pid] = Process(parent.threads.get(parent_tid, parent.comm), parent.maps)
    elif step.kind == FORK:
        p.threads[step.tid] = p.threads.get(step.fields[1], p.comm)


def leaf_first(process, kernel, user, chained):
    """All but the innermost of either side are return addresses: the call is before them."""
    if not chained:
        kernel, user = kernel[:1], () if kernel else user[:1]
    return tuple(Frame(KERNEL, "", a - (i > 0)) for i, a in enumerate(kernel)) + \
        tuple(process.frame(a - (i > 0)) for i, a in enumerate(user))


def is_time(event):
    cycles = event.type == HARDWARE and event.config == 0
    return event.type == SOFTWARE and event.config in (0, 1) or cycles and event.freq


def weighted(event):
    """Events at a rate say how many each sample stands for; time at a rate is counted."""
    return bool(event.freq and not is_time(event) and event.sample_type & PERIOD)


def period(event):
    if event.freq:
        return 10**9 // event.number if is_time(event) else 1
    return event.number


def told(recording):
    """Each sample with its process and the name of its thread as they were at that time."""
    processes = {}
    for step in recording.steps:
        if step.kind != SAMPLE:
            advance(processes, step)
            continue
        p = processes[step.pid]
        yield step, p, p.comm if step.tid == step.pid else p.threads[step.tid]


def read(recording, wanted):
    """The samples of one event."""
    samples = []
    event = recording.events[wanted]
    for step, p, thread in told(recording):
        which, n, kernel, user = step.fields
        if which != wanted:
            continue
        value = n if weighted(event) else 1
        stack = leaf_first(p, kernel, user, event.sample_type & CALLCHAIN)
        samples.append(Sample(Task(p.comm, step.pid, step.tid, thread), stack, (value,),
                              ((recording.clock + step.time, value),), step.cpu if event.sample_type & CPU else 0))
    return samples


def as_perf_tells(recording):
    """(comm, pid, tid, cpu, ns, period, event, addresses) of all events: callers by their return addresses."""
    out = []
    for step, p, thread in told(recording):
        which, n, kernel, user = step.fields
        e = recording.events[which]
        if e.sample_type & CALLCHAIN:
            addresses = kernel + tuple(p.frame(a).address for a in user)
        else:
            addresses = (kernel + user)[:1]  # as it stands in the record
        out.append((thread, step.pid, step.tid, step.cpu if e.sample_type & CPU else 0, step.time,
                    n if e.sample_type & PERIOD else e.number, e.name, addresses))
    return out


def first_choice(recording):
    """The first with stacks, else the first."""
    chained = [bool(e.sample_type & CALLCHAIN) for e in recording.events]
    return chained.index(True) if any(chained) else 0


# ---- By chance ----

EVENTS = (("cpu-clock", SOFTWARE, 0, 1, (99, 999, 4000)), ("cpu-clock:u", SOFTWARE, 0, 0, (1000000, 1010101)),
          ("task-clock", SOFTWARE, 1, 1, (99,)), ("page-faults", SOFTWARE, 2, 0, (1, 7)),
          ("minor-faults", SOFTWARE, 5, 1, (1000,)), ("context-switches", SOFTWARE, 3, 0, (1,)),
          ("cycles:P", HARDWARE, 0, 1, (99, 997)), ("instructions", HARDWARE, 1, 0, (1000003,)),
          ("cpu/odd/", RAW, 0x1c0, 1, (999,)))
PATHS = ("/oracle/bin/x", "/oracle/lib/libx.so.1", "/oracle/opt/libx.so.1", "/oracle/two words", "/oracle/\u00e9")
COMMS = ("p", "q", "two words", "kworker/0:1", "r 2", "a;b", "\u00fcber")


def events(rng):
    chosen = rng.sample(EVENTS, rng.choice((1, 1, 2, 2, 3, 5)))
    if rng.random() < 0.1:
        chosen = rng.sample(EVENTS[:2], 2)  # the name of one is the beginning of the other's
    base = IP | TID | TIME | rng.choice((0, CPU)) | rng.choice((0, ADDR))
    identified = rng.random() < 0.7
    if identified:
        base |= IDENTIFIER | rng.choice((0, ID))
    elif len(chosen) > 1:
        base |= ID
    common = rng.choice((0, PERIOD)) | rng.choice((0, CALLCHAIN, CALLCHAIN))
    out = []
    for name, kind, config, freq, numbers in chosen:
        own = rng.choice((0, PERIOD)) | rng.choice((0, CALLCHAIN)) if identified and rng.random() < 0.5 else common
        out.append(Event(name, kind, config, freq, rng.choice(numbers), base | own))
    return out


class Story:
    """Makes steps that a host could have had: what a sample needs was there before it."""

    def __init__(self, rng):
        self.rng, self.time, self.steps, self.alive, self.ids = rng, 0, [], {}, 4000

    def put(self, kind, pid, tid, *fields):
        if self.time:
            self.time += self.rng.choice((1, 40, 1000, 10**6, 10**6 + 7))
        self.steps.append(Step(self.time, self.rng.randrange(N_CPUS), kind, pid, tid, fields))
        if kind != SAMPLE:
            advance(self.alive, self.steps[-1])

    def map(self, pid):
        i = self.rng.randrange(len(PATHS))
        build_id = f"{i + 1:02x}" * 20 if self.rng.random() < 0.3 else ""
        start = self.rng.choice((0x400000, 0x401000, 0x7f0000000000, 0x7f0000002000))
        self.put(MMAP2, pid, pid, Map(start, self.rng.choice((0x1000, 0x3000)), self.rng.choice((0, 0x1000)), PATHS[i],
                                      build_id))

    def begin(self, parent=None):
        self.ids += self.rng.choice((1, 2, 50))
        pid = self.ids
        if parent:
            self.put(FORK, pid, pid, parent, parent)
        else:
            self.put(COMM, pid, pid, self.rng.choice(COMMS), False)
        if not parent or self.rng.random() < 0.5:
            if parent:
                self.put(COMM, pid, pid, self.rng.choice(COMMS), True)
            self.map(pid)
            self.map(pid)

    def thread(self, pid):
        self.ids += 1
        self.put(FORK, pid, self.ids, pid, pid)
        if self.rng.random() < 0.6:
            self.put(COMM, pid, self.ids, self.rng.choice(COMMS), False)

    def address(self, p):
        if not p.maps or self.rng.random() < 0.05:
            return self.rng.choice((0x10, 0x600123, 0x7fffffffe000))
        m = self.rng.choice(p.maps)
        return m.start + self.rng.choice((0x10, 0x11, 0x20, m.size - 1))

    def sample(self, n_events):
        pid = self.rng.choice(list(self.alive))
        p = self.alive[pid]
        tid = self.rng.choice([pid, *p.threads])
        kernel = tuple(self.rng.choice((0xffffffff81000010, 0xffffffff81000020, 0xffffffffc0000400))
                       for _ in range(self.rng.choice((0, 0, 1, 3))))
        user = tuple(self.address(p) for _ in range(self.rng.choice((0, 1, 2, 5, 20)) if kernel else
                                                    self.rng.choice((1, 2, 3, 9))))
        self.put(SAMPLE, pid, tid, self.rng.randrange(n_events), self.rng.choice((1, 7, 1000, 123456789)), kernel, user)

    def end(self, pid):
        self.put(EXIT, pid, pid, pid, pid)
        del self.alive[pid]


def recording(rng):
    chosen = events(rng)
    story = Story(rng)
    for _ in range(rng.choice((1, 2, 3))):
        story.begin()
    story.time = rng.choice((10**9, 5 * 10**12))
    for _ in range(rng.choice((3, 10, 40, 150))):
        pid = rng.choice(list(story.alive))
        what = rng.random()
        if what < 0.08:
            story.begin(pid)
        elif what < 0.16:
            story.thread(pid)
        elif what < 0.22:
            story.map(pid)
        elif what < 0.25:
            story.put(COMM, pid, pid, rng.choice(COMMS), True)
            story.map(pid)
        elif what < 0.28 and len(story.alive) > 1:
            story.end(pid)
        else:
            story.sample(len(chosen))
    return Recording(chosen, story.steps, 1700000000 * 10**9 + rng.randrange(10**9))
