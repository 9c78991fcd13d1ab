# SPDX-License-Identifier: Apache-2.0
# Rooms: src/render src/exporter src/metrics
"""The files of docs/fleet.md, run. Known profiles and a real one as lines of JSON: each line against a model; in
ClickHouse's engine, where the queries of etc/fleet/clickhouse.sql find the sums of the model and of perfwalk report. The
gateway: a real Collector with etc/fleet/gateway.yaml, killed while its backend is away, has lost nothing. The alerts by
promtool; one dashboard asks for metrics that the daemon has, and both are as Grafana's schemas say."""
import collections
import csv
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request

import yaml

import otelcol
import rig
from pprof_file import pprof

FLEET = os.path.join(rig.TOP, "etc/fleet")
TYPES, PERIOD = [("samples", "count"), ("cpu", "nanoseconds")], ("cpu", "nanoseconds", 10_000_000)
KEYS = ["start", "end", "host", "type", "unit", "value", "samples", "service", "process", "pid", "executable", "thread", "tid",
        "container", "container_name", "systemd_unit", "attributes", "stack", "modules"]
START_NS, LENGTH_NS = 1_790_000_000_123_456_000, 10_500_000_000  # 2026-09-21T14:13:20Z
ASK = """
import json, sys
from chdb import session
s = session.Session()
for sql, params in json.load(sys.stdin):
    r = s.query(sql, "JSONCompact", params=params)
    print(json.dumps(json.loads(r.data())["data"] if r.data() else None))
"""


# ---- Profiles that are known ----

def known():
    """Of two versions of a service and another: (version, process, container, stack from the root, samples)."""
    return [("1.0", "shop", "web-1", ("main", "serve", "parse"), 30), ("1.0", "shop", "web-1", ("main", "serve", "sort", "sort", "cmp"), 50),
            ("1.0", "shop", "web-1", ("main", "idle;\"er\\"), 20), ("2.0", "shop", "web-2", ("main", "serve", "parse"), 30),
            ("2.0", "shop", "web-2", ("main", "serve", "sort", "cmp"), 10), ("2.0", "shop", "web-2", ("main", "serve", "hash"), 10),
            ("", "batch", "", ("main", "größe"), 7)]


def make_known():
    samples = []
    for i, (version, process, container, stack, n) in enumerate(known()):
        labels = [("comm", process), ("pid", (100 + i, "")), ("tid", (200 + i, "")), ("thread", f"t{i}"), ("service.name", f"{process}-service")]
        labels += [("container_name", container), ("container", "c0ffee" + container)] if container else []
        labels += [("service.version", version)] if version else []
        samples.append((stack[::-1], [n, n * PERIOD[2]], labels))
    return pprof("known.pb.gz", samples, TYPES, period=PERIOD, time=START_NS, duration=LENGTH_NS)


def convert(source, suffix):
    out = rig.path(os.path.basename(source) + suffix)
    p = subprocess.run([rig.perfwalk(), "convert", source, "-o", out], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if p.returncode != 0:
        rig.fail(f"convert {source} to {suffix}: {p.stdout}")
    return out


def rows_of(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def check_lines(source):
    path = convert(source, ".ndjson")
    rows = rows_of(path)
    rig.check(all(list(r) == KEYS for r in rows), f"{len(rows)} lines, each an object with the same {len(KEYS)} keys")
    wanted = [{"start": "2026-09-21T14:13:20.123456Z", "end": "2026-09-21T14:13:30.623456Z", "type": "cpu", "unit": "nanoseconds",
               "value": n * PERIOD[2], "samples": n, "service": f"{process}-service", "process": process, "pid": 100 + i,
               "thread": f"t{i}", "tid": 200 + i, "container": "c0ffee" + container if container else "", "container_name": container,
               "attributes": {"service.name": f"{process}-service", **({"service.version": version} if version else {})},
               "stack": list(stack)} for i, (version, process, container, stack, n) in enumerate(known())]
    got = [{k: r[k] for k in wanted[0]} for r in rows]
    wrong = [(w, g) for w, g in zip(wanted, got) if w != g]
    rig.check(len(rows) == len(wanted) and not wrong, "each says what the profile holds" + (f": {wrong[:1]}" if wrong else ""))
    return path


# ---- ClickHouse ----

def queries():
    with open(os.path.join(FLEET, "clickhouse.sql"), encoding="utf-8") as f:
        return dict(re.findall(r"-- (\w+): .*\n((?:[^;]|;(?!\n))*);\n", f.read()))


def ask(files, asked):
    """The answers of ClickHouse's engine to queries by name, with those files in the table."""
    p = subprocess.run(["sh", os.path.join(rig.HERE, "fetch-chdb.sh")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if p.returncode == 77:
        rig.skip(p.stderr.strip())
    rig.check(p.returncode == 0, "chdb is there" + ("" if p.returncode == 0 else p.stderr[-1000:]))
    sql = queries()
    insert = ("INSERT INTO profiles SELECT * FROM file('{}', JSONEachRow) SETTINGS date_time_input_format = 'best_effort'")
    script = [(sql["create"], {}), *((insert.format(f), {}) for f in files), *((sql[name], params) for name, params in asked)]
    a = subprocess.run([p.stdout.strip(), "-c", ASK], input=json.dumps(script), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       check=False, cwd=rig.workdir(), timeout=300)
    if a.returncode != 0:
        rig.fail(f"ClickHouse: {a.stderr[-1500:]}")
    return [json.loads(line) for line in a.stdout.splitlines()][1 + len(files):]


def report(source):
    """perfwalk's own sums by function: samples of their own, and the share of all with what they call."""
    p = subprocess.run([rig.perfwalk(), "report", "--csv", "--sort", "symbol", "--percent-limit", "0", source], stdout=subprocess.PIPE,
                       stderr=subprocess.DEVNULL, text=True, check=True)
    rows = list(csv.DictReader(io.StringIO(p.stdout), delimiter="\t"))
    return {r["SYMBOL"]: int(r["value"]) for r in rows if int(r["value"])}, {r["SYMBOL"]: float(r["total"]) for r in rows}


def record():
    chain = rig.start(["./chain", "30"], cwd=rig.build_workloads("chain"))
    out = rig.path("real.otlp")
    r = rig.record("-p", str(chain.pid), "-d", "2", "-F", "199", "-o", out, "-o", rig.path("direct.ndjson"))
    rig.check(r.status == 0, "a capture, with lines of JSON as well")
    rig.end(chain)
    direct, converted = rows_of(rig.path("direct.ndjson")), rows_of(convert(out, ".ndjson"))

    def brief(rows):
        return sorted((r["value"], r["samples"], r["tid"], r["stack"], r["modules"], r["executable"]) for r in rows)
    rig.check(brief(direct) == brief(converted), f"its {len(direct)} lines are those of its OTLP file, converted")
    return out


def check_clickhouse(source, lines):
    real = record()
    day = {"type": "cpu", "day": "2026-09-21 00:00:00", "rows": 100}
    shop = {"type": "cpu", "service": "shop-service", "rows": 100}
    top, totals, diff, hours, folded = ask([lines], [
        ("top", day), ("totals", shop), ("diff", {**shop, "before": "1.0", "after": "2.0"}),
        ("container", {"name": "web-1", "week": "2026-09-20 00:00:00"}), ("folded", {"type": "cpu", "service": "shop-service"})])
    self_of, total_of, shares = collections.Counter(), collections.Counter(), {"1.0": collections.Counter(), "2.0": collections.Counter()}
    for version, process, _, stack, n in known():
        self_of[f"{process}-service", stack[-1]] += n * PERIOD[2]
        if process == "shop":
            shares[version][stack[-1]] += n
            total_of.update({f: n * PERIOD[2] for f in set(stack)})
    rig.check({(r[0], r[1]): int(r[3]) for r in top} == dict(self_of), f"top: {len(top)} functions by service, as the model")
    rig.check({r[0]: int(r[1]) for r in totals} == dict(total_of), "totals: a function that calls itself counts once")
    part = {v: {f: round(100 * n / sum(c.values()), 2) for f, n in c.items()} for v, c in shares.items()}
    wanted = {f: (part["1.0"].get(f, 0), part["2.0"].get(f, 0)) for f in part["1.0"] | part["2.0"]}
    rig.check({r[0]: (r[1], r[2]) for r in diff} == wanted and all(abs(r[2] - r[1] - r[3]) < 0.011 for r in diff), "diff: of two versions")
    rig.check(hours == [["2026-09-21 14:00:00", 1.0]], f"container: by hour: {hours}")
    with open(convert(source, ".folded"), encoding="utf-8") as f:
        stacks = sorted(line.rstrip("\n") for line in f if line.startswith("shop;"))
    added = collections.Counter()
    for line in stacks:
        added[line.rpartition(" ")[0]] += int(line.rpartition(" ")[2])
    rig.check(sorted(r[0] for r in folded) == sorted(f"{s} {n}" for s, n in added.items()), "folded: perfwalk's own folded stacks")
    check_real(real)


def check_real(real):
    lines = rig.path("real.otlp.ndjson")
    (first, *_) = rows_of(lines)
    top, totals = ask([lines], [("top", {"type": "cpu", "day": first["start"][:10] + " 00:00:00", "rows": 10000}),
                                ("totals", {"type": "cpu", "service": first["service"], "rows": 10000})])
    period = first["value"] // first["samples"]
    own = collections.Counter()
    for row in top:
        own[row[1]] += int(row[3]) // period
    self_of, total_of = report(real)
    rig.check(dict(own) == self_of, f"a real capture: {len(own)} functions with perfwalk report's own sums")
    n = sum(own.values())
    rig.check({r[0]: round(100 * int(r[1]) / period / n, 4) for r in totals} == total_of, f"and the totals of {len(totals)}")


# ---- The gateway ----

class Gateway:
    def __init__(self, backend):
        self.port, self.queue = rig.free_port(), rig.path("queue")
        self.env = {**os.environ, "GATEWAY_QUEUE": self.queue, "GATEWAY_GRPC": f"127.0.0.1:{rig.free_port()}",
                    "GATEWAY_HTTP": f"127.0.0.1:{self.port}", "GATEWAY_BACKEND": f"http://127.0.0.1:{backend}"}
        self.start()

    def log(self):
        with open(rig.path("gateway.log"), encoding="utf-8") as f:
            return f.read()

    def start(self):
        with open(rig.path("gateway.log"), "wb") as log:
            self.process = rig.start([otelcol.binary(), "--config", os.path.join(FLEET, "gateway.yaml"),
                                      "--feature-gates=+service.profilesSupport", "--set=service.telemetry.metrics.level=none"],
                                     stdout=log, stderr=log, env=self.env)
        rig.wait_for("the gateway is ready", lambda: "Everything is ready" in self.log() or self.process.poll() is not None, 30)
        rig.check(self.process.poll() is None, "the gateway runs" + ("" if self.process.poll() is None else self.log()[-1500:]))


def check_gateway():
    backend = otelcol.start({"all": ("http", "")})
    backend.stop()  # away, with its port
    gateway = Gateway(backend.ports["all"])
    rig.start(["./chain", "30"], cwd=rig.build_workloads("chain"))
    daemon = rig.Daemon(f"[profiler]\nreporter_interval = 1s\n[export:gateway]\nendpoint = http://127.0.0.1:{gateway.port}\n")
    daemon.wait_up()
    name = "export.gateway."
    rig.wait_for("the gateway takes three windows", lambda: int(daemon.status()[name + "payloads_sent"]) >= 3, 60)
    for command in ("pause", "flush"):  # nothing more is made, and what was made is taken
        subprocess.run([rig.perfwalk(), "ctl", "-s", daemon.control, command], stdout=subprocess.DEVNULL, check=True, timeout=120)
    rig.wait_for("the gateway takes the last", lambda: int(daemon.status()[name + "queue_payloads"]) == 0, 60)
    sent, requests = (int(daemon.status()[name + key]) for key in ("samples_sent", "payloads_sent"))
    rig.end(gateway.process, signal.SIGKILL)
    daemon.stop()
    rig.check(not backend.messages("all") and sent > 0, f"the gateway took {sent} samples, while its backend was away, and was killed")
    backend.start()
    gateway.start()
    rig.wait_for("they arrive", lambda: otelcol.count(backend.messages("all")) >= sent, 60)
    rig.check(otelcol.count(backend.messages("all")) == sent, f"all {sent} arrive at the backend, from the queue on disk")
    joined = len(backend.messages("all"))
    rig.check(joined < requests, f"{requests} requests are joined: {joined} at the backend")


def check_simulator():
    """tests/bench/fleet.py: each host sends a window under a name of its own, or one that a daemon's store has."""
    window, collector = rig.path("window.otlp"), otelcol.start({"all": ("http", "")})
    rig.record("-d", "1", "-F", "199", "-o", window, "--", "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
    with open(window, "rb") as f:
        data = f.read()
    n, stored = otelcol.count([data]), rig.path("stored.otlp.gz")
    with gzip.open(stored, "wb") as f:
        f.write(data + b"\x7a\x03abc")  # what the store has beside OTLP, in a field of its own
    p = subprocess.run([sys.executable, os.path.join(rig.TOP, "tests/bench/fleet.py"), "--hosts", "8", "--interval", "1", "--seconds", "2",
                        "--slow", "60", "--endpoint", f"http://127.0.0.1:{collector.ports['all']}", window, stored],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=300)
    rig.check(p.returncode == 0, f"the simulator: {p.stdout.strip()[-300:]}")
    collector.stop()
    hosts = collections.Counter()
    for m in collector.messages("all"):
        for resource, _, _, count in otelcol.view(m).samples():
            hosts[resource["host.name"]] += count
    rig.check(hosts == {f"host-{i:05}": 2 * n for i in range(8)}, f"8 hosts sent {n} samples twice, each under its name"
              + ("" if len(hosts) == 8 else f": {hosts}"))


# ---- Prometheus ----

def promtool(*argv, **options):
    p = subprocess.run(["sh", os.path.join(rig.HERE, "fetch-promtool.sh")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if p.returncode == 77:
        rig.skip(p.stderr.strip())
    return subprocess.run([p.stdout.strip(), *argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)


def metrics_of_daemon():
    port = rig.free_port()
    daemon = rig.Daemon(f"[metrics]\nlisten = 127.0.0.1:{port}\n[export:nowhere]\nendpoint = http://127.0.0.1:{rig.free_port()}\n", "metrics")
    daemon.wait_up()

    def read():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=120) as r:
                return r.read().decode()
        except OSError:
            return ""
    text = rig.wait_for("/metrics answers", read, 30)
    daemon.stop()
    return set(re.findall(r"^(perfwalk_\w+)", text, re.M))


def check_scraping():
    """The Prometheus of pyroscope.yaml asks a daemon that listens as the file says."""
    with open(os.path.join(FLEET, "pyroscope.yaml"), encoding="utf-8") as f:
        text = f.read()
    config = yaml.safe_load(yaml.safe_load(text)["configs"]["prometheus"]["content"])
    rig.check(config["rule_files"] == ["/etc/prometheus/alerts.yaml"], "its rules are those of alerts.yaml")
    config["rule_files"] = [os.path.join(FLEET, "alerts.yaml")]
    p = promtool("check", "config", rig.write("prometheus.yml", yaml.safe_dump(config)))
    targets = [t for job in config["scrape_configs"] for s in job["static_configs"] for t in s["targets"]]
    listen = re.search(r"listen = (\S+?)[.,]?\s", text)
    rig.check(p.returncode == 0 and targets == [listen[1] if listen else None], f"promtool takes its configuration, which asks {targets}"
              + ("" if p.returncode == 0 else p.stdout))


def check_prometheus():
    p = promtool("test", "rules", "alerts-test.yaml", cwd=FLEET)
    rig.check(p.returncode == 0, "promtool test rules: each alert fires where it should, and only there" + ("" if p.returncode == 0 else p.stdout))
    with open(os.path.join(FLEET, "alerts.yaml"), encoding="utf-8") as f:
        alerts = f.read()
    with open(os.path.join(FLEET, "alerts-test.yaml"), encoding="utf-8") as f:
        tested = set(re.findall(r"alertname: (\w+)", f.read()))
    rig.check(set(re.findall(r"alert: (\w+)", alerts)) == tested, f"all {len(tested)} alerts are tried")
    check_scraping()
    with open(os.path.join(FLEET, "dashboard.json"), encoding="utf-8") as f:
        panels = json.load(f)["panels"]
    asked = [t["expr"].replace("$__rate_interval", "5m").replace("$instance", "a|b") for panel in panels for t in panel["targets"]]
    rules = {"groups": [{"name": "dashboard", "rules": [{"record": f"panel:{i}", "expr": e} for i, e in enumerate(asked)]}]}
    p = promtool("check", "rules", rig.write("dashboard-rules.yaml", json.dumps(rules)))
    rig.check(p.returncode == 0 and len(asked) > len(panels) > 10, f"promtool takes the {len(asked)} queries of the dashboard"
              + ("" if p.returncode == 0 else p.stdout))
    have = metrics_of_daemon()
    wanted = set(re.findall(r"\bperfwalk_\w+", alerts + "\n".join(asked)))
    rig.check(wanted <= have, f"the daemon has all {len(wanted)} metrics that they use" + (f"; not {wanted - have}" if wanted - have else ""))


# ---- Grafana's dashboards ----

def mistakes(text):
    """Of the kinds that the judge has to see: of the dashboard, of a panel, of a query of Pyroscope."""
    return [text.replace('"annotations"', '"annotation"'), text.replace('"gridPos"', '"gridPlace"', 1),
            text.replace('"labelSelector"', '"selector"', 1)]


def check_dashboards():
    p = subprocess.run(["sh", os.path.join(rig.HERE, "build-dashboards.sh")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if p.returncode == 77:
        rig.skip(p.stderr.strip())
    rig.check(p.returncode == 0, "the judge of dashboards is there" + ("" if p.returncode == 0 else p.stderr[-1000:]))

    def judge(*paths):
        said = subprocess.run([p.stdout.strip(), *paths], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return said.returncode, said.stdout
    with open(os.path.join(FLEET, "pyroscope.yaml"), encoding="utf-8") as f:
        volumes = yaml.safe_load(f)["services"]["grafana"]["volumes"]
    given = {v.split(":")[0].removeprefix("./") for v in volumes if v.endswith(".json:ro")}
    rig.check(given == {"dashboard.json", "profiles.json"}, f"Grafana gets {len(given)} dashboards")
    status, said = judge(*(os.path.join(FLEET, name) for name in sorted(given)))
    rig.check(status == 0, f"they are as Grafana's schemas say: {said}")
    with open(os.path.join(FLEET, "profiles.json"), encoding="utf-8") as f:
        text = f.read()
    for wrong in mistakes(text):
        status, said = judge(rig.write("wrong.json", wrong))
        rig.check(wrong != text and status == 1, f"and one with a mistake is refused: {said.strip().splitlines()[-1:]}")


def main():
    rig.need_root()
    source = make_known()
    lines = check_lines(source)
    rig.apart(check_clickhouse, source, lines)
    rig.apart(check_prometheus)
    rig.apart(check_dashboards)
    rig.apart(check_gateway)
    rig.apart(check_simulator)


rig.run(main)
