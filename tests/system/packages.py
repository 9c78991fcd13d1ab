# SPDX-License-Identifier: Apache-2.0
# Rooms: -
"""The packages of `make deb rpm`, each on a small machine that systemd has booted: installed, run, upgraded with an
edited configuration, removed and purged; with the drop-in that the kernel needs; what they hold, and their debugging
information. The machine has this host's files; python3 packages.py SUITE... (make check-packages) takes those of
Debian's and Ubuntu's releases, made by debootstrap, has lintian and rpmlint look at the packages, builds HEAD in two
places, and makes and runs the image on Debian's base."""
import glob
import hashlib
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import time
import traceback
import urllib.request

import image
import otelcol
import rig
from hardening import check_flags, check_shipped
from machine import Machine
from sink import Sink

CONFIG = "/etc/perfwalk/perfwalk.conf"
DROP_INS = "/run/systemd/generator/perfwalk.service.d"
PARANOID = "/proc/sys/kernel/perf_event_paranoid"
WANTED = "/etc/systemd/system/multi-user.target.wants/perfwalk.service"
GENERATOR = "/etc/systemd/system-generators/perfwalk-generator"
STORE = "/var/lib/perfwalk"
UBUNTU = "http://archive.ubuntu.com/ubuntu"
UBUNTU_SUITES = ("focal", "jammy", "noble")
# Debian has no package of Ubuntu's keys.
UBUNTU_KEYS = ("pool/main/u/ubuntu-keyring/ubuntu-keyring_2020.02.11.2_all.deb",
               "7564f3f76fbc9f165ecc30e2cf2695d38b284e234bffa0c6441ff37f8a7aebd7")
CHANGED = "# Another default.\n"
HELD = ["/usr/bin/perfwalk", "/usr/lib/perfwalk/libc.so.6", "/usr/lib/systemd/system/perfwalk.service", CONFIG,
        "/usr/lib/sysusers.d/perfwalk.conf", "/usr/lib/tmpfiles.d/perfwalk.conf", "/etc/perfwalk/perfwalk.conf.d",
        "/usr/share/perfwalk/perfwalk.service.d/old-kernel.conf", "/usr/share/perfwalk/perfwalk.service.d/paranoid.conf",
        "/usr/lib/systemd/system-generators/perfwalk-generator", "/usr/share/man/man1/perfwalk.1.gz",
        "/usr/share/man/man5/perfwalk.conf.5.gz", "/usr/share/bash-completion/completions/perfwalk",
        "/usr/share/zsh/site-functions/_perfwalk", "/usr/share/doc/perfwalk/copyright",
        "/usr/share/doc/perfwalk/libraries/LIST"]
PATH = ["main", "chain_one", "chain_two"]


class Deb:
    name = "deb"
    pattern = "perfwalk{}_{}-{}_*.deb"
    debug = "-dbgsym"
    hidden = []
    starts = True  # Debian's daemons run once they are installed
    kept, new = CONFIG, CONFIG + ".dpkg-dist"
    # The host's pages of manual are of no interest here.
    install = ["dpkg", "--no-triggers", "--force-confold", "-i"]
    remove = ["dpkg", "--no-triggers", "-r", "perfwalk"]
    purge = ["dpkg", "--no-triggers", "-P", "perfwalk"]
    listed = ["dpkg-deb", "--fsys-tarfile"]


class Rpm:
    name = "rpm"
    pattern = "perfwalk{}-{}-{}.*.rpm"
    debug = "-debuginfo"
    # As on RHEL 7: users and directories are then made by other programs.
    hidden = ["usr/bin/systemd-sysusers", "usr/bin/systemd-tmpfiles", "bin/systemd-sysusers", "bin/systemd-tmpfiles"]
    starts = False
    kept, new = CONFIG + ".rpmsave", CONFIG + ".rpmnew"
    # A Debian's rpm knows of no package that brings a shell.
    install = ["rpm", "--dbpath", "/var/lib/rpm", "-U", "--nodeps", "--oldpackage", "--replacepkgs"]
    remove = ["rpm", "--dbpath", "/var/lib/rpm", "-e", "perfwalk"]
    purge = None
    listed = ["rpm2cpio"]


def build_directory():
    return os.path.dirname(rig.perfwalk())


def run(*argv, cwd=None, **more):
    p = subprocess.run(argv, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       errors="replace", check=False, env={**os.environ, **more})
    if p.returncode:
        rig.fail(f"{' '.join(argv)}: exit status {p.returncode}: {p.stdout[-2000:]}")
    return p.stdout


def attempt(call, args):
    """In a process of its own: its exit status is the verdict."""
    try:
        begin = time.monotonic()
        call(*args)
        rig.say(f"{call.__name__} {' '.join(str(a) for a in args if isinstance(a, str))}: {time.monotonic() - begin:.0f} s")
    except rig.Failure as e:
        rig.say(f"FAILED: {e}")
        os._exit(1)
    except Exception:
        rig.say(traceback.format_exc())
        os._exit(1)
    os._exit(0)  # what the test has to end is its first process's


def beside(*calls):
    """Each with its arguments, all at the same time."""
    processes = [multiprocessing.get_context("fork").Process(target=attempt, args=(call, args)) for call, *args in calls]
    for p in processes:
        p.start()
    for p in processes:
        p.join()
    rig.check(all(p.exitcode == 0 for p in processes), f"{len(calls)} parts at the same time")


def variable(name):
    with open(os.path.join(build_directory(), "Makefile"), encoding="utf-8") as f:
        return re.search(rf"^{name} = (.*)$", f.read(), re.M)[1]


def found(family, release, debug=""):
    return glob.glob(os.path.join(build_directory(), family.pattern.format(debug, variable("VERSION"), release)))[0]


def release_of(date):
    """Of the packages of sources of that date, in seconds since 1970."""
    return run("make", "-s", "--eval=print: ; @echo $(PACKAGE_RELEASE)", "print", cwd=build_directory(), SOURCE_DATE_EPOCH=str(date)).strip()


def check_releases():
    """apt and dnf leave what they have alone if the other one is not newer."""
    dates = [1_000_000_000, 1_000_000_001, 1_800_000_000]
    for older, newer in zip(map(release_of, dates), map(release_of, dates[1:])):
        said = [run("sh", "-c", f"dpkg --compare-versions 0-{older} lt 0-{newer} && echo -1 || echo no"),
                run("rpm", "--eval", f'%{{lua: print(rpm.vercmp("{older}", "{newer}"))}}')]
        rig.check([x.strip() for x in said] == ["-1", "-1"], f"later sources make a later release, for dpkg and for rpm: {older}, {newer}")


def build(families):
    """Release 1, and 2 with another default configuration, out of the build directory's way."""
    names = [f.name for f in families]
    with rig.make_alone():
        run("make", "-s", *names, "PACKAGE_XZ=0", cwd=build_directory())
    with open(os.path.join(build_directory(), "packages/tree" + CONFIG), "a", encoding="utf-8") as f:
        f.write(CHANGED)
    for name in names:
        run("sh", os.path.join(rig.TOP, "etc/packages/build.sh"), name, "perfwalk", variable("VERSION"), "2",
            variable("host_cpu"), cwd=build_directory(), PACKAGE_XZ="0")
    packages = {}
    for family in families:
        for key, path in ((1, found(family, "1*")), (2, found(family, 2)), ("debug", found(family, "1*", family.debug))):
            directory = rig.path(f"{family.name}-{key}")
            os.mkdir(directory)
            packages[family.name, key] = shutil.move(path, directory)
        os.remove(found(family, 2, family.debug))
    return packages


def unpack(family, package, directory):
    os.makedirs(directory)
    with subprocess.Popen([*family.listed, package], stdout=subprocess.PIPE) as p:
        subprocess.run(["tar", "-xf", "-"] if family is Deb else ["busybox", "cpio", "-id"], cwd=directory, stdin=p.stdout,
                       stderr=subprocess.DEVNULL, check=True)
    return directory


def notes(path):
    return re.findall(r"Build ID: (\w+)", run("readelf", "-n", path))


def check_contents(family, packages):
    name = family.name
    root = unpack(family, packages[name, 1], rig.path(f"{name}-unpacked"))
    missing = [path for path in HELD if not os.path.exists(root + path)]
    rig.check(not missing, f"{name}: it holds all of {len(HELD)} that it has to" + "".join("\n    " + m for m in missing))
    debug = unpack(family, packages[name, "debug"], rig.path(f"{name}-debug-unpacked"))
    check_shipped(root + "/usr/bin/perfwalk", None, build_directory(), ["/usr/lib/perfwalk"])
    (build_id,) = notes(root + "/usr/bin/perfwalk")
    path = f"{debug}/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    rig.check(os.path.exists(path) and notes(path) == [build_id], f"{name}: debugging information of this program")
    rig.check("DW_AT_name" in run("readelf", "--debug-dump=info", "--dwarf-depth=2", path), f"{name}: DWARF is in it")
    check_flags(build_directory(), path)


def config(port):
    return f"""# Edited.
[profiler]
samples_per_second = 97
reporter_interval = 1s
[limits]
cpu = 100%
[export:sink]
endpoint = http://127.0.0.1:{port}
"""


def is_active(machine):
    return machine.try_run("systemctl", "is-active", "perfwalk")[0] == 0


def main_pid(machine):
    return int(machine.run("systemctl", "show", "--property=MainPID", "perfwalk").strip().partition("=")[2])


def needed_drop_ins(machine):
    """By this kernel, and by a systemd that does not know CAP_PERFMON."""
    kernel = [int(x) for x in re.findall(r"\d+", os.uname().release)[:2]]
    if int(re.search(r"systemd (\d+)", machine.run("systemctl", "--version"))[1]) < 247 or kernel < [5, 8]:
        return ["old-kernel.conf"]
    with open(PARANOID, encoding="ascii") as f:
        return ["paranoid.conf"] if int(f.read()) > 2 else []


def drop_ins(machine):
    """That the unit has, the boundary for its capabilities, and no file of the package in /etc."""
    rig.check(not there(machine, "/etc/systemd/system/perfwalk.service.d"), "the administrator's directory has nothing")
    said = machine.run("systemctl", "show", "--property=DropInPaths", "perfwalk").strip().partition("=")[2].split()
    bounds = machine.run("systemctl", "show", "--property=CapabilityBoundingSet", "perfwalk")
    rig.check(("cap_sys_admin" in bounds) == bool(said), f"CAP_SYS_ADMIN comes with a drop-in: {said}")
    return [os.path.relpath(path, DROP_INS) for path in said]


def there(machine, path):
    return machine.try_run("test", "-e", path, "-o", "-L", path)[0] == 0


def install(machine, family, release):
    machine.run(*family.install, f"/srv/{release}.{family.name}", timeout=300)


def check_installed(machine, family, what):
    install(machine, family, 1)
    rig.check(is_active(machine) == family.starts, f"{what}: installed, and it {'runs' if family.starts else 'does not run yet'}")
    rig.check(is_enabled(machine), f"{what}: it is to start at each boot")
    for user in ("perfwalk", "perfwalk-net"):
        machine.run("id", "-u", user)
    mode = machine.run("stat", "-c", "%a %u", STORE).strip()
    rig.check(mode == "755 0", f"{what}: both users, and {STORE}: {mode}")
    needed = needed_drop_ins(machine)
    rig.check(drop_ins(machine) == needed, f"{what}: for this kernel and this systemd it has {needed}")


# Until the burner has had a second of CPU time: on a busy host that takes longer.
CAPTURE = """
ticks() { cut -d' ' -f14 /proc/$burner/stat; }
perfwalk record -a -F 199 -o /srv/o.folded & capture=$!
read -r burner </srv/burner.pid && begin=$(ticks)
while [ $(($(ticks) - begin)) -lt $(getconf CLK_TCK) ]; do sleep 0.1; done
kill -INT $capture && wait $capture
"""


def check_capture(machine, what):
    machine.run("sh", "-c", CAPTURE, timeout=300)
    mine = [s for s in rig.parse_folded(machine.run("cat", "/srv/o.folded")) if s.comm == "burner" and s.user]
    n, right = rig.total(mine), rig.total(s for s in mine if rig.contains_path(s.user, PATH))
    rig.check(n > 0 and right >= 0.9 * n, f"{what}: a capture: {right} of {n} stacks with names")


def check_allocations(machine, what):
    """By the package's own library, which the program finds beside itself."""
    machine.run("perfwalk", "record", "--alloc", "-q", "-o", "/srv/a.pb.gz", "--", "awk", "BEGIN { for (i = 0; i < 300000; i++) a[i] = i }",
                timeout=120)
    said = machine.run("perfwalk", "report", "-e", "alloc_space", "/srv/a.pb.gz")
    found_there = re.search(r"^ *[\d.]+% +100.00% +awk ", said, re.M)
    rig.check(found_there, f"{what}: what a program allocates" + ("" if found_there else f"\n{said[:1500]}"))


def delivered(machine, sink, what):
    begin = sink.count()

    def come():
        if not is_active(machine):
            rig.fail(f"{what}: it does not run:\n" + machine.try_run("journalctl", "-u", "perfwalk", "-o", "cat")[1])
        return any(rig.contains_path(x[2], PATH) for view in sink.views()[begin:] for x in view.samples())
    rig.wait_for(f"{what}: stacks with names", come, 90)
    rig.check(True, f"{what}: the daemon sends stacks with names")


def check_upgrade(machine, family, what):
    """What ran runs on, as another process, with the edited configuration; what was stopped stays so."""
    before = main_pid(machine)
    edited = machine.run("cat", CONFIG)
    install(machine, family, 2)
    rig.wait_for(f"{what}: the upgrade restarts it", lambda: is_active(machine) and main_pid(machine) not in (0, before), 60)
    rig.check(machine.run("cat", CONFIG) == edited, f"{what}: an upgrade restarts it, and leaves the edited configuration")
    rig.check(machine.run("cat", family.new).endswith(CHANGED), f"{what}: the new default is beside it: {family.new}")
    machine.run("systemctl", "stop", "perfwalk")
    install(machine, family, 1)
    rig.check(not is_active(machine), f"{what}: what was stopped stays so")


def check_masked(machine, what):
    """What docs/install.md says for those who lower the setting."""
    directory = "/etc/systemd/system/perfwalk.service.d"
    machine.run("mkdir", directory)
    machine.run("ln", "-s", "/dev/null", f"{directory}/paranoid.conf")
    machine.run("systemctl", "daemon-reload")
    bounds = machine.run("systemctl", "show", "--property=CapabilityBoundingSet", "perfwalk")
    rig.check("cap_perfmon" in bounds and "cap_sys_admin" not in bounds, f"{what}: /dev/null takes the drop-in away")
    machine.run("rm", "-r", directory)


def check_kernels(machine, what):
    """Other kernels: what systemd finds at a boot, it finds at a reload; the package's scripts do not run."""
    needed = needed_drop_ins(machine)

    def has(wanted, kernel):
        machine.run("systemctl", "daemon-reload")
        found_now = drop_ins(machine)
        rig.check(found_now == wanted, f"{what}: {kernel}: the unit has {found_now}")
    for release in ("4.19.0-27-amd64", "5.4.0-42-generic"):
        machine.write("/usr/sbin/uname", f"#!/bin/sh\necho {release}\n")
        machine.run("chmod", "755", "/usr/sbin/uname")
        has(["old-kernel.conf"], release)
    for release in ("5.8.0-rc1", "6.1"):
        machine.write("/usr/sbin/uname", f"#!/bin/sh\necho {release}\n")
        has(needed, release)
    machine.run("rm", "/usr/sbin/uname")
    for value in (3, 4, 2, -1):
        machine.write("/srv/value", f"{value}\n")
        machine.run("mount", "--bind", "/srv/value", PARANOID)
        has(needed if needed == ["old-kernel.conf"] else ["paranoid.conf"] if value > 2 else [], f"perf_event_paranoid {value}")
        if value > 2 and not needed:
            check_masked(machine, what)
        machine.run("umount", PARANOID)
    has(needed, "this one again")


def check_split(machine, family, what):
    """A host from before /lib and /usr/lib became one: systemd looks for generators in /lib and /etc."""
    machine.run("sh", "-c", "mkdir -p /srv/lib/systemd/system-generators && for x in /usr/lib/*; do [ -e /srv/lib/${x##*/} ] || "
                "ln -s $x /srv/lib; done && ln -sfn /srv/lib /lib")
    install(machine, family, 1)
    rig.check(there(machine, GENERATOR), f"{what}: /lib is not /usr/lib: systemd finds the generator in /etc")


def is_enabled(machine):
    return machine.try_run("systemctl", "is-enabled", "perfwalk")[0] == 0


def spooled(machine):
    return [f for f in machine.try_run("ls", f"{STORE}/spool")[1].split() if f.endswith(".otlp")]


def fill_spool(machine, what):
    """With what nobody takes: the receiver has ended."""
    machine.run("systemctl", "restart", "perfwalk")
    rig.wait_for(f"{what}: a profile that nobody takes",
                 lambda: json.loads(machine.try_run("perfwalk", "ctl", "status", "--json")[1] or "{}").get("payloads"), 60)
    machine.run("systemctl", "stop", "perfwalk")
    rig.check(spooled(machine), f"{what}: it waits in the spool")


def check_removal(machine, family, what, port):
    fill_spool(machine, what)
    machine.run("systemctl", "start", "perfwalk")
    edited = machine.run("cat", CONFIG)
    machine.run(*family.remove, timeout=300)
    left = [path for path in ("/usr/bin/perfwalk", "/usr/lib/perfwalk", GENERATOR, DROP_INS) if there(machine, path)]
    rig.check(not is_active(machine) and not left, f"{what}: removed, and nothing runs" + "".join("\n    " + path for path in left))
    kept = spooled(machine)
    rig.check(machine.run("cat", family.kept) == edited and kept,
              f"{what}: the edited configuration is there, {family.kept}, and the spool with {len(kept)} profiles")
    install(machine, family, 1)
    if family.kept != CONFIG:
        machine.run("mv", family.kept, CONFIG)
    with Sink(port) as sink:
        machine.run("systemctl", "restart", "perfwalk")
        rig.wait_for(f"{what}: the next installation sends the spool", lambda: not set(kept) & set(spooled(machine)), 60)
        rig.check(sink.count() >= len(kept), f"{what}: installed again, it sends what the spool had")
    machine.run(*family.remove, timeout=300)
    if family.purge:
        machine.run(*family.purge, timeout=300)
        rig.check(not there(machine, CONFIG) and not there(machine, STORE), f"{what}: purged, and nothing is left")
    rig.check(not is_enabled(machine) and not there(machine, WANTED), f"{what}: and nothing of it starts at a boot")


def on_machine(family, packages, base, what):
    chain = os.path.join(rig.build_workloads("chain-static"), "chain-static")
    machine = Machine({"srv/burner": [chain], f"srv/1.{family.name}": [packages[family.name, 1]],
                       f"srv/2.{family.name}": [packages[family.name, 2]]}, base=base,
                      hidden=[*family.hidden, "usr/sbin/policy-rc.d", "etc/perfwalk", "var/lib/perfwalk", "var/cache/perfwalk",
                              "etc/systemd/system/perfwalk.service*"])
    machine.run("systemd-run", "--scope", "sh", "-c", "/srv/burner >/dev/null 2>&1 & echo $! >/srv/burner.pid")
    try:
        check_installed(machine, family, what)
        check_capture(machine, what)
        check_allocations(machine, what)
        with Sink() as sink:
            machine.write(CONFIG, config(sink.port))
            machine.run("systemctl", "restart", "perfwalk")
            delivered(machine, sink, what)
            check_upgrade(machine, family, what)
        check_kernels(machine, what)
        check_split(machine, family, what)
        check_removal(machine, family, what, sink.port)
    finally:
        machine.halt()


def ubuntu_keys():
    home = rig.path("ubuntu-keyring")
    keys = home + "/usr/share/keyrings/ubuntu-archive-keyring.gpg"
    if not os.path.exists(keys):
        path, wanted = UBUNTU_KEYS
        with urllib.request.urlopen(f"{UBUNTU}/{path}", timeout=60) as reply:
            package = reply.read()
        rig.check(hashlib.sha256(package).hexdigest() == wanted, "Ubuntu's keys are those that are known")
        with open(rig.path("ubuntu-keyring.deb"), "wb") as f:
            f.write(package)
        run("dpkg-deb", "-x", rig.path("ubuntu-keyring.deb"), home)
    return keys


def mirror_of(suite):
    """Its address, and debootstrap's options and script: Ubuntu's is its own, Debian's what this host's apt has."""
    if suite in UBUNTU_SUITES:
        return UBUNTU, [f"--keyring={ubuntu_keys()}", "--components=main,universe"], "gutsy"
    mirrors = run("apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages")
    return [line.split()[1] for line in mirrors.splitlines() if line.startswith("Debian ")][0], [], "sid"


def kept_root(suite):
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "perfwalk-tests", f"root-{suite}")


def debootstrap(suite):
    """Its files, with systemd and rpm. They stay for later runs: nothing is written there."""
    root = root_of(suite)
    new = f"{root}.{os.getpid()}"
    if os.path.exists(root):
        return
    rig.need_programs("debootstrap", "apt-get")
    mirror, options, script = mirror_of(suite)
    try:
        run("unshare", "-m", "debootstrap", "--variant=minbase", "--include=systemd,rpm", *options, suite, new,
            mirror, f"/usr/share/debootstrap/scripts/{script}")
        shutil.rmtree(new + "/var/cache/apt/archives", ignore_errors=True)
        os.rename(new, root)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def check_lint(packages):
    for family, tool in ((Deb, ["lintian", "--fail-on", "error,warning"]),
                         (Rpm, ["rpmlint", "-c", os.path.join(rig.TOP, "etc/packages/rpmlint.toml")])):
        said = run(*tool, packages[family.name, 1], packages[family.name, "debug"])
        rig.check(family is Deb or "0 errors, 0 warnings" in said, f"{tool[0]} finds nothing that has no name in its list")


def build_in(place, sources, names):
    """The packages of a clone of the sources there; without a cache, which has what others compiled."""
    clone = rig.path(place)
    run("git", "clone", "-q", sources, clone)
    run("autoreconf", "-fi", cwd=clone)
    options = run("./config.status", "--config", cwd=build_directory()).strip()
    os.makedirs(clone + "/out")
    run("sh", "-c", f"../configure {options} && make -j2 && make {' '.join(names)} PACKAGE_XZ=0", cwd=clone + "/out",
        CCACHE_DISABLE="1")
    return {os.path.basename(path): path for path in glob.glob(clone + "/out/*.deb") + glob.glob(clone + "/out/*.rpm")}


def check_same_bytes(families):
    names = [f.name for f in families]
    first = build_in("here", rig.TOP, names)
    second = build_in("another/place/of/the/sources", rig.path("here"), names)
    rig.check(len(first) == 2 * len(families) and first.keys() == second.keys(), f"two clones make {len(first)} packages each")
    for name, path in first.items():
        with open(path, "rb") as a, open(second[name], "rb") as b:
            rig.check(a.read() == b.read(), f"{name} has the same bytes from another place")


def check_signature():
    """By a key that lives no longer than the test."""
    home = rig.path("keys")
    os.mkdir(home, 0o700)
    key = ("--batch", "--passphrase", "", "--quick-generate-key", "test@perfwalk.invalid", "default", "sign", "1d")
    run("gpg", *key, GNUPGHOME=home)
    with rig.make_alone():
        run("make", "-s", "archives", "SIGN=test@perfwalk.invalid", "PACKAGE_XZ=0", cwd=build_directory(), GNUPGHOME=home, XZ_OPT="-0")
    run("gpg", "--verify", "SHA256SUMS.asc", "SHA256SUMS", cwd=build_directory(), GNUPGHOME=home)
    files = run("sha256sum", "-c", "SHA256SUMS", cwd=build_directory()).splitlines()
    rig.check(len(files) == 8, "make archives: 8 files with their sums, which are signed:" + "".join("\n    " + f for f in files))
    run("gpgconf", "--kill", "all", GNUPGHOME=home)


def check_files(families, packages):
    """All that needs no other host."""
    check_lint(packages)
    check_same_bytes(families)
    check_signature()


def make_base(root):
    """An image of a release's files, with what certificate authorities this host has: a registry and a mirror are not asked."""
    base, certificates = f"localhost/perfwalk-test-base:{os.getpid()}", "etc/ssl/certs/ca-certificates.crt"
    os.makedirs(os.path.join(rig.path("authorities"), os.path.dirname(certificates)))
    shutil.copy("/" + certificates, os.path.join(rig.path("authorities"), certificates))
    archive = rig.path("base.tar")
    run("tar", "-cf", archive, "-C", root, "--exclude=./dev/*", ".", "-C", rig.path("authorities"), "./" + certificates)
    run("podman", "import", "-q", archive, base)
    os.remove(archive)
    return base


def check_debian_image(package, root):
    """etc/image/Containerfile.debian with that base: `check` finds nothing missing, and the daemon does what `make image`'s
    does, by the same test."""
    rig.need_programs("podman", "runc")
    otelcol.binary()
    context = os.path.dirname(package)
    base, image.TAG = make_base(root), f"localhost/perfwalk-test-debian:{os.getpid()}"
    try:
        run("podman", "--runtime", "runc", "build", "-q", "--format=docker", "--network=none", f"--build-arg=BASE={base}", "-t", image.TAG,
            "-f", os.path.join(rig.TOP, "etc/image/Containerfile.debian"), context)
        options = image.documented_options()
        image.check_said(options, None, ["perfwalk record -a works here", "capabilities     all that help"])
        image.check_daemon(options)
    finally:
        image.remove()
        run("podman", "rmi", "-f", base)


def root_of(host):
    """host: a suite, or a directory with a root."""
    return host if host.startswith("/") else kept_root(host)


def on_hosts(families, packages, hosts):
    """Where an archive cannot be had, the others go on."""
    for host in hosts:
        try:
            debootstrap(host)
        except (rig.Failure, OSError) as e:
            rig.say(f"{host}: {e}")
            continue
        beside(*((on_machine, family, packages, root_of(host), f"{host} {family.name}") for family in families))


def on_releases(families, packages, hosts):
    beside((check_files, families, packages), (on_hosts, families, packages, hosts))
    for host in hosts:
        if not os.path.exists(root_of(host)):
            rig.leave_out(f"{host}: its files cannot be had")
    if "bookworm" in hosts and os.path.exists(root_of("bookworm")):
        rig.apart(check_debian_image, packages["deb", 1], root_of("bookworm"))


def main():
    rig.need_root()
    rig.need_programs("busybox")
    if not os.path.exists(os.path.join(build_directory(), "Makefile")):
        rig.skip("the program under test is not in its build directory")
    hosts = sys.argv[1:]
    if hosts:
        rig.need_programs("dpkg-deb", "rpmbuild", "lintian", "rpmlint", "gpg")
    families = []
    for family, tool in ((Deb, "dpkg-deb"), (Rpm, "rpmbuild")):
        if shutil.which(tool):
            families.append(family)
        else:
            rig.leave_out(f"{tool} is not installed")
    packages = build(families)
    for family in families:
        check_contents(family, packages)
    if len(families) == 2:
        check_releases()
    if hosts:
        on_releases(families, packages, hosts)
        return
    for family in families:
        on_machine(family, packages, "/", family.name)


rig.run(main)
