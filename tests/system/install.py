# SPDX-License-Identifier: Apache-2.0
# Rooms: -
"""`make install` puts everything where it belongs and `make uninstall` takes it away again; the
archive that `make dist` makes holds all it takes to configure and build. This build is clang's:
it warns of nothing in the program, nor in the unit tests. Needs no root."""
import glob
import os
import re
import shutil
import subprocess

import rig

INSTALLED = ["bin/perfwalk", "share/man/man1/perfwalk.1", "share/man/man1/perfwalk-record.1", "share/man/man5/perfwalk.conf.5",
             "lib/systemd/system/perfwalk.service",
             "lib/systemd/system-generators/perfwalk-generator", "share/perfwalk/perfwalk.service.d/old-kernel.conf",
             "share/perfwalk/perfwalk.service.d/paranoid.conf", "share/perfwalk/perfwalk.service.d/rootless.conf",
             "share/perfwalk/apparmor/perfwalk", "share/perfwalk/selinux/perfwalk.te", "share/perfwalk/selinux/perfwalk.fc"]


def make(*args, cwd, timeout=1200):
    p = subprocess.run(["make", *args], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, errors="replace", check=False, timeout=timeout, stdin=subprocess.DEVNULL)
    rig.check(p.returncode == 0, f"make {' '.join(args)}"
              + ("" if p.returncode == 0 else "\n" + p.stdout[-3000:]))


def variable(build, name):
    """What a directory of the Makefile is."""
    with open(os.path.join(build, "Makefile"), encoding="utf-8") as f:
        values = dict(re.findall(r"^(\w+) = (.*)$", f.read(), re.M))
    return re.sub(r"\$\{(\w+)\}", lambda m: values[m[1]], values[name])


def files_below(directory):
    return sorted(os.path.relpath(os.path.join(d, f), directory)
                  for d, _, names in os.walk(directory) for f in names)


def check_installed(build, root, config):
    prefix = variable(build, "prefix")
    make("install", f"DESTDIR={root}", cwd=build)
    installed = files_below(root)
    rig.say("installed: " + " ".join(installed))
    below = prefix.lstrip("/")
    for name in INSTALLED:
        rig.check(os.path.join(below, name) in installed, f"{name} is installed")
    rig.check(config in installed, f"the default configuration is installed: {config}")
    rig.check(any("sysusers.d" in n for n in installed), "the user perfwalk is declared")
    program = os.path.join(root, below, "bin", "perfwalk")
    p = subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True, check=False)
    rig.check(p.returncode == 0 and "perfwalk" in p.stdout, f"it runs: {p.stdout.strip()}")
    with open(os.path.join(root, below, "lib/systemd/system/perfwalk.service"), encoding="utf-8") as f:
        unit = f.read()
    rig.check(f"{prefix}/bin/perfwalk run" in unit and "@" not in re.sub("@(system-service|resources)", "", unit),
              "the unit starts the installed program")
    for d in ("lib", "cache"):
        d = f"{variable(build, 'localstatedir')}/{d}/perfwalk"
        rig.check(os.path.isdir(root + d), f"{d} is there")
    service_manager(root, f"{prefix}/bin/perfwalk", unit)


def quiet(what, *argv):
    p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    rig.check(p.returncode == 0 and not p.stdout.strip(), what + ("" if p.returncode == 0 else ": ") + p.stdout)


def service_manager(root, program, unit):
    """systemd's own opinion; it looks for the program on this host."""
    if not shutil.which("systemd-analyze") or not shutil.which("systemd-sysusers"):
        rig.leave_out("systemd-analyze and systemd-sysusers are not installed")
        return
    quiet("systemd finds nothing wrong with the unit", "systemd-analyze", "verify", "--man=no",
          rig.write("perfwalk.service", unit.replace(program, "/bin/true")))
    p = subprocess.run(["systemd-sysusers", "--dry-run", f"--root={root}"], stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, check=False)
    rig.check(p.returncode == 0 and "user 'perfwalk'" in p.stdout, f"systemd-sysusers makes the user: {p.stdout.strip()}")


def check_uninstall(build, root, config):
    """Nothing is left but a configuration that was edited, which a second installation does not touch either."""
    make("uninstall", f"DESTDIR={root}", cwd=build)
    left = files_below(root)
    rig.check(not left, f"make uninstall leaves nothing behind: {left}")
    make("install", f"DESTDIR={root}", cwd=build)
    mine = "[profiler]\nsamples_per_second = 11\n"
    rig.write(f"root/{config}", mine)
    make("install", f"DESTDIR={root}", cwd=build)
    make("uninstall", f"DESTDIR={root}", cwd=build)
    left = files_below(root)
    rig.check(left == [config], f"what was edited is left, and nothing else: {left}")
    with open(os.path.join(root, config), encoding="utf-8") as f:
        rig.check(f.read() == mine, "it is as it was")


def tracked():
    """What a clone has, but for what only a clone needs; of an archive what there is."""
    p = subprocess.run(["git", "-C", rig.TOP, "ls-files"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                       check=False)
    return [name for name in p.stdout.splitlines() if not re.search(r"(^|/)\.", name)]


def check_archive(build):
    make("dist", "XZ_OPT=-0", cwd=build)
    archive = max(glob.glob(os.path.join(build, "perfwalk-[0-9]*.tar.*")), key=os.path.getmtime)
    subprocess.run(["tar", "-C", rig.workdir(), "-xf", archive], check=True)
    tree = rig.path(os.path.basename(archive).split(".tar.")[0])
    # clang warns before it optimizes, whatever -O says.
    compiler = ["CC=clang", "--enable-werror"] if shutil.which("clang") else []
    if not compiler:
        rig.leave_out("clang is not installed")
    p = subprocess.run(["./configure", "CFLAGS=-O0", *compiler], cwd=tree, stdout=subprocess.PIPE, check=False,
                       stderr=subprocess.STDOUT, text=True)
    rig.check(p.returncode == 0, f"{os.path.basename(archive)}: configure" + ("" if p.returncode == 0 else p.stdout[-2000:]))
    make("-j2", cwd=tree)
    if compiler:  # reads them, and makes nothing of them
        make("-j2", "check", "TESTS=", "CC=clang -fsyntax-only", "CCLD=:", "AR=:", "RANLIB=:", cwd=tree)
    p = subprocess.run([os.path.join(tree, "perfwalk"), "--version"], stdout=subprocess.PIPE, text=True,
                       check=False)
    rig.check(p.returncode == 0, f"what is built from it runs: {p.stdout.strip()}")
    names = files_below(tree)
    if not tracked():
        rig.leave_out("this is no clone, which would say what an archive holds")
    lacking = sorted(set(tracked()) - set(names))
    rig.check(not lacking, "the archive holds all that the sources do" + "".join(f"\n    but {name}" for name in lacking))


def main():
    build = os.path.dirname(rig.perfwalk())
    if not os.path.exists(os.path.join(build, "Makefile")):
        rig.skip("the program under test is not in its build directory")
    config = os.path.relpath(variable(build, "sysconfdir"), "/") + "/perfwalk/perfwalk.conf"
    root = rig.path("root")
    check_installed(build, root, config)
    check_uninstall(build, root, config)
    check_archive(build)


rig.run(main)
