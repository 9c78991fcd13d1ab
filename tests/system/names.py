# SPDX-License-Identifier: Apache-2.0
# Rooms: symbolize src/symbolizer
"""Functions, inlined calls, files, lines and columns against llvm-symbolizer: programs of this host and
some built here in all forms that debugging information comes in. Every difference must have a reason that
is looked up in the file, not in the answer; what has none may be one address in a thousand.

    names.py         a few forms, 2,000 addresses in each
    names.py --all   all of them, 10,000 addresses in each (make check-names)
    names.py --all WORD...   those whose name has one of the words

NAMES_DIR=DIRECTORY keeps what is built for the next time, NAMES_SHOW=N shows more of what differs.
"""
import bisect
import collections
import concurrent.futures
import glob
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time

import rig

Frame = collections.namedtuple("Frame", "name file line column")
UNKNOWN = [Frame("??", "??", 0, 0)]
OLDEST_JUDGE = 19  # LLVM 14 to 16 say nothing of what was inlined when a .dwo file tells it

CXX = r"""
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>
#ifdef MORE
#include <filesystem>
#include <iostream>
#include <set>
#include <unordered_map>
#endif
namespace shop {
struct item { std::string name; int price; };
template <typename T> struct basket {
	std::vector<T> items;
	void add(const T &t) { items.push_back(t); }
	int sum() const { return std::accumulate(items.begin(), items.end(), 0,
		[](int a, const T &t) { return a + t.price; }); }
	void order() { std::sort(items.begin(), items.end(), [](const T &a, const T &b) {
		return a.price < b.price || (a.price == b.price && a.name < b.name); }); }
};
namespace {
struct secret { virtual ~secret() {} virtual int code(int x) { return x * 7; } };
struct deeper : secret { int code(int x) override {
	struct local { static int f(int y) { return y / 3; } };
	return local::f(x) + secret::code(x); } };
}
template <int N> struct power { static inline long of(long x) { return x * power<N - 1>::of(x + N); } };
template <> struct power<0> { static inline long of(long x) { return x | 1; } };
}
extern "C" int shop_run(int argc)
{
	shop::basket<shop::item> b;
	std::map<std::string, int> count;
	std::ostringstream out;
	for (int i = 0; i < 100 * argc; i++) {
		b.add(shop::item{std::string("item") + std::to_string(i * 7 % 13), i % 5});
		count[b.items.back().name]++;
		out << i << ' ' << shop::power<20>::of(i);
	}
	b.order();
	std::unique_ptr<shop::secret> s(new shop::deeper);
	try { if (argc > 5) throw std::string("many"); }
	catch (const std::string &e) { out << e; }
	std::function<int(int)> f = [&](int x) { return b.sum() + s->code(x); };
	return f(argc) + (int)count.size() + (int)out.str().size();
}
#ifdef MORE
extern "C" long shop_more(const char *text)
{
	std::set<std::string> seen;
	std::unordered_map<std::string, std::vector<double>> table;
	for (auto &e : std::filesystem::recursive_directory_iterator(text)) {
		seen.insert(e.path().lexically_normal().string());
		table[e.path().extension().string()].push_back((double)e.file_size());
	}
	for (auto &v : table)
		std::stable_sort(v.second.begin(), v.second.end());
	std::cout << seen.size() << std::endl;
	return (long)table.size();
}
#endif
"""
RUST = r"""
use std::collections::{BTreeMap, HashMap};
#[inline(always)] fn mix(a: u64) -> u64 { (a ^ (a >> 31)).wrapping_mul(0x9e3779b97f4a7c15) }
#[inline] fn twice<T: Fn(u64) -> u64>(f: T, a: u64) -> u64 { f(a).wrapping_add(f(a + 1)) }
fn main() {
    let mut m = HashMap::new();
    let mut b: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for i in 0..std::env::args().count() as u64 * 1000 {
        *m.entry(twice(mix, i) % 97).or_insert(0u64) += i;
        b.entry(format!("{:?}", i % 13)).or_default().push(mix(i));
    }
    let mut v: Vec<_> = m.iter().map(|(k, v)| (k.wrapping_mul(7), *v)).collect();
    v.sort_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
    println!("{:?} {:?}", v.first(), b.values().flatten().max());
}
"""
GO = r"""
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"sort"
)

type thing struct {
	Name string
	N    int
}

func (t *thing) add(n int) int { t.N += n; return t.N }

func twice(f func(int) int, n int) int { return f(n) + f(n+1) }

func main() {
	t := &thing{"a", 1}
	s := twice(t.add, 3)
	b, _ := json.Marshal(t)
	words := regexp.MustCompile(`[a-z]+`).FindAllString(string(b), -1)
	sort.Slice(words, func(i, j int) bool { return words[i] > words[j] })
	fmt.Println(s, words)
	_ = http.ListenAndServe("127.0.0.1:bad", nil)
}
"""


# ---- Tools ----

def run(*command, **more):
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                       timeout=300, **more)
    if r.returncode:
        rig.fail(f"{' '.join(command)[:300]}: {r.stdout[-2000:]}")
    return r.stdout


def programs(name):
    """All programs NAME, NAME-14, NAME-19 ... that are installed."""
    return [f for d in os.environ["PATH"].split(":") for f in glob.glob(os.path.join(d, name + "*"))
            if re.fullmatch(re.escape(name) + r"(-\d+)?", os.path.basename(f))]


def newest(name):
    return max(programs(name), key=lambda f: int((re.findall(r"-(\d+)$", f) or ["0"])[0]), default=None)


def judge():
    """The newest llvm-symbolizer, whatever its command is called. One that is too old does not judge."""
    found = {int(re.search(r"version (\d+)", run(f, "--version"))[1]): f for f in programs("llvm-symbolizer")}
    if max(found, default=0) < OLDEST_JUDGE:
        rig.skip(f"llvm-symbolizer {OLDEST_JUDGE} or newer is not installed (Debian's package llvm-{OLDEST_JUDGE}); "
                 f"found: {', '.join(map(str, sorted(found))) or 'none'}")
    return found[max(found)]


def build_answer():
    top = os.path.dirname(rig.perfwalk())
    run("make", "-C", top, "tests/names/answer")
    return os.path.join(top, "tests", "names", "answer")


def sections(file):
    """Name, flags, address and size of each section."""
    found = []
    for line in run("readelf", "-SW", file).splitlines():
        m = re.match(r"\s*\[ *\d+\] (\S+)\s+(\S+)\s+([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+) [0-9a-f]+ +(\S*)", line)
        if m:
            found.append((m[1], m[2], m[6], int(m[3], 16), int(m[5], 16)))
    return found


def addresses(file, n, seed):
    """All over the machine code but stubs, which llvm-symbolizer does not name."""
    code = [(address, size) for name, kind, flags, address, size in sections(file)
            if "X" in flags and kind == "PROGBITS" and not name.startswith(".plt")]
    total, r = sum(size for _, size in code), random.Random(seed)
    wanted = []
    for at in sorted(r.sample(range(total), min(n, total))):
        for address, size in code:
            if at < size:
                wanted.append(address + at)
                break
            at -= size
    return wanted


def parse(text):
    """The chains of an answer in the form of llvm-symbolizer."""
    chains = []
    for block in text.replace("\n\n\n", "\n\n").strip("\n").split("\n\n"):
        lines = block.split("\n")
        chain = []
        for name, place in zip(lines[::2], lines[1::2]):
            file, line, column = place.rsplit(":", 2)
            chain.append(Frame(name, os.path.normpath(file), int(line), int(column)))
        chains.append(chain)
    return chains


def ask(command, wanted):
    text = "".join(f"0x{a:x}\n" for a in wanted)
    r = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if r.returncode:
        rig.fail(f"{' '.join(command)}: {r.stderr[-2000:]}")
    chains = parse(r.stdout)
    if len(chains) != len(wanted):
        rig.fail(f"{' '.join(command)}: {len(chains)} answers to {len(wanted)} addresses")
    return chains, r.stderr.strip()


class Symbols:
    """What readelf knows of a file: for telling aliases, and code that is nobody's."""

    def __init__(self, file):
        self.sizes, self.places = {}, collections.defaultdict(set)
        self.data = set()
        for line in run("readelf", "-sW", file).splitlines():
            field = line.split()
            if len(field) < 8 or field[3] not in ("FUNC", "IFUNC", "NOTYPE", "OBJECT") or field[6] == "UND":
                continue
            start, name = int(field[1], 16), field[7].split("@")[0]
            if field[3] == "OBJECT":
                self.data.add(name)
                continue
            self.places[name].add(start)
            self.sizes[start] = max(self.sizes.get(start, 0), int(field[2], 0))
        self.starts = sorted(self.sizes)

    def aliases(self, a, b):
        a, b = a.split("@")[0], b.split("@")[0]  # perfwalk does not say versions
        return a == b or bool(self.places[a] & self.places[b])

    def covered(self, address):
        i = bisect.bisect_right(self.starts, address)
        at = self.starts[i - 1] if i else None
        return at is not None and address < at + max(self.sizes[at], 1)


# ---- Differences and their reasons ----

def places_equal(a, b, columns):
    return a.line == b.line and (not a.line or a.file == b.file) and (not columns or a.column == b.column)


def equal(case, ours, theirs):
    return (len(ours) == len(theirs)
            and all(places_equal(a, b, case.columns) for a, b in zip(ours, theirs))
            and all(a.name == b.name or (a.name, b.name) == ("[inlined function]", "??")
                    for a, b in zip(ours[:-1], theirs[:-1]))
            and case.symbols.aliases(ours[-1].name, theirs[-1].name))


def is_padding(case, address, ours, theirs):
    """No symbol covers it: the line table goes on to the next function, a symbolizer may or may not."""
    return not case.symbols.covered(address) and len(ours) == len(theirs) == 1


def is_abi0(case, address, ours, theirs):
    """Go's symbols tell assembler's calling convention, the table that stripping leaves does not."""
    renamed = [f._replace(name=f.name.removesuffix(".abi0")) for f in theirs]
    return case.name.startswith("Go, stripped") and renamed != theirs and equal(case, ours, renamed)


def is_shortened(case, address, ours, theirs):
    """Older linkers of Go (1.19) put "[...]" for all brackets into its table: a stripped file has no more."""
    short = [f._replace(name=re.sub(r"\[.*\]", "[...]", f.name)) for f in theirs]
    if not case.name.startswith("Go, stripped") or short == theirs or not equal(case, ours, short):
        return False
    with open(case.file, "rb") as f:
        known = f.read()
    return not any(a.name.encode() in known for a, b in zip(theirs, short) if a != b)


def is_autogenerated(case, address, ours, theirs):
    """Functions that Go's compiler makes have no line in DWARF, or that of the function inlined in them,
    which DWARF leaves out; Go's own table has the one and the other."""
    made = ours[-1]
    return (made.file == "<autogenerated>" and len(theirs) == 1 and made.name == theirs[0].name
            and (not theirs[0].line or places_equal(ours[0], theirs[0], False)))


def is_data(case, address, ours, theirs):
    """A table of constants among the code: nobody is there to be sampled."""
    return ours == UNKNOWN and theirs[-1].name in case.symbols.data


PADDING = "in padding between functions"
REASONS = [(PADDING, is_padding), ("without .abi0", is_abi0), ("with [...], as in Go's table", is_shortened),
           ("made by Go's compiler", is_autogenerated), ("constants", is_data)]


class Case:
    """file: what perfwalk would see; truth: the command that knows better."""

    def __init__(self, name, file, truth=None, given=(), columns=True, judge=None):
        self.name, self.file, self.given, self.columns = name, file, list(given), columns
        self.truth_file = truth or file
        self.judge = judge
        self.symbols = None

    def compare(self, answer, symbolizer, n):
        self.symbols = Symbols(self.truth_file)
        wanted = addresses(self.file, n, self.name)
        theirs, _ = (self.judge or ask)([symbolizer, "--inlines", "--no-demangle", "-e", self.truth_file], wanted)
        begin = time.monotonic()
        ours, note = ask([answer, self.file, *self.given], wanted)
        seconds = time.monotonic() - begin
        why, odd, inlined, lines = collections.Counter(), [], 0, 0
        for address, a, b in zip(wanted, ours, theirs):
            inlined += len(b) > 1
            lines += b[0].line > 0
            if equal(self, a, b):
                why["equal"] += 1
                continue
            reason = next((text for text, f in REASONS if f(self, address, a, b)), None)
            why[reason] += 1
            if not reason:
                odd.append((address, a, b))
        return why, odd, f"{inlined} inlined, {lines} with a line; {seconds:.2f} s; {note}"


def show(chain):
    return " < ".join(f"{f.name[:120]} {f.file}:{f.line}:{f.column}" for f in chain)


# ---- Programs ----

def path(*names):
    return os.path.join(os.environ.get("NAMES_DIR") or rig.workdir(), *names)


def write(name, text):
    with open(path(name), "w", encoding="utf-8") as f:
        f.write(text)
    return path(name)


def sources(full):
    if not full:  # the addresses are 2,000 in any case
        return [os.path.join(rig.TOP, "symbolize", f"dwarf-{name}.c") for name in ("code", "line", "units")]
    return sorted(glob.glob(os.path.join(rig.TOP, "symbolize", "*.c"))
                  + glob.glob(os.path.join(rig.TOP, "util", "[hst]*.c")))


_building = collections.defaultdict(threading.Lock)


def build(name, cc, flags, full, link=()):
    """A shared object of C and C++, in a directory of its own; what was built under that name is taken."""
    with _building[name]:
        return build_alone(name, cc, flags, full, link)


def build_alone(name, cc, flags, full, link):
    directory = path(name)
    made = os.path.join(directory, name + ".so")
    if os.path.exists(made):
        return made
    os.makedirs(directory, exist_ok=True)
    cxx = {"gcc": "g++", "clang": "clang++"}[cc]
    common = ["-g", "-O2", "-fPIC", "-D_GNU_SOURCE", f"-I{rig.TOP}", *flags]
    c = sources(full)
    run(cc, "-std=gnu11", *common, "-c", *c, cwd=directory)
    run(cxx, "-std=c++17", *common, *(["-DMORE"] if full else []), "-c", path("shop.cc"), cwd=directory)
    objects = [os.path.splitext(os.path.basename(f))[0] + ".o" for f in c] + ["shop.o"]
    run(cxx, *common, "-shared", "-Wl,--build-id=sha1", *link, "-o", made, *objects, "-lz", cwd=directory)
    return made


def build_plain(name, full):
    """For forms of what has been linked: a copy of gcc's DWARF 5, in a directory of its own."""
    made = build("gcc_DWARF_5", "gcc", ["-gdwarf-5"], full)
    os.makedirs(path(name), exist_ok=True)
    return shutil.copy(made, path(name, name + ".so"))


def copy(file, suffix):
    new = os.path.splitext(file)[0] + suffix
    shutil.copy(file, new)
    return new


def separate(file, *options):
    """The file without its debugging information, and that in a file of its own."""
    debug, bare = copy(file, ".debug"), copy(file, ".bare")
    run("objcopy", "--only-keep-debug", *options, file, debug)
    run("objcopy", "--strip-debug", file, bare)
    return bare, debug


def form_plain(cc, *flags, link=()):
    return lambda name, full: [Case(name, build(name.replace(" ", "_"), cc, flags, full, link))]


def form_split(cc, *flags, package=None):
    """-gsplit-dwarf: with the files beside the objects, or all of them in one."""
    def make(name, full):
        file = build(name.replace(" ", "_"), cc, ["-gsplit-dwarf", *flags], full)
        objects = glob.glob(os.path.join(os.path.dirname(file), "*.dwo"))
        if package and objects:
            run(newest(package), "-e", file, "-o", file + ".dwp", cwd=os.path.dirname(file))
            for o in objects:
                os.unlink(o)
        return [Case(name, file)]
    return make


def form_compressed(kind):
    def make(name, full):
        file = build_plain("compressed_" + kind, full)
        small = copy(file, ".small")
        run("objcopy", f"--compress-debug-sections={kind}", file, small)
        return [Case(name, small, truth=file)]
    return make


def form_separate(_, full):
    file = build_plain("separate", full)
    bare, debug = separate(file, "--compress-debug-sections=zlib")
    return [Case("separate debug file", bare, truth=file, given=[debug])]


def form_dwz(_, full):
    file = build_plain("dwz", full)
    packed = copy(file, ".packed")
    run("dwz", packed)
    bare, debug = separate(file)
    other, twin = copy(debug, ".twin"), copy(debug, ".other")
    run("dwz", "-m", path("dwz", "common"), other, twin, debug)
    return [Case("dwz", packed, truth=file),
            Case("dwz with a supplementary file", bare, truth=file, given=[debug, path("dwz", "common")])]


def form_symbols(_, full):
    """No lines: .symtab alone, what .gnu_debugdata has, .dynsym alone."""
    file = build_plain("symbols", full)
    bare, debug = separate(file)
    stripped, mini, names = copy(file, ".stripped"), copy(file, ".mini"), file + ".names"
    run("strip", stripped)
    run("objcopy", "--strip-debug", "--remove-section=.comment", debug, names)
    run("xz", "-kf", names)
    run("objcopy", "--strip-all", "--add-section", f".gnu_debugdata={names}.xz", file, mini)
    return [Case("symbols only", bare), Case("stripped", stripped), Case("MiniDebugInfo", mini, truth=bare)]


def form_rust(_, full):
    file = path("rusty")
    run("rustc", "-g", "-O", "-o", file, write("rusty.rs", RUST))
    return [Case("Rust", file)]


def form_go(_, full):
    os.makedirs(path("gopher"), exist_ok=True)
    write("gopher/go.mod", "module gopher\n\ngo 1.18\n")
    write("gopher/main.go", GO)
    environment = dict(os.environ, GOFLAGS="-mod=mod", CGO_ENABLED="0", GOPROXY="off", GOTOOLCHAIN="local")
    run("go", "build", "-o", "full", ".", cwd=path("gopher"), env=environment)
    run("go", "build", "-ldflags=-s -w", "-o", "stripped", ".", cwd=path("gopher"), env=environment)
    full, stripped = path("gopher", "full"), path("gopher", "stripped")
    return [Case("Go", full), Case("Go, stripped", stripped, truth=full, columns=False)]


def installed(pattern):
    """A file of this host; what is known of it is in its debug file where that is installed."""
    def make(name, _):
        found = sorted(glob.glob(pattern))
        if not found:
            rig.say(f"not asked: there is no {pattern}")
            return []
        build_id = re.search(r"Build ID: (..)(\S+)", run("readelf", "-n", found[0]))
        debug = f"/usr/lib/debug/.build-id/{build_id[1]}/{build_id[2]}.debug" if build_id else ""
        return [Case(name, os.path.realpath(found[0]), truth=debug if os.path.exists(debug) else None)]
    return make


# Whether it is asked in the everyday run, the programs to make it, its name, what makes it.
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
# (Packages of gcc's DWARF 5 are missing: Debian's dwp crashes on them, llvm-dwp does not come to an end.)
FORMS = [
    (False, "gcc", "gcc DWARF 4", form_plain("gcc", "-gdwarf-4")),
    (True, "gcc", "gcc DWARF 5", form_plain("gcc", "-gdwarf-5")),
    (True, "clang", "clang DWARF 4", form_plain("clang", "-gdwarf-4")),
    (False, "clang", "clang DWARF 5", form_plain("clang", "-gdwarf-5")),
    (False, "gcc", "gcc DWARF 2", form_plain("gcc", "-gdwarf-2")),
    (False, "gcc", "gcc DWARF 3", form_plain("gcc", "-gdwarf-3")),
    (False, "gcc", "gcc O0", form_plain("gcc", "-O0")),
    (False, "gcc", "gcc O3", form_plain("gcc", "-O3")),
    (False, "gcc", "gcc LTO", form_plain("gcc", "-flto", "-flto-partition=balanced", link=["-O2"])),
    (False, "gcc", "gcc LTO one unit", form_plain("gcc", "-flto", link=["-flto-partition=one"])),
    (False, "clang ld.lld", "clang LTO", form_plain("clang", "-flto", link=["-fuse-ld=lld"])),
    (False, "clang ld.lld", "clang thin LTO", form_plain("clang", "-flto=thin", link=["-fuse-ld=lld"])),
    (True, "gcc", "gcc partitioned functions in sections", form_plain(
        "gcc", "-O3", "-ffunction-sections", "-freorder-blocks-and-partition", link=["-Wl,--gc-sections"])),
    (False, "gcc", "gcc DWARF 4 type units", form_plain("gcc", "-gdwarf-4", "-fdebug-types-section")),
    (True, "gcc", "gcc DWARF 5 type units", form_plain("gcc", "-gdwarf-5", "-fdebug-types-section")),
    (False, "clang", "clang DWARF 5 type units", form_plain("clang", "-gdwarf-5", "-fdebug-types-section")),
    (False, "gcc", "gcc split DWARF 4", form_split("gcc", "-gdwarf-4")),
    (True, "gcc", "gcc split DWARF 5", form_split("gcc", "-gdwarf-5")),
    (True, "clang", "clang split DWARF 4", form_split("clang", "-gdwarf-4", "-fno-split-dwarf-inlining")),
    (False, "clang", "clang split DWARF 5", form_split("clang", "-gdwarf-5", "-fno-split-dwarf-inlining")),
    (False, "clang", "clang split DWARF 5 with inlining", form_split("clang", "-gdwarf-5")),
    (False, "gcc", "gcc split compressed", form_split("gcc", "-gdwarf-5", "-gz=zlib")),
    (False, "gcc", "gcc split type units", form_split("gcc", "-gdwarf-5", "-fdebug-types-section")),
    # (gcc's own names of inlined functions get lost there: llvm-symbolizer says "??".)
    (False, "gcc", "gcc split LTO", form_split("gcc", "-gdwarf-5", "-flto")),
    (True, "gcc dwp", "gcc package DWARF 4", form_split("gcc", "-gdwarf-4", package="dwp")),
    (False, "clang llvm-dwp", "clang package DWARF 4", form_split(
        "clang", "-gdwarf-4", "-fno-split-dwarf-inlining", package="llvm-dwp")),
    (False, "clang llvm-dwp", "clang package DWARF 5", form_split(
        "clang", "-gdwarf-5", "-fno-split-dwarf-inlining", package="llvm-dwp")),
    (False, "gcc dwp", "gcc package type units", form_split(
        "gcc", "-gdwarf-4", "-fdebug-types-section", package="dwp")),
    (False, "gcc", "sections compressed by zlib", form_compressed("zlib")),
    (False, "gcc", "sections compressed by zstd", form_compressed("zstd")),
    (False, "gcc", "sections compressed by zlib-gnu", form_compressed("zlib-gnu")),
    (False, "gcc", "separate debug file", form_separate),
    (True, "gcc dwz", "dwz", form_dwz),
    (True, "gcc xz", "symbols, stripped, MiniDebugInfo", form_symbols),
    (True, "rustc", "Rust", form_rust),
    (True, "go", "Go", form_go),
    (False, "", "libc", installed(LIBRARIES + "/libc.so.6")),
    (False, "", "libstdc++", installed(LIBRARIES + "/libstdc++.so.6")),
    (False, "", "libstdc++, debugging build", installed(LIBRARIES + "/debug/libstdc++.so.6")),
    (False, "", "libcrypto", installed(LIBRARIES + "/libcrypto.so.3")),
    (False, "", "Python", installed("/usr/bin/python3.[0-9]*[0-9]")),
    (False, "", "Python, debugging build", installed("/usr/bin/python3.*-dbg")),
    (False, "", "node", installed("/usr/bin/node")),
    (False, "", "libLLVM", installed(LIBRARIES + "/libLLVM-1*.so.1")),
]


def cases(full, words):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        made = []
        for everyday, programs, name, make in FORMS:
            missing = [p for p in programs.split() if not newest(p)]
            if words and not any(w in name for w in words):
                continue
            if missing and (everyday or full):
                rig.leave_out(f"{name}: {' '.join(missing)} is not installed")
            elif everyday or full:
                made.append(pool.submit(make, name, full))
        return [c for m in made for c in m.result()]


def main():
    full, words = "--all" in sys.argv, [a for a in sys.argv[1:] if a != "--all"]
    symbolizer = judge()
    rig.need_programs("gcc", "g++", "objcopy", "readelf", "nm", "make")
    answer = build_answer()
    write("shop.cc", CXX)
    bad = []
    for case in cases(full, words):
        why, odd, note = case.compare(answer, symbolizer, 10000 if full else 2000)
        n = sum(why.values()) - why[PADDING]
        rig.say(f"{case.name}: {why['equal']} of {n} equal, {why[PADDING]} {PADDING}; {note}")
        for reason, times in why.items():
            if reason and reason not in ("equal", PADDING):
                rig.say(f"    {times} {reason}")
        for address, a, b in odd[:int(os.environ.get("NAMES_SHOW", "5"))]:
            rig.say(f"    0x{address:x}\n        llvm {show(b)}\n        ours {show(a)}")
        if len(odd) * 1000 > n:
            bad.append(f"{case.name}: {len(odd)} of {n} differ without a reason")
    rig.check(not bad, "all answers are equal or differ for a known reason" + "".join("\n    " + b for b in bad))


rig.run(main)
