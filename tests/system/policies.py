# SPDX-License-Identifier: Apache-2.0
# Rooms: -
"""The container's filter of system calls against perfwalk's own. The AppArmor profile and the SELinux module, by their
compilers: both are taken, with the capabilities of the unit, and the module breaks no rule of Debian's base policy. That
their rules suffice nobody can see on a kernel without them. Needs no root."""
import glob
import json
import os
import re
import subprocess

import rig

APPARMOR = os.path.join(rig.TOP, "etc/apparmor/perfwalk")
# Of the broker and of the start of a child, which have no filter of their own.
NEEDED = {"perf_event_open", "open_by_handle_at", "process_vm_readv", "seccomp", "landlock_restrict_self", "setresuid", "capset", "execveat",
          "syslog"}
HARMFUL = {"mount", "umount2", "move_mount", "pivot_root", "chroot", "setns", "ptrace", "bpf", "init_module", "finit_module", "delete_module",
           "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "settimeofday", "clock_settime", "sethostname", "iopl", "ioperm",
           "io_uring_setup", "userfaultfd", "keyctl", "process_vm_writev"}
SELINUX = os.path.join(rig.TOP, "etc/selinux")


def run(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd=rig.workdir())


def read(name):
    with open(name, encoding="utf-8") as f:
        return f.read()


def capabilities():
    return set(re.findall(r"CAP_(\w+)", re.search(r"(?m)^CapabilityBoundingSet=.*$", read(os.path.join(rig.TOP, "etc/perfwalk.service.in")))[0]))


def check_apparmor():
    rig.need_programs("apparmor_parser")
    text = read(APPARMOR)
    for name, body, wanted in (("perfwalk", text, 0), ("wrong", text.replace("capability kill", "capability kil"), 1)):
        p = run("apparmor_parser", "-Q", "-K", rig.write(name, body))
        rig.check(p.returncode == wanted, f"AppArmor's parser {'refuses a mistake' if wanted else 'takes the profile'}"
                  + (f": {p.stdout}" if p.returncode != wanted else ""))
    have = {c.upper() for c in re.findall(r"(?m)^ *capability (\w+),", text)}
    rig.check(have == capabilities() | {"SYS_ADMIN"}, "with the unit's capabilities, and that of old kernels")


def make_module(name, text):
    """The package of a module, in a directory of its own, for the compiler wants the file to have the module's name."""
    os.mkdir(rig.path(name))
    rig.write(f"{name}/perfwalk.te", text)
    at = rig.path(name, "perfwalk")
    for argv in (("checkmodule", "-M", "-m", "-o", f"{at}.mod", f"{at}.te"),
                 ("semodule_package", "-o", f"{at}.pp", "-m", f"{at}.mod", "-f", os.path.join(SELINUX, "perfwalk.fc"))):
        p = run(*argv)
        if p.returncode:
            return None, p.stdout
    return f"{at}.pp", ""


def link(base, package):
    """With the base policy, whose rules are checked."""
    p = run("semodule_link", "-o", rig.path("linked.pp"), base, package)
    if p.returncode == 0:
        p = run("semodule_expand", rig.path("linked.pp"), rig.path("policy"))
    return p.returncode, p.stdout


# What the daemon does, by what SELinux asks for it: the type of what it is done to, class, permission.
DOES = {
    "starts, with its loader and libraries": [("ld_so_t", "file", "execute"), ("lib_t", "file", "execute")],
    "exports to any port": [("http_port_t", "tcp_socket", "name_connect"), ("unreserved_port_t", "tcp_socket", "name_connect"),
                            ("port_t", "tcp_socket", "name_connect")],
    "serves [metrics]": [("unreserved_port_t", "tcp_socket", "name_bind"), ("node_t", "tcp_socket", "node_bind")],
    "tells systemd that it is ready": [("init_t", "unix_dgram_socket", "sendto"), ("init_runtime_t", "sock_file", "write")],
    "reads tracepoints": [("tracefs_t", "dir", "search"), ("tracefs_t", "file", "read")],
    "samples": [("perfwalk_t", "perf_event", "open"), ("perfwalk_t", "perf_event", "cpu"), ("perfwalk_t", "capability2", "perfmon")],
}


def may(policy, target, kind, permission):
    p = run("sesearch", "-A", "-s", "perfwalk_t", "-t", target, "-c", kind, "-p", permission, policy)
    if p.returncode:
        rig.fail(f"sesearch: {p.stdout}")
    return bool(p.stdout.strip())


def check_linked(policy):
    """The domain is permissive: on a host nobody would notice what its rules lack."""
    rig.need_programs("sesearch")
    for what, rules in DOES.items():
        missing = [r for r in rules if not may(policy, *r)]
        rig.check(not missing, f"by the rules of both the daemon {what}" + (f", but {missing}" if missing else ""))
    rig.check(not may(policy, "shadow_t", "file", "read"), "and reads no passwords")


def check_selinux():
    rig.need_programs("checkmodule", "semodule_package", "semodule_link", "semodule_expand")
    text = read(os.path.join(SELINUX, "perfwalk.te"))
    package, said = make_module("right", text)
    rig.check(package, f"SELinux's compiler takes the module {said}")
    wrong, said = make_module("mistake", text.replace("allow perfwalk_t self : process", "allow perfwalk_t selv : process"))
    rig.check(not wrong and "selv" in said, "and refuses a mistake")
    have = {c.upper() for line in re.findall(r"allow perfwalk_t self : capability2? \{(.*)\}", text) for c in line.split()}
    rig.check(have == capabilities() | {"SYS_ADMIN"}, "with the unit's capabilities, and that of old kernels")
    p = subprocess.run(["sh", os.path.join(rig.HERE, "fetch-selinux.sh")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if p.returncode == 77:
        rig.skip(p.stderr.strip())
    rig.check(p.returncode == 0, "Debian's base policy is there" + ("" if p.returncode == 0 else p.stderr))
    status, said = link(p.stdout.strip(), package)
    rig.check(status == 0, "the module links with it, and breaks none of its rules" + ("" if status == 0 else said[-500:]))
    check_linked(rig.path("policy"))
    package, _ = make_module("shadow", text.replace("{ file_type -shadow_t }", "file_type"))
    status, said = link(p.stdout.strip(), package)
    rig.check(status != 0 and "neverallow violated" in said, "where one that reads the passwords does")


def check_seccomp():
    """The container's filter lets through what perfwalk's own filters do, and nothing that changes the host."""
    profile = json.loads(read(os.path.join(rig.TOP, "etc/image/seccomp.json")))
    (rule,) = profile["syscalls"]
    allowed = set(rule["names"])
    processors = {re.search(r"arch-(\w+)", p)[1] for p in glob.glob(os.path.join(rig.TOP, "unwind/arch-*.c"))}
    known = {a["architecture"] for a in profile["archMap"]}
    rig.check(len(processors) > 2 and known == {f"SCMP_ARCH_{p.upper()}" for p in processors},
              f"the container's filter knows the processors that perfwalk runs on: {sorted(known)}")
    text = re.sub(r"(?s)#define (?:CALL|FAIL).*?\n\n", "", read(os.path.join(rig.TOP, "src/process/sandbox-calls.c")))
    needed = set(re.findall(r"\b(?:CALL|BITS|ONLY)\([A-Z |]+, *(\w+)", text)) | NEEDED
    rig.check(len(needed) > 60 and needed <= allowed, f"the container's filter allows the {len(needed)} calls of all processes"
              + (f", but {needed - allowed}" if needed - allowed else ""))
    rig.check(not allowed & HARMFUL, "and none that change the host" + (f", but {allowed & HARMFUL}" if allowed & HARMFUL else ""))


def main():
    check_seccomp()
    rig.apart(check_apparmor)
    rig.apart(check_selinux)


rig.run(main)
