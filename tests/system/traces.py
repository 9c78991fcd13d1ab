# SPDX-License-Identifier: Apache-2.0
# Rooms: src/reader src/profiler src/opener src/render src/exporter runtimes proto
"""A Collector receives the traces and the profiles of one run. Two instances of a service publish their resource and
the spans of their threads, and take part in the same traces; their exporter, which is this test, sends the spans that
have ended by OTLP/HTTP. Joined by service.instance.id, trace and span, each sample lies within the time of its span,
in the function that has its name; none has the span of the other instance; and a trace leads to the samples of both."""
import collections
import json
import os
import subprocess
import threading
import urllib.request
import uuid

import inside
import otelcol
import otlp
import rig

LENGTH = float(os.environ.get("SPANS_LENGTH", "1"))  # make check-spans has longer ones
WANTED = 1000 * LENGTH  # samples in spans that have ended, of both instances
MIN_SHARE = 0.96  # a busy host reads some too late, and those have none
TOLERANCE_NS = 2_000_000  # the clocks of samples and spans are compared once a second, and may be slewed meanwhile


class Traced:
    """An instance, and the exporter of its spans."""

    def __init__(self, endpoint, number):
        self.instance, self.endpoint, self.number = str(uuid.uuid4()), endpoint, number
        program = os.path.join(rig.build_workloads("traced"), "traced")
        self.process = rig.start([program, "shop", self.instance, str(number)], stdout=subprocess.PIPE, text=True)
        self.exporter = threading.Thread(target=self.export, daemon=True)  # the test may end before the program
        self.exporter.start()

    def export(self):
        for line in self.process.stdout:
            trace, span, parent, name, begin, end = line.split()
            self.send({"traceId": trace, "spanId": span, "parentSpanId": "" if parent == "-" else parent, "name": name,
                       "kind": 1, "startTimeUnixNano": begin, "endTimeUnixNano": end})

    def send(self, span):
        resource = {"service.name": "shop", "service.instance.id": self.instance}
        body = {"resourceSpans": [{"resource": {"attributes": [{"key": k, "value": {"stringValue": v}} for k, v in resource.items()]},
                                   "scopeSpans": [{"spans": [span]}]}]}
        request = urllib.request.Request(self.endpoint + "/v1/traces", json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=rig.PATIENCE) as answer:
            answer.read()

    def end(self):
        rig.end(self.process)
        self.exporter.join()


Sample = collections.namedtuple("Sample", "time instance pid thread function trace span")


def samples_of(messages, instances):
    """Those of the instances, whose functions tell the kind of their span."""
    found, pids = [], {i.process.pid: i for i in instances}
    for message in messages:
        view = otlp.View(otlp.decode(message))
        for rp in view.message.resource_profiles:
            resource = otlp.attributes(rp.resource, view.strings)
            if resource.get("process.pid") not in pids:
                continue
            for s in (s for sp in rp.scope_profiles for p in sp.profiles for s in p.samples):
                link = view.dictionary.link_table[s.link_index]
                ids = (link.trace_id.hex(), link.span_id.hex()) if s.link_index else ("", "")
                function = next((f for f in view.frames(s.stack_index) if f.startswith("in_")), None)
                thread = view.table_attributes(s.attribute_indices).get("thread.id")
                found += [Sample(t, resource.get("service.instance.id"), resource["process.pid"], thread, function, *ids)
                          for t in s.timestamps_unix_nano]
    return found


def check_joined(spans, samples):
    """Samples of spans that had not ended at the end have none: those of each thread's last request."""
    missing = {s[1:] for s in samples if (s.instance, s.trace, s.span) not in spans}
    ends = collections.defaultdict(int)
    for (instance, trace, _), span in ((k, s) for k, s in spans.items() if s["name"] == "request"):
        ends[instance, trace[:2]] = max(ends[instance, trace[:2]], int(span["endTimeUnixNano"]))
    early = [s for s in samples if s[1:] in missing and s.time < ends[s.instance, s.trace[:2]] - TOLERANCE_NS]
    rig.check(len({m[-1] for m in missing}) <= 8 and not early, f"all samples but {len(missing)} kinds at the end have their span: {early[:2]}")
    joined = [(s, spans[s.instance, s.trace, s.span]) for s in samples if s[1:] not in missing]
    late = [(s, span) for s, span in joined if not int(span["startTimeUnixNano"]) - TOLERANCE_NS <= s.time
            <= int(span["endTimeUnixNano"]) + TOLERANCE_NS]
    rig.check(not late, f"each of {len(joined)} samples lies within the time of its span: {late[:2]}")
    other = [(s, span) for s, span in joined if s.function and s.function != "in_" + span["name"]]
    rig.check(not other, f"each is in its span's function: {other[:2]}")
    return joined


def check_found(samples):
    """From the first span of a thread on."""
    first = {}
    for s in sorted(s for s in samples if s.span):
        first.setdefault(s.thread, s.time)
    since = [s for s in samples if s.time > first.get(s.thread, s.time)]
    inside = [s for s in since if s.function in ("in_request", "in_query")]
    right = sum(bool(s.span) for s in inside)
    rig.check(right >= MIN_SHARE * len(inside), f"{right} of {len(inside)} samples in spans have one")
    outside = [s for s in since if s.function == "in_between"]
    rig.check(outside and not any(s.span for s in outside), f"none of {len(outside)} between spans has one")


def check_traces(joined, instances):
    """What a backend does: from a trace to its samples, which the instance tells apart."""
    by_trace = collections.defaultdict(lambda: collections.defaultdict(set))
    for s, _ in joined:
        by_trace[s.trace][s.instance].add(s.span)
    both = [t for t in by_trace.values() if len(t) == 2]
    numbers = {i.instance: f"{i.number + 1:02x}" for i in instances}
    rig.check(both and all(span.startswith(numbers[i]) for t in by_trace.values() for i, own in t.items() for span in own),
              f"{len(both)} of {len(by_trace)} traces have samples of both instances, each with spans of its own")


def main():
    rig.need_root()
    if not inside.gives_priority():
        rig.skip(inside.NO_PRIORITY)
    collector = otelcol.start({"plain": ("http", "")})
    endpoint = f"http://127.0.0.1:{collector.ports['plain']}"
    instances = [Traced(endpoint, n) for n in (1, 2)]
    d = rig.Daemon("[profiler]\nsamples_per_second = 499\nreporter_interval = 1s\n[filter]\ninclude_comm = traced\n"
                   f"[export:c]\nendpoint = {endpoint}\n[process]\nuser = root\n")
    rig.wait_for("samples of spans", lambda: sum(bool(s.span) for s in samples_of(collector.messages("plain"), instances)) >= WANTED,
                 60 + 60 * LENGTH)
    d.stop()
    for i in instances:
        i.end()
    collector.stop()
    samples = samples_of(collector.messages("plain"), instances)
    spans = {(r["service.instance.id"], s["traceId"], s["spanId"]): s for r, s in collector.spans("plain")}
    rig.check({key[0] for key in spans} == {i.instance for i in instances}, f"{len(spans)} spans of both instances")
    joined = check_joined(spans, [s for s in samples if s.span])
    rig.check(len(joined) >= WANTED * 0.8, f"{len(joined)} samples have a span that has ended")
    check_found(samples)
    check_traces(joined, instances)


if __name__ == "__main__":
    rig.run(main)
