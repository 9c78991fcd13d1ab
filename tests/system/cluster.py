# SPDX-License-Identifier: Apache-2.0
"""Kubernetes itself, of one node: etcd, the API server, its controllers and scheduler, a kubelet and containerd, in
namespaces of their own. helm installs the chart there. Its pod is ready; `perfwalk check` and `list` in it say what the
docs promise; a Collector gets the stacks of another pod, with its names and the node's. Then the chart's other values:
the filter of system calls by a file of the node, and one pod alone."""
import json
import os
import subprocess

import yaml

import image
import otelcol
import rig
from containers import make_rootfs, own, podman
from kubernetes import CHART, burner_pod, tools

NODE = "node-one"
ADDRESS = "10.88.0.1"
API = "https://127.0.0.1:6443"
# What a kubelet wants to find in these files; it has not to write them, as they are this host's.
SYSCTLS = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
           "kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}
# $1 its directory, $2 its control group, $3 its address. Its processes end with it, which is process 1 there.
INSIDE = r"""
set -e
mount -t proc proc /proc
for directory in /run /var/lib /var/log; do
	mount -t tmpfs -o mode=755 none $directory
done
mount --make-rshared /
hostname node-one
ip link set lo up
ip link add cni0 type bridge
ip address add "$3/24" dev cni0
ip link set cni0 up
(cd "$1/sysctl" && find . -type f) | while read -r name; do
	mount --bind "$1/sysctl/$name" "/proc/sys/$name"
done
for group in /sys/fs/cgroup/*/; do
	mkdir "$group$2"
	[ ! -e "${group}cpuset.cpus" ] || for name in cpuset.cpus cpuset.mems; do
		cat "$group$name" >"$group$2/$name"
	done
done
mkdir -p /var/lib/kubelet/seccomp
cp "$1/perfwalk.json" /var/lib/kubelet/seccomp/
touch "$1/up"
exec catatonit -P
"""
CONTAINERD = """version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{directory}/cni"
"""
NETWORK = {"cniVersion": "0.4.0", "name": "pods", "plugins": [
    {"type": "bridge", "bridge": "cni0", "isGateway": True,
     "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": "10.88.0.0/24", "gateway": ADDRESS}]],
              "routes": [{"dst": "0.0.0.0/0"}]}}]}
KUBELET = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "cgroupDriver": "cgroupfs",
           "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
           "authorization": {"mode": "AlwaysAllow"}, "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
           "makeIPTablesUtilChains": False, "enforceNodeAllocatable": [], "localStorageCapacityIsolation": False,
           "evictionHard": {"memory.available": "1Mi"}, "volumePluginDir": "/var/lib/kubelet/volume-plugins", "resolvConf": ""}
KUBECONFIG = {"apiVersion": "v1", "kind": "Config", "current-context": "test",
              "clusters": [{"name": "test", "cluster": {"server": API, "insecure-skip-tls-verify": True}}],
              "users": [{"name": "test", "user": {"token": "test"}}],
              "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}]}
CONTROLLERS = "daemonset-controller,node-lifecycle-controller,serviceaccount-controller,garbage-collector-controller"


class Node:
    def __init__(self, at):
        self.at, self.group = at, f"perfwalk-test-{os.getpid()}"
        self.directory = rig.path("node")
        self.config = rig.write("kubeconfig", yaml.safe_dump(KUBECONFIG))
        with open(os.path.join(rig.TOP, "etc/image/seccomp.json"), encoding="utf-8") as f:
            self.put("perfwalk.json", f.read())
        self.put("cni/pods.conflist", json.dumps(NETWORK))
        for name, value in SYSCTLS.items():
            self.put(f"sysctl/{name}", f"{value}\n")
        outer = rig.start(["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child", "sh", "-c", INSIDE,
                           "sh", self.directory, self.group, ADDRESS], stdin=subprocess.DEVNULL)
        rig.wait_for("the node's namespaces", lambda: os.path.exists(os.path.join(self.directory, "up")), 30)
        (self.pid,) = rig.children_of(outer.pid)
        self.outer = outer

    def put(self, name, text):
        path = os.path.join(self.directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def inside(self, *argv):
        return ["nsenter", "-t", str(self.pid), "-m", "-p", "-n", "-u", "-i", "--", "env", "-u", "TMPDIR",
                f"PATH={self.at}:/usr/sbin:/usr/bin:/sbin:/bin", f"KUBECONFIG={self.config}", *argv]

    def try_run(self, *argv):
        p = subprocess.run(self.inside(*argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           errors="replace", check=False, timeout=300)
        return p.returncode, p.stdout

    def run(self, *argv):
        status, said = self.try_run(*argv)
        if status:
            rig.fail(f"{' '.join(argv)}: exit status {status}: {said[-3000:]}")
        return said

    def start(self, *argv):
        with open(rig.path(f"{argv[0]}.log"), "wb") as log:
            rig.start(self.inside(*argv), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def start_control(self):
        """All that is one for a cluster."""
        key, public = rig.path("sa.key"), rig.path("sa.pub")
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, stderr=subprocess.DEVNULL)
        subprocess.run(["openssl", "rsa", "-in", key, "-pubout", "-out", public], check=True, stderr=subprocess.DEVNULL)
        self.start("etcd", "--data-dir=/var/lib/etcd", "--unsafe-no-fsync")
        self.start("kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", "--cert-dir=/run/kubernetes", f"--advertise-address={ADDRESS}",
                   "--service-cluster-ip-range=10.89.0.0/24", "--service-account-issuer=https://kubernetes.default.svc",
                   f"--service-account-key-file={public}", f"--service-account-signing-key-file={key}", "--authorization-mode=AlwaysAllow",
                   "--token-auth-file=" + rig.write("tokens", "test,test,test,system:masters\n"),
                   "--kubelet-preferred-address-types=InternalIP")
        rig.wait_for("the API server is ready", lambda: self.try_run("kubectl", "get", "--raw=/readyz")[0] == 0, 180)
        self.start("kube-controller-manager", f"--kubeconfig={self.config}", "--leader-elect=false", "--cert-dir=/run/kubernetes",
                   f"--controllers={CONTROLLERS}")
        self.start("kube-scheduler", f"--kubeconfig={self.config}", "--leader-elect=false")

    def start_kubelet(self, pause):
        self.start("containerd", "--config", self.put("containerd.toml", CONTAINERD.format(pause=pause, directory=self.directory)))
        rig.wait_for("containerd answers", lambda: self.try_run("ctr", "version")[0] == 0, 60)
        self.start("kubelet", "--config=" + self.put("kubelet.yaml", yaml.safe_dump({**KUBELET, "cgroupRoot": "/" + self.group})),
                   f"--kubeconfig={self.config}", f"--node-ip={ADDRESS}", f"--hostname-override={NODE}")

    def halt(self):
        rig.end(self.outer)
        subprocess.run(["sh", "-c", f'''for try in $(seq 50); do
            find /sys/fs/cgroup/*/{self.group} -depth -type d -exec rmdir {{}} + 2>/dev/null
            ls -d /sys/fs/cgroup/*/{self.group} >/dev/null 2>&1 || exit 0
            sleep 0.1; done'''], check=False)


def load(node, tags):
    """Images of podman's store into containerd's."""
    for i, tag in enumerate(tags):
        archive = rig.path(f"image-{i}.tar")
        podman("save", "-q", "-o", archive, tag)
        node.run("ctr", "-n", "k8s.io", "images", "import", archive)


def pause_image(root):
    """What a pod's namespaces are kept open by; Kubernetes' own is in a registry."""
    tag = f"{image.TAG}-pause"
    rig.write("Containerfile.pause", 'FROM scratch\nCOPY rootfs/ /\nENTRYPOINT ["/bin/busybox", "sleep", "1000000"]\n')
    podman("build", "-q", "-f", rig.path("Containerfile.pause"), "-t", tag, os.path.dirname(root))
    return tag


def values(port, **more):
    repository, _, tag = image.TAG.rpartition(":")
    return {"image": {"repository": repository, "tag": tag}, "interval": "1s", "rate": 99,
            "export": {"endpoint": f"http://$(NODE_IP):{port}"}, **more}


def install(node, helm, given):
    node.run(helm, "upgrade", "--install", "perfwalk", CHART, "-n", "perfwalk", "--create-namespace", "-f",
             rig.write("values.yaml", yaml.safe_dump(given)))
    status, said = node.try_run("kubectl", "-n", "perfwalk", "rollout", "status", "daemonset/perfwalk", "--timeout=120s")
    if status:
        rig.fail(f"{said}\n{node.run('kubectl', '-n', 'perfwalk', 'describe', 'pods')}"[-5000:])


def in_pod(node, *argv):
    return node.run("kubectl", "-n", "perfwalk", "exec", "ds/perfwalk", "--", "perfwalk", *argv)


def start_shop(node, pod):
    node.run("kubectl", "apply", "-f", rig.write("shop.yaml", yaml.safe_dump(pod)))
    name = pod["metadata"]["name"]
    node.run("kubectl", "wait", "--for=condition=Ready", f"pod/{name}", "--timeout=120s")
    said = node.run("kubectl", "get", "pod", name, "-o", "jsonpath={.status.containerStatuses[0].containerID}")
    rig.check(said.startswith("containerd://"), f"a pod runs by containerd: {name}")
    return said.removeprefix("containerd://"), f"default/{name}/front"


def check_pod(node, container, name):
    said = in_pod(node, "check")
    words = ["perfwalk record -a works here", "capabilities     all that help", "pid namespace    "]
    rig.check(all(w in said for w in words), f"check, in the pod: {words}" + ("" if all(w in said for w in words) else said))
    rig.check("sampling" in in_pod(node, "ctl", "status"), "the liveness probe's command succeeds there")
    rows = [line.split() for line in in_pod(node, "list", "containers").splitlines()]
    rig.check([container, name] in [row[:2] for row in rows], f"list containers has {name}")


def samples(messages):
    """(resource, n) of each, n being the samples with the burner's functions."""
    return [(r, n if rig.contains_path(frames, image.PATH) else 0)
            for m in messages for r, _, frames, n in otelcol.view(m).samples()]


def pod_of(resource):
    return tuple(resource.get(f"k8s.{what}.name") for what in ("namespace", "pod", "container"))


def check_names(collector, container, name):
    wanted = tuple(name.split("/"))

    def arrived():
        return sum(n for r, n in samples(collector.messages("all")) if pod_of(r) == wanted and r["container.id"] == container)
    rig.wait_for("stacks of the other pod arrive", lambda: arrived() >= 20, 60)
    resources = [r for r, _ in samples(collector.messages("all"))]
    nodes = {(r.get("host.name"), r.get("k8s.node.name")) for r in resources}
    rig.check(nodes == {(NODE, NODE)}, f"the Collector has the stacks of {name}, from {nodes}")
    uids = {r.get("k8s.pod.uid") for r in resources if pod_of(r) == wanted}
    rig.check(len(uids) == 1 and len(uids.pop()) == 36, "and the pod's uid")
    rig.check(any(pod_of(r)[::2] == ("perfwalk", "perfwalk") for r in resources), "perfwalk's own pod has its name as well")


def check_filter(node, helm, collector, name):
    """Of the pod that takes the place of the first: what it sends is of one container alone."""
    node.run("kubectl", "-n", "perfwalk", "create", "secret", "generic", "tokens", "--from-literal=headers=X-Tenant: shop")
    given = values(collector.ports["all"])
    given["export"]["headersSecret"] = "tokens"
    install(node, helm, dict(given, filter={"include_container": name},
                               seccompProfile={"type": "Localhost", "localhostProfile": "perfwalk.json"}))
    rig.check("a filter is in force, but allows perf_event_open" in in_pod(node, "check"), "with the node's own filter of system calls")
    n = len(collector.messages("all"))
    rig.wait_for("it sends", lambda: len(collector.messages("all")) >= n + 3, 60)
    names = {pod_of(r) for r, _ in samples(collector.messages("all")[n:])}
    rig.check(names == {tuple(name.split("/"))}, f"with include_container only {names}")


def main():
    rig.need_root()
    rig.need_programs("podman", "runc", "busybox", "catatonit", "openssl", "ip", "unshare", "nsenter")
    built = subprocess.run(["sh", os.path.join(rig.HERE, "build-kubernetes.sh")], stdout=subprocess.PIPE, check=False, text=True)
    if built.returncode == 77:
        rig.skip("Kubernetes cannot be built here")
    rig.check(built.returncode == 0, "etcd, Kubernetes and containerd are there")
    helm = os.path.join(tools(), "helm")
    otelcol.binary()
    node = None
    try:
        image.build()
        root = make_rootfs()
        shop, pause = burner_pod(root), pause_image(root)
        shop["spec"]["automountServiceAccountToken"] = False
        node = Node(built.stdout.strip())
        node.start_control()
        node.start_kubelet(pause)
        load(node, (pause, f"{image.TAG}-burner", image.TAG))
        node.run("kubectl", "wait", "--for=create", f"node/{NODE}", "--timeout=120s")
        node.run("kubectl", "wait", "--for=condition=Ready", f"node/{NODE}", "--timeout=120s")
        rig.say(node.run("kubectl", "get", "nodes", "-o", "wide"))
        collector = otelcol.start({"all": ("http", "")}, ADDRESS, node.inside())
        install(node, helm, values(collector.ports["all"]))
        rig.check(True, "helm installs the chart, and its pod is ready")
        container, name = start_shop(node, shop)
        check_names(collector, container, name)
        check_pod(node, container, name)
        check_filter(node, helm, collector, name)
        node.run(helm, "uninstall", "perfwalk", "-n", "perfwalk")
        node.run("kubectl", "-n", "perfwalk", "wait", "--for=delete", "pods", "--all", "--timeout=60s")
        rig.check(True, "helm takes it away again")
    finally:
        if node:
            node.halt()
        subprocess.run(["podman", "rmi", "-f", f"{image.TAG}-burner", f"{image.TAG}-pause"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       check=False)
        image.remove()


if __name__ == "__main__":
    rig.run(main)
