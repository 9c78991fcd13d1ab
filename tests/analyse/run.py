# SPDX-License-Identifier: Apache-2.0
"""run.py SRCDIR FLAG...: static analysers over the sources of the program, in a build directory whose generated
sources are made; the flags are the compiler's. `make analyse` runs this.

A finding is "TOOL FILE: TEXT [CHECK]", without its place in the file, so that it stays the same when lines move, and with N
for places in structs and for sizes. Those that were looked at and are wrong are in tests/analyse/known.txt with the
reason; another version of a tool may have others. What the tools say, and how they came to it, is in ./analyse; a file
that has not changed since is not looked at again, so a run that was ended goes on with the next. ANALYSE_TOOLS="cppcheck"
is one of the tools, else there are gcc, clang and cppcheck; ANALYSE_FILES="src/cmd/main.c ..." are some files only. Exit
status 1 when there is a new finding, 77 when there is none but a tool is missing."""
import collections
import concurrent.futures
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = "analyse"
ROOMS = ("alloc", "util", "unwind", "symbolize", "runtimes", "proto", "src")
COMPILER = re.compile(r"\[-W(?!analyzer)[^]]*\]$")  # which warns in every build
BUG = "tests/analyse/bug.c"
NUMBER = re.compile(r"(?<= \+ )\d+|(?<=\[)\d+(?=\])|(?<=, )\d+(?=\))")
PLACE = re.compile(r"(?P<file>[^:\n]+):(?P<line>\d+):(?P<column>\d+): (?!note)\w+: (?P<text>.*\[[^][]+\])")


def gcc(flags):
    """Not with -w, which would silence the analyser too."""
    return ["gcc", *(f for f in flags if f[:2] != "-W"), "-O2", "-fanalyzer", "-fdiagnostics-plain-output", "-c", "-o", os.devnull]


def clang(flags):
    """Of leaks gcc knows more: clang's analyser does not know of __attribute__((cleanup)), either (NOT_FOR)."""
    return ["clang", *(f for f in flags if f[:2] != "-W"), "--analyze", "--analyzer-output", "text", "-o", os.devnull]


def cppcheck(flags):
    """It reads no headers of the system, which define these. What is not freed the others see better: it does not know
    of __attribute__((cleanup))."""
    return ["cppcheck", "--quiet", "--language=c", "--std=c11", "--enable=warning,performance,portability", "--suppress=memleak",
            f"-D__{platform.machine()}__=1", "-DPROTOBUF_C_VERSION_NUMBER=9999999", "-DPROTOBUF_C_MIN_COMPILER_VERSION=0",
            "--template={file}:{line}:{column}: {severity}: {message} [{id}]", *(f for f in flags if f[:2] in ("-D", "-I", "-U"))]


NOT_FOR = {"clang": re.compile(r"^Potential (memory )?leak")}
TOOLS = {"gcc": gcc, "clang": clang, "cppcheck": cppcheck}


def sources(top):
    """Relative to the top; what is made for another processor has other headers."""
    found = []
    for room in ROOMS:
        for directory, _, names in os.walk(os.path.join(top, room)):
            found += [os.path.relpath(os.path.join(directory, name), top) for name in names if name.endswith(".c")
                      and not name.endswith(".pb-c.c") and (not name.startswith("arch-") or platform.machine() in name)]
    return sorted(found)


def is_ours(name):
    """Neither a header of the system nor what protoc-c has made."""
    return name == BUG or name.split("/")[0] in ROOMS and not re.search(r"\.pb-c\.[ch]$", name)


def output(command):
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
                       env={**os.environ, "LC_ALL": "C"})
    return p.returncode, p.stdout


def sum_of(command, flags, source):
    """Of all that the tool reads, and of its version."""
    read = output(["gcc", *(f for f in flags if f[:2] != "-W"), "-E", source])[1]
    version = output([command[0], "--version"])[1]
    return hashlib.sha256("\0".join([version, *command, read]).encode("utf-8", "replace")).hexdigest()


def said(tool, top, name, flags):
    """Whether the tool failed, and what it says; kept in a file, and true until what it reads changes."""
    command = [*TOOLS[tool](flags), os.path.join(top, name)]
    log = os.path.join(OUT, tool, name.replace("/", "-") + ".log")
    head = "sum " + sum_of(command, flags, command[-1]) + "\n"
    if os.path.exists(log):
        with open(log, encoding="utf-8") as f:
            if f.readline() == head:
                return None, f.read()
    status, text = output(command)
    if status:
        return f"{name}: the {tool} analysis ended with {status}:\n{text[-2000:]}", text
    with open(log + ".new", "w", encoding="utf-8") as f:
        f.write(head + text)
    os.rename(log + ".new", log)
    return None, text


def analyse(tool, top, name, flags):
    """What the tool says of a file."""
    failed, text = said(tool, top, name, flags)
    found = {(os.path.relpath(m["file"], top), int(m["line"]), int(m["column"]), m["text"]) for m in PLACE.finditer(text)}
    return failed, {x for x in found if is_ours(x[0]) and not COMPILER.search(x[3]) and not (tool in NOT_FOR and NOT_FOR[tool].match(x[3]))}


def known():
    """How often each finding is known. A line that begins with # is the reason of those below it."""
    with open(os.path.join(HERE, "known.txt"), encoding="utf-8") as f:
        lines = [line.rstrip("\n") for line in f]
    if lines and not lines[0].startswith("#"):
        sys.exit("known.txt: a reason comes first")
    return collections.Counter(line for line in lines if line and not line.startswith("#"))


def run(tool, top, names, flags):
    """All of its findings: text to places."""
    os.makedirs(os.path.join(OUT, tool), exist_ok=True)
    failed, places = analyse(tool, top, BUG, flags)
    if failed or not places:
        sys.exit(failed or f"{tool} does not find what is wrong in {BUG}")
    found, failures = set(), []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for failed, places in pool.map(lambda name: analyse(tool, top, name, flags), names):
            found |= places
            failures += [failed] if failed else []
    if failures:
        sys.exit("\n".join(failures[:5]))
    texts = collections.defaultdict(list)
    for file, line, column, text in sorted(found):
        texts[f"{tool} {file}: {NUMBER.sub('N', text)}"].append(f"{file}:{line}:{column}")
    return texts


def main():
    top, *flags = sys.argv[1:]
    tools = os.environ.get("ANALYSE_TOOLS", " ".join(TOOLS)).split()
    missing = [tool for tool in tools if not shutil.which(tool)]
    names = os.environ.get("ANALYSE_FILES", "").split() or sources(top)
    expected, n_new, n_known = known(), 0, 0
    for tool in tools:
        if tool in missing:
            continue
        texts = run(tool, top, names, flags)
        for text, places in texts.items():
            more = len(places) - expected[text]
            n_known += min(len(places), expected[text])
            if more > 0:
                n_new += more
                print(f"NEW ({more} of {len(places)}): {text}\n    at {' '.join(places)}", flush=True)
        gone = [text for text in expected if text.split()[0] == tool and text.split()[1].rstrip(":") in names and text not in texts]
        for text in gone:
            print(f"not found any more: {text}")
        print(f"{tool}: {sum(len(p) for p in texts.values())} findings in {len(names)} files", flush=True)
    print(f"{n_new} new findings, {n_known} known ones")
    if missing:
        print(f"not installed: {' '.join(missing)}; on Debian: apt-get install {' '.join(missing)}")
    sys.exit(1 if n_new else 77 if missing else 0)


main()
