# SPDX-License-Identifier: Apache-2.0
# Rooms: -
"""The archive of `make bundle` on a host that has nothing but busybox, and no C library but musl, and in the files of an
Alpine Linux: a capture with names, of a program of musl too, the daemon with its endpoint for metrics, https by the
authorities where Red Hat keeps them; then its removal."""
import glob
import gzip
import hashlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import urllib.request

import rig
import spdx
from badserver import Server, answer, certificates
from containers import is_of_musl
from hardening import check_shipped

MUSL = "/lib/ld-musl-x86_64.so.1"
ENTER = ("mount -t proc proc $0/proc && mount -t sysfs sys $0/sys && mount --rbind /dev $0/dev && "
         "exec chroot $0 \"$@\"")


def make_root():
    """Busybox, the C library of a program, and two users."""
    root = rig.path("root")
    for d in ("bin", "etc", "lib", "proc", "sys", "dev", "tmp", "usr/local/bin"):
        os.makedirs(os.path.join(root, d))
    shutil.copy(shutil.which("busybox"), os.path.join(root, "bin/busybox"))
    os.symlink("busybox", os.path.join(root, "bin/sh"))
    rig.write("root/etc/passwd", "root:x:0:0::/:/bin/sh\nperfwalk:x:64123:64123::/:/bin/false\n")
    rig.write("root/etc/group", "root:x:0:\nperfwalk:x:64123:\n")
    if os.path.exists(MUSL):
        shutil.copy(MUSL, root + MUSL)
    return root


def make_alpine():
    """Alpine's own files, with users made by its own program, as the docs say."""
    p = subprocess.run(["sh", os.path.join(rig.HERE, "fetch-alpine.sh")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       check=False)
    if p.returncode:
        rig.skip(f"no files of Alpine: {(p.stderr.splitlines() or ['?'])[-1]}")
    root = rig.path("alpine")
    subprocess.run(["cp", "-a", p.stdout.strip(), root], check=True)
    with open(os.path.join(rig.TOP, "docs/install.md"), encoding="utf-8") as f:
        commands = re.search(r"On Alpine.*\n\n((?:    .*\n)+)", f.read())[1]
    subprocess.run(inside(root, "/bin/sh", "-ec", commands), check=True)
    with open(root + "/etc/passwd", encoding="utf-8") as f:
        users = dict(line.split(":")[::2][:2] for line in f)
    rig.check({"perfwalk", "perfwalk-net"} <= set(users), "Alpine: both users are made as the docs say")
    return root


def make_bundle():
    """The archive and its list of parts: copies, for another test may make them anew at any time."""
    build = os.path.dirname(rig.perfwalk())
    with rig.make_alone():
        p = subprocess.run(["make", "-s", "bundle"], cwd=build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           check=False, stdin=subprocess.DEVNULL, env={**os.environ, "XZ_OPT": "-0"})
        rig.check(p.returncode == 0, f"make bundle: {p.stdout.strip()[-600:]}")
        newest = [max(glob.glob(os.path.join(build, "perfwalk-bundle-*" + end)), key=os.path.getmtime) for end in (".tar.xz", ".spdx.json")]
        return [shutil.copy(name, rig.path(os.path.basename(name))) for name in newest]


def check_tools():
    """Where a program is missing that the archive is made by, the package that has it is said, before anything is made."""
    tools = rig.path("tools")
    os.mkdir(tools)
    for name in ("dirname", "mktemp", "rm", "sh"):
        os.symlink(shutil.which(name), os.path.join(tools, name))
    for script, program, package in (("bundle.sh", "xz", "xz-utils"), ("bundle-tree.sh", "python3", "python3"), ("image/build.sh", "podman", "podman")):
        p = subprocess.run([shutil.which("sh"), os.path.join(rig.TOP, "etc", script), *"abcdefg"], capture_output=True, text=True,
                           check=False, env={"PATH": tools, "SOURCE_DATE_EPOCH": "1"}, cwd=rig.workdir())
        rig.check(p.returncode == 1 and f"apt-get install {package}\n" in p.stderr and p.stderr.count("\n") == 1,
                  f"{script} without {program}: {p.stderr.strip()}")


def unpack(root, archive):
    """By the tar that is there."""
    os.chmod(root + "/usr/local", 0o2755) # as that host's administrator wants it
    names = subprocess.run(["tar", "-tJf", archive], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    rig.check(not [n for n in names if n.startswith("./etc")], "the archive has nothing in /etc, where an administrator's file may be")
    rig.check(any(n.endswith("/doc/perfwalk/perfwalk.conf") for n in names), "the default configuration is in its documentation")
    shutil.copy(archive, root + "/tmp/bundle.tar.xz")
    subprocess.run(inside(root, "/bin/busybox", "tar", "-xJf", "/tmp/bundle.tar.xz", "-C", "/"), check=True)
    rig.check(os.path.exists(os.path.join(root, "usr/local/lib/systemd/system-generators/perfwalk-generator")),
              "systemd finds the generator that chooses the unit's drop-in")
    mode = stat.S_IMODE(os.stat(os.path.join(root, "usr/local")).st_mode)
    rig.check(mode == 0o2755, f"a directory that was there keeps its mode: {mode:o}")


def check_parts(root, program, parts_list):
    """The list of parts tells of each file of the archive what it is, as the file itself and dpkg say."""
    with open(parts_list, encoding="utf-8") as f:
        document = json.load(f)
    wrong = spdx.problems(document)
    rig.check(not wrong, "the list of parts is SPDX 2.3" + "".join("\n    " + w for w in wrong[:20]))
    parts = {p["packageFileName"]: p for p in document["packages"]}
    with open(glob.glob(f"{root}/**/doc/perfwalk/libraries/LIST", recursive=True)[0], encoding="utf-8") as f:
        listed = {line.split()[0]: line.split() for line in f}
    rig.check(set(parts) == {"perfwalk", "libiberty.a", *listed}, f"it has {len(parts)} parts: the program and what it is made of")
    libraries = os.path.join(os.path.dirname(os.path.dirname(program)), "lib/perfwalk")
    for name, part in parts.items():
        if name == "libiberty.a":
            continue
        with open(root + (program if name == "perfwalk" else f"{libraries}/{name}"), "rb") as f:
            digest = hashlib.sha256(f.read()).hexdigest()
        if part["checksums"] != [{"algorithm": "SHA256", "checksumValue": digest}]:
            rig.fail(f"{name}: the file's sum is {digest}, not {part['checksums']}")
        if len(listed.get(name, [])) == 3 and part["versionInfo"] != listed[name][2]:
            rig.fail(f"{name}: its version is {listed[name][2]}, not {part['versionInfo']}")
    rig.check(True, "each with its sum, and the version of its package")


def inside(root, *argv):
    return ["unshare", "-m", "sh", "-c", ENTER, root, *argv]


def check_libraries(root, program):
    libraries = os.path.join(os.path.dirname(os.path.dirname(program)), "lib/perfwalk")
    # Ours, for other programs: it needs none of them, and comes with the program.
    names = set(os.listdir(root + libraries))
    rig.check("libperfwalk-alloc.so" in names, "the allocation library is there")
    names.remove("libperfwalk-alloc.so")
    for name in sorted(n for n in names if not n.startswith("ld-")):
        p = subprocess.run(inside(root, f"{libraries}/ld-linux-x86-64.so.2", "--list", f"{libraries}/{name}"),
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                           env={"LD_LIBRARY_PATH": libraries})
        if p.returncode or "not found" in p.stdout:
            rig.fail(f"{name} lacks a library:\n{p.stdout}")
    with open(glob.glob(f"{root}/**/doc/perfwalk/libraries/LIST", recursive=True)[0], encoding="utf-8") as f:
        listed = {line.split()[0] for line in f}
    rig.check(listed == names, f"{len(names)} libraries, each with all that it needs and in the list")


def start_musl(root):
    """A program of the host's own C library, as all are on Alpine; its name."""
    if not shutil.which("musl-gcc"):
        rig.leave_out("musl-gcc is not installed")
        return []
    name = f"musl-{os.getpid()}"
    subprocess.run(["musl-gcc", "-O2", "-fno-optimize-sibling-calls", "-o", f"{root}/bin/{name}", os.path.join(rig.WORKLOADS, "chain.c")],
                   check=True)
    rig.start(inside(root, f"/bin/{name}"))
    return [(name, ["...", "main", "chain_one", "chain_two"])]


def check_capture(root, program, programs):
    p = subprocess.run(inside(root, program, "record", "-a", "-d", "2", "-F", "199", "-o", "/tmp/o.folded"),
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120)
    rig.check(p.returncode == 0, f"record -a leaves with {p.returncode}" + ("" if p.returncode == 0 else f"\n{p.stdout}"))
    stacks = [s for s in rig.read_folded(os.path.join(root, "tmp/o.folded")) if s.user]
    for name, path in programs:
        mine = [s for s in stacks if s.comm == name and not is_of_musl(s.user)]
        n, right = rig.total(mine), rig.total(s for s in mine if rig.contains_path(s.user, path))
        rig.check(n >= 20 and right >= 0.9 * n, f"{name}: {right} of {n} stacks with names: {' '.join(path)}")


def add_authority(root, ca):
    """To those of the host, or as the only one."""
    bundle = root + "/etc/ssl/certs/ca-certificates.crt"
    if not os.path.exists(bundle):
        bundle = root + "/etc/pki/tls/certs/ca-bundle.crt"
        os.makedirs(os.path.dirname(bundle))
    with open(ca, encoding="ascii") as f, open(bundle, "a", encoding="ascii") as to:
        to.write(f.read())


def check_daemon(root, program):
    ca, contexts = certificates()
    add_authority(root, ca)
    server = Server(answer(200), tls=contexts["good"])
    port = rig.free_port()
    os.makedirs(os.path.join(root, "etc/perfwalk/perfwalk.conf.d"))
    rig.write(root + "/etc/perfwalk/perfwalk.conf.d/x.conf", "[profiler]\nreporter_interval = 1s\n"
              f"[export:x]\nendpoint = https://127.0.0.1:{server.port}\n[metrics]\nlisten = 127.0.0.1:{port}\n")
    log_path = rig.path(os.path.basename(root) + ".log")
    with open(log_path, "wb") as log:
        p = rig.start(inside(root, program, "run"), stdout=log, stderr=log)

    def sent():
        if p.poll() is not None:
            rig.fail(f"perfwalk run ended with {p.returncode}")
        return any(b"chain_two" in gzip.decompress(body) for _, _, body in list(server.requests))
    try:
        rig.wait_for("profiles with names arrive over https", sent, 20)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=120) as r:
            rig.check(r.status == 200 and b"perfwalk_" in r.read(), "/metrics answers")
        rig.kill(p.pid, signal.SIGTERM)
        rig.check(p.wait(10) == 0, "SIGTERM: status 0")
    except rig.Failure:
        with open(log_path, encoding="utf-8", errors="replace") as f:
            rig.say(f.read())
        raise


def files(root):
    return {os.path.join(d, f) for d, _, names in os.walk(root + "/usr") for f in names}


def check_removal(root, archive, before):
    """As docs/install.md says; here / is that root."""
    with open(os.path.join(rig.TOP, "docs/install.md"), encoding="utf-8") as f:
        text = f.read()
    commands = re.search(r"(?s)\n    tar -tJf \S+ (.*?)\n    systemctl", text)[1].replace(" /", f" {root}/")
    subprocess.run(["sh", "-ec", f"tar -tJf {archive} {commands}"], check=True)
    left = files(root) ^ before
    rig.check(not left, f"removed as the docs say, nothing of it is left, and all else is: {left or ''}")


def check_root(root, archive, parts_list, programs):
    before = files(root)
    unpack(root, archive)
    program = "/" + os.path.relpath(glob.glob(f"{root}/**/bin/perfwalk", recursive=True)[0], root)
    check_shipped(root + program, None, os.path.dirname(rig.perfwalk()), ["/usr/local/lib/perfwalk"])
    check_libraries(root, program)
    check_parts(root, program, parts_list)
    check_capture(root, program, [*programs, *start_musl(root)])
    check_daemon(root, program)
    check_removal(root, archive, before)


def main():
    rig.need_root()
    rig.need_programs("busybox", "openssl", "unshare", "chroot")
    if not os.path.exists(os.path.join(os.path.dirname(rig.perfwalk()), "Makefile")):
        rig.skip("the program under test is not in its build directory")
    check_tools()
    bundle = make_bundle()
    rig.start(["./chain"], cwd=rig.build_workloads("chain"))
    programs = [("chain", ["_start", "...", "main", "chain_one", "chain_two"])]
    check_root(make_root(), *bundle, programs)
    rig.apart(lambda: check_root(make_alpine(), *bundle, programs))


rig.run(main)
