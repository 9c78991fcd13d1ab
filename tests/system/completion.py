# SPDX-License-Identifier: Apache-2.0
"""Shell completion: bash completes commands and every option that --help knows; zsh, where there is
one, reads its script. Needs no root."""
import re
import shutil
import subprocess

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
    for args, wanted in ((("list", "contaners"), "did you mean containers?"), (("list",), "units or processes"),
                         (("list", "units", "more"), "unexpected argument more"),
                         (("completion", "zhs"), "did you mean zsh?"), (("completion",), "bash or zsh"),
                         (("debug", "unwnd"), "did you mean unwind?"), (("debug",), "sample or unwind"),
                         (("ctl", "relod"), "did you mean reload?"), (("ctl", "status", "x"), "unexpected argument x"),
                         (("record", "-d", "10 parsecs"), "seconds without")):
        r = rig.Record([rig.perfwalk(), *args], 10)
        rig.check(r.status == 2 and wanted in r.err and not r.out, f"{' '.join(args)}: {r.err.strip()}")


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
    rig.check(complete(script, "perfwalk", "ctl", "re") == {"reload", "resume"} and
              complete(script, "perfwalk", "ctl", "") >= {"status", "set-aside", "clear-set-aside"},
              "bash completes the words of ctl")
    if not shutil.which("zsh"):
        rig.skip("zsh is not installed")
    zsh = rig.write("_perfwalk", output("completion", "zsh"))
    p = subprocess.run(["zsh", "-f", "-c", f"autoload -Uz compinit && compinit -u -d {rig.path('dump')} && source {zsh} && "
                        "whence -w _perfwalk && echo ${_comps[perfwalk]}"],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    rig.check(p.returncode == 0 and "_perfwalk: function" in p.stdout and not p.stderr,
              f"zsh reads its script: {p.stdout}{p.stderr}")


rig.run(main)
