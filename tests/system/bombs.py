# SPDX-License-Identifier: Apache-2.0
"""Programs whose ELF files are bombs for whoever reads their debugging information: sections that
inflate to gigabytes, 200,000 nested scopes, tables that lie about their size; and programs whose perf
map is a FIFO, or endless. They run as processes beside an honest one. Sampling of the honest one goes on undisturbed, its names stay right, nothing
privileged grows or dies, and each bomb is named in the log once at most."""
import os
import struct
import subprocess
import time
import zlib

import rig
from sink import Sink, windows

GIB = 1 << 30
RATE = 99

SOURCE = r"""
#include <stdint.h>
__attribute__((noinline, noclone, used, aligned(4096))) void bomb_hot(void)
{
	for (uint64_t i = 0; i < 100000000; i++)
		__asm__ volatile("" : "+r"(i));
}
int main(void)
{
	for (;;) {
		bomb_hot();
		__asm__ volatile("" ::: "memory");
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
	.long 4096
	.uleb128 2
	.asciz "bomb_hot"
	.quad bomb_hot
	.long 4096
	.rept 200000
	.uleb128 3
	.quad bomb_hot
	.long 4096
	.endr
	.skip 200002
9:
	.section .debug_aranges,"",@progbits
	.long 9f - 1f
1:	.value 2
	.long .debug_info
	.byte 8, 0
	.skip 4
	.quad bomb_hot, 4096, 0, 0
9:
	.section .note.GNU-stack,"",@progbits
"""


def zeros(n):
    """A compressed ELF section body (SHF_COMPRESSED, zlib) that inflates to n zero bytes."""
    c = zlib.compressobj(1)
    block = bytes(1 << 20)
    body = b"".join(c.compress(block) for _ in range(n >> 20)) + c.flush()
    return struct.pack("<IIQQ", 1, 0, n, 1) + body  # ELFCOMPRESS_ZLIB, size, alignment


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
        bombs[name] = rig.path(f"bomb_{name}")
        return bombs[name]

    for name, base in (("info", plain), ("info_nocfi", nocfi)):
        add_section(base, bomb(name), ".debug_info")
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
    symbols = struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 0x1000, 16) * 1_000_000
    e.replace(".symtab", symbols, compressed=False)
    e.replace(".strtab", b"\0" + b"A" * (1 << 20), compressed=False)
    e.write(bomb("million"))

    cc("-o", bomb("nested"), rig.path("bomb.c"), rig.path("nested.S"))
    return bombs


def start_perf_map_bombs(directory):
    """Programs that run code of their own, with something else where their perf map should be."""
    jit = os.path.join(directory, "jit")
    return {"fifo map": rig.start(["sh", "-c", 'mkfifo /tmp/perf-$$.map && exec "$0" silent', jit]),
            "endless map": rig.start(["sh", "-c", 'truncate -s 64G /tmp/perf-$$.map && exec "$0" silent',
                                      jit])}


def check_honest(views, pid, begin, end):
    """The honest program beside the bombs: its names are right; how often it was sampled."""
    mine = [x for v in views for x in v.samples(begin, end) if x[0].get("process.pid") == pid]
    n = sum(x[3] for x in mine)
    right = sum(x[3] for x in mine if rig.contains_path(
        x[2], ["main", "chain_one", "chain_two", "chain_three", "chain_four", "chain_five"]))
    rig.check(n and right >= 0.9 * n, f"honest program: {right} of {n} samples have the right names")
    return n


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    rig.need_root()
    rig.need_programs("gcc", "objcopy")
    bombs = build()
    sizes = {name: os.path.getsize(file) >> 10 for name, file in bombs.items()}
    rig.say(f"bombs and their sizes in KiB: {sizes}")
    directory = rig.build_workloads("chain", "jit")
    with Sink() as sink:
        daemon = rig.Daemon(f"""
[profiler]
samples_per_second = {RATE}
reporter_interval = 1s
[export:sink]
endpoint = {sink.endpoint}
""")
        roles = daemon.wait_up()
        honest = rig.start(["./chain"], cwd=directory)
        sink.wait_for(2)
        begin, cpu_before = time.time(), cpu_seconds(honest.pid)
        running = {name: rig.start([file]) for name, file in bombs.items()}
        silent = start_perf_map_bombs(directory)
        deadline = time.monotonic() + 25
        peak = {}
        while time.monotonic() < deadline:
            for name, pid in [("broker", daemon.pid), *daemon.roles().items()]:
                peak[name] = max(peak.get(name, 0), rig.anon_kib(pid))
            time.sleep(0.1)
        cpu_used = cpu_seconds(honest.pid) - cpu_before
        end = time.time()
        for name, p in {**running, **silent}.items():
            rig.check(p.poll() is None, f"{name}: the bomb itself runs on")
            rig.end(p)
        sink.wait_for(sink.count() + 4, 30)
        rig.check(daemon.alive(), "the broker lives")
        rig.check(daemon.role("profiler") == roles["profiler"], "the profiler is the same as before")
        rig.check(daemon.role("exporter") == roles["exporter"], "the exporter is the same as before")
        rig.check(peak["broker"] < 16 << 10, f"broker: at most {peak['broker']} KiB of its own")
        rig.check(peak["profiler"] < 128 << 10, f"profiler: at most {peak['profiler']} KiB of its own")
        rig.check(peak["symbolizer"] < 1 << 20, f"symbolizer: at most {peak['symbolizer']} KiB of its own")
        views = sink.views()
        n = check_honest(views, honest.pid, begin, end)
        rig.check(n >= 0.8 * RATE * cpu_used - 10,
                  f"honest program: {n} samples in {cpu_used:.1f} s of CPU at {RATE} Hz (wanted 80%)")
        found = windows(views)
        covered = sum(min(e, end * 1e9) - max(b, begin * 1e9) for b, e in found
                      if e > begin * 1e9 and b < end * 1e9) / 1e9
        rig.check(covered >= 0.9 * (end - begin),
                  f"windows cover {covered:.1f} of {end - begin:.1f} s with the bombs")
        for name, p in running.items():
            mine = [x for v in views for x in v.samples() if x[0].get("process.pid") == p.pid]
            hot = sum(x[3] for x in mine if "bomb_hot" in x[2])
            rig.check(mine, f"{name}: {sum(x[3] for x in mine)} samples of the bomb itself, "
                            f"{hot} of them in bomb_hot by name")
            lines = [line for line in daemon.log().splitlines()
                     if os.path.basename(bombs[name]) in line and f"{bombs[name]}_" not in line
                     and not any(other != name and other.startswith(name) and f"bomb_{other}" in line
                                 for other in bombs)]
            rig.check(len(lines) <= 1, f"{name}: named in the log {len(lines)} times"
                      + "".join("\n    " + line for line in lines[:5]))
        problems = sink.problems(rate=RATE)
        rig.check(not problems, "the payloads hold every rule"
                  + "".join("\n    " + p for p in problems[:20]))


rig.run(main)
