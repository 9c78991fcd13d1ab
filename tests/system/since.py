# SPDX-License-Identifier: Apache-2.0
# Rooms: -
"""tests/run.sh --since runs what a change can break: which files select which tests (tests/select.sh), and that
every system test says what it covers. Needs no root."""
import glob
import os
import re
import subprocess

import rig

SELECT = os.path.join(rig.TOP, "tests", "select.sh")


def select(*paths):
    """{"all"}, or the names of the selected tests."""
    p = subprocess.run(["sh", SELECT, os.path.dirname(rig.perfwalk())], input="".join(x + "\n" for x in paths),
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    rig.check(p.returncode == 0, f"{' '.join(paths)}" + ("" if p.returncode == 0 else f": {p.stdout}"))
    return {re.sub("^(unit|system) ", "", line) for line in p.stdout.splitlines()}


def units(room):
    """Unit tests by their names."""
    found = glob.glob(os.path.join(rig.TOP, "tests", "unit", f"test-{room}-*.c"))
    return {os.path.basename(x)[:-2] for x in found}


def every_test_is_known():
    with open(os.path.join(rig.TOP, "tests", "run.sh"), encoding="utf-8") as f:
        tests = set(re.findall(r"^\t(\w+) +\d", re.search(r'^SYSTEM_TESTS="(.*?)"', f.read(), re.M | re.S)[1], re.M))
    said = {}
    for name in glob.glob(os.path.join(rig.HERE, "*.py")):
        with open(name, encoding="utf-8") as f:
            m = re.search(r"^# Rooms: (.+)$", f.read(), re.M)
        if m:
            said[os.path.basename(name)[:-3]] = m[1].split()
    rig.check(said.keys() == tests, f"{len(said)} tests say which rooms they cover" +
              ("" if said.keys() == tests else f", not {said.keys() ^ tests}"))
    unknown = {r for rooms in said.values() for r in rooms
               if r not in ("-", "any") and not os.path.isdir(os.path.join(rig.TOP, r))}
    rig.check(not unknown, f"rooms are directories {unknown or ''}")
    rooms = {"unwind", "symbolize", "proto", *(f"src/{x}" for x in os.listdir(os.path.join(rig.TOP, "src"))
                                             if os.path.isdir(os.path.join(rig.TOP, "src", x)))}
    missing = rooms - {r for covered in said.values() for r in covered}
    rig.check(not missing, f"{len(rooms)} rooms are covered {missing or ''}")


def main():
    if not os.path.exists(os.path.join(os.path.dirname(rig.perfwalk()), "Makefile")):
        rig.skip("perfwalk is not in a build directory, which knows what links what")
    every_test_is_known()
    for path in ("util/text.c", "configure.ac", "src/render/local.mk", "tests/run.sh", "something/new",
                 "tests/unit/test.h"):
        rig.check(select(path) == {"all"}, "  all tests")
    rig.check(select("docs/hosts.md", "README.md", "NEWS") == {"hygiene"}, "  hygiene alone")
    rig.check(select("docs/hosts.md", "util/log.h") == {"all"}, "  all tests")

    chosen = select("symbolize/dwarf.c")
    rig.check(units("symbolize") | {"names", "lines", "bombs", "captures", "hygiene"} <= chosen,
              "  the tests of symbolize, and those of names")
    rig.check("test-file-names" in chosen and "test-code-unwinding" in chosen, "  and of the rooms that use it")
    rig.check(not chosen & (units("unwind") | {"test-export", "test-config", "spool", "values", "top", "all"}),
              "  but none that it cannot break")
    chosen = select("src/store/reader.c")
    rig.check({"store", "test-export", "test-spool"} <= chosen and not chosen & (units("symbolize") | {"names", "debug"}),
              "  store, and who links it")
    rig.check(select("tests/unit/test-host.c") == {"test-host", "hygiene"}, "  itself")
    rig.check(select("tests/system/grpc.py") == {"grpc", "hygiene"}, "  itself")
    rig.check(select("tests/system/grpc_server.py") == {"grpc", "route", "hygiene"}, "  the tests that import it")
    rig.check({"grpc", "collector"} <= select("tests/system/otelcol.py"), "  the tests that import it")
    rig.check({"test-unwind-corpus", "test-unwind-continue", "debug"} <= select("tests/data/unwind/plt.samples.gz"),
              "  the tests that read it")
    rig.check({"test-unwind-go", "test-unwind-live"} <= select("tests/corpus/judge.c"), "  the tests that link it")
    rig.check("tests/fuzz/replay-jitdump" in select("tests/fuzz/corpus-jitdump/node"), "  the program that reads it")
    rig.check({"test-render-html", "outputs", "tests/system/flamegraph-page.sh"} <= select("tests/system/browser.py"),
              "  the tests with a browser")
    chosen = select("alloc/alloc.c")
    rig.check({"allocations", "preloaded", "bundle", "hardening"} <= chosen and not chosen & {"names", "store", "all"},
              "  the tests of the allocation library")
    chosen = select("tests/oracle/model.py")
    rig.check("oracle" in chosen and len(chosen) < 5, "  the oracle")

    p = subprocess.run(["sh", os.path.join(rig.TOP, "tests", "run.sh"), "--since", "no-such-commit"],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    rig.check(p.returncode == 2 and "no-such-commit" in p.stdout, f"no commit: {p.stdout.strip()}")


rig.run(main)
