# SPDX-License-Identifier: Apache-2.0
# Rooms: src/host src/opener
"""The cgroups that container runtimes and systemd make, by their own names but without them: a
program moved into each, and one that is gone when anybody could ask, shows up under the right
container.id, pod and unit."""
import os
import re
import resource
import subprocess

import inside
import rig
from cgroup_dirs import Cgroups, digits, mount_point, start_in
from sink import Sink

RATE = 99
NAME = f"test{os.getpid()}"
POD = "01234567-89ab-cdef-0123-456789abcdef"

# path -> what is expected of the resource
CGROUPS = {
    f"docker/{digits('1a')}": {"container.id": digits("1a")},
    f"system.slice/docker-{digits('2b')}.scope": {"container.id": digits("2b")},
    f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{POD.replace('-', '_')}.slice/"
    f"cri-containerd-{digits('3c')}.scope": {"container.id": digits("3c"), "k8s.pod.uid": POD},
    f"kubepods/besteffort/pod{POD}/{digits('4d')}": {"container.id": digits("4d"), "k8s.pod.uid": POD},
    f"machine.slice/crio-{digits('5e')}.scope": {"container.id": digits("5e")},
    f"machine.slice/libpod-{digits('6f')}.scope": {"container.id": digits("6f")},
    f"lxc.payload.{NAME}-lxc/system.slice/perfwalk-inner.service": {"container.id": f"{NAME}-lxc", "container.name": f"{NAME}-lxc",
                                                                   "systemd.unit": "perfwalk-inner.service"},
    f"machine.slice/machine-{NAME}nspawn.scope/payload": {"container.id": f"{NAME}nspawn", "container.name": f"{NAME}nspawn"},
    "system.slice/perfwalk-test.service": {"systemd.unit": "perfwalk-test.service"},
}

# These have a name for a container's only at the top of the host's hierarchy, which a machine's is not.
if inside.is_inside():
    del CGROUPS[f"machine.slice/machine-{NAME}nspawn.scope/payload"]

# Programs in pods, with the variables that manifests give them -> what is expected of their resources
NODE = {"NODE_NAME": "node-1", "POD_NAMESPACE": "prod", "K8S_CONTAINER_NAME": "app"}
FROM_NODE = {"k8s.node.name": "node-1", "k8s.namespace.name": "prod", "k8s.container.name": "app"}
PODS = {
    # A Deployment's
    digits("8a"): ({"POD_NAME": "shop-cart-7d9c5b8f6d-x2x9k", **NODE},
                   {"k8s.pod.name": "shop-cart-7d9c5b8f6d-x2x9k", "k8s.replicaset.name": "shop-cart-7d9c5b8f6d",
                    "k8s.deployment.name": "shop-cart", **FROM_NODE}),
    # The same by the variables of OpenTelemetry's operator
    digits("8b"): ({"OTEL_RESOURCE_ATTRIBUTES_POD_NAME": "a-667cdf95b9-zzzzz", "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME": "node-2",
                    "K8S_NAMESPACE_NAME": "test"},
                   {"k8s.pod.name": "a-667cdf95b9-zzzzz", "k8s.deployment.name": "a", "k8s.node.name": "node-2",
                    "k8s.namespace.name": "test", "k8s.container.name": None}),
    # A StatefulSet's, a DaemonSet's, and one whose letters Kubernetes does not take
    digits("8c"): ({"POD_NAME": "db-0"}, {"k8s.pod.name": "db-0", "k8s.deployment.name": None, "k8s.replicaset.name": None}),
    digits("8d"): ({"K8S_POD_NAME": "agent-x2x9k"}, {"k8s.pod.name": "agent-x2x9k", "k8s.deployment.name": None}),
    digits("8e"): ({"POD_NAME": "web-house-abcde"}, {"k8s.pod.name": "web-house-abcde", "k8s.deployment.name": None}),
}


def check_pods(views):
    """A process is asked when it has run for half a second: its samples before that lack the names."""
    resources = [x[0] for v in views for x in v.samples()]
    for container, (_, expected) in PODS.items():
        mine = [r for r in resources if r.get("container.id") == container]
        told = [r for r in mine if r.get("k8s.pod.name")]
        rig.check(told and all(r.get(k) == v for r in told for k, v in expected.items()),
                  f"in a pod {expected}" + (f", but {told[:1] or mine[:1]}" if not told or any(
                      r.get(k) != v for r in told for k, v in expected.items()) else ""))


def listed(what):
    return subprocess.run([rig.perfwalk(), "list", what], stdout=subprocess.PIPE, text=True, check=True).stdout


def check_list(early, late):
    """perfwalk list, while they run."""
    containers, units, processes = listed("containers"), listed("units"), listed("processes")
    for name, expected in CGROUPS.items():
        pid = (early.get(name) or late.get(name)).pid
        for key, text in ((k, expected.get(k)) for k in ("container.id", "systemd.unit")):
            have = containers if key == "container.id" else units
            if text:
                rig.check(re.search(rf"^{re.escape(text)} .*\[{pid}\]$", have, re.M), f"list has {key} {text[:24]}")
                rig.check(re.search(rf"^ *{pid}  .*{re.escape(text[:12])}", processes, re.M),
                          f"list processes has it for {pid}")


def main():
    rig.need_root()
    chain = os.path.join(rig.build_workloads("chain"), "chain")
    with Cgroups(mount_point()) as cgroups, Sink() as sink:
        early = {name: start_in(cgroups.make(name), ["nice", chain]) for name in list(CGROUPS)[:4]}
        daemon = rig.Daemon(f"""
[profiler]
samples_per_second = {RATE}
reporter_interval = 1s
[export:sink]
endpoint = {sink.endpoint}
""")
        daemon.wait_up()
        sink.wait_for(1)
        late = {name: start_in(cgroups.make(name), ["nice", chain]) for name in list(CGROUPS)[4:]}
        pods = [start_in(cgroups.make(f"kubepods/besteffort/pod{POD}/{container}"),
                         ["env", *(f"{k}={v}" for k, v in environment.items()), chain])
                for container, (environment, _) in PODS.items()]
        rig.wait_for("some of their CPU time", lambda: all(
            rig.cpu_seconds(p.pid) >= 40 / RATE for p in (*early.values(), *late.values())))
        check_list(early, late)
        rig.wait_for("the names of all pods", lambda: {x[0]["container.id"] for v in sink.views() for x in v.samples()
                                                       if x[0].get("k8s.pod.name")} >= set(PODS))
        for p in pods:
            rig.end(p)
        for p in [*early.values(), *late.values()]:
            rig.end(p)
        # Dead before the rings are read, most of the time.
        short_id = digits("70")
        begin = used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        while used - begin < 20 / RATE:
            short = [start_in(cgroups.make(f"docker/{short_id}"), ["timeout", "0.15", chain]) for _ in range(5)]
            for p in short:
                p.wait(rig.PATIENCE)
            used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        sink.wait_for(sink.count() + 3)
        status, _ = daemon.stop()
        views = sink.views()
    rig.check(status == 0, "the daemon leaves with 0")
    check_pods(views)
    samples = [x for v in views for x in v.samples() if x[0].get("process.executable.name") == "chain"]
    for name, expected in CGROUPS.items():
        pid = (early.get(name) or late.get(name)).pid
        # Where nobody had seen its parent, a process that has not been moved yet, and runs another program, has the name
        # that /proc knows when the rings are read: the later one.
        mine = [x for x in samples if x[0].get("process.pid") == pid and any(f.startswith("chain_") for f in x[2])]
        n = sum(x[3] for x in mine)
        wrong = [x for x in mine if any(x[0].get(k) != v for k, v in expected.items())]
        right = n - sum(x[3] for x in wrong)
        rig.check(n >= 20 and right == n, f"/{name}: {right} of {n} samples with "
                  + ", ".join(f"{k} {v[:16]}" for k, v in expected.items())
                  + "".join(f"\nnot so: {x[0]} {x[1]} {x[2]}" for x in wrong))
    n = sum(x[3] for x in samples if x[0].get("container.id") == short_id)
    rig.check(n >= 10, f"{n} samples of programs that lived 150 ms have their container.id")


rig.run(main)
