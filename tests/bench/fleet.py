#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays recorded windows as many hosts into one OTLP/HTTP receiver: what does it take?

    perfwalk record -a -d 10 -o window.otlp                # or files of a daemon's store
    python3 tests/bench/fleet.py --endpoint http://127.0.0.1:4318 --pid COLLECTOR window.otlp...

Each host has a name of its own (host.name) and sends a window at each interval, at a time of its own. Hosts are added
until a request fails or the slowest twentieth takes longer than --slow; the last number that went well is printed, with
the receiver's CPU time if --pid says who it is. --hosts N tries that number alone. The senders take CPU time, too: on one
machine the result is a lower bound, so run them elsewhere for the truth. Exit status 1 when no number went well."""
import argparse
import gzip
import http.client
import os
import queue
import random
import sys
import threading
import time
import urllib.parse


# ---- host.name in the bytes of a message ----

PROFILES_DATA = {1, 2}  # resource_profiles, dictionary
OF_STORE = 15  # what a store has beside them


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def read_varint(data, at):
    n = shift = 0
    while True:
        n |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return n, at


def fields(data):
    """(number, all bytes of the field, its contents or None)."""
    at = 0
    while at < len(data):
        begin = at
        tag, at = read_varint(data, at)
        kind, contents = tag & 7, None
        if kind == 0:
            _, at = read_varint(data, at)
        elif kind == 2:
            n, at = read_varint(data, at)
            contents, at = data[at:at + n], at + n
        else:
            at += 8 if kind == 1 else 4
        if at > len(data):
            raise IndexError("cut short")
        yield tag >> 3, data[begin:at], contents


def message(number, contents):
    return varint(number << 3 | 2) + varint(len(contents)) + contents


def is_host_name(attribute):
    return any(n == 1 and contents == b"host.name" for n, _, contents in fields(attribute))


def with_host(data, name):
    """ProfilesData with that host.name in each Resource, and nothing else."""
    ours = message(1, message(1, b"host.name") + message(2, message(1, name.encode())))
    out = b""
    for number, whole, contents in fields(data):
        if number == 1:
            parts = b""
            for n, part, resource in fields(contents):
                if n == 1:
                    others = b"".join(w for k, w, c in fields(resource) if not (k == 1 and is_host_name(c)))
                    part = message(1, ours + others)
                parts += part
            whole = message(1, parts)
        if number in PROFILES_DATA:
            out += whole
    return out


def read_window(path):
    """As a capture writes it, or gzipped, as a store has it."""
    with open(path, "rb") as f:
        data = f.read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    try:
        numbers = {number for number, _, _ in fields(data)}
    except IndexError:
        numbers = set()
    if not PROFILES_DATA <= numbers | {2} <= PROFILES_DATA | {OF_STORE}:
        sys.exit(f"{path}: no OTLP profiles; record -o FILE.otlp makes such a file")
    return data


# ---- Sending ----

class Attempt:
    """So many hosts for so long."""

    def __init__(self, options, windows, n_hosts):
        self.options, self.windows, self.n_hosts = options, windows, n_hosts
        self.waits, self.failures, self.due = [], [], queue.Queue()
        self.url = urllib.parse.urlsplit(options.endpoint)

    def bodies(self):
        """Of each host, compressed beforehand: what is measured is not the sender."""
        return [gzip.compress(with_host(self.windows[i % len(self.windows)], f"host-{i:05}"), 1) for i in range(self.n_hosts)]

    def sender(self):
        connection = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=self.options.slow * 10)
        while True:
            item = self.due.get()
            if item is None:
                return
            when, body = item
            try:
                connection.request("POST", "/v1development/profiles", body,
                                   {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"})
                reply = connection.getresponse()
                reply.read()
                if reply.status != 200:
                    self.failures.append(f"status {reply.status}")
            except (OSError, http.client.HTTPException) as e:
                self.failures.append(str(e))
                connection.close()
            self.waits.append(time.monotonic() - when)

    def run(self):
        bodies, interval = self.bodies(), self.options.interval
        senders = [threading.Thread(target=self.sender) for _ in range(self.options.connections)]
        for s in senders:
            s.start()
        cpu, begin = cpu_seconds(self.options.pid), time.monotonic()
        offsets = sorted((random.random() * interval, i) for i in range(self.n_hosts))
        for turn in range(max(1, round(self.options.seconds / interval))):
            for offset, i in offsets:
                when = begin + turn * interval + offset
                time.sleep(max(0, when - time.monotonic()))
                self.due.put((when, bodies[i]))
        for _ in senders:
            self.due.put(None)
        for s in senders:
            s.join()
        self.seconds, self.cpu = time.monotonic() - begin, cpu_seconds(self.options.pid) - cpu
        return self

    def good(self):
        return not self.failures and self.percentile(95) <= self.options.slow

    def percentile(self, n):
        return sorted(self.waits)[min(len(self.waits) - 1, len(self.waits) * n // 100)]

    def __str__(self):
        used = f", receiver {100 * self.cpu / self.seconds:.0f}% of a CPU" if self.options.pid else ""
        return (f"{self.n_hosts} hosts: {len(self.waits)} requests in {self.seconds:.1f} s, {len(self.failures)} failed, "
                f"median {self.percentile(50) * 1000:.0f} ms, 95% within {self.percentile(95) * 1000:.0f} ms{used}"
                + (f" ({self.failures[0]})" if self.failures else ""))


def cpu_seconds(pid):
    if not pid:
        return 0
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        words = f.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("windows", nargs="+", metavar="FILE", help="OTLP files: record -o FILE.otlp, or a store's")
    parser.add_argument("--endpoint", default="http://127.0.0.1:4318", metavar="URL")
    parser.add_argument("--interval", type=float, default=10, help="seconds between two windows of a host (10)")
    parser.add_argument("--seconds", type=float, default=20, help="for each number of hosts (20)")
    parser.add_argument("--slow", type=float, default=1, help="seconds that 95%% of the requests may take (1)")
    parser.add_argument("--hosts", type=int, help="only this number")
    parser.add_argument("--first", type=int, default=16, help="the first number (16)")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--pid", type=int, help="of the receiver, if it runs here")
    options = parser.parse_args()
    windows = [read_window(name) for name in options.windows]
    n, best, worst = options.hosts or options.first, 0, None
    while not worst or worst - best > max(1, best // 10):
        attempt = Attempt(options, windows, n).run()
        print(attempt, flush=True)
        if attempt.good():
            best = n
        else:
            worst = n
        if options.hosts:
            break
        n = (best + worst) // 2 if worst else 2 * n
        if n == best:
            break
    print(f"{best} hosts, {sum(map(len, windows)) / len(windows) / 1024:.0f} KiB a window, every {options.interval:g} s")
    sys.exit(0 if best else 1)


if __name__ == "__main__":
    main()
