# SPDX-License-Identifier: Apache-2.0
"""Control groups by the names that runtimes give them, made and removed by the tests."""
import os
import subprocess

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
