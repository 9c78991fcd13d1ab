# SPDX-License-Identifier: Apache-2.0
# Rooms: src/exporter src/http src/config
"""The way to a server: through a proxy by the configuration or the environment, past it, and by
another name than the certificate's; what the proxy sees, and what the log says where it fails. And
what OTEL_* alone make of a request."""
import base64
import gzip
import json
import os
import select
import socket
import ssl
import threading

import grpc_server
import rig
from badserver import Server, answer, certificates

SECRET = "canary-of-the-headers"


class Proxy:
    """Forwards what it is asked for, tunnels too; keeps the head of each request. status: what it
    refuses everything with."""

    def __init__(self, status=None):
        self.status, self.heads = status, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            conn, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def serve(self, conn):
        data = b""
        try:
            while b"\r\n\r\n" not in data:
                got = conn.recv(65536)
                if not got:
                    return
                data += got
            head, rest = data.split(b"\r\n\r\n", 1)
            self.heads.append(head.decode())
            if self.status:
                conn.sendall(f"HTTP/1.1 {self.status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
                return
            self.forward(conn, head.decode(), rest)
        except OSError:
            pass
        finally:
            conn.close()

    @staticmethod
    def forward(conn, head, rest):
        method, target, _ = head.split("\r\n")[0].split(" ")
        if method == "CONNECT":
            host, port = target.rsplit(":", 1)
        else:
            host, port = target.split("/")[2].rsplit(":", 1)
        with socket.create_connection((host, int(port)), 5) as server:
            if method == "CONNECT":
                conn.sendall(b"HTTP/1.1 200 Go ahead\r\n\r\n")
                server.sendall(rest)
            else:  # one request's way; the rest of the connection follows
                server.sendall((head.replace(target, "/" + target.split("/", 3)[3], 1) + "\r\n\r\n").encode() + rest)
            while True:
                for s in select.select([conn, server], [], [])[0]:
                    got = s.recv(65536)
                    if not got:
                        return
                    (server if s is conn else conn).sendall(got)


class Both:
    """HTTP/1.1 and gRPC at one port, as Pyroscope and proxies have it."""

    def __init__(self):
        self.http, self.grpc = Server(answer(200)), grpc_server.Server([], then={"status": 0})
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            conn, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def serve(self, conn):
        http2 = conn.recv(3, socket.MSG_PEEK) == b"PRI"
        (self.grpc._serve if http2 else self.http.serve)(conn)  # pylint: disable=protected-access


def run(name, sections, reached, log_says, env=()):
    """A daemon with these destinations until all that are to be reached are, and the log has the rest."""
    daemon = rig.Daemon("[profiler]\nreporter_interval = 1s\nsamples_per_second = 49\n[spool]\nenabled = no\n"
                        + "".join(f"[export:{n}]\nheaders = x-secret={SECRET}\ntimeout = 3s\n{t}\n"
                                  for n, t in sections.items()),
                        name=name, env={**os.environ, **dict(env)})
    daemon.wait_up()

    def told(export, text):
        return any(f"export:{export}: " in l and text in l for l in daemon.log().splitlines())
    try:
        for export, is_reached in reached.items():
            rig.wait_for(f"{export} is reached", is_reached, 20)
            rig.check(True, f"{export}: reached")
        for export, text in log_says.items():
            rig.wait_for(f"the log says of {export}: {text}", lambda e=export, t=text: told(e, t), 20)
            rig.check(True, f"{export}: the log says {text!r}")
    except rig.Failure:
        rig.say(daemon.log())
        raise
    daemon.stop()
    for export in reached:
        rig.check(not told(export, "cannot take"), f"{export}: without a complaint")
    return daemon.log()


def heads(server):
    return [r[1] for r in server.requests]


def by_configuration(ca, contexts):
    names = []
    contexts["other"].sni_callback = lambda sock, name, context: names.append(name)
    plain, secure, other, wrong = (Server(answer(200)), Server(answer(200), tls=contexts["good"]),
                                   Server(answer(200), tls=contexts["other"]), Server(answer(200), tls=contexts["other"]))
    both = Both()
    stranger = Server(answer(200), tls=contexts["stranger"])
    grpc = grpc_server.Server([], then={"status": 0})
    proxies = {n: Proxy() for n in ("plain", "tls", "grpc", "other")}
    needy, strict = Proxy(407), Proxy(403)
    https = f"endpoint = https://127.0.0.1:%d\ncertificate = {ca}\n"
    run("configured", {
        "plain": f"endpoint = http://127.0.0.1:{plain.port}\nproxy = {proxies['plain'].url}",
        "tls": https % secure.port + f"proxy = {proxies['tls'].url}",
        "grpc": f"endpoint = http://127.0.0.1:{grpc.port}\nprotocol = grpc\nproxy = {proxies['grpc'].url}",
        "other": https % other.port + "server_name_override = other.test",
        "other-proxy": https % other.port + f"server_name_override = other.test\nproxy = {proxies['other'].url}",
        "both-http": f"endpoint = http://127.0.0.1:{both.port}",
        "both-grpc": f"endpoint = http://127.0.0.1:{both.port}\nprotocol = grpc",
        "careless": f"endpoint = https://127.0.0.1:{stranger.port}\ninsecure_skip_verify = yes",
        "wrong-name": https % wrong.port + "server_name_override = elsewhere.test",
        "needy": https % secure.port + f"proxy = {needy.url}",
        "strict": https % secure.port + f"proxy = {strict.url}",
        "no-proxy": https % secure.port + f"proxy = http://127.0.0.1:{rig.free_port()}",
        "unknown": https % secure.port + "proxy = http://proxy.invalid:3128",
    }, {
        "plain": lambda: plain.count() >= 2, "tls": lambda: secure.count() >= 2,
        "grpc": lambda: len(grpc.calls) >= 2, "other": lambda: other.count() >= 4,
        "both-http": lambda: both.http.count() >= 4, "both-grpc": lambda: len(both.grpc.calls) >= 4,
        "other-proxy": lambda: proxies["other"].heads, "careless": lambda: stranger.count() >= 2,
    }, {"wrong-name": "certificate is for another name", "needy": "407", "strict": "proxy does not let it through",
        "no-proxy": "no connection to its proxy", "unknown": "proxy's host name is unknown"})
    rig.check(proxies["plain"].heads[0].startswith(f"POST http://127.0.0.1:{plain.port}/v1development/profiles "),
              "http: the proxy is asked for the URL")
    rig.check(proxies["tls"].heads[0].startswith(f"CONNECT 127.0.0.1:{secure.port} ")
              and proxies["grpc"].heads[0].startswith(f"CONNECT 127.0.0.1:{grpc.port} "),
              "https and gRPC: for a tunnel")
    rig.check(not any(SECRET in h for n in ("tls", "grpc", "other") for h in proxies[n].heads)
              and all(SECRET in h for h in heads(secure)), "whose other end alone gets the headers")
    rig.check(proxies["other"].heads[0].startswith(f"CONNECT 127.0.0.1:{other.port} "),
              "server_name_override: the tunnel leads to the endpoint")
    rig.check(set(names) == {"other.test", "elsewhere.test"} and all(f"host: other.test:{other.port}" in h.lower() for h in heads(other)),
              f"and the name is the one that is asked for: {set(names)}")
    rig.check(wrong.count() == 0, "a certificate for another name gets nothing")


def by_environment(ca, contexts):
    plain, secure, past, none = (Server(answer(200)), Server(answer(200), tls=contexts["good"]), Server(answer(200)),
                                 Server(answer(200), tls=contexts["good"]))
    http, https = Proxy(), Proxy()
    log = run("environment", {
        "plain": f"endpoint = http://127.0.0.1:{plain.port}",
        "tls": f"endpoint = https://127.0.0.1:{secure.port}\ncertificate = {ca}",
        "past": f"endpoint = http://localhost:{past.port}",
        "none": f"endpoint = https://127.0.0.1:{none.port}\ncertificate = {ca}\nproxy = none",
    }, {
        "plain": lambda: plain.count() >= 2, "tls": lambda: secure.count() >= 2, "past": lambda: past.count() >= 2,
        "none": lambda: none.count() >= 2,
    }, {}, {"http_proxy": http.url, "HTTPS_PROXY": https.url.replace("//", "//me:hush-hush@"), "NO_PROXY": "localhost"})
    token = base64.b64encode(b"me:hush-hush").decode()
    rig.check(all(f":{plain.port}/" in h for h in http.heads), "http_proxy: for http alone, and NO_PROXY is heard")
    rig.check(all(f"CONNECT 127.0.0.1:{secure.port} " in h and f"Proxy-Authorization: Basic {token}" in h
                  for h in https.heads), "HTTPS_PROXY: with its credentials; proxy = none goes past it")
    rig.check(token not in "".join(heads(secure)) and "hush" not in log, "which nobody else gets to see")


# name: (variables, TLS, how the request begins, its headers)
OTEL = {
    "base": ({"ENDPOINT": "http://127.0.0.1:{port}/base/", "HEADERS": "x-a=%C3%A4%20b%2Cc, x-b = 2", "COMPRESSION": "none"},
             None, "POST /base/v1development/profiles ", {"x-a": "\u00e4 b,c", "x-b": "2", "content-encoding": None,
                                                         "content-type": "application/x-protobuf"}),
    "default": ({"ENDPOINT": "http://127.0.0.1:{port}"}, None, "POST /v1development/profiles ", {"content-encoding": "gzip"}),
    "own": ({"ENDPOINT": "http://127.0.0.1:9", "HEADERS": "x-a=1", "COMPRESSION": "none", "PROTOCOL": "grpc",
             "PROFILES_ENDPOINT": "https://127.0.0.1:{port}", "PROFILES_HEADERS": "x-b=2", "PROFILES_COMPRESSION": "gzip",
             "PROFILES_PROTOCOL": "http/json", "PROFILES_CERTIFICATE": "{ca}", "PROFILES_CLIENT_CERTIFICATE": "{cert}",
             "PROFILES_CLIENT_KEY": "{key}", "PROFILES_TIMEOUT": "4000"},
            "mutual", "POST / ", {"x-a": None, "x-b": "2", "content-encoding": "gzip", "content-type": "application/json"}),
    "as-it-is": ({"PROFILES_ENDPOINT": "http://127.0.0.1:{port}/some/where?a=b", "CERTIFICATE": "{ca}"}, None,
                 "POST /some/where?a=b ", {}),
}


def by_otel_variables(ca, contexts):
    """No file but an empty one: each of the variables, on the wire."""
    directory = os.path.dirname(ca)
    files = {"ca": ca, "cert": f"{directory}/good.pem", "key": f"{directory}/good.key"}
    for name in ("cert", "key"):
        os.chmod(files[name], 0o644)
    contexts["mutual"] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    contexts["mutual"].load_cert_chain(files["cert"], files["key"])
    contexts["mutual"].load_verify_locations(ca)
    contexts["mutual"].verify_mode = ssl.CERT_REQUIRED
    grpc = grpc_server.Server([], then={"status": 0})
    running = []
    for name, (variables, tls, _, _) in OTEL.items():
        server = Server(answer(200), tls=contexts.get(tls))
        running.append((name, server, otel_daemon(name, {k: v.format(port=server.port, **files)
                                                         for k, v in variables.items()})))
    call = otel_daemon("call", {"ENDPOINT": f"127.0.0.1:{grpc.port}", "PROTOCOL": "grpc", "INSECURE": "true"})
    for name, server, daemon in running:
        rig.wait_for(f"{name}: a request\n{daemon.log()}", lambda s=server: s.count() >= 1, 20)
        daemon.stop()
        line, *lines = server.requests[0][1].splitlines()
        have = {k.lower(): v.strip() for k, _, v in (l.partition(":") for l in lines)}
        _, _, start, wanted = OTEL[name]
        wrong = {k: have.get(k) for k, v in wanted.items() if have.get(k) != v}
        rig.check(line.startswith(start) and not wrong, f"OTEL_*, {name}: {line} {wrong or wanted}")
    rig.wait_for("OTEL_*: a gRPC call", lambda: grpc.calls, 20)
    call.stop()
    rig.check(grpc.calls[0].headers[":path"].endswith("ProfilesService/Export"),
              "OTEL_*: grpc at a host and a port, INSECURE=true")
    text = json.loads(gzip.decompress(next(s for n, s, _ in running if n == "own").requests[0][2]))
    have = {a["key"]: a["value"].get("stringValue") for a in text["resourceProfiles"][0]["resource"]["attributes"]}
    rig.check(have["service.name"] == "the-name" and have["deployment.environment.name"] == "a b,c",
              "OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES are in the resource")


def otel_daemon(name, env):
    return rig.Daemon("[profiler]\nreporter_interval = 1s\nsamples_per_second = 49\n", name=f"otel-{name}",
                      env={**{k: v for k, v in os.environ.items() if not k.startswith("OTEL_")},
                           **{f"OTEL_EXPORTER_OTLP_{k}": v for k, v in env.items()}, "OTEL_SERVICE_NAME": "the-name",
                           "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,deployment.environment.name=a%20b%2Cc"})


def main():
    rig.need_root()
    rig.need_programs("openssl")
    ca, contexts = certificates()
    rig.start(["./chain", "30"], cwd=rig.build_workloads("chain"))  # something to send
    by_configuration(ca, contexts)
    by_environment(ca, contexts)
    by_otel_variables(ca, contexts)


if __name__ == "__main__":
    rig.run(main)
