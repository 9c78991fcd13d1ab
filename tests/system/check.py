# SPDX-License-Identifier: Apache-2.0
# Rooms: src/cmd src/sample src/process
"""`perfwalk check` says what a capture then finds: as root, as nobody, in containers."""
import errno
import os
import platform
import re
import shutil
import subprocess

import rig

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all",
          "--bounding-set=-all"]

BOUNDED = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
# A system call, its number and the error first: refused. The kernel lets one without privileges have such a filter.
REFUSING = """
import ctypes, os, struct, sys
number, error = int(sys.argv.pop(1)), int(sys.argv.pop(1))
code = struct.pack("HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, number, 6, 0, 0, 0x50000 | error, 6, 0, 0, 0x7fff0000)
buffer = ctypes.create_string_buffer(code)
prctl = ctypes.CDLL(None).prctl
if prctl(38, 1, 0, 0, 0) or prctl(22, 2, struct.pack("HxxxxxxQ", 4, ctypes.addressof(buffer)), 0, 0):
    sys.exit("no filter")
os.execv(sys.argv[1], sys.argv[1:])
"""
PERF_EVENT_OPEN, LANDLOCK = (298 if platform.machine() == "x86_64" else 241), 444


def run(*argv):
    p = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    if argv[-1] == "check" and p.returncode == 3 and "BAD" not in p.stdout:
        rig.fail(f"not permitted, and no cause given:\n{p.stdout}{p.stderr}")
    return p


def verdict(p):
    return p.stdout.rpartition("\n\n")[2].splitlines()[0]


def shown(p, level, name, fix):
    """A line of that cause, with the fix below it."""
    lines = p.stdout.splitlines()
    at = [i for i, x in enumerate(lines) if re.match(rf"{level} +{re.escape(name)} ", x)]
    rig.check(at and fix in "".join(lines[at[0] + 1:at[0] + 3]), f"{level} {name}: {fix}"
              + ("" if at else "\n" + p.stdout))


def ends_with(p, command):
    """The exact commands, that one first: a busy kernel may want another for its rate."""
    said = p.stdout.rpartition("\nWhat is missing comes with:\n")
    rig.check(said[1] and said[2].splitlines()[0] == "    " + command, f"it ends with {command}" + ("" if said[1] else f"\n{p.stdout}"))


def memory_of_many_cpus(program):
    """The sum of what all processes may have, against the unit's MemoryMax: a reader more for each CPU."""
    with open(os.path.join(rig.TOP, "etc/perfwalk.service.in"), encoding="utf-8") as f:
        unit = f.read()
    mib = int(re.search(r"^MemoryMax=(\d+)M", unit, re.MULTILINE)[1])
    if not rig.can_mount():
        rig.leave_out("a host of many CPUs: nothing can be mounted")
        return

    def check_on(cpus):
        online = rig.write("online", f"0-{cpus - 1}\n")
        p = run("unshare", "-m", "sh", "-c", f"mount --make-rprivate / && mount --bind {online} /sys/devices/system/cpu/online && "
                f"{program} check")
        line = next((x for x in p.stdout.splitlines() if re.match(r"(ok|note) +limits ", x)), p.stdout)
        return line, int((re.search(r"at most (\d+) ", line) or [0, 0])[1]), p.stdout.partition(line)[2].split("\n")[1]
    line, together, _ = check_on(60)  # where each further one has 8 MiB (tests/unit/test-limits.c)
    rig.check(line.startswith("ok") and 0 < together <= mib, f"what the processes may have on 60 CPUs: {line}")
    enough = 60 + (mib - together) // 8
    line, together, _ = check_on(enough)
    rig.check(line.startswith("ok") and mib - 8 < together <= mib, f"on {enough} CPUs it is as much as the unit's {mib} MiB: {line}")
    line, together, fix = check_on(enough + 1)
    rig.check(line.startswith("note") and together > mib and f"more than the unit's {mib}" in line, f"on one more a note: {line}")
    rig.check(f"MemoryMax={together}M" in fix, f"and what to do: {fix.strip()}")


def causes(program):
    """Each made here where it can be, without a container."""
    p = run("prlimit", "--nofile=20:20", program, "check")
    shown(p, "BAD", "open files", "LimitNOFILE")
    shown(run("unshare", "-p", "-f", "--mount-proc", program, "check"), "note", "pid namespace", "--pid=host")
    chain = rig.start(["./chain", "30"], cwd=rig.build_workloads("chain"))
    for options, says in ((["-a"], True), (["-p", "1"], False)):
        p = run("unshare", "-p", "-f", "--mount-proc", "sh", "-c", f"{program} record {' '.join(options)} -d 1 --format folded -o -; exit 0")
        rig.check(("not the host's pid namespace" in p.stderr) == says,
                  f"record {' '.join(options)} in another pid namespace: a warning: {says}; {p.stderr[:60]!r}")
        rig.check(not says or ("[outside];" in p.stdout and " dropped " not in p.stderr), "and samples of processes outside are none's"
                  + f" that is known: {p.stdout.count('[outside];')} stacks")
    rig.end(chain)
    memory_of_many_cpus(program)
    p = run("unshare", "-U", "-r", program, "check")
    if "unshare failed" in p.stderr:
        rig.leave_out("user namespaces: " + p.stderr.strip())
    else:
        shown(p, "note", "user namespace", "root of the host")
    drop = "--drop=cap_sys_ptrace,cap_ipc_lock"
    if run("capsh", drop, "--", "-c", "true").returncode:
        rig.leave_out("single capabilities: capsh cannot drop them here")
    else:
        shown(run("capsh", drop, "--", "-c", f"{program} check"), "note", "capabilities", "--cap-add")
    p = run("unshare", "-m", "sh", "-c", "mount --make-rprivate / && mount -t tmpfs none /sys/kernel && "
            f"{program} check")
    shown(p, "note", "tracepoints", "mount -t tracefs")
    rig.check("tracefs is not readable" in p.stdout, "which names what is not there")
    p = run("unshare", "-m", "sh", "-c", "mount --make-rprivate / && mount -t tmpfs none /sys/kernel && "
            "mkdir /sys/kernel/security && echo 'none integrity [confidentiality]' >/sys/kernel/security/lockdown && "
            f"{rig.perfwalk()} check")  # in its directory there is the allocation library
    shown(p, "note", "lockdown", "lockdown=integrity")
    # What LOCKDOWN_PERF forbids, registers at interrupts, nobody asks for.
    rig.check(p.returncode == 0 and "mount -t tracefs" not in p.stdout,
              f"lockdown takes tracefs away, which no mount brings back, and nothing else: {verdict(p)}")
    paranoid_kernels(program)
    closing_commands(program)
    missing_users(program)
    not_mounted(program)
    p = run(program, "check")
    if "the allocation library is not installed" in p.stdout:
        rig.check(" -> " not in p.stdout.partition("the allocation library is not installed")[2].splitlines()[1],
                  "no right and no mount brings the allocation library")
    for name in ("paranoid", "capabilities", "CPU time", "off-CPU time", "locks", "memory growth", "allocations", "seccomp", "sandbox", "users", "lockdown", "pid namespace", "kernel names", "cgroups", "interpreters",
                 "PMU", "kernel features", "rings", "rate"):
        rig.check(re.search(rf"^(ok|note|BAD) +{name} ", p.stdout, re.M), f"it has a line for {name}")


# What check's closing list is made of: a cause, how it is made here, who asks, and the command that mends it.
CAUSES = [
    ("kernel names, at kptr_restrict 2", "touch $D/none && echo 2 >$D/two && mount --bind $D/none /proc/kallsyms && "
     "mount --bind $D/two /proc/sys/kernel/kptr_restrict", [], r"sysctl kernel\.kptr_restrict=1"),
    ("the rings' quota", "true", ["prlimit", "--memlock=0:0", *NOBODY], r"sudo sysctl kernel\.perf_event_mlock_kb=(\d+)"),
    ("hidden processes", "mount -t proc -o hidepid=2 proc /proc", NOBODY, r"sudo mount -o remount,gid=65534 /proc"),
    ("the kernel's highest rate", "echo 100 >$D/rate && mount --bind $D/rate /proc/sys/kernel/perf_event_max_sample_rate", [],
     r"sysctl kernel\.perf_event_max_sample_rate=10000"),
    ("open files", "true", ["prlimit", "--nofile=20:20"], r"prlimit --pid \$\$ --nofile=\d+"),
    ("tracefs", "umount -R -l /sys/kernel/tracing; true", [], r"mount -t tracefs none /sys/kernel/tracing"),
    ("sysfs", "umount -R -l /sys", [], r"mount -t sysfs sysfs /sys"),
    ("procfs", "umount -R -l /proc", [], r"mount -t proc proc /proc"),
    ("the right to sample", "true", NOBODY, r"sudo perfwalk record -a"),
]


def closing_commands(program):
    """Each cause by itself has its command at the end."""
    for what, make, become, command in CAUSES:
        if command.endswith("record -a") and paranoid_here() <= 0:
            continue
        p = run("unshare", "-m", "sh", "-c", f'mount --make-rprivate / && D={rig.workdir()} && {make} && exec "$@"', "sh", *become,
                program, "check")
        end = p.stdout.rpartition("\nWhat is missing comes with:\n")[2]
        found = re.search(rf"(?m)^    {command}$", end)
        rig.check(found, f"{what}: it ends with {found[0].strip() if found else command}" + ("" if found else f"\n{p.stdout}{p.stderr}"))
        if found.groups():  # for each CPU: the ring of the samples, that beside it, and a page for each
            with open("/proc/sys/kernel/perf_event_mlock_kb", encoding="ascii") as f:
                have = int(f.read())
            page = os.sysconf("SC_PAGE_SIZE") // 1024
            rig.check(int(found[1]) == have + 2048 + 256 + 2 * page, f"{what}: what there is, and as much as all rings take: {found[1]}")


def missing_users(program):
    """The daemon's, which packages make and an archive cannot: with and without each, on a host that has root and nobody."""
    others = "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
    lines = {name: f"{name}:x:6080{i}:6080{i}::/:/bin/false\n" for i, name in enumerate(("perfwalk", "perfwalk-net"))}
    for there in ([], ["perfwalk"], list(lines)):
        passwd = rig.write("passwd", others + "".join(lines[name] for name in there))
        p = run("unshare", "-m", "sh", "-c", f"mount --make-rprivate / && mount --bind {passwd} /etc/passwd && {program} check")
        wanted = [f"useradd --system {name}" for name in lines if name not in there]
        said = re.findall(r"^    (useradd .*)$", p.stdout.partition("\nWhat is missing comes with:\n")[2], re.M)
        rig.check(said == wanted, f"with the users {there} check ends with {said}")
        if wanted:
            shown(p, "note", "users", "systemd-sysusers")
        else:
            rig.check(re.search(r"^ok +users ", p.stdout, re.M), "and with both, nothing is wrong with the users")


def paranoid_kernels(program):
    """Those of Debian and Ubuntu at 3 and 4: EACCES for all without CAP_SYS_ADMIN. tests/kernels has a real one."""
    refusing = rig.write("refusing.py", REFUSING)
    admin = "CAP_SYS_ADMIN (in a container: --cap-add=SYS_ADMIN; in the systemd unit: systemctl daemon-reload"
    for error, fix in ((errno.ENOSYS, "Linux 5.13"), (errno.EOPNOTSUPP, "landlock in lsm="), (errno.EPERM, "its own filter")):
        shown(run("python3", refusing, str(LANDLOCK), str(error), program, "check"), "note", "sandbox", fix)
    for value in (3, 4):
        script = (f"mount --make-rprivate / && echo {value} >{rig.path('value')} && mount --bind {rig.path('value')} "
                  '/proc/sys/kernel/perf_event_paranoid && exec "$@"')

        def tried(become, *args, script=script):
            return run("unshare", "-m", "sh", "-c", script, "sh", *become, "python3", refusing, str(PERF_EVENT_OPEN), str(errno.EACCES), program, *args)
        p = tried(NOBODY, "check")
        shown(p, "BAD", "paranoid", "Debian's and Ubuntu's")
        for who, become, remedy in (("nobody", NOBODY, "run as root, or: sysctl kernel.perf_event_paranoid=0"),
                                    ("root with CAP_PERFMON", BOUNDED, admin)):
            p = tried(become, "record", "-a", "-d", "1", "--format", "folded", "-o", "-")
            said = p.stderr.strip()
            rig.check(p.returncode == 3 and f"perf_event_paranoid is {value}: this kernel (Debian, Ubuntu)" in said and remedy in said,
                      f"paranoid {value}, {who}: {p.returncode}, {said[:450]!r}")
        p = tried(BOUNDED, "check")
        shown(p, "BAD", "paranoid", admin)
        ends_with(p, "sysctl kernel.perf_event_paranoid=2")
        rig.check("--cap-add=SYS_ADMIN" in options_said(p), f"and in a container it needs {options_said(p)}")
        # A kernel that has the number and not the check.
        p = run("unshare", "-m", "sh", "-c", script, "sh", *BOUNDED, program, "check")
        rig.check(p.returncode == 0 and "BAD" not in p.stdout and not options_said(p),
                  f"paranoid {value} on a kernel that takes CAP_PERFMON: {verdict(p)}" + (p.stdout if "BAD" in p.stdout else ""))


def not_mounted(program):
    """Without /sys everything goes on; without /proc nothing can, and everybody says so."""
    def without(what, *args):
        return run("unshare", "-m", "sh", "-c", f"mount --make-rprivate / && umount -R -l {what} && shift && "
                   'exec timeout -s KILL 60 "$@"', "sh", what, program, *args)

    p = without("/sys", "check")
    shown(p, "note", "/sys", "mount -t sysfs")
    rig.check(p.returncode == 0 and f"{os.cpu_count()} CPUs," in p.stdout, f"no /sys: {p.stdout.splitlines()[0]}")
    p = without("/sys", "record", "-o", "-", "--format", "folded", "--", "python3", "-c", "sum(range(10**7))")
    rig.check(p.returncode == 0 and "python3" in p.stdout, f"no /sys: a capture: {p.returncode} {p.stderr}")
    p = without("/sys", "record", "--cgroup", "/nosuch", "-d", "1")
    rig.check("none is mounted there" in p.stderr, f"no /sys: {p.stderr.strip()}")
    p = without("/proc", "check")
    shown(p, "BAD", "/proc", "mount -t proc")
    ends_with(p, "mount -t proc proc /proc")
    rig.check(p.returncode == 4 and verdict(p).endswith("/proc is not mounted."), f"no /proc: {verdict(p)}")
    for args in (["record", "-d", "1"], ["top", "--batch", "-n", "1"], ["run"], ["list", "units"]):
        p = without("/proc", *args)
        rig.check(p.returncode == 4 and "mount -t proc proc /proc" in p.stderr and not p.stdout,
                  f"no /proc: {p.returncode}, {p.stderr.strip()}")
    p = without("/proc", "record", "--", "true")
    rig.check(p.returncode == 125 and "mount -t proc proc /proc" in p.stderr, f"no /proc: {p.returncode}")


def emulated(program):
    """Without perf events, and without a filter that refuses them."""
    qemu = shutil.which(f"qemu-{platform.machine()}")
    if not qemu or rig.is_sanitized():
        rig.leave_out("qemu-user: it is not here, or not for this program")
        return
    p = run(qemu, program, "check")
    types_said = re.findall(r"^(?:ok|note|BAD) +(?:CPU time|off-CPU time|locks|memory growth|allocations) .*", p.stdout, re.M)
    rig.check("no seccomp filter hides it" in verdict(p) and "Seccomp:" not in p.stdout, f"emulated: {verdict(p)}")
    rig.check(len(types_said) == 5 and "tracefs" not in p.stdout, "no mount makes up for that"
              + (f"\n{p.stdout}" if "tracefs" in p.stdout else ""))
    rig.check("CONFIG_SECCOMP" not in p.stdout and "an emulator has none" in p.stdout, "nor another kernel for filters"
              + ("" if "an emulator has none" in p.stdout else f"\n{p.stdout}"))


def types(program):
    """What `list types` says of each type, record then does: of the whole host, of a command, or not at all."""
    directory = rig.path("types")
    os.mkdir(directory)
    os.chmod(directory, 0o777)
    library = os.path.join(os.path.dirname(rig.perfwalk()), "alloc", "libperfwalk-alloc.so")
    if os.path.exists(library):
        os.makedirs(rig.path("alloc"), exist_ok=True)
        shutil.copy(library, rig.path("alloc"))
    mounted = ["unshare", "-m", "sh", "-c", 'mount -t tracefs none /sys/kernel/tracing; exec "$0" "$@"']
    for who, become in (("root", []), ("root with tracefs", mounted), ("nobody", NOBODY)):
        def tried(*args, become=become):
            p = subprocess.run([*become, program, "record", "-o", "t.pb.gz", *args], cwd=directory, capture_output=True, timeout=120,
                               env={"PATH": os.environ["PATH"], "HOME": directory}, check=False)
            if os.path.exists(f"{directory}/t.pb.gz"):
                os.remove(f"{directory}/t.pb.gz")
            return p.returncode == 0, p.stderr.decode()
        said = re.findall(r"^(\w[\w -]*?) +(-|--[a-z-]+)[ ,].*? (the whole host, not of commands|the whole host|own processes and commands|not here)"
                          r"(?:; (.*))?$", run(*become, program, "list", "types").stdout, re.M)
        rig.check(len(said) == 5, f"{who}: the types: {[name for name, *_ in said]}")
        for name, option, reach, why in said:
            options = [] if option == "-" else [option]
            (host, _), (own, told) = tried(*options, "-a", "-d", "100ms"), tried(*options, "--", "true")
            rig.check((host, own) == (reach.startswith("the whole host"), reach in ("the whole host", "own processes and commands")),
                      f"{who}: {name}: {reach}; record: the host {host}, a command {own}")
            if not own:
                rig.check(why in told, f"{who}: {name}: record gives the same reason: {told.strip()}")


def paranoid_here():
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as f:
        return int(f.read())


def main():
    rig.need_root()
    rig.need_programs("setpriv", "prlimit", "unshare", "capsh")
    program = rig.perfwalk_for_others()
    p = run(program, "check")
    rig.check(p.returncode == 0 and verdict(p) == "perfwalk record -a works here.",
              f"root: {verdict(p)}")
    paranoid = paranoid_here()
    p = run(*NOBODY, program, "check")
    if paranoid > 0:
        rig.check(p.returncode == 3 and f"perf_event_paranoid is {paranoid}: " in p.stdout
                  and "sysctl" in p.stdout, f"nobody: {verdict(p)}")
        ends_with(p, "sudo perfwalk record -a")
        hidden = re.search("^note +kernel names .*", p.stdout, re.M)
        rig.check(not hidden or f"perf_event_paranoid {paranoid})" in hidden[0], f"what hides the kernel's names from nobody: {hidden and hidden[0]}")
        q = run(*NOBODY, program, "record", "-a", "-d", "1")
        rig.check(q.returncode == 3 and "perfwalk check" in q.stderr,
                  "a refused capture has the same status and points to it")
    else:
        rig.check(p.returncode == 0, f"nobody: {verdict(p)}")
    causes(program)
    emulated(program)
    types(program)
    p = run(program, "check", "now")
    rig.check(p.returncode == 2 and "no arguments" in p.stderr, f"an argument: {p.stderr.strip()}")
    rig.need_programs("podman", "runc")
    base = ["podman", "--runtime", "runc", "run", "--rm", "--cgroup-manager=cgroupfs",
            "--network=none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]
    root = ["-v", "/usr:/usr:ro", "-v", f"{program}:/perfwalk:ro", "--rootfs", make_rootfs()]
    p = run(*base, *root, "/perfwalk", "check")
    rig.check(p.returncode in (3, 4) and "does not work here" in verdict(p)
              and re.search("BAD +(seccomp|paranoid)", p.stdout) and "--privileged" in p.stdout,
              f"a container: {verdict(p)}\n{p.stdout if p.returncode == 0 else ''}{p.stderr}")
    lines = p.stdout.splitlines()
    paranoid = next(x for x in lines if " paranoid " in x)
    rig.check("seccomp filter refuses" in verdict(p) and "CAP_SYS_ADMIN" not in paranoid,
              f"which is the filter's doing, and no other cause is blamed: {paranoid!r}")
    if shutil.which(f"qemu-{platform.machine()}"):
        q = run(*base, *root, f"/usr/bin/qemu-{platform.machine()}", "/perfwalk", "check")
        rig.check("no seccomp filter hides it" in verdict(q), f"an emulator there: {verdict(q)}{q.stderr}")
    options = options_said(p)
    p = run(*base, *options, *root, "/perfwalk", "check")
    rig.check(p.returncode == 0 and "--pid=host" in options and not options_said(p),
              f"with the {len(options)} options that it ends with, nothing is missing: {verdict(p)}{p.stderr}")
    p = run(*base, *root, "/perfwalk", "record", "-d", "1", "-o", "/tmp/x.html")
    rig.check(p.returncode == 3 and "seccomp filter refuses" in p.stderr and "perfwalk check" in p.stderr,
              f"a capture there says the same: {p.stderr.strip()[-200:]!r}")
    p = run(*base, "--cap-drop=all", "--security-opt", "seccomp=unconfined", *root, "/perfwalk", "check")
    rig.check(p.returncode == (3 if paranoid_here() > 0 else 0) and "run as root" not in "".join(
        x for x in p.stdout.splitlines() if "paranoid" in x),
              f"a container without capabilities, whose root is told to become no root: {verdict(p)}")
    p = run(*base, "--privileged", "--pid=host", *root, "/perfwalk", "check")
    rig.check(p.returncode == 0, f"a privileged container: {verdict(p)}{p.stderr}")


def options_said(p):
    """Those of podman and docker that are missing."""
    return p.stdout.partition("options of podman or docker:\n")[2].split()


def make_rootfs():
    """Links into the host's /usr, which is mounted."""
    top = rig.path("rootfs")
    for name in ("usr", "tmp", "proc", "dev", "sys", "etc"):
        os.makedirs(os.path.join(top, name))
    for name in ("bin", "lib", "lib64"):
        os.symlink("usr/" + name, os.path.join(top, name))
    shutil.copy("/etc/ld.so.cache", os.path.join(top, "etc"))
    return top


if __name__ == "__main__":
    rig.run(main)
