# SPDX-License-Identifier: Apache-2.0
# Rooms: symbolize src/symbolizer src/opener
"""Separate debug files of a program that runs in another root: found there by build id and by
debuglink, and nothing in that root can delay or mislead the search for them."""
import os
import re
import shutil
import subprocess

import rig

SOURCE = os.path.join(rig.WORKLOADS, "outer.c")


class Root:
    """A root directory with the stripped program in it, mounted for itself."""

    def __init__(self, name, *flags):
        self.path = rig.path(name)
        self.program = os.path.join(self.path, "bin", name)
        os.makedirs(os.path.dirname(self.program))
        subprocess.run(["gcc", "-g", "-O2", "-static", *flags, "-o", self.program, SOURCE],
                       check=True)
        self.full = rig.path(f"{name}.full")
        shutil.copy(self.program, self.full)
        subprocess.run(["strip", self.program], check=True)

    def put(self, *names):
        """Makes the debug file in the root."""
        path = os.path.join(self.path, *names)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        subprocess.run(["objcopy", "--only-keep-debug", self.full, path], check=True)
        return path

    def by_id(self):
        p = subprocess.run(["readelf", "-n", self.full], stdout=subprocess.PIPE, text=True, check=True)
        build_id = re.search(r"Build ID: ([0-9a-f]+)", p.stdout).group(1)
        return ["usr/lib/debug/.build-id", build_id[:2], build_id[2:] + ".debug"]

    def named(self, what):
        """Samples of a run in this root, and those that hold main > outer > inner."""
        script = f"mount --bind {self.path} {self.path} && exec chroot {self.path} /bin/{os.path.basename(self.program)}"
        p = rig.start(["unshare", "--mount", "sh", "-c", script])
        name = os.path.basename(self.program)
        rig.wait_for("it runs", lambda: rig.comm_of(p.pid) == name[:15])
        folded = rig.path("root.folded")
        r = rig.record("-p", p.pid, "-F", 199, "-d", "1.2", "-o", folded)
        rig.end(p)
        rig.check(r.status == 0, what + ("" if r.status == 0 else r.text()))
        stacks = rig.read_folded(folded)
        return sum(s.n for s in stacks if rig.contains_path(s.user, ["main", "outer", "inner_[i]"])), rig.total(stacks)

    def check_named(self, what):
        named, total = self.named(what)
        rig.check(total > 10 and named > 0.8 * total, f"{what}: {named} of {total} samples have names")

    def check_unnamed(self, what):
        named, total = self.named(what)
        rig.check(total > 10 and named == 0, f"{what}: {named} of {total} samples have names")


def main():
    rig.need_root()
    rig.need_programs("gcc", "objcopy", "unshare", "chroot")
    root = Root("withid", "-Wl,--build-id=sha1")
    root.check_unnamed("without a debug file")
    path = root.put(*root.by_id())
    root.check_named("by build id in its root")
    os.unlink(path)
    os.mkfifo(path)
    root.check_unnamed("a FIFO in its place")
    os.unlink(path)
    # Outside of the root there is such a file; the link does not lead there.
    os.symlink(root.full, path)
    root.check_unnamed("a link out of the root")
    os.unlink(path)
    shutil.copy("/bin/true", path)
    root.check_unnamed("another file in its place")

    root = Root("linked", "-Wl,--build-id=none")
    for what, names in (("next to the program", ["bin", "linked.debug"]),
                        ("in .debug next to the program", ["bin/.debug", "linked.debug"]),
                        ("below the debug directory", ["usr/lib/debug/bin", "linked.debug"])):
        debug = root.put(*names)
        subprocess.run(["objcopy", "--remove-section=.gnu_debuglink", root.program], check=True)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", root.program], check=True)
        root.check_named(what)
        os.unlink(debug)


rig.run(main)
