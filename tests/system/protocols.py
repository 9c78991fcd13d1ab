# SPDX-License-Identifier: Apache-2.0
# Rooms: src/exporter src/http proto
"""Each way to write a request, at a real collector that has limits: protobuf and JSON, every
compression, gRPC, and requests larger than the server or the configuration takes. Every sample that
the daemon kept is found in what the collector wrote, counted to the last one."""
import gzip
import json

import otelcol
import rig
from badserver import Server, answer  # a server that keeps what it gets

LIMIT = 12000  # bytes, before compression: less than a payload below is long
LIMIT_JSON = 4 * LIMIT
ROWS = {  # name: (receiver, keys)
    "json": ("http", "protocol = http/json"),
    "json-plain": ("http", "protocol = http/json\ncompression = none"),
    "json-zstd": ("http", "protocol = http/json\ncompression = zstd"),
    "zstd": ("http", "compression = zstd"),
    "none": ("http", "compression = none"),
    "small": ("small", ""),
    "small-json": ("small-json", "protocol = http/json"),
    "small-zstd": ("small", "compression = zstd"),
    "halves": ("http", "max_request_size = 16K"),
    "grpc-zstd": ("grpc", "protocol = grpc\ncompression = zstd"),
}


def receivers():
    kinds = {"http": ("http", ""), "small": ("http", f"max_request_body_size: {LIMIT}"),
             "small-json": ("http", f"max_request_body_size: {LIMIT_JSON}"), "grpc": ("grpc", "")}
    return {name: kinds[kind] for name, (kind, _) in ROWS.items()}


def check_json(request):
    """The mapping's rules, on one request."""
    _, head, body = request
    text = json.loads(gzip.decompress(body))
    rig.check("content-type: application/json" in head.lower(), "the request says that it is JSON")
    rig.check(set(text) == {"resourceProfiles", "dictionary"}, f"JSON: {sorted(text)}")
    profile = text["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]
    rig.check(isinstance(profile["timeUnixNano"], str) and profile["timeUnixNano"].isdigit()
              and all(isinstance(t, str) for t in profile["samples"][0]["timestampsUnixNano"]),
              "JSON: 64-bit integers are strings")
    rig.check(isinstance(profile["samples"][0]["stackIndex"], int), "JSON: smaller ones are numbers")
    rig.check(len(profile["profileId"]) == 32 and int(profile["profileId"], 16) > 0, "JSON: ids are hexadecimal")


def main():
    rig.need_root()
    collector = otelcol.start(receivers())
    keeps, refuses = Server(answer(200)), Server(answer(415))
    store = rig.path("store")
    # Two busy programs with many different stacks.
    burners = [rig.start(["sh", "-c", "f() { [ $1 -gt 0 ] && f $(($1 - 1)); }; while :; do f 50; done"])
               for _ in range(2)]
    daemon = rig.Daemon(
        "[profiler]\nreporter_interval = 2s\nsamples_per_second = 199\nmax_frames = 16\n"
        f"[store]\nenabled = yes\npath = {store}\n"
        + "".join(f"[export:{name}]\nendpoint = http://127.0.0.1:{collector.ports[name]}\n{keys}\n"
                  for name, (_, keys) in ROWS.items())
        + f"[export:keeps]\nendpoint = http://127.0.0.1:{keeps.port}\nprotocol = http/json\n"
        f"[export:no-zstd]\nendpoint = http://127.0.0.1:{refuses.port}\ncompression = zstd\n"
        f"[export:no-json]\nendpoint = http://127.0.0.1:{Server(answer(415)).port}\nprotocol = http/json\n")
    daemon.wait_up()
    rig.wait_for("three profiles", lambda: len(otelcol.stored(store)) >= 3, 30)
    for p in burners:
        rig.end(p)
    messages, retries = otelcol.wait_sent(daemon, ROWS, store)
    daemon.stop()
    collector.stop()
    kept, longest = otelcol.count(messages), max(len(m) for m in messages)
    rig.check(kept > 300 and longest > 1.5 * LIMIT,
              f"{kept} samples in {len(messages)} payloads kept on the host, the longest of {longest} bytes")
    log = daemon.log()
    for name, (kind, keys) in ROWS.items():
        got = otelcol.without_repeats(collector.messages(name), retries[name])
        have = otelcol.count(got)
        rig.check(have == kept, f"{name}: the collector has written {have} samples of {kept} in {len(got)} messages")
        split = kind.startswith("small") or "max_request_size" in keys
        rig.check((len(got) > len(messages)) == split, f"{name}: in {'pieces' if split else 'one piece each'}")
        told = [l for l in log.splitlines() if f"export:{name}: " in l]
        rig.check(not any("is dropped" in l for l in told) and any("in halves" in l for l in told) == kind.startswith("small"),
                  f"{name}: the log says {told}")
    check_json(keeps.requests[0])
    for name, cure in (("no-zstd", "set compression = gzip"), ("no-json", "set protocol = http/protobuf")):
        rig.check(any(f"export:{name}: " in l and cure in l for l in log.splitlines()),
                  f"{name}: 415: the log says {cure!r}")


if __name__ == "__main__":
    rig.run(main)
