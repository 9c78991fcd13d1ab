#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An HTTP server of debug files for test-debuginfod: debug-server.py DIRECTORY. It says its port, and
then each path that it is asked for. The build id says how it answers, by its first byte."""
import http.server
import os
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, status, body=b"", headers=(), length=True):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if length is not False:
            self.send_header("Content-Length", str(len(body) if length is True else length))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        print(self.path, flush=True)
        name = self.path.split("/")[2]
        file = os.path.join(sys.argv[1], name + ".elf")
        body = open(file, "rb").read() if os.path.exists(file) else b""
        kind = name[:2]
        if self.path.startswith("/moved/"):
            self.answer(200, body)
        elif kind == "aa":  # as it should be
            self.answer(200 if body else 404, body)
        elif kind == "ab":  # without a length
            self.answer(200, body, length=False)
        elif kind == "ac":  # as another path of this server
            self.answer(302, headers=[("Location", "/moved/" + name)])
        elif kind == "ad":  # without end
            self.answer(302, headers=[("Location", self.path)])
        elif kind == "ae":  # at an address where clouds keep credentials
            self.answer(302, headers=[("Location", "http://169.254.169.254/" + name)])
        elif kind == "af":  # half of it
            self.answer(200, body[:len(body) // 2], length=len(body))
        elif kind == "ba":
            self.answer(500, b"no")
        elif kind == "bb":  # the file of another id
            self.answer(200, open(os.path.join(sys.argv[1], "aa01.elf"), "rb").read())
        elif kind == "bc":
            self.answer(200)
        else:
            self.answer(404, b"none")

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
