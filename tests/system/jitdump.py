# SPDX-License-Identifier: Apache-2.0
# Rooms: unwind symbolize src/profiler src/symbolizer src/opener
"""Names of compiled code from jitdump files: of a producer of known times, seen from its start and
joined while it runs, of Node.js, and one that cannot be used. And from a perf map that an agent
wrote outside of the pid namespace of the program. Stacks through compiled code without frame pointers,
as far as the jitdump file says how it is unwound."""
import gzip
import os
import re
import signal
import subprocess
import time

import rig

SCRIPT = """'use strict';
function scriptLeaf(n) {
	let x = n;
	for (let i = 0; i < 20000; i++)
		x = (x * 31 + i) | 0;
	return x;
}
let total = 0;
const end = Date.now() + 2000;
while (Date.now() < end)
	total = (total + scriptLeaf(total)) | 0;
"""


# Each calls the other; half of the time is spent before they have set up their frames. What comes
# between makes Node.js write down the last of what it says of them: it writes 4 KiB at a time.
FRAMELESS = """'use strict';
function fibLeft(n) { return n < 2 ? n : fibRight(n - 1) + fibRight(n - 2); }
function fibRight(n) { return n < 2 ? n : fibLeft(n - 1) + fibLeft(n - 2); }
let total = 0;
function run(ms) {
	const end = Date.now() + ms;
	while (Date.now() < end)
		total = (total + fibLeft(20)) | 0;
}
run(100);
for (let i = 0; i < 50; i++) {
	const f = new Function('n', `let x = n; for (let i = 0; i < 100; i++) x = (x * ${i + 3}) | 0; return x;`);
	for (let k = 0; k < 300; k++)
		total = (total + f(k)) | 0;
}
run(2000);
"""


def shares(stacks):
    """Samples, and those in each function under the caller that runs it and no other."""
    return rig.total(stacks), [sum(s.n for s in stacks if rig.contains_path(s.user, ["main", f"run_{x}", f"jitted_{x}"]))
                               for x in ("first", "second")]


def check_record(what, r, target):
    """A command that -d ends, if it has not ended by then, has that signal in its status."""
    good = r.status == 0 or r.status == 143 and "--" in target
    rig.check(good, what + ("" if good else r.text()))


def check_turns(what, *target):
    folded, pprof, otlp = rig.path("turns.folded"), rig.path("turns.pb.gz"), rig.path("turns.json.gz")
    r = rig.record("-F", 199, "-d", "6.2", "-o", folded, "-o", pprof, "-o", otlp, *target)
    check_record(what, r, target)
    stacks = rig.read_folded(folded)
    total, (first, second) = shares(stacks)
    rig.check(total > 50 and first + second > 0.9 * total,
              f"{what}: {first} + {second} of {total} samples are in compiled functions" +
              ("" if first + second > 0.9 * total else "\n" + "\n".join(str((s.user, s.n)) for s in stacks[:20])))
    rig.check(first > 0.25 * total and second > 0.25 * total, f"{what}: each at its time, at nearly the same addresses")
    with gzip.open(pprof) as f:
        rig.check(b"jitted.source" in f.read(), f"{what}: pprof names the source file")
    return r


def check_unwound(what, how, *target, seconds=1):
    """Whether the stacks reach the entry: all, or without such records none."""
    folded = rig.path("unwound.folded")
    for more in (0, 5, 20):  # a busy host has little time for it
        r = rig.record("-F", 199, "-d", seconds + more, "-o", folded, *target)
        check_record(what, r, target)
        stacks = rig.read_folded(folded)
        inner = [s for s in stacks if s.user and s.user[-1].startswith("jitted_inner")]
        if rig.total(inner) > 20:
            break
    whole = [s for s in inner if s.user[0] == "_start" and
             rig.contains_path(s.user, ["main", "run_outer", "jitted_outer", "jitted_inner"])]
    n, total = rig.total(whole), rig.total(inner)
    right = n == 0 if how == "untold" else n > 0.97 * total
    rig.check(total > 20 and right,
              f"{what}: {n} of {total} samples in jitted_inner reach the entry" +
              ("" if right else "\n" + "\n".join(str((s.user, s.n)) for s in stacks[:20])))


def check_all_unwound(program):
    for how in ("behind", "apart", "untold"):
        # Its code moves twice a second.
        check_unwound(how, how, "--", program, rig.workdir(), how, seconds=1.7 if how == "behind" else 1)
    p = rig.start([program, rig.workdir(), "behind"])
    rig.wait_for("it runs", lambda: os.path.exists(rig.path(f"jit-{p.pid}.dump")))
    check_unwound("behind, joined later", "behind", "-p", p.pid)
    rig.end(p)


def check_node():
    folded, pprof = rig.path("node.folded"), rig.path("node.pb.gz")
    script = rig.write("script.js", SCRIPT)
    r = rig.record("-F", 199, "--no-interpreters", "-o", folded, "-o", pprof, "--", "node", "--perf-prof", script, cwd=rig.workdir())
    rig.check(r.status == 0, "node --perf-prof" + ("" if r.status == 0 else r.text()))
    stacks = rig.read_folded(folded)
    mine = [s for s in stacks if any("scriptLeaf" in f and f.endswith("_[j]") for f in s.user)]
    rig.check(rig.total(mine) > 20,
              f"node --perf-prof: {rig.total(mine)} of {rig.total(stacks)} samples in scriptLeaf")
    with gzip.open(pprof) as f:
        rig.check(script.encode() in f.read(), "node --perf-prof: pprof names the script")


def check_node_frameless():
    """Without what V8 says of these instructions the walk skips the caller: 40% of all samples.
    Compiled functions are JS:*NAME, up to Node.js 18 LazyCompile:*NAME."""
    folded = rig.path("node.folded")
    r = rig.record("-F", 499, "--no-interpreters", "-o", folded, "--", "node", "--perf-prof", "--perf-prof-unwinding-info", "--no-turbo-inlining",
                   "--sparkplug", rig.write("fib.js", FRAMELESS), cwd=rig.workdir())
    rig.check(r.status == 0, "node --perf-prof-unwinding-info" + ("" if r.status == 0 else r.text()))
    stacks = [s for s in rig.read_folded(folded) if s.user and ":*fib" in s.user[-1]]
    wrong = rig.total(s for s in stacks if len(s.user) > 1 and s.user[-1] == s.user[-2])
    total = rig.total(stacks)
    rig.check(total > 100 and wrong < 0.15 * total, f"node --perf-prof-unwinding-info: {wrong} of {total} samples have no caller")


def symbolizer_of(pid):
    return next((c for c in rig.children_of(pid) if rig.comm_of(c) == rig.ROLES["symbolizer"]), 0)


def check_outside_map(built):
    rig.need_programs("unshare")
    p = rig.start(["unshare", "--fork", "--pid", "--kill-child", os.path.join(built, "jit"), "no-map"])
    pid = rig.wait_for("it runs", lambda: next((c for c in rig.children_of(p.pid)
                                                if rig.comm_of(c) == "jit" and rig.code_of(c)), 0))
    with open(f"/tmp/perf-{pid}.map", "w", encoding="utf-8") as f:
        f.write(f"{rig.code_of(pid):x} 1000 named_outside\n")
    r = rig.record_cpu(0.5, [pid], "-p", pid, "-F", 199, "-o", rig.path("outside.folded"))
    rig.check(r.status == 0, "a program in a pid namespace of its own")
    stacks = rig.read_folded(rig.path("outside.folded"))
    n = sum(s.n for s in stacks if rig.contains_path(s.user, ["main", "jit_run", "named_outside"]))
    rig.check(n > 0.8 * rig.total(stacks) and n > 10,
              f"{n} of {rig.total(stacks)} samples are named by the map of our pid")
    rig.end(p)


def check_deadly_map(built):
    """A map that its reader dies of is set aside, also when it has grown since."""
    p = rig.start([os.path.join(built, "jit"), "no-map"])
    code = rig.wait_for("it runs", lambda: rig.code_of(p.pid))
    name = f"/tmp/perf-{p.pid}.map"
    with open(name, "w", encoding="utf-8") as f:  # takes long to read
        f.writelines(f"{code + 0x1000 + i:x} 1 far_away_{i}\n" for i in range(900000))
        f.write(f"{code:x} 1000 named\n")
    folded = rig.path("deadly.folded")
    capture = rig.start([rig.perfwalk(), "record", "-p", str(p.pid), "-F", "99", "-d", "5", "-o", folded],
                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    first = rig.wait_for("a symbolizer", lambda: symbolizer_of(capture.pid))
    pages = rig.status_pages(capture.pid)

    def is_read():
        return any(page.find(b"perf map of process %d\0" % p.pid) >= 0 for page in pages)
    rig.wait_for("the map is read", is_read)
    rig.kill(first, signal.SIGABRT)  # sanitizers have a handler for SIGSEGV
    with open(name, "a", encoding="utf-8") as f:
        f.write("1 1 more\n")
    rig.wait_for("a new symbolizer", lambda: symbolizer_of(capture.pid) not in (0, first))
    seen = 0
    while capture.poll() is None:
        seen += is_read()
        time.sleep(0.05)
    err = capture.stderr.read()
    rig.check(capture.returncode == 0, f"a capture whose symbolizer died of a perf map leaves with {capture.returncode}")
    rig.check(f"the perf map of process {p.pid} set aside for 1h: the symbolizer died while reading it" in err,
              "it says which: " + next((line for line in err.splitlines() if "set aside" in line), err))
    rig.check(seen == 0 and err.count("was killed") == 1, f"the next one is not given it, and lives on ({seen})")
    stacks = rig.read_folded(folded)
    n, named = rig.total(stacks), rig.total(s for s in stacks if any("named" in f for f in s.user))
    rig.check(n > 20 and named == 0, f"{n} samples are there, {named} with a name from it")
    rig.end(p)


def main():
    rig.need_root()
    built = rig.build_workloads("jitdump", "jit", "unwound")
    check_deadly_map(built)
    program = os.path.join(built, "jitdump")
    check_outside_map(built)
    check_turns("from the start", "--", program, rig.workdir())
    p = rig.start([program, rig.workdir()])
    rig.wait_for("it runs", lambda: os.path.exists(rig.path(f"jit-{p.pid}.dump")))
    check_turns("joined later", "-p", p.pid)
    rig.end(p)

    r = rig.record("-F", 99, "-d", 2, "-o", rig.path("bad.folded"), "--", program, rig.workdir(), "swapped")
    rig.check(r.status == 143 and r.err.count("another byte order") == 1,
              "one of another byte order is reported, once" + ("" if r.status == 143 else r.text()))
    stacks = rig.read_folded(rig.path("bad.folded"))
    rig.check(any(re.match(r"\[.*\]", s.user[-1]) for s in stacks if s.user), "and its code stays without a name")
    check_all_unwound(os.path.join(built, "unwound"))
    rig.need_programs("node")
    check_node()
    check_node_frameless()


rig.run(main)
