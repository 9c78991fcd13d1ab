# SPDX-License-Identifier: Apache-2.0
"""Formats that are only written: the text of perf script, speedscope's and the Firefox Profiler's
JSON. Each decoder gives a Counter of what the format can hold, and checks the file's own sums."""
import gzip
import json
import re
from collections import Counter


def unique(pairs):
    keys = [k for k, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError(f"a key stands twice: {keys}")
    return dict(pairs)


def load(data):
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, object_pairs_hook=unique)


def expect(condition, text):
    if not condition:
        raise ValueError(text)


# ---- perf script ----

HEAD = re.compile(r"(.*?) +(\d+)/(\d+) +\[(\d+)\] +(\d+)\.(\d{6}): +(-?\d+) (\S+):$")
FRAME = re.compile(r"\t *([0-9a-f]+) (.*) \((.*)\)$")


def perf_script(data):
    """[(comm, pid, tid, cpu, microseconds, period, event, root first (name, address, module))]."""
    samples = []
    for block in re.split(r"\n\n", data.decode()):
        lines = [x for x in block.split("\n") if x and x[0] != "#" or x.startswith("#_")]
        if not lines:
            continue
        m = HEAD.match(lines[0])
        expect(m, f"perf script: head {lines[0]!r}")
        stack = []
        for line in reversed(lines[1:]):
            f = FRAME.match(line)
            expect(f, f"perf script: frame {line!r}")
            stack.append((f[2], int(f[1], 16), f[3]))
        samples.append((m[1], int(m[2]), int(m[3]), int(m[4]), int(m[5]) * 1000000 + int(m[6]), int(m[7]), m[8],
                        tuple(stack)))
    return samples


# ---- speedscope ----

def speedscope(data):
    """The sum's (process, names...) to weight; the threads' (title, names...) to weight; the unit."""
    file = load(data)
    names = [f["name"] for f in file["shared"]["frames"]]
    every, threads = Counter(), Counter()
    for i, p in enumerate(file["profiles"]):
        expect(len(p["samples"]) == len(p["weights"]), "speedscope: as many weights as samples")
        expect(p["startValue"] == 0 and p["endValue"] == sum(p["weights"]), "speedscope: endValue is the sum")
        expect(p["unit"] == file["profiles"][0]["unit"], "speedscope: one unit")
        for stack, weight in zip(p["samples"], p["weights"]):
            path = tuple(names[f] for f in stack)
            if i == 0:
                every[path] += weight
            else:
                threads[(p["name"],) + path] += weight
    return every, threads, file["profiles"][0]["unit"]


# ---- Firefox Profiler ----

def columns(table):
    n = table["length"]
    for name, column in table.items():
        if isinstance(column, list):
            expect(len(column) == n, f"firefox: column {name} has {len(column)}, not {n}")
    return table


def firefox(data):
    """(process, thread, pid, tid, root first (name, module, file, line)) to weight, and all times
    in ms as (the same key, time, weight)."""
    file = load(data)
    shared = file["shared"]
    strings = shared["stringArray"]
    stacks, frames, functions = (columns(shared[t]) for t in ("stackTable", "frameTable", "funcTable"))
    resources, sources = columns(shared["resourceTable"]), columns(shared["sources"])

    def place(frame):
        f = frames["func"][frame]
        resource, source = functions["resource"][f], functions["source"][f]
        module = "" if resource == -1 else strings[resources["name"][resource]]
        file_name = "" if source is None else strings[sources["filename"][source]]
        return strings[functions["name"][f]], module, file_name, frames["line"][frame] or 0

    paths = []
    for prefix, frame in zip(stacks["prefix"], stacks["frame"]):
        expect(prefix is None or prefix < len(paths), "firefox: prefixes come first")
        paths.append((() if prefix is None else paths[prefix]) + (place(frame),))
    sums, times = Counter(), []
    for t in file["threads"]:
        s = columns(t["samples"])
        weights = s["weight"] or [1] * s["length"]
        expect(s["time"] == sorted(s["time"]), "firefox: times ascend")
        for stack, time, weight in zip(s["stack"], s["time"], weights):
            key = (t["processName"], t["name"], t["pid"].split(".")[0], t["tid"],
                   () if stack is None else paths[stack])
            sums[key] += weight
            times.append((key, time, weight))
    return sums, times
