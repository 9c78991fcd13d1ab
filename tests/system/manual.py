# SPDX-License-Identifier: Apache-2.0
# Rooms: src/cmd src/config
"""Every example of the manual pages and of --help is run: with shorter times, a process and files of
our own, and a daemon of our own behind ctl and --last. And the pages are pages."""
import glob
import os
import re
import shutil
import subprocess

import rig

# What needs a terminal, or is the daemon itself, which the others talk to.
ELSEWHERE = {"perfwalk top": "top.py", "perfwalk top -p 1234 -d 1": "top.py", "perfwalk top --off-cpu --type off_cpu": "top.py", "perfwalk run -c /etc/perfwalk/perfwalk.conf": "delivery.py",
             "perfwalk debug runtime 1234": "java.py", "sudo perfwalk record -a -d 10 -o out.html": "the same without sudo"}

CONFIG = """[profiler]
reporter_interval = 1s
[store]
path = {path}
max_bytes = 1M
"""


def pages():
    return sorted(glob.glob(os.path.join(rig.TOP, "man", "perfwalk*.[158]")))


def check_pages():
    for page in pages():
        p = subprocess.run(["groff", "-mdoc", "-Tutf8", "-ww", "-z", page], stderr=subprocess.PIPE, text=True,
                           check=False)
        rig.check(p.returncode == 0 and not p.stderr, f"{os.path.basename(page)} is a manual page {p.stderr}")


def examples():
    found = []
    for page in pages():
        with open(page, encoding="utf-8") as f:
            text = f.read()
        part = re.search(r"^\.Sh EXAMPLES\n(.*?)^\.Sh ", text, re.M | re.S)
        rig.check(part, f"{os.path.basename(page)} has examples")
        found += [line[4:] for line in part[1].splitlines() if line.startswith(".Dl ")]
    commands = re.findall(r"^  ([a-z]+) ", subprocess.run([rig.perfwalk(), "--help"], stdout=subprocess.PIPE,
                                                         text=True, check=True).stdout.split("\n\n  perfwalk")[0], re.M)
    for command in commands:
        text = subprocess.run([rig.perfwalk(), command, "--help"], stdout=subprocess.PIPE, text=True,
                              check=False).stdout
        if re.search(r"^Examples?:", text, re.M):
            found += [line.strip() for line in re.split(r"^Examples?:", text, flags=re.M)[1].splitlines()
                      if line.strip()]
    return sorted(set(found))


def prepare(programs):
    """A directory with the files that examples speak of."""
    directory = rig.path("examples")
    os.mkdir(directory)
    os.symlink(rig.perfwalk(), os.path.join(directory, "perfwalk"))

    def run(*argv):
        p = subprocess.run(argv, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           check=False, timeout=120)
        rig.check(p.returncode == 0, f"{' '.join(argv[:3])} ..." + ("" if p.returncode == 0 else p.stdout))
    run("./perfwalk", "record", "-q", *(x for name in ("out.pb.gz", "out.folded", "cpu.pb.gz", "monday.pb.gz",
                                                       "monday.folded") for x in ("-o", name)),
        "--", f"{programs}/blip", "500")
    run("./perfwalk", "record", "-q", "-o", "tuesday.pb.gz", "-o", "tuesday.folded", "--", f"{programs}/blip", "300")
    run("perf", "record", "-q", "-N", "-e", "cpu-clock,page-faults", "--call-graph", "dwarf,8192", "-o", "perf.data",
        "--", f"{programs}/blip", "300")
    shutil.copy(os.path.join(rig.TOP, "tests", "data", "unwind", "plt.samples.gz"), directory)
    rig.write("examples/Makefile", f"all:\n\t{programs}/blip 200\n")
    return directory


def shorter(example, pid, daemon, store):
    """The example as it can be run here."""
    text = re.sub(r"-d (10|30)s?\b", "-d 1", example)
    text = text.replace("sleep 10", "sleep 1").replace("-p 1234", f"-p {pid}")
    text = text.replace("perfwalk ctl", f"perfwalk ctl -s {daemon.control}")
    text = re.sub(r"--last (10m|1h)", rf"--last \1 --store {store}", text)
    return text.replace("| flamegraph.pl", "| cat")


def main():
    rig.need_root()
    rig.need_tracefs()
    rig.need_programs("perf", "bash", "groff", "make")
    check_pages()
    programs = rig.build_workloads("chain", "blip")
    directory = prepare(programs)
    chain = rig.start([f"{programs}/chain", "30"], stdout=subprocess.DEVNULL)
    store = rig.path("store")
    daemon = rig.Daemon(CONFIG.format(path=store))
    daemon.wait_up()
    rig.wait_for("a profile in the store", lambda: glob.glob(os.path.join(store, "*.otlp.gz")), 15)
    env = dict(os.environ, PATH=f"{directory}:{os.environ['PATH']}")
    n = 0
    for example in examples():
        if example in ELSEWHERE:
            rig.say(f"{example}: run by {ELSEWHERE[example]}")
            continue
        p = subprocess.run(["bash", "-o", "pipefail", "-c", shorter(example, chain.pid, daemon, store)],
                           cwd=directory, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, errors="replace", check=False, timeout=120)
        good = p.returncode == 0 and "error: " not in p.stdout
        rig.check(good, example + ("" if good else f": {p.returncode}\n{p.stdout[-1500:]}"))
        for name in re.findall(r"(?:-o|>) ([a-z]\S*\.\S+)", example):
            rig.check(os.path.getsize(os.path.join(directory, name)) > 0, f"... wrote {name}")
            n += 1
    rig.check(n > 10, f"{n} files were written")


rig.run(main)
