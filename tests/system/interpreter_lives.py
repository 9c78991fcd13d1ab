# SPDX-License-Identifier: Apache-2.0
# Rooms: runtimes src/reader src/profiler src/host src/opener src/judge src/broker
"""What becomes of interpreters while they are recorded: they fork workers, execute themselves or another interpreter,
their file is replaced on disk, it is stripped, in a mount and pid namespace of its own, or has a name that says nothing.
Each has its names still."""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys

import rig

WORK = """
import os, sys, time
def chain_{what}():
    s = 0
    for i in range(20000):
        s += i
    return s
def run(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        chain_{what}()
"""
FORKS = WORK.format(what="worker") + """
def chain_server():
    run(0.2)
chain_server()
for _ in range(4):
    if os.fork() == 0:
        run(60)
run(60)
"""
# When it is told to: by then it has been recorded.
EXECUTES = WORK.format(what="first") + """
import signal
signal.signal(signal.SIGUSR1, lambda *_: os.execv(sys.argv[1], [sys.argv[1]] + sys.argv[2:]))
run(600)
"""
# A process of its own for each bit of work.
FORKS_OFTEN = WORK.format(what="child") + """
for _ in range(12):
    if os.fork() == 0:
        run(0.15)
        os._exit(0)
    os.wait()
"""
# A thread of its own for each bit of work, as in a server, beside one that stays.
THREADS = WORK.format(what="main") + """
import threading
def chain_thread():
    for i in range(60000):
        pass
def begin_threads():
    while time.process_time() < 1.5:
        t = threading.Thread(target=chain_thread)
        t.start()
        t.join()
threading.Thread(target=begin_threads).start()
run(1.5)
"""
OF_THREADS = {"run", "chain_main", "chain_thread", "begin_threads"}
FOREVER = "run(600)\n"
JAVASCRIPT = "function chain_node() { let s = 0; for (let i = 0; i < 20000; i++) s += i % 7; return s; } for (;;) chain_node();"
PHP = "function chain_php() { $s = 0; for ($i = 0; $i < 20000; $i++) $s += $i % 7; return $s; } for (;;) chain_php();"


def names(what, command, want, executes=False, **options):
    """Records half a second of a program's CPU time, and as much of the one that it executes: each of these functions
    is there."""
    p = rig.start(command, **options)
    rig.wait_for(f"{what}: it runs", lambda: rig.cpu_seconds(p.pid) > 0.1)
    folded = rig.path("lives.folded")
    ends = []  # of each life, in CPU time

    def has_lived():
        now = rig.cpu_seconds(p.pid)
        if not ends:
            ends.append(now + 0.5)
        elif len(ends) == 1 and executes and now > ends[0]:
            p.send_signal(signal.SIGUSR1)
            ends.append(now + 0.5)
        return now > ends[-1] and len(ends) == 1 + executes

    r = rig.record("-p", p.pid, "-F", "199", "-o", folded, until=has_lived)
    rig.end(p)
    rig.check(r.status == 0, f"{what}: recorded" + ("" if r.status == 0 else r.text()))
    stacks = rig.read_folded(folded)
    counts = {name: sum(s.n for s in stacks if any(f.startswith(name) for f in s.user)) for name in want}
    rig.check(all(counts.values()), f"{what}: {counts}")


def check_first(python):
    """A program that begins while it is recorded: readers know it long before the next drain is due, 200 ms later. On a
    busy host it does not get far by then anyway."""
    folded = rig.path("first.folded")
    r = rig.record("-F", "199", "-o", folded, "--", python, "-c", WORK.format(what="first") + "run(0.9)\n")
    stacks = rig.read_folded(folded)
    late = sum(s.n for s in stacks if any(f.startswith("[interpreter not read in time]") for f in s.user))
    rig.check(r.status == 0 and 0.7 * 179 < rig.total(stacks) and late < 0.12 * 179,
              f"of a program's first {rig.total(stacks)} samples {late} are late" + ("" if r.status == 0 else r.text()))


def check_threads(what, *command):
    """Threads that begin and end all the time wake the readers for nothing, too; samples are read all the same, and no
    thread gets another's functions."""
    folded = rig.path("threads.folded")
    what = f"threads that begin and end{what}"
    r = rig.record("-F", "199", "-o", folded, "--", *command, "-c", THREADS)
    rig.check(r.status == 0, f"{what}: recorded" + ("" if r.status == 0 else r.text()))
    stacks = [s for s in rig.read_folded(folded) if "[interpreter not read in time]" in s.user or OF_THREADS & set(s.user)]
    late = [s for s in stacks if "[interpreter not read in time]" in s.user]
    rig.check(rig.total(stacks) > 50 and rig.total(late) < 0.15 * rig.total(stacks),
              f"{what}: {rig.total(late)} of {rig.total(stacks)} samples were not read in time")
    short = sum(s.n for s in stacks if "chain_thread" in s.user)
    missed = sum(s.n for s in late if "start_thread" in s.user)
    rig.check(short > 2 and missed < short, f"{what}: {short} samples of short threads have their functions, {missed} do not")
    wrong = [s.user for s in stacks if OF_THREADS & set(s.user) not in
             ((set(), {"chain_thread"}, {"begin_threads"}) if "start_thread" in s.user else (set(), {"run"}, {"run", "chain_main"}))]
    rig.check(not wrong, f"{what}: no functions of another thread {wrong[:3] or ''}")


def check_short_children(python):
    """Children of an interpreter are read from their fork on, not from the drain on in which their first sample is."""
    folded = rig.path("children.folded")
    r = rig.record("-F", "199", "-o", folded, "--", python, "-c", FORKS_OFTEN)
    stacks = rig.read_folded(folded)
    named, late = (sum(s.n for s in stacks if what in s.user) for what in ("chain_child", "[interpreter not read in time]"))
    rig.check(r.status == 0 and named > 100 and late < 0.25 * named, f"children that live for 0.15 s: {named} samples have names, {late} are late")


def children(p):
    return [p] + rig.children_of(p)


def copy_of(python, directory):
    """Its own binary, if that has the interpreter, else with the library beside it."""
    os.makedirs(directory, exist_ok=True)
    program = os.path.join(directory, os.path.basename(python))
    shutil.copy(python, program)
    libraries = [line.split()[2] for line in subprocess.run(["ldd", python], capture_output=True, text=True, check=True).stdout.splitlines()
                 if "libpython" in line and "=>" in line]
    for library in libraries:
        shutil.copy(library, directory)
    return program, [os.path.join(directory, os.path.basename(library)) for library in libraries]


def check_replaced(python, env):
    program, libraries = copy_of(python, rig.path("replaced"))
    env = dict(env, LD_LIBRARY_PATH=os.path.dirname(program))
    p = rig.start([program, "-c", WORK.format(what="replaced") + FOREVER], env=env)
    rig.wait_for("it runs", lambda: rig.cpu_seconds(p.pid) > 0.2)
    for path in [program, *libraries]:
        shutil.copy(path, path + ".new")
        os.rename(path + ".new", path)
    before = rig.cpu_seconds(p.pid)
    folded = rig.path("replaced.folded")
    rig.record("-p", p.pid, "-F", "199", "-o", folded, until=lambda: rig.cpu_seconds(p.pid) > before + 0.5)
    rig.end(p)
    n = sum(s.n for s in rig.read_folded(folded) if any(f.startswith("chain_replaced") for f in s.user))
    rig.check(n > 20, f"its file was replaced on disk: {n} samples have names")


def check_apart(python, env):
    """In a mount namespace where its file is at a path that the host does not have."""
    program, _ = copy_of(python, rig.path("image"))
    env = dict(env, LD_LIBRARY_PATH="/mnt")
    script = f"mount --bind {os.path.dirname(program)} /mnt && exec /mnt/{os.path.basename(program)} -c \"$1\""
    unshare = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", script, "sh"]
    p = rig.start([*unshare, WORK.format(what="apart") + FOREVER], env=env)
    pid = rig.wait_for("the program", lambda: rig.children_of(p.pid))[0]
    rig.wait_for("it runs", lambda: rig.cpu_seconds(pid) > 0.3)
    folded = rig.path("apart.folded")
    rig.record_cpu(0.5, [pid], "-p", pid, "-F", "199", "-o", folded)
    rig.end(p)
    n = sum(s.n for s in rig.read_folded(folded) if any(f.startswith("chain_apart") for f in s.user))
    rig.check(n > 20, f"in a mount and a pid namespace of its own: {n} samples have names")


def check_stripped(python, env):
    program, libraries = copy_of(python, rig.path("stripped"))
    for path in [program, *libraries]:
        os.chmod(path, 0o755)
        subprocess.run(["strip", "--strip-all", path], check=True)
    names("stripped", [program, "-c", WORK.format(what="stripped") + FOREVER], want=["chain_stripped"],
          env=dict(env, LD_LIBRARY_PATH=os.path.dirname(program)))


EMBEDS = """
#include <Python.h>
int main(int argc, char **argv)
{
	Py_InitializeEx(0);
	return PyRun_SimpleString(argv[1]) || argc != 2;
}
"""


PLACES = "import os, sysconfig as s; v = s.get_config_var; print(os.path.join(v('LIBPL'), v('LIBRARY')), s.get_path('include'))"


def embedding(python, name, *exports):
    """A program of that name that has an interpreter linked into it; exports: how. None: that cannot be had here."""
    archive, include = subprocess.run([python, "-c", PLACES], capture_output=True, text=True, check=True).stdout.split()
    source, program = rig.path("embeds.c"), rig.path(name)
    with open(source, "w", encoding="utf-8") as f:
        f.write(EMBEDS)
    command = ["gcc", "-O1", "-no-pie", "-o", program, source, "-I", include, *exports, archive, "-lz", "-lexpat", "-lm", "-ldl"]
    made = os.path.isfile(archive) and subprocess.run(command, capture_output=True, check=False).returncode == 0
    return program if made else None


def check_other_names(python, env):
    """Interpreters in files of any name: copies of programs that have one, and a program that embeds one."""
    code = WORK.format(what="embedded") + FOREVER
    homes = {python: env, os.path.realpath("/usr/bin/python3"): dict(os.environ, PYTHONHOME="/usr")}
    for other, its in homes.items():
        program, libraries = copy_of(other, rig.path("renamed")) if os.access(other, os.X_OK) else (None, True)
        if not libraries:
            os.rename(program, rig.path("myapp"))
            names(f"{other}, renamed", [rig.path("myapp"), "-c", code], want=["chain_embedded"], env=its)
    application = embedding(python, "application", "-Wl,-export-dynamic")
    if application:
        names("a program that embeds Python", [application, code], want=["chain_embedded"], env=env)
    for what, command in {"node": ["-e", JAVASCRIPT], "php": ["-n", "-r", PHP]}.items():
        if shutil.which(what):
            shutil.copy(os.path.realpath(shutil.which(what)), rig.path("other"))
            names(f"{what}, renamed", [rig.path("other"), *command], want=[f"chain_{what}"])
            subprocess.run(["strip", "--strip-all", rig.path("other")], check=True)
            names(f"{what}, renamed and stripped", [rig.path("other"), *command], want=[f"chain_{what}"])


def check_hidden(what, program, code, env, seconds):
    """A program that exports nothing of its interpreter, and is stripped: its stacks say that it is not read, and
    debug runtime says why. seconds: by when they do."""
    if not program:
        print(f"left out: {what} cannot be made here")
        return
    p = rig.start([program, code], env=env)
    rig.wait_for("it runs", lambda: rig.cpu_seconds(p.pid) > 0.1)
    folded = rig.path("hidden.folded")
    rig.record_cpu(seconds, [p.pid], "-p", p.pid, "-F", "99", "-o", folded)
    said = subprocess.run([rig.perfwalk(), "debug", "runtime", str(p.pid)], capture_output=True, text=True, check=False)
    rig.end(p)
    stacks = rig.read_folded(folded)
    unread = sum(s.n for s in stacks if "[interpreter not read]" in s.user)
    rig.check(unread > 20, f"{what}: {unread} of {rig.total(stacks)} stacks say that its interpreter is not read")
    rig.check(said.returncode == 1 and "exports none" in said.stderr, f"{what}: debug runtime: {said.stderr.strip()}")


def check_all_hidden(python, env):
    code = WORK.format(what="hidden") + FOREVER
    # The reader asks again until a loader must be done.
    version = f"python3.{sys.version_info.minor}"
    check_hidden(f"a stripped program {version}", embedding(python, version, "-s"), code, env, 5)
    newer = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.1[3-9].*/bin/python3")))
    program = embedding(newer[0], "service", "-s") if newer else None
    env = dict(os.environ, PYTHONHOME=os.path.dirname(os.path.dirname(newer[0]))) if newer else env
    check_hidden("a stripped program with Python 3.13 or later", program, code, env, 1)


def check_none():
    """A program that exports nothing: no names, and perfwalk debug runtime says why."""
    p = rig.start(["sleep", "300"])
    rig.wait_for("sleep runs", lambda: rig.comm_of(p.pid) == "sleep")
    said = subprocess.run([rig.perfwalk(), "debug", "runtime", str(p.pid)], capture_output=True, text=True, check=False)
    rig.end(p)
    rig.check(said.returncode == 1 and "exports" in said.stderr, f"debug runtime: {said.stderr.strip()}")


def check_two(python):
    """Ruby in a program of Python: debug runtime shows both, each with its own frames."""
    libraries = sorted(glob.glob("/usr/lib/*/libruby-*.so.*"))
    if not libraries:
        print("left out: libruby is not here")
        return
    code = ("import ctypes, sys\nruby = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)\nruby.ruby_init()\n"
            "def chain_python():\n    ruby.rb_eval_string(b'def chain_ruby() = sleep(600)\\nputs 1\\n$stdout.flush\\nchain_ruby')\n"
            "chain_python()\n")
    p = rig.start([python, "-c", code, libraries[0]], stdout=subprocess.PIPE)
    p.stdout.readline()
    said = []

    def shows_both():
        said[:] = [subprocess.run([rig.perfwalk(), "debug", "runtime", str(p.pid)], capture_output=True, text=True, check=False)]
        return said[0].returncode != 0 or "chain_ruby (" in said[0].stdout
    rig.wait_for("a stack", shows_both)
    rig.end(p)
    out = said[0].stdout
    rig.check(said[0].returncode == 0 and all(re.search(f"^{x}", out, re.M) for x in ("CPython 3", "Ruby [23]", "  chain_python ", "  chain_ruby ")),
              f"debug runtime shows two interpreters of a process{said[0].stderr}")


# Python calls Ruby, that calls Python, and so on. Each says once what its own stack is where it is deepest.
NESTED = """
import ctypes, sys, time
ruby = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
ruby.ruby_init()
callback = ctypes.CFUNCTYPE(ctypes.c_ulong, ctypes.c_ulong)
sleeps, told = sys.argv[2] == "sleeps", False
def nest_python_1():
    ruby.rb_eval_string(b"nest_ruby_2")
@callback
def nest_python_3(self):
    ruby.rb_eval_string(b"nest_ruby_4")
    return self
@callback
def nest_python_5(self):
    global told
    f = sys._getframe()
    while f and not told:
        print("python", f.f_code.co_name, flush=True)
        f = f.f_back
    told = True
    if sleeps:
        time.sleep(0.05)
    for i in range(0 if sleeps else 100):
        sorted(range(9999))
    return self
ruby.rb_define_global_function(b"call_3", nest_python_3, 0)
ruby.rb_define_global_function(b"call_5", nest_python_5, 0)
ruby.rb_eval_string(b'''
def nest_ruby_2() = [1].each { call_3 }
def nest_ruby_4
  $told ||= caller(0).each { |l| puts "ruby #{l[/`(.*)\'/, 1]}" }
  $stdout.flush
  $sleeps ? sleep(0.05) : 1000000.times { |i| i % 7 }
  call_5
end''')
ruby.rb_eval_string(b"$sleeps = %s" % str(sleeps).lower().encode())
while True:
    nest_python_1()
"""
# By their calls, outermost first; and where each native call of an evaluation begins, but for the innermost one. The second string that Ruby
# evaluates has the name of the function that it is evaluated in.
OUTER = ["<module>", "nest_python_1", "<main>", "nest_ruby_2", "each", "block in nest_ruby_2", "call_3", "nest_python_3",
         "block in nest_ruby_2", "nest_ruby_4"]
INNER = [["times", "block in nest_ruby_4"], ["sleep"], ["call_5", "nest_python_5"]]
BEGINS = [0, 2, 7, 8]
SECONDS, RATE = float(os.environ.get("NESTED_SECONDS", 2)), os.environ.get("NESTED_RATE", "199")
RUNTIME_MARKERS = {"[interpreter not read]", "[interpreter not read in time]", "[runtime frames not proven]"}
# A blocked thread's stack has one.
OTHER_MARKERS = (RUNTIME_MARKERS | {"[truncated stack]"}) - {"[interpreter not read]"}


def plain(stack):
    return [re.sub(r"_\[.\]$", "", f) for f in stack.user]


def is_nested(names):
    """Do their frames say what the native calls of the interpreters say? Where each has begun, its first frame is there."""
    native = ["p" if f.startswith("_PyEval_EvalFrameDefault") else "r" for f in names if f.startswith(("_PyEval_EvalFrameDefault", "rb_vm_exec"))]
    n_calls = sum(1 for i, f in enumerate(native) if i == 0 or native[i - 1] != f)
    known = set(OUTER) | {f for path in INNER for f in path}
    got = [f for f in names if f in known]
    begun = [len(got) > at for at in BEGINS] + ["nest_python_5" in got]
    return any(got == (OUTER + path)[:len(got)] for path in INNER) and sum(begun) == n_calls


def nested_stacks(python, library, what, *options):
    """Of a program of both, that works or sleeps, for some seconds of its CPU time, or of its life."""
    p = rig.start([python, "-c", NESTED, library, what], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    said = {"python": [], "ruby": []}
    while not said["python"] or said["python"][-1] != "<module>":
        language, name = p.stdout.readline().rstrip("\n").split(" ", 1)
        said[language].append(name)
    folded = rig.path("nested.folded")
    if what == "works":
        rig.record_cpu(SECONDS, [p.pid], "-p", p.pid, "-F", RATE, "-o", folded, *options)
    else:
        rig.record("-p", p.pid, "-d", "3", "-o", folded, *options)
    rig.kill(p.pid, 9)
    rig.end(p)
    return said, rig.read_folded(folded)


def check_nested(python):
    """Two interpreters in a process that call each other: their frames are nested as the program nests them, at samples
    and where a thread blocks."""
    libraries = sorted(glob.glob("/usr/lib/*/libruby-*.so.*"))
    if not libraries:
        print("left out: libruby is not here")
        return
    for what, options in (("works", ()), ("sleeps", ("--off-cpu",))):
        said, stacks = nested_stacks(python, libraries[0], what, *options)
        rig.check([f for f in OUTER + ["nest_python_5"] if f in said["python"]] == said["python"][::-1], f"Python says the same: {said['python']}")
        rig.check([f for f in OUTER if f not in said["python"]] == said["ruby"][::-1], f"and Ruby: {said['ruby']}")
        ready = [(plain(s), s.n) for s in stacks if not RUNTIME_MARKERS & set(s.user)]
        wrong = [(names, n) for names, n in ready if not is_nested(names) and "[truncated stack]" not in names]
        total = rig.total(stacks)
        counts = {f: sum(n for names, n in ready if f in names and is_nested(names)) for f in ("times", "sleep", "nest_python_5")}
        marked = total - sum(n for _, n in ready)
        rig.check(sum(n for _, n in wrong) < 0.01 * total, f"{what}: {sum(n for _, n in wrong)} of {total} are nested otherwise, {marked} marked {wrong[:2] or ''}")
        rig.check(counts["sleep" if options else "times"] > 0.1 * total and counts["nest_python_5"] > 0.005 * total, f"{what}: {counts} of {total}")


def check_left_out(python):
    """Of interpreters on two filesystems those on one are read. Stacks through the other one say that it is not."""
    libraries = sorted(glob.glob("/usr/lib/*/libruby-*.so.*"))
    copy = os.path.join("/dev/shm", f"libruby-{os.getpid()}.so")
    if not libraries or os.stat("/dev/shm").st_dev == os.stat(libraries[0]).st_dev:
        print("left out: libruby, or another filesystem, is not here")
        return
    shutil.copy(libraries[0], copy)
    try:
        for what, options in (("works", ()), ("sleeps", ("--off-cpu",))):
            _, stacks = nested_stacks(python, copy, what, *options)
            counts = {"said": 0, "silent": 0}
            for s in stacks:
                names = set(plain(s))
                if names & {"_PyEval_EvalFrameDefault", "rb_vm_exec"} and not names & OTHER_MARKERS:
                    counts["said" if "[interpreter not read]" in names else "silent"] += s.n
            rig.check(counts["silent"] == 0 and (options or counts["said"] > 0.5 * rig.total(stacks)),
                      f"{what}: stacks say that one of two interpreters is not read: {counts}")
    finally:
        os.unlink(copy)


def main():
    rig.need_root()
    rig.need_programs("python3", "node", "strip", "unshare")
    python = os.path.realpath(sys.executable)
    # What a copy finds its modules by.
    env = dict(os.environ, PYTHONHOME=f"{sys.base_prefix}:{sys.base_exec_prefix}")
    server = rig.start([python, "-c", FORKS])
    rig.wait_for("workers", lambda: len(rig.children_of(server.pid)) == 4, 30)
    folded = rig.path("workers.folded")
    all_of = children(server.pid)
    rig.record_cpu(1.5, all_of, "-p", ",".join(map(str, all_of)), "-F", "199", "-o", folded)
    for pid in rig.children_of(server.pid):
        rig.kill(pid, 9)
    rig.end(server)
    stacks = rig.read_folded(folded)
    named = sum(s.n for s in stacks if any(f.startswith("chain_worker") for f in s.user))
    rig.check(named > 0.8 * rig.total(stacks), f"a server and what it forked: {named} of {rig.total(stacks)} samples have names")
    # The distribution's may be at the same addresses in each process.
    for other in sorted({python, os.path.realpath("/usr/bin/python3")}):
        if os.access(other, os.X_OK):
            names(f"{other} executes itself", [other, "-c", EXECUTES, other, "-c", WORK.format(what="second") + FOREVER],
                  want=["chain_first", "chain_second"], executes=True)
    names("executes Node.js", [python, "-c", EXECUTES, os.path.realpath(shutil.which("node")), "-e", JAVASCRIPT],
          want=["chain_first", "chain_node"], executes=True)
    check_first(python)
    check_threads("", python)
    check_threads(", in a pid namespace", "unshare", "-pf", python)
    check_short_children(python)
    check_replaced(python, env)
    check_stripped(python, env)
    check_apart(python, env)
    check_other_names(python, env)
    check_all_hidden(python, env)
    check_none()
    check_two(python)
    check_nested(python)
    check_left_out(python)


rig.run(main)
