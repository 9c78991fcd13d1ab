# SPDX-License-Identifier: Apache-2.0
"""A real OpenTelemetry Collector with as many OTLP receivers as a test needs, each with a file of its own.

    collector = otelcol.start({"plain": ("grpc", ""), "small": ("http", "max_request_body_size: 20000")})
    collector.ports["plain"] ... collector.messages("plain") ... collector.stop()

Each takes traces, too: collector.spans("plain").
"""
import glob
import gzip
import json
import os
import signal
import subprocess

import otlp
import rig


def count(messages):
    """Samples in them."""
    return sum(n for m in messages for _, _, _, n in view(m).samples())


def view(message):
    return otlp.View(otlp.decode(message))


def stored(directory):
    """The messages that a daemon has in its store."""
    messages = []
    for name in sorted(glob.glob(directory + "/*.gz")):
        with gzip.open(name) as f:
            messages.append(f.read())
    return messages


def wait_sent(daemon, names, store):
    """Stops sampling, and returns what is in the store when all of it has been sent to these destinations, or dropped, and
    how often each was tried again. A daemon that ends on a busy host leaves on disk, or drops, what it cannot send in
    3.5 s; and no queue counts a payload that is still on its way to the process that sends."""
    for word in ("pause", "flush"):
        subprocess.run([rig.perfwalk(), "ctl", "-s", daemon.control, word], check=True)
    rig.wait_for("all that was sampled to be stored",
                 lambda: len(glob.glob(store + "/*.gz")) == int(daemon.status()["payloads"]))
    messages = stored(store)
    n = count(messages)

    def sent():
        told = daemon.status()
        return all(int(told[f"export.{x}.samples_sent"]) + int(told[f"export.{x}.samples_dropped"]) == n for x in names)
    rig.wait_for(f"all {n} samples to be sent", sent, 40)
    told = daemon.status()
    return messages, {x: int(told[f"export.{x}.retries"]) for x in names}


def without_repeats(messages, retries):
    """Once each: a collector that answers too late on a busy host gets a payload again."""
    once = list(dict.fromkeys(messages))
    rig.check(len(messages) - len(once) <= retries, f"{len(messages)} messages, {len(once)} different, {retries} tried again")
    return once


def binary():
    """Builds it when need be."""
    build = subprocess.run(["sh", os.path.join(rig.HERE, "build-collector.sh")], check=False,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if build.returncode == 77:
        rig.skip(build.stderr.strip())
    if build.returncode != 0:
        rig.fail(f"the collector does not build:\n{build.stderr[-3000:]}")
    return build.stdout.strip()


class Collector:
    def __init__(self, receivers, address, inside):
        """receivers: name to (protocol, what else its section holds, in YAML). inside: the command that starts it."""
        self.inside = inside
        self.ports = {name: rig.free_port() for name in receivers}
        self.outs = {name: rig.path(f"collector.{name}") for name in receivers}
        self.traces = {name: rig.path(f"collector.{name}.traces") for name in receivers}
        text = "receivers:\n"
        for name, (protocol, more) in receivers.items():
            text += (f"  otlp/{name}:\n    protocols:\n      {protocol}:\n"
                     f"        endpoint: {address}:{self.ports[name]}\n" + (f"        {more}\n" if more else ""))
        text += "exporters:\n"
        for name in receivers:
            text += f"  file/{name}: {{path: {self.outs[name]}, format: proto, flush_interval: 100ms}}\n"
            text += f"  file/{name}-traces: {{path: {self.traces[name]}, format: json, flush_interval: 100ms}}\n"
        text += "service:\n  telemetry: {metrics: {level: none}}\n  pipelines:\n"
        for name in receivers:
            text += f"    profiles/{name}: {{receivers: [otlp/{name}], exporters: [file/{name}]}}\n"
            text += f"    traces/{name}: {{receivers: [otlp/{name}], exporters: [file/{name}-traces]}}\n"
        self.config = rig.write("otelcol.yaml", text)
        self.log_name = rig.path("otelcol.log")
        self.start()

    def start(self):
        """Also once more, after stop()."""
        with open(self.log_name, "wb") as log:
            self.process = rig.start([*self.inside, binary(), "--config", self.config, "--feature-gates=+service.profilesSupport"],
                                     stdout=log, stderr=log)
        rig.wait_for("the collector is ready", self.ready, 30)

    def log(self):
        with open(self.log_name, encoding="utf-8") as f:
            return f.read()

    def ready(self):
        if self.process.poll() is not None:
            rig.fail("the collector ended: " + self.log()[-2000:])
        return "Everything is ready" in self.log()

    def stop(self):
        """It writes down what it still has."""
        rig.end(self.process, signal.SIGTERM)

    def messages(self, name):
        try:
            with open(self.outs[name], "rb") as f:
                return list(otlp.read_framed(f.read()))
        except FileNotFoundError:
            return []

    def spans(self, name):
        """(attributes of the resource, span as OTLP/JSON has it) of each."""
        with open(self.traces[name], encoding="utf-8") as f:
            for rs in (rs for line in f for rs in json.loads(line)["resourceSpans"]):
                resource = {a["key"]: a["value"].get("stringValue") for a in rs["resource"]["attributes"]}
                yield from ((resource, s) for ss in rs["scopeSpans"] for s in ss["spans"])


def start(receivers, address="127.0.0.1", inside=()):
    return Collector(receivers, address, inside)
