# SPDX-License-Identifier: Apache-2.0
# Rooms: src/cmd
"""Shell completion: bash completes commands and every option that --help knows; zsh, where there is
one, reads its script. Needs no root."""
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time

import rig


def output(*args):
    return subprocess.run([rig.perfwalk(), *args], stdout=subprocess.PIPE, text=True, check=True).stdout


def complete(script, *words):
    """What bash offers behind these words."""
    text = f"""source {script}
COMP_WORDS=({' '.join(f"'{w}'" for w in words)})
COMP_CWORD={len(words) - 1}
_perfwalk
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    return set(subprocess.run(["bash", "-c", text], stdout=subprocess.PIPE, text=True, check=True).stdout.split())


def check_words():
    """Commands that take a word say which one was meant, or which there are."""
    for args, wanted in ((("list", "contaners"), "did you mean containers?"), (("list",), "processes or windows"),
                         (("list", "units", "more"), "unexpected argument more"),
                         (("completion", "zhs"), "did you mean zsh?"), (("completion",), "bash or zsh"),
                         (("debug", "unwnd"), "did you mean unwind?"), (("debug",), "sample or unwind"),
                         (("ctl", "relod"), "did you mean reload?"), (("ctl", "status", "x"), "unexpected argument x"),
                         (("record", "-d", "10 parsecs"), "a number of seconds")):
        r = rig.Record([rig.perfwalk(), *args], 10)
        rig.check(r.status == 2 and wanted in r.err and not r.out, f"{' '.join(args)}: {r.err.strip()}")


CTL = {"status", "flush", "reload", "pause", "resume", "set-aside", "clear-set-aside"}


def check_values(offered):
    """Words behind commands, and behind options, are those that the program itself names."""
    events = {x.split()[0] for x in output("list", "events").splitlines()} - {"CACHE-ACCESSES", "rNNN", "SUBSYSTEM:NAME", "uprobe:/PATH:NAME", "usdt:/PATH:P:NAME"}
    told = rig.Record([rig.perfwalk(), "record", "--format", "x"], 10).err
    formats = set(told.partition("the formats are ")[2].strip().split(", "))
    rig.check(len(events) > 10 and len(formats) > 8, f"{len(events)} events, {len(formats)} formats")
    for words, wanted in ((("ctl", ""), CTL), (("ctl", "re"), {"reload", "resume"}), (("ctl", "-a", ""), CTL),
                          (("list", ""), {"events", "types", "containers", "units", "services", "processes", "windows"}),
                          (("completion", ""), {"bash", "zsh"}), (("debug", ""), {"function", "marker", "runtime", "sample", "unwind"}),
                          (("record", "-e", ""), events), (("record", "--event", "page"), {"page-faults"}),
                          (("record", "--format", ""), formats), (("record", "-a", "--format", "ht"), {"html"}),
                          (("convert", "x.folded", "--format", ""), formats),
                          (("diff", "--format", ""), {"html", "folded"}),
                          (("record", "--demangle", ""), {"full", "simple", "none"}),
                          (("top", "--sort", ""), {"self", "total"})):
        have = offered(*words)
        rig.check(have == wanted, f"{' '.join(words)}: {sorted(have)}")


def zsh_offers(script):
    """What the script hands to zsh's _arguments, which completes it: the words of where the cursor is."""
    def offered(*words):
        quoted = " ".join(f"'{w}'" for w in ("perfwalk", *words))
        p = subprocess.run(["zsh", "-f", "-c", f"compdef() {{ }}; source {script}; _arguments() {{ print -rl -- \"$@\" }}; "
                            f"words=({quoted}); CURRENT=$#words; _perfwalk"], stdout=subprocess.PIPE, text=True, check=True)
        option = next((w for w in words if w in ("-e", "--event", "--format", "--demangle", "--sort")), None)
        for line in p.stdout.splitlines():
            m = re.match(r"1:word:\((.*)\)$", line) if not option else re.match(
                rf"(?:\([^)]*\)|\*)?{re.escape(option)}\[.*\]:[^:]*:(?:_sequence compadd - |\()([^)]*)\)?$", line)
            if m:
                return {w for w in m[1].split() if w.startswith(words[-1])}
        return set()
    return offered


def check_lists(script):
    """Behind a comma what is not in the list yet is offered, in bash with what stands before it."""
    def offered(*words):
        return complete(script, "perfwalk", *words)

    events = offered("record", "-e", "")
    rig.check(offered("record", "-e", "cpu-clock,page") == {"cpu-clock,page-faults"}, "bash: behind a comma")
    rig.check(offered("record", "-e", "cpu-clock,cycles,") == {f"cpu-clock,cycles,{e}" for e in events - {"cpu-clock", "cycles"}},
              "bash: what is in the list is not offered again")
    rig.check(offered("record", "-e", "cpu-clock", "-e", "task") == {"task-clock"}, "bash: behind a second -e")
    rig.check(offered("report", "--sort", "comm,sy") == {"comm,symbol"}, "bash: keys of a report, too")
    rig.check(offered("record", "--format", "html,f") == set(), "bash: not where there is no list")


def zsh_types(script, typed, wanted):
    """A real zsh, to which a line and a tabulator are typed."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp("zsh", ["zsh", "-f", "-i"])
    try:
        os.write(fd, (f"autoload -Uz compinit && compinit -u -d {rig.path('dump2')} && source {script}; PS1=; echo rea''dy\n").encode())
        seen, sent = b"", False
        rig.wait_for("zsh", lambda: select.select([fd], [], [], 0.1)[0], 30)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and wanted.encode() not in seen:
            if select.select([fd], [], [], 0.2)[0]:
                seen += os.read(fd, 4096)
            if not sent and b"ready" in seen:
                seen, sent = b"", True
                os.write(fd, (typed + "\t").encode())
        rig.check(wanted.encode() in seen, f"zsh makes {wanted} of it: {seen[-200:]!r}")
    finally:
        rig.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(fd)


def main():
    check_words()
    script = rig.write("perfwalk.bash", output("completion", "bash"))
    commands = set(re.findall(r"^  ([a-z]+) ", output("--help"), re.M)) - {"perfwalk"}
    rig.check({"record", "run", "report"} <= commands, f"--help lists {len(commands)} commands")
    rig.check(complete(script, "perfwalk", "") == commands | {"--help", "--version"}, "bash completes the commands")
    rig.check(complete(script, "perfwalk", "rec") == {"record"}, "bash completes a command that is begun")
    for command in sorted(commands):
        known = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", "\n".join(
            l for l in output(command, "--help").splitlines() if re.match(r"  (-\w,|   ) --", l)))) | {"--help"}
        have = complete(script, "perfwalk", command, "--")
        rig.check(have == known, f"bash completes the options of {command}" + (
            "" if have == known else f": {sorted(have ^ known)}"))
    rig.check(complete(script, "perfwalk", "report", "out") == set(), "files are left to bash itself")
    check_values(lambda *words: complete(script, "perfwalk", *words))
    rig.check(complete(script, "perfwalk", "record", "--format", "=", "fo") == {"folded"} and
              "pprof" in complete(script, "perfwalk", "record", "--format", "="), "bash: with an equals sign, too")
    for words in (("ctl", "-s", ""), ("ctl", "status", ""), ("debug", "unwind", ""), ("record", "-o", "")):
        rig.check(complete(script, "perfwalk", *words) == set(), f"bash: files behind {' '.join(words)}")
    check_lists(script)
    if not shutil.which("zsh"):
        rig.skip("zsh is not installed")
    zsh = rig.write("_perfwalk", output("completion", "zsh"))
    p = subprocess.run(["zsh", "-f", "-c", f"autoload -Uz compinit && compinit -u -d {rig.path('dump')} && source {zsh} && "
                        "whence -w _perfwalk && echo ${_comps[perfwalk]}"],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    rig.check(p.returncode == 0 and "_perfwalk: function" in p.stdout and not p.stderr,
              f"zsh reads its script: {p.stdout}{p.stderr}")
    check_values(zsh_offers(zsh))
    zsh_types(zsh, "perfwalk record -e cpu-clock,page-f", "cpu-clock,page-faults")
    zsh_types(zsh, "perfwalk record -e cpu-clock -e task-cl", "-e task-clock")


rig.run(main)
