# SPDX-License-Identifier: Apache-2.0
# Rooms: runtimes src/opener src/cmd
"""Frames of Python threads: perfwalk debug runtime says of odd chains of calls what the interpreter itself says, with
lines, for every CPython of this host, and of a program that is stopped anywhere what faulthandler says there. Where
gdb and debug information are, all offsets are those of the debug information. `PYTHON="PATH..."` names other
interpreters, `PYTHON_STOPS` how often a program is stopped."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess

import rig

PROGRAM = os.path.join(rig.WORKLOADS, "chains.py")
STOPS = int(os.environ.get("PYTHON_STOPS", "25"))

# What gdb calls the offsets; a struct or a field that a version does not have is no difference.
EXPRESSIONS = {
    "_PyRuntime.interpreters.head": ["struct pyruntimestate:interpreters.head"],
    "interpreter.next": ["PyInterpreterState:next"],
    "interpreter.threads.head": ["PyInterpreterState:threads.head", "PyInterpreterState:tstate_head"],
    "thread.prev": ["PyThreadState:prev"],
    "thread.next": ["PyThreadState:next"],
    "thread.interp": ["PyThreadState:interp"],
    "thread.frame": ["PyThreadState:current_frame", "PyThreadState:frame"],
    "thread.cframe": ["PyThreadState:cframe"],
    "thread.thread_id": ["PyThreadState:thread_id"],
    "thread.native_thread_id": ["PyThreadState:native_thread_id"],
    "thread.datastack_chunk": ["PyThreadState:datastack_chunk"],
    "cframe.current_frame": ["_PyCFrame:current_frame"],
    "frame.previous": ["_PyInterpreterFrame:previous", "struct _frame:f_back"],
    "frame.code": ["_PyInterpreterFrame:f_executable", "_PyInterpreterFrame:f_code", "struct _frame:f_code"],
    "frame.instruction": ["_PyInterpreterFrame:instr_ptr", "_PyInterpreterFrame:prev_instr", "struct _frame:f_lasti"],
    "frame.is_entry": ["_PyInterpreterFrame:is_entry"],
    "frame.owner": ["_PyInterpreterFrame:owner"],
    "code.co_filename": ["PyCodeObject:co_filename"],
    "code.name": ["PyCodeObject:co_qualname", "PyCodeObject:co_name"],
    "code.co_firstlineno": ["PyCodeObject:co_firstlineno"],
    "code.co_linetable": ["PyCodeObject:co_linetable", "PyCodeObject:co_lnotab"],
    "code.co_code_adaptive": ["PyCodeObject:co_code_adaptive"],
    "object.ob_type": ["PyObject:ob_type"],
    "object.ob_size": ["PyVarObject:ob_size"],
    "bytes.ob_sval": ["PyBytesObject:ob_sval"],
    "text.length": ["PyASCIIObject:length"],
    "text.state": ["PyASCIIObject:state"],
    "text, ASCII characters": ["PyASCIIObject:"],
    "text, other characters": ["PyCompactUnicodeObject:"],
}


def interpreters():
    """{version: path} of those that there are."""
    given = os.environ.get("PYTHON", "").split()
    paths = given or [shutil.which("python3")] + [shutil.which(f"python3.{n}") for n in range(6, 16)] + \
        sorted(glob.glob("/usr/bin/python3.*[0-9]") + glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")))
    found = {}
    for path in paths:
        p = subprocess.run([path, "-c", "import sys; print(*sys.version_info[:3], sep='.'); print(sys.prefix); "
                            "print(sys.version_info >= (3, 6))"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False) if path else None
        if p and p.returncode == 0 and p.stdout.endswith("True\n"):
            found.setdefault(p.stdout, path)
    return {f"{text.split()[0]} of {text.split()[1]}": path for text, path in found.items()}


def debug(pid):
    """What perfwalk says: its head, and {tid: ([[function, file, line], ...], how it ended)}."""
    p = subprocess.run([rig.perfwalk(), "debug", "runtime", str(pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       timeout=120, check=False)
    out = p.stdout.decode()
    if p.returncode != 0:
        rig.fail(f"debug runtime: {p.returncode} {p.stderr.decode()}")
    head, *threads = re.split(r"^thread (\d+), stopped for a moment:\n", out, flags=re.M)
    stacks = {}
    for thread, text in zip(threads[::2], threads[1::2]):
        lines = text.splitlines()
        frames = [re.fullmatch(r"  (.*) \((.*?)(?::(\d+))?\)(, native code called it)?", line) for line in lines[:-1]]
        stacks[int(thread)] = ([[f[1], f[2], int(f[3] or 0)] for f in frames], lines[-1].removeprefix("  = "))
    return head, stacks


def difference(expected, got):
    """Of two chains, the first place where they differ."""
    for i in range(max(len(expected), len(got))):
        if expected[i:i + 1] != got[i:i + 1]:
            return f"frame {i}: {expected[i:i + 1]} but {got[i:i + 1]}"
    return ""


def start(python, mode, **options):
    name = rig.path(f"{mode}.json")
    if os.path.exists(name):
        os.unlink(name)
    p = rig.start([python, PROGRAM, mode, name], stdin=subprocess.PIPE, **options)

    def is_there():
        if p.poll() is not None:
            rig.fail(f"{python} {mode}: it ended with {p.returncode}")
        return os.path.exists(name)
    rig.wait_for(f"the threads of {python} {mode}", is_there)
    return p, name


def load(name):
    with open(name, encoding="utf-8") as f:
        return json.load(f)


def compare(what, truth, stacks):
    wrong = []
    for thread, chain in truth.items():
        got, ended = stacks.get(int(thread), ([], "no thread"))
        if got != chain or ended != "the thread's first frame":
            wrong.append(f"\n    {chain[1][0]}: {difference(chain, got)}, {ended}")
    frames = sum(len(c) for c in truth.values())
    rig.check(not wrong, f"{what}: {len(truth)} chains of {frames} frames, as the interpreter has them" +
              "".join(wrong[:8]))


def check_parked(version, python):
    p, name = start(python, "parked")
    head, stacks = debug(p.pid)
    release = re.match(r"CPython (\S+)", head)
    rig.check(release and version.startswith(release[1]) and "untested" not in head,
              f"{version}: it is CPython {release and release[1]}")
    compare(version, load(name), stacks)
    library = next((line.split()[-1] for line in open(f"/proc/{p.pid}/maps", encoding="utf-8")
                    if re.search(r"/libpython3\.\d+\w*\.so", line)), os.path.realpath(python))
    rig.end(p)
    return head, library


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return int(f.read().split()[0])


def check_forked(version, python):
    p, name = start(python, "forked")
    compare(f"{version}, after a fork", load(name), debug(child_of(p.pid))[1])
    rig.end(p)


def check_namespace(version, python):
    """Where threads have other numbers than here."""
    name = rig.path("parked.json")
    if os.path.exists(name):
        os.unlink(name)
    p = rig.start(["unshare", "--pid", "--fork", "--mount-proc", python, PROGRAM, "parked", name],
                  stdin=subprocess.PIPE)
    rig.wait_for("the threads in a pid namespace", lambda: os.path.exists(name) or p.poll() is not None)
    if p.poll() is not None:
        rig.say(f"{version}: no pid namespace can be made here")
        return
    child = child_of(p.pid)
    stacks = {}
    for thread, stack in debug(child)[1].items():
        with open(f"/proc/{child}/task/{thread}/status", encoding="utf-8") as f:
            stacks[int(re.search(r"^NSpid:.*?(\d+)$", f.read(), re.M)[1])] = stack
    compare(f"{version}, in a pid namespace", load(name), stacks)
    rig.end(p)


def check_nested(version, python):
    """An interpreter within: frames of both, the inner one's first."""
    name = rig.path("nested.json")
    if os.path.exists(name):
        os.unlink(name)
    p = rig.start([python, PROGRAM, "nested", name], stderr=subprocess.PIPE)
    rig.wait_for("the inner interpreter", lambda: os.path.exists(name) or p.poll() is not None)
    if p.poll() is not None:
        rig.say(f"{version}: it makes no interpreter within another")
        return
    with open(name, encoding="ascii") as f:
        thread = int(f.read())
    got, ended = debug(p.pid)[1][thread]
    names = [f[0] for f in got]
    rig.check(names == ["within"] * 3 + ["<module>", "nested", "main", "<module>"] and
              ended == "the thread's first frame", f"{version}: {len(names)} frames of two interpreters"
              + ("" if len(names) == 7 else f" {got}, {ended}"))
    rig.end(p)


def stop(pid):
    rig.kill(pid, signal.SIGSTOP)

    def is_stopped():
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rpartition(")")[2].split()[0] in "tT"
    rig.wait_for("the program to stop", is_stopped)


def dumps(name):
    """The chains that faulthandler has written so far; one that is not whole yet is left out."""
    with open(name, encoding="utf-8") as f:
        text = f.read()
    chains = []
    for dump in re.split(r"^(?:Current thread|Stack) .*\n", text, flags=re.M)[1:]:
        # Code of no line, as what ends a generator, has "???". So has the frame between native code and Python's.
        frames = re.findall(r'^  File "(.*)", line (\d+|\?\?\?) in (.*)\n', dump, re.M)
        if frames and frames[-1][2] == "<module>":
            chains.append([[f[2], f[0], int(f[1].replace("???", "0"))] for f in frames if f[0] != "<shim>"])
    return chains


def has_part(name):
    """Whether faulthandler began a chain that it has not ended, and perhaps never will."""
    with open(name, encoding="utf-8") as f:
        last = f.read().rpartition("(most recent call first):\n")[2]
    return last != "" and " in <module>\n" not in last


def start_busy(python):
    p, name = start(python, "busy")
    rig.wait_for("the program to work", lambda: rig.cpu_seconds(p.pid) > 0.3)
    return p, name


def check_busy(version, python):
    """Stopped anywhere: a signal that comes meanwhile is handled before the program executes anything else."""
    p, name = start_busy(python)
    wrong, seen, n_dumps, n_crashes = [], set(), 0, 0
    for _ in range(STOPS):
        stop(p.pid)
        got, ended = debug(p.pid)[1][p.pid]
        rig.kill(p.pid, signal.SIGUSR1)
        rig.kill(p.pid, signal.SIGCONT)
        is_whole = ended == "the thread's first frame"
        rig.wait_for("faulthandler", lambda: len(dumps(name)) > n_dumps or p.poll() is not None or
                     not is_whole and has_part(name))
        if p.poll() is not None or len(dumps(name)) == n_dumps:
            # The handlers of 3.12.1 and 3.13.0 read frames that are still being made or left. In one of a hundred stops
            # they crash (with SIGBUS if a pointer in the frame register cannot be an address), or have no whole chain.
            n_crashes += 1
            if p.poll() not in (None, -signal.SIGSEGV, -signal.SIGBUS) or n_crashes > STOPS / 5:
                rig.fail(f"{version}: the program ended with {p.returncode}")
            if p.poll() is None:
                rig.end(p)
            (p, name), n_dumps = start_busy(python), 0
            continue
        expected = dumps(name)[n_dumps]
        n_dumps += 1
        # It says no qualified names.
        short = [[re.sub(r".*\.(?=[^.]+$)", "", f[0]), f[1], f[2]] for f in got]
        seen.add(str(short))
        if short != expected or not is_whole:
            wrong.append(f"\n    {difference(expected, short)}, {ended}")
    rig.check(not wrong, f"{version}: stopped {STOPS} times, in {len(seen)} stacks, as faulthandler has them" +
              "".join(wrong[:8]))
    rig.check(len(seen) >= min(STOPS, 20) / 5, f"{version}: it was stopped at {len(seen)} places")
    rig.end(p)


def check_offsets(version, head, library):
    script = rig.write("offsets.py", f"""
import gdb
for name, places in {EXPRESSIONS!r}.items():
    for place in places:
        struct, _, field = place.partition(":")
        try:
            print("offset", name, "=", int(gdb.parse_and_eval(
                f"(long)&((({{struct}} *)0)->{{field}})" if field else f"sizeof({{struct}})")))
            break
        except gdb.error:
            pass
""")
    p = subprocess.run(["gdb", "-q", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-x", script, library],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600, check=False)
    truth = dict(re.findall(r"^offset (.*) = (\d+)$", p.stdout, re.M))
    if not truth:
        rig.say(f"{version}: no debug information of {library}")
        return
    ours = dict(re.findall(r"^  (\S.*?) {2,}(\d+)$", head, re.M))
    # Up to 3.10 a thread has its frame, although there is a C frame beside it; 3.6 has no _PyRuntime.
    wrong = [f"\n    {n}: {ours[n]}, but {truth[n]}" for n in ours
             if n in truth and ours[n] != truth[n]]
    missing = [n for n in EXPRESSIONS if n in truth and n not in ours and not
               (n.startswith(("thread.cframe", "cframe")) and "frame.previous" in ours and "thread.frame" in ours)]
    rig.check(not wrong and not missing and len(ours) > 15,
              f"{version}: {len([n for n in ours if n in truth])} offsets are those of the debug information" +
              "".join(wrong) + "".join(f"\n    {n} is missing" for n in missing))


def main():
    rig.need_root()
    found = interpreters()
    if not found:
        rig.skip("no Python")
    for version, python in found.items():
        head, library = check_parked(version, python)
        check_forked(version, python)
        check_nested(version, python)
        check_busy(version, python)
        if shutil.which("gdb"):
            check_offsets(version, head, library)
    check_namespace(*next(iter(found.items())))


rig.run(main)
