# SPDX-License-Identifier: Apache-2.0
# Rooms: src/import src/render src/symbolizer src/cmd proto
"""Recorded files read again: a capture goes through each format and back and is the same; pprof
files of another tool give what go tool pprof gives; report, diff and convert print what their
options say; damaged files get an error that names the file and the cause."""
import gzip
import os
import re
import signal
import subprocess

import otlp
import otlp_check
import rig
from pprof_file import pprof

GO = r"""
package main

import (
	"os"
	"runtime/pprof"
	"time"
)

//go:noinline
func inner(n int) (s int) {
	for i := 0; i < n; i++ {
		s += i * i
	}
	return
}

//go:noinline
func outer(n int) int { return inner(n) + inner(n/2) }

func main() {
	f, _ := os.Create(os.Args[1])
	pprof.StartCPUProfile(f)
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		outer(100000)
	}
	pprof.StopCPUProfile()
	f.Close()
}
"""


def perfwalk(*args, status=0):
    p = subprocess.run([rig.perfwalk(), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       stdin=subprocess.DEVNULL, timeout=120, check=False)
    rig.check(p.returncode == status, f"perfwalk {' '.join(os.path.basename(a) for a in args)} ends with {status}"
              + ("" if p.returncode == status else f", not {p.returncode}:\n{p.stdout}{p.stderr}"))
    return p.stdout if status == 0 else p.stderr


def lines_of(name):
    with open(name, encoding="utf-8") as f:
        return sorted(f.read().splitlines())


def capture():
    chain = os.path.join(rig.build_workloads("chain"), "chain")
    files = {s: rig.path(f"capture.{s}") for s in ("folded", "pb.gz", "otlp", "html")}
    r = rig.record("-F", "199", "-d", "2", *(x for f in files.values() for x in ("-o", f)), "--", chain)
    rig.check(r.status == 143, "the capture" + ("" if r.status == 143 else r.text()))
    return files


def round_trips(files):
    truth = lines_of(files["folded"])
    rig.check(len(truth) > 0, f"{len(truth)} stacks captured")
    for suffix in ("folded", "pb.gz", "otlp"):
        back = rig.path(f"back-{suffix}.folded")
        perfwalk("convert", files[suffix], "-o", back)
        have = lines_of(back)
        rig.check(have == truth, f"{suffix}: the stacks and their numbers are the capture's"
                  + ("" if have == truth else "\n" + "\n".join(sorted(set(have) ^ set(truth))[:6])))
    twice = rig.path("twice.folded")
    perfwalk("convert", files["pb.gz"], files["folded"], "-o", twice)
    n = sum(int(l.rsplit(" ", 1)[1]) for l in truth)
    rig.check(sum(int(l.rsplit(" ", 1)[1]) for l in lines_of(twice)) == 2 * n, "two files are added up")
    page = rig.path("back.html")
    perfwalk("convert", files["pb.gz"], "-o", page)
    with open(page, encoding="utf-8") as f:
        text = f.read()
    rig.check(f"{n:,}" in text or str(n) in text, "the page of a pprof file knows its samples")
    rig.check(os.uname().nodename in text, "the page of a pprof file knows the host")


def other_events():
    """Fixed distances and distances of the kernel's choice: numbers and head come back too."""
    for what in (("-c", "10"), ("-F", "99")):
        files = {s: rig.path(f"faults.{s}") for s in ("folded", "pb.gz", "otlp")}
        r = rig.record("-e", "page-faults", *what, *(x for f in files.values() for x in ("-o", f)), "--",
                       "python3", "-c", "x = bytearray(30 << 20)")
        rig.check(r.status == 0, "a capture of page faults" + ("" if r.status == 0 else r.text()))
        for suffix in ("pb.gz", "otlp"):
            perfwalk("convert", files[suffix], "-o", rig.path("faults-back.folded"))
            rig.check(lines_of(rig.path("faults-back.folded")) == lines_of(files["folded"]),
                      f"{' '.join(what)}: {suffix} has the same stacks and numbers")
            rig.check("page-faults" in perfwalk("report", files[suffix]), "and names the event")
        rows = [perfwalk("report", "--csv", "--percent-limit", "0", "-s", "service", files[s]) for s in ("pb.gz", "otlp")]
        rig.check(rows[0] == rows[1] and "\tpython3" in rows[0], f"services, whatever comm is: {rows}")


def tables(files):
    stacks = rig.read_folded(files["folded"])
    total = rig.total(stacks)
    out = perfwalk("report", "--csv", "--sort", "symbol", "--percent-limit", "0", files["pb.gz"])
    rows = [l.split("\t") for l in out.splitlines()[1:]]
    rig.check(sum(int(r[2]) for r in rows) == total, f"the table's values add up to {total}")
    leaf = {}
    for line in lines_of(files["folded"]):
        stack, n = line.rsplit(" ", 1)
        name = re.sub(r"_\[[kij]\]$", "", stack.split(";")[-1])
        leaf[name] = leaf.get(name, 0) + int(n)
    top = max(leaf, key=leaf.get)
    rig.check(rows[0][3] == top and int(rows[0][2]) == leaf[top], f"the first row is {top}, {leaf[top]} samples")
    out = perfwalk("report", files["pb.gz"])
    rig.check(re.search(r"cpu-clock at 199 Hz|cycles at 199 Hz", out), "the head says event and rate")
    rig.check(f"{total} samples, 0 lost" in out, "the head says samples and losses")
    rig.check(re.search(r"\bmain\b", out), "the table has main")
    out = perfwalk("report", "--symbol", f"^{re.escape(top)}$", "--callers", files["pb.gz"])
    rig.check(re.search(r"%  +" + re.escape(top) + r"[\s\S]*[% ] +main\b", out), "the callers lead to main")
    out = perfwalk("report", "--callers", "--top", "1", files["pb.gz"])
    rig.check(re.search(r"Callers of " + re.escape(top) + r"[\s\S]*[% ] +main\b", out),
              "without --symbol the callers are the first row's")
    with open(rig.path("many.folded"), "w", encoding="utf-8") as f:
        f.writelines(f"p;main;f{i} 1\n" for i in range(25))
    for top_option, wanted in (((), 10), (("--top", "12"), 12), (("--top", "0"), 26)):
        out = perfwalk("report", "--callers", *top_option, rig.path("many.folded"))
        rig.check(out.count("Callers of") == wanted, f"{wanted} trees with {' '.join(top_option) or 'no --top'}")
    out = perfwalk("report", "--csv", "--children", "--percent-limit", "0", "--sort", "symbol", files["pb.gz"])
    totals = [float(l.split("\t")[1]) for l in out.splitlines()[1:]]
    rig.check(totals == sorted(totals, reverse=True) and totals[0] > 90, "--children sorts by total")
    out = perfwalk("report", "--no-children", files["pb.gz"])
    rig.check("SELF" in out and "TOTAL" not in out, "--no-children leaves the totals out")
    rows = perfwalk("report", "--csv", "--sort", "container,unit,comm,line,symbol", files["pb.gz"]).splitlines()
    rig.check({len(r.split("\t")) for r in rows} == {8}, "empty values keep their columns")
    rig.check("no sample matches" in perfwalk("report", "--container", "none*", files["pb.gz"]), "--container filters")
    heads = [perfwalk("report", "--sort", "comm", files[s]).split("\n\n")[0] for s in ("pb.gz", "otlp")]
    rig.check(heads[0] == heads[1] and " CPU" in heads[0] and os.uname().release in heads[0],
              "pprof and OTLP files have the same honest head")
    out = perfwalk("report", "--symbol", "^main$", "--callees", files["folded"])
    rig.check(re.search(r"%  main\b[\s\S]*" + re.escape(top), out), "the callees lead to the leaf")
    ties = rig.write("ties.folded", "".join(f"p;main;{f} {n}\n" for f, n in zip("abcde", (2, 2, 2, 1, 1))))
    out = perfwalk("report", "--symbol", "^main$", "--callees", ties)
    rig.check(re.findall(r"% +([a-e])$", out, re.M) == list("abcde"), "callees of equal count are all there")
    out = perfwalk("report", "--sort", "comm", files["otlp"])
    rig.check(re.search(r"100\.00%.*chain", out), "sorted by comm there is one row")
    perfwalk("report", "--comm", "no*such", files["otlp"])


def others_labels():
    """In pprof a key may come again, and mean another thing to another profiler; in OTLP it stands once."""
    path = pprof("others.pb", [(["work"], [7], [("k", "1"), ("k", "2"), ("thread.id", "x"), ("thread.name", "y"), ("route", "/r")])],
                 [("samples", "count")])
    out, back = rig.path("others.otlp"), rig.path("others.back.pb.gz")
    perfwalk("convert", path, "-o", out, "-o", back)
    with open(out, "rb") as f:
        data = f.read()
    problems = [p for p in otlp_check.check(data, file=True) if p[0] == "I9"]
    view = otlp.View(otlp.decode(data))
    found = [view.table_attributes(s.attribute_indices) for rp in view.message.resource_profiles
             for sp in rp.scope_profiles for p in sp.profiles for s in p.samples]
    rig.check(not problems and len(found) == 1 and found[0]["k"] == "1" and found[0]["route"] == "/r"
              and found[0].get("thread.id", 0) == 0, f"labels of others in OTLP: {found} {problems[:2]}")
    p = subprocess.run(["go", "tool", "pprof", "-tags", back], check=True, capture_output=True, text=True)
    rig.check(all(x in p.stdout for x in ("thread.id", "thread.name", "route")) and re.search(r"\b2\b", p.stdout),
              "pprof keeps them all")


def choices(files):
    """--event, and outputs that go to standard output or have a suffix of no meaning."""
    heap = pprof("heap.pb", [(["early"], [900, 100]), (["late"], [100, 300])],
                 [("alloc_space", "bytes"), ("inuse_space", "bytes")])
    for event, first in ((None, "late"), ("inuse_space", "late"), ("alloc_space", "early")):
        rows = perfwalk("report", heap, "--csv", *(("--event", event) if event else ())).splitlines()
        rig.check(rows[1].split("\t")[-1] == first, f"--event {event}: {rows[1]!r}")
    err = perfwalk("report", heap, "-e", "objects", status=1)
    rig.check("alloc_space:bytes, inuse_space:bytes" in err and "heap.pb" in err, f"what it has instead: {err.strip()!r}")
    err = perfwalk("report", files["otlp"], "--event", "objects", status=1)
    rig.check("samples" in err, f"OTLP: {err.strip()!r}")
    perfwalk("report", files["otlp"], "--event", "samples")
    direct = perfwalk("convert", files["folded"], "--format", "folded", "-o", "-")
    rig.check(sorted(direct.splitlines()) == lines_of(files["folded"]), "convert to standard output")
    odd = rig.path("suffix.of.no.meaning")
    perfwalk("convert", files["pb.gz"], "-o", odd, "--format", "folded")
    rig.check(len(lines_of(odd)) == len(lines_of(files["folded"])), "--format with any suffix")
    p = subprocess.run([rig.perfwalk(), "report", files["pb.gz"], "-o", "-", "--format", "folded"],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True, timeout=120)
    rig.check(len(p.stdout.splitlines()) == len(lines_of(odd)) and "SYMBOL" in p.stderr,
              "report: the table goes to standard error then")
    page = perfwalk("diff", files["pb.gz"], files["folded"], "-o", "-", "--format", "html")
    rig.check(page.startswith("<!DOCTYPE html>"), "diff to standard output")
    for args, word in ((("convert", files["pb.gz"], "-o", "-"), "--format"),
                       (("convert", files["pb.gz"], "-o", "-", "-o", "-", "--format", "folded"), "one output"),
                       (("convert", files["pb.gz"], "-o", odd), "suffix"),
                       (("convert", files["pb.gz"], "-o", odd, "--format", "jpeg"), "speedscope"),
                       (("report", files["pb.gz"], "--format", "folded"), "-o"),
                       (("diff", files["pb.gz"], files["otlp"], "-o", "-", "--format", "svg"), ".folded")):
        err = perfwalk(*args, status=2)
        rig.check(word in err, f"refused: {err.strip()!r}")


def nobody_reads(files):
    """What a table has been written to is full, closed, or gone."""
    for command in (("report", files["pb.gz"]), ("diff", files["pb.gz"], files["folded"])):
        for how, redirection, status in (("full", ">/dev/full", 1), ("closed", ">&-", 0),
                                         ("a pipe nobody reads", "| true", 0)):
            script = f'"$@" {redirection}; echo ${{PIPESTATUS[0]}} >&2'
            p = subprocess.run(["bash", "-c", script, "bash", rig.perfwalk(), *command], stderr=subprocess.PIPE,
                               text=True, check=False, timeout=120)
            rig.check(p.stderr.split()[-1] == str(status) and ("No space left" in p.stderr) == (status == 1),
                      f"{command[0]}: standard output {how}: {p.stderr.strip()!r}")


def differences(files):
    out = perfwalk("diff", files["pb.gz"], files["folded"])
    rig.check("changed less" in out and " new " not in out, "a capture does not differ from itself")
    before, after = rig.write("a.folded", "p;main;f 60\np;main;g 40\n"), rig.write(
        "b.folded", "p;main;f 20\np;main;h 80\np;main;g 100\n")
    out = perfwalk("diff", "--csv", before, after)
    rows = {r.split("\t")[7]: r.split("\t") for r in out.splitlines()[1:]}
    rig.check([float(x) for x in rows["f"][:3]] == [60, 10, -50], "f shrank by 50 points")
    rig.check(rows["h"][6] == "new" and float(rows["h"][2]) == 40, "h is new, with 40 points")
    rig.check(float(rows["g"][2]) == 10, "g grew by 10 points")
    page = rig.path("both.html")
    perfwalk("diff", before, after, "-o", page)
    with open(page, encoding="utf-8") as f:
        rig.check("<canvas" in f.read(), "a page of the difference")
    both = rig.path("both.folded")
    perfwalk("diff", before, after, "-o", both)
    rig.check(lines_of(both) == ["p;main;f 60 20", "p;main;g 40 100", "p;main;h 0 80"], "stacks with two counts")
    in_use = [("inuse_space", "bytes")]
    before = pprof("a.pb", [(["stays", "main"], [5 << 20]), (["leaks", "main"], [1 << 20]), (["goes", "main"], [3 << 10])], in_use)
    after = pprof("b.pb", [(["stays", "main"], [5 << 20]), (["leaks", "main"], [9 << 20])], in_use)
    out = perfwalk("diff", before, after, "--percent-limit", "0")
    rows = {line.split()[-2]: line.split() for line in out.splitlines()[4:]}
    rig.check("In use: 6.0 MiB before, 14.0 MiB after" in out and list(rows)[0] == "leaks"
              and rows["leaks"][4:8] == ["+8.0", "MiB", "+8.0", "MiB"] and rows["stays"][4:8] == ["0", "B", "0", "B"]
              and rows["goes"][4:9] == ["-3.0", "KiB", "-3.0", "KiB", "gone"], f"memory in use is compared in bytes:\n{out}")
    out = perfwalk("diff", "--csv", before, after)
    rows = {r.split("\t")[7]: r.split("\t") for r in out.splitlines()[1:]}
    rig.check(set(rows) == {"leaks", "main"} and float(rows["main"][5]) == (8 << 20) - (3 << 10), f"what changed by less than 0.1% of it is left out: {rows}")


def other_tools():
    if subprocess.run(["go", "version"], stdout=subprocess.DEVNULL, check=False).returncode != 0:
        rig.skip("go is not installed")
    source = rig.write("main.go", GO)
    program, profile = rig.path("goprof"), rig.path("go.pprof")
    env = dict(os.environ, GO111MODULE="off", GOFLAGS="")
    subprocess.run(["go", "build", "-o", program, source], env=env, check=True)
    subprocess.run([program, profile], check=True)
    truth = subprocess.run(["go", "tool", "pprof", "-top", "-sample_index=samples", "-nodecount=500", "-nodefraction=0",
                            profile], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    want = {}
    for line in truth.splitlines():
        m = re.match(r"\s*(\d+)\s+[\d.]+%\s+[\d.]+%\s+(\d+)\s+[\d.]+%\s+(.*)", line)
        if m:
            want[re.sub(r" \(inline\)$", "", m[3])] = (int(m[1]), int(m[2]))
    out = perfwalk("report", "--csv", "--sort", "symbol", "--percent-limit", "0", profile)
    total = sum(int(l.split("\t")[2]) for l in out.splitlines()[1:])
    have = {l.split("\t")[3]: (int(l.split("\t")[2]), round(float(l.split("\t")[1]) * total / 100))
            for l in out.splitlines()[1:]}
    rig.check(len(want) > 2 and have == want, f"go tool pprof and report agree on {len(want)} functions"
              + ("" if have == want else f"\n{sorted(have.items() ^ want.items())[:6]}"))


def in_place(files):
    name = rig.path("same.folded")
    with open(files["folded"], "rb") as f, open(name, "wb") as out:
        out.write(f.read())
    perfwalk("convert", name, "-o", name)
    rig.check(lines_of(name) == lines_of(files["folded"]), "a file converted into itself is what it was")
    perfwalk("convert", rig.write("damaged.folded", "nothing\n"), "-o", name, status=1)
    rig.check(lines_of(name) == lines_of(files["folded"]), "an output outlives a damaged input")


def bad_files(files):
    with open(files["pb.gz"], "rb") as f:
        good = f.read()
    raw = gzip.decompress(good)
    cases = {
        "empty.pb.gz": (b"", "it is empty"),
        "cut.pb.gz": (good[:len(good) // 2], "is damaged or truncated"),
        "cut.pb": (raw[:-1], "truncated at byte"),
        "noise.pb": (os.urandom(500), "not a pprof file"),
        "bomb.pb.gz": (gzip.compress(bytes(1200 << 20), 1), "inflates to more than"),
        "noise.otlp": (b"\x0a\x05hello", "OTLP"),
        "long.otlp": (b"\x00\xff\xff\xff1234", "it is truncated"),
        "text.folded": (b"no number here\n", "line 1"),
        "binary": (bytes(range(16)) * 4, "format is unknown"),
        "viewer.json": (b'{"a": 1}\n', "no pages, pictures and JSON"),
        "viewer.json.gz": (gzip.compress(b'{"a": 1}\n'), "no pages, pictures and JSON"),
    }
    with open(files["html"], "rb") as f:
        cases["page.html"] = f.read(), "no pages, pictures and JSON"
    for name, (content, why) in cases.items():
        with open(rig.path(name), "wb") as f:
            f.write(content)
        out = rig.path("bad.html")
        err = perfwalk("convert", rig.path(name), "-o", out, status=1)
        rig.check(name in err and why in err, f"{name}: {err.strip()}")
        rig.check(not os.path.exists(out), f"{name}: no half-written output is left")
    err = perfwalk("report", rig.path("not-there"), status=1)
    rig.check("No such file" in err, "a file that is not there is named")
    for args, why in ((("report",), "needs a recorded file"), (("convert", files["pb.gz"]), "add -o"),
                      (("convert",), "needs a recorded file; "), (("diff",), "BEFORE and AFTER"),
                      (("report", "--store", "/x", files["pb.gz"]), "add that"), (("report", "--store", "/x"), "--last"),
                      (("diff", files["pb.gz"]), "BEFORE and AFTER"), (("report", "--symbol", "(", "x"), "--symbol"),
                      (("report", "--sort", "nothing", "x"), "comm, container"),
                      (("report", "--callers", "--sort", "comm", "x"), "the key symbol"),
                      (("diff", "a", "b", "-o", "c.pb.gz"), ".folded"),
                      (("convert", "a", "-o", "b.xyz"), ".html")):
        err = perfwalk(*args, status=2)
        rig.check(why in err, f"{' '.join(map(os.path.basename, args))}: {err.strip()}")


def messages_with_lengths(files):
    """As the collector's file exporter writes them."""
    with open(files["otlp"], "rb") as f:
        message = f.read()
    with open(rig.path("collector.otlp"), "wb") as f:
        f.write(2 * (len(message).to_bytes(4, "big") + message))
    perfwalk("convert", rig.path("collector.otlp"), "-o", rig.path("collector.folded"))
    twice = sorted(re.sub(r"\d+$", lambda m: str(2 * int(m[0])), l) for l in lines_of(files["folded"]))
    rig.check(lines_of(rig.path("collector.folded")) == twice, "two messages behind their lengths are added up")


def killed_reader():
    with open(rig.path("large.folded"), "w", encoding="utf-8") as f:
        for i in range(400000):
            f.write(f"p{i % 7};main;f{i};g{i};h{i % 1000} 1\n")
    out = rig.path("large.html")
    p = rig.start([rig.perfwalk(), "convert", rig.path("large.folded"), "-o", out], stdin=subprocess.DEVNULL,
                  stderr=subprocess.PIPE, text=True)
    child = rig.wait_for("a child reads", lambda: [c for c in rig.children_of(p.pid)
                                                   if rig.comm_of(c) == rig.ROLES["symbolizer"]])[0]
    rig.wait_for("a reader without privileges", lambda: rig.status_of(child)["Uid"].split()[0] != "0" or os.geteuid() != 0)
    rig.kill(child, signal.SIGSEGV)
    err = p.communicate(timeout=120)[1]
    rig.check(p.returncode == 1 and "large.folded: the process that read it died" in err, f"a reader that dies: {err.strip()}")
    rig.check(len(err.splitlines()) == 1, "and nothing is said that is meant for captures")
    rig.check(not os.path.exists(out), "it leaves no output behind")


def main():
    files = capture()
    round_trips(files)
    other_events()
    tables(files)
    others_labels()
    choices(files)
    nobody_reads(files)
    differences(files)
    messages_with_lengths(files)
    in_place(files)
    bad_files(files)
    killed_reader()
    other_tools()


rig.run(main)
