# SPDX-License-Identifier: Apache-2.0
# Rooms: src/render src/exporter src/profile proto
"""A real OpenTelemetry Collector receives what `perfwalk run` sends; what it writes to a file, and
the same from a receiver of our own that keeps the bytes as they came, hold every rule."""
import hashlib
import os
import subprocess
import time

import alloc_model
import otelcol
import otlp
import rig
from checker import payload
from otlp_check import check as problems_of
from sink import Sink

RATE = 99


def post(port, body):
    import urllib.request
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1development/profiles", body,
                                     {"Content-Type": "application/x-protobuf"})
    with urllib.request.urlopen(request, timeout=120) as reply:
        return reply.status


def check_reader_against_collector(port, messages):
    """Our reader and the collector's schema agree: a payload comes back with the same content."""
    rig.check(post(port, payload()) == 200, "the collector takes the checker's own good payload")
    rig.wait_for("the collector writes it", lambda: messages(), 10)
    back = otlp.View(otlp.decode(messages()[0]))
    sent = otlp.View(otlp.decode(payload()))
    rig.check(sorted(map(repr, back.samples())) == sorted(map(repr, sent.samples())),
              "and gives back the same resources, samples and names")


def htlhash(name):
    with open(name, "rb") as f:
        data = f.read()
    whole = data[:4096] + data[-4096:] + len(data).to_bytes(8, "big")
    return hashlib.sha256(whole).hexdigest()[:32]


def gnu_build_id(name):
    text = subprocess.run(["readelf", "-n", name], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL, check=False).stdout
    ids = [line.split()[-1] for line in text.splitlines() if "Build ID:" in line]
    return ids[0] if ids else None


def mapping_of(views, filename):
    for view in views:
        for m in view.dictionary.mapping_table[1:]:
            if view.strings[m.filename_strindex] == filename:
                return view.table_attributes(m.attribute_indices)
    return None


def check_content(views, name, directory, pid, what):
    """The workload is there as itself: resource, thread, names, build ids."""
    program = os.path.join(directory, name)
    mine = [x for v in views for x in v.samples() if x[0].get("process.pid") == pid]
    n = sum(x[3] for x in mine)
    rig.check(n > 20, f"{what}: {n} samples of the workload's process")
    resource, attributes = mine[0][:2]
    rig.check(resource.get("process.executable.path") == program
              and resource.get("process.executable.name") == name,
              f"{what}: its executable is {resource.get('process.executable.path')}")
    rig.check(attributes.get("thread.id") == pid and attributes.get("thread.name") == name
              and isinstance(attributes.get("cpu.logical_number"), int),
              f"{what}: thread id, thread name and cpu: {attributes}")
    path = ["main", "chain_one", "chain_two", "chain_three", "chain_four", "chain_five", "chain_leaf"]
    right = sum(x[3] for x in mine if rig.contains_path(x[2], path))
    rig.check(right >= 0.8 * n, f"{what}: {right} of them hold the known call path")
    ids = mapping_of(views, program)
    rig.check(ids is not None, f"{what}: a mapping of {program}")
    rig.check(ids.get("process.executable.build_id.htlhash") == htlhash(program),
              f"{what}: its htlhash is the file's")
    rig.check(ids.get("process.executable.build_id.gnu") == gnu_build_id(program),
              f"{what}: its GNU build id is readelf's")


# Of two daemons, for not all of these go together: the types with their units, the config, and what runs meanwhile.
TIMES = {"off_cpu": "nanoseconds", "wall": "nanoseconds", "lock_wakeups": "count", "migrations": "count"}
TIMES_CONFIG = """[off_cpu]
enabled = yes
locks = yes
wall = yes
[event:migrations]
event = cpu-migrations
period = 1
"""
MEMORY = {"memory_growth": "bytes", "alloc_space": "bytes", "inuse_space": "bytes", "alloc_objects": "count",
          "inuse_objects": "count", "switches": "count"}
MEMORY_CONFIG = """[alloc]
enabled = yes
budget = 100000
[event:switches]
event = context-switches
samples_per_second = 50
"""


def stop(daemon, names):
    """Ends it when it has sent all that was sampled to these destinations: on a busy host an end leaves on disk what cannot
    be sent in 3.5 s. Its exit status, and how long the end took."""
    for word in ("pause", "flush"):
        subprocess.run([rig.perfwalk(), "ctl", "-s", daemon.control, word], check=True)

    def sent():
        told = daemon.status()
        return all(told[f"export.{name}.payloads_sent"] == told["payloads"] for name in names)
    rig.wait_for("all payloads to be sent", sent)
    return daemon.stop()


def ids_of(views):
    return {p.profile_id for view in views for r in view.message.resource_profiles for s in r.scope_profiles for p in s.profiles}


def sums_of(views):
    """{(type, unit): sum of the values} of the types besides CPU time. Samples that are counted have the name of their event
    as the type of the period, and each counts once for each of its times."""
    found = {}
    for view in views:
        for p in (p for r in view.message.resource_profiles for s in r.scope_profiles for p in s.profiles):
            kind, unit, counted = (view.strings[i] for i in (p.sample_type.type_strindex, p.sample_type.unit_strindex,
                                                             p.period_type.type_strindex))
            kind = (counted if kind == "samples" else kind), unit
            if kind[0] in TIMES or kind[0] in MEMORY:
                found[kind] = found.get(kind, 0) + sum(sum(s.values) or len(s.timestamps_unix_nano) for s in p.samples)
    return found


def check_types(port, messages, name, types, config, argv):
    """Every other type comes through the collector as it was sent."""
    before = len(messages())
    with Sink() as sink:
        daemon = rig.Daemon(f"[profiler]\nreporter_interval = 1s\nmemory_growth = {'yes' if types is MEMORY else 'no'}\n{config}"
                            f"[export:collector]\nendpoint = http://127.0.0.1:{port}\n"
                            f"[export:sink]\nendpoint = {sink.endpoint}\n", name=name)
        daemon.wait_up()
        rig.wait_for("a window", sink.count)
        program = rig.start(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        rig.wait_for("all types", lambda: len(sums_of(sink.views())) == len(types), 60)
        rig.check(stop(daemon, ("collector", "sink"))[0] == 0, f"{name}: the daemon leaves with 0")
        rig.end(program)
        rig.wait_for("as many messages at the collector", lambda: len(messages()) - before >= sink.count(), 30)
        sent, found = sums_of(sink.views()), sink.problems()
    got = sums_of(otlp.View(otlp.decode(m)) for m in messages()[before:])
    rig.check({kind: unit for kind, unit in sent} == types, f"{name}: types with their units: {sent}")
    rig.check(got == sent, f"{name}: the collector has the same sums of each")
    rig.check(not found, f"{name}: and they hold every rule" + "".join("\n    " + p for p in found[:20]))


def check_all_types(port, messages):
    directory = rig.build_workloads("heap", "locks")
    check_types(port, messages, "times", TIMES, TIMES_CONFIG,
                ["sh", "-c", f"while :; do taskset -c 0 true; taskset -c 1 true; {directory}/locks 20; done"])
    if os.uname().machine == "x86_64":
        check_types(port, messages, "memory", MEMORY, MEMORY_CONFIG,
                    ["env", f"LD_PRELOAD={alloc_model.library()}", f"{directory}/heap", "wait"])
    else:
        rig.say("left out: [alloc] is for x86_64 so far")


def main():
    rig.need_root()
    rig.need_tracefs()
    rig.need_programs("readelf")
    collector = otelcol.start({"http": ("http", "")})
    port = collector.ports["http"]

    def messages():
        return collector.messages("http")
    check_reader_against_collector(port, messages)
    before = len(messages())

    directory = rig.build_workloads("chain", "cxx")
    chain = rig.start(["./chain"], cwd=directory)
    rig.start(["./cxx"], cwd=directory)
    begin = time.time()
    with Sink() as sink:
        daemon = rig.Daemon(f"""
[profiler]
samples_per_second = {RATE}
reporter_interval = 1s
[export:collector]
endpoint = http://127.0.0.1:{port}
[export:sink]
endpoint = {sink.endpoint}
""")
        daemon.wait_up()
        rig.wait_for("five messages at the collector", lambda: len(messages()) - before >= 5, 30)
        sink.wait_for(5)
        status, seconds = stop(daemon, ("collector", "sink"))
        rig.check(status == 0 and seconds < 5, f"SIGTERM: leaves with {status} after {seconds:.1f} s")
        rig.wait_for("as many messages at the collector", lambda: len(messages()) - before >= sink.count(), 30)
        raw = sink.payloads()
        problems = sink.problems(rate=RATE)
        views = sink.views()
    framed = messages()[before:]
    rig.check(not problems, f"{len(raw)} requests as they came hold every rule"
              + "".join("\n    " + p for p in problems[:20]))
    found = [f"message {i}: {rule}: {text}" for i, m in enumerate(framed)
             for rule, text in problems_of(m, re_encoded=True, rate=RATE)]
    rig.check(not found, f"{len(framed)} messages written by the collector hold every rule"
              + "".join("\n    " + p for p in found[:20]))
    rig.check(ids_of(views) == ids_of(map(otelcol.view, framed)), f"collector and receiver got the same profiles, in {len(framed)} and "
              f"{len(raw)} messages")
    check_content(views, "chain", directory, chain.pid, "as sent")
    check_content([otlp.View(otlp.decode(m)) for m in framed], "chain", directory, chain.pid,
                  "from the collector")
    times = [p.time_unix_nano for v in views for rp in v.message.resource_profiles
             for sp in rp.scope_profiles for p in sp.profiles]
    rig.check(begin - 2 < min(times) / 1e9 and max(times) / 1e9 < time.time(),
              "the windows' times are the wall clock's")
    types = {a.get("profile.frame.type") for v in views
             for l in v.dictionary.location_table[1:]
             for a in [v.table_attributes(l.attribute_indices)]}
    rig.check({"kernel", "native"} <= types, f"frame types: {sorted(types)}")
    check_all_types(port, messages)


if __name__ == "__main__":
    rig.run(main)
