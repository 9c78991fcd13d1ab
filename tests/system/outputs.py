# SPDX-License-Identifier: Apache-2.0
# Rooms: src/render src/profile proto
"""Every output of a capture, opened by what it is made for: go tool pprof, speedscope, the Firefox
Profiler, an XML parser and a browser, a real OpenTelemetry Collector. All are of one capture, so
all must have the same samples."""
import base64
import contextlib
import glob
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.request
import xml.etree.ElementTree

import browser
import otelcol
import otlp
import rig
from otlp_check import check as problems_of

SUFFIXES = ("html", "svg", "folded", "pb.gz", "speedscope.json", "json", "json.gz", "perf.txt",
            "script", "otlp", "otlp.json")
CALLS = ["main", "chain_one", "chain_two", "chain_three", "chain_four", "chain_five", "chain_leaf"]
# A thread's name that means something to every format there is, and a byte that is no UTF-8.
EVIL = b"</a>\";\\ 7&\xff\n"


def file(suffix):
    return rig.path("all." + suffix)


def text(suffix):
    with open(file(suffix), encoding="utf-8") as f:
        return f.read()


def capture():
    directory = rig.build_workloads("chain")
    rig.start([os.path.join(directory, "chain")])
    rig.start(["python3", "-c", f"open('/proc/self/comm','wb').write({EVIL!r})\nwhile True: pass"])
    args = [a for s in SUFFIXES for a in ("-o", file(s))]
    done = rig.record("-a", "-d", "2", "-F", "199", *args)
    rig.check(done.status == 0, "a capture with all outputs" if done.status == 0 else done.text())
    return rig.total(rig.read_folded(file("folded")))


def check_svg(total):
    root = xml.etree.ElementTree.parse(file("svg")).getroot()
    titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
    rig.check(titles[0] == f"all: {total} samples, 100.00%", f"svg: {titles[0]}")
    for name in CALLS:
        rig.check(any(t.startswith(name + " (chain): ") for t in titles), f"svg: a box {name}")
    rig.check("<script" not in text("svg") and "</a>" not in text("svg"), "svg: no script, no markup")


def check_pprof(total):
    if not shutil.which("go") and os.path.exists("/usr/local/go/bin/go"):
        os.environ["PATH"] += ":/usr/local/go/bin"
    rig.need_programs("go")
    out = subprocess.run(["go", "tool", "pprof", "-sample_index=samples", "-raw", file("pb.gz")],
                         capture_output=True, text=True, check=True).stdout
    values = [int(line.split()[0]) for line in
              out.partition("\nSamples:\n")[2].partition("\nLocations")[0].splitlines()
              if re.match(r"\s+\d+\s+\d+: ", line)]
    rig.check(sum(values) == total, f"go tool pprof: {sum(values)} samples of {total}")


def check_perf_script(total):
    """As stackcollapse-perf does it: heads, frames and the empty line."""
    stacks, head, frames = {}, None, []
    for line in text("perf.txt").splitlines():
        if line.startswith("#"):
            continue
        m = re.match(r"(\S.+?)\s+(\d+)/*(\d+)*\s+\[\d+\]\s+\d+\.\d+:\s+(\d+)\s+(\S+):$", line)
        if m:
            head, frames = m, []
        elif line:
            f = re.match(r"\s*(\w+)\s*(.+) \((\S*)\)$", line)
            rig.check(f, f"perf script: frame {line!r}") if not f else None
            frames.append(f[2])
        elif head:
            key = (head[1], tuple(reversed(frames)))
            stacks[key] = stacks.get(key, 0) + 1
            head = None
    rig.check(sum(stacks.values()) == total, f"perf script: {sum(stacks.values())} samples of {total}")
    ours = sum(n for (comm, frames), n in stacks.items() if comm == "chain"
               and rig.contains_path(list(frames), CALLS))
    same = rig.total([s for s in rig.read_folded(file("folded")) if s.comm == "chain"
                      and rig.contains_path(s.user, CALLS)])
    rig.check(ours == same > 20, f"perf script: {ours} samples of the known path, as folded")
    rig.check(text("perf.txt").splitlines()[2:] == text("script").splitlines()[2:],
              ".script is the same")


def browse(what, url, extra=()):
    """The document a browser has made of a page."""
    program = browser.find()
    if not program:
        rig.skip("chromium is not installed")
    p = subprocess.run([program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                        "--disable-background-networking", f"--user-data-dir={rig.path('browser')}",
                        "--allow-file-access-from-files", "--virtual-time-budget=8000", *extra,
                        "--dump-dom", url], capture_output=True, timeout=120, check=False)
    rig.check(p.returncode == 0, f"the browser opens {what}")
    return p.stdout.decode("utf-8", "replace")


def check_speedscope(viewers, total):
    data = json.loads(text("speedscope.json"))
    period = round(1e9 / 199)
    for i, p in enumerate(data["profiles"]):
        if len(p["samples"]) != len(p["weights"]) or sum(p["weights"]) != p["endValue"]:
            rig.fail(f"speedscope: profile {i} contradicts itself")
    rest = sum(sum(p["weights"]) for p in data["profiles"][1:])
    rig.check(sum(data["profiles"][0]["weights"]) == rest and abs(rest - total * period) <= total,
              "speedscope: the sum is that of the threads and of the samples")
    index = os.path.join(viewers, "node_modules/speedscope/dist/release/index.html")
    for suffix, title in (("speedscope.json", "perfwalk record -a"), ("perf.txt", "all.perf.txt")):
        with open(file(suffix), "rb") as f:
            content = base64.b64encode(f.read()).decode()
        script = rig.write("load.js", f"speedscope.loadFileFromBase64({json.dumps('all.' + suffix)}, "
                           f"{json.dumps(content)})")
        page = browse(f"all.{suffix} in speedscope", f"file://{index}#localProfilePath={script}",
                      ("--enable-unsafe-swiftshader",))
        found = re.search(r"<title>(.*?)</title>", page)
        rig.check(found and title in found[1], f"speedscope shows it: {found and found[1][:60]}")


def check_firefox(viewers, total):
    data = json.loads(text("json"))
    with gzip.open(file("json.gz")) as f:
        rig.check(json.load(f) == data, "Firefox Profiler: .json.gz is .json")
    n = sum(t["samples"]["length"] for t in data["threads"])
    rig.check(n == total, f"Firefox Profiler: {n} samples of {total}")
    shared = data["shared"]
    for name, table in shared.items():
        if isinstance(table, dict):
            bad = [c for c, v in table.items() if c != "length" and len(v) != table["length"]]
            rig.check(not bad, f"Firefox Profiler: columns of {name} are of one length")
    with firefox_cli(viewers, file("json.gz")) as ask:
        rig.check(f"contains {len(data['threads'])} threads" in ask("profile", "info"),
                  "the Firefox Profiler upgrades it and finds every thread")
        thread = next(i for i, t in enumerate(data["threads"]) if t["name"] == "chain")
        tree = ask("thread", "samples", "--thread", f"t-{thread}")
        rig.check("chain!chain_leaf" in tree and "User" in tree, "and the calls of the workload")


@contextlib.contextmanager
def firefox_cli(viewers, name):
    """The Firefox Profiler with that file, by its command line: a function that asks it."""
    environment = {**os.environ, "HOME": rig.workdir(), "PROFILER_CLI_SESSION_DIR": rig.path("session")}
    cli = os.path.join(viewers, "node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js")

    def ask(*args):
        p = subprocess.run(["node", cli, *args], capture_output=True, text=True, timeout=120,
                           env=environment, check=False)
        if p.returncode != 0:
            rig.fail(f"profiler-cli {' '.join(args)}: {p.stdout}{p.stderr}")
        return p.stdout

    def is_up():
        return subprocess.run(["node", cli, "profile", "info"], capture_output=True, timeout=120, env=environment, check=False).returncode == 0

    def load():
        """It gives its daemon half a second to come up, and a busy machine does not: then it may be there a little later."""
        p = subprocess.run(["nice", "-n", "-15", "node", cli, "load", name], capture_output=True, text=True,
                           timeout=120, env=environment, check=False)
        late = re.search(r"still be running as pid (\d+)", p.stdout + p.stderr)
        if late:
            end = time.monotonic() + 20
            while not is_up() and time.monotonic() < end:
                time.sleep(0.5)
            if time.monotonic() < end:
                return True
            rig.kill(int(late[1]), signal.SIGKILL)
        elif p.returncode != 0:
            rig.fail(f"profiler-cli load: {p.stdout}{p.stderr}")
        return p.returncode == 0
    try:
        rig.wait_for("the Firefox Profiler loads it", load, 150)
        yield ask
    finally:
        ask("stop", "--all")


def content(data):
    return sorted(map(repr, otlp.View(otlp.decode(data)).samples()))


def check_otlp(total):
    with open(file("otlp"), "rb") as f:
        binary = f.read()
    problems = problems_of(binary, rate=199, file=True)
    rig.check(not problems, "otlp: one message that holds every rule"
              + "".join(f"\n    {rule}: {what}" for rule, what in problems[:10]))
    n = sum(s[3] for s in otlp.View(otlp.decode(binary)).samples())
    rig.check(n == total, f"otlp: {n} samples of {total}")
    if shutil.which("protoc"):
        with open(file("otlp"), "rb") as f:
            p = subprocess.run(["protoc", f"-I{rig.TOP}", "--decode",
                                "opentelemetry.proto.profiles.v1development.ProfilesData",
                                f"{rig.TOP}/proto/otlp-profiles.proto"], stdin=f,
                               capture_output=True, cwd=rig.TOP, check=False)
        rig.check(p.returncode == 0, f"otlp: protoc decodes it {p.stderr.decode()[:300]}")
    data = json.loads(text("otlp.json"))
    stamps = sum(len(s["timestampsUnixNano"]) for r in data["resourceProfiles"]
                 for sp in r["scopeProfiles"] for p in sp["profiles"] for s in p["samples"])
    rig.check(stamps == total, f"otlp.json: {stamps} timestamps of {total}")
    return binary


def check_collector(binary):
    real = otelcol.start({"http": ("http", "")})
    request = urllib.request.Request(f"http://127.0.0.1:{real.ports['http']}/v1development/profiles",
                                     text("otlp.json").encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as reply:
        rig.check(reply.status == 200, "the collector takes it as application/json")
    rig.wait_for("the collector writes it", lambda: real.messages("http"), 10)
    rig.check(content(real.messages("http")[0]) == content(binary),
              "and has the same resources, stacks and times as the binary file")


def check_viewers(total):
    p = subprocess.run(["sh", os.path.join(rig.HERE, "build-viewers.sh")], capture_output=True,
                       text=True, check=False)
    if p.returncode == 77:
        rig.skip(p.stderr.strip())
    rig.check(p.returncode == 0, f"the viewers are here {p.stderr[-500:] if p.returncode else ''}")
    check_speedscope(p.stdout.strip(), total)
    check_firefox(p.stdout.strip(), total)
    check_types(p.stdout.strip())


def check_choice():
    """--format and standard output."""
    done = rig.record("-o", "-", "--format", "folded", "--", "true")
    rig.check(done.status == 0 and "Samples" in done.err and "Samples" not in done.out,
              "-o - --format folded: the output alone on standard output")
    rig.parse_folded(done.out)
    for args, word in ((["-o", "-"], "--format"), (["--format", "folded"], "-o FILE"),
                       (["-o", "x.html", "--format", "flod"], "unknown format"),
                       (["-o", "-", "-o", "-", "--format", "svg"], "one output only"),
                       (["-o", "x.foo"], ".speedscope.json")):
        done = rig.record(*args, "--", "true")
        rig.check(done.status == 2 and word in done.err, f"{' '.join(args)}: {done.err.strip()}")


def check_events():
    """What is counted are page faults, not nanoseconds: three a sample, in each format's own way."""
    outputs = {s: rig.path("faults." + s) for s in ("speedscope.json", "json", "perf.txt", "folded")}
    program = os.path.join(rig.build_workloads("counted"), "counted")
    r = rig.record("-e", "page-faults", "-c", "3", *(x for f in outputs.values() for x in ("-o", f)), "--",
                   program, "faults", "3000")
    rig.check(r.status == 0, "a capture of page faults" + ("" if r.status == 0 else r.text()))
    samples = rig.total(rig.read_folded(outputs["folded"]))
    with open(outputs["speedscope.json"], encoding="utf-8") as f:
        scope = json.load(f)["profiles"][0]
    rig.check(scope["unit"] == "none" and sum(scope["weights"]) == 3 * samples > 2900,
              f"speedscope: {sum(scope['weights'])} of unit {scope['unit']}, {samples} samples")
    with open(outputs["perf.txt"], encoding="utf-8") as f:
        heads = re.findall(r": +(\d+) (\S+):$", f.read(), re.M)
    rig.check(set(heads) == {("3", "page-faults")} and len(heads) == samples, f"perf script: {set(heads)}")
    with open(outputs["json"], encoding="utf-8") as f:
        threads = json.load(f)["threads"]
    rig.check(all("threadCPUDelta" not in t["samples"] for t in threads), "Firefox: no CPU time is made up")


# What is captured, of which workload, and the types with their units.
TYPES = ((("--wall", "--memory"), ("waits", "30"), {"off_cpu": "nanoseconds", "wall": "nanoseconds", "memory_growth": "bytes"}),
         (("--alloc",), ("heap",), {"alloc_space": "bytes", "alloc_objects": "count", "inuse_space": "bytes", "inuse_objects": "count"}))
MOUNTED = ("unshare", "-m", "sh", "-c", 'mount -t tracefs none /sys/kernel/tracing; exec "$0" "$@"')
GO_UNITS = {"": 1, "B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "mins": 6e10}


def check_type_in_go(name, kind, unit):
    """Its own report has the type and a sum with a unit; its plain numbers are the truth for the others."""
    def ask(*args):
        return subprocess.run(["go", "tool", "pprof", f"-sample_index={kind}", *args, name], capture_output=True, text=True, check=True).stdout
    raw = ask("-raw")
    types = raw.split("Samples:\n")[1].splitlines()[0].split()
    column = next(i for i, t in enumerate(types) if t.split("[")[0] == f"{kind}/{unit}")
    values = re.findall(r"^ *((?: *\d+)+): ", raw.split("Samples:\n")[1].split("Locations")[0], re.M)
    total = sum(int(v.split()[column]) for v in values)
    text = ask("-top")
    shown = re.search(r" of ([\d.]+)(\w*) total", text)
    rig.check(f"Type: {kind}\n" in text and shown and (shown[2] == "") == (unit == "count")
              and abs(float(shown[1]) * GO_UNITS[shown[2]] - total) <= 0.006 * total + 1,
              f"go tool pprof: {kind}: {shown and shown[0].strip()}, {total} {unit}")
    return total


def check_type_in_viewers(viewers, name, kind, unit, total):
    files = {s: rig.path(f"{kind}.{s}") for s in ("speedscope.json", "json.gz")}
    subprocess.run([rig.perfwalk(), "convert", "-e", kind, name, *(x for f in files.values() for x in ("-o", f))], check=True,
                   stdout=subprocess.DEVNULL)
    bundle, = glob.glob(os.path.join(viewers, "node_modules/speedscope/dist/release/speedscope-*.js"))
    p = subprocess.run(["node", os.path.join(rig.TOP, "tests", "oracle", "speedscope.js"), bundle, files["speedscope.json"]],
                       capture_output=True, text=True, check=True)
    shown = json.loads(p.stdout)[files["speedscope.json"]][0]
    rig.check((shown["unit"], shown["total"]) == ("none" if unit == "count" else unit, total), f"speedscope: {kind}: {shown['total']} {shown['unit']}")
    with gzip.open(files["json.gz"]) as f:
        threads = json.load(f)["threads"]
    types = {t["samples"]["weightType"] for t in threads}
    # It has no type of weight for counted things but samples, and of time milliseconds.
    scale = 1e-6 if unit == "nanoseconds" else 1
    weight = sum(sum(t["samples"]["weight"]) for t in threads)
    rig.check(types == {{"nanoseconds": "tracing-ms", "bytes": "bytes", "count": "samples"}[unit]} and abs(weight - total * scale) <= 1e-6 * total * scale,
              f"Firefox Profiler: {kind}: {weight:.10g} of {types}")
    if kind not in ("off_cpu", "alloc_space"):  # one of each unit that it knows: it takes long to come up
        return
    with firefox_cli(viewers, files["json.gz"]) as ask:
        selves = [f["selfSamples"] for i in range(len(threads)) for f in
                  json.loads(ask("thread", "functions", "--thread", f"t-{i}", "--limit", "0", "--include-idle", "--json"))["functions"]]
        rig.check(abs(sum(selves) - total * scale) <= 1e-6 * total * scale + 0.5, f"which it adds up to {sum(selves):.10g}")


def check_types(viewers):
    """Each type of profile, with its unit."""
    directory = rig.build_workloads(*(program for _, (program, *_), _ in TYPES))
    for options, (program, *args), types in TYPES:
        name = rig.path(program + ".pb.gz")
        p = subprocess.run([*MOUNTED, rig.perfwalk(), "record", *options, "-o", name, "--", os.path.join(directory, program), *args],
                           capture_output=True, text=True, check=False)
        if p.returncode != 0 and "tracefs" in p.stderr:
            rig.leave_out(f"{', '.join(types)}: {p.stderr.strip()}")
            continue
        rig.check(p.returncode == 0, f"a capture of {', '.join(types)} {p.stderr[-300:] if p.returncode else ''}")
        for kind, unit in types.items():
            check_type_in_viewers(viewers, name, kind, unit, check_type_in_go(name, kind, unit))


def main():
    rig.need_root()
    check_choice()
    check_events()
    total = capture()
    check_svg(total)
    rig.apart(browse, "the svg", "file://" + file("svg"))
    check_perf_script(total)
    binary = check_otlp(total)
    rig.apart(check_collector, binary)
    rig.apart(check_viewers, total)
    rig.apart(check_pprof, total)


if __name__ == "__main__":
    rig.run(main)
