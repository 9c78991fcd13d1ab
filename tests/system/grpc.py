# SPDX-License-Identifier: Apache-2.0
# Rooms: src/exporter src/http proto
"""OTLP/gRPC: a real collector, without TLS, with it and with client certificates, gets every sample
that the daemon kept; then a server that answers with each status, and with none."""
import glob
import gzip
import os
import subprocess

import otelcol
import rig
from grpc_server import Server
from otelcol import count


def certificates():
    """A CA, a certificate for 127.0.0.1, and one for a client."""
    d = rig.path("tls")
    os.makedirs(d)

    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=d, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-subj",
            "/CN=test CA", "-days", "2")
    for name in ("server", "client"):
        rig.write(f"tls/{name}.ext", "subjectAltName=IP:127.0.0.1\n")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj",
                f"/CN={name}")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-out", f"{name}.pem", "-days", "2", "-extfile", f"{name}.ext")
    # Children read the client's key as another user.
    for directory in (rig.path(), d):
        os.chmod(directory, 0o755)
    for name in os.listdir(d):
        os.chmod(os.path.join(d, name), 0o644)
    return d


def start_collector(tls):
    server = f"tls: {{cert_file: {tls}/server.pem, key_file: {tls}/server.key"
    return otelcol.start({"plain": ("grpc", ""), "tls": ("grpc", server + "}"),
                          "mtls": ("grpc", server + f", client_ca_file: {tls}/ca.pem}}"),
                          "http-tls": ("http", server + "}")})


def real_collector():
    tls = certificates()
    collector = start_collector(tls)
    ports = collector.ports
    store = rig.path("store")
    exports = {
        "plain": f"endpoint = http://127.0.0.1:{ports['plain']}\nprotocol = grpc\n",
        "tls": f"endpoint = https://127.0.0.1:{ports['tls']}\nprotocol = grpc\ncertificate = {tls}/ca.pem\n"
               "compression = none\n",
        "mtls": f"endpoint = https://127.0.0.1:{ports['mtls']}\nprotocol = grpc\ncertificate = {tls}/ca.pem\n"
                f"client_certificate = {tls}/client.pem\nclient_key = {tls}/client.key\n",
        "http-tls": f"endpoint = https://127.0.0.1:{ports['http-tls']}\ncertificate = {tls}/ca.pem\n",
        "stranger": f"endpoint = https://127.0.0.1:{ports['mtls']}\nprotocol = grpc\ncertificate = {tls}/ca.pem\n",
        "no-ca": f"endpoint = https://127.0.0.1:{ports['tls']}\nprotocol = grpc\n",
        "wrong-port": f"endpoint = http://127.0.0.1:{ports['http-tls']}\nprotocol = grpc\n",
    }
    burner = rig.start(["sh", "-c", "while :; do :; done"])
    daemon = rig.Daemon("[profiler]\nreporter_interval = 1s\nsamples_per_second = 99\n"
                        f"[store]\nenabled = yes\npath = {store}\n"
                        + "".join(f"[export:{n}]\n{t}" for n, t in exports.items()))
    daemon.wait_up()
    rig.wait_for("a profile", lambda: glob.glob(store + "/*.gz"))
    cpu = -rig.cpu_seconds(burner.pid)
    rig.wait_for("four profiles", lambda: len(glob.glob(store + "/*.gz")) >= 4, 20)
    cpu += rig.cpu_seconds(burner.pid)
    rig.end(burner)
    messages, retries = otelcol.wait_sent(daemon, ports, store)
    daemon.stop()
    collector.stop()
    kept = count(messages)
    rig.check(kept > 0.7 * 99 * cpu > 0, f"{kept} samples in {len(messages)} payloads kept on the host, where one program "
              f"had {cpu:.1f} s of CPU meanwhile")
    for name in ports:
        have = count(otelcol.without_repeats(collector.messages(name), retries[name]))
        rig.check(have == kept, f"{name}: the collector has written {have} samples of {kept}")
    log = daemon.log()
    for name, why in (("stranger", ""), ("no-ca", "certificate"), ("wrong-port", "")):
        lines = [l for l in log.splitlines() if f"export:{name}: " in l and "cannot take" in l]
        rig.check(len(lines) == 1 and why in lines[0], f"{name}: said once: {(lines or ['nothing'])[0][-160:]}")


# What the server does, and what must become of the payload: a word of the log.
SENT, RETRIED, DROPPED, HALVED = "sent", "retried", "dropped", "sent in halves"
ROWS = (
    ("OK", {"status": 0}, SENT, ""),
    ("OK in chunks", {"status": 0, "split": True}, SENT, ""),
    ("partial success", {"status": 0, "body": b"\x0a\x08\x08\x03\x12\x04some"}, SENT, "3 of its profiles"),
    ("cancelled", {"status": 1}, RETRIED, "CANCELLED"),
    ("unknown", {"status": 2, "message": "what%20is%3f"}, DROPPED, "what is?"),
    ("invalid argument", {"status": 3}, DROPPED, "INVALID_ARGUMENT"),
    ("deadline exceeded", {"status": 4}, RETRIED, "DEADLINE_EXCEEDED"),
    ("permission denied", {"status": 7}, DROPPED, "headers_file"),
    ("resource exhausted", {"status": 8, "message": "no more today"}, DROPPED, "no more today"),
    ("a message larger than the limit", {"status": 8, "message": "received message larger than max"}, HALVED,
     "is split in halves"),
    ("HTTP 413 of a proxy", {"http": 413, "status": None}, HALVED, "is split in halves"),
    ("resource exhausted for a second", {"status": 8, "retry": 1}, RETRIED, "RESOURCE_EXHAUSTED"),
    ("aborted", {"status": 10}, RETRIED, "ABORTED"),
    ("out of range", {"status": 11}, RETRIED, "OUT_OF_RANGE"),
    ("unimplemented", {"status": 12}, DROPPED, "UNIMPLEMENTED"),
    ("internal", {"status": 13}, DROPPED, "INTERNAL"),
    ("unavailable", {"status": 14}, RETRIED, "UNAVAILABLE"),
    ("unavailable, without a body", {"status": 14, "trailers_only": True}, RETRIED, "UNAVAILABLE"),
    ("data loss", {"status": 15}, RETRIED, "DATA_LOSS"),
    ("unauthenticated", {"status": 16}, DROPPED, "UNAUTHENTICATED"),
    ("a status that is none", {"status": 99}, DROPPED, "99"),
    ("no trailers", {"status": None}, RETRIED, "without a status"),
    ("HTTP 503 of a proxy", {"http": 503, "status": None}, RETRIED, "UNAVAILABLE"),
    ("HTTP 404 of something else", {"http": 404, "status": None}, DROPPED, "UNIMPLEMENTED"),
    ("reset of the stream", {"reset": True}, RETRIED, "cannot take"),
    ("connection closed", {"close": True}, RETRIED, "cannot take"),
    ("GOAWAY", {"goaway": True}, RETRIED, "cannot take"),
)


def check_row(name, script, want, text, server, log):
    bodies = [c.body for c in server.calls]
    again = bodies[0] in bodies[1:]
    rig.check(again == (want == RETRIED), f"{name}: the payload is {'sent again' if again else 'not sent again'}")
    if want == HALVED:
        whole, *halves = [count([gzip.decompress(b[5:])]) for b in bodies[:3]]
        rig.check(sum(halves) == whole, f"{name}: {whole} samples come again as {halves}")
    rig.check(text in log, f"{name}: the log says {text!r}" + ("" if text in log else f":\n{log}"))
    rig.check(("is dropped" in log) == (want == DROPPED), f"{name}: dropped or not")


def check_request(call):
    h = call.headers
    rig.check(h[":path"] == "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
              and h["content-type"].startswith("application/grpc") and h["te"] == "trailers"
              and h["grpc-encoding"] == "gzip" and h["grpc-timeout"] == "2000m"
              and h["otlp-profiles-development-version"] == "1" and h["user-agent"].startswith("perfwalk/"), "the request is a gRPC call")
    rig.check(call.body[0] == 1 and len(call.body) == 5 + int.from_bytes(call.body[1:5], "big"),
              "one message behind its prefix")
    rig.check(count([gzip.decompress(call.body[5:])]) > 0, "the message is a gzipped payload")


def scripted_server():
    """Each row is a destination of its own; a daemon has room for 16."""
    # Something to send, that can be cut in halves also where nothing else runs.
    burners = [rig.start(["./chain", "30"], cwd=rig.build_workloads("chain")) for _ in range(2)]
    for batch in (ROWS[:14], ROWS[14:]):
        servers = [Server([script], then={"status": 0}) for _, script, _, _ in batch]
        daemon = rig.Daemon("[profiler]\nreporter_interval = 1s\n[spool]\nenabled = no\n" + "".join(
            f"[export:row{i}]\nendpoint = http://127.0.0.1:{s.port}\nprotocol = grpc\ntimeout = 2s\n"
            for i, s in enumerate(servers)), name=f"rows{len(batch)}")
        try:
            for row, server in zip(batch, servers):
                rig.wait_for(f"{row[0]}: three calls", lambda s=server: len(s.calls) >= 3, 20)
        finally:
            daemon.stop()
        for i, (row, server) in enumerate(zip(batch, servers)):
            server.stop()
            check_row(*row, server, "".join(l for l in daemon.log().splitlines(True) if f"export:row{i}: " in l))
        check_request(servers[0].calls[0])
    for p in burners:
        rig.end(p)


def main():
    rig.need_root()
    rig.need_programs("openssl")
    scripted_server()
    real_collector()


rig.run(main)
