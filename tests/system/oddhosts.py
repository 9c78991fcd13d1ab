# SPDX-License-Identifier: Apache-2.0
# Rooms: src/host src/opener src/cmd
"""Odd hosts: programs in an LXC and in a systemd-nspawn container, and one of musl, have stacks with names on the host,
and the container's name where it has a scope of systemd's;
a host whose /proc hides others' processes (hidepid=2) and one without /sys sample like any other, for root and for
others; `check` ends with the command for what is missing, and inside such containers with what their managers have."""
import json
import os
import re
import shutil
import subprocess

import rig
from containers import is_of_musl, make_rootfs, own
from machine import Machine

NAME = f"perfwalk-test-{os.getpid()}"
PATH = ["main", "chain_one", "chain_two"]
AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
LXC = """lxc.rootfs.path = dir:{root}
lxc.uts.name = perfwalk-test
lxc.net.0.type = none
lxc.mount.auto = proc:mixed sys:ro
lxc.autodev = 1
lxc.apparmor.profile = unconfined
"""


def check_stacks(out, comm, what):
    mine = [s for s in rig.read_folded(out) if s.comm == comm[:15] and s.user and not is_of_musl(s.user)]
    n, right = rig.total(mine), rig.total(s for s in mine if rig.contains_path(s.user, PATH))
    rig.check(n >= 20 and right >= 0.9 * n, f"{what}: {right} of {n} stacks with names")


def lxc(root, program):
    path = rig.path("lxc")
    os.makedirs(path, exist_ok=True)
    return ["lxc-execute", "-P", path, "-n", NAME,
            "-f", rig.write("lxc.conf", LXC.format(root=root)), "--", program]


def nspawn(root, program):
    return ["systemd-nspawn", "-q", "--register=no", "--keep-unit", "-M", NAME, "-D", root,
            "--pipe", program]


def check_contained(root, tool, command, named):
    """From outside, where its file has another path. named: the control group tells of it."""
    if not shutil.which(command(root, "")[0]):
        rig.leave_out(f"{tool} is not installed")
        return
    name = own(tool)
    shutil.copy(os.path.join(root, "bin", own("burner")), os.path.join(root, "bin", name))
    log = rig.path(f"{tool}.log")
    with open(log, "wb") as f:
        p = rig.start(command(root, f"/bin/{name}"), stdout=f, stderr=f)

    def burns():
        if p.poll() is not None:
            with open(log, encoding="utf-8", errors="replace") as f:
                rig.fail(f"{tool}: {f.read()}")
        return next((pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                     if rig.comm_of(pid) == name[:15] and rig.cpu_seconds(pid) > 0.1), 0)
    pid = rig.wait_for(f"{tool}: the program runs", burns, 60)
    out, lines = rig.path(f"{tool}.folded"), rig.path(f"{tool}.ndjson")
    r = rig.record_cpu(1, [pid], "-a", "-F", "199", "-o", out, "-o", lines)
    rig.kill(pid, 9)
    rig.check(r.status == 0, f"{tool}: record -a leaves with {r.status}")
    check_stacks(out, name, f"a program in a container of {tool}")
    if named:
        with open(lines, encoding="utf-8") as f:
            rows = [row for row in map(json.loads, f) if row["process"] == name[:15]]
        said = {(row["container"], row["container_name"]) for row in rows}
        rig.check(said == {(NAME, NAME)}, f"its container is known by its name: {said}")


def check_scope(root):
    """On a host with systemd and its machined, nspawn's container has a scope by its name, which the manager escapes."""
    missing = [p for p in ("/usr/bin/systemd-nspawn", "/usr/lib/systemd/systemd-machined", "/usr/bin/dbus-daemon") if not os.path.exists(p)]
    if missing:
        rig.leave_out(f"{', '.join(missing)}: not installed")
        return
    program = rig.perfwalk_for_others()
    machine = Machine({}, hidden=["etc/perfwalk"], shared=[root, os.path.dirname(program)])
    machine.run("rm", "/etc/systemd/system/dbus.socket")  # which the machine has no use for else
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "dbus.service", "systemd-machined.service")
    machine.run("systemd-run", "systemd-nspawn", "-q", "-M", NAME, "-D", root, "--console=pipe", "/bin/" + own("burner"))
    rig.wait_for("the container is registered", lambda: NAME in machine.try_run("machinectl", "list")[1], 60)
    rig.wait_for("its program runs", lambda: machine.try_run("pidof", own("burner"))[0] == 0, 60)
    lines = machine.run(program, "record", "-a", "-q", "-d", "2", "-F", "199", "--format", "ndjson", "-o", "-", timeout=120).splitlines()
    rows = [row for row in (json.loads(x) for x in lines if x.startswith("{")) if row["process"] == own("burner")[:15]]
    said = {(row["container"], row["container_name"], row["systemd_unit"]) for row in rows}
    rig.check({x[:2] for x in said} == {(NAME, NAME)}, f"a registered container of nspawn is known by its name: {said}")
    machine.halt()


# Each with what its configuration or its command is told, and how perfwalk comes in with the libraries of this host.
INSIDE = {
    "LXC": (["lxc-execute", "-P", "{lxc}", "-n", NAME + "-in", "-f", "{config}", "--"], "the container's lxc.cap.drop", "syslog"),
    "systemd-nspawn": (["systemd-nspawn", "-q", "--register=no", "--keep-unit", "-M", NAME + "-in", "-D", "{root}", "--bind-ro=/usr",
                        "--bind-ro={program}:/perfwalk", "--pipe"], "options of systemd-nspawn", "--capability=CAP_"),
}


def make_inside(program):
    """A root of links into this host's /usr, and what LXC is told of it."""
    root = rig.path("inside")
    for name in ("usr", "tmp", "proc", "dev", "sys", "etc", "run"):
        os.makedirs(os.path.join(root, name))
    for name in ("bin", "sbin", "lib", "lib64"):
        os.symlink(f"usr/{name}", os.path.join(root, name))
    rig.write("inside/perfwalk", "")
    rig.write("inside/etc/os-release", "ID=test\n")
    mounts = f"lxc.mount.entry = /usr usr none bind,ro 0 0\nlxc.mount.entry = {program} perfwalk none bind,ro 0 0\n"
    return root, rig.write("inside.conf", LXC.format(root=root) + mounts + "lxc.cap.drop = perfmon syslog\n")


def check_inside():
    """What `check` and a capture say there is what the manager of such containers has, and nothing of podman's. With
    nspawn's options that it ends with nothing is missing but the host's processes."""
    program = rig.perfwalk_for_others()
    root, config = make_inside(program)
    for manager, (command, words, options) in INSIDE.items():
        argv = [a.format(lxc=rig.path("lxc"), config=config, root=root, program=program) for a in command]
        if not shutil.which(argv[0]):
            rig.leave_out(f"{argv[0]} is not installed")
            continue

        def run(*more, into=argv):
            return subprocess.run([*into, *more], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120)
        p = run("/perfwalk", "check")
        end = p.stdout.partition(f"In this container ({manager}) ")[2].splitlines()
        rig.check(len(end) > 1 and words in end[0] and options in end[1], f"{manager}: check ends with what its manager has: {end[1:2]}"
                  + ("" if len(end) > 1 else p.stdout + p.stderr))
        rig.check("run perfwalk on the host" in p.stdout and not re.search("podman|--pid=host|--cap-add|Kubernetes", p.stdout),
                  f"{manager}: and with nothing of podman or Kubernetes" + "".join(re.findall(".*(?:podman|--pid=host|--cap-add).*", p.stdout)))
        if manager == "systemd-nspawn":
            allowed = [*argv, *end[1].split()]
            p = run("/perfwalk", "check", into=allowed)
            rig.check(p.returncode == 0 and "In this container" not in p.stdout, f"{manager}: with these options it can sample"
                      + ("" if p.returncode == 0 else p.stdout + p.stderr))
            p = run("/perfwalk", "record", "-a", "-d", "1", "-o", "/tmp/x.folded", into=allowed)
            rig.check(p.returncode == 0 and "run perfwalk on the host" in p.stderr and "--pid=host" not in p.stderr,
                      f"{manager}: a capture says what it does not see: {p.stderr.strip()[:200]!r}")


def check_musl():
    if not shutil.which("musl-gcc"):
        rig.leave_out("musl-gcc is not installed")
        return
    for name, options in (("chain-musl", []), ("chain-musl-s", ["-static"])):
        subprocess.run(["musl-gcc", "-O2", "-fno-optimize-sibling-calls", *options, "-o", rig.path(name),
                        os.path.join(rig.WORKLOADS, "chain.c")], check=True)
        out = rig.path(f"{name}.folded")
        r = rig.record("-F", "199", "-o", out, "--", "sh", "-c", f"ulimit -t 1; exec {rig.path(name)}")
        check_stacks(out, name, f"{name}: the capture left with {r.status}")


def check_hidden(mounts, what, who, command):
    """A host without those, for root and for a user. who misses something, and check ends with the command for it: after
    that it is there."""
    program, chain = rig.perfwalk_for_others(), os.path.join(rig.build_workloads("chain-static"), "chain-static")
    user = rig.path(f"{what}-user")
    os.mkdir(user)
    os.chown(user, 65534, 65534)
    copied = shutil.copy(chain, os.path.join(user, "chain"))
    burner = rig.start([copied])
    for name, prefix, options in (("root", [], ["-a", "-d", "2"]),
                                  ("a user", AS_NOBODY, ["--", "sh", "-c", f"ulimit -t 1; exec {copied}"])):
        out = os.path.join(user, f"{name[-4:]}.folded")
        p = subprocess.run(["unshare", "-m", "sh", "-c", f'{mounts} && exec "$@"', "sh", *prefix, program, "record",
                            "-F", "199", "-o", out, *options],
                           cwd=user, capture_output=True, text=True, check=False, timeout=120)
        if not os.path.exists(out):
            rig.fail(f"{what}, {name}: {p.stderr[-600:]}")
        check_stacks(out, "chain", f"{what}, {name}")
    rig.end(burner)
    for mended in (False, True):
        make = f"{mounts} && {command.removeprefix('sudo ')}" if mended else mounts
        p = subprocess.run(["unshare", "-m", "sh", "-c", f'{make} && exec "$@"', "sh", *who, program, "check"], capture_output=True,
                           text=True, check=False, timeout=120)
        end = p.stdout.partition("What is missing comes with:")[2].splitlines()
        rig.check(("    " + command in end) != mended, f"{what}: check ends with {command}: {not mended}"
                  + ("" if ("    " + command in end) != mended else p.stdout[-600:] + p.stderr))


def main():
    rig.need_root()
    rig.need_programs("busybox", "unshare", "setpriv")
    if not rig.can_mount():
        rig.skip("nothing can be mounted here")
    root = make_rootfs()
    os.makedirs(os.path.join(root, "usr"))
    rig.write("rootfs/etc/os-release", "ID=test\n")
    check_contained(root, "lxc", lxc, True)
    check_contained(root, "nspawn", nspawn, False)  # of no scope: check_scope() is for that
    rig.apart(check_scope, root)
    check_inside()
    check_musl()
    check_hidden("mount -t proc -o hidepid=2 proc /proc", "hidepid", AS_NOBODY, "sudo mount -o remount,gid=65534 /proc")
    check_hidden("umount -R -l /sys", "no-sys", [], "mount -t sysfs sysfs /sys")


rig.run(main)
