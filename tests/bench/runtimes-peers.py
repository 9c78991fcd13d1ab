# SPDX-License-Identifier: Apache-2.0
"""perfwalk beside the profilers of runtimes, in one run: both record the same program of known chains of calls at the same
time, and this says how far they agree, in leaves and in whole stacks, beside what two samples of that size of one program
would; what CPU time each takes for a sample, from its start to its written file; and what each costs a program that does
the same work in turns. runtimes-peers.py PERFWALK [--rate HZ] [--seconds N] [--rounds N] [--peer NAME]..., as root.
NAME: rbspy, phpspy and py-spy (in PATH), async-profiler (its library in ASYNC_PROFILER), jfr (Java's own, every 10 ms),
cpu-prof (Node's own); those that are there."""
import argparse
import collections
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import agreement  # beside this file

WORKLOADS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../workloads")
PYTHON = os.path.realpath(sys.executable)
# Each does pieces of work for some seconds of CPU time whenever it is told to, and says what one took.
WORK = {
    "py": "import sys, time\nc = time.process_time\ndef f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\n"
          "f(18); print('ready', flush=True)\nwhile sys.stdin.readline():\n    n, a = 0, c()\n"
          "    while c() - a < float(sys.argv[1]):\n        f(18); n += 1\n    print((c() - a) / n, flush=True)\n",
    "rb": "c = -> { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) }\ndef f(n) = n < 2 ? n : f(n - 1) + f(n - 2)\n"
          "f(18); puts 'ready'; $stdout.flush\nwhile $stdin.gets do n = 0; a = c.()\n"
          "while c.() - a < ARGV[0].to_f do f(18); n += 1 end\nputs (c.() - a) / n; $stdout.flush end\n",
    "php": "<?php\nfunction c() { $u = getrusage(); return $u['ru_utime.tv_sec'] + $u['ru_utime.tv_usec'] / 1e6\n"
           "+ $u['ru_stime.tv_sec'] + $u['ru_stime.tv_usec'] / 1e6; }\n"
           "function f($n) { return $n < 2 ? $n : f($n - 1) + f($n - 2); }\n"
           "f(18); echo \"ready\\n\"; while (fgets(STDIN)) { $n = 0; $a = c();\n"
           "while (c() - $a < $argv[1]) { f(18); $n++; } echo (c() - $a) / $n, \"\\n\"; }\n",
    "js": "const c = () => { const u = process.cpuUsage(); return (u.user + u.system) / 1e6; };\n"
          "const f = n => n < 2 ? n : f(n - 1) + f(n - 2); f(24);\n"
          "console.log('ready'); while (require('fs').readSync(0, Buffer.alloc(9)) > 0) { let n = 0; const a = c();\n"
          "while (c() - a < Number(process.argv[2])) { f(24); n++; } console.log((c() - a) / n); }\n",
    "java": "import java.lang.management.*;\nclass Work { static int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"
            "static double c() { return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() / 1e9; }\n"
            "public static void main(String[] v) throws Exception { f(35); System.out.println(\"ready\");\n"
            "while (System.in.read() == 'g') { System.in.read(); System.in.read();\n"
            "int n = 0; double a = c(); while (c() - a < Double.parseDouble(v[0])) { f(24); n++; }\n"
            "System.out.println((c() - a) / n); } } }\n",
}


def library():
    return os.environ.get("ASYNC_PROFILER", "")


# name: (language, program, what it needs; options of the runtime, for files at `out`; a command with --pid or the like)
def peers(rate):
    ns = int(1e9 / rate)
    return {
        "py-spy": ("py", [PYTHON], shutil.which("py-spy"), None,
                   lambda out: ["py-spy", "record", "-r", str(rate), "-f", "raw", "-d", "600", "-o", out, "-p"]),
        "rbspy": ("rb", ["ruby"], shutil.which("rbspy"), None,
                  lambda out: ["rbspy", "record", "--silent", "--rate", str(rate), "--format", "collapsed", "--file", out, "--pid"]),
        "phpspy": ("php", ["php", "-n"], shutil.which("phpspy"), None,
                   lambda out: ["phpspy", "--rate-hz", str(rate), "--output", out, "--pid"]),
        "async-profiler": ("java", ["java"], os.path.isfile(library()),
                           lambda out: [f"-agentpath:{library()}=start,event=ctimer,interval={ns},file={out},collapsed"], None),
        "jfr": ("java", ["java"], shutil.which("jfr"),
                lambda out: [f"-XX:StartFlightRecording:filename={out},settings=profile"], None),
        "cpu-prof": ("js", ["node"], shutil.which("node"),
                     lambda out: ["--cpu-prof", f"--cpu-prof-interval={ns // 1000}", f"--cpu-prof-name={os.path.basename(out)}",
                                  f"--cpu-prof-dir={os.path.dirname(out)}"], None),
    }


def program(language, where, chains):
    """What is run of that language: of known chains, or that does work."""
    if language == "java":
        name = "Calls" if chains else "Work"
        if not os.path.exists(f"{where}/{name}.class"):
            source = f"{WORKLOADS}/Calls.java"
            if not chains:
                source = f"{where}/Work.java"
                with open(source, "w", encoding="utf-8") as f:
                    f.write(WORK[language])
            subprocess.run(["javac", "-d", where, source], check=True)
        return ["-cp", where, name]
    if chains and language == "js":
        with open(f"{where}/ends.js", "w", encoding="utf-8") as f:
            f.write("process.on('SIGTERM', () => process.exit(0));\n")
        return ["--require", f"{where}/ends.js", f"{WORKLOADS}/calls.js", "1"]
    if chains:
        return [f"{WORKLOADS}/calls.{language}"] + (["1"] if language == "py" else [])
    with open(f"{where}/work.{language}", "w", encoding="utf-8") as f:
        f.write(WORK[language])
    return [f"{where}/work.{language}"]


# ---- What they say: chains of the known part, the outermost first, by samples ----

def known(names):
    # Classes' names differ in how they are written; functions of the language itself are left out.
    names = [re.sub(r"[ (\[].*", "", n).replace("::", ".").replace("/", ".").rpartition("#")[2] for n in names]
    return tuple(n.rpartition(".")[2] for n in names if n.startswith("Calls.") or n.rpartition(".")[2].startswith("chain_"))


def read_folded(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            stack, _, n = line.rstrip("\n").rpartition(" ")
            yield stack.split(";"), int(n)


def read_phpspy(path):
    """Stacks with an empty line behind each; of a frame its depth, function and place."""
    with open(path, encoding="utf-8", errors="replace") as f:
        for stack in f.read().split("\n\n"):
            yield [m[1] for m in re.finditer(r"^\d+ (\S+) ", stack, re.M)][::-1], 1


def read_cpuprofile(path):
    with open(path, encoding="utf-8") as f:
        profile = json.load(f)
    nodes = {n["id"]: n for n in profile["nodes"]}
    parents = {child: n["id"] for n in profile["nodes"] for child in n.get("children", [])}
    for node, n in collections.Counter(profile["samples"]).items():
        names, at = [], node
        while at:
            names.append(nodes[at]["callFrame"]["functionName"])
            at = parents.get(at)
        yield names[::-1], n


def read_jfr(path):
    p = subprocess.run(["jfr", "print", "--json", "--stack-depth", "64", "--events", "jdk.ExecutionSample", path],
                       stdout=subprocess.PIPE, check=True)
    for event in json.loads(p.stdout)["recording"]["events"]:
        frames = event["values"]["stackTrace"]["frames"]
        yield [f"{f['method']['type']['name']}.{f['method']['name']}" for f in reversed(frames)], 1


def chains(read, path):
    counts = collections.Counter()
    for names, n in read(path):
        ours = known(names)
        if ours:
            counts[ours] += n
    return counts


# ---- Runs ----

def start_recorder(command, pid):
    return subprocess.Popen([*command, str(pid)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def end_recorder(recorder):
    """Seconds of CPU time of it and its children."""
    recorder.send_signal(signal.SIGINT)
    _, recorder.returncode, used = os.wait4(recorder.pid, 0)
    return used.ru_utime + used.ru_stime


def compare(perfwalk, name, peer, args, where):
    language, runtime, _, options, command = peer
    ours, its = f"{where}/{name}.folded", f"{where}/{name}.{'jfr' if name == 'jfr' else 'out'}"
    run = [*runtime, *(options(its) if options else []), *program(language, where, True)]
    with subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        time.sleep(2)
        recorders = {"perfwalk": start_recorder([perfwalk, "record", "-q", "-F", str(args.rate), "-o", ours, "-p"], p.pid)}
        if command:
            recorders[name] = start_recorder(command(its), p.pid)
        time.sleep(args.seconds * 4)
        used = {who: end_recorder(r) for who, r in recorders.items()}
        p.terminate()
        try:
            p.wait(30)
        except subprocess.TimeoutExpired:
            p.kill()
    read = {"cpu-prof": read_cpuprofile, "jfr": read_jfr, "phpspy": read_phpspy}.get(name, read_folded)
    seen = {"perfwalk": chains(read_folded, ours), name: chains(read, its)}
    agreement.show(*seen.values())
    for who, seconds in used.items():
        print(f"  {who} itself {1e6 * seconds / max(1, seen[who].total()):.0f} us of CPU time a sample")


def work(p):
    """Seconds of CPU time of a piece of work."""
    p.stdin.write("go\n")
    p.stdin.flush()
    return float(p.stdout.readline())


def start_work(peer, args, where, options):
    language, runtime = peer[:2]
    p = subprocess.Popen([*runtime, *options, *program(language, where, False), str(args.seconds)], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    while p.stdout.readline().strip() != "ready":
        pass
    return p


def end_work(p):
    p.stdin.close()
    p.wait()
    p.stdout.close()


def work_recorded(p, command):
    r = start_recorder(command, p.pid)
    time.sleep(2)
    each = work(p)
    end_recorder(r)
    return each


def slow_down(perfwalk, name, peer, args, where):
    """Two processes of one program differ by more than what a recorder costs: one process works all the time, and each
    piece with a recorder is compared with those before and behind it. A recorder that begins with its program has one
    of its own."""
    its = f"{where}/slow.{'jfr' if name == 'jfr' else 'out'}"
    commands = {"perfwalk": [perfwalk, "record", "-q", "-F", str(args.rate), "-o", f"{where}/slow.folded", "-p"]}
    if peer[4]:
        commands[name] = peer[4](its)
    slower = {what: [] for what in ("perfwalk", name)}
    p = start_work(peer, args, where, [])
    work(p)
    plain = work(p)
    for _ in range(args.rounds):
        for what, command in commands.items():
            before, each, plain = plain, work_recorded(p, command), work(p)
            slower[what].append(2 * each / (before + plain) - 1)
        if name not in commands:
            other = start_work(peer, args, where, peer[3](its))
            work(other)
            slower[name].append(work(other) / plain - 1)
            end_work(other)
    end_work(p)
    for what, of_rounds in slower.items():
        print(f"  the program with {what} {statistics.median(of_rounds):+.2%} (each round: "
              + " ".join(f"{x:+.1%}" for x in of_rounds) + ")")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("perfwalk")
    parser.add_argument("--peer", action="append", dest="names", metavar="NAME")
    parser.add_argument("--rate", type=int, default=99)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=3)
    args = parser.parse_args()
    all_of = peers(args.rate)
    for name in args.names or all_of:
        if not all_of[name][2]:
            print(f"{name}: left out, since it is not here")
            continue
        with tempfile.TemporaryDirectory() as where:
            print(f"{name}, at {args.rate} Hz, load {os.getloadavg()[0]:.0f}:", flush=True)
            compare(args.perfwalk, name, all_of[name], args, where)
            if args.rounds:
                slow_down(args.perfwalk, name, all_of[name], args, where)


main()
