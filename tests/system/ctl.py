# SPDX-License-Identifier: Apache-2.0
# Rooms: src/cmd src/broker src/opener
"""`perfwalk ctl`: what status says against what is known, a flush that brings what ran just before, a
pause in which nothing is sampled and that the profiles show, a reload; and users who may not ask."""
import json
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import time

import inside
import rig
from sink import Sink, paused_ms

CONFIG = """
[process]
user = bin
[profiler]
samples_per_second = 99
reporter_interval = {interval}
interpreters = no
[export:sink]
endpoint = {endpoint}
"""


class Answer:
    def __init__(self, *args, lines=False, **options):
        p = subprocess.run([rig.perfwalk_for_others(), "ctl", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, check=False, timeout=120, stdin=subprocess.DEVNULL, **options)
        self.status, self.out, self.err = p.returncode, p.stdout, p.stderr
        words = not lines and ("--all" in args or "status" not in args)
        self.values = dict(line.split(" ", 1) for line in p.stdout.splitlines()) if words else {}


def ctl(daemon, *args, **options):
    a = Answer("-s", daemon.control, *rig.ctl_words(*args), **options)
    if a.status != 0:
        rig.fail(f"ctl {' '.join(args)}: {a.status}, {a.err}")
    return a.values


def processes(daemon, values):
    roles = {"broker": daemon.pid, **daemon.roles()}
    rig.check(all(int(values[f"{name}.pid"]) == pid for name, pid in roles.items()), f"status knows {roles}")
    for name, pid in roles.items():
        said, known = int(values[f"{name}.memory_bytes"]) >> 10, rig.rss_kib(pid)
        rig.check(abs(said - known) <= known / 2 and float(values[f"{name}.cpu_seconds"]) >= 0,
                  f"{name}: {said} KiB, {values[f'{name}.cpu_seconds']} s")


def forms(sink):
    """For a person some ten lines, of which each is true; for programs JSON of the same names as with --all."""
    d = rig.Daemon(CONFIG.format(interval="1s", endpoint=sink.endpoint) +
                   f"[export:gone.by]\nendpoint = http://127.0.0.1:{rig.free_port()}\n", name="forms")
    d.wait_up()
    rig.wait_for("the control socket", lambda: os.path.exists(d.control))

    def text(*args):
        return subprocess.run([rig.perfwalk(), "ctl", "-s", d.control, "status", *args], stdout=subprocess.PIPE,
                              text=True, check=True, timeout=120).stdout

    first = text()
    rig.check("Export    sink: nothing sent yet" in first or "Export    sink: up for" in first, "at the start")
    rig.wait_for("both were tried", lambda: "up for" in text() and "down for 3s" in text(), 20)
    rig.wait_for("a file was opened", lambda: "opener.pid" in text("--all"), 20)
    person, raw, parsed = text(), dict(x.split(" ", 1) for x in text("--all").splitlines()), json.loads(text("--json"))
    rig.say(person)
    lines = person.splitlines()
    rig.check(7 <= len(lines) <= 12 and all(len(x) <= 100 for x in lines), f"{len(lines)} lines")
    m = re.match(r"State     sampling, since (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) \((\w+)\)$", lines[0])
    start = time.mktime(time.strptime(m[1], "%Y-%m-%d %H:%M:%S"))
    rig.check(abs(start - os.stat(d.control).st_mtime) <= 2, f"it began at {m[1]}, {m[2]} ago")
    rig.check(f"Sampling  {raw['event']} at 99 Hz on {raw['cpus']} CPUs, a profile every 1s" in lines, "how it samples")
    m = re.search(r"^Samples +(\d+) taken\nLosses +(\d+) lost in the kernel, (\d+) dropped$", person, re.M)
    rig.check(0 < int(m[1]) <= int(raw["samples"]) and m[2] == raw["samples_lost"], f"{m[1]} samples, {m[2]} lost")
    m = re.search(r"^Export +sink: up for \w+, (\d+) sent$", person, re.M)
    rig.check(m and 1 <= int(m[1]) <= sink.count(), f"sink: {m and m[0]}, it has {sink.count()}")
    rig.check(re.search(r"^Export +gone\.by: down for \w+, 0 sent, \d+ wait", person, re.M), "and the one that is not there")
    m = re.search(r"^Cost +([\d.]+) s of CPU time \(([\d.]+)% of one CPU\), ([\d.]+) MiB of memory, 5 processes$", person, re.M)
    mine = [d.pid, *d.roles().values(), int(raw["opener.pid"])]
    used, held = sum(rig.cpu_seconds(p) for p in mine), sum(rig.rss_kib(p) for p in mine) / 1024
    rig.check(abs(float(m[1]) - used) <= 0.1 + used / 4 and abs(float(m[3]) - held) <= held / 4,
              f"what it costs: {m[0]}; /proc says {used:.2f} s, {held:.1f} MiB")
    rig.check(parsed.keys() == raw.keys() and len(raw) > 60, f"JSON has all {len(raw)} names")
    kinds = {k: type(v) for k, v in parsed.items()}
    texts = {k for k, t in kinds.items() if t is str}
    rig.check(texts == {"version", "config", "event", "reduced", "export.sink.state", "export.gone.by.state"}
              | {f"{name}.{what}" for name in rig.ROLES for what in ("seccomp", "network", "tasks")} | {"opener.seccomp", "opener.tasks"} and
              kinds["paused"] is bool and kinds["program_replaced"] is bool and
              all(t in (int, float) for k, t in kinds.items() if k not in texts | {"paused", "program_replaced"}),
              "numbers are numbers")
    rig.check(parsed["config"] == d.config and parsed["export.gone.by.state"] == "down" and
              parsed["export.gone.by.state_seconds"] >= 3, "and texts are whole")
    ctl(d, "pause")
    said = text().splitlines()[0]
    m = re.fullmatch(r"State     paused: perfwalk ctl resume continues; running since (\S+ \S+) \(\w+\)", said)
    rig.check(m and abs(time.mktime(time.strptime(m[1], "%Y-%m-%d %H:%M:%S")) - start) <= 2,
              f"a pause is seen at once, and not taken for the whole time: {said!r}")
    told_losses(raw)
    for args in (["status", "--all", "--json"], ["flush", "--json"], ["pause", "--all"]):
        a = Answer("-s", d.control, *args)
        rig.check(a.status == 2 and "--json" in a.err, f"{args}: {a.err.strip()}")
    d.stop()


def other_versions():
    """An earlier or later daemon: what it says besides is JSON, too, and the text says that it is another one."""
    name = rig.path("other.control")
    said = {"version": "0.0.1-other", "uptime_seconds": "5", "paused": "no", "later_text": 'as "it" is', "later_number": "-1.5e3",
            "later_word": "nan", "later_path": "1/2", "later_list": "1 2", "later_zero": "007", "later_none": ""}
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(name)
        s.listen()

        def ask(*args, answer="".join(f"{k} {v}\n" for k, v in said.items()) + "ok\n"):
            p = subprocess.Popen([rig.perfwalk(), "ctl", "-s", name, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            with s.accept()[0] as c:
                c.recv(100)
                c.sendall(answer.encode())
            return p.communicate(timeout=rig.PATIENCE)
        out, _ = ask("status", "--json")
        wanted = {**said, "uptime_seconds": 5, "paused": False, "later_number": -1500.0}
        rig.check(json.loads(out) == wanted, f"what another version says: {out}" if json.loads(out) != wanted else "what another version says is JSON")
        out, _ = ask("status")
        rig.check("of version 0.0.1-other" in out.splitlines()[1] and "systemctl restart perfwalk" in out, f"and it is named: {out.splitlines()[1]}")
        _, err = ask("pause", answer="error: unknown command\n")
        rig.check("the daemon is of another version" in err, f"a command that it does not know: {err.strip()}")


def replaced(sink):
    """A program that an upgrade puts in the place of the daemon's."""
    program = shutil.copy(rig.perfwalk(), rig.path("replaced"))
    control = rig.path("replaced.control")
    config = CONFIG.format(interval="1s", endpoint=sink.endpoint).replace("[process]", f"[process]\ncontrol = {control}")
    config += f"[spool]\npath = {rig.path('replaced.spool')}\n"
    p = rig.start([program, "run", "-c", rig.write("replaced.conf", config)])
    rig.wait_for("the control socket", lambda: os.path.exists(control))

    def status(*args):
        return Answer("-s", control, "status", *args, lines=True).out
    for new in (False, True):
        if new:
            shutil.copy(rig.perfwalk(), program + ".new")
            os.rename(program + ".new", program)
        said = json.loads(status("--json"))["program_replaced"], "was replaced" in status()
        rig.check(said == (new, new), f"the program was replaced: {said}")
    rig.end(p)


def told_losses(values):
    """What a daemon with losses would say is told to a person."""
    path = rig.path("losses.control")
    lost = {"samples_lost": 11, "samples_dropped": 12, "samples_lost_with_process": 13, "switches_lost": 14, "sideband_lost": 15}
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
        s.listen()
        p = rig.start([rig.perfwalk(), "ctl", "-s", path, "status"], stdout=subprocess.PIPE, text=True)
        client, _ = s.accept()
        with client:
            client.recv(100)
            client.sendall("".join(f"{k} {v}\n" for k, v in {**values, **lost}.items()).encode() + b"ok\n")
        losses = re.search(r"^Losses.*", p.communicate(timeout=120)[0], re.M)
    rig.check(losses and [int(x) for x in re.findall(r"\d+", losses[0])] == list(lost.values()), f"losses of each kind: {losses and losses[0]}")


def named(views, name):
    return sum(x[3] for v in views for x in v.samples() if x[0].get("process.executable.name") == name)


def commands(directory):
    if inside.wanted() == "rootless.conf":
        rig.leave_out("whom root's daemon serves")
        return
    with Sink() as sink:
        d = rig.Daemon(CONFIG.format(interval="1h", endpoint=sink.endpoint))
        d.wait_up()
        mode = rig.wait_for("the control socket, for a group", lambda: os.path.exists(d.control)
                            and (lambda s: s if stat.S_IMODE(s.st_mode) == 0o660 else None)(os.stat(d.control)))
        rig.check(mode.st_uid == 0, f"the socket is root's and a group's: {stat.S_IMODE(mode.st_mode):o}, group {mode.st_gid}")
        chain = rig.start(["./chain"], cwd=directory)
        rig.wait_for("samples, of the program too", lambda: rig.cpu_seconds(chain.pid) >= 0.5 and
                     int(ctl(d, "status")["samples"]) >= 100)
        values = ctl(d, "status")
        rig.check(values["config"] == d.config and values["rate_hz"] == "99" and values["paused"] == "no" and
                  int(values["samples"]) >= 50 and int(values["samples_lost"]) == 0,
                  f"status: {values['event']}, {values['samples']} samples, up {values['uptime_seconds']} s")
        processes(d, values)

        rig.check(sink.count() == 0, "an interval of an hour: nothing is sent yet")
        ctl(d, "flush")
        rig.say("ok: flush comes back")
        sink.wait_for(1)
        n = named(sink.views(), "chain")
        rig.check(n >= 10, f"and what ran is there: {n} samples")
        rig.wait_for("status knows of the payload", lambda:
                     int(ctl(d, "status")["export.sink.payloads_sent"]) >= 1)
        values = ctl(d, "status")
        rig.check(values["windows"] == "1" and values["export.sink.queue_payloads"] == "0" and
                  values["spool_bytes"] == "0", "the destination has it, queue and spool are empty")

        begin = time.monotonic()
        ctl(d, "pause")
        paused = time.monotonic()
        ctl(d, "flush")
        before = int(ctl(d, "status")["samples"])
        rig.wait_for_cpu(chain.pid, 0.5)
        values = ctl(d, "status")
        rig.check(int(values["samples"]) == before and values["paused"] == "yes",
                  f"pause: no sample in half a second of CPU time, {before} before and after")
        ctl(d, "pause")
        least = int((time.monotonic() - paused) * 1000)
        ctl(d, "resume")
        most = (time.monotonic() - begin) * 1000
        rig.wait_for("samples", lambda: int(ctl(d, "status")["samples"]) > before)
        at = sink.count()
        ctl(d, "flush")
        sink.wait_for(at + 1)
        values = ctl(d, "status")
        rig.check(int(values["samples"]) > before and values["paused"] == "no", "resume: sampling goes on")
        rig.check(least <= int(values["paused_ms"]) <= most, f"status says for how long: {values['paused_ms']} ms")
        said = paused_ms(sink.views())
        rig.check(least <= said <= most, f"and so does the profile: perfwalk.paused_ms is {said}")

        old = d.role("profiler")
        rig.kill(old, 9)
        rig.wait_for("another profiler", lambda: d.role("profiler") not in (0, old))
        ctl(d, "flush")
        rig.say("ok: flush after the profiler was killed")
        with open(d.config, "a", encoding="utf-8") as f:
            f.write("[filter]\ninclude_comm = chain\n")
        ctl(d, "reload")
        rig.wait_for("the filter of the new config", lambda: int(ctl(d, "status")["samples"]) > 20)
        ctl(d, "flush")
        rig.check("config reloaded" in d.log(), "reload takes the new config")
        reload_that_waits(d)
        reload_of_limits(d, sink)
        second_daemons(d)
        with open(d.config, "a", encoding="utf-8") as f:
            f.write("[filtre]\n")
        a = Answer("-s", d.control, "reload")
        rig.check(a.status == 1 and "errors" in a.err, f"one with errors is refused: {a.err.strip()!r}")
        who_may_not(d)
        status, _ = d.stop()
        rig.check(status == 0 and not os.path.exists(d.control), "the socket goes with the daemon")
        rig.end(chain)


def second_daemons(d):
    """One with the same config stops, and so does one that has no place for its profiles; one of its own runs
    beside the first, also where a daemon was killed and has left its lock file."""
    def ends(config, what, word):
        p = subprocess.run([rig.perfwalk(), "run", "-c", config], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                           text=True, check=False, timeout=120)
        rig.check(p.returncode == 1 and word in p.stderr and "profiling" not in p.stderr, f"{what}: {p.stderr.strip()}")

    ends(d.config, "a second daemon of the same config", f"pid {d.pid})")
    ctl(d, "status")
    kept = f"[store]\npath = {rig.path('kept')}\n"
    for _ in range(2):
        second = rig.Daemon(kept, name="second")
        rig.wait_for("it runs beside the first", lambda: "profiling" in second.log() and os.path.exists(second.control))
        at = second.log().count("profiling")
        rig.check(at > 0 and second.alive(), "a second daemon with a config of its own runs beside the first")
        third = rig.write("third.conf", f"{kept}[process]\ncontrol = {rig.path('third.control')}\n")
        ends(third, "one whose store is another's", "profiles have no destination")
        rig.end(second.process)  # killed: its lock file and its socket stay
        rig.check(os.path.exists(second.control + ".lock"), "its lock file is still there")
        os.truncate(second.log_path, 0)


def change(d, old, new):
    with open(d.config, encoding="utf-8") as f:
        text = f.read()
    if old not in text:
        rig.fail(f"{old} is not in {d.config}")
    with open(d.config, "w", encoding="utf-8") as f:
        f.write(text.replace(old, new))
    ctl(d, "reload")


def reload_that_waits(d):
    """While the profiler cannot leave nothing is sampled: that would come into no profile."""
    symbolizer = d.role("symbolizer")
    rig.kill(symbolizer, signal.SIGSTOP)
    change(d, "samples_per_second = 99", "samples_per_second = 199")

    def still():
        before = int(ctl(d, "status")["samples"])
        time.sleep(0.7)
        after = int(ctl(d, "status")["samples"])
        return before == after and after
    after = rig.wait_for("no sample in 0.7 s", still)
    rig.kill(symbolizer, signal.SIGCONT)
    rig.say(f"ok: a reload that waits for the symbolizer: {after} samples, and no more")
    rig.wait_for("sampling at the new rate", lambda: int(ctl(d, "status")["samples"]) > after + 20)


def reload_of_limits(d, sink):
    """What a symbolizer is told at its start alone: there is another, and nothing is lost on the way."""
    def limit():
        with open(f"/proc/{d.role('symbolizer')}/limits", encoding="utf-8") as f:
            return int(re.search(r"Max open files +(\d+) ", f.read()).group(1))

    old, at, had = d.role("symbolizer"), sink.count(), limit()
    change(d, "user = bin", "user = daemon\n[limits]\nmax_open_files = 700\nsymbols = 16MiB")
    rig.wait_for("another symbolizer", lambda: d.role("symbolizer") not in (0, old))
    rig.wait_for("with the new limits", lambda: limit() == had - (1024 - 700))
    rig.wait_for("the window of before", lambda: sink.count() > at)
    samples = int(ctl(d, "status")["samples"])
    rig.wait_for("sampling", lambda: int(ctl(d, "status")["samples"]) > samples)
    at = sink.count()
    ctl(d, "flush")
    sink.wait_for(at + 1, 5)
    rig.check("user in [process] takes effect at the next start" in d.log(), "the log says what waits")


def who_may_not(d):
    path = rig.path("stranger.control")
    os.chmod(rig.workdir(), 0o755)
    nobody = pwd.getpwnam("daemon")
    a = Answer("-s", d.control, "status", user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[])
    rig.check(a.status == 3 and "perfwalk's group" in a.err, f"a stranger: {a.status}, {a.err.strip()!r}")
    group = os.stat(d.control).st_gid
    a = Answer("-s", d.control, "status", "--all", user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[group])
    rig.check(a.status == 0 and a.values["paused"] == "no", f"a member of the group: {a.status} {a.err}")
    child = int(rig.status_of(d.role("symbolizer"))["Uid"].split()[0])
    a = Answer("-s", d.control, "status", user=child, group=group, extra_groups=[])
    rig.check(a.status == 3 and "not permitted" in a.err, f"the user of the children: {a.status}, {a.err.strip()!r}")
    for what, sent in (("too long a line", b"x" * 100), ("an unknown command", b"destroy\n"), ("nothing", b"")):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(d.control)
            s.settimeout(rig.PATIENCE)
            s.sendall(sent)
            said = s.recv(4096)
        rig.check((said.startswith(b"error: ") if sent else said == b"") and d.alive(), f"{what}: {said!r}")
    a = Answer("-s", path, "status")
    rig.check(a.status == 1 and "no daemon listens" in a.err, f"no daemon: {a.err.strip()!r}")
    for args, word in ((["statsu"], "status"), ([], "missing"), (["status", "x"], "x")):
        a = Answer(*args)
        rig.check(a.status == 2 and word in a.err, f"ctl {' '.join(args)}: {a.err.strip()!r}")


def set_aside(directory):
    """A file at which the symbolizer dies is listed, also behind a reload and by the next daemon, until it is said to be
    read again."""
    os.mkdir(rig.path("state"), 0o700)

    def start(sink):
        d = rig.Daemon(CONFIG.format(interval="1h", endpoint=sink.endpoint),
                       env={**os.environ, "STATE_DIRECTORY": rig.path("state")})  # as systemd says it
        d.wait_up()
        rig.wait_for("the control socket", lambda: os.path.exists(d.control))
        return d
    with Sink() as sink:
        d = start(sink)

        def listed():
            a = Answer("-s", d.control, "set-aside", lines=True)
            return a.out if a.status == 0 else f"{a.status}: {a.err}"
        rig.check(listed() == "", f"nothing is set aside: {listed()!r}")
        p = rig.start([os.path.join(directory, "jit"), "no-map"])
        code = rig.wait_for("it runs", lambda: rig.code_of(p.pid))
        name = f"/tmp/perf-{p.pid}.map"
        with open(name, "w", encoding="utf-8") as f:  # takes long to read
            f.writelines(f"{code + 0x1000 + i:x} 1 far_away_{i}\n" for i in range(900000))
        rig.wait_for("samples of it", lambda: rig.cpu_seconds(p.pid) >= 0.5)
        first, pages = d.role("symbolizer"), rig.status_pages(d.pid)
        flush = rig.start([rig.perfwalk(), "ctl", "-s", d.control, "flush"], stdout=subprocess.DEVNULL)
        rig.wait_for("the map is read", lambda: any(page.find(b"perf map of process %d\0" % p.pid) >= 0
                                                    for page in pages))
        rig.kill(first, signal.SIGABRT)
        rig.wait_for("a new symbolizer", lambda: d.role("symbolizer") not in (0, first))
        flush.wait(rig.PATIENCE)
        wanted = rf"the perf map of process {p.pid}: the symbolizer died while reading it; it will read it again in 5\dm\d+s\n"
        rig.check(re.fullmatch(wanted, listed()), f"set-aside says: {listed().strip()}")
        ctl(d, "reload")
        rig.check(re.fullmatch(wanted, listed()), "and so it does behind a reload")
        d.stop()
        d = start(sink)
        rig.check(re.fullmatch(wanted, listed()), "and in the next daemon")
        rig.check(ctl(d, "clear-set-aside") == {"files_read_again": "1", "processes_read_again": "0"}
                  and listed() == "",
                  "clear-set-aside takes it back")
        rig.end(d.process)
        d = start(sink)
        rig.check(listed() == "", f"for the next daemon, too, also when the one before was killed: {listed()!r}")
        rig.end(p)
        os.unlink(name)
        d.stop()


def main():
    rig.need_root()
    directory = rig.build_workloads("chain", "jit")
    set_aside(directory)
    commands(directory)
    with Sink() as sink:
        forms(sink)
        replaced(sink)
    other_versions()


rig.run(main)
