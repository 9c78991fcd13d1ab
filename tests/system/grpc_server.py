# SPDX-License-Identifier: Apache-2.0
"""A gRPC server that answers as it is told: HTTP/2 without TLS by the h2 library."""
import base64
import socket
import sys
import threading

import rig

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's, when another Python comes first
try:
    import h2.config
    import h2.connection
    import h2.events
    import h2.exceptions
except ImportError:
    h2 = None


class Call:
    def __init__(self):
        self.headers = {}
        self.body = b""


def retry_info(seconds):
    delay = b"\x08" + bytes([seconds])
    info = b"\x0a" + bytes([len(delay)]) + delay
    url = b"type.googleapis.com/google.rpc.RetryInfo"
    detail = b"\x0a" + bytes([len(url)]) + url + b"\x12" + bytes([len(info)]) + info
    status = b"\x08\x08\x1a" + bytes([len(detail)]) + detail
    return base64.b64encode(status).rstrip(b"=").decode()


class Server:
    """Answers its calls by the script's entries in turn, and by then behind them."""

    def __init__(self, script, then):
        if h2 is None:
            rig.skip("python3-h2 is not installed")
        self.script, self.then = list(script), then
        self.calls = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.stopping = False
        self.acceptor = threading.Thread(target=self._accept, daemon=True)
        self.acceptor.start()

    def stop(self):
        self.stopping = True
        # See badserver.py.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.acceptor.join()
        self.listener.close()

    def _accept(self):
        while not self.stopping:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        c = h2.connection.H2Connection(config=h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        c.initiate_connection()
        sock.sendall(c.data_to_send())
        calls = {}
        try:
            while True:
                data = sock.recv(65536)
                if not data:
                    return
                for e in c.receive_data(data):
                    if isinstance(e, h2.events.RequestReceived):
                        calls[e.stream_id] = Call()
                        calls[e.stream_id].headers = dict(e.headers)
                    elif isinstance(e, h2.events.DataReceived):
                        calls[e.stream_id].body += e.data
                        c.acknowledge_received_data(e.flow_controlled_length, e.stream_id)
                    elif isinstance(e, h2.events.StreamEnded):
                        self.calls.append(calls[e.stream_id])
                        how = self.script.pop(0) if self.script else self.then
                        if not self._answer(c, sock, e.stream_id, how):
                            return
                sock.sendall(c.data_to_send())
        except (OSError, h2.exceptions.ProtocolError):
            pass
        finally:
            sock.close()

    @staticmethod
    def _answer(c, sock, stream, how):
        """False: the connection is over."""
        if how.get("close"):
            return False
        if how.get("goaway"):
            c.close_connection(error_code=2)
            sock.sendall(c.data_to_send())
            return False
        if how.get("reset"):
            c.reset_stream(stream, error_code=2)
            return True
        trailers = []
        if how.get("status") is not None:
            trailers.append(("grpc-status", str(how["status"])))
        if "message" in how:
            trailers.append(("grpc-message", how["message"]))
        if "retry" in how:
            trailers.append(("grpc-status-details-bin", retry_info(how["retry"])))
        headers = [(":status", str(how.get("http", 200))), ("content-type", "application/grpc")]
        if how.get("trailers_only"):
            c.send_headers(stream, headers + trailers, end_stream=True)
            return True
        c.send_headers(stream, headers)
        if how.get("status") == 0:
            body = how.get("body", b"")
            message = b"\0" + len(body).to_bytes(4, "big") + body
            for part in ([message[:3], message[3:]] if how.get("split") else [message]):
                c.send_data(stream, part)
        if trailers:
            c.send_headers(stream, trailers, end_stream=True)
        else:
            c.send_data(stream, b"", end_stream=True)
        return True
