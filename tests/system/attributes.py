# SPDX-License-Identifier: Apache-2.0
# Rooms: src/opener src/host src/profiler src/render src/import src/process src/config proto
"""What processes say of themselves reaches the resources of their profiles: a published process context,
their environment, Kubernetes' variables; in the order that perfwalk.conf(5) names, and nothing else. A
real collector gets them, and the rows of a report and of a capture of one service are theirs alone."""
import json
import os
import shutil
import signal
import subprocess

import otelcol
import otlp
import rig

# Other tests beside this one have services, too.
SHOP, BILLING = f"shop-{os.getpid()}", f"billing-{os.getpid()}"
SECRETS = {"SECRET": "hunter2", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=hunter2"}


class Publisher:
    def __init__(self, *pairs, environment=None, program=None, **options):
        self.process = rig.start([program or os.path.join(WORKLOADS, "published"), *pairs],
                                 env={**SECRETS, **(environment or {})}, stdout=subprocess.PIPE, text=True, **options)
        self.pid = self.process.pid
        if pairs and pairs[0] != "--":
            self.wait_published()

    def wait_published(self):
        rig.check(self.process.stdout.readline() == "published\n", f"{self.pid} has published")

    def publish_again(self):
        rig.kill(self.pid, signal.SIGUSR1)
        self.wait_published()


def resources(messages, found=None):
    """All resources of each pid, in the order in which they came; also those that were found before."""
    found = {} if found is None else found
    for message in messages:
        for resource, _, _, _ in otlp.View(otlp.decode(message)).samples():
            known = found.setdefault(resource.get("process.pid"), [])
            if resource not in known:
                known.append(resource)
    return found


def expect(resource, pid, wanted, unwanted=()):
    wrong = {k: resource.get(k) for k, v in wanted.items() if resource.get(k) != v}
    rig.check(not wrong, f"{pid} has {wanted}" + (f", but {wrong}" if wrong else ""))
    there = [k for k in unwanted if k in resource]
    rig.check(not there, f"{pid} has none of {list(unwanted)}")


def check_values(messages):
    """Nothing of the environment that nobody asked for."""
    rig.check(all(b"hunter2" not in m for m in messages), "no secret of an environment is in any message")


def config(port, more=""):
    return (f"[profiler]\nsamples_per_second = 99\nreporter_interval = 1s\n[filter]\ninclude_comm = published\n[resource]\nteam = infra\n"
            f"[export:c]\nendpoint = http://127.0.0.1:{port}\n[process]\nuser = root\n{more}")


def check_collector():
    collector = otelcol.start({"plain": ("http", "")})
    told = Publisher(f"service.name={SHOP}", "service.instance.id=i-77", "service.version=1", "process.pid=1",
                     "process.command_line=--password=hunter2", "team=shop", "container.id=ffff", "load=@double 0.1", "tags=@list a b,c", "--",
                     f"service.name={SHOP}", "service.instance.id=i-77", "service.version=2",
                     environment={"OTEL_SERVICE_NAME": "other",
                                  "OTEL_RESOURCE_ATTRIBUTES": "service.version=0,deployment.environment.name=pr%2Cod"})
    by_environment = Publisher(environment={"OTEL_SERVICE_NAME": BILLING, "OTEL_RESOURCE_ATTRIBUTES": "a=b,broken"})
    late = Publisher("--", "service.name=late", "service.instance.id=i-78")
    silent = Publisher(environment={"POD_NAME": "no-pod"})
    d = rig.Daemon(config(collector.ports["plain"]))

    found, n = {}, 0

    def last(pid):
        nonlocal n
        messages = collector.messages("plain")
        resources(messages[n:], found)
        n = len(messages)
        return found.get(pid, [{}])[-1]
    rig.wait_for("the context of a process", lambda: last(told.pid).get("service.version") == "1")
    expect(last(told.pid), "a publisher",
           {"service.name": SHOP, "service.instance.id": "i-77", "process.pid": told.pid,
            "deployment.environment.name": "pr,od", "team": "infra", "load": 0.1, "tags": ["a b", "c"], "process.executable.name": "published"},
           ("process.command_line", "container.id"))
    rig.wait_for("the environment of another", lambda: last(by_environment.pid).get("service.name") == BILLING)
    expect(last(by_environment.pid), "a broken list", {"service.name": BILLING}, ("a", "broken"))
    rig.wait_for("one that says nothing", lambda: last(silent.pid).get("service.name") == "published")
    expect(last(silent.pid), "a process in no pod", {"team": "infra"}, ("k8s.pod.name", "service.instance.id"))
    told.publish_again()
    late.publish_again()
    rig.wait_for("an update", lambda: last(told.pid).get("service.version") == "2")
    expect(last(told.pid), "the second context", {"service.name": SHOP, "deployment.environment.name": "pr,od"})
    # It has said nothing so far, and is looked at ever less often.
    rig.wait_for("a late context", lambda: last(late.pid).get("service.instance.id") == "i-78", 60)
    d.stop()
    collector.stop()
    check_values(collector.messages("plain"))
    return told, by_environment


def check_chosen(told, by_environment):
    """A capture of one service, and a report of one."""
    whole, one = rig.path("whole.pb.gz"), rig.path("one.otlp")
    rig.record_cpu(0.3, [told.pid, by_environment.pid], "-F", "199", "-o", whole)
    r = subprocess.run([rig.perfwalk(), "report", "--csv", "--sort", "service", whole], check=False,
                       capture_output=True, text=True)
    rig.check({SHOP, BILLING} <= {w for line in r.stdout.splitlines() for w in line.split("\t")},
              f"a report has a row for each service: {r.stdout.splitlines()[:6]}")
    r = subprocess.run([rig.perfwalk(), "report", "--csv", "--sort", "service,comm", "--service", f"{BILLING[:-1]}*", whole],
                       check=False, capture_output=True, text=True)
    rig.check(BILLING in r.stdout and SHOP not in r.stdout, "and of one alone it has no other")
    rig.record_cpu(0.3, [told.pid, by_environment.pid], "-F", "199", "--service", SHOP, "-o", one)
    with open(one, "rb") as f:
        found = resources([f.read()])
    rig.check(list(found) == [told.pid], f"a capture of a service has its process alone: {list(found)}")


def check_list():
    """Those that say it in a context or in their environment; this run's have names of their own. And one that says
    nothing has the name of its executable."""
    quiet = rig.path(f"quiet-{os.getpid()}")
    shutil.copy(os.path.join(WORKLOADS, "published"), quiet)
    wanted = {f"said-{os.getpid()}": Publisher(f"service.name=said-{os.getpid()}", environment={"OTEL_SERVICE_NAME": "x"}),
              f"given-{os.getpid()}": Publisher(environment={"OTEL_SERVICE_NAME": f"given-{os.getpid()}"}),
              os.path.basename(quiet): Publisher(program=quiet)}
    text = subprocess.run([rig.perfwalk(), "list", "services"], stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines()}
    for name, p in wanted.items():
        rig.check(rows.get(name) == ["-", "1", f"{name if 'quiet' in name else 'published'}[{p.pid}]"], f"list services has {name}: {rows.get(name)}")
        rig.end(p.process)


def check_list_of(name):
    """The glob means what it means to --service."""
    told = Publisher(f"service.name={name}-cart"), Publisher(f"service.name={name}-pay"), Publisher(f"service.name=x{name}-pay")
    for glob, wanted in ((f"{name}-*", {"-cart", "-pay"}), (f"{name}-p?y", {"-pay"}), (name, set())):
        p = subprocess.run([rig.perfwalk(), "list", "services", glob], stdout=subprocess.PIPE, text=True, check=True)
        rows = {line.split()[0] for line in p.stdout.splitlines()[1:]}
        rig.check(rows == {name + w for w in wanted}, f"list services {glob}: {p.stdout.splitlines()}")
    for p in told:
        rig.end(p.process)


def check_kinds():
    """Numbers and lists stay what they are, in OTLP and through a conversion; lines of JSON have texts."""
    told = Publisher("service.name=@list a,b", "load=@double 0.1", "big=@double -1e300", "tags=@list a b,c", "one=@list x")
    first, again, lines = (rig.path(f"kinds.{suffix}") for suffix in ("otlp", "again.otlp", "ndjson"))
    rig.record_cpu(0.4, [told.pid], "-F", "199", "-p", told.pid, "-o", first)
    subprocess.run([rig.perfwalk(), "convert", first, "-o", again, "-o", lines], check=True)
    wanted = {"load": 0.1, "big": -1e300, "tags": ["a b", "c"], "one": ["x"], "service.name": "published"}
    for path in (first, again):
        with open(path, "rb") as f:
            found = resources([f.read()])[told.pid]
        expect(next((r for r in found if "one" in r), found[-1]), told.pid, wanted)
    with open(lines, encoding="utf-8") as f:
        attributes = [json.loads(line)["attributes"] for line in f if "0.1" in line]
    texts = {"load": "0.1", "big": "-1e+300", "tags": "a b,c", "one": "x"}
    rig.check(attributes and all(texts.items() <= a.items() for a in attributes),
              f"lines of JSON: {attributes[:1]}")
    rig.end(told.process)


def check_unknown():
    """A form of spans that only a newer perfwalk reads is said to be unknown."""
    name = f"newer-{os.getpid()}"
    newer = Publisher(f"service.name={name}", "threadlocal.schema_version=tls_v9")
    text = subprocess.run([rig.perfwalk(), "list", "services"], stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines()}
    rig.check(rows.get(name, [""])[0] == "unknown:tls_v9", f"list services says that its form is unknown: {rows.get(name)}")
    r = rig.record_cpu(0.3, [newer.pid], "-F", "199", "-p", newer.pid, "-o", rig.path("newer.folded"))
    rig.check(f"process {newer.pid}" in r.err and '"tls_v9"' in r.err, f"a capture says why it has no spans: {r.err}")
    rig.end(newer.process)


def check_another_user():
    """A user without rights sees the environment of his own processes; of others only that they are there, if at all."""
    name, own = f"own-{os.getpid()}", f"his-{os.getpid()}"
    others = Publisher(environment={"OTEL_SERVICE_NAME": name})
    his = Publisher(environment={"OTEL_SERVICE_NAME": own}, user=65534, group=65534, extra_groups=[])
    r = subprocess.run([rig.perfwalk(), "list", "services"], check=False, capture_output=True, text=True,
                       user=65534, group=65534, extra_groups=[])
    services = {line.split()[0] for line in r.stdout.splitlines()}
    rig.check(r.returncode == 0 and own in services and name not in services,
              f"another user's environment stays hidden: {r.stderr or [s for s in services if s in (own, name)]}")
    for p in (others, his):
        rig.end(p.process)


def check_rules(told):
    collector = otelcol.start({"rules": ("http", "")})
    d = rig.Daemon(config(collector.ports["rules"],
                          "[attributes]\nallow = service.*, process.pid, process.command*\ndeny = service.instance.id\n"),
                   name="rules")
    found = rig.wait_for("resources", lambda: [r for r in resources(collector.messages("rules")).get(told.pid, [])
                                               if r.get("service.version")])
    expect(found[0], "with allow and deny", {"service.name": SHOP, "team": "infra", "process.pid": told.pid},
           ("service.instance.id", "deployment.environment.name", "process.executable.path", "host.name"))
    d.stop()
    collector.stop()


def machine_id():
    try:
        with open("/etc/machine-id", encoding="utf-8") as f:
            return f.readline().strip() or None
    except OSError:
        return None


def cloud_init(cloud, instance):
    return (f"mkdir -p /run/cloud-init /var/lib/cloud/data; echo {cloud} >/run/cloud-init/cloud-id; "
            f"echo {instance} >/var/lib/cloud/data/instance-id")


def firmware(**files):
    """The kernel's names of the machine, and EFI, by which Azure's ids have one order of bytes."""
    efi = ("mount -t tmpfs none /sys/firmware && mkdir /sys/firmware/efi; " if os.path.isdir("/sys/firmware") else "")
    return (efi + "mount -t tmpfs none /sys/class && mkdir -p /sys/class/dmi/id; "
            + "; ".join(f"echo '{text}' >/sys/class/dmi/id/{name}" for name, text in files.items()))


AZURE = "7783-7084-3265-9085-8269-3286-77"
VM_ID = "6FB7F0C1-58A0-4E6A-8E8B-0123456789AB"


def check_cloud(pid):
    """What cloud-init left of the boot, else what the firmware says, in a namespace of ours."""
    if not rig.can_mount():
        rig.leave_out("nothing can be mounted here: no cloud")
        return
    amazon = {"sys_vendor": "Amazon EC2", "board_asset_tag": "i-0123456789abcdef0"}
    clouds = [("cloud-init", cloud_init("gce", "4711"), "gcp", "4711"),
              ("cloud-init in China", cloud_init("aws-china", "i-7"), "aws", "i-7"),
              ("cloud-init before firmware", cloud_init("azure", "8") + ";" + firmware(**amazon), "azure", "8"),
              ("cloud-init without a cloud", cloud_init("nocloud", "8") + ";" + firmware(**amazon), None, None),
              ("Amazon's firmware", firmware(**amazon), "aws", "i-0123456789abcdef0"),
              ("a tag of another form", firmware(**{**amazon, "board_asset_tag": "i-none"}), "aws", None),
              ("Google's firmware", firmware(product_name="Google Compute Engine"), "gcp", None),
              ("a name that begins like Google's", firmware(product_name="Google Compute Engineer"), None, None)]
    if os.path.isdir("/sys/firmware"):
        clouds.append(("Azure's firmware", firmware(chassis_asset_tag=AZURE, product_uuid=VM_ID), "azure", VM_ID.lower()))
    collector = otelcol.start({"cloud": ("http", "")})
    for what, script, provider, host in clouds:
        n = len(collector.messages("cloud"))
        script = f'mount -t tmpfs none /run && mount -t tmpfs none /var/lib && {{ {script}; }} && exec "$@"'
        d = rig.Daemon(config(collector.ports["cloud"]), name="cloud", argv_prefix=("unshare", "-m", "sh", "-c", script, "sh"))
        wanted = (provider, host or machine_id())

        def found():
            """Those of the daemon before this one can still be on their way."""
            return {(r.get("cloud.provider"), r.get("host.id")) for r in resources(collector.messages("cloud")[n:]).get(pid, ())}  # noqa: B023
        rig.wait_for(f"{what}: {wanted}", lambda: wanted in found())  # noqa: B023
        rig.check(wanted in found(), f"{what}: {wanted}")
        d.stop()
    collector.stop()


def main():
    global WORKLOADS
    rig.need_root()
    WORKLOADS = rig.build_workloads("published")
    told, by_environment = check_collector()
    check_list()
    check_list_of(f"named-{os.getpid()}")
    check_unknown()
    check_kinds()
    check_another_user()
    check_chosen(told, by_environment)
    check_rules(told)
    check_cloud(told.pid)


if __name__ == "__main__":
    rig.run(main)
