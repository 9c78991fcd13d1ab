# SPDX-License-Identifier: Apache-2.0
# Rooms: runtimes unwind src/profiler src/opener src/broker src/cmd
"""Frames of JavaScript in Node.js, without an agent and without flags: a program of known chains of calls is walked from
its innermost function down to native code, in each of V8's kinds of code. Most leaves call a native function of their
own, so that the native part of the very same stack says which one it must be. `NODE="PATH..."` names other programs
than the host's node."""
import atexit
import os
import re
import shutil
import subprocess

import rig
from pprof_file import calls_with_lines
from sink import Sink

SECONDS = float(os.environ.get("NODE_SECONDS", "1.5"))
RATE = os.environ.get("NODE_RATE", "199")
PROGRAM = os.path.join(rig.WORKLOADS, "calls.js")
LATE = "[interpreter not read in time]"
# What has no name, or runs a function that has none, as before V8 was found.
UNNAMED = ("[jit]", "Builtins_InterpreterEntryTrampoline")
UNPROVEN = ("[runtime frames not proven]", "[JavaScript function not proven]")

MODES = {
    "as it is": [],
    "interpreted": ["--no-opt", "--no-sparkplug"],
    "baseline": ["--no-opt", "--always-sparkplug"],
}
# Node.js 22 and later compile with it.
MAGLEV = ["--maglev", "--no-turbofan"]
IS_MAGLEV = ("function f() { let s = 0; for (let i = 0; i < 1e4; i++) s += i % 7; return s; } "
             "for (let i = 0; i < 3000; i++) f(); process.exit(%ActiveTierIsMaglev(f) ? 0 : 1)")

LEAVES = ["chain_json", "chain_hash", "chain_normalize", "chain_big", "chain_regexp", "chain_loop"]
# What may stand between chain_turn and one of those.
CALLERS = [[], ["chain_outer", "chain_middle", "chain_inner"], ["chain_deep"] * 21, ["chain_callback", "chain_called"],
           ["chain_by_key", "chain_key"], ["chain_consume", "chain_generate"], ["chain_shape", "chain_area"],
           ["chain_catch", "chain_raise"], ["chain_made", "chain_evaluated"], ["chain_made"],
           ["chain_closes", "chain_closure"], ["chain_machine", "chain_imported"]]
CHAINS = [["chain_main", "chain_turn"] + callers + [leaf] for callers in CALLERS for leaf in LEAVES]
CHAINS += [["chain_awaits", leaf] for leaf in LEAVES]
PREFIXES = {tuple(chain[:n]) for chain in CHAINS for n in range(len(chain) + 1)}
PREFIXES.add(("chain_main", "chain_awaits")) # up to its await
WHOLE = {tuple(chain) for chain in CHAINS}
# Native functions that only one of the leaves calls.
NATIVE = {
    "chain_json": r"v8::internal::JsonStringif",
    "chain_hash": r"sha256_block|node::crypto::Hash::Hash(Update|Digest)",
    "chain_normalize": r"icu_\d+::|v8::internal::Intl::Normalize",
    "chain_big": r"v8::bigint::",
}


def plain(frame):
    return re.sub(r"_\[.\]$", "", frame)


def verdict(stack):
    """What is to be said of it; None: not of the part that is known."""
    names = [plain(f) for f in stack.user]
    ours = [n for n in names if n.startswith("chain_")]
    if LATE in names:
        return "late"
    if any(n in UNPROVEN for n in names):
        return "unproven"
    if not ours: # Node.js has functions of its own
        return "unnamed" if any(n in UNNAMED for n in names) else None
    if not stack.complete() or tuple(ours) not in PREFIXES:
        return "wrong"
    inside = names[len(names) - names[::-1].index(ours[-1]):]
    for leaf, pattern in NATIVE.items():
        if any(re.match(pattern, n) for n in inside) and (ours[-1] != leaf or tuple(ours) not in WHOLE):
            return "wrong"
    return "right"


def judge(stacks):
    counts = {"right": 0, "late": 0, "unproven": 0, "unnamed": 0, "wrong": 0}
    wrong = []
    for s in stacks:
        v = verdict(s)
        if v:
            counts[v] += s.n
        if v == "wrong":
            wrong.append((s.n, s.complete(), s.user))
    return counts, wrong


def start(node, options, threads=1, *more):
    p = rig.start([node, *options, PROGRAM, str(threads), *more])
    rig.wait_for("the program to run", lambda: rig.cpu_seconds(p.pid) > 1)
    return p


def modes_of(node):
    """Those that it has."""
    p = subprocess.run([node, "--allow-natives-syntax", *MAGLEV, "-e", IS_MAGLEV], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
    if p.returncode != 0:
        print(f"not tested: {node} does not compile by Maglev")
        return MODES
    return {**MODES, "by Maglev": MAGLEV}


def check_lines(what, profile):
    """Each function calls others at lines of its own."""
    with open(PROGRAM, encoding="utf-8") as f:
        text = f.read().split("\n")
    calls = {"chain_outer": "chain_middle(leaf)", "chain_middle": "chain_inner(leaf)",
             "chain_inner": "leaf()", "chain_callback": "forEach"}
    right, wrong, unknown = 0, [], 0
    for name, line in calls_with_lines(profile):
        if name in calls and line == 0:
            unknown += 1
        elif name in calls and calls[name] in text[line - 1]:
            right += 1
        elif name in calls:
            wrong.append((name, line))
    # Others are calls of V8's own, such as when it looks whether the stack is full.
    rig.check(right > 5 and len(wrong) <= 1 + right // 50, f"{what}: {right} calls at the lines where they are, {len(wrong)} elsewhere, "
              f"{unknown} without one" + "".join(f"\n{w}" for w in wrong[:5]))


def check_mode(node, what, options, threads, *more):
    p = start(node, options, threads, *more)
    folded, profile = rig.path("node.folded"), rig.path("node.pb.gz")
    rig.record_cpu(SECONDS, [p.pid], "-p", p.pid, "-F", RATE, "-o", folded, "-o", profile)
    rig.end(p)
    counts, wrong = judge(rig.read_folded(folded))
    n = sum(counts.values())
    text = f"{what}: {n} samples: " + ", ".join(f"{v} {k}" for k, v in counts.items())
    rig.check(n > 50 and counts["right"] > (0.7 if more else 0.9) * n, text)
    rig.check(counts["wrong"] <= 1 + n // 500, f"{what}: {counts['wrong']} with a chain that the program does not have"
              + "".join(f"\n{w}" for w in wrong[:5]))
    if not more:
        check_lines(what, profile)


def check_short(node, name):
    """Programs and workers that soon end are read before that, the sooner the younger they are."""
    program = f"for i in $(seq 10); do {node} {PROGRAM} 1 as-it-is 300000; done"
    workers = (f"let n = 10; const next = () => n-- && new (require('worker_threads').Worker)('{PROGRAM}', "
               "{argv: ['1', 'as-it-is', '300000']}).on('exit', next); next()")
    for what, command in (("programs", ["sh", "-c", program]), ("workers", [node, "-e", workers])):
        folded = rig.path("short.folded")
        r = rig.record("-F", "499", "-o", folded, "--", *command)
        counts, wrong = judge(rig.read_folded(folded))
        n = sum(counts.values())
        text = f"{name}, {what} of 0.3 s: {n} samples: " + ", ".join(f"{v} {k}" for k, v in counts.items())
        rig.check(r.status == 0 and n > 500 and counts["right"] > 0.8 * n, text)
        rig.check(counts["wrong"] <= 1 + n // 500, f"{name}, {what} of 0.3 s: {counts['wrong']} wrong: {wrong[:3]}")


def check_entries(node, name):
    """Baseline code makes its frame by a call, of which small functions that call each other have many samples. In
    Node.js 24 a tenth of them is not proven."""
    chain = ["small_main", "small_outer", "small_inner"] + ["small_deep"] * 4
    p = rig.start([node, "--no-opt", "--always-sparkplug", os.path.join(rig.WORKLOADS, "small.js")])
    rig.wait_for("the program to run", lambda: rig.cpu_seconds(p.pid) > 1)
    folded = rig.path("small.folded")
    rig.record_cpu(1, [p.pid], "-p", p.pid, "-F", "997", "-o", folded)
    rig.end(p)
    counts, wrong = {}, []
    for s in rig.read_folded(folded):
        ours = [n for n in map(plain, s.user) if n.startswith("small_")]
        v = "unproven" if any(n in UNPROVEN for n in s.user) else "right" if ours == chain[:len(ours)] else "wrong"
        counts[v] = counts.get(v, 0) + (s.n if ours else 0)
        wrong += [s.user] if v == "wrong" else []
    n = sum(counts.values())
    rig.check(counts["right"] > 0.8 * n and n > 50 and counts.get("wrong", 0) <= n // 200,
              f"{name}, small functions: {counts}" + "".join(f"\n{w}" for w in wrong[:3]))


def check_copied(node, name):
    """V8 copies its built-in functions to memory where the file's device in /proc/PID/maps is not that of stat(2)."""
    parts = {x: rig.path(f"{name}.{x}") for x in ("written", "merged")}
    for x in parts.values():
        os.makedirs(x)
    subprocess.run(["mount", "-t", "tmpfs", "none", parts["written"]], check=True)
    atexit.register(subprocess.run, ["umount", "-l", parts["written"]], check=False)
    for x in ("upper", "work"):
        os.mkdir(f"{parts['written']}/{x}")
    options = f"lowerdir={os.path.dirname(node)},upperdir={parts['written']}/upper,workdir={parts['written']}/work"
    if subprocess.run(["mount", "-t", "overlay", "none", "-o", options, parts["merged"]], check=False).returncode != 0:
        rig.leave_out("no overlay can be mounted here")
        return
    atexit.register(subprocess.run, ["umount", "-l", parts["merged"]], check=False)
    check_mode(os.path.join(parts["merged"], os.path.basename(node)), f"{name}, of an overlay", [], 1)


def debug(pid):
    p = subprocess.run([rig.perfwalk(), "debug", "runtime", str(pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True, timeout=120, check=False)
    return p.returncode, p.stdout, p.stderr


def check_debug(node):
    version = subprocess.run([node, "-p", "process.versions.v8"], stdout=subprocess.PIPE, text=True, check=False).stdout
    p = start(node, [])
    found = []

    def shows_stack():
        """The thread may be in native code when it is stopped."""
        found[:] = debug(p.pid)
        return found[0] != 0 or re.search(r"^  chain_main \(.*calls.js:\d+\)", found[1], re.M)
    rig.wait_for("a stack", shows_stack)
    rig.end(p)
    release = re.search(r"^V8 ([0-9.]+)$", found[1], re.M)
    rig.check(found[0] == 0 and release and version.startswith(release[1] + "."),
              f"debug runtime: V8 {release and release[1]}, a version that was tried{found[2]}")
    rig.check("JSFunction: shared" in found[1], "debug runtime: where it has its offsets from")


def check_daemon(node):
    with Sink() as sink:
        d = rig.Daemon(f"[profiler]\nsamples_per_second = 97\nreporter_interval = 1s\n[export:sink]\nendpoint = "
                       f"{sink.endpoint}\n", "node")
        d.wait_up()
        p = start(node, [])

        def seen():
            return any(int(resource.get("process.pid", 0)) == p.pid and ("chain_main", "chain_turn") == tuple(
                f for f in map(plain, frames) if f.startswith("chain_"))[:2]
                       for view in sink.views() for resource, _, frames, _ in view.samples())
        rig.wait_for("chains of JavaScript in the daemon's windows", seen, 60)
        rig.check(True, "the daemon's windows have chains of JavaScript")
        rig.end(p)
        d.stop()


def main():
    rig.need_root()
    rig.need_programs("node")
    for node in os.environ.get("NODE", os.path.realpath(shutil.which("node"))).split():
        name = "node-" + subprocess.run([node, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        for what, options in modes_of(node).items():
            check_mode(node, f"{name}, {what}", options, 1)
        check_mode(node, f"{name}, 3 threads", [], 3)
        check_mode(node, f"{name}, closures", ["--max-semi-space-size=2"], 1, "closures")
        check_short(node, name)
        check_copied(node, name)
        check_entries(node, name)
        check_debug(node)
    check_daemon(os.path.realpath(shutil.which("node")))


if __name__ == "__main__": # tests/kernels has its judges
    rig.run(main)
