# SPDX-License-Identifier: Apache-2.0
# Rooms: src/host src/opener symbolize
"""Real containers (podman with runc, a root file system made here, no image): one that burns CPU in
its own binary, two that burn it in code they compiled themselves and named in a perf map or a jitdump
file in their own /tmp, and one that is gone within a second. Each shows up under its container.id with its names."""
import os
import shutil
import subprocess

import rig
from sink import Sink

RATE = 99


def podman(*args, **options):
    p = subprocess.run(["podman", "--runtime", "runc", *args], stdout=subprocess.PIPE, check=False,
                       stderr=subprocess.PIPE, text=True, **options)
    if p.returncode != 0:
        rig.fail(f"podman {' '.join(args)}: {p.stderr.strip()}")
    return p.stdout.strip()


class Containers:
    """Started containers, removed at the end whatever happens."""

    def __init__(self, rootfs):
        self.rootfs = rootfs
        self.ids = []

    def options(self):
        return ["--cgroups=enabled", "--cgroup-manager=cgroupfs", "--network=none",
                "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]

    def start(self, *command):
        name = f"perfwalk-test-{os.getpid()}-{len(self.ids)}"
        self.ids.append(name)
        return podman("run", "-d", *self.options(), "--name", name, "--rootfs", self.rootfs, *command)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in self.ids:
            subprocess.run(["podman", "--runtime", "runc", "rm", "-f", "-t", "0", name], check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def is_of_musl(frames):
    """A sample in the C library of chain.c's program, where that is musl's: without CFI nobody knows who called. How many
    there are depends on the host."""
    return frames[0] == "[no unwind information]" and not any(f == "main" or f.startswith("chain_") for f in frames)


def own(name):
    """A name that the containers of another run of this test have not."""
    return f"{name}-{os.getpid()}"


def make_rootfs():
    """A root file system of busybox and the workloads; nothing of the host's is in it."""
    root = rig.path("rootfs")
    for name in ("bin", "tmp", "proc", "dev", "sys", "etc"):
        os.makedirs(os.path.join(root, name))
    os.chmod(os.path.join(root, "tmp"), 0o1777)
    shutil.copy(shutil.which("busybox"), os.path.join(root, "bin"))
    os.symlink("busybox", os.path.join(root, "bin", "sh"))
    built = rig.build_workloads("chain-static", "jit", "jitdump", "blip")
    for source, name in (("chain-static", "burner"), ("jit", "jitter"), ("jitdump", "dumper"), ("blip", "blip")):
        shutil.copy(os.path.join(built, source), os.path.join(root, "bin", own(name)))
    return root


def seen(views, container):
    """Samples under a container's id: (resource, attributes, frames, n)."""
    return [x for v in views for x in v.samples() if x[0].get("container.id") == container]


def check_container(views, container, program, path, n_wanted, share=0.8):
    program = own(program)
    mine = seen(views, container)
    n = sum(x[3] for x in mine)
    rig.check(n >= n_wanted, f"{program}: {n} samples under container.id {container[:12]}... "
                             f"(wanted {n_wanted})")
    named = [x for x in mine if x[0].get("process.executable.name") == program]
    rig.check(sum(x[3] for x in named) >= 0.5 * n, f"{program}: process.executable.name")
    right = [x for x in named if rig.contains_path(x[2], path)]
    rig.check(sum(x[3] for x in right) >= share * sum(x[3] for x in named),
              f"{program}: {sum(x[3] for x in right)} of {sum(x[3] for x in named)} hold "
              f"{' > '.join(path)}")
    strange = [x for v in views for x in v.samples()
               if x[0].get("process.executable.path") == f"/bin/{program}"
               and x[0].get("container.id") != container]
    rig.check(not strange, f"{program}: never without this container.id")


def check_names(views, container, name):
    """The name that podman gave it: in payloads, in the list, and to choose it by."""
    rig.check({x[0].get("container.name") for x in seen(views, container)} == {name},
              f"container.name is {name}")
    lines = subprocess.run([rig.perfwalk(), "list", "containers"], stdout=subprocess.PIPE, text=True,
                           check=True).stdout.splitlines()
    rig.check(any(line.split()[:2] == [container, name] for line in lines),
              "list containers has it")
    out = rig.path("named.folded")
    r = rig.record("-F", "199", "-d", "1", "--container", name, "-o", out)
    comms = {s.comm for s in rig.read_folded(out)}
    rig.check(r.status == 0 and comms == {own("burner")} and f"podman {name}" in r.out,
              f"record --container {name}: {comms}")


def main():
    rig.need_root()
    rig.need_programs("podman", "runc", "busybox")
    rootfs = make_rootfs()
    with Sink() as sink, Containers(rootfs) as containers:
        host = rig.start([os.path.join(rootfs, "bin", own("burner"))])
        early = containers.start("/bin/" + own("burner"))  # runs before the profiler does
        daemon = rig.Daemon(f"""
[profiler]
samples_per_second = {RATE}
reporter_interval = 1s
[export:sink]
endpoint = {sink.endpoint}
""")
        daemon.wait_up()
        sink.wait_for(1)
        late = containers.start("/bin/" + own("jitter"))
        dumper = containers.start("/bin/" + own("dumper"))
        short = containers.start("/bin/" + own("blip"), "400")
        rig.wait_for("the short-lived container is gone", lambda: podman(
            "inspect", "--format", "{{.State.Status}}", short) == "exited", 30)
        sink.wait_for(sink.count() + 4)
        status, _ = daemon.stop()
        rig.check(status == 0, "the daemon leaves with 0")
        views = sink.views()
        check_names(views, early, containers.ids[0])
        problems = sink.problems(rate=RATE)
    rig.check(not problems, "the payloads hold every rule" + "".join("\n    " + p for p in problems[:20]))
    check_container(views, early, "burner", ["main", "chain_one", "chain_two", "chain_three",
                                             "chain_four", "chain_five", "chain_leaf"], 50)
    check_container(views, late, "jitter", ["main", "jit_run", "jitted_inner_loop"], 30)
    check_container(views, dumper, "dumper", ["main", "run_first", "jitted_first"], 30, 0.15)
    check_container(views, dumper, "dumper", ["main", "run_second", "jitted_second"], 30, 0.15)
    check_container(views, short, "blip", ["main", "blip_burn"], 10)
    outside = [x for v in views for x in v.samples() if x[0].get("process.pid") == host.pid]
    rig.check(outside and not any(x[0].get("container.id") in (early, late, short) for x in outside),
              "a process of the host is under none of these ids")


if __name__ == "__main__":  # others import its parts
    rig.run(main)
