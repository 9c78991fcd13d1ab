# SPDX-License-Identifier: Apache-2.0
"""What the system tests share: finding the program under test, starting and surely ending things,
reading folded stacks, and saying what is checked.

A test is a script with a main() that calls check(); run(main) turns the outcome into an exit
status: 0, 1, or 77 for a skip with its reason. Everything a test starts dies with it.
"""
import atexit
import contextlib
import ctypes
import fcntl
import mmap
import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
import inside  # noqa: E402  (leaves no file either)

os.environ.pop("DEBUGINFOD_URLS", None)  # names come from this host, but for the test of the others

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
WORKLOADS = os.path.join(TOP, "tests", "workloads")
# After need_tracefs().
WITHOUT_TRACEFS = ["unshare", "-m", "sh", "-c", 'umount /sys/kernel/tracing && exec "$0" "$@"']
# As root the exporter runs as a user of its own; with credentials it would not run as nobody.
NETWORK_USER = next((p.pw_name for p in pwd.getpwall() if p.pw_name in ("sys", "games", "mail")), "") \
    if os.geteuid() == 0 else ""
# How long to wait for what has to come: a busy host is slow, and nobody waits so long where it is not.
PATIENCE = 90
ROLES = {"profiler": "pw-profiler", "symbolizer": "pw-symbolizer", "exporter": "pw-exporter"}


class Skip(Exception):
    pass


class Failure(Exception):
    pass


def say(text):
    print(text, flush=True)


def skip(reason):
    raise Skip(reason)


_left_out = []


def leave_out(reason):
    """A part that cannot run here: the rest goes on, and at its end the test counts as skipped."""
    say("left out: " + reason)
    _left_out.append(reason)


def fail(text):
    raise Failure(text)


def check(condition, text):
    """Says what was checked; ends the test when it does not hold."""
    if not condition:
        raise Failure(text)
    say("ok: " + text)


def apart(part, *args):
    """Runs a part of a test that may skip itself; the rest goes on."""
    try:
        part(*args)
    except Skip as e:
        leave_out(str(e))


def check_sandbox():
    """With PERFWALK_SECCOMP=trap in the environment a child says which call its filter refused."""
    for directory, _, names in os.walk(_work or "/nonexistent"):
        for name in names:
            if name.endswith(".log"):
                with open(os.path.join(directory, name), "rb") as f:
                    check_refused(name, f.read().decode(errors="replace"))


def is_trapped():
    return os.environ.get("PERFWALK_SECCOMP") == "trap"


def communicate(p, *args, **options):
    """In the place of subprocess.Popen.communicate(), by which all outputs are read that are not in a file."""
    out, err = _communicate(p, *args, **options)
    check_refused(str(p.args), err.decode(errors="replace") if isinstance(err, bytes) else err or "")
    return out, err


_communicate = subprocess.Popen.communicate
if is_trapped():
    subprocess.Popen.communicate = communicate


def check_refused(name, log):
    refused = re.search(".*sandbox: the call.*", log)
    if refused:
        fail(f"{name}: {refused[0]}")


def run(main):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        if inside.wanted() and not inside.is_inside():
            inside.enter()
        main()
        check_sandbox()
    except Skip as e:
        say(f"SKIP: {e}")
        sys.exit(77)
    except Failure as e:
        say(f"FAILED: {e}")
        sys.exit(1)
    except Exception:
        traceback.print_exc(file=sys.stdout)
        sys.exit(1)
    if _left_out:
        say("SKIP: in part: " + "; ".join(_left_out))
    sys.exit(77 if _left_out else 0)


@contextlib.contextmanager
def make_alone():
    """While another test makes something in the program's build directory, as well, this waits."""
    with open(os.path.join(os.path.dirname(perfwalk()), "Makefile"), "rb") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def need_root():
    if os.geteuid() != 0:
        skip("needs root")


def can_mount():
    """Whether a tmpfs can be mounted here, in a mount namespace of its own as well."""
    return subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", workdir()], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0


def with_file(source, target):
    """What the command of a daemon begins with that finds one file in the place of another. A machine (inside.py) is the
    test's own: there all find it."""
    if inside.is_inside():
        subprocess.run(["mount", "--bind", source, target], check=True)
        return []
    return ["unshare", "-m", "sh", "-c", 'mount --bind "$1" "$2" && shift 2 && exec "$@"', "sh", source, target]


def need_tracefs():
    """Where it is not mounted, the test begins once more, in a mount namespace that has it."""
    if os.path.exists("/sys/kernel/tracing/events/sched/sched_switch/id"):
        return
    mounted = ["unshare", "-m", "sh", "-c", 'mount -t tracefs none /sys/kernel/tracing && exec "$0" "$@"']
    if subprocess.run([*mounted, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        skip("tracefs cannot be mounted")
    os.execvp(mounted[0], [*mounted, sys.executable, *sys.argv])


def need_allocations():
    """What --alloc and [alloc] need: probes of user code, on x86_64."""
    need_tracefs()
    if not os.path.exists("/sys/kernel/tracing/uprobe_events"):
        skip("this kernel has no uprobes")
    if os.uname().machine != "x86_64":
        skip("allocations are sampled on x86_64 only")


def need_programs(*names):
    for name in names:
        if not shutil.which(name):
            skip(f"{name} is not installed")


def python_package(name, version):
    """The directory of a package of PyPI, from the cache or the registry."""
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    directory = os.path.expanduser(f"~/.cache/perfwalk-tests/{name}-{version}-{python}")
    if not os.path.isdir(directory):
        pip = os.path.join(path("venv"), "bin", "pip")  # Debian's Python has none of its own
        subprocess.run([sys.executable, "-m", "venv", path("venv")], check=True, capture_output=True)
        p = subprocess.run([pip, "install", "--quiet", "--only-binary", ":all:", "--target", directory + ".new",
                            f"{name}=={version}"], check=False, capture_output=True, text=True)
        if p.returncode != 0:
            skip(f"{name} {version} cannot be installed: {p.stderr[-200:]}")
        os.rename(directory + ".new", directory)
    return directory


def perfwalk():
    """The program under test: $PERFWALK, else build/perfwalk."""
    candidates = [os.environ.get("PERFWALK", ""), os.path.join(TOP, "build", "perfwalk")]
    for path in candidates:
        if path and os.access(path, os.X_OK):
            return os.path.abspath(path)
    fail("perfwalk is not built (set PERFWALK)")


def perfwalk_for_others():
    """A copy of it where every user can run it: others may not enter every directory that has a clone."""
    name = path("perfwalk")
    if not os.path.exists(name):
        shutil.copy(perfwalk(), name)
    return name


# ---- Temporary files and processes ----

_work = None
_started = []


def workdir():
    """A directory of this test alone that others (nobody, containers) can read."""
    global _work
    if not _work:
        _work = tempfile.mkdtemp(prefix="perfwalk-test.")
        os.chmod(_work, 0o755)
        atexit.register(shutil.rmtree, _work, ignore_errors=True)
    return _work


def path(*names):
    return os.path.join(workdir(), *names)


def make_directory(name):
    """A directory outside of the test's own; those that are not there yet go with the test."""
    if not os.path.isdir(name):
        make_directory(os.path.dirname(name))
        os.mkdir(name)
        atexit.register(_remove_empty, name)


def _remove_empty(name):
    try:
        os.rmdir(name)
    except OSError:
        pass


def keep(name):
    """A copy of a file for a person to look at, beside the log of the test; its path."""
    return shutil.copy(path(name), os.environ.get("TEST_LOGS", os.getcwd()))


def write(name, text):
    with open(path(name), "w", encoding="utf-8") as f:
        f.write(text)
    return path(name)


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


def start(argv, **options):
    """Starts a program in a process group of its own that ends with the test."""
    p = subprocess.Popen(argv, start_new_session=True, preexec_fn=_die_with_parent, **options)
    _started.append(p)
    return p


def _signal_group(p, sig):
    """A program that was waited for has given its number back, which may be another test's by now. It is nobody's as
    long as something is left of the group."""
    if p.returncode is None or not os.path.exists(f"/proc/{p.pid}"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(p.pid, sig)


def end(p, sig=signal.SIGKILL):
    """Ends a started program and its group, and reaps it."""
    _signal_group(p, sig)
    try:
        return p.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        _signal_group(p, signal.SIGKILL)
        return p.wait(PATIENCE)


def kill(pid, sig):
    """os.kill() for one process: 0, as role() says of one that is not there, would be the test and all with it."""
    if pid <= 0:
        fail(f"signal {int(sig)} is for a process that is not there")
    os.kill(pid, sig)


_begin = time.time()


def _remove_perf_maps():
    """Programs with compiled code of their own leave /tmp/perf-PID.map behind. tests/run.sh does it where another
    test may still read one."""
    if "TEST_SCRATCH" in os.environ:
        return
    for name in os.listdir("/tmp"):
        m = re.fullmatch(r"perf-(\d+)\.map", name)
        if m and not os.path.exists(f"/proc/{m[1]}"):
            try:
                if os.lstat(f"/tmp/{name}").st_mtime >= _begin - 1:
                    os.unlink(f"/tmp/{name}")
            except OSError:
                pass


@atexit.register
def _end_all():
    end_started()
    _remove_perf_maps()


def end_started():
    for p in _started:
        if p.poll() is None:
            end(p)
        else:
            _signal_group(p, signal.SIGKILL)  # what it may have left behind


def wait_for(what, condition, seconds=PATIENCE):
    """Polls until condition() is true and returns its value; for PATIENCE at least."""
    seconds = max(seconds, PATIENCE)
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            fail(f"did not happen within {seconds:g} s: {what}")
        time.sleep(0.02)


_ports = []  # reserved for this test, by a name that no other can have


def free_port():
    """A port that stays free until it is used: below those that the kernel gives to connections, and no other
    test's."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        low = int(f.read().split()[0])
    for _ in range(1000):
        port = random.randrange(1024 + low // 4, low)
        mine = socket.socket(socket.AF_UNIX)
        try:
            mine.bind(f"\0perfwalk-test-port-{port}")
            with socket.socket() as s:
                s.bind(("127.0.0.1", port))
        except OSError:
            mine.close()
            continue
        _ports.append(mine)
        return port
    fail("no port is free")


# ---- /proc ----


def comm_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
            return f.read().rstrip("\n")
    except OSError:
        return ""


def code_of(pid):
    """The page of compiled code in the workload jit."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        for line in f:
            words = line.split()
            if words[1] == "r-xp" and len(words) == 5:
                return int(words[0].split("-")[0], 16)
    return 0


def status_pages(pid):
    """What the children of a running capture say of themselves; the broker has it in memory."""
    pages = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            if "perfwalk-status" in os.readlink(f"/proc/{pid}/fd/{fd}"):
                with open(f"/proc/{pid}/fd/{fd}", "rb") as f:
                    pages.append(mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ))
        except FileNotFoundError:
            pass
    return pages


def children_of(pid):
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as f:
                after = f.read().rpartition(")")[2].split()
        except OSError:
            continue
        if after[0] not in "ZX" and int(after[1]) == pid:
            found.append(int(name))
    return found


def status_of(pid):
    """Fields of /proc/PID/status; empty when the process is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
            return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    except OSError:
        return {}


def rss_kib(pid):
    return int(status_of(pid).get("VmRSS", "0 kB").split()[0])


def anon_kib(pid):
    """Resident memory apart from files and shared memory (the rings count as shared)."""
    return int(status_of(pid).get("RssAnon", "0 kB").split()[0])


def is_sanitized():
    """Memory that is freed stays with the sanitizers for a while, so bounds of memory do not hold."""
    with open(perfwalk(), "rb") as f:
        return b"__asan_init" in f.read()


def n_descriptors(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


# ---- perfwalk ----


def cpu_seconds(pid):
    """The CPU time that a process has had."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until_it_records(p):
    """Reads standard error of a capture, in which warnings may come first."""
    check(any("recording" in line for line in iter(p.stderr.readline, "")), "it records")


def wait_for_cpu(pid, seconds):
    """Until a process has used so much more CPU time."""
    used = cpu_seconds(pid)
    wait_for(f"{seconds} s of CPU time", lambda: cpu_seconds(pid) - used >= seconds, 60)


class Stopwatch:
    """Time for a process and its children: without what they waited for a CPU that others had."""

    def __init__(self, pid):
        self.pid, self.begin, self.first, self.last = pid, time.monotonic(), {}, {}
        self.look()

    def look(self):
        """Reads how long each has waited; the more often, the less is missed of those that end."""
        for pid in (self.pid, *children_of(self.pid)):
            try:
                with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
                    self.last[pid] = int(f.read().split()[1]) / 1e9
            except (OSError, IndexError):
                continue
            self.first.setdefault(pid, self.last[pid])

    def seconds(self):
        waited = sum(self.last[pid] - self.first[pid] for pid in self.last)
        return max(0.0, time.monotonic() - self.begin - waited)

    def wait(self, p):
        """Until the process p has ended; its status, and how long that took."""
        deadline = self.begin + PATIENCE
        while p.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(p.args, PATIENCE)
            self.look()
            time.sleep(0.02)
        return p.returncode, self.seconds()


class Record:
    """One finished `perfwalk record`; with until(), interrupted when that is true after it has begun."""

    def __init__(self, argv, timeout=120, until=None, **options):
        self.argv, timeout = argv, max(timeout, 120)
        with tempfile.TemporaryFile("w+", dir=workdir(), errors="replace") as err:
            p = start(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err, text=True, errors="replace",
                      **options)

            def said():
                return os.pread(err.fileno(), 1 << 20, 0).decode(errors="replace")
            if until:
                wait_for("it records", lambda: "recording" in said() or p.poll() is not None, timeout)
                wait_for("what is recorded", lambda: p.poll() is not None or until(), timeout)
                if p.poll() is None:
                    os.kill(p.pid, signal.SIGINT)
            try:
                self.out, _ = p.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                end(p)
                fail(f"did not end within {timeout} s: {' '.join(argv)}")
            self.err = said()
        self.status = p.returncode
        if is_trapped():
            check_refused(" ".join(argv), self.err)

    def text(self):
        return (f"  command: {' '.join(self.argv)}\n  exit status: {self.status}\n"
                f"  standard output:\n{self.out}\n  standard error:\n{self.err}")


def record(*args, timeout=120, argv_prefix=(), **options):
    return Record([*argv_prefix, perfwalk(), "record", *map(str, args)], timeout, **options)


def record_cpu(seconds, pids, *args, **options):
    """A capture for as long as these processes need to get so much CPU time: on a busy host longer."""
    def used():
        return sum(cpu_seconds(pid) for pid in pids)

    begin = []  # when it records

    def until():
        begin.append(used())
        return begin[-1] - begin[0] >= seconds
    return record(*args, until=until, **options)


class Daemon:
    """A running `perfwalk run` with its configuration, its log and a spool of its own (by a drop-in,
    so that it stays when a test writes another configuration)."""

    def __init__(self, config, name="daemon", argv_prefix=(), spool=None, **options):
        self.config = write(f"{name}.conf", config)
        self.spool = spool or path(f"{name}.spool")
        self.control = path(f"{name}.control")
        os.makedirs(f"{self.config}.d", exist_ok=True)
        write(f"{name}.conf.d/spool.conf", f"[spool]\npath = {self.spool}\n[process]\ncontrol = {self.control}\n"
              + (f"network_user = {NETWORK_USER}\n" if NETWORK_USER and "network_user" not in config else "")
              # On a busy host with a high rate it would do with less, for reasons of its own.
              + ("" if "[limits]\ncpu" in config else "[limits]\ncpu = 100%\n"))
        self.log_path = path(f"{name}.log")
        self.log_file = open(self.log_path, "ab")
        self.n_before, self.has_before = len(self.log()), os.path.exists(self.control)  # of a daemon before this one
        argv = [*argv_prefix, perfwalk(), "run", "-c", self.config]
        if inside.is_inside():
            self.process = inside.Service(argv, self.log_path, **options)
            _started.append(self.process)
        else:
            self.process = start(argv, stdin=subprocess.DEVNULL, stdout=self.log_file, stderr=self.log_file, **options)
        self.pid = self.process.pid

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def alive(self):
        return self.process.poll() is None

    def status(self):
        """What perfwalk ctl status --all says: value by name."""
        p = subprocess.run([perfwalk(), "ctl", "-s", self.control, *ctl_words("status")], capture_output=True, text=True, check=False)
        if p.returncode != 0:
            fail(f"ctl status: {p.stderr}{self.log()[-2000:]}")
        return dict(line.split(" ", 1) for line in p.stdout.splitlines() if " " in line)

    def role(self, name):
        """The process id of a role, or 0."""
        for pid in children_of(self.pid):
            if comm_of(pid) == ROLES.get(name, f"pw-{name}"):
                return pid
        return 0

    def roles(self):
        return {name: self.role(name) for name in ROLES}

    def wait_up(self, seconds=PATIENCE):
        """Until all three roles run under their own names, and it samples: then it says so, and takes commands."""
        def up():
            if not self.alive():
                fail(f"perfwalk run ended with {self.process.returncode}:\n{self.log()}")
            roles = self.roles()
            samples = ", a profile every " in self.log()[self.n_before:] or (not self.has_before and os.path.exists(self.control))
            return roles if all(roles.values()) and samples else None
        try:
            return wait_for("profiler, symbolizer and exporter are running, and it samples", up, seconds)
        except Failure:
            say(self.log())
            raise

    def stop(self):
        """SIGTERM to the broker; its exit status, and how long it took (what was its own doing)."""
        watch = Stopwatch(self.pid)
        os.kill(self.pid, signal.SIGTERM)
        try:
            return watch.wait(self.process)
        except subprocess.TimeoutExpired:
            return fail(f"perfwalk run did not leave within {PATIENCE} s of SIGTERM:\n{self.log()}")


def ctl_words(command):
    """What to tell perfwalk ctl, for an answer in lines of a name and a value."""
    return [command, "--all"] if command == "status" else [command]


# ---- Folded stacks ----

# The outermost frame of a stack that does not reach the thread's entry is one of these.
MARKERS = ("[truncated stack]", "[no mapping]", "[file not readable]", "[no unwind information]",
           "[bad unwind information]", "[broken stack]", "[too deep]", "[no user registers]", "[32-bit program]",
           "[interpreter not read in time]", "[interpreter not read]", "[runtime frames not proven]", "[callers in a virtual thread's heap]")


class Stack:
    """One line of folded output: names root to leaf, kernel frames apart."""

    def __init__(self, comm, frames, n):
        self.comm = comm
        self.n = n
        self.user = [f for f in frames if not f.endswith("_[k]")]
        self.kernel = [f for f in frames if f.endswith("_[k]")]

    def complete(self):
        return bool(self.user) and self.user[0] not in MARKERS


def parse_folded(text):
    stacks = []
    for number, line in enumerate(text.splitlines(), 1):
        m = re.fullmatch(r"([^;]*);?(.*) (\d+)", line)
        if not m:
            fail(f"line {number} of the folded output is not one: {line!r}")
        stacks.append(Stack(m[1], m[2].split(";") if m[2] else [], int(m[3])))
    return stacks


def read_folded(name):
    with open(name, encoding="utf-8") as f:
        return parse_folded(f.read())


def total(stacks):
    return sum(s.n for s in stacks)


def matches(name, pattern):
    """Whole names; `*` in the pattern stands for any text. Suffixes such as _[j] and _[i] may be absent."""
    expression = ".*".join(re.escape(part) for part in pattern.split("*"))
    return re.fullmatch(f"(?:{expression})(?:_\\[[ij]\\])?", name, re.S) is not None


def contains_path(frames, patterns):
    """Whether frames (root to leaf) hold the patterns next to each other; `...` spans any number."""
    def from_here(i, p):
        while p < len(patterns):
            if patterns[p] == "...":
                return any(from_here(j, p + 1) for j in range(i, len(frames)))
            if i >= len(frames) or not matches(frames[i], patterns[p]):
                return False
            i, p = i + 1, p + 1
        return True
    return any(from_here(i, 0) for i in range(len(frames)))


# ---- Workloads ----


def build_workloads(*names):
    """Builds workloads into the test's directory; the directory."""
    out = path("workloads")
    p = subprocess.run(["sh", os.path.join(WORKLOADS, "build.sh"), out, *names],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if p.returncode == 77:
        skip(p.stdout.strip())
    if p.returncode != 0:
        fail(f"workloads {' '.join(names)} do not build:\n{p.stdout}")
    return out
