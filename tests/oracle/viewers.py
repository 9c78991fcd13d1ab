# SPDX-License-Identifier: Apache-2.0
"""Formats that are only written: the text of perf script, speedscope's and the Firefox Profiler's
JSON, the page and the picture. Each decoder gives what the format can hold, and checks the file's own sums."""
import base64
import gzip
import json
import re
from collections import Counter
from decimal import Decimal
from xml.etree import ElementTree


def unique(pairs):
    keys = [k for k, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError(f"a key stands twice: {keys}")
    return dict(pairs)


def load(data, **options):
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, object_pairs_hook=unique, **options)


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


# ---- ndjson ----

def ndjson(data):
    """The task, the stack from the root and its modules, to the value of the first type."""
    sums, types = Counter(), []
    for line in data.decode().splitlines():
        r = json.loads(line)
        types.append((r["type"], r["unit"]))
        expect(len(r["stack"]) == len(r["modules"]), "ndjson: as many modules as functions")
        if types[-1] == types[0]:
            sums[(r["process"], r["pid"], r["thread"], r["tid"], r["container"], r["container_name"], r["systemd_unit"],
                  tuple(r["stack"]), tuple(r["modules"]))] += r["value"]
    return sums


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
    """(process, thread, pid, tid, root first (name, module, file, line)) to weight, all times in ms as (the same key,
    time, weight), and the kind of the weights. Those of time are in ms there, and in nanoseconds here."""
    file = load(data, parse_float=Decimal)
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
    sums, times, kinds = Counter(), [], set()
    for t in file["threads"]:
        s = columns(t["samples"])
        kinds.add(s["weightType"])
        weights = s["weight"] or [1] * s["length"]
        if s["weightType"] == "tracing-ms":
            weights = [int(w * 10**6) for w in weights]
        expect(s["time"] == sorted(s["time"]), "firefox: times ascend")
        for stack, time, weight in zip(s["stack"], s["time"], weights):
            key = (t["processName"], t["name"], t["pid"].split(".")[0], t["tid"],
                   () if stack is None else paths[stack])
            sums[key] += weight
            times.append((key, float(time), weight))
    expect(len(kinds) == 1, f"firefox: one kind of weights: {kinds}")
    return sums, times, kinds.pop()


# ---- The page ----

def numbers_of(text, n, differences=False):
    """A column: LEB128 numbers in base64 without padding or with; differences are zigzag."""
    data = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    out, at, last = [], 0, 0
    for _ in range(n):
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if differences:
            last += -(value + 1 >> 1) if value & 1 else value >> 1
            value = last
        out.append(value)
    expect(at == len(data), "page: a column is longer than its table")
    return out


def page_tables(raw):
    """The path of each node, root first, as (name, module, kind, file)."""
    n = raw["symbols"]["n"]
    names, modules, kinds, files = (numbers_of(raw["symbols"][k], n, k == "name") for k in ("name", "module", "kind", "file"))
    symbols = [(raw["strings"][a], raw["strings"][m], k, raw["strings"][f])
               for a, m, k, f in zip(names, modules, kinds, files)]
    expect(len(set(symbols)) == n, "page: a symbol stands twice")
    places = numbers_of(raw["places"]["symbol"], raw["places"]["n"], True)
    for column in ("line", "high", "low"):
        numbers_of(raw["places"][column], raw["places"]["n"], column != "line")
    paths, path = [()], ()
    n = raw["nodes"]["n"]
    for place, up in zip(numbers_of(raw["nodes"]["place"], n), numbers_of(raw["nodes"]["up"], n)):
        expect(up <= len(path), "page: a node above the root")
        path = path[:len(path) - up] + (symbols[places[place]],)
        paths.append(path)
    expect(len(set(p for p in paths)) == len(paths), "page: a node stands twice")
    return paths


def page(data):
    """[(tid, pid, thread, process, owner), CPU, path, microseconds, value, count] of each sample, and the facts."""
    text = data.decode()
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    raw, = json.loads(found[1], object_pairs_hook=unique)
    paths = page_tables(raw)
    s, n = raw["samples"], raw["samples"]["n"]
    columns = [numbers_of(s[k], n, k == "time") for k in ("node", "time", "thread", "cpu", "value")]
    counts = numbers_of(s["count"], n) if raw["meta"]["weighted"] else columns[4]
    expect(raw["total"] == sum(columns[4]), "page: the total is not the samples' sum")
    expect(raw["cut"] == 0, "page: something is cut")
    return [(tuple(raw["threads"][thread]), cpu, paths[node], time, value, count)
            for node, time, thread, cpu, value, count in zip(*columns, counts)], raw["meta"]


# ---- SVG ----

SVG_TITLE = re.compile(r"(.*): (-?\d+) samples, (\d+\.\d\d)%", re.S)


def svg(data):
    """(path, root first, as in the titles) to value, of the boxes that are drawn; the sum. A box lies on its caller's."""
    tree = ElementTree.fromstring(data)
    boxes = []
    for group in tree.iter("{http://www.w3.org/2000/svg}g"):
        title, box = group[0].text, group[1].attrib
        m = SVG_TITLE.fullmatch(title)
        expect(m, f"svg: title {title!r}")
        boxes.append((-float(box["y"]), float(box["x"]), float(box["width"]), m[1], int(m[2]), m[3]))
    boxes.sort()
    sums, rows = Counter(), {}
    total, scale = boxes[0][4], (boxes[0][2] + 0.6) / boxes[0][4]
    for y, x, drawn, name, value, share in boxes:
        width = value * scale  # wide boxes leave a gap to the next
        expect(abs(width - drawn) <= 0.62, f"svg: {name} is {drawn} wide, of {width}")
        expect(abs(float(share) - 100 * value / total) <= 0.0051, f"svg: {name} is {share}% of {value} in {total}")
        below = [r for r in rows.get(y - 18, []) if r[0] <= x + width / 2 <= r[1]]
        expect(len(below) == 1 or not rows, f"svg: {name} lies on {below}")
        path = below[0][2] + (name,) if below else ()
        rows.setdefault(y, []).append((x, x + width, path))
        sums[path] += value
    return sums, total
