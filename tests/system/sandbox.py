# SPDX-License-Identifier: Apache-2.0
# Rooms: src/process
"""What the kernel refuses to the processes of perfwalk: each but the broker has its filter of system calls,
in every mode of the config, limits, and no network, and samples arrive all
the same."""
import ctypes
import glob
import json
import os
import platform
import pwd
import re
import shutil
import socket
import subprocess
import sys

import inside
import rig
from sink import Sink

FILTER = "2"  # /proc/PID/status, Seccomp: SECCOMP_MODE_FILTER


def config(sink, extra="", cache="cache"):
    return f"""
[profiler]
samples_per_second = 99
reporter_interval = 1s
[debuginfod]
urls = http://127.0.0.1:1
cache_path = {rig.path(cache)}
[metrics]
listen = unix:{rig.path("metrics")}
[process]
{extra}
[export:sink]
endpoint = {sink.endpoint}
"""


def unlimited():
    """What a process without a filter of ours has: as a service all have one of systemd's."""
    return FILTER if inside.is_inside() else "0"


def roles_of(daemon):
    rig.ROLES.update(fetcher="pw-fetcher", metrics="pw-metrics")
    return daemon.wait_up()


def wait_filter(pid, want):
    rig.wait_for(f"Seccomp: {want} of {rig.comm_of(pid)}", lambda: rig.status_of(pid).get("Seccomp") == want)


def check_modes():
    for mode in ("errno", "kill", "no"):
        with Sink() as sink:
            daemon = rig.Daemon(config(sink, f"seccomp = {mode}"), f"mode-{mode}", env={**os.environ, "PERFWALK_SECCOMP": ""})
            roles = roles_of(daemon)
            want = unlimited() if mode == "no" else FILTER
            for pid in roles.values():
                wait_filter(pid, want)
            sink.wait_for(2, 20)
            rig.check(daemon.roles() == roles, f"seccomp = {mode}: {', '.join(roles)} have "
                      + ("no filter" if mode == "no" else "a filter of the kernel's") + ", and work")
            rig.check(rig.status_of(daemon.pid)["Seccomp"] == unlimited(), "and the broker, which opens what they need, has none"
                      + (" but the unit's" if inside.is_inside() else ""))
            daemon.stop()


def limits_of(pid):
    """Name: hard limit, of /proc/PID/limits."""
    with open(f"/proc/{pid}/limits", encoding="utf-8") as f:
        return {line[:26].strip(): line[47:68].strip() for line in f}


# MiB of data that each role may have with the default config and one destination: the summands of the unit's MemoryMax.
MAX_DATA = {"profiler": 264, "symbolizer": 384, "exporter": 192, "metrics": 128, "fetcher": 64}


def check_limits():
    with Sink() as sink:
        # A log in a file would be cut off by the limit of a file's size: there it is left out.
        daemon = rig.Daemon(config(sink), "limits", argv_prefix=["sh", "-c", 'exec "$@" >/dev/null 2>&1', "sh"])
        roles = roles_of(daemon)
        for name, pid in roles.items():
            wait_filter(pid, FILTER)
            limits = limits_of(pid)
            network = name in ("exporter", "fetcher")
            rig.check((limits["Max processes"] == "0") != network and limits["Max core file size"] == "0"
                      and int(limits["Max file size"]) <= 257 << 20 and int(limits["Max data size"]) <= MAX_DATA[name] << 20
                      and int(limits["Max open files"]) <= 8192,
                      f"{name}: no core, " + ("threads" if network else "no process")
                      + f", files of at most {limits['Max file size']} bytes, {limits['Max open files']} of them, "
                        f"{limits['Max data size']} bytes of data")
        sink.wait_for(2, 20)
        rig.check(daemon.roles() == roles, "which is enough")
        daemon.stop()
        daemon = rig.Daemon(config(sink), "log-file")
        roles = roles_of(daemon)
        wait_filter(roles["metrics"], FILTER)
        rig.check(limits_of(roles["metrics"])["Max file size"] == "unlimited", "who logs to a file may write to it")
        daemon.stop()


def network_of(pid):
    """The namespace, and the interfaces in it."""
    with open(f"/proc/{pid}/net/dev", encoding="utf-8") as f:
        return os.readlink(f"/proc/{pid}/ns/net"), {line.split(":")[0].strip() for line in f if ":" in line}


def check_network():
    if subprocess.run(["unshare", "-n", "true"], check=False, stderr=subprocess.DEVNULL).returncode:
        rig.leave_out("a network namespace cannot be made here")
        return
    with Sink() as sink:
        daemon = rig.Daemon(config(sink), "network")
        roles = roles_of(daemon)
        host = network_of(os.getpid())[0]
        for name, pid in roles.items():
            wait_filter(pid, FILTER)
            namespace, interfaces = network_of(pid)
            if name in ("exporter", "fetcher"):
                rig.check(namespace == host, f"{name}: has the host's network")
            else:
                rig.check(namespace != host and interfaces <= {"lo", "tunl0", "sit0", "ip6tnl0", "gre0", "gretap0", "erspan0",
                                                               "ip_vti0", "ip6_vti0", "ip6gre0"},
                          f"{name}: has a network of its own, with nothing in it ({', '.join(sorted(interfaces))})")
        sink.wait_for(1, 20)
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(rig.path("metrics"))
            s.sendall(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
            rig.check(b" 200 " in s.recv(64), "and metrics still answers at the socket that it was given")
        daemon.stop()


# What /proc and ctl status call the same limit.
LIMITS = {"Max data size": "max_data_bytes", "Max address space": "max_address_space_bytes", "Max file size": "max_file_bytes",
          "Max open files": "max_open_files"}


def check_limits_told(name, status):
    real = limits_of(status[f"{name}.pid"])
    told = {x: str(status.get(f"{name}.{key}", "unlimited")) for x, key in LIMITS.items()}
    rig.check(told == {x: real[x] for x in LIMITS} and real["Max open files"] != "unlimited"
              and real["Max data size"] != "unlimited", f"and of its limits: {told}")
    rig.check(status[f"{name}.tasks"] == ("no" if real["Max processes"] == "0" else "yes"),
              f"and whether it may start others: {status[f'{name}.tasks']}")


def check_status():
    with Sink() as sink:
        daemon = rig.Daemon(config(sink), "status", env={**os.environ, "PERFWALK_SECCOMP": ""})
        roles = roles_of(daemon)
        for pid in roles.values():
            wait_filter(pid, FILTER)
        status = rig.wait_for("the status of all", lambda: (s := json.loads(subprocess.run(
            [rig.perfwalk(), "ctl", "-s", daemon.control, "status", "--json"], check=True, stdout=subprocess.PIPE).stdout))
            and all(f"{name}.seccomp" in s for name in (*roles, "opener")) and s)
        for name, pid in roles.items():
            proc = rig.status_of(pid)
            rig.check(status[f"{name}.seccomp"] == "errno" and proc["Seccomp"] == FILTER
                      and status[f"{name}.uid"] == int(proc["Uid"].split()[1])
                      and (status[f"{name}.network"] == "none") == (network_of(pid)[0] != network_of(os.getpid())[0])
                      and status[f"{name}.landlock"] == max(0, landlock_version()),
                      f"ctl status --json says of the {name} what /proc does: seccomp {status[f'{name}.seccomp']}, user "
                      f"{status[f'{name}.uid']}, network {status[f'{name}.network']}, Landlock {status[f'{name}.landlock']}")
        for name in (*roles, "opener"):
            check_limits_told(name, status)
        text = subprocess.run([rig.perfwalk(), "ctl", "-s", daemon.control, "status"], check=True, stdout=subprocess.PIPE,
                              text=True).stdout
        rig.check("Sandbox   system calls limited (seccomp errno): profiler" in text, "ctl status says it to a person")
        rig.check("system calls not limited" not in text, "and of no process that it has none")
        daemon.stop()


# Of <linux/capability.h>; the last in place of CAP_SYS_ADMIN, since Linux 5.9.
CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_CHECKPOINT_RESTORE = 2, 19, 21, 40


def is_mapped(pid, path):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        return path in f.read()


def check_opener(name, argv_prefix=(), admin=False):
    """Who opens files for the others, with less rights than the broker has. The status counts it."""
    directory = rig.build_workloads("host")
    plugin = shutil.copy(os.path.join(directory, "plugin.so"), rig.path(f"{name}.so"))
    host = rig.start(["./host", plugin], cwd=directory)
    rig.wait_for("the plugin is mapped", lambda: is_mapped(host.pid, plugin))
    os.unlink(plugin)
    with Sink() as sink:
        daemon = rig.Daemon(config(sink, cache=f"{name}.cache"), name, argv_prefix=argv_prefix, env={**os.environ, "PERFWALK_SECCOMP": ""})
        roles_of(daemon)
        pid = rig.wait_for("the opener", lambda: next((p for p in rig.children_of(daemon.pid)
                                                       if rig.comm_of(p) == "pw-opener"), None), 30)
        wait_filter(pid, FILTER)
        proc = rig.status_of(pid)
        own = int(rig.status_of(daemon.pid)["CapEff"], 16)
        last = CAP_CHECKPOINT_RESTORE if own >> CAP_CHECKPOINT_RESTORE & 1 else CAP_SYS_ADMIN
        want = own & (1 << CAP_DAC_READ_SEARCH | 1 << CAP_SYS_PTRACE | 1 << last)
        if admin:
            rig.check(last == CAP_SYS_ADMIN, f"{name}: the daemon has {own:x}")
        rig.check(int(proc["CapEff"], 16) == int(proc["CapPrm"], 16) == want and int(proc["CapInh"], 16) == 0
                  and proc["NoNewPrivs"] == "1", f"{name}: it has capabilities to read, and no others ({want:x} of {own:x})")
        status = json.loads(subprocess.run([rig.perfwalk(), "ctl", "-s", daemon.control, "status", "--json"], check=True,
                                           stdout=subprocess.PIPE).stdout)
        rig.check(status["opener.pid"] == pid and status["opener.seccomp"] == "errno" and status["opener.memory_bytes"] > 0
                  and status["opener.cpu_seconds"] >= 0 and "opener.landlock" not in status,
                  f"ctl status has its cost ({status['opener.cpu_seconds']} s) and its filter")
        # It works: what it has opened is named, also where only the process's mapping leads to the file.
        rig.wait_for("a function of a library that is gone", lambda: any(b"plugin_call" in body for body in sink.payloads()), 60)
        rig.check(rig.children_of(daemon.pid).count(pid) == 1, f"{name}: what it opened has its names, a deleted library's, too")
        daemon.stop()
    rig.end(host)


def check_openers():
    check_opener("opener")
    # As an engine for containers gives them that knows neither CAP_PERFMON nor CAP_CHECKPOINT_RESTORE (docs/containers.md).
    less = "-perfmon,-checkpoint_restore"
    if inside.is_inside() or subprocess.run(["setpriv", "--bounding-set", less, "true"], check=False).returncode:
        rig.leave_out("this host gives no daemon CAP_SYS_ADMIN alone")
        return
    check_opener("opener-admin", ["setpriv", "--bounding-set", less, "--inh-caps", less], admin=True)


def check_readers():
    """The status has one line for the readers of all CPUs, with the sum of what they use."""
    program = rig.start([sys.executable, os.path.join(rig.WORKLOADS, "pyloop.py")], stdout=subprocess.DEVNULL)
    with Sink() as sink:
        daemon = rig.Daemon(config(sink, cache="readers.cache"), "readers")
        roles_of(daemon)

        def both():
            pids = [p for p in rig.children_of(daemon.pid) if rig.comm_of(p) == "pw-reader"]
            status = json.loads(subprocess.run([rig.perfwalk(), "ctl", "-s", daemon.control, "status", "--json"], check=True,
                                               stdout=subprocess.PIPE).stdout)
            return len(pids) == os.cpu_count() and (status.get("readers.memory_bytes", 0) >> 10, sum(map(rig.rss_kib, pids)))
        told, used = rig.wait_for("a reader on each CPU", both, 60)
        rig.check(0.8 * used <= told <= 1.2 * used, f"ctl status says that the readers have {told} KiB, of {used}")
        daemon.stop()
    rig.end(program)


def has_in_memory(pid, secrets):
    """Which of them are anywhere in the memory of a process."""
    found = set()
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            words = line.split()
            begin, end = (int(x, 16) for x in words[0].split("-"))
            overlap = b""
            while begin < end and words[1][0] == "r" and words[-1] not in ("[vvar]", "[vsyscall]"):
                try:
                    piece = os.pread(mem.fileno(), min(end - begin, 1 << 20), begin)
                except OSError:
                    break  # rings of events
                if not piece:
                    break
                found |= {name for name, secret in secrets.items() if secret in overlap + piece}
                begin, overlap = begin + len(piece), piece[-100:]
    return found


def look_into(daemon, name, secrets):
    """The same of a role, and "looked"; None when it was not there all the time."""
    pid = daemon.role(name)
    try:
        found = has_in_memory(pid, secrets) | {"looked"} if pid else None
    except OSError:
        return None
    return found if daemon.role(name) == pid else None


def on_stack(pid, secrets):
    """Which of them a sample of that process can have: its stack, from the pointer on, with the variables at its end.
    None while it is running."""
    with open(f"/proc/{pid}/syscall", encoding="utf-8") as f:
        words = f.read().split()
    if words[0] == "running":
        return None
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem, \
            open(f"/proc/{pid}/environ", "rb") as environ:
        end = next(int(x.split()[0].split("-")[1], 16) for x in maps if x.endswith("[stack]\n"))
        stack = os.pread(mem.fileno(), end - int(words[-2], 16), int(words[-2], 16)) + environ.read()
    if b"PATH=" not in stack:
        return None  # it went on
    return {name for name, secret in secrets.items() if secret in stack}


def check_stacks(daemon, names, secrets):
    for name in ("broker", *names):
        found = rig.wait_for(f"the stack of the {name}", lambda: (x := on_stack(
            daemon.pid if name == "broker" else daemon.role(name), secrets)) is not None and {"looked"} | x)
        rig.check(found == {"looked"}, f"{name}: on its stack, with its variables: {', '.join(found - {'looked'}) or 'none'}")


def check_secrets():
    """Credentials of the config and of the environment are in the memory of the broker and of those who need them, but
    on no stack: a sample copies it, the end with the environment too, and so who walks it would have them."""
    chain = rig.start(["./chain", "30"], cwd=rig.build_workloads("chain"))
    secrets = {name: os.urandom(16).hex().encode() for name in ("header", "variable", "proxy")}
    text = {name: secret.decode() for name, secret in secrets.items()}
    with Sink() as sink:
        environment = {**os.environ, "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={text['variable']}",
                       "HTTPS_PROXY": f"http://user:{text['proxy']}@127.0.0.1:1"}
        # The variables are about the destination of that name.
        daemon = rig.Daemon(config(sink, cache="secrets.cache") + f"headers = authorization={text['header']}\n[export:otel]\n"
                            f"endpoint = {sink.endpoint}\n", "secrets", env=environment)
        roles = roles_of(daemon)
        for pid in roles.values():
            wait_filter(pid, FILTER)
        rig.wait_for("a function of a program", lambda: any(b"chain_leaf" in body for body in sink.payloads()))
        rig.check(has_in_memory(daemon.pid, secrets) == set(secrets), f"the broker has {', '.join(secrets)}: they can be found")
        check_stacks(daemon, (*roles, "opener"), secrets)
        may = {"exporter": set(secrets), "fetcher": {"proxy"}}
        for name in (*roles, "opener"):
            found = rig.wait_for(f"the memory of the {name}", lambda: look_into(daemon, name, secrets))
            found.discard("looked")
            rig.check(found == may.get(name, set()), f"{name}: of the credentials {', '.join(sorted(found)) or 'none'} in its memory")
        daemon.stop()
    rig.end(chain)


def owners(directory):
    return {os.lstat(os.path.join(directory, name)).st_uid for name in (".", *os.listdir(directory))}


# Of /proc/PID/status: all sets of them.
CAPABILITIES = "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"


def check_users():
    """Two users; and the spool of one that comes to be the other's."""
    user, network = pwd.getpwnam("bin").pw_uid, pwd.getpwnam(rig.NETWORK_USER).pw_uid
    os.setgroups([*os.getgroups(), pwd.getpwnam("bin").pw_gid])  # for the children to give up
    with Sink() as sink:
        text = config(sink, "user = bin\nnetwork_user = no-such-user", "users.cache")
        daemon = rig.Daemon(text, "users")
        roles = roles_of(daemon)
        wait_filter(roles["exporter"], FILTER)
        rig.check({rig.status_of(pid)["Uid"].split()[1] for pid in roles.values()} == {str(user)},
                  "without a user for the network all run as the one that there is")
        sink.answers = [503] * 1000
        daemon.stop()
        rig.check(len(os.listdir(daemon.spool)) > 0 and owners(daemon.spool) == {user}, "and the spool is that one's")
        sink.answers = []
        n = sink.count()
        daemon = rig.Daemon(text.replace("network_user = no-such-user", f"network_user = {rig.NETWORK_USER}"), "users")
        roles = roles_of(daemon)
        for name, pid in roles.items():
            wait_filter(pid, FILTER)
            want = network if name in ("exporter", "fetcher") else user
            proc = rig.status_of(pid)
            rig.check(proc["Uid"].split() == [str(want)] * 4 and not proc["Groups"].strip(),
                      f"{name}: runs as user {want}, with no other group")
            rig.check(proc["NoNewPrivs"] == "1" and not any(int(proc[x], 16) for x in CAPABILITIES),
                      f"{name}: has no capabilities, and cannot get any")
            rig.check(os.stat(f"/proc/{pid}/mem").st_uid == 0, f"{name}: is not dumpable: its memory is not its user's to read")
        sink.wait_for(n + 2, 30)
        rig.wait_for("the spool is sent", lambda: not [x for x in os.listdir(daemon.spool) if not x.startswith(".")], 30)
        rig.check(owners(daemon.spool) == {network} and owners(rig.path("users.cache")) == {network},
                  "spool and cache have become the network user's, and what was in the spool is sent")
        daemon.stop()


def check_nobody():
    with Sink() as sink:
        text = config(sink, "user = no-such-user\nnetwork_user = no-such-user", "nobody.cache")
        daemon = rig.Daemon(text, "nobody")
        roles_of(daemon)
        rig.check('user "no-such-user" does not exist' in daemon.log() and "useradd --system" in daemon.log(),
                  "a daemon that runs as nobody warns, and says what to do")
        rig.check(os.stat(daemon.control).st_gid == os.getgid(), "its control socket is not for the group of nobody")
        daemon.stop()
        key = rig.write("key.pem", "not a key")
        os.chmod(key, 0o600)
        daemon = rig.Daemon(config(sink, "user = bin", "key.cache") + f"client_key = {key}\nclient_certificate = {key}\n", "key")
        rig.wait_for("it warns of the key", lambda: f"may not read {key}: chgrp" in daemon.log())
        rig.check(True, "a key that the network's user may not read is reported")
        daemon.stop()
        for what, lines in ("a header", "headers = authorization=secret\n"), ("a key", f"client_key = {key}\n"
                                                                              f"client_certificate = {key}\n"):
            daemon = rig.Daemon(text + lines, "credentials")
            status = daemon.process.wait(20)
            rig.check(status == 3 and "[export:sink] has credentials" in daemon.log() and "secret" not in daemon.log(),
                      f"with {what} it does not start: {daemon.log().strip()[-220:]}")
        daemon = rig.Daemon(text.replace("network_user = no-such-user", f"network_user = {rig.NETWORK_USER}")
                            + "headers = authorization=secret\n", "holder")
        roles_of(daemon)
        rig.check(rig.status_of(daemon.role("exporter"))["Uid"].split()[0] != rig.status_of(daemon.role("profiler"))["Uid"].split()[0],
                  "unless the process that has them is another user's")
        daemon.stop()


def check_commands():
    """Readers of strangers' files: as root and as somebody else."""
    if not shutil.which("strace"):
        rig.leave_out("strace is not installed")
        return
    program = rig.perfwalk_for_others()
    folded = rig.write("some.folded", "main;f 3\nmain;g 4\n")
    for user in (0, pwd.getpwnam("daemon").pw_uid):
        out = rig.path(f"commands.{user}")
        os.mkdir(out)
        os.chown(out, user, user)
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        sleeper = rig.start([*as_user, "sleep", "600"])
        for args in (["list", "containers"], ["list", "services"], ["report", folded], ["diff", folded, folded], ["convert", folded, "-o", f"{out}/x.pb.gz"], ["debug", "unwind", program, "0x1000"],
                     ["record", "--format", "folded", "-o", f"{out}/x.folded", "--", "sleep", "1"],
                     ["top", "--batch", "-n", "1", "-d", "1s", "-p", str(sleeper.pid)]):
            p = subprocess.run([*as_user, "strace", "-ff", "-qq",
                                "-e", "trace=seccomp,landlock_restrict_self", "-o", f"{out}/trace", program, *args],
                               capture_output=True, text=True, check=False, cwd=out, env={**os.environ, "PERFWALK_SECCOMP": ""})
            lines = []
            for name in glob.glob(f"{out}/trace.*"):  # one a process
                with open(name, encoding="utf-8", errors="replace") as f:
                    lines += f.read().splitlines()
                os.unlink(name)
            filters = [x for x in lines if "SECCOMP_SET_MODE_FILTER" in x and x.endswith("= 0")]
            files = [x for x in lines if "landlock_restrict_self(" in x and x.endswith("= 0")]
            want = {"record": 2, "top": 3}.get(args[0], 1)
            if args[0] in ("record", "top") and p.returncode == 3:
                rig.leave_out(f"user {user} may not sample here: {p.stderr.strip()[-200:]}")
                continue
            # With the opener, and with readers of interpreters, there are more.
            most = want + (1 + os.cpu_count() if want > 1 else 0)
            good = want <= len(filters) <= most and (len(files) >= want or args[0] == "list" or landlock_version() < 0)
            rig.check(good, f"{args[0]} as user {user}: each process that reads has its filter"
                      + (" and its rules" if files else "") + ("" if good else f"\n{p.stderr}\n" + "\n".join(lines)))
        rig.end(sleeper)


def check_order():
    """The reader of perf.data has its filter before it has seen a byte of the file."""
    if not shutil.which("strace"):
        return  # said above
    damaged = rig.write("damaged.data", "PERFILE2" + "\0" * 200)
    mapped = "mmap(NULL, 208,"
    subprocess.run(["strace", "-ff", "-qq", "-e", "trace=seccomp,mmap", "-o", rig.path("order"), rig.perfwalk(),
                    "convert", damaged, "-o", rig.path("order.folded")], capture_output=True, check=False,
                   env={**os.environ, "PERFWALK_SECCOMP": ""})
    readers = []
    for name in glob.glob(rig.path("order.[0-9]*")):
        with open(name, encoding="utf-8", errors="replace") as f:
            text = f.read()
        if "SECCOMP_SET_MODE_FILTER" in text and mapped in text:
            readers.append(text.index("SECCOMP_SET_MODE_FILTER") < text.index(mapped))
    rig.check(readers == [True], f"the reader of perf.data has its filter before it sees the file ({readers})")


LIBC = "tests/workloads/libc.c", *(f"src/process/{name}.c" for name in (
    "message", "sandbox", "sandbox-calls", "sandbox-program", "sandbox-trap")), *(f"util/{name}.c" for name in (
        "fdmsg", "hash", "log", "text"))


def check_libraries():
    """What a role asks of the C library is in its table, whichever library that is."""
    headers = "/usr/include", f"/usr/include/{platform.machine()}-linux-gnu"
    for compiler in (["gcc"], ["musl-gcc", "-static", *(f"-idirafter{d}" for d in headers)]):
        if not shutil.which(compiler[0]):
            rig.leave_out(f"{compiler[0]} is not installed")
            continue
        out = rig.path(f"libc.{compiler[0]}")
        os.makedirs(rig.path(compiler[0], "src/process"))
        rig.write(f"{compiler[0]}/src/process/syscall-names.h", "".join(
            f'{{{m[0]}, "{m[1]}"}},\n' for m in re.findall(r"^#define (SYS_(\w+)) ", subprocess.run(
                [*compiler, "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"], check=True, text=True,
                stdout=subprocess.PIPE).stdout, re.M)))
        subprocess.run([*compiler, "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-DHAVE_CONFIG_H", f"-I{rig.path(compiler[0])}", f"-I{rig.TOP}",
                        f"-I{os.path.dirname(rig.perfwalk())}", "-o", out, *(os.path.join(rig.TOP, name) for name in LIBC),
                        "-pthread"], check=True)
        for role in ("profiler", "symbolizer", "exporter", "screen", "metrics", "fetcher", "reader", "opener"):
            p = subprocess.run([out, role], capture_output=True, text=True, check=False, timeout=60)
            rig.check(p.returncode == 0, f"{compiler[0]}, {role}: the library makes no other calls {p.stderr.strip()}")


def check_lacking():
    """With no more than Linux 3.10 has: without seccomp(2) of 3.17 and Landlock of 5.13."""
    if platform.machine() != "x86_64":
        rig.leave_out("the numbers of system calls here are x86_64's")
        return
    lacking = [os.path.join(rig.build_workloads("lacking"), "lacking")]
    with Sink() as sink:
        daemon = rig.Daemon(config(sink), "lacking", argv_prefix=lacking, env={**os.environ, "PERFWALK_SECCOMP": ""})
        roles = roles_of(daemon)
        sink.wait_for(2, 20)
        status = json.loads(subprocess.run([rig.perfwalk(), "ctl", "-s", daemon.control, "status", "--json"], check=True,
                                           stdout=subprocess.PIPE).stdout)
        without = {"profiler", "symbolizer"}  # they make files of their own where there is no memfd_create(2)
        rig.check(all(status[f"{name}.seccomp"] == ("no" if name in without else "errno") and status[f"{name}.landlock"] == 0
                      for name in roles),
                  "a kernel without Landlock and seccomp(2): the filters are there, and the status says what is not")
        text = subprocess.run([rig.perfwalk(), "ctl", "-s", daemon.control, "status"], check=True, stdout=subprocess.PIPE,
                              text=True).stdout
        rig.check("files not limited (no Landlock): profiler, symbolizer, exporter" in text, "so does ctl status")
        rig.check(daemon.roles() == roles, "and all goes on")
        daemon.stop()
    p = subprocess.run([*lacking, rig.perfwalk(), "check"], stdout=subprocess.PIPE, text=True, check=False)
    rig.check("no Landlock" in p.stdout and "filters hold in exporter" in p.stdout
              and "no filter in profiler, symbolizer" in p.stdout, "and perfwalk check")


def landlock_version():
    return ctypes.CDLL(None, use_errno=True).syscall(444, None, 0, 1)


def check_environment():
    with Sink() as sink:
        daemon = rig.Daemon(config(sink), "environment", env={**os.environ, "PERFWALK_SECCOMP": "no"})
        for pid in roles_of(daemon).values():
            wait_filter(pid, unlimited())
        rig.check(True, "PERFWALK_SECCOMP=no in the environment takes precedence")
        daemon.stop()
        daemon = rig.Daemon(config(sink, "seccomp = no"), "word", env={**os.environ, "PERFWALK_SECCOMP": "eror"})
        for pid in roles_of(daemon).values():
            wait_filter(pid, unlimited())
        rig.check(daemon.log().count('PERFWALK_SECCOMP is "eror": expected errno, kill or no') == 1,
                  "another word there is reported once, and ignored")
        daemon.stop()


def main():
    rig.need_root()
    if "Seccomp" not in rig.status_of(os.getpid()):
        rig.skip("this kernel has no seccomp")
    check_modes()
    check_environment()
    check_limits()
    check_network()
    check_status()
    check_openers()
    check_readers()
    check_secrets()
    check_commands()
    check_order()
    check_lacking()
    check_libraries()
    check_users()
    check_nobody()


rig.run(main)
