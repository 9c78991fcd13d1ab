# SPDX-License-Identifier: Apache-2.0
# Rooms: -
"""The image of `make image`, run by podman with the capabilities that docs/containers.md lists, a root that is
read-only, and no more: it is small; its daemon sends a real Collector what another container runs, with that
container's name; its health check tells a daemon that runs from none; without --pid=host, and under a filter that
refuses perf_event_open, `check` says so."""
import glob
import json
import os
import platform
import re
import subprocess
import tarfile

import otelcol
import rig
from containers import Containers, make_rootfs, own, podman

LARGEST_BYTES = 15_000_000
TAG = f"localhost/perfwalk-test:{os.getpid()}"
PATH = ["main", "chain_one", "chain_two"]


def build():
    build_dir = os.path.dirname(rig.perfwalk())
    with rig.make_alone():
        p = subprocess.run(["make", "-s", "image", f"IMAGE={TAG}"], cwd=build_dir, stdout=subprocess.PIPE, check=False,
                           stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, env={**os.environ, "XZ_OPT": "-0"})
    rig.check(p.returncode == 0, f"make image: {p.stdout.strip()[-400:]}")
    archive = max(glob.glob(os.path.join(build_dir, "perfwalk-image-*.tar.gz")), key=os.path.getmtime)
    size = os.path.getsize(archive)
    rig.check(size < LARGEST_BYTES, f"the image has {size / 1e6:.1f} MB, compressed")
    rig.check(files_of(archive)["etc/ssl/certs/ca-certificates.crt"] > 0, "it has certificate authorities, for https")
    remove()
    subprocess.run(["sh", "-c", f"zcat {archive} | podman load -q"], stdout=subprocess.DEVNULL, check=True)
    said = json.loads(podman("inspect", TAG))[0]
    rig.check(said["Healthcheck"]["Test"][-2:] == ["ctl", "status"], "loaded from its archive it has a health check")


def files_of(archive):
    """Of all its layers: names, and sizes."""
    found = {}
    with tarfile.open(archive) as outer:
        for layer in outer:
            if layer.name.endswith(".tar"):
                with tarfile.open(fileobj=outer.extractfile(layer)) as inner:
                    found.update((f.name, f.size) for f in inner if f.isfile())
    return found


def check_no_authorities():
    """A host that has none: no image that fails at its first https."""
    build_dir = os.path.dirname(rig.perfwalk())
    bundle = max(glob.glob(os.path.join(build_dir, "perfwalk-bundle-*.tar.xz")), key=os.path.getmtime)
    script = os.path.join(rig.TOP, "etc/image/build.sh")
    hide = "mount --make-rprivate / && for d in /etc/ssl /etc/pki; do [ ! -d $d ] || mount -t tmpfs none $d; done"
    for given in (None, "/nosuch"):
        more = {"IMAGE_AUTHORITIES": given} if given else {}
        p = subprocess.run(["unshare", "-m", "sh", "-c", f'{hide} && exec sh "$@"', "sh", script, bundle, TAG, "0", platform.machine()],
                           cwd=rig.workdir(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120,
                           env={**os.environ, **more})
        rig.check(p.returncode == 1 and (given or "apt-get install ca-certificates") in p.stdout,
                  f"without certificate authorities there is no image: {p.stdout.strip()}")


def remove():
    subprocess.run(["podman", "rmi", "-f", TAG], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def documented_options():
    """Of the command in the docs that runs the image: those that give it its rights."""
    with open(os.path.join(rig.TOP, "docs/containers.md"), encoding="utf-8") as f:
        text = f.read()
    command = re.search(r"podman run (.*?)perfwalk:", text.replace("\\\n", " "), re.S)[1]
    options = re.findall(r"--(?:read-only|pid|cgroupns|cap-drop|cap-add|tmpfs)(?:=\S+)?", command)
    (seccomp,) = re.findall(r"--security-opt=seccomp=(\S+)", command)
    options.append(f"--security-opt=seccomp={os.path.join(rig.TOP, seccomp)}")
    rig.check("--read-only" in options and "--cap-drop=all" in options and "--pid=host" in options,
              f"docs/containers.md runs it with {len(options)} options of rights")
    return options


def refusing():
    """The filter of docs/containers.md without perf_event_open."""
    with open(os.path.join(rig.TOP, "etc/image/seccomp.json"), encoding="utf-8") as f:
        profile = json.load(f)
    profile["syscalls"][0]["names"].remove("perf_event_open")
    return "--security-opt=seccomp=" + rig.write("refusing.json", json.dumps(profile))


def check_said(options, without, words, instead=None):
    """What `check` says in the image without the option that begins so, or with another one instead."""
    kept = [o for o in options if not without or not o.startswith(without)] + ([instead] if instead else [])
    p = subprocess.run(["podman", "--runtime", "runc", "run", "--rm", *Containers(None).options(), *kept, TAG, "check"],
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False, timeout=120)
    missing = [w for w in words if w not in p.stdout]
    rig.check(not missing, f"check{f', without {without}' if without else ''}: {words}" + (f"\n{p.stdout}" if missing else ""))


def named(collector, container, name):
    """Samples with names under that container's id and name."""
    n = 0
    for message in collector.messages("all"):
        for resource, _, frames, count in otelcol.view(message).samples():
            if resource.get("container.id") == container and resource.get("container.name") == name and \
                    rig.contains_path(frames, PATH):
                n += count
    return n


def health(name):
    return subprocess.run(["podman", "--runtime", "runc", "healthcheck", "run", name], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False).returncode


def check_daemon(options):
    collector = otelcol.start({"all": ("http", "")})
    with Containers(make_rootfs()) as containers:
        burner = containers.start("/bin/" + own("burner"))
        daemon = f"perfwalk-test-{os.getpid()}-daemon"
        containers.ids.append(daemon)
        limits = [o for o in containers.options() if o != "--network=none"]
        podman("run", "-d", *limits, *options, "--network=host", "-v", "/run/containers/storage:/run/containers/storage:ro,rslave", "--name", daemon,
               "-e", f"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:{collector.ports['all']}", TAG)
        try:
            rig.wait_for("profiles with the other container's name arrive",
                         lambda: named(collector, burner, containers.ids[0]) >= 20, 60)
            rig.check(health(daemon) == 0, "the Collector has stacks with names, under the other container's id and name; healthy")
            status = podman("exec", daemon, "perfwalk", "ctl", "status", "--json")
            rig.check(json.loads(status)["paused"] is False, "ctl answers in the container")
            podman("exec", daemon, "perfwalk", "ctl", "-s", "/run/perfwalk/control", "flush")
            podman("exec", daemon, "perfwalk", "ctl", "-s", "/run/perfwalk/control", "clear-set-aside")
            mounts = json.loads(podman("inspect", daemon))[0]["Mounts"]
            state = next(m["Source"] for m in mounts if m["Destination"] == "/var/lib/perfwalk")
            rig.check(os.path.exists(os.path.join(state, "set-aside")), "its volume keeps which files are set aside")
            podman("stop", "-t", "20", daemon)
            rig.check(podman("inspect", "--format", "{{.State.ExitCode}}", daemon) == "0", "podman stop: it leaves with 0")
            rig.check(health(daemon) != 0, "what does not run is not healthy")
        except rig.Failure:
            rig.say(subprocess.run(["podman", "logs", daemon], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                                   text=True).stdout[-3000:])
            raise


def main():
    rig.need_root()
    rig.need_programs("podman", "runc", "busybox")
    if not os.path.exists(os.path.join(os.path.dirname(rig.perfwalk()), "Makefile")):
        rig.skip("the program under test is not in its build directory")
    otelcol.binary()
    try:
        build()
        options = documented_options()
        check_said(options, None, ["perfwalk record -a works here", "capabilities     all that help",
                                   "pid namespace    the host's", "a filter is in force, but allows perf_event_open"])
        check_said(options, "--pid=host", ["pid namespace    not the host's: processes outside have no names",
                                           "in a container: --pid=host"])
        check_said(options, "--security-opt=seccomp", ["BAD   seccomp          a filter refuses perf_event_open",
                                                       "these options of podman or docker:\n    --security-opt=seccomp=unconfined\n"],
                   refusing())
        check_no_authorities()
        check_daemon(options)
    finally:
        remove()


if __name__ == "__main__":
    rig.run(main)
