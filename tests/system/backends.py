# SPDX-License-Identifier: Apache-2.0
"""Pyroscope and Parca themselves take what the daemon sends, and tell through their query interfaces
what they have understood: for every program and type each stack of names with its samples or its sum,
held against what the daemon has kept on the host. Parca also pulls a pprof from [metrics].
`make check-backends`; it takes minutes to build the servers, once (build-backends.sh)."""
import base64
import collections
import glob
import gzip
import json
import os
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import yaml

import alloc_model
import otlp
import rig

RATE = 99
PERIOD = round(1e9 / RATE)
TENANTS = ("http", "json", "grpc", "cut")  # the last gets each window in parts


def build(name):
    p = subprocess.run(["sh", os.path.join(rig.HERE, "build-backends.sh"), name], check=False,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if p.returncode != 0:
        return None, p.stderr.strip().splitlines()[-1] if p.stderr else f"exit status {p.returncode}"
    return p.stdout.strip(), None


def ask(url, body=None, **headers):
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=120) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as e:
        rig.fail(f"{url}: {e.code} {e.read()[:500]}")


def is_up(url):
    try:
        with urllib.request.urlopen(url, timeout=120):
            return True
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


class Server:
    """A process, its log and when it is ready."""

    def __init__(self, name, argv, ready):
        self.log_name = rig.path(f"{name}.log")
        directory = rig.path(name)
        os.makedirs(directory, exist_ok=True)
        with open(self.log_name, "wb") as log:
            self.process = rig.start(argv, cwd=directory, stdout=log, stderr=log)
        try:
            rig.wait_for(f"{name} is ready", lambda: self.look(name) and is_up(ready), 90)
        except rig.Failure:
            rig.say(self.log()[-3000:])
            raise

    def look(self, name):
        if self.process.poll() is not None:
            rig.fail(f"{name} ended with {self.process.returncode}: {self.log()[-3000:]}")
        return True

    def log(self):
        with open(self.log_name, encoding="utf-8", errors="replace") as f:
            return f.read()


# ---- What was sent ----


def frame_names(names):
    """Frames without a name are the backend's to show."""
    return tuple("?" if not n or re.fullmatch(r"(\[.*\+)?0x[0-9a-f]+\]?", n) else n for n in names)


def kept(directory):
    """{type: {service.name: {stack of names: value}}} of the local store; {type: unit}; and {(service.name, type): resources}."""
    found, units = collections.defaultdict(lambda: collections.defaultdict(collections.Counter)), {}
    resources = collections.defaultdict(set)
    for name in sorted(glob.glob(directory + "/*.gz")):
        with gzip.open(name) as f:
            view = otlp.View(otlp.decode(without_memory(f.read())))
        for resource, kind, unit, frames, n in typed_samples(view):
            found[kind][resource["service.name"]][frame_names(frames)] += n
            units[kind] = unit
            resources[resource["service.name"], kind].add(repr(sorted(x for x in resource.items() if x[0] not in OF_A_PROCESS)))
    return found, units, resources


MEMORY_FIELD = 15
OF_A_PROCESS = ("process.pid", "process.creation.time")


def without_memory(data):
    """A file of the store without what it has beside OTLP."""
    found, at = b"", 0
    while at < len(data):
        tag, start = otlp.varint(data, at, len(data))
        n, begin = otlp.varint(data, start, len(data))
        if tag >> 3 != MEMORY_FIELD:
            found += data[at:begin + n]
        at = begin + n
    return found


def typed_samples(view):
    """Samples that are counted have the name of their event as the type of the period; those of CPU time are "samples"."""
    for rp in view.message.resource_profiles:
        resource = otlp.attributes(rp.resource, view.strings)
        for profile in (p for sp in rp.scope_profiles for p in sp.profiles):
            kind, unit, period = (view.strings[i] for i in (profile.sample_type.type_strindex, profile.sample_type.unit_strindex,
                                                            profile.period_type.type_strindex))
            kind = period if kind == "samples" and period != "cpu" else kind
            for s in profile.samples:
                yield resource, kind, unit, view.frames(s.stack_index), sum(s.values) or len(s.timestamps_unix_nano)


def check_same(what, sent, got, services):
    """Samples per stack of names, of each of the programs."""
    for service in services:
        a, b = sent[service], got(service)
        wrong = sorted(((k, a[k], b[k]) for k in a.keys() | b.keys() if a[k] != b[k]), key=repr)
        rig.check(not wrong and a, f"{what}: {service}: {sum(b.values())} of {sum(a.values())} in {len(b)} stacks of {len(a)}, each with its "
                  "names" + "".join(f"\n    sent {n}, there {m}: {';'.join(k)}" for k, n, m in wrong[:6]))


def samples_of(nanoseconds):
    """Both make CPU time out of samples and the period, and exactly that."""
    if any(v % PERIOD for v in nanoseconds.values()):
        rig.fail(f"values that are no multiples of {PERIOD}: {nanoseconds.most_common(3)}")
    return collections.Counter({k: v // PERIOD for k, v in nanoseconds.items()})


# ---- Pyroscope ----


def start_pyroscope(binary):
    http, grpc, members, admin, raft = (rig.free_port() for _ in range(5))
    options = {
        "architecture.storage": "v2", "auth.multitenancy-enabled": "true",
        "server.http-listen-address": "127.0.0.1", "server.http-listen-port": http,
        "server.grpc-listen-address": "127.0.0.1", "server.grpc-listen-port": grpc, "admin-server.http-listen-port": admin,
        "memberlist.bind-addr": "127.0.0.1", "memberlist.bind-port": members, "memberlist.advertise-addr": "127.0.0.1",
        "metastore.address": f"127.0.0.1:{grpc}", "query-backend.address": f"127.0.0.1:{grpc}",
        "metastore.raft.bind-address": f"127.0.0.1:{raft}", "metastore.raft.advertise-address": f"127.0.0.1:{raft}",
        "metastore.raft.server-id": f"127.0.0.1:{raft}", "segment-writer.lifecycler.addr": "127.0.0.1",
        "ingester.lifecycler.addr": "127.0.0.1", "store-gateway.sharding-ring.instance-addr": "127.0.0.1",
        **{f"{x}.instance-{k}": v for x in ("compactor.ring", "distributor.ring", "overrides-exporter.ring", "query-frontend",
                                            "query-scheduler.ring") for k, v in (("interface-names", "lo"), ("addr", "127.0.0.1"))},
        "self-profiling.disable-push": "true", "usage-stats.enabled": "false",
    }
    # Those of another version are not known to it.
    known = subprocess.run([binary, "-help-all"], capture_output=True, text=True, check=False)
    options = {k: v for k, v in options.items() if re.search(rf"^ +-{re.escape(k)}\b", known.stdout + known.stderr, re.M)}
    Server("pyroscope", [binary, *(f"-{k}={v}" for k, v in options.items())], f"http://127.0.0.1:{http}/ready")
    return http


def of_pprof(profile):
    """{stack of names: value} of a pprof in JSON."""
    strings = profile["stringTable"]
    names = {f["id"]: strings[int(f.get("name", 0))] for f in profile.get("function", [])}
    lines = {l["id"]: [names[x["functionId"]] for x in reversed(l.get("line", []))] or ["?"]
             for l in profile.get("location", [])}
    found = collections.Counter()
    for s in profile.get("sample", []):
        stack = [n for i in reversed(s["locationId"]) for n in lines[i]]
        found[frame_names(stack)] += int(s["value"][0])
    return found


def pyroscope(port, tenant, call, begin, **query):
    return ask(f"http://127.0.0.1:{port}/querier.v1.QuerierService/{call}",
               {"start": int(begin * 1000), "end": int(time.time() * 1000) + 1000, **query}, **{"X-Scope-OrgID": tenant})


def pyroscope_kind(port, tenant, kind, begin):
    """The type of profiles that it makes of what is sent as that."""
    for t in pyroscope(port, tenant, "ProfileTypes", begin).get("profileTypes", []):
        period = t.get("periodType")  # off-CPU time has none
        if (t["sampleType"], period) == ("cpu", "cpu") if kind == "samples" else kind in (
                t["sampleType"], period if t["sampleType"] == "samples" else None):
            return t
    return None


def pyroscope_has(port, tenant, kind, service, begin):
    return of_pprof(pyroscope(port, tenant, "SelectMergeProfile", begin, profileTypeID=kind,
                              labelSelector=f'{{service_name="{service}"}}', maxNodes=1 << 20))


def pyroscope_sections(port):
    protocols = {"http": "http/protobuf", "json": "http/json", "grpc": "grpc", "cut": "http/protobuf\nmax_request_size = 16K"}
    return "".join(f"[export:pyroscope-{t}]\nendpoint = http://127.0.0.1:{port}\nprotocol = {protocols[t]}\n"
                   f"preset = pyroscope\nheaders = X-Scope-OrgID={t}\n" for t in TENANTS)


def settled(condition, seconds=60):
    """Waits as long as that for what is compared in any case."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.5)


def check_pyroscope_type(port, tenant, sent, units, kind, begin):
    t = rig.wait_for(f"Pyroscope knows {kind}", lambda: pyroscope_kind(port, tenant, kind, begin), 60)
    rig.check(t["sampleUnit"] == ("nanoseconds" if kind == "samples" else units[kind]), f"Pyroscope, {tenant}: {t['ID']}, sent in {units[kind]}")

    def has(service):
        found = pyroscope_has(port, tenant, t["ID"], service, begin)
        return samples_of(found) if kind == "samples" else found
    services = sorted(sent[kind])
    for service in services:
        total = sum(sent[kind][service].values())
        settled(lambda s=service, n=total: sum(has(s).values()) >= n)
    check_same(f"Pyroscope, {tenant}, {kind}", sent[kind], has, services)


def check_pyroscope(port, sent, units, resources, begin):
    for tenant in TENANTS:
        for kind in sorted(sent):
            check_pyroscope_type(port, tenant, sent, units, kind, begin)
    check_dashboard(port, sent, begin)
    # A series for each program: "waits" has a dozen threads, and hundreds of processes.
    for service in sorted({name for name, _ in resources}):
        series = pyroscope(port, "http", "Series", begin, matchers=[f'{{service_name="{service}"}}'], labelNames=[])["labelsSet"]
        programs = sum(len(found) for (name, _), found in resources.items() if name == service)
        rig.check(0 < len(series) <= programs, f"Pyroscope: {service}: {len(series)} series of {programs} programs and types")


def check_dashboard(port, sent, begin):
    """What Grafana's data source asks of Pyroscope for etc/fleet/profiles.json has as much as was sent. It puts {} behind the
    type for the values of a label, of which Pyroscope takes a name alone."""
    with open(os.path.join(rig.TOP, "etc/fleet/profiles.json"), encoding="utf-8") as f:
        dashboard = json.load(f)
    for variable in (v for v in dashboard["templating"]["list"] if v["type"] == "query"):
        query = variable["query"]
        names = pyroscope(port, "http", "LabelValues", begin, name=query["labelName"], matchers=[query["profileTypeId"] + "{}"])["names"]
        wanted = set(sent["samples"]) if variable["name"] == "service" else set(names)
        rig.check(names and wanted <= set(names), f"dashboard: {variable['label']}: {', '.join(sorted(names))}")
    for panel in dashboard["panels"]:
        (target,) = panel["targets"]
        kind = target["profileTypeId"].split(":")[1]
        service = {"cpu": "chain", "off_cpu": "waits", "alloc_space": "leak"}[kind]
        query = {"profileTypeID": target["profileTypeId"],
                 "labelSelector": target["labelSelector"].replace("$service", service).replace("$host", ".*")}
        if target["queryType"] == "metrics":
            series = pyroscope(port, "http", "SelectSeries", begin, step=15, groupBy=target["groupBy"], **query)["series"]
            labels = {x["name"] for s in series for x in s["labels"]}
            rig.check(labels == set(target["groupBy"]), f"dashboard: {panel['title']}: {len(series)} series by {labels}")
            continue
        found = int(pyroscope(port, "http", "SelectMergeStacktraces", begin, maxNodes=1 << 20, **query)["flamegraph"]["total"])
        wanted = sum(sent["samples"][service].values()) * PERIOD if kind == "cpu" else sum(sent[kind][service].values())
        rig.check(found == wanted > 0, f"dashboard: {panel['title']} of {service}: {found} of {wanted}")


# ---- Parca ----


def start_parca(binary, metrics):
    port = rig.free_port()
    with open(os.path.join(rig.TOP, "etc/fleet/parca.yaml"), encoding="utf-8") as f:
        ours = yaml.safe_load(yaml.safe_load(f)["configs"]["parca"]["content"])
    ours["object_storage"]["bucket"]["config"]["directory"] = rig.path("parca-data")
    pprof = {name: {"enabled": False} for name in ("memory", "block", "goroutine", "mutex")}
    pprof["process_cpu"] = {"enabled": True, "delta": True, "path": "/debug/pprof/profile"}
    ours["scrape_configs"] = [{"job_name": "pulled", "scrape_interval": "3s", "profiling_config": {"pprof_config": pprof},
                               "static_configs": [{"targets": [f"127.0.0.1:{metrics}"]}]}]
    config = rig.write("parca.yaml", yaml.safe_dump(ours))
    Server("parca", [binary, f"--config-path={config}", f"--http-address=127.0.0.1:{port}"],
           f"http://127.0.0.1:{port}/api/profiles/types")
    return port


def parca(port, path, **query):
    return ask(f"http://127.0.0.1:{port}/api/profiles/{path}?" + urllib.parse.urlencode(
        {k.replace("__", "."): v for k, v in query.items()}))


def parca_kind(port, name, sample_type="samples"):
    """The type of profile of that name; as the query language has it."""
    for t in parca(port, "types").get("types", []):
        counted = t["sampleType"] == "samples" and t["periodType"] == sample_type
        if t["name"] == name and (counted or t["sampleType"] == sample_type and (sample_type != "samples" or t["periodType"] == "cpu")):
            return ":".join([name, t["sampleType"], t["sampleUnit"], t["periodType"], t["periodUnit"]]
                            + (["delta"] if t.get("delta") else []))
    return None


def parca_has(port, kind, label, value, begin):
    def stamp(t):
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(t))
    reply = parca(port, "query", mode="MODE_MERGE", report_type="REPORT_TYPE_PPROF",
                  merge__query=f'{kind}{{{label}="{value}"}}', merge__start=stamp(begin - 1),
                  merge__end=stamp(time.time() + 2))
    name = rig.path("parca.pb.gz")
    with open(name, "wb") as f:
        f.write(base64.b64decode(reply["pprof"]))
    return raw_pprof(name)


def raw_pprof(name):
    """{stack of names: value} by go tool pprof."""
    text = subprocess.run(["go", "tool", "pprof", "-raw", name], capture_output=True, text=True, check=True).stdout
    samples, _, rest = text.partition("\nSamples:\n")[2].partition("\nLocations\n")
    locations = collections.defaultdict(list)
    at = None
    for line in rest.partition("\nMappings\n")[0].splitlines():
        m = re.match(r"\s+(\d+): 0x[0-9a-f]+ (?:M=\d+ )?(.*)$", line)
        at, text = (m[1], m[2]) if m else (at, line.strip())
        m = re.match(r"(.*?) \S*:\d+(?::\d+)? s=\d+", text)
        locations[at].insert(0, m[1] if m else "?")
    found = collections.Counter()
    for m in re.finditer(r"^\s+(\d+)(?:\s+\d+)?: ([\d ]*)$", samples, re.M):
        stack = [n for i in reversed(m[2].split()) for n in locations[i]]
        found[frame_names(stack)] += int(m[1])
    return found


def check_parca_type(port, sent, units, sample_type, begin):
    kind = rig.wait_for(f"Parca knows {sample_type}", lambda: parca_kind(port, "perfwalk", sample_type), 30)
    rig.check(kind.split(":")[2] == units[sample_type], f"Parca: {kind}, sent in {units[sample_type]}")

    def has(service):
        found = parca_has(port, kind, "service_name", service, begin)
        return samples_of(found) if sample_type == "samples" else found
    services = sorted(sent[sample_type])
    for service in services:
        total = sum(sent[sample_type][service].values())
        rig.wait_for(f"Parca has all {sample_type} of {service}", lambda s=service, n=total: sum(has(s).values()) >= n, 60)
    check_same(f"Parca, {sample_type}", sent[sample_type], has, services)


def check_parca(port, sent, units, begin):
    for sample_type in sorted(sent):
        check_parca_type(port, sent, units, sample_type, begin)
    labels = parca(port, "labels").get("labelNames", [])
    rig.check({"service_name", "thread_name"} <= set(labels), f"Parca: labels: {', '.join(sorted(labels))}")


def check_pulled(port, begin):
    """What Parca pulled by itself has the workload in it."""
    path = ["main", "chain_one", "chain_two", "chain_three", "chain_four", "chain_five"]

    def found():
        kind = parca_kind(port, "process_cpu")
        stacks = parca_has(port, kind, "job", "pulled", begin) if kind else {}
        return sum(n for k, n in stacks.items() if rig.contains_path(list(k), path))
    n = rig.wait_for("Parca has pulled a profile", found, 40)
    rig.check(n > 0, f"Parca: {n / 1e9:.2f} s of the workload in what it has pulled")


# ---- All of it ----

# Two daemons one after the other, for not all of these go together: its config, and what runs meanwhile.
TIMES = """memory_growth = yes
[off_cpu]
enabled = yes
locks = yes
wall = yes
"""
MEMORY = """[alloc]
enabled = yes
"""
PROGRAMS = ("chain", "cxx", "waits", "leak")
TYPES = {"samples", "off_cpu", "lock_wakeups", "wall", "memory_growth", "alloc_space", "alloc_objects", "inuse_space",
         "inuse_objects"}


def send(name, more, exports, programs, directory):
    """Lets a daemon export what programs do for some windows: the directory with what it kept."""
    store = rig.path(f"{name}.store")
    started = [rig.start(argv, cwd=directory, stdout=subprocess.DEVNULL, env={**os.environ, **environment})
               for argv, environment in programs]
    daemon = rig.Daemon(f"[profiler]\nreporter_interval = 2s\nsamples_per_second = {RATE}\n{more}[filter]\n"
                        f"include_comm = {', '.join(PROGRAMS)}\n[store]\nenabled = yes\npath = {store}\n{exports}", name=name)
    daemon.wait_up()
    rig.wait_for("three windows", lambda: len(glob.glob(store + "/*.gz")) >= 3, 30)
    # On a busy host a server may take seconds for a payload: what comes meanwhile waits in the spool.
    rig.wait_for("all is sent that was spooled", lambda: not any(
        int(n) for key, n in daemon.status().items() if key.endswith(".spool_payloads")), 120)
    rig.check(daemon.stop()[0] == 0, f"{name}: the daemon leaves with 0")
    told = [l for l in daemon.log().splitlines() if "export:" in l and "does not accept profiles for now" not in l
            and "the spool is empty again" not in l]
    rig.check(not told, f"{name}: and had nothing else to say of its destinations {told}")
    for p in started:
        rig.end(p)
    return store


def main():
    rig.need_root()
    rig.need_allocations()
    os.environ["PATH"] += ":/usr/local/go/bin"
    rig.need_programs("go")
    binaries, missing = {}, []
    for name in ("pyroscope", "parca"):
        binaries[name], why = build(name)
        if not binaries[name]:
            missing.append(f"{name}: {why}")
    if not any(binaries.values()):
        rig.skip("; ".join(missing))
    for text in missing:
        rig.say(f"left out: {text}")
    pyroscope_port = start_pyroscope(binaries["pyroscope"]) if binaries["pyroscope"] else None
    metrics = rig.free_port()
    parca_port = start_parca(binaries["parca"], metrics) if binaries["parca"] else None
    directory, begin = rig.build_workloads(*PROGRAMS), time.time()
    exports = (pyroscope_sections(pyroscope_port) if pyroscope_port else "") + (
        f"[export:parca]\nendpoint = http://127.0.0.1:{parca_port}\nprotocol = grpc\npreset = parca\n" if parca_port else "")
    library = {"LD_PRELOAD": alloc_model.library(), "PERFWALK_ALLOC_BYTES": "65536"}
    memory, memory_units, memory_resources = kept(send("memory", MEMORY, exports, [(("sh", "-c", "while ./leak 500; do :; done"), library)], directory))
    sent, units, resources = kept(send("times", TIMES, exports + f"[metrics]\nlisten = 127.0.0.1:{metrics}\n",
                                       [(("./chain",), {}), (("./cxx",), {}), (("./waits", "100000"), {})], directory))
    for kind in memory:
        for service in memory[kind]:
            sent[kind][service] += memory[kind][service]
            resources[service, kind] |= memory_resources[service, kind]
    units.update(memory_units)
    rig.check(set(sent) == TYPES, f"types: {', '.join(f'{k} in {u}' for k, u in sorted(units.items()))}")
    rig.check({"chain", "cxx"} <= set(sent["samples"]), f"programs: {sorted(sent['samples'])}")
    if pyroscope_port:
        check_pyroscope(pyroscope_port, sent, units, resources, begin)
    if parca_port:
        check_parca(parca_port, sent, units, begin)
        check_pulled(parca_port, begin)


rig.run(main)
