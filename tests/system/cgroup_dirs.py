# SPDX-License-Identifier: Apache-2.0
"""Control groups by the names that runtimes give them, made and removed by the tests."""
import contextlib
import os
import subprocess
import time

import inside
import rig


def digits(c):
    return (c * 64)[:64]


def mount_point():
    with open("/proc/mounts", encoding="utf-8") as f:
        mounts = [line.split()[1] for line in f if line.split()[2] == "cgroup2"]
    if not mounts:
        rig.skip("no cgroup v2 hierarchy is mounted")
    return mounts[0]


class Cgroups:
    """The directories, made and removed."""

    def __init__(self, top):
        self.top = top
        self.made = []

    def make(self, name):
        path = self.top
        for part in name.split("/"):
            path = os.path.join(path, part)
            if not os.path.isdir(path):
                os.mkdir(path)
                self.made.append(path)
        return path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for path in reversed(self.made):
            rig.wait_for(f"{path} is empty", lambda p=path: self.remove(p))

    @staticmethod
    def remove(path):
        try:
            os.rmdir(path)
            return True
        except OSError:
            return False


def start_in(cgroup, argv, **options):
    """Starts a program that is in the cgroup before it execs, as runtimes do."""
    return rig.start(["sh", "-c", f'echo $$ > {cgroup}/cgroup.procs && exec "$@"', "sh", *argv],
                     stdout=subprocess.DEVNULL, **options)


class Freezer:
    """A control group whose processes can be frozen, of either version; skips the part of the test without one."""

    def __init__(self, name):
        for top, self.file, self.words, self.state in (
                (mount_point(), "cgroup.freeze", ("1", "0"), ("cgroup.events", "frozen 1")),
                ("/sys/fs/cgroup/freezer", "freezer.state", ("FROZEN", "THAWED"), ("freezer.state", "FROZEN"))):
            self.top, self.path = top, os.path.join(top, name)
            try:
                os.mkdir(self.path)
            except OSError:
                continue
            if os.path.exists(os.path.join(self.path, self.file)):
                return
            os.rmdir(self.path)
        rig.skip("no control group can be frozen here")

    def take(self, pids):
        for pid in pids:
            MemoryLimit.write(self.path, "cgroup.procs", pid)

    def freeze(self):
        """All are frozen when it returns."""
        name, frozen = self.state
        MemoryLimit.write(self.path, self.file, self.words[0])

        def is_frozen():
            with open(os.path.join(self.path, name), encoding="ascii") as f:
                return frozen in f.read()
        rig.wait_for("all is frozen", is_frozen)

    def thaw(self):
        MemoryLimit.write(self.path, self.file, self.words[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.thaw()
        with open(f"{self.path}/cgroup.procs", encoding="ascii") as f:
            for pid in f.read().split():
                with contextlib.suppress(OSError):
                    MemoryLimit.write(self.top, "cgroup.procs", pid)
        rig.wait_for(f"{self.path} is empty", lambda: Cgroups.remove(self.path))


def memory_v1():
    """Where version 1's hierarchy of memory is mounted; a machine that was booted for the test has it only if we mount it."""
    usual, own = "/sys/fs/cgroup/memory", "/run/perfwalk-memory"
    if os.path.isdir(usual):
        return usual
    if not inside.is_inside():
        return None
    os.makedirs(own, exist_ok=True)
    mounted = os.path.ismount(own) or subprocess.run(["mount", "-t", "cgroup", "-o", "memory", "none", own], check=False,
                                                     stderr=subprocess.DEVNULL).returncode == 0
    return own if mounted else None


class MemoryLimit:
    """A memory cgroup of that many bytes, of either version. None of it: why is in self.missing."""

    def __init__(self, name, limit):
        self.path, self.missing = None, None
        v1 = memory_v1()
        top = v1 or "/sys/fs/cgroup"
        try:
            if not v1:
                with open(f"{top}/cgroup.subtree_control", "w", encoding="ascii") as f:
                    f.write("+memory")
            os.mkdir(f"{top}/{name}")
            self.top, self.path = top, f"{top}/{name}"
            self.write(self.path, "memory.limit_in_bytes" if v1 else "memory.max", limit)
        except OSError as e:
            self.missing = f"no memory cgroup can be made: {e}"
            self.remove()

    @staticmethod
    def write(path, name, value):
        with open(os.path.join(path, name), "w", encoding="ascii") as f:
            f.write(str(value))

    def take(self, pids):
        """What they have used so far is not counted."""
        for pid in pids:
            self.write(self.path, "cgroup.procs", pid)

    def killed(self):
        """How many processes the kernel has killed in it."""
        for name in ("memory.events", "memory.oom_control"):
            try:
                with open(os.path.join(self.path, name), encoding="ascii") as f:
                    return next(int(line.split()[1]) for line in f if line.startswith("oom_kill "))
            except (OSError, StopIteration):
                continue
        return None

    def remove(self):
        """Its processes go back."""
        if not self.path:
            return
        for _ in range(100):  # some may just be born in it, or end
            with open(f"{self.path}/cgroup.procs", encoding="ascii") as f:
                for pid in f.read().split():
                    with contextlib.suppress(OSError):
                        self.write(self.top, "cgroup.procs", pid)
            if Cgroups.remove(self.path):
                break
            time.sleep(0.05)
        self.path = None
