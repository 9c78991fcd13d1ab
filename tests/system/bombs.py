# SPDX-License-Identifier: Apache-2.0
# Rooms: unwind symbolize src/broker src/opener src/profiler src/symbolizer
"""Programs whose ELF files are bombs for whoever reads their debugging information: sections that
inflate to gigabytes, 200,000 nested scopes, 16 million lines, references that go in circles, rules for
unwinding that do, tables that lie about their size, split files of the same kinds; and programs whose perf
map or jitdump is a FIFO, endless, false or grows by the megabyte. They run as processes beside an honest one. Sampling of the honest one goes on undisturbed, its names stay right, nothing
privileged grows or dies, and each bomb is named in the log once at most."""
import atexit
import os
import shutil
import struct
import subprocess
import time
import zlib

import rig
from cgroup_dirs import MemoryLimit
from sink import Sink, windows

GIB = 1 << 30
RATE = 99
AFTER_KIB = 80 << 10  # symbols may take 32 MiB; the kernel's names take ten
PREFIX = f"b{os.getpid()}"  # of the names of all programs here: the daemon samples no others
FILE_SECONDS = 3.5  # of CPU time: after 3 s (symbolizer_file_timeout) a file is set aside
BOMB_CPU = 0.15  # seconds that each bomb gets at least: some fifteen samples

SOURCE = r"""
#include <stdint.h>
#include <unistd.h>
__attribute__((noinline, noclone, used, aligned(4096))) void bomb_hot(void)
{
	for (uint64_t i = 0; i < 10000000; i++)
		__asm__ volatile("" : "+r"(i));
	__asm__ volatile(".skip 256, 0x90"); /* what says that it covers 128 bytes is within the code */
}
int main(void)
{
	for (;;) {
		bomb_hot();
		usleep(150000); /* all bombs together take less than a CPU */
	}
}
"""

# Nested DW_TAG_lexical_block entries, every one of them covering bomb_hot.
NESTED = r"""
	.section .debug_abbrev,"",@progbits
	.uleb128 1, 0x11		# compile unit with children
	.byte 1
	.uleb128 0x11, 0x01, 0x12, 0x06, 0, 0
	.uleb128 2, 0x2e		# subprogram with children
	.byte 1
	.uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0
	.uleb128 3, 0x0b		# lexical block with children
	.byte 1
	.uleb128 0x11, 0x01, 0x12, 0x06, 0, 0
	.byte 0
	.section .debug_info,"",@progbits
	.long 9f - 1f
1:	.value 4
	.long .debug_abbrev
	.byte 8
	.uleb128 1
	.quad bomb_hot
	.long 128
	.uleb128 2
	.asciz "bomb_hot"
	.quad bomb_hot
	.long 128
	.rept 200000
	.uleb128 3
	.quad bomb_hot
	.long 128
	.endr
	.skip 200002
9:
	.section .debug_aranges,"",@progbits
	.long 9f - 1f
1:	.value 2
	.long .debug_info
	.byte 8, 0
	.skip 4
	.quad bomb_hot, 128, 0, 0
9:
	.section .note.GNU-stack,"",@progbits
"""


# A unit that covers bomb_hot, with what its abbreviation says besides; sections behind it.
UNIT = r"""
	.section .debug_abbrev,"",@progbits
	.uleb128 1, 0x11
	.byte 1
	.uleb128 0x11, 0x01, 0x12, 0x06, {more}, 0, 0
	.uleb128 2, 0x2e
	.byte 0
	.uleb128 0x11, 0x01, 0x12, 0x06, {function}, 0, 0
	.byte 0
	.section .debug_info,"",@progbits
.Linfo:
	.long 9f - 1f
1:	.value {version}
	{header}
	.uleb128 1
	.quad bomb_hot
	.long 128
	{body}
	.byte 0
9:
	.section .debug_aranges,"",@progbits
	.long 9f - 1f
1:	.value 2
	.long .debug_info
	.byte 8, 0
	.skip 4
	.quad bomb_hot, 128, 0, 0
9:
	.section .note.GNU-stack,"",@progbits
{sections}
"""
VERSION_4 = {"version": 4, "header": ".long .debug_abbrev; .byte 8", "more": "0x03, 0x08", "function": "0x03, 0x08",
             "body": '.asciz "bomb.c"', "sections": ""}
FUNCTION = '; .uleb128 2; .quad bomb_hot; .long 128; .asciz "bomb_hot"'
LINES = {**VERSION_4, "more": "0x10, 0x17", "body": ".long .debug_line" + FUNCTION}  # DW_AT_stmt_list
LINE_HEADER_4 = r"""
	.section .debug_line,"",@progbits
	.long 9f - 1f
1:	.value 4
	.long 3f - 2f
2:	.byte 1, 1, 1, -5, 14, 13
	.byte 0,1,1,1,1,0,0,0,1,0,0,1
	.byte 0
	.asciz "bomb.c"
	.uleb128 0, 0, 0
	.byte 0
3:
"""
DWARF = {
    # 16 Mi rows, each one byte of the program.
    "rows": {**LINES, "sections": LINE_HEADER_4 + "\t.byte 0, 9, 2\n\t.quad bomb_hot\n\t.skip 16777216, 0x20\n9:\n"},
    # 2^48 directories of no bytes each.
    "directories": {**LINES, "sections": r"""
	.section .debug_line,"",@progbits
	.long 9f - 1f
1:	.value 5
	.byte 8, 0
	.long 3f - 2f
2:	.byte 1, 1, 1, -5, 14, 13
	.byte 0,1,1,1,1,0,0,0,1,0,0,1
	.byte 0
	.uleb128 0xffffffffffff
	.byte 0
	.uleb128 0xffffffffffff
3:
9:
"""},
    # A form that says that its form follows, a million times.
    "indirect": {**VERSION_4, "more": "0x03, 0x16", "body": ".skip 1000000, 0x16; .byte 0x08, 0" + FUNCTION},
    # Two functions, each the origin of the other.
    "cycle": {**VERSION_4, "function": "0x31, 0x13", "body": r""".asciz "bomb.c"
.La:	.uleb128 2
	.quad bomb_hot
	.long 128
	.long .Lb - .Linfo
.Lb:	.uleb128 2
	.quad bomb_hot
	.long 128
	.long .La - .Linfo"""},
    # 100,000 units without an entry behind it, 100,000 of no length.
    "units": {**VERSION_4, "sections": r"""
	.section .debug_info
	.rept 100000
	.long 8
	.value 4
	.long .debug_abbrev
	.byte 8, 0
	.endr
	.skip 400000
"""},
}
# Rules for bomb_hot: an expression that jumps back to its start; a caller that is the function itself.
CFI = {"expression": "0x0f, 3, 0x2f, 0xfd, 0xff", "itself": "0x0c, 7, 0, 0x08, 16"}

JITDUMP = r"""
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
/* The same function again and again, each time with as much as there may be to unwind it by. */
static void grow(int fd, uint64_t code)
{
	static struct {
		uint32_t id, size;
		uint64_t time, sizes[3];
		uint32_t cie[6], fdes[3000][5];
		uint32_t load_id, load_size;
		uint64_t load_time, pid, vma, code, code_size, index;
		char name[8];
	} r = {.id = 4, .size = 40 + 24 + 3000 * 20, .sizes = {24 + 3000 * 20},
	       .cie = {20, 0, 0x00527a01, 0x01107801, 0x08070c1b, 0x00000190},
	       .load_size = 64, .code_size = 64, .name = "hot"};
	r.vma = r.code = code;
	prctl(PR_SET_PDEATHSIG, 9);
	for (uint32_t i = 0; i < 3000; i++)
		memcpy(r.fdes[i], (uint32_t[]){16, 28 + 20 * i, -64 - 32 - 20 * i + i % 60, i, 0x7f0e00}, 20);
	for (int i = 0; i < 1200; i++) {
		write(fd, &r, sizeof(r));
		usleep(10000);
	}
	for (;;)
		pause();
}
int main(int argc, char **argv)
{
	uint32_t header[10] = {0x4A695444, 1, 40, 62, 0, getpid()};
	uint32_t records[][4] = {{0, 16}, {1, 0}, {2, 0xffffffff}, {0, 24}};
	/* mov ecx, 10000000; again: dec ecx; jnz again; ret */
	static const uint8_t loop[] = {0xb9, 0x80, 0x96, 0x98, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
	int growing = argc > 2, fd;
	char name[256];

	snprintf(name, sizeof(name), "%s/jit-%d.dump", argv[1], getpid());
	fd = open(name, O_RDWR | O_CREAT, 0644);
	write(fd, header, sizeof(header));
	if (!growing) {
		write(fd, records, sizeof(records));
		ftruncate(fd, 1 << 30);
	}
	mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(code, loop, sizeof(loop));
	if (growing && fork() == 0)
		grow(fd, (uint64_t)code);
	for (;;) {
		((void (*)(void))code)();
		usleep(150000);
	}
}
"""


def zstd_zeros(n):
    """The same by zstd: blocks of one byte repeated 128 Ki times."""
    blocks = n >> 17
    body = b"".join(struct.pack("<I", (i == blocks - 1) | 1 << 1 | 1 << 17 + 3)[:3] + b"\0" for i in range(blocks))
    return (struct.pack("<IIQQ", 2, 0, n, 1)  # ELFCOMPRESS_ZSTD
            + struct.pack("<IBBQ", 0xFD2FB528, 3 << 6, 10 << 3, n) + body)


def zeros(n):
    """A compressed ELF section body (SHF_COMPRESSED, zlib) that inflates to n zero bytes: a block that needs nothing
    of those before it, again and again."""
    c = zlib.compressobj(1, wbits=-15)
    block = c.compress(bytes(1 << 20)) + c.flush(zlib.Z_FULL_FLUSH)
    body = b"\x78\x01" + block * (n >> 20) + c.compress(bytes(n % (1 << 20))) + c.flush()
    checksum = struct.pack(">HH", n % 65521, 1)  # Adler-32 of zeros
    return struct.pack("<IIQQ", 1, 0, n, 1) + body + checksum  # ELFCOMPRESS_ZLIB, size, alignment


def cc(*args):
    subprocess.run(["gcc", "-O2", "-fomit-frame-pointer", *args], check=True)


class Elf:
    """Just enough of a 64-bit little-endian ELF file to spoil its sections."""

    def __init__(self, name):
        with open(name, "rb") as f:
            self.data = bytearray(f.read())
        self.shoff, = struct.unpack_from("<Q", self.data, 40)
        self.shnum, self.shstrndx = struct.unpack_from("<HH", self.data, 60)

    def header(self, i):
        return list(struct.unpack_from("<IIQQQQIIQQ", self.data, self.shoff + 64 * i))

    def put(self, i, header):
        struct.pack_into("<IIQQQQIIQQ", self.data, self.shoff + 64 * i, *header)

    def index(self, name):
        names = self.header(self.shstrndx)
        for i in range(self.shnum):
            at = names[4] + self.header(i)[0]
            if self.data[at:self.data.index(0, at)].decode() == name:
                return i
        rig.fail(f"no section {name}")
        return 0

    def replace(self, name, body, compressed=True):
        """Gives a section another body, at the end of the file."""
        i = self.index(name)
        h = self.header(i)
        h[2] |= 0x800 if compressed else 0  # SHF_COMPRESSED
        h[4], h[5] = len(self.data), len(body)
        self.data += body
        self.put(i, h)

    def write(self, name):
        with open(name, "wb") as f:
            f.write(self.data)
        os.chmod(name, 0o755)


def bomb_path(name):
    return rig.path(f"{PREFIX}_{name}")


def hot(name):
    """The address of bomb_hot."""
    out = subprocess.run(["nm", name], stdout=subprocess.PIPE, text=True, check=True).stdout
    return next(int(line.split()[0], 16) for line in out.splitlines() if line.endswith(" bomb_hot"))


def add_section(source, target, name):
    empty = rig.write("empty.bin", "12345678")
    subprocess.run(["objcopy", "--add-section", f"{name}={empty}", source, target], check=True)


def build():
    """All bombs; their paths by name."""
    rig.write("bomb.c", SOURCE)
    rig.write("nested.S", NESTED)
    plain, nocfi = rig.path("plain"), rig.path("nocfi")
    cc("-o", plain, rig.path("bomb.c"))
    # Without .eh_frame rules of its own, a walk through it must look for .debug_frame.
    cc("-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-o", nocfi, rig.path("bomb.c"))
    two_gib = zeros(2 * GIB)
    bombs = {}

    def bomb(name):
        bombs[name] = bomb_path(name)
        return bombs[name]

    for name, base in (("info", plain), ("info_nocfi", nocfi)):
        add_section(base, bomb(name), ".debug_info")
        add_section(bombs[name], bombs[name], ".debug_abbrev")
        e = Elf(bombs[name])
        e.replace(".debug_info", two_gib)
        e.write(bombs[name])

    add_section(nocfi, bomb("frame"), ".debug_frame")
    e = Elf(bombs["frame"])
    e.replace(".debug_frame", two_gib)
    e.write(bombs["frame"])

    e = Elf(plain)
    e.replace(".symtab", two_gib)
    e.replace(".strtab", two_gib)
    e.write(bomb("symtab"))

    # Symbols and names that together take a byte less than may be inflated of a file; and such that far more
    # would be, if each had a limit of its own.
    for i, (symbols, names) in enumerate([(32 << 20, (32 << 20) - 1)] * 8 + [(255 << 20, 255 << 20)]):
        e = Elf(plain)
        e.replace(".symtab", zeros(symbols))
        e.replace(".strtab", zeros(names))
        e.write(bomb(f"within{i}" if i < 8 else "beyond"))

    e = Elf(plain)  # a symbol table that claims to be far larger than the file
    i = e.index(".symtab")
    h = e.header(i)
    h[5] = 64 * GIB
    e.put(i, h)
    e.write(bomb("liar"))

    e = Elf(plain)  # .eh_frame and its index point outside the file in the section headers
    for name in (".eh_frame", ".eh_frame_hdr"):
        h = e.header(e.index(name))
        h[4], h[5] = 1 << 40, 1 << 40
        e.put(e.index(name), h)
    e.write(bomb("ehframe"))

    e = Elf(plain)  # a million symbols at one address, with one name of a megabyte
    symbols = struct.pack("<IBBHQQ", 1, 0x12, 0, e.index(".text"), hot(plain), 16) * 1_000_000
    e.replace(".symtab", symbols, compressed=False)
    e.replace(".strtab", b"\0" + b"A" * (1 << 20), compressed=False)
    e.write(bomb("million"))

    cc("-o", bomb("nested"), rig.path("bomb.c"), rig.path("nested.S"))
    build_tables(plain, bomb)
    build_dwarf(plain, bomb)
    build_split(two_gib, bomb)
    return bombs


def build_tables(plain, bomb):
    e = Elf(plain)  # names of 16 MiB that nothing ends
    e.replace(".symtab", b"".join(struct.pack("<IBBHQQ", i, 0x12, 0, e.index(".text"), hot(plain) + i, 16)
                                  for i in range(256)), compressed=False)
    e.replace(".strtab", b"A" * (16 << 20), compressed=False)
    e.write(bomb("strings"))

    e = Elf(plain)  # the number of sections is where section 0 has it: a thousand billion
    h = e.header(0)
    h[5], h[6] = 1 << 40, 1 << 31
    e.put(0, h)
    struct.pack_into("<HH", e.data, 60, 0, 0xffff)
    e.write(bomb("sections"))

    e = Elf(plain)  # the index of .eh_frame: four billion entries, none of them in order
    h = e.header(e.index(".eh_frame_hdr"))
    struct.pack_into("<I", e.data, h[4] + 8, 0xffffffff)
    for at in range(h[4] + 12, h[4] + h[5] - 7, 8):
        struct.pack_into("<ii", e.data, at, -at, 0x7fffffff)
    e.write(bomb("index"))

    e = Elf(plain)  # the code's segment once more in the place of each that a program can do without
    phoff, = struct.unpack_from("<Q", e.data, 32)
    n, = struct.unpack_from("<H", e.data, 56)
    headers = [bytes(e.data[phoff + 56 * i:phoff + 56 * i + 56]) for i in range(n)]
    code = next(h for h in headers if struct.unpack_from("<II", h) == (1, 5))
    for i, h in enumerate(headers):
        if struct.unpack_from("<I", h)[0] in (4, 0x6474e553):  # PT_NOTE, PT_GNU_PROPERTY
            e.data[phoff + 56 * i:phoff + 56 * i + 56] = code
    e.write(bomb("segments"))


def build_dwarf(plain, bomb):
    add_section(plain, bomb("zstd"), ".debug_info")
    add_section(bomb_path("zstd"), bomb_path("zstd"), ".debug_abbrev")
    e = Elf(bomb_path("zstd"))
    e.replace(".debug_info", zstd_zeros(2 * GIB))
    e.write(bomb_path("zstd"))
    for name, unit in DWARF.items():
        cc("-o", bomb(name), rig.path("bomb.c"), rig.write(f"{name}.S", UNIT.format(**unit)))
    for name, rule in CFI.items():
        source = SOURCE.replace("\tfor (uint64_t", f'\t__asm__ volatile(".cfi_escape {rule}");\n\tfor (uint64_t')
        cc("-fasynchronous-unwind-tables", "-o", bomb(name), rig.write(f"cfi_{name}.c", source))


def build_split(two_gib, bomb):
    """What the split file of a program can be: gigabytes, a FIFO; and a package with a false index."""
    for name in ("split", "split_fifo", "package"):
        source = rig.write(f"bomb_{name}.c", SOURCE)
        subprocess.run(["gcc", "-O2", "-g", "-gsplit-dwarf", "-c", "-o", rig.path(f"{name}.o"), source], check=True)
        cc("-o", bomb(name), rig.path(f"{name}.o"))
    e = Elf(rig.path("split.dwo"))
    e.replace(".debug_info.dwo", two_gib)
    e.write(rig.path("split.dwo"))
    os.unlink(rig.path("split_fifo.dwo"))
    os.mkfifo(rig.path("split_fifo.dwo"))
    package = bomb_path("package") + ".dwp"
    add_section(rig.path("package.dwo"), package, ".debug_cu_index")
    e = Elf(package)
    e.replace(".debug_cu_index", struct.pack("<IIII", 2, 8, 0x7fffffff, 0x80000000) + bytes(64), compressed=False)
    e.write(package)
    os.unlink(rig.path("package.dwo"))


def start_perf_map_bombs(directory):
    """Programs that run code of their own, with something else where their perf map should be."""
    jit = shutil.copy(os.path.join(directory, "jit"), bomb_path("jit"))
    os.mkdir(rig.path("dumps"), 0o777)
    cc("-w", "-o", bomb_path("jitdump"), rig.write("jitdump.c", JITDUMP))
    return {"false jitdump": rig.start([bomb_path("jitdump"), rig.path("dumps")]),
            "growing jitdump": rig.start([bomb_path("jitdump"), rig.path("dumps"), "growing"]),
            "fifo map": rig.start(["sh", "-c", 'mkfifo /tmp/perf-$$.map && exec "$0" silent', jit]),
            "endless map": rig.start(["sh", "-c", 'truncate -s 64G /tmp/perf-$$.map && exec "$0" silent',
                                      jit])}


def capture_seconds(file):
    """The CPU time of all processes of a capture of the program, with lines and inlined functions."""
    program, folded, lines = rig.start([file]), rig.path("one.folded"), rig.path("one.pb.gz")
    capture = rig.start([rig.perfwalk(), "record", "-p", str(program.pid), "-d", "1", "-F", "999", "-o", folded, "-o", lines],
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(capture.pid, 0)
    capture.returncode = os.waitstatus_to_exitcode(status)
    rig.end(program)
    rig.check(capture.returncode == 0 and rig.read_folded(folded), f"a capture of {os.path.basename(file)} has samples")
    return used.ru_utime + used.ru_stime


def check_time_of_each(bombs, plain):
    """Each by itself, beyond what a capture of such a program takes."""
    least = min(capture_seconds(plain) for _ in range(3))
    took = {name: capture_seconds(file) - least for name, file in bombs.items()}
    rig.say(f"CPU seconds of each file, beyond {least:.2f}: " + ", ".join(f"{name} {s:.2f}" for name, s in sorted(took.items(), key=lambda x: -x[1])))
    for name, seconds in took.items():
        rig.check(seconds < FILE_SECONDS, f"{name}: {seconds:.2f} s of CPU")


def check_honest(views, pid, begin, end):
    """The honest program beside the bombs: its names are right; how often it was sampled."""
    mine = [x for v in views for x in v.samples(begin, end) if x[0].get("process.pid") == pid]
    n = sum(x[3] for x in mine)
    right = sum(x[3] for x in mine if rig.contains_path(
        x[2], ["main", "chain_one", "chain_two", "chain_three", "chain_four", "chain_five"]))
    rig.check(n and right >= 0.9 * n, f"honest program: {right} of {n} samples have the right names")
    return n


def was_sampled(p):
    """Often enough, by its CPU time; or it has ended, which is a failure."""
    return p.poll() is not None or rig.cpu_seconds(p.pid) >= BOMB_CPU


def main():
    rig.need_root()
    rig.need_programs("gcc", "objcopy")
    bombs = build()
    sizes = {name: os.path.getsize(file) >> 10 for name, file in bombs.items()}
    rig.say(f"bombs and their sizes in KiB: {sizes}")
    if not rig.is_sanitized():
        check_time_of_each(bombs, rig.path("plain"))
    directory = rig.build_workloads("chain", "jit")
    with Sink() as sink:
        daemon = rig.Daemon(f"""
[profiler]
samples_per_second = {RATE}
reporter_interval = 1s
[filter]
include_comm = {PREFIX}*
[symbolizer]
lines = yes
inline = yes
[export:sink]
endpoint = {sink.endpoint}
""")
        roles = daemon.wait_up()
        sanitized = rig.is_sanitized()
        # As the unit has it. Memory of what runs with sanitizers is another matter.
        limit = MemoryLimit(f"perfwalk-bombs-{os.getpid()}", (4096 if sanitized else 512) << 20)
        if limit.path:
            atexit.register(limit.remove)
            limit.take([daemon.pid, *roles.values()])
        honest = rig.start([shutil.copy(os.path.join(directory, "chain"), bomb_path("honest")), "30"])
        sink.wait_for(2)
        begin, cpu_before = time.time(), rig.cpu_seconds(honest.pid)
        running = {name: rig.start([file]) for name, file in bombs.items()}
        silent = start_perf_map_bombs(directory)
        deadline = time.monotonic() + 20
        peak = {}
        while time.monotonic() < deadline or not all(was_sampled(p) for p in running.values()):
            for name, pid in [("broker", daemon.pid), *daemon.roles().items()]:
                peak[name] = max(peak.get(name, 0), rig.anon_kib(pid))
            time.sleep(0.1)
        cpu_used = rig.cpu_seconds(honest.pid) - cpu_before
        end = time.time()
        for name, p in {**running, **silent}.items():
            rig.check(p.poll() is None, f"{name}: the bomb itself runs on")
            rig.end(p)
        sink.wait_for(sink.count() + 4, 30)
        # Frames without a name are still known; nobody runs in them any more. A symbolizer that looked them up again would
        # do so in each window.
        used = []
        while len(used) < 12 and min(used, default=5) >= 0.3:
            before = rig.cpu_seconds(daemon.role("symbolizer"))
            time.sleep(5)
            used.append(rig.cpu_seconds(daemon.role("symbolizer")) - before)
        rig.check(min(used) < 0.3, f"the bombs are gone: each 5 s the symbolizer took "
                  f"{', '.join(f'{x:.2f}' for x in used)} s of CPU")
        if not sanitized:
            rig.wait_for("the symbolizer gives back what it took for bombs",
                         lambda: rig.anon_kib(daemon.role("symbolizer")) < AFTER_KIB, 90)
            rig.check(True, f"it has {rig.anon_kib(daemon.role('symbolizer'))} KiB left, of {peak['symbolizer']}")
        rig.check(daemon.alive(), "the broker lives")
        rig.check(daemon.role("profiler") == roles["profiler"], "the profiler is the same as before")
        rig.check(daemon.role("exporter") == roles["exporter"], "the exporter is the same as before")
        rig.check(peak["broker"] < 16 << 10, f"broker: at most {peak['broker']} KiB of its own")
        if limit.path:
            rig.check(not limit.killed(), f"processes killed for want of memory within 512 MiB: {limit.killed()}")
        else:
            rig.say(f"not tried within 512 MiB: {limit.missing}")
        rig.check(peak["profiler"] < (512 if sanitized else 128) << 10, f"profiler: at most {peak['profiler']} KiB of its own")
        rig.check(peak["symbolizer"] < 512 << 10, f"symbolizer: at most {peak['symbolizer']} KiB of its own")
        views = sink.views()
        n = check_honest(views, honest.pid, begin, end)
        rig.check(n >= 0.8 * RATE * cpu_used - 10,
                  f"honest program: {n} samples in {cpu_used:.1f} s of CPU at {RATE} Hz (wanted 80%)")
        found = windows(views)
        covered = sum(min(e, end * 1e9) - max(b, begin * 1e9) for b, e in found
                      if e > begin * 1e9 and b < end * 1e9) / 1e9
        rig.check(covered >= 0.9 * (end - begin),
                  f"windows cover {covered:.1f} of {end - begin:.1f} s with the bombs")
        of_pid = {}
        for x in (x for v in views for x in v.samples()):
            of_pid.setdefault(x[0].get("process.pid"), []).append(x)
        for name, p in running.items():
            mine = of_pid.get(p.pid, [])
            hot = sum(x[3] for x in mine if "bomb_hot" in x[2])
            rig.check(mine, f"{name}: {sum(x[3] for x in mine)} samples of the bomb itself, "
                            f"{hot} of them in bomb_hot by name")
            lines = [line for line in daemon.log().splitlines()
                     if os.path.basename(bombs[name]) in line and f"{bombs[name]}_" not in line
                     and not any(other != name and other.startswith(name) and bombs[other] in line
                                 for other in bombs)]
            rig.check(len(lines) <= 1, f"{name}: named in the log {len(lines)} times"
                      + "".join("\n    " + line for line in lines[:5]))
        # A file that is set aside (with sanitizers, 16 Mi rows take too long) is not read for a hash either.
        aside = [file for file in bombs.values() if f"{file} set aside" in daemon.log()]
        problems = [p for p in sink.problems(rate=RATE)
                    if not (p.endswith("is a file without htlhash") and any(f"({file})" in p for file in aside))]
        rig.check(not problems, "the payloads hold every rule"
                  + "".join("\n    " + p for p in problems[:20]))


if __name__ == "__main__":
    rig.run(main)
