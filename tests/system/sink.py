# SPDX-License-Identifier: Apache-2.0
"""An OTLP/HTTP profiles receiver for tests: keeps every request body as it came (unpacked), says
what is wrong with a request's headers, and can answer as told.

    with Sink() as sink: ... sink.endpoint ... sink.payloads()
    sink.answers = [503, (429, {"Retry-After": "1"}, b""), 200]   the next answers; then 200 again
"""
import gzip
import http.server
import re
import socket
import threading
import time
import zlib

import otlp
import rig
from otlp_check import check as problems_of

PATH = "/v1development/profiles"


def paused_ms(views):
    """The sum of the profiles' attribute perfwalk.paused_ms."""
    return sum(int(v.table_attributes(profile.attribute_indices).get("perfwalk.paused_ms", 0))
               for v in views for rp in v.message.resource_profiles for sp in rp.scope_profiles
               for profile in sp.profiles)


class Request:
    def __init__(self, path, headers, raw):
        self.time = time.time()
        self.path = path
        self.headers = headers
        self.raw = raw
        self.status = 0
        self.header_problems = []
        self.body = self.unpack()
        self.check_headers()

    def unpack(self):
        encoding = self.headers.get("Content-Encoding", "identity")
        if encoding == "identity":
            return self.raw
        if encoding != "gzip":
            self.header_problems.append(f"Content-Encoding {encoding!r}")
            return b""
        try:
            return gzip.decompress(self.raw)
        except (OSError, EOFError, zlib.error) as e:
            self.header_problems.append(f"the body is not gzip: {e}")
            return b""

    def check_headers(self):
        def want(name, pattern):
            values = self.headers.get_all(name) or []
            if len(values) != 1 or not re.fullmatch(pattern, values[0]):
                self.header_problems.append(f"{name}: {values}, wanted one of the form {pattern}")
        if self.path != PATH:
            self.header_problems.append(f"path {self.path!r}, wanted {PATH}")
        want("Content-Type", "application/x-protobuf")
        want("OTLP-Profiles-Development-Version", "1")
        want("User-Agent", r"(?:[^ ]+ )?OTel-OTLP-Exporter-[A-Za-z]+/[0-9][^ ]*(?: .*)?|perfwalk/[0-9].*")
        if not self.body:
            self.header_problems.append("an empty body")


class Sink:
    def __init__(self, port=0):
        self.requests = []
        self.answers = []
        self.connections = set()
        self.lock = threading.Lock()
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                n = int(self.headers.get("Content-Length") or 0)
                request = Request(self.path, self.headers, self.rfile.read(n))
                status, headers, body = sink.take(request)
                self.send_response(status)
                self.send_header("Content-Type", "application/x-protobuf")
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def setup(self):
                super().setup()
                with sink.lock:
                    sink.connections.add(self.connection)

            def finish(self):
                with sink.lock:
                    sink.connections.discard(self.connection)
                super().finish()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *_):
                pass  # a client that goes away is no event

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def take(self, request):
        with self.lock:
            answer = self.answers.pop(0) if self.answers else 200
            status, headers, body = answer if isinstance(answer, tuple) else (answer, {}, b"")
            request.status = status
            self.requests.append(request)
        return status, headers, body

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """The port is closed, and so is every connection that was kept open."""
        self.server.shutdown()
        self.server.server_close()
        with self.lock:
            for connection in self.connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # gone by itself

    def count(self):
        with self.lock:
            return len(self.requests)

    def payloads(self):
        """Accepted bodies, in order of arrival."""
        with self.lock:
            return [r.body for r in self.requests if r.status == 200]

    def wait_for(self, n, seconds=20):
        rig.wait_for(f"{n} requests at the receiver", lambda: self.count() >= n, seconds)

    def views(self):
        return [otlp.view_of(body) for body in self.payloads()]

    def problems(self, **options):
        """Everything wrong with what came, headers and bodies."""
        found = []
        with self.lock:
            requests = list(self.requests)
        for i, request in enumerate(requests):
            found += [f"request {i}: {text}" for text in request.header_problems]
            found += [f"request {i}: {rule}: {text}" for rule, text in
                      problems_of(request.body, **options)]
        return found


def windows(views):
    """(begin, end) in ns of every window seen, in order of time. A window may come in pieces, which end together; the
    first begins last."""
    found = {}
    for view in views:
        for rp in view.message.resource_profiles:
            for sp in rp.scope_profiles:
                for p in sp.profiles:
                    end = p.time_unix_nano + p.duration_nano
                    found[end] = max(found.get(end, 0), p.time_unix_nano)
    return sorted((begin, end) for end, begin in found.items())
