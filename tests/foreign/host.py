# SPDX-License-Identifier: Apache-2.0
"""A Debian of another processor, whose programs qemu runs, for packages.py and native.py.

Nothing of this host changes: qemu is registered in a user namespace alone (Linux 6.7)."""
import glob
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))

import rig  # noqa: E402

# Debian's name, the release, and the number of the processor in an ELF file.
PROCESSORS = {"aarch64": ("arm64", "bookworm", 183), "riscv64": ("riscv64", "trixie", 243)}
# $1 what binfmt_misc is told, $2 the root, $3 a directory of this host that is /srv there, $4 "inside" or "outside"; the
# rest is the command. proc is a link in a root that debootstrap makes in a container.
ENTER = r"""
set -e
read -r _
mount -t proc proc /proc
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf %s "$1" >/proc/sys/fs/binfmt_misc/register
root=$2 srv=$3 where=$4
shift 4
[ ! -L "$root/proc" ] || { rm "$root/proc" && mkdir "$root/proc"; }
mkdir -p "$root/srv" "$root/dev"
mount --bind "$srv" "$root/srv"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
ip link set lo up
export PATH=/usr/sbin:/usr/bin:/sbin:/bin ROOT="$root" LC_ALL=C
[ "$where" = outside ] || exec chroot "$root" "$@"
exec "$@"
"""


def run(*argv, cwd=None, **more):
    p = subprocess.run(argv, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       errors="replace", check=False, env={**os.environ, **more})
    if p.returncode:
        rig.fail(f"{' '.join(argv)}: exit status {p.returncode}: {p.stdout[-2000:]}")
    return p.stdout


def static_qemu(processor):
    """This host's, or that of Debian's package, which need not be installed: a root has no libraries for another one."""
    name = f"qemu-{processor}-static"
    path = shutil.which(name) or rig.path(f"qemu/usr/bin/{name}")
    if not os.path.exists(path):
        run("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", "qemu-user-static", cwd=rig.workdir())
        run("dpkg-deb", "-x", glob.glob(rig.path("qemu-user-static_*.deb"))[0], rig.path("qemu"))
    return path


def debootstrap(processor):
    """Unpacked, and not configured: enough for a dpkg and a shell."""
    debian, suite, _ = PROCESSORS[processor]
    rig.need_programs("debootstrap")
    mirrors = run("apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages")
    mirror = [line.split()[1] for line in mirrors.splitlines() if line.startswith("Debian ")][0]
    root = rig.path(f"{suite}-{debian}")
    run("debootstrap", "--foreign", f"--arch={debian}", "--variant=minbase", suite, root, mirror, "/usr/share/debootstrap/scripts/sid")
    return root


class Host:
    """What runs in such a root sees a directory of the test as /srv, and no network but its own loopback."""

    def __init__(self, processor, root):
        self.root, self.srv = root, rig.path("srv")
        magic = bytes([0x7f, *b"ELF", 2, 1, 1, *[0] * 9, 2, 0, PROCESSORS[processor][2], 0])
        mask = bytes([*[0xff] * 7, 0, *[0xff] * 8, 0xfe, 0xff, 0xff, 0xff])

        def escaped(data):
            return "".join(f"\\x{b:02x}" for b in data)
        # What is run is opened by the kernel, keeps its name, and qemu is found before the root is entered.
        self.binfmt = f":qemu:M:0:{escaped(magic)}:{escaped(mask)}:{static_qemu(processor)}:OPF"

    @classmethod
    def copied(cls, processor, base, name):
        """In a copy of the root."""
        run("cp", "-a", base, rig.path(name))
        return cls(processor, rig.path(name))

    def try_run(self, *argv, where="inside", timeout=300):
        with subprocess.Popen(["unshare", "-U", "-m", "-n", "-p", "--fork", "--kill-child", "sh", "-c", ENTER, "sh", self.binfmt, self.root,
                               self.srv, where, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace") as p:
            own = os.readlink("/proc/self/ns/user")
            rig.wait_for("a user namespace", lambda: os.readlink(f"/proc/{p.pid}/ns/user") != own)
            for name in ("uid_map", "gid_map"):
                with open(f"/proc/{p.pid}/{name}", "w", encoding="ascii") as f:
                    f.write("0 0 65536")
            said = p.communicate("\n", timeout=timeout)[0]
        return p.returncode, said

    def run(self, *argv, **options):
        status, said = self.try_run(*argv, **options)
        if status:
            rig.fail(f"{' '.join(argv)}: exit status {status}: {said[-2000:]}")
        return said
