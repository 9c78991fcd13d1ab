# SPDX-License-Identifier: Apache-2.0
# Rooms: src/exporter src/http proto
"""OTLP/HTTP servers that misbehave, a row each: what becomes of the payload (sent, sent again,
dropped), what the log says, and that the good server beside them gets every sample in time. Then
that redirects get neither profiles nor credentials, and that no secret is in the log or on a
command line."""
import datetime
import email.utils
import functools
import glob
import gzip
import os
import socket
import ssl
import struct
import subprocess
import threading
import time

import otlp
import rig
from sink import Sink

SECRET = "Bearer canary-of-the-credentials"
SENT, RETRIED, DROPPED, KEPT = "sent", "sent again", "dropped", "kept"


# --- what servers do; true: the connection stays ------------------------------------------------

def answer(status, headers="", body=b"", kind="application/x-protobuf"):
    def act(conn):
        conn.sendall(f"HTTP/1.1 {status} Text\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
                     f"{headers}\r\n".encode() + body)
        return True
    return act


def after_date(seconds):
    def act(conn):
        # HTTP dates have whole seconds: not before the one that is meant.
        when = email.utils.formatdate(int(time.time()) + seconds + 1, usegmt=True)
        return answer(503, f"Retry-After: {when}\r\n")(conn)
    return act


def abort(conn):
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.close()


def cut(conn):
    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 1000\r\n\r\nxx")
    abort(conn)


def cut_chunks(conn):
    conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nxx")


def trickle(conn):
    conn.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        conn.sendall(b"x")
        time.sleep(0.05)


def silence(conn):
    conn.recv(1)


def endless(conn):
    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n\r\n")
    while True:
        conn.sendall(b"\x0a" * 65536)


def endless_headers(conn):
    conn.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        conn.sendall(b"X-More: " + b"x" * 1000 + b"\r\n")


BOMB = gzip.compress(bytes(64 << 20), 9)


def bomb(conn):
    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB)


def garbage(conn):
    conn.sendall(b"220 mail.example.org ESMTP\r\n")


class Server:
    """first: what it does with the first request, or before it has read its body (early); all
    others are taken."""

    def __init__(self, first, early=False, tls=None):
        self.first, self.early, self.tls = first, early, tls
        self.requests = []  # (time, head, body)
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.acceptor = threading.Thread(target=self.accept, daemon=True)
        self.acceptor.start()

    def accept(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def serve(self, conn):
        try:
            if self.tls:
                conn = self.tls.wrap_socket(conn, server_side=True)
            while self.request(conn):
                pass
        except OSError:
            pass  # the client has gone, or does not like our certificate
        finally:
            conn.close()

    def request(self, conn):
        data = b""
        while b"\r\n\r\n" not in data:
            got = conn.recv(65536)
            if not got:
                return False
            data += got
            if data[0] == 0x16:  # TLS: what every HTTP server makes of that
                conn.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
                return False
        head, body = data.split(b"\r\n\r\n", 1)
        head = head.decode() + "\r\n"
        size = next(int(l.split(":")[1]) for l in head.splitlines() if l.lower().startswith("content-length:"))
        with self.lock:
            begin = not self.requests
            if begin and self.early:
                self.requests.append((time.time(), head, b""))
        if begin and self.early:
            return self.first(conn)
        while len(body) < size:
            got = conn.recv(size - len(body))
            if not got:
                return False
            body += got
        with self.lock:
            self.requests.append((time.time(), head, body))
        return (self.first if begin else answer(200))(conn)

    def count(self):
        with self.lock:
            return len(self.requests)

    def stop(self):
        """A thread that went on waiting would take the connections of the next server whose socket has that number."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.acceptor.join()
        self.listener.close()


def refused_port(_):
    """A server that is not there."""
    return None


# --- the table: name, the server, what becomes of the payload, what the log says of it ----------

PARTIAL = b"\x0a\x0b\x08\x03\x12\x07too old"
PARTIAL_JSON = b'{"partialSuccess": {"rejectedProfiles": "3", "errorMessage": "\\u0022too\\" old"}}'
ROWS = [
    ("200", answer(200), SENT, ""),
    ("200 and a success in so many words", answer(200, body=b"\x0a\x00"), SENT, ""),
    ("202", answer(202), SENT, ""),
    ("204", answer(204), SENT, ""),
    ("partial success", answer(200, body=PARTIAL), SENT, "3 of its profiles: too old"),
    ("partial success in JSON", answer(200, body=PARTIAL_JSON, kind="application/json"), SENT,
     'accepted a payload except 3 of its profiles: "too" old'),
    ("a page instead of an answer", answer(200, body=b"<html>Welcome", kind="text/html; charset=utf-8"), SENT,
     "text/html"),
    ("an answer that is none", answer(200, body=b"\xff" * 40), SENT, ""),
    ("301 to elsewhere", "redirect 301", DROPPED, "redirects are not followed"),
    ("302 to elsewhere", "redirect 302", DROPPED, "redirects are not followed"),
    ("307 to elsewhere", "redirect 307", DROPPED, "redirects are not followed"),
    ("308 to elsewhere", "redirect 308", DROPPED, "redirects are not followed"),
    ("400 with a reason", answer(400, body=b"\x08\x03\x12\x0bno such fun"), DROPPED, "no such fun"),
    ("401", answer(401), DROPPED, "check headers and headers_file"),
    ("403", answer(403), DROPPED, "check headers and headers_file"),
    ("404", answer(404), DROPPED, "is the endpoint"),
    ("405", answer(405), DROPPED, "is the endpoint"),
    ("408", answer(408), DROPPED, "408"),
    ("415", answer(415), DROPPED, "415"),
    ("500", answer(500, body=b"oops", kind="text/plain"), DROPPED, "oops"),
    ("501", answer(501), DROPPED, "501"),
    ("505", answer(505), DROPPED, "505"),
    ("429", answer(429), RETRIED, "429"),
    ("429 with a delay", answer(429, "Retry-After: 2\r\n"), RETRIED, "429"),
    ("429 with a delay that is none", answer(429, "Retry-After: -1\r\n"), RETRIED, "429"),
    ("502", answer(502), RETRIED, "proxy"),
    ("503", answer(503), RETRIED, "503"),
    ("503 until a date", after_date(2), RETRIED, "503"),
    ("503 until a date in the past", after_date(-3600), RETRIED, "503"),
    ("504", answer(504), RETRIED, "proxy"),
    ("an answer that is cut off", cut, RETRIED, "without a complete answer"),
    ("chunks that are cut off", cut_chunks, RETRIED, "without a complete answer"),
    ("reset before the body is read", ("early", abort), RETRIED, "closed the connection"),
    ("closed without an answer", lambda conn: False, RETRIED, "closed the connection"),
    ("slow loris", trickle, RETRIED, "no answer in time"),
    ("silence", silence, RETRIED, "no answer in time"),
    ("garbage", garbage, RETRIED, "does not speak HTTP"),
    ("an endless answer", endless, DROPPED, "beyond the limit"),
    ("endless headers", endless_headers, DROPPED, "beyond the limit"),
    ("a bomb", bomb, DROPPED, "beyond the limit"),
    ("nobody listens", refused_port, KEPT, "connection refused"),
    ("TLS", ("tls", "good"), SENT, ""),
    ("a certificate that has expired", ("tls", "expired"), KEPT, "expired"),
    ("a certificate for another name", ("tls", "other"), KEPT, "name"),
    ("a certificate of a stranger", ("tls", "stranger"), KEPT, "authority"),
    ("no TLS where TLS is wanted", ("plain", answer(200)), KEPT, "TLS"),
]
RSS_MAX_KIB = 20 << 10
BATCH = 15  # and the good one: a daemon has room for 16
DELAYS = {"429 with a delay": 2, "503 until a date": 2}


@functools.lru_cache(maxsize=None)
def certificates():
    d = rig.path("tls")
    os.makedirs(d)

    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=d, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    now = datetime.datetime.now(datetime.timezone.utc)

    def stamp(days):
        return (now + datetime.timedelta(days=days)).strftime("%Y%m%d%H%M%SZ")
    for ca in ("ca", "nobody"):
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{ca}.key", "-out", f"{ca}.pem",
                "-subj", f"/CN={ca}", "-days", "2")
        rig.write(f"tls/{ca}.cnf", "[ca]\ndefault_ca = x\n[x]\nnew_certs_dir = .\n"
                  f"database = {ca}.db\nserial = {ca}.srl\nprivate_key = {ca}.key\ncertificate = {ca}.pem\n"
                  "default_md = sha256\npolicy = p\ncopy_extensions = copy\n[p]\ncommonName = supplied\n")
        rig.write(f"tls/{ca}.db", "")
        rig.write(f"tls/{ca}.srl", "1000\n")
    contexts = {}
    for name, ca, address, begin, end in (("good", "ca", "IP:127.0.0.1", -2, 2), ("other", "ca", "DNS:other.test", -2, 2),
                                          ("expired", "ca", "IP:127.0.0.1", -9, -1),
                                          ("stranger", "nobody", "IP:127.0.0.1", -2, 2)):
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj",
                f"/CN={name}", "-addext", f"subjectAltName={address}")
        openssl("ca", "-batch", "-config", f"{ca}.cnf", "-in", f"{name}.csr", "-out", f"{name}.pem",
                "-startdate", stamp(begin), "-enddate", stamp(end))
        contexts[name] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        contexts[name].load_cert_chain(os.path.join(d, f"{name}.pem"), os.path.join(d, f"{name}.key"))
    for directory in (rig.path(), d):
        os.chmod(directory, 0o755)  # the exporter, another user, reads the authority's
    os.chmod(os.path.join(d, "ca.pem"), 0o644)
    return os.path.join(d, "ca.pem"), contexts


def make(kind, contexts, elsewhere):
    """The server of a row, and its endpoint."""
    if kind is refused_port:
        return None, f"http://127.0.0.1:{rig.free_port()}"
    if isinstance(kind, str):
        server = Server(answer(kind.split()[1], f"Location: {elsewhere.endpoint}/v1development/profiles\r\n"))
    elif not isinstance(kind, tuple):
        server = Server(kind)
    elif kind[0] == "early":
        server = Server(kind[1], early=True)
    elif kind[0] == "tls":
        server = Server(answer(200), tls=contexts[kind[1]])
    else:
        server = Server(kind[1])
    secure = isinstance(kind, tuple) and kind[0] in ("tls", "plain")
    return server, f"http{'s' if secure else ''}://127.0.0.1:{server.port}"


def check_row(row, server, lines):
    name, _, want, text = row
    log = "".join(lines)
    rig.check(not text or text in log, f"{name}: the log says {text!r}" if text in log else
              f"{name}: the log says {text!r}, not:\n{log}")
    rig.check(("is dropped" in log or "counts as refused" in log) == (want == DROPPED), f"{name}: dropped or not")
    rig.check(("cannot take" in log) == (want in (RETRIED, KEPT)), f"{name}: said to be kept or not")
    rig.check(len(lines) <= 3, f"{name}: {len(lines)} lines in the log")
    if want == KEPT:
        rig.check(server is None or server.count() == 0, f"{name}: nothing is sent")
        return
    first, again = server.requests[0], [r for r in server.requests[1:] if r[2] == server.requests[0][2]]
    if first[2]:
        rig.check(bool(again) == (want == RETRIED), f"{name}: the payload is {'' if again else 'not '}sent again")
    if name in DELAYS:
        rig.check(again[0][0] - first[0] >= DELAYS[name], f"{name}: after {again[0][0] - first[0]:.2f} s")
    bodies = [r[2] for r in server.requests[1:]]
    rig.check(len(set(bodies)) == len(bodies), f"{name}: none is sent twice after that")


def check_elsewhere(good, stored):
    kept = sum(n for name in glob.glob(stored + "/*.gz")
               for _, _, _, n in otlp.View(otlp.decode(gzip.open(name).read())).samples())
    have = sum(n for view in good.views() for _, _, _, n in view.samples())
    rig.check(have == kept > 50, f"the good server beside them has {have} samples of {kept}")
    late = max(r.time - max(w[1] for w in windows_of(r)) / 1e9 for r in good.requests)
    rig.check(late < 10, f"each within {late:.2f} s of its window")


def windows_of(request):
    return [(p.time_unix_nano, p.time_unix_nano + p.duration_nano)
            for rp in otlp.decode(request.body).resource_profiles for sp in rp.scope_profiles for p in sp.profiles]


def batch(number, rows, ca, contexts):
    with Sink() as good, Sink() as elsewhere:
        servers = [make(kind, contexts, elsewhere) for _, kind, _, _ in rows]
        stored = rig.path(f"store{number}")
        rig.write("secret.headers", f"authorization: {SECRET}\n")
        os.chmod(rig.path("secret.headers"), 0o600)
        daemon = rig.Daemon(
            "[profiler]\nreporter_interval = 1s\nsamples_per_second = 49\n[spool]\nenabled = no\n"
            f"[store]\nenabled = yes\npath = {stored}\n[export:good]\nendpoint = {good.endpoint}\n"
            + "".join(f"[export:row{i}]\nendpoint = {endpoint}\ntimeout = 1500ms\ncertificate = {ca}\n"
                      f"headers_file = {rig.path('secret.headers')}\n"
                      for i, (_, endpoint) in enumerate(servers)), name=f"batch{number}")
        daemon.wait_up()
        told = []
        try:
            for row, (server, _) in zip(rows, servers):
                if row[2] != KEPT:
                    rig.wait_for(f"{row[0]}: three requests", lambda s=server: s.count() >= 3, 20)
            good.wait_for(4)
            peak = int(rig.status_of(daemon.role("exporter"))["VmHWM"].split()[0])
            rig.check(peak < RSS_MAX_KIB, f"the exporter took {peak} KiB at the most (limit {RSS_MAX_KIB})")
            for pid in [daemon.pid, *daemon.roles().values()]:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    told.append(f.read())
        finally:
            daemon.stop()
        log = daemon.log()
        for i, (row, (server, _)) in enumerate(zip(rows, servers)):
            if server:
                server.stop()
            # The last words of a daemon that ends are of what it could not deliver.
            check_row(row, server, [l for l in log.splitlines(True) if f"export:row{i}: " in l
                                    and "were dropped in all" not in l])
        check_elsewhere(good, stored)
        rig.check(elsewhere.count() == 0, "where redirects point to, nothing comes")
        rig.check(all(SECRET in r[1] for s, _ in servers if s for r in s.requests), "the credentials are sent")
        rig.check("canary" not in log and not any(b"canary" in t for t in told),
                  "and are neither in the log nor on a command line")


def main():
    rig.need_root()
    rig.need_programs("openssl")
    ca, contexts = certificates()
    rig.start(["./chain", "30"], cwd=rig.build_workloads("chain"))  # something to send
    for number, begin in enumerate(range(0, len(ROWS), BATCH)):
        batch(number, ROWS[begin:begin + BATCH], ca, contexts)


if __name__ == "__main__":
    rig.run(main)
