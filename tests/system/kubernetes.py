# SPDX-License-Identifier: Apache-2.0
# Rooms: -
"""The files that start perfwalk in containers. The chart by helm, with what it renders by the schemas of Kubernetes and
by perfwalk itself, and etc/kubernetes/perfwalk.yaml, which is what it renders; docker compose's by its own parser,
quadlet's by podman's. All of them, the unit and docs/containers.md give the same capabilities. What the chart renders
runs as a pod: a real Collector gets the stacks of another pod with its name. What quadlet makes of its file runs under
a systemd that it has booted with."""
import json
import os
import re
import subprocess

import yaml

import otelcol
import rig
from containers import own, make_rootfs, podman
from image import TAG, build, named, remove
from machine import Machine
from sink import Sink

CHART = os.path.join(rig.TOP, "etc/kubernetes/chart")
PLAIN = os.path.join(rig.TOP, "etc/kubernetes/perfwalk.yaml")
ALL_VALUES = {"rate": 49, "interval": "5s", "tracefs": True, "sysAdmin": True, "hostNetwork": True, "priorityClassName": "system-node-critical",
              "export": {"endpoint": "http://[$(NODE_IP)]:4318", "headersSecret": "tokens"}, "runtime": {"kind": "crio"},
              "spool": {"hostPath": "/var/lib/perfwalk"}, "config": {"symbolizer": {"lines": "yes"}},
              "filter": {"exclude_comm": "stress-*"}, "limits": {"symbols": 500000000}, "podLabels": {"team": "a"},
              "seccompProfile": {"type": "Localhost", "localhostProfile": "perfwalk.json"}, "podAnnotations": {"note": "b"},
              "resourceAttributes": {"deployment.environment": "test", "build.number": 20261127, "share": 0.25}, "imagePullSecrets": [{"name": "pull"}]}
WRONG_VALUES = {"rat": 19, "rate": 0, "runtime": {"kind": "rkt"}, "export": {"endpoint": "collector:4318"}}
# What podman 4.3 does not take from a pod's specification, and this host's limits.
AS_KUBELET = f"""[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
pidns = "host"
seccomp_profile = "{os.path.join(rig.TOP, 'etc/image/seccomp.json')}"
"""


def tools():
    p = subprocess.run(["sh", os.path.join(rig.HERE, "fetch-deploy.sh")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                       text=True)
    if p.returncode == 77:
        rig.skip(p.stderr.strip())
    rig.check(p.returncode == 0, "helm, compose, quadlet and schemas are there" + ("" if p.returncode == 0 else p.stderr[-2000:]))
    return p.stdout.strip()


def run(*argv, **options):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)


def render(at, version, values):
    return run(f"{at}/helm", "template", "perfwalk", CHART, "-n", "perfwalk", "--kube-version", version,
               "-f", rig.write("values.yaml", yaml.safe_dump(values)))


def check_schema(at, name, text, version):
    p = run(f"{at}/python/bin/kubernetes-validate", "--strict", "-k", version, rig.write(name, text))
    return p.returncode == 0, p.stdout


def check_config(name, text):
    """perfwalk itself reads the config."""
    (config,) = [d["data"]["kubernetes.conf"] for d in yaml.safe_load_all(text) if d and d["kind"] == "ConfigMap"]
    config = re.sub(r"(?m)^headers_file.*\n", "", config).replace("$(NODE_IP)", "fd00::1" if "[$(NODE_IP)]" in config else "10.0.0.1")
    p = run(rig.perfwalk(), "run", "--check-config", "-c", rig.write(f"{name}.conf", config))
    rig.check(p.returncode == 0, f"{name}: perfwalk takes the config: {p.stdout.strip()[-300:]}")


def check_numbers(text):
    """Helm reads whole numbers as floats, and would write 5e+08."""
    documents = [d for d in yaml.safe_load_all(text) if d]
    (config,) = [d["data"]["kubernetes.conf"] for d in documents if d["kind"] == "ConfigMap"]
    rig.check("\nsymbols = 500000000\n" in config + "\n", "numbers are written as they were given: symbols = 500000000")
    (environment,) = [d["spec"]["template"]["spec"]["containers"][0]["env"] for d in documents if d["kind"] == "DaemonSet"]
    (said,) = [v["value"] for v in environment if v["name"] == "OTEL_RESOURCE_ATTRIBUTES"]
    rig.check({"build.number=20261127", "share=0.25"} <= set(said.split(",")), f"and those of attributes: {said}")


def check_chart(at):
    p = run(f"{at}/helm", "lint", "--strict", CHART)
    rig.check(p.returncode == 0, "helm lint" + ("" if p.returncode == 0 else p.stdout))
    for name, version, values in (("defaults", "1.37.0", {}), ("all-values", "1.30.0", ALL_VALUES), ("older", "1.25.0", ALL_VALUES)):
        p = render(at, version, values)
        rig.check(p.returncode == 0, f"{name}: helm template" + ("" if p.returncode == 0 else p.stdout))
        valid, said = check_schema(at, f"{name}.yaml", p.stdout, version[:-2])
        rig.check(valid and said.count("passed") == 2, f"{name}: by the schemas of Kubernetes {version[:-2]}" + ("" if valid else said))
        check_config(name, p.stdout)
        rig.check(("- SYS_ADMIN" in p.stdout) == bool(values), f"{name}: with SYS_ADMIN if that is asked for")
        if values:
            check_numbers(p.stdout)
    valid, said = check_schema(at, "wrong.yaml", p.stdout.replace("hostPID", "hostPid"), "1.30")
    rig.check(not valid and "hostPid" in said, "which find a wrong key")
    for key, value in WRONG_VALUES.items():
        p = render(at, "1.30.0", {key: value})
        rig.check(p.returncode != 0 and key in p.stdout, f"the chart refuses {key}: {value}")


def check_plain(at):
    with open(PLAIN, encoding="utf-8") as f:
        text = f.read()
    plain = [d for d in yaml.safe_load_all(text) if d["kind"] != "Namespace"]
    wanted = [d for d in yaml.safe_load_all(render(at, "1.30.0", {}).stdout) if d]
    rig.check(plain == wanted, "etc/kubernetes/perfwalk.yaml is what the chart renders")
    valid, said = check_schema(at, "plain.yaml", text, "1.30")
    rig.check(valid, "and its namespace has the schema as well" + ("" if valid else said))


def check_engines(at):
    compose = os.path.join(rig.TOP, "etc/image/compose.yaml")
    p = run(f"{at}/compose", "-format", "json", compose)
    rig.check(p.returncode == 0 and json.loads(p.stdout)["services"]["perfwalk"]["pid"] == "host",
              "compose takes its file" + ("" if p.returncode == 0 else p.stdout))
    for name in ("pyroscope", "parca"):
        p = run(f"{at}/compose", os.path.join(rig.TOP, f"etc/fleet/{name}.yaml"))
        rig.check(p.returncode == 0, f"and {name}'s" + ("" if p.returncode == 0 else p.stdout))
    with open(compose, encoding="utf-8") as f:
        p = run(f"{at}/compose", rig.write("wrong-compose.yaml", f.read().replace("read_only", "read_onli")))
    rig.check(p.returncode != 0 and "read_onli" in p.stdout, "and refuses a wrong key")
    with open(os.path.join(rig.TOP, "etc/image/perfwalk.container"), encoding="utf-8") as f:
        unit = f.read()
    for text, wanted in ((unit, True), (unit.replace("ReadOnly", "ReadOnli"), False)):
        directory = rig.path(f"quadlet-{wanted}")
        os.mkdir(directory)
        rig.write(f"quadlet-{wanted}/perfwalk.container", text)
        p = run(f"{at}/quadlet", "-dryrun", env={**os.environ, "QUADLET_UNIT_DIRS": directory})
        rig.check((p.returncode == 0 and "--cap-drop all" in p.stdout) == wanted,
                  f"quadlet {'takes its file' if wanted else 'refuses a wrong key'}" + ("" if p.returncode == 0 else p.stdout[-300:]))


# What this host does not give: control groups with limits, as much as the file asks for. podman's storage in a machine
# under an overlay has none of its own.
OF_QUADLET = {"nofile=65536:65536": "nofile=1024:1024 --ulimit nproc=1024:1024", "--memory 2048m --pids-limit 320": "--pids-limit 0"}
STORAGE = """[storage]
driver = "vfs"
runroot = "/run/containers/storage"
graphroot = "/var/lib/containers/storage"
"""


def check_quadlet(at):
    """In a machine that has quadlet as systemd's generator: its service starts, is healthy, sends, and stops."""
    image = rig.path("image.tar")
    podman("save", "-q", "-o", image, TAG)
    with open(os.path.join(rig.TOP, "etc/image/perfwalk.container"), encoding="utf-8") as f:
        unit = f.read()
    with Sink() as sink:
        changes = {**OF_QUADLET, "localhost/perfwalk:0.1.0": TAG, "http://127.0.0.1:4318": sink.endpoint}
        rig.check(all(old in unit for old in changes), "quadlet's file has what is another here")
        for old, new in changes.items():
            unit = unit.replace(old, new)
        machine = Machine({"etc/containers/systemd/perfwalk.container": unit, "srv/image.tar": [image],
                           "etc/perfwalk/seccomp.json": [os.path.join(rig.TOP, "etc/image/seccomp.json")],
                           "usr/lib/systemd/system-generators/podman-system-generator": [f"{at}/quadlet"],
                           "etc/containers/storage.conf": STORAGE,
                           "etc/containers/containers.conf": '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\n'},
                          hidden=["var/lib/containers", "etc/systemd/system/network-online.target"])
        try:
            machine.run("podman", "load", "-q", "-i", "/srv/image.tar", timeout=200)
            machine.run("mkdir", "-p", "/run/containers/storage")
            machine.run("systemctl", "start", "perfwalk", timeout=120)
            rig.wait_for("the service of quadlet sends", lambda: sink.count() > 0, 60)
            rig.check(machine.try_run("podman", "healthcheck", "run", "perfwalk")[0] == 0, "quadlet's service sends, and is healthy")
            machine.run("systemctl", "stop", "perfwalk", timeout=60)
            said = machine.run("systemctl", "show", "--property=Result", "perfwalk").strip()
            rig.check(said == "Result=success", f"it stops: {said}")
        finally:
            machine.halt()


def check_capabilities():
    found = {}
    for name, expression in (("etc/perfwalk.service.in", r"(?m)^CapabilityBoundingSet=(.*)$"),
                             ("etc/image/compose.yaml", r"cap_add: \[(.*)\]"), ("etc/image/perfwalk.container", r"AddCapability=(.*)"),
                             ("etc/kubernetes/chart/values.yaml", r"(?s)\ncapabilities: \[(.*?)\]"),
                             ("docs/containers.md", r"(?s)podman run(.*?)perfwalk:")):
        with open(os.path.join(rig.TOP, name), encoding="utf-8") as f:
            text = re.search(expression, f.read())[1]
        words = re.findall(r"--cap-add=(\w+)", text) or re.findall(r"\b(?:CAP_)?([A-Z_]+)\b", text)
        found[name] = sorted(w.removeprefix("CAP_") for w in words)
    first = found["etc/perfwalk.service.in"]
    rig.check(len(first) == 12 and all(f == first for f in found.values()), f"{len(found)} files give the same {len(first)} capabilities"
              + ("" if all(f == first for f in found.values()) else f": {found}"))


def as_pod(text):
    """The DaemonSet's pod, as a kubelet starts it: with its node in the environment."""
    documents = [d for d in yaml.safe_load_all(text) if d]
    (template,) = [d["spec"]["template"] for d in documents if d["kind"] == "DaemonSet"]
    for variable in template["spec"]["containers"][0]["env"]:
        if "valueFrom" in variable:
            variable["value"] = {"NODE_NAME": "node-one", "NODE_IP": "127.0.0.1"}[variable["name"]]
            del variable["valueFrom"]
        variable["value"] = variable["value"].replace("$(NODE_NAME)", "node-one").replace("$(NODE_IP)", "127.0.0.1")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**template["metadata"], "name": f"perfwalk-{os.getpid()}"},
           "spec": template["spec"]}
    return [d for d in documents if d["kind"] == "ConfigMap"] + [pod]


def burner_pod(root):
    """A pod that burns CPU: of an image that has what make_rootfs() has, built here as well."""
    tag = f"{TAG}-burner"
    rig.write("Containerfile", f'FROM scratch\nCOPY rootfs/ /\nENTRYPOINT ["/bin/{own("burner")}"]\n')
    podman("build", "-q", "-f", rig.path("Containerfile"), "-t", tag, os.path.dirname(root))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"shop-{os.getpid()}"},
            "spec": {"containers": [{"name": "front", "image": tag, "imagePullPolicy": "Never"}]}}


def play(name, documents):
    """The name of the pod; podman takes an image's name for a directory to build it in, so not where there is one."""
    path = rig.write(f"{name}.yaml", yaml.safe_dump_all(documents))
    podman("--cgroup-manager=cgroupfs", "kube", "play", "--network=host", path, cwd=os.path.dirname(path),
           env={**os.environ, "CONTAINERS_CONF": rig.write("containers.conf", AS_KUBELET)})
    return documents[-1]["metadata"]["name"]


def pause_images():
    """podman makes itself one for the first pod."""
    return set(podman("images", "-q", "--filter", "reference=localhost/podman-pause").split())


def check_pods(at):
    there = pause_images()
    collector = otelcol.start({"all": ("http", "")})
    repository, _, tag = TAG.rpartition(":")
    text = render(at, "1.30.0", {"image": {"repository": repository, "tag": tag}, "runtime": {"kind": "crio"}, "hostNetwork": True,
                                 "interval": "1s", "rate": 99,
                                 "export": {"endpoint": f"http://127.0.0.1:{collector.ports['all']}"}}).stdout
    pods = []
    try:
        pods.append(play("shop", [burner_pod(make_rootfs())]))
        container = podman("inspect", "--format", "{{.Id}}", f"{pods[0]}-front")
        pods.append(play("perfwalk", as_pod(text)))
        rig.wait_for("profiles with the other pod's name arrive", lambda: named(collector, container, f"{pods[0]}-front") >= 20, 60)
        rig.check(True, "the Collector has the stacks of another pod, with its name")
        said = podman("exec", f"{pods[1]}-perfwalk", "perfwalk", "ctl", "status")
        rig.check("sampling" in said, "the liveness probe's command succeeds in the pod")
        hosts = {r.get("host.name") for m in collector.messages("all") for r, *_ in otelcol.view(m).samples()}
        rig.check(hosts == {"node-one"}, f"host.name is the node's: {hosts}")
    except rig.Failure:
        rig.say(run("podman", "logs", f"perfwalk-{os.getpid()}-perfwalk").stdout[-2000:])
        raise
    finally:
        for pod in pods:
            run("podman", "pod", "rm", "-f", "-t", "0", pod)
        run("podman", "rmi", f"{TAG}-burner", *(pause_images() - there))


def main():
    rig.need_root()
    at = tools()
    check_chart(at)
    check_plain(at)
    check_engines(at)
    check_capabilities()
    rig.need_programs("podman", "runc", "busybox", "catatonit")
    if not os.path.exists(os.path.join(os.path.dirname(rig.perfwalk()), "Makefile")):
        rig.skip("the program under test is not in its build directory")
    otelcol.binary()
    try:
        build()
        check_quadlet(at)
        check_pods(at)
    finally:
        remove()


if __name__ == "__main__":
    rig.run(main)
