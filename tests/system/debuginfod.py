# SPDX-License-Identifier: Apache-2.0
# Rooms: symbolize src/symbolizer src/fetcher src/http src/broker src/opener
"""Debug files from debuginfod servers: a stripped program gets its names and lines from Debian's server
while the windows go on; servers that are dead, slow, lie or send elsewhere cost nobody anything but names; what was
fetched and what is missing is remembered, within bounds."""
import ctypes
import functools
import http.server
import os
import re
import signal
import subprocess
import threading
import time

import otlp
import rig
import sink
from badserver import certificates

SOURCE = os.path.join(rig.WORKLOADS, "outer.c")
INNER_LINES = range(5, 8)
CONFIG = """[profiler]
reporter_interval = 1s
[symbolizer]
lines = yes
inline = yes
[debuginfod]
urls = {urls}
cache_path = {cache}
timeout = {timeout}
{more}
[export:sink]
endpoint = {endpoint}
"""


class Program:
    """Stripped, running, with a build id of its own; its debug file apart."""

    def __init__(self, name, padding=0):
        self.name, self.file, self.debug = name, rig.path(name), rig.path(f"{name}.full")
        self.id = (name.encode().hex() + "00" * 20)[:40]
        subprocess.run(["gcc", "-g", "-O2", f"-Wl,--build-id=0x{self.id}", "-o", self.file, SOURCE], check=True)
        subprocess.run(["objcopy", "--only-keep-debug", self.file, self.debug], check=True)
        if padding:
            with open(rig.path("padding"), "wb") as f:
                f.write(os.urandom(padding))
            subprocess.run(["objcopy", f"--add-section=.padding={rig.path('padding')}", self.debug], check=True)
        subprocess.run(["strip", self.file], check=True)
        self.process = rig.start([self.file, "20"])


class Server:
    """As a debuginfod; each build id has a way of its own to be answered."""

    def __init__(self, tls=None):
        self.asked, self.answers = [], {}
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                build_id = self.path.split("/")[2]
                server.asked.append(build_id)
                server.answers.get(build_id, missing)(self)

            def log_message(self, *_):
                pass

        class Http(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.http = Http(("127.0.0.1", 0), Handler)
        if tls:
            self.http.socket = tls.wrap_socket(self.http.socket, server_side=True)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def asked_for(self, program):
        return self.asked.count(program.id)


def missing(handler):
    handler.send_error(404)


def slow(handler):
    time.sleep(20)


def endless(handler):
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(bytes(65536))


def half(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.wfile.write(b"\x7fELF")


def whole(file):
    def answer(handler):
        with open(file, "rb") as f:
            body = f.read()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
    return answer


def redirect(to, query=""):
    def answer(handler):
        handler.send_response(302)
        handler.send_header("Location", to + handler.path + query)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
    return answer


def real_server(directory):
    port = rig.free_port()
    server = rig.start(["debuginfod", "-F", "-p", str(port), "-d", ":memory:", "-t", "1", directory],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return server, f"http://127.0.0.1:{port}"


@functools.lru_cache(maxsize=None)
def tells(body, name):
    """Whether a window has the functions of the program; with the lines of inner(). None: it has none of its samples."""
    view = otlp.view_of(body)
    stacks = [frames for resource, _, frames, _ in view.samples() if resource.get("process.executable.name") == name]
    lines = {line.line for location in view.dictionary.location_table for line in location.lines
             if view.strings[view.dictionary.function_table[line.function_index].name_strindex] == "inner"}
    return any("outer" in frames for frames in stacks) and bool(lines & set(INNER_LINES)) if stacks else None


def named(receiver, program):
    """Whether the last window with the program has it."""
    told = (tells(body, program.name) for body in reversed(receiver.payloads()))
    return next((x for x in told if x is not None), False)


def daemon(receiver, name, urls, more="", cache=None, timeout="1s"):
    cache = cache or rig.path(f"{name}.cache")
    d = rig.Daemon(CONFIG.format(urls=" ".join(urls), cache=cache, more=more, timeout=timeout,
                                 endpoint=receiver.endpoint), name=name)
    d.wait_up()
    return d, cache


def status(d, key):
    p = subprocess.run([rig.perfwalk(), "ctl", "-s", d.control, "status", "--all"], stdout=subprocess.PIPE, text=True,
                       check=False)
    m = re.search(rf"^{re.escape(key)} (\d+)$", p.stdout, re.M)
    return int(m[1]) if m else None


def files(cache, suffix=""):
    return sorted(f for f in os.listdir(cache) if f.endswith(suffix))


def check_real(receiver):
    """One server dead, one that never answers, then the real one."""
    program = Program("real")
    directory = rig.path("served")
    os.mkdir(directory)
    os.rename(program.debug, os.path.join(directory, "real.debug"))
    server, url = real_server(directory)
    silent = Server()
    silent.answers[program.id] = slow
    dead = f"http://127.0.0.1:{rig.free_port()}"
    d, cache = daemon(receiver, "real", [dead, silent.url, url])
    rig.wait_for("names and lines from the server", lambda: named(receiver, program), 20)
    rig.say("ok: names and lines come from Debian's debuginfod behind a dead and a silent server")
    rig.check(files(cache, ".debug") == [program.id + ".debug"] and not files(cache, ".part"),
              f"the cache holds the file: {files(cache)}")
    log = d.log()
    for name, other in (("dead", dead), ("silent", silent.url)):
        n = log.count(f"debuginfod: {other}: ")
        rig.check(n == 1, f"the {name} server is one line in the log" + ("" if n == 1 else f", not {n}:\n{log}"))
    rig.check(status(d, "debuginfod.fetched") >= 1 and status(d, "debuginfod.failures") >= 2, "it is counted")
    times = [r.time for r in receiver.requests]
    gaps = [b - a for a, b in zip(times, times[1:])]
    rig.check(not gaps or max(gaps) < 8, f"windows went on meanwhile, at most {max(gaps or [0]):.1f} s apart")

    # From the cache, without a server, by a daemon that hears of it when it has named the program without.
    d.stop()
    rig.end(server)
    n = receiver.count()
    d, _ = daemon(receiver, "again", [], cache=cache)
    rig.wait_for("the program", lambda: any(tells(x, program.name) is not None for x in receiver.payloads()[n:]), 60)
    rig.check(not named(receiver, program) and not d.role("fetcher"), "without urls there are no names")
    rig.write("again.conf", CONFIG.format(urls=dead, cache=cache, more="", timeout="1s",
                                         endpoint=receiver.endpoint))
    rig.kill(d.pid, signal.SIGHUP)
    rig.wait_for("names from the cache", lambda: named(receiver, program), 10)
    rig.check(status(d, "debuginfod.fetched") == 0, "the next daemon takes it from the cache")
    d.stop()
    rig.end(program.process)


def check_bad(receiver):
    """Answers that are of no use, and a cache that is too small for two files."""
    bad = {name: Program(name) for name in ("nobody", "endless", "other", "half")}
    large = [Program(f"large{i}", padding=600 << 10) for i in range(2)]
    server = Server()
    server.answers = {bad["endless"].id: endless, bad["other"].id: whole(bad["nobody"].debug),
                      **{p.id: whole(p.debug) for p in large}}
    d, cache = daemon(receiver, "bad", [server.url], "cache_size = 1M")
    for p in large:
        rig.wait_for(f"names of {p.name}", lambda p=p: named(receiver, p), 20)
    rig.wait_for("an end of the others", lambda: len(files(cache, ".missing")) >= 3, 10)
    wanted = {bad[name].id + ".missing" for name in ("nobody", "endless", "other")}
    rig.check(wanted <= set(files(cache, ".missing")), "404, endless and another file: remembered as missing")
    rig.check(len(files(cache, ".debug")) == 1 and not files(cache, ".part"),
              f"a full cache: the older file went: {files(cache)}")
    rig.check(status(d, "debuginfod.evicted") >= 1, "it is counted")
    rig.check(not any(named(receiver, bad[name]) for name in bad), "none of them gave names")
    d.stop()
    asked = [server.asked_for(bad[name]) for name in ("nobody", "endless", "other")]
    d, _ = daemon(receiver, "after", [server.url], "cache_size = 1M", cache)
    rig.wait_for("the next daemon asks", lambda: (status(d, "samples") or 0) > 0, 10)
    n = receiver.count()
    receiver.wait_for(n + 3)
    rig.check([server.asked_for(bad[name]) for name in ("nobody", "endless", "other")] == asked,
              "the next daemon does not ask for them again")

    # A download that ends early is a failure of the server; it is off limits for a while.
    server.answers[bad["half"].id] = half
    os.unlink(os.path.join(cache, bad["half"].id + ".missing"))
    d.stop()
    d, _ = daemon(receiver, "early", [server.url], "cache_size = 1M", cache)
    rig.wait_for("the failure in the log", lambda: f"debuginfod: {server.url}: " in d.log(), 10)
    rig.check(not any(f.startswith(bad["half"].id) for f in files(cache)), "half a file is none")
    lines = [line for line in d.log().splitlines() if "debuginfod: " in line]
    rig.check(len(lines) == 1, "one line for it" + ("" if len(lines) == 1 else f", not {lines}"))
    old = d.role("fetcher")
    rig.kill(old, 9)
    n = receiver.count()
    receiver.wait_for(n + 2)
    rig.wait_for("another fetcher", lambda: d.role("fetcher") not in (0, old))
    rig.check(d.alive(), "the fetcher may die: windows go on, and a new one starts")
    d.stop()
    for p in [*bad.values(), *large]:
        rig.end(p.process)


def check_full(receiver):
    """A cache on a disk without room."""
    if not rig.can_mount():
        rig.leave_out("a full disk: no tmpfs can be mounted")
        return
    small, large = Program("small"), Program("toolarge", padding=600 << 10)
    disk = rig.path("disk")
    os.mkdir(disk)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", disk], check=True)
    try:
        server, other = Server(), Server()
        for s in (server, other):
            s.answers = {large.id: whole(large.debug), small.id: whole(small.debug)}
        # A server that a busy host delays is no failure.
        d, cache = daemon(receiver, "full", [server.url, other.url], cache=os.path.join(disk, "cache"), timeout="20s")
        rig.wait_for("names of the file that fits", lambda: named(receiver, small), 20)
        full = f"debuginfod: {cache} cannot be written: No space left on device"
        rig.wait_for("the full disk in the log", lambda: full in d.log(), 20)
        n = receiver.count()
        receiver.wait_for(n + 2)
        rig.check(d.log().count("debuginfod: ") == 1, "a full disk is one line in the log")
        # Other programs of the host are asked for meanwhile.
        rig.wait_for("what does not fit leaves nothing behind", lambda: not files(cache, ".part"), 20)
        rig.check(files(cache, ".debug") == [small.id + ".debug"], f"what fits is there: {files(cache)}")
        rig.check(other.asked_for(large) == 0, "no other server is asked for what cannot be kept")
        rig.check(d.alive() and d.role("fetcher") and not named(receiver, large), "windows go on, without its names")
        # It comes when there is room.
        subprocess.run(["mount", "-o", "remount,size=2m", disk], check=True)
        rig.kill(d.role("fetcher"), 9)
        rig.wait_for("names when there is room", lambda: named(receiver, large), 20)
        rig.say("ok: with room the file comes")
        d.stop()
    finally:
        subprocess.run(["umount", "-l", disk], check=False)
    for p in (small, large):
        rig.end(p.process)


def landlock_version():
    return ctypes.CDLL(None, use_errno=True).syscall(444, None, 0, 1)


def check_redirects(receiver):
    """To this host's own link, from https to http, and to another port: none is followed. On the same server one is."""
    program = Program("moved")
    link, port, same, elsewhere = (Server() for _ in range(4))
    link.answers[program.id] = redirect("http://169.254.7.7")
    port.answers[program.id] = redirect(elsewhere.url)
    same.answers[program.id] = lambda handler: (whole(program.debug) if handler.path.endswith("?moved")
                                                else redirect("", "?moved"))(handler)
    servers, prefix = [link, port], []
    wanted = {link: "leads to this host or to a link-local address"}
    if rig.can_mount():
        # The authorities that the fetcher trusts are the host's.
        authority, contexts = certificates()
        prefix = rig.with_file(authority, "/etc/ssl/certs/ca-certificates.crt")
        secure = Server(contexts["good"])
        secure.answers[program.id] = redirect(elsewhere.url)
        servers.append(secure)
        wanted[secure] = "rotocol"  # libcurl says it in several ways
    else:
        rig.leave_out("from https to http: nothing can be mounted")
    if landlock_version() >= 4:
        wanted[port] = "leads to a port other than 80, 443 and those of the configured servers"
    else:
        rig.leave_out("to another port: this kernel's Landlock knows no ports (Linux 6.7)")
    d = rig.Daemon(CONFIG.format(urls=" ".join(s.url for s in [*servers, same]), cache=rig.path("redirects.cache"), more="",
                                 timeout="5s", endpoint=receiver.endpoint), name="redirects", argv_prefix=prefix)
    d.wait_up()
    rig.wait_for("names from the last server", lambda: named(receiver, program), 40)
    for server, why in wanted.items():
        line = next((x for x in d.log().splitlines() if f"debuginfod: {server.url}: " in x), "")
        rig.check("its redirect (302) is not followed: " in line and why in line,
                  "a redirect is not followed: " + (line or f"\n{d.log()}"))
    rig.check(all(server.asked_for(program) for server in servers), "all were asked")
    rig.check(port not in wanted or not elsewhere.asked, "where they point to, nothing comes")
    rig.check(d.log().count(same.url) == 0 and same.asked_for(program) == 2, "one to the same server is followed")
    d.stop()
    rig.end(program.process)


KERNEL = r"""
void text(void) {}
__attribute__((section(".entry"))) int do_syscall_64(int a)
{
	__asm__ volatile(".fill 8192, 1, 0x90");
	return a;
}
"""


def kernel_debug_file():
    """One with this kernel's build id, that has one function at its place; and the build id."""
    with open("/sys/kernel/notes", "rb") as f:
        notes = f.read()
    at = notes.find(b"\x14\0\0\0\3\0\0\0GNU\0")
    addresses = {}
    with open("/proc/kallsyms", encoding="ascii", errors="replace") as f:
        for line in f:
            address, kind, name = line.split("\t")[0].split()[:3]
            if "\t" not in line and kind in "tT":
                addresses.setdefault(name, int(address, 16))
    if at < 0 or not addresses.get("do_syscall_64"):
        return None, None
    build_id = notes[at + 12:at + 32].hex()
    text = 0xffffffff81001000
    entry = text + addresses["do_syscall_64"] - min(a for a in addresses.values() if a)
    source, file, debug = rig.write("entry.c", KERNEL), rig.path("vmlinux"), rig.path("vmlinux.debug")
    subprocess.run(["gcc", "-g", "-O1", "-nostdlib", "-static", "-ffreestanding", "-mcmodel=kernel", "-fno-pic",
                    "-no-pie", f"-Wl,-Ttext={text:#x},--section-start=.entry={entry:#x},--build-id=0x{build_id},-e,text",
                    "-o", file, source], check=True)
    subprocess.run(["objcopy", "--only-keep-debug", file, debug], check=True)
    return debug, build_id


def kernel_lines(receiver):
    """Those of do_syscall_64 in the last window."""
    view = otlp.view_of(receiver.payloads()[-1]) if receiver.payloads() else None
    functions = view.dictionary.function_table if view else []
    return {(view.strings[functions[line.function_index].filename_strindex].rsplit("/")[-1], line.line)
            for location in (view.dictionary.location_table if view else []) for line in location.lines
            if view.strings[functions[line.function_index].name_strindex] == "do_syscall_64"}


def check_kernel(receiver):
    """Frames of the kernel get lines from its debug file."""
    file, build_id = kernel_debug_file()
    if not file or os.uname().machine != "x86_64":
        rig.leave_out("the kernel's debug file: no build id, no addresses, or no x86_64")
        return
    server, held = Server(), threading.Event()

    def later(handler):
        held.wait(20)
        whole(file)(handler)

    server.answers[build_id] = later
    caller = rig.start(["dd", "if=/dev/zero", "of=/dev/null", "bs=1"], stderr=subprocess.DEVNULL)
    d, cache = daemon(receiver, "kernel", [server.url], timeout="30s")
    rig.wait_for("the kernel's name without a line", lambda: kernel_lines(receiver) == {("", 0)}, 20)
    rig.wait_for("the question for it", lambda: build_id in server.asked, 10)
    held.set()
    rig.wait_for("its line", lambda: kernel_lines(receiver) == {("entry.c", 5)}, 20)
    rig.say("ok: the kernel's frames have lines of the debug file that came")
    rig.check(build_id + ".debug" in files(cache) and server.asked.count(build_id) == 1, "it was asked for once")
    d.stop()
    rig.end(caller)


def check_record():
    """A capture takes DEBUGINFOD_URLS, and waits a moment at its end."""
    program = Program("captured")
    server = Server()
    server.answers[program.id] = whole(program.debug)
    folded = rig.path("captured.folded")

    def capture(urls):
        r = rig.record("-p", program.process.pid, "-F", 199, "-d", "1.2", "-o", folded,
                       env={**os.environ, "DEBUGINFOD_URLS": urls, "XDG_CACHE_HOME": rig.path("xdg")})
        rig.check(r.status == 0, "a capture" + ("" if r.status == 0 else r.text()))
        stacks = rig.read_folded(folded)
        return sum(s.n for s in stacks if rig.contains_path(s.user, ["main", "outer", "inner_[i]"])), rig.total(stacks), r

    n, total, r = capture("")
    rig.check(total > 10 and n == 0 and server.asked_for(program) == 0, "off without DEBUGINFOD_URLS")
    n, total, r = capture(f"ima:enforcing file:///srv {server.url}/")
    rig.check(total > 10 and n > 0.8 * total, f"{n} of {total} samples of the first capture have names")
    rig.check(files(rig.path("xdg/perfwalk/debuginfod"), ".debug") == [program.id + ".debug"], "it is kept in XDG_CACHE_HOME")
    rig.check("DEBUGINFOD_URLS: expected" in r.err, "a URL that is no server's is reported")
    recorded = rig.path("captured.data")
    subprocess.run(["perf", "record", "-q", "-N", "-e", "cpu-clock", "-F", "199", "--call-graph", "dwarf", "-o", recorded,
                    "-p", str(program.process.pid), "--", "sleep", "1"], check=True, timeout=120)
    for urls, cache, wanted in (("", "xdg", 0), (server.url, "xdg-of-perf-data", 0.8)):
        r = rig.Record([rig.perfwalk(), "convert", recorded, "-o", folded], 30,
                       env={**os.environ, "DEBUGINFOD_URLS": urls, "XDG_CACHE_HOME": rig.path(cache)})
        stacks = rig.read_folded(folded)
        n = sum(s.n for s in stacks if rig.contains_path(s.user, ["main", "outer", "inner_[i]"]))
        rig.check(r.status == 0 and (n > wanted * rig.total(stacks) if wanted else n == 0),
                  f"{n} of {rig.total(stacks)} samples of a perf.data file have names with DEBUGINFOD_URLS={urls}")
    rig.end(program.process)


def main():
    rig.need_root()
    rig.need_programs("gcc", "objcopy", "debuginfod", "openssl", "perf")
    with sink.Sink() as receiver:
        check_real(receiver)
        check_bad(receiver)
        check_full(receiver)
        check_redirects(receiver)
        check_kernel(receiver)
    check_record()


rig.run(main)
