# SPDX-License-Identifier: Apache-2.0
"""packages.py aarch64|riscv64 [ROOT]: the packages and the bundle for another processor, built here (build.sh), each
installed in a Debian of that processor, whose programs qemu runs: by its own dpkg, by rpm, by tar. There perfwalk tells
its version, what it can do, reads and writes profiles, finds all its libraries, and goes again. The image is started by
podman. Nothing can be sampled under qemu-user (make check-aarch64-kernel does that). ROOT has what debootstrap --foreign
makes, which is left as it is."""
import glob
import os
import re
import shutil
import subprocess
import sys

from host import Host, debootstrap, run  # which finds the others

import rig
from containers import Containers

HERE = os.path.dirname(os.path.abspath(__file__))
# $0 the archive; the rest are the options of podman run. Its store is gone with the namespace.
IN_CONTAINER = r"""
set -e
mount -t tmpfs none /run
mount -t tmpfs none /var/lib/containers
podman="podman --storage-driver vfs --cgroup-manager cgroupfs"
zcat "$0" | $podman load -q >/dev/null
exec $podman --runtime runc run --rm --no-healthcheck --read-only --tmpfs=/run "$@"
"""
LARGEST_IMAGE_BYTES = 15_000_000
STACKS = "chain;main;chain_one;chain_two 41\nchain;main;other 7\nother;[unknown] 1\n"


def check_program(host, processor, version, what):
    said = host.run("perfwalk", "--version").strip()
    rig.check(said == f"perfwalk {version}", f"{what}: {said}")
    status, said = host.try_run("perfwalk", "check")
    rig.check(status == 4 and f", {processor}, " in said and "What is missing comes with:" in said,
              f"{what}: check says that it cannot sample here, and what is missing" + ("" if status == 4 else said))
    host.run("sh", "-c", "cd /srv && perfwalk convert in.folded -o out.pb.gz && perfwalk convert out.pb.gz -o out.folded")
    with open(os.path.join(host.srv, "out.folded"), encoding="utf-8") as f:
        lines = sorted(f.read().splitlines())
    rig.check(lines == sorted(STACKS.splitlines()), f"{what}: folded stacks are the same after pprof and back" + f": {lines}")
    said = host.run("perfwalk", "report", "/srv/out.pb.gz")
    rig.check("chain_two" in said and "49" in said, f"{what}: report has the names" + ("" if "chain_two" in said else said))


def check_libraries(host, what):
    """Each has what it needs beside it: those too that are loaded at run time alone."""
    names = sorted(os.path.basename(p) for p in glob.glob(host.root + "/usr/lib/perfwalk/*.so*"))
    (loader,) = [n for n in names if n.startswith("ld-linux")]
    at = "/usr/lib/perfwalk"
    said = host.run("sh", "-c", "cd $0 && for n in *.so*; do case $n in ld-*|libperfwalk*) ;; *) ./$1 --library-path $0 --list ./$n || exit 1;; "
                    "esac; done", at, loader)
    wrong = [line for line in said.splitlines() if "=>" in line and loader not in line and f"=> {at}/" not in line]
    rig.check({"libcurl.so.4", "libmicrohttpd.so.12", "libc.so.6"} <= set(names) and not wrong,
              f"{what}: {len(names)} libraries, each with all that it needs" + "".join("\n    " + w for w in wrong))


def there(host, path):
    return os.path.lexists(host.root + path)


def deb(processor, base, version, package):
    host = Host.copied(processor, base, "deb")
    shutil.copy(package, os.path.join(host.srv, "1.deb"))
    host.run("dpkg", "-i", "/srv/1.deb")
    check_program(host, processor, version, "deb")
    check_libraries(host, "deb")
    host.run("dpkg", "-P", "perfwalk")
    rig.check(not there(host, "/usr/bin/perfwalk") and not there(host, "/usr/lib/perfwalk") and not there(host, "/etc/perfwalk"),
              "deb: purged, and nothing is left")


def rpm(processor, base, version, package):
    """By this host's rpm, which runs the package's scripts in the root."""
    host = Host.copied(processor, base, "rpm")
    shutil.copy(package, os.path.join(host.srv, "1.rpm"))
    options = ("rpm", "--root", host.root, "--dbpath", "/var/lib/rpm", "--nodeps")
    host.run(*options, "--ignorearch", "-U", os.path.join(host.srv, "1.rpm"), where="outside")
    check_program(host, processor, version, "rpm")
    host.run(*options, "-e", "perfwalk", where="outside")
    rig.check(not there(host, "/usr/bin/perfwalk") and not there(host, "/usr/lib/perfwalk"), "rpm: removed, and nothing is left")


def bundle(processor, base, version, archive):
    host = Host.copied(processor, base, "bundle")
    run("tar", "-xJf", archive, "-C", host.root)
    check_program(host, processor, version, "bundle")
    check_libraries(host, "bundle")


def image(processor, base, version, archive):
    """By this host's podman and runc."""
    host = Host.copied(processor, base, "image")
    size = os.path.getsize(archive)
    rig.check(size < LARGEST_IMAGE_BYTES, f"image: {size / 1e6:.1f} MB, compressed")

    def start(*argv):
        return host.try_run("sh", "-c", IN_CONTAINER, archive, *Containers(None).options(), tag(), *argv, where="outside")
    status, said = start("--version")
    rig.check(status == 0 and said.endswith(f"perfwalk {version}\n"), f"image: it starts: {said.splitlines()[-1]}")
    status, said = start("check")
    rig.check(status == 4 and f", {processor}, " in said, "image: check says that it cannot sample here" + ("" if status == 4 else said))


def tag():
    return f"localhost/perfwalk-test-foreign:{os.getpid()}"


def main():
    rig.need_root()
    rig.need_programs("unshare", "dpkg-deb", "rpmbuild", "rpm", "podman", "runc")
    processor = sys.argv[1]
    p = subprocess.run(["sh", os.path.join(HERE, "build.sh"), processor, "deb", "rpm", "bundle", "image", f"IMAGE={tag()}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True, check=False, env={**os.environ, "PACKAGE_XZ": "0", "XZ_OPT": "-0"})
    if p.returncode == 77:
        rig.skip(p.stderr.strip())
    subprocess.run(["podman", "rmi", "-f", tag()], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    rig.check(p.returncode == 0, f"built for {processor}" + ("" if p.returncode == 0 else p.stderr))
    out = os.path.dirname(p.stdout.strip())
    base = sys.argv[2] if len(sys.argv) > 2 else debootstrap(processor)
    os.mkdir(rig.path("srv"))
    rig.write("srv/in.folded", STACKS)
    for kind, pattern in ((deb, "perfwalk_*.deb"), (rpm, f"perfwalk-[0-9]*.{processor}.rpm"), (bundle, "perfwalk-bundle-*.tar.xz"),
                          (image, "perfwalk-image-*.tar.gz")):
        path = max(glob.glob(os.path.join(out, pattern)), key=os.path.getmtime)
        version = re.search(r"[-_](\d+\.\d+\.\d+)-", os.path.basename(path))[1]
        kind(processor, base, version, path)


rig.run(main)
