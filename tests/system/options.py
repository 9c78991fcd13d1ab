# SPDX-License-Identifier: Apache-2.0
# Rooms: src/cmd src/sample src/render
"""`perfwalk record`: its options and their errors, the files it writes by their suffixes, what it
prints where, its exit statuses, and an interrupt before its time."""
import gzip
import os
import pty
import re
import signal
import subprocess
import time

import rig


def usage_errors():
    out = rig.path("never.folded")
    cases = [
        ("neither an output nor a summary", ["-a", "-d", "600", "-q"], 2, "-o"),
        ("an unknown option", ["-a", "--frobnicate", "-o", out], 2, "frobnicate"),
        ("a suffix nobody knows", ["-a", "-d", "600", "-o", rig.path("x.docx")], 2, "docx"),
        ("no number as a rate", ["-a", "-F", "often", "-d", "600", "-o", out], 2, "often"),
        ("rate zero", ["-a", "-F", "0", "-d", "600", "-o", out], 2, "-F"),
        ("no number as a duration", ["-a", "-d", "long", "-o", out], 2, "long"),
        ("a negative duration", ["-a", "-d", "-5", "-o", out], 2, "-5"),
        ("no number as a process", ["-p", "me", "-d", "600", "-o", out], 2, "me"),
        ("-a and -p together", ["-a", "-p", "1", "-d", "600", "-o", out], 2, "-p"),
        ("-a and a command together", ["-a", "-o", out, "--", "true"], 2, "-a"),
        ("a process that is not there", ["-p", "4194300", "-d", "600", "-o", out], 1, "4194300"),
        ("an output that cannot be", ["-a", "-d", "600", "-o", "/nowhere/x.folded"], 1, "/nowhere"),
    ]
    for what, args, status, word in cases:
        r = rig.record(*args, timeout=120)
        rig.check(r.status == status and word in r.err and not r.out,
                  f"{what}: exit status {r.status} (wanted {status}), {r.err.strip()[:200]!r}")
        rig.check(not os.path.exists(out), f"{what}: no file is left behind")


def keeps_outputs(out):
    """What was in the outputs outlives a capture that cannot begin; and it leaves no new files."""
    for args in (["--", "/no/such/command"], ["-p", "4194300"], ["-t", "4194300"], ["-p", f"{os.getpid()},4194300"],
                 ["-e", "r9999"]):
        fresh = rig.path("fresh.html")
        with open(out, "w", encoding="ascii") as f:
            f.write("of before")
        r = rig.record("-o", out, "-o", fresh, "-d", "20", *args, timeout=120)
        with open(out, encoding="ascii") as f:
            kept = f.read() == "of before"
        if r.status == 0 and args[0] == "-e":
            rig.leave_out("an event that cannot be opened: this processor has it")
            continue
        rig.check(("perfwalk check" in r.err) == (args[0] == "-e"), f"perfwalk check where it helps: {r.err.strip()}")
        rig.check(r.status != 0 and kept and not os.path.exists(fresh) and not r.out,
                  f"{' '.join(args)}: {r.status}, what was recorded before is untouched")


def statuses(directory):
    out = rig.path("status.folded")
    r = rig.record("-o", out, "--", "./blip", "200", cwd=directory)
    rig.check(r.status == 0 and os.path.exists(out), f"the command's own status 0: {r.status}")
    r = rig.record("-o", out, "--", "sh", "-c", "./blip 100; exit 7", cwd=directory)
    rig.check(r.status == 7, f"the command's own status 7: {r.status}")
    r = rig.record("-o", out, "--", "sh", "-c", "./blip 100; kill -TERM $$", cwd=directory)
    rig.check(r.status == 128 + 15, f"a command that died of SIGTERM, as shells count it: {r.status}")
    for what, command, status, cause in (("is not there", "/no/such/command", 127, "No such file"),
                                         ("cannot be executed", "/", 126, "Permission denied")):
        r = rig.record("-o", out, "--", command, cwd=directory)
        rig.check(r.status == status and f"{command} cannot be executed: {cause}" in r.err and r.err.count("\n") == 1,
                  f"a command that {what}: {r.status}, {r.err.strip()[:200]!r}")
        rig.check(not r.out, "there is no summary of nothing")
    keeps_outputs(out)
    for args in ([], ["--help"], ["--version"], ["record", "--help"], ["run", "--help"]):
        p = subprocess.run([rig.perfwalk(), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, check=False, timeout=120)
        wanted = 0 if args else 2
        rig.check(p.returncode == wanted and "perfwalk" in (p.stdout if args else p.stderr),
                  f"perfwalk {' '.join(args)}: {p.returncode}")
    p = subprocess.run([rig.perfwalk(), "frobnicate"], stdout=subprocess.PIPE, text=True, check=False,
                       stderr=subprocess.PIPE, timeout=120)
    rig.check(p.returncode == 2 and "frobnicate" in p.stderr, f"an unknown subcommand: {p.returncode}")


def outputs(directory):
    chain = rig.start(["./chain"], cwd=directory)
    copier = rig.start(["dd", "if=/dev/zero", "of=/dev/null"], stderr=subprocess.DEVNULL)  # in the kernel
    files = {s: rig.path(f"all.{s}") for s in ("html", "folded", "pb.gz")}
    begin = time.monotonic()
    r = rig.record("-a", "-F", "199", "-d", "3s", *(x for f in files.values() for x in ("-o", f)))
    seconds = time.monotonic() - begin
    rig.check(r.status == 0, "a capture of the whole host" + ("" if r.status == 0 else r.text()))
    rig.check(3 <= seconds < 60, f"-d 3s takes {seconds:.1f} s")
    for name in files.values():
        rig.check(name in r.out, f"the summary names {os.path.basename(name)}")
    rig.check(re.search(r"^Samples +[0-9,]+", r.out, re.M) and "lost" in r.out and "chain" in r.out,
              "the summary counts samples and losses and names the busy process")
    rig.check("chain_leaf" in r.out, "and its top function")
    rig.check("199 Hz" in r.err, f"what goes on is told on standard error: {r.err.strip()!r}")

    with open(files["html"], encoding="utf-8") as f:
        page = f.read()
    rig.check(page.lstrip().lower().startswith("<!doctype html") and "chain_leaf" in page,
              f"the flame graph page ({len(page) >> 10} KiB) holds the names")
    fetched = re.findall(r"""(?:src|href)\s*=\s*["']?(https?:|//)[^"'>]*""", page)
    rig.check(not fetched and "@import" not in page, "and fetches nothing from elsewhere")

    stacks = rig.read_folded(files["folded"])
    rig.check(any("chain_leaf" in s.user for s in stacks), "the folded file holds the names")
    rig.check(any(s.kernel for s in stacks), "and kernel frames with their suffix")
    with gzip.open(files["pb.gz"]) as f:
        data = f.read()
    rig.check(b"chain_leaf" in data, f"the pprof file ({len(data) >> 10} KiB) holds the names")
    check_pprof(data, stacks)
    rig.end(chain)
    rig.end(copier)


def check_pprof(data, stacks):
    """The pprof file by `protoc --decode_raw`: its tables refer to each other and it counts alike."""
    p = subprocess.run(["protoc", "--decode_raw"], input=data, stdout=subprocess.PIPE, check=False)
    rig.check(p.returncode == 0, "the pprof file is protobuf")
    text = p.stdout.decode("utf-8", "replace")
    top = re.findall(r"^(\d+)(?: \{|:)", text, re.M)
    n = {k: top.count(k) for k in set(top)}
    rig.check(all(n.get(k) for k in "123456"), f"sample types, samples, mappings, locations, functions "
              f"and strings are there: {n}")
    rig.check(re.search(r'^6: ""$', text, re.M) is not None, "the first string is empty")
    rig.check(rig.total(stacks) > 100 and n["2"] > 5, f"{n['2']} distinct samples of {rig.total(stacks)}")


def by_process(directory):
    one = rig.start(["./chain"], cwd=directory)
    two = rig.start(["./recurse"], cwd=directory)
    other = rig.start(["./frames"], cwd=directory)
    used = rig.cpu_seconds(other.pid)
    out = rig.path("by-pid.folded")
    r = rig.record_cpu(1, [one.pid, two.pid], "-p", f"{one.pid},{two.pid}", "-F", "199", "-o", out)
    comms = {s.comm for s in rig.read_folded(out)}
    rig.check(r.status == 0 and comms == {"chain", "recurse"}, f"-p with two processes: {comms}")
    rig.check(rig.cpu_seconds(other.pid) > used, "while a third one ran, too")
    for p in (one, two, other):
        rig.end(p)


def forked_before(directory):
    """A server has workers, which it has forked before, and these may have others: -p of the server alone is without them."""
    server = rig.start(["sh", "-c", "./chain & sh -c './recurse & wait' & wait"], cwd=directory)
    workers = rig.wait_for("its workers", lambda: sorted(map(rig.comm_of, found := rig.children_of(server.pid))) == ["chain", "sh"]
                           and found)
    worker = next(pid for pid in workers if rig.comm_of(pid) == "sh")
    workers += rig.wait_for("a worker's own", lambda: rig.children_of(worker))
    r = rig.record("-p", server.pid, "-d", "0.1", "-o", rig.path("server.folded"))
    told = re.search(r"left out: 3 processes .* before; with them: -p ([\d,]+)$", r.err, re.M)
    rig.check(told and sorted(told[1].split(",")) == sorted(map(str, (server.pid, *workers))),
              f"-p of a server says who its workers are, of {workers}: {r.err}")
    out = rig.path("workers.folded")
    r = rig.record_cpu(0.5, [pid for pid in workers if pid != worker], "-p", told[1], "-F", "199", "-o", out)
    rig.check({s.comm for s in rig.read_folded(out)} == {"chain", "recurse"} and "left out" not in r.err,
              f"and with them, it has them: {r.err}")
    rig.end(server)


def interrupt(directory):
    chain = rig.start(["./chain"], cwd=directory)
    out = rig.path("interrupted.folded")
    r = rig.record_cpu(1, [chain.pid], "-a", "-d", "600", "-o", out)
    rig.check(r.status == 0 and os.path.exists(out) and "Samples" in r.out,
              f"an interrupt ends the capture early, with its files and summary ({r.status})\n{r.err[-300:]}")
    rig.check(any("chain_leaf" in s.user for s in rig.read_folded(out)), "and what was sampled so far")
    rig.end(chain)


def command_outlives_duration():
    out = rig.path("outlives.folded")
    r = rig.record("-F", "499", "-d", "1", "-o", out, "--", "sh", "-c", "while :; do :; done")
    rig.check(r.status == 143, f"the duration ends the command too: {r.status}")
    rig.check(rig.total(rig.read_folded(out)) >= 3, "its file holds what it did until then")


def stubborn_commands():
    """Commands that take their time over the end of the capture, or mean to ignore it."""
    out = rig.path("stubborn.folded")

    def start(trap, script, *args, command=(), **options):
        """A command that has set its trap when it says that it is up."""
        if os.path.exists(out):
            os.remove(out)
        p = rig.start([*command, rig.perfwalk(), "record", *args, "-o", out, "--", "sh", "-c", f"{trap}; echo up; {script}"],
                      **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options})
        if p.stdout:
            p.stdout.readline()
        return p

    def written():
        rig.wait_for("the file", lambda: os.path.exists(out) and os.path.getsize(out))

    p = start("trap 'echo told; exit 3' INT", "while :; do sleep 0.05; done")
    rig.kill(p.pid, signal.SIGINT)
    text, _ = p.communicate(timeout=120)
    rig.check(p.returncode == 3 and "told" in text, f"an interrupt sent to perfwalk alone is passed on: {p.returncode}")

    some_work = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"  # to sample
    p = start(f"trap '' INT HUP TERM; {some_work}", "while :; do :; done")
    rig.kill(p.pid, signal.SIGHUP)
    written()
    watch = rig.Stopwatch(p.pid)
    rig.kill(p.pid, signal.SIGINT)
    _, seconds = watch.wait(p)
    rig.check(p.returncode == 128 + 9 and seconds < 2 and rig.total(rig.read_folded(out)) > 0,
              f"a second one ends a command that ignores all of them: {p.returncode}, and the file is there")

    p = start("trap '' INT", "while :; do :; done")
    rig.kill(p.pid, signal.SIGINT)
    _, err = p.communicate(timeout=120)
    rig.check(p.returncode == 128 + 15 and "still running" in err, f"one that ignores it ends at SIGTERM: {p.returncode}")

    p = start("trap 'sleep 1; echo finished; exit' TERM", "while :; do :; done", "-d", "500ms")
    written()
    rig.kill(p.pid, signal.SIGCHLD)  # as when another child ends
    text, err = p.communicate(timeout=120)
    rig.check(p.returncode == 0 and "finished" in text and "killed" not in err,
              f"one that takes a second over its end is not killed: {p.returncode}")

    master, slave = pty.openpty()
    p = start("n=0; trap 'n=$((n+1))' INT", "while [ $n = 0 ]; do sleep 0.05; done; sleep 1; exit $n",
              command=("setsid", "-wc"), stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    shown = b""
    while b"up" not in shown:
        shown += os.read(master, 4096)
    os.write(master, b"\x03")
    rig.check(p.wait(rig.PATIENCE) == 1, f"the terminal's Ctrl-C reaches the command once: {p.returncode}")
    os.close(master)


def early_interrupts():
    """The terminal's Ctrl-C also comes while perfwalk's own processes are just being made: these go on."""
    for _ in range(10):
        master, slave = pty.openpty()
        p = rig.start(["setsid", "-wc", rig.perfwalk(), "record", "-o", rig.path("early.folded"), "--", "sleep", "600"],
                      stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        rig.wait_for("a child", lambda: [c for perfwalk in rig.children_of(p.pid) for c in rig.children_of(perfwalk)])
        os.write(master, b"\x03")
        shown = b""
        try:
            while more := os.read(master, 4096):
                shown += more
        except OSError:
            pass  # the other side is closed
        os.close(master)
        status = p.wait(rig.PATIENCE)
        right = status == 128 + signal.SIGINT and b"killed" not in shown
        rig.check(right, f"an early Ctrl-C ends the command: {status}" + ("" if right else f"\n{shown.decode()[-600:]}"))


def on_a_terminal():
    master, slave = pty.openpty()
    p = rig.start([rig.perfwalk(), "record", "-a", "-d", "2"], stdin=subprocess.DEVNULL,
                  stdout=subprocess.PIPE, stderr=slave, text=True)
    os.close(slave)
    text = b""
    try:
        while more := os.read(master, 4096):
            text += more
    except OSError:
        pass  # the other side is closed
    p.communicate(timeout=120)
    shown = re.findall(rb"([0-9.]+) s +([0-9]+) samples +([0-9]+) lost", text)
    rig.check(p.returncode == 0 and len(shown) >= 4, f"progress on a terminal: {len(shown)} times")
    elapsed = [float(s[0]) for s in shown]
    rig.check(elapsed == sorted(elapsed) and elapsed[-1] >= 1.9 and text.endswith(b"\n"),
              f"it counts up to the end and leaves the line: {elapsed[0]} .. {elapsed[-1]}")


def main():
    rig.need_root()
    rig.need_programs("protoc")
    directory = rig.build_workloads("chain", "recurse", "frames", "blip")
    usage_errors()
    statuses(directory)
    outputs(directory)
    by_process(directory)
    forked_before(directory)
    interrupt(directory)
    command_outlives_duration()
    stubborn_commands()
    early_interrupts()
    on_a_terminal()


rig.run(main)
