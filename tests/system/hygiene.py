# SPDX-License-Identifier: Apache-2.0
# Rooms: any
"""The tree itself: licence lines, no marks of unfinished work, no traces of one developer's machine,
no line of C or Markdown longer than 100 columns, no name of a struct used twice, every configuration
key and every option in the manual and no others, and the default configuration complete. Needs no
root."""
import os
import re
import subprocess

import rig


def tracked():
    p = subprocess.run(["git", "ls-files", "-z"], cwd=rig.TOP, stdout=subprocess.PIPE, check=False,
                       stderr=subprocess.DEVNULL)
    if p.returncode == 0 and p.stdout:
        return [n.decode() for n in p.stdout.split(b"\0") if n]
    found = []
    for directory, names, files in os.walk(rig.TOP):
        names[:] = [n for n in names if not n.startswith((".", "build", "autom4te"))]
        found += [os.path.relpath(os.path.join(directory, f), rig.TOP) for f in files]
    return found


def read(name):
    try:
        with open(os.path.join(rig.TOP, name), encoding="utf-8") as f:
            return f.read()
    except (UnicodeDecodeError, FileNotFoundError):
        return ""


def offenders(files, expression, skip=()):
    found = []
    for name in files:
        if name in skip:
            continue
        for number, line in enumerate(read(name).splitlines(), 1):
            if re.search(expression, line):
                found.append(f"{name}:{number}: {line.strip()[:100]}")
    return found


def none(found, text):
    rig.check(not found, text + "".join("\n    " + f for f in found[:20]))


def sources():
    files = tracked()
    me = "tests/system/hygiene.py"
    code = [f for f in files if re.search(r"\.([ch]|cc|rs|go|py|sh|js|proto)$", f)]
    none([f for f in code if "SPDX-License-Identifier: Apache-2.0" not in read(f)[:200]],
         f"{len(code)} source files begin with their licence")
    none(offenders(files, r"\b(TODO|FIXME|XXX|HACK)\b", (me, "LICENSE")), "nothing is marked as unfinished")
    none(offenders(files, r"(?<![\w.$}])/(home|Users|root|work|shared)/\w", (me, "LICENSE")),
         "no path of somebody's machine")
    none(offenders(files, r"\b(issue|ticket|bug|PR) ?#?\d+\b|\(#\d+\)", (me, "LICENSE")),
         "no number that only some tracker can explain")
    none([f for f in files if re.search(r"\.(o|a|so|pyc|log|orig|rej|swp)$|~$", f)], "no build product")
    none(offenders([f for f in files if f.endswith((".c", ".h"))], r"[ \t]+$"), "no blanks at line ends")
    none([f for f in files if f.endswith((".c", ".h")) and not f.startswith("tests/")
          and read(f).count("\n") > 900], "no source file of more than 900 lines")
    long_lines(files)
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "NEWS", "LICENSE"):
        rig.check(read(name).strip(), f"{name} is there and not empty")
    for word in ("sh etc/quickstart.sh", "sh tests/run.sh"):
        rig.check(word in read("README.md"), f"README.md gives the command {word}")


def long_lines(files):
    """Three kinds of lines may be longer: rows of tables in Markdown, strings that are one line of
    output, and long names of the generated code of proto/."""
    found, n = [], 0
    for name in files:
        if not name.endswith((".c", ".h", ".md")):
            continue
        for number, line in enumerate(read(name).splitlines(), 1):
            n += 1
            if len(line.expandtabs(8)) > 100 and not re.search(
                    r"^\||^\s*\"|\w{60}", line):
                found.append(f"{name}:{number}: {line.strip()[:60]}")
    rig.check(n > 100000, f"C and Markdown have {n} lines")
    none(found, "they end at column 100")


def tags():
    """One name of a struct is one struct, wherever one meets it."""
    places, n = {}, 0
    for name in tracked():
        if not re.match(r"(util|unwind|symbolize|proto|src)/.*\.[ch]$", name):
            continue
        text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), read(name), flags=re.S)
        for m in re.finditer(r"\b(?:struct|union|enum)\s+(\w+)\s*\{", text):
            places.setdefault(m[1], []).append(f"{name}:{text.count(chr(10), 0, m.start()) + 1}")
            n += 1
    rig.check(n > 500, f"{n} structs, unions and enums have names")
    none([f"{tag}: {', '.join(where)}" for tag, where in sorted(places.items()) if len(where) > 1],
         "no two have the same one")


def unit_tests():
    """Which tests run under the unit: all with a daemon, but for those that are listed with a reason."""
    listed = {name: re.search(rf"^{name} = ((?:.*\\\n)*.*)$", read("tests/local.mk"), re.M)[1].replace("\\\n", " ").split()
              for name in ("UNIT_TESTS", "WITHOUT_UNIT")}
    found = {os.path.basename(f).removesuffix(".py") for f in tracked() if re.fullmatch(r"tests/system/\w+\.py", f)
             and re.search(r"\brig\.Daemon\(", read(f)) and re.search(r"^\s*rig\.run\(main\)", read(f), re.M)}
    both = set(listed["UNIT_TESTS"]) | set(listed["WITHOUT_UNIT"])
    none(sorted(found - both), "make check-unit has each test with a daemon, or says why not")
    none(sorted(both - found) + sorted(set(listed["UNIT_TESTS"]) & set(listed["WITHOUT_UNIT"])), "and no others")


def manual(name):
    for directory in ("man", "."):
        text = read(os.path.join(directory, name))
        if text:
            text = text.replace("\\-", "-").replace("\\&", "").replace("\\_", "_")
            return re.sub(r"\bFl (\S+)", r"-\1", text)  # mdoc's mark of an option
    rig.fail(f"no manual page {name}")
    return ""


def documentation():
    config = rig.write("all.conf", "[export:x]\nendpoint = http://127.0.0.1:4318\n")
    shown = subprocess.run([rig.perfwalk(), "run", "--print-config", "-c", config], check=True,
                           stdout=subprocess.PIPE, text=True).stdout
    keys = set(re.findall(r"^[#; ]*([a-z][a-z0-9_]+) *=", shown, re.M))
    rig.check(len(keys) > 15, f"--print-config knows {len(keys)} keys")
    page, default = manual("perfwalk.conf.5"), read("etc/perfwalk.conf")
    none(sorted(k for k in keys if not re.search(rf"\b{k}\b", page)), "perfwalk.conf(5) explains every key")
    none(sorted(k for k in keys if not re.search(rf"^[#; ]*{k} *=", default, re.M)),
         "etc/perfwalk.conf shows every key")
    rows = read("util/runtime-rows.h")
    chains, runtimes = (re.search(rf'^#define {name}\s+"(.*)"$', rows, re.M)[1] for name in ("RUNTIME_NAMES_WITH_CHAIN", "RUNTIME_NAMES"))
    none([(name, text) for name, texts in {"perfwalk.conf.5": (chains, runtimes), "perfwalk-record.1": (runtimes,),
                                           "perfwalk-debug.1": (chains, runtimes)}.items()
          for text in texts if text not in manual(name)], "the pages name the runtimes that are read")
    overview = manual("perfwalk.1")
    markers = re.findall(r'\[PROFILE_MARKER_\w+\] = "(.*)"', read("src/profile/texts.c"))
    waits = [m for m in markers if re.match(r"\[wait\b|\[waiting|\[on CPU\]|\[woken\]|\[idle\]|\[not seen\]", m)]
    record = manual("perfwalk-record.1")
    none([m for m in waits if m.strip("[]").replace("wait: ", "") not in record], "perfwalk-record(1) names each reason of a wait, and each state")
    markers = [m for m in markers if m not in waits]
    rig.check(sorted(markers) == sorted(rig.MARKERS), f"{len(markers)} markers of stacks that end early")
    none([m for m in markers if f".It {m}\n" not in overview], "perfwalk(1) explains each")
    commands = re.findall(r"^  ([a-z]+) ", subprocess.run([rig.perfwalk(), "--help"], stdout=subprocess.PIPE,
                                                         text=True, check=True).stdout.split("\n\n  perfwalk")[0], re.M)
    rig.check(len(commands) >= 10, f"perfwalk --help knows {' '.join(commands)}")
    installed = read("man/local.mk")
    for command in commands:
        rig.check(f"perfwalk-{command} 1" in overview and f"man/perfwalk-{command}.1" in installed,
                  f"perfwalk(1) refers to perfwalk-{command}(1), which is installed")
        page = manual(f"perfwalk-{command}.1")
        text = subprocess.run([rig.perfwalk(), command, "--help"], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        text = text.split("\nOptions:\n")[-1].split("\n\n")[0] if "\nOptions:\n" in text else ""
        options = set(re.findall(r"^  (-[a-zA-Z])?,? +(--[a-z-]+)", text, re.M))
        options = {x for pair in options for x in pair if x}
        options -= {"-h", "--help"}
        rig.say(f"{command} --help knows {' '.join(sorted(options))}")
        none(sorted(o for o in options if not re.search(rf"{o}(?![\w-])", page)),
             f"perfwalk-{command}(1) explains every option")
        described = set()
        for line in re.findall(r"^\.It (-.*)", page, re.M):
            described.update(re.findall(r"(?<!\S)(--?[a-zA-Z][\w-]*)", line.replace(" , ", " ")))
        whole = subprocess.run([rig.perfwalk(), command, "--help"], stdout=subprocess.PIPE, text=True,
                               check=True).stdout
        none(sorted(o for o in described if not re.search(rf"(?<![\w-]){o}(?![\w-])", whole)),
             f"perfwalk-{command}(1) explains no other option ({len(described)})")
        rig.check(".Sh EXAMPLES\n.Dl " in page, f"perfwalk-{command}(1) has examples")
    p = subprocess.run([rig.perfwalk(), "run", "--check-config", "-c",
                        os.path.join(rig.TOP, "etc", "perfwalk.conf")], stderr=subprocess.PIPE, text=True,
                       stdout=subprocess.DEVNULL, check=False,
                       env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"})
    rig.check(p.returncode == 0, f"with a destination, etc/perfwalk.conf is a good configuration {p.stderr}")


def main():
    sources()
    tags()
    unit_tests()
    documentation()


rig.run(main)
