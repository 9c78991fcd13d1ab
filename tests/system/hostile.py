# SPDX-License-Identifier: Apache-2.0
# Rooms: unwind symbolize src/broker src/opener src/profiler src/symbolizer
"""Mutants of ELF files, always the same for a seed, go through a running daemon: headers, sections, notes,
symbols, rules for unwinding and DWARF are damaged, the file is cut off or its sections stand for each other, in
small programs and libraries of this host and in those of the fuzzers' corpus. Processes map them and run code
in each, beside an honest program. No process of the tree dies of them; a file that takes too long is set aside,
by its name; memory stays within bounds; and the honest program keeps its names.

HOSTILE_FILES=2000 is the long form (make check-hostile), HOSTILE_SEED another corpus."""
import atexit
import glob
import gzip
import os
import random
import re
import struct
import subprocess
import time

import bombs
import rig
from cgroup_dirs import MemoryLimit
from sink import Sink

N_FILES = int(os.environ.get("HOSTILE_FILES", "100"))
SEED = int(os.environ.get("HOSTILE_SEED", "1"))
RATE = 199
FILE_MS = 50  # CPU time in each file: some ten samples
BATCH = 25    # files of a process
DRAIN_CPU_MS = 250  # of the profiler, between two reads of the rings
AT_A_TIME = 4
MAX_BASE_BYTES = 96 << 10
N_HOST_BASES = 24

# Some hundred thousand turns without a branch to anywhere else, for any place in any file.
SPIN = r"""
#ifdef __x86_64__
	mov $300000, %eax
1:	dec %eax
	jne 1b
	ret
#else
	mov w0, #0x4, lsl #16
1:	subs w0, w0, #1
	b.ne 1b
	ret
#endif
	.section .note.GNU-stack,"",%progbits
"""

# Maps each FILE as a whole and calls what is at OFFSET in it, in turns, for MS of CPU time each.
MAPPER = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}
int main(int argc, char **argv) /* MS (FILE OFFSET)... */
{
	int n = (argc - 2) / 2;
	void (*calls[1024])(void);

	for (int i = 0; i < n; i++) {
		int fd = open(argv[2 + 2 * i], O_RDONLY);
		struct stat st;
		char *map;

		if (fd < 0 || fstat(fd, &st) < 0)
			return 1;
		map = mmap(NULL, st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		if (map == MAP_FAILED)
			return 2;
		calls[i] = (void (*)(void))(map + strtoul(argv[3 + 2 * i], NULL, 10));
	}
	while (cpu_ms() < n * atof(argv[1]))
		for (int i = 0; i < n; i++)
			calls[i]();
	return 0;
}
"""

ODD = [0, 1, 2, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]


def spin_code():
    source, out = rig.write("spin.S", SPIN), rig.path("spin.bin")
    subprocess.run(["gcc", "-c", "-o", rig.path("spin.o"), source], check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", rig.path("spin.o"), out], check=True)
    with open(out, "rb") as f:
        return f.read()


class Base:
    """A sound file with code of ours at its entry, or where its code begins."""

    def __init__(self, name, data, code):
        self.name, self.data, self.n_code = name, bytearray(data), len(code)
        entry, phoff, self.shoff = struct.unpack_from("<QQQ", data, 24)
        phentsize, phnum, shentsize, self.shnum, _ = struct.unpack_from("<HHHHH", data, 54)
        if phentsize != 56 or shentsize != 64 or self.shoff + 64 * self.shnum > len(data):
            raise ValueError("no such tables")
        self.headers = [(64, phnum * 56), (self.shoff, self.shnum * 64)] if self.shnum else [(64, phnum * 56)]
        self.at = 0
        for i in range(phnum):
            kind, flags, offset, vaddr, _, size = struct.unpack_from("<IIQQQQ", data, phoff + 56 * i)
            if kind == 1 and flags & 1 and vaddr <= entry and entry - vaddr <= size - len(code):
                self.at = offset + entry - vaddr
        if not self.at or self.at + len(code) > len(data):
            raise ValueError("no entry in code")
        self.data[self.at:self.at + len(code)] = code
        self.sections = [s for s in (struct.unpack_from("<IIQQQQ", data, self.shoff + 64 * i) for i in range(self.shnum))
                         if s[1] not in (0, 8) and not s[2] & 4 and s[5] and s[4] + s[5] <= len(data)]


def bases(code):
    found = []
    kept = sorted(glob.glob(os.path.join(rig.TOP, "tests", "fuzz", "corpus-symbols", "*.gz")))
    files = [(os.path.basename(p), gzip.open(p).read()) for p in kept]
    host = sorted((os.path.getsize(p), p) for pattern in ("/usr/bin/*", "/usr/lib/*-linux-gnu/*.so.*")
                  for p in glob.glob(pattern) if os.path.isfile(p) and not os.path.islink(p))
    host = [p for size, p in host if 4096 < size <= MAX_BASE_BYTES]
    for p in host[::max(1, len(host) // N_HOST_BASES)]:
        with open(p, "rb") as f:
            files.append((os.path.basename(p), f.read()))
    for name, data in files:
        second = data.find(b"\x7fELF\2\1\1", 64)  # what belongs to it stands behind it
        try:
            if data[:7] == b"\x7fELF\2\1\1":
                found.append(Base(name, data[:second] if second > 0 and second % 8 == 0 else data, code))
        except (ValueError, struct.error):
            continue
    return found


def change_bytes(rng, data, at, n):
    """Some bytes there, half of them near the beginning, where headers are."""
    for _ in range(rng.randint(1, 16)):
        to = at + rng.randrange(min(n, 64) if rng.random() < 0.5 else n)
        data[to] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256), data[to] ^ 1 << rng.randrange(8)))


def change_word(rng, data, at, n):
    """A field of a table: an odd number, or one that is a little wrong."""
    size = rng.choice((4, 8))
    to = at + rng.randrange(max(1, n // size)) * size
    old = int.from_bytes(data[to:to + size], "little")
    value = rng.choice((rng.choice(ODD), old + rng.randint(-9, 9), old * 2, rng.randrange(len(data))))
    data[to:to + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")


def mutate(rng, base):
    """One to three kinds of damage; the code that runs stays."""
    data = bytearray(base.data)
    for _ in range(rng.randint(1, 3)):
        kind = rng.random()
        if base.sections and kind < 0.55:
            section = rng.choice(base.sections)
            change_bytes(rng, data, section[4], section[5])
        elif kind < 0.75:
            change_word(rng, data, *rng.choice(base.headers))
        elif kind < 0.8:
            change_word(rng, data, 16, 48)
        elif base.sections and kind < 0.9:  # one stands in another one's place, or is all the same byte
            a, b = rng.choice(base.sections), rng.choice(base.sections)
            n = min(a[5], b[5])
            data[a[4]:a[4] + n] = base.data[b[4]:b[4] + n] if rng.random() < 0.5 else bytes([rng.choice((0, 0x80, 0xFF))]) * n
        elif base.shnum:  # compressed, it says
            at = base.shoff + 64 * rng.randrange(base.shnum)
            data[at + 9] ^= 8
    if rng.random() < 0.05:
        del data[rng.randrange(len(data) // 2, len(data)):]
    data[:7] = base.data[:7]
    data += bytes(max(0, base.at + base.n_code - len(data)))
    data[base.at:base.at + base.n_code] = base.data[base.at:base.at + base.n_code]
    return data


def make_mutants():
    """(path, offset of the code) of each."""
    rng = random.Random(SEED)
    sound = bases(spin_code())
    directory = rig.path("m")
    os.mkdir(directory, 0o755)
    made = []
    for i in range(N_FILES):
        base = sound[i % len(sound)]
        name = os.path.join(directory, f"{i}-{base.name}")
        with open(name, "wb") as f:
            f.write(mutate(rng, base))
        made.append((name, base.at))
    rig.say(f"{N_FILES} mutants of {len(sound)} files, seed {SEED}")
    return made


def run_mutants(mutants, watch):
    """Processes that run in them, a few at a time; watch() is called all the time."""
    batches = [mutants[i:i + BATCH] for i in range(0, len(mutants), BATCH)]
    running = []
    deadline = time.monotonic() + 120 + N_FILES  # a busy host
    while batches or running:
        if time.monotonic() >= deadline:
            rig.fail(f"{len(batches) + len(running)} batches have not run")
        while batches and len(running) < AT_A_TIME:
            arguments = [str(x) for pair in batches.pop(0) for x in pair]
            running.append(rig.start([rig.path("mapper"), str(FILE_MS), *arguments]))
        for p in [p for p in running if p.poll() is not None]:
            if p.returncode:
                rig.fail(f"a process that runs in mutants ends with {p.returncode}")
            running.remove(p)
        watch()
        time.sleep(0.1)


def seen_files(views, mutants):
    """Those that a mapping of some payload names."""
    names = {name for name, _ in mutants}
    return {v.strings[m.filename_strindex] for v in views for m in v.dictionary.mapping_table} & names


def check_deaths(log):
    """A process that dies of a file is wrong; one that is killed at a file sets it aside."""
    deaths = re.findall(r"(\w+) \(pid \d+\) (.*); a new one starts", log)
    aside = re.findall(r"(\S+) set aside for .*: the (\w+) (took too long|died) while reading it", log)
    slow = [a for a in aside if a[2] == "took too long"]
    rig.say("".join(f"set aside: {name}, the {who} {how}\n" for name, who, how in aside) or "nothing was set aside")
    rig.check(len(slow) == len(aside), f"no process dies while it reads a file ({len(aside) - len(slow)} did)")
    rig.check(len(deaths) <= len(slow), f"each process that was started anew had a file set aside ({len(deaths)} "
              f"of {len(slow)})" + "".join(f"\n    {who} {how}" for who, how in deaths))
    rig.check(len({name for name, _, _ in aside}) == len(aside), "none is set aside twice")


def main():
    rig.need_root()
    rig.need_programs("gcc", "objcopy")
    mutants = make_mutants()
    subprocess.run(["gcc", "-O2", "-o", rig.path("mapper"), rig.write("mapper.c", MAPPER)], check=True)
    directory = rig.build_workloads("chain")
    with Sink() as sink:
        daemon = rig.Daemon(f"""
[profiler]
samples_per_second = {RATE}
reporter_interval = 5s
[symbolizer]
lines = yes
inline = yes
[export:sink]
endpoint = {sink.endpoint}
""")
        roles = daemon.wait_up(60)
        sanitized = rig.is_sanitized()
        limit = MemoryLimit(f"perfwalk-hostile-{os.getpid()}", (4096 if sanitized else 512) << 20)
        if limit.path:
            atexit.register(limit.remove)
            limit.take([daemon.pid, *roles.values()])
        honest = rig.start(["./chain", "30"], cwd=directory)
        sink.wait_for(1, 60)
        peak = {}

        def watch():
            for name, pid in [("broker", daemon.pid), *daemon.roles().items()]:
                peak[name] = max(peak.get(name, 0), rig.anon_kib(pid))

        begin = time.time()
        run_mutants(mutants, watch)
        end = time.time()
        sink.wait_for(sink.count() + 3, 90)
        watch()
        rig.check(daemon.alive(), f"the broker lives after {end - begin:.0f} s")
        rig.check(daemon.role("exporter") == roles["exporter"], "the exporter is the same as before")
        cpu = int(daemon.status()["drain_cpu_max_ms"])
        rig.check(sanitized or cpu <= DRAIN_CPU_MS, f"the rings wait for {cpu} ms of the profiler's work at most (limit {DRAIN_CPU_MS})")
        check_deaths(daemon.log())
        if limit.path:
            rig.check(not limit.killed(), f"processes killed for want of memory within 512 MiB: {limit.killed()}")
        else:
            rig.say(f"not tried within 512 MiB: {limit.missing}")
        rig.check(peak["broker"] < 16 << 10, f"broker: at most {peak['broker']} KiB of its own")
        for name in ("profiler", "symbolizer"):
            rig.check(peak[name] < (1024 if sanitized else 256) << 10, f"{name}: at most {peak[name]} KiB of its own")
        views = sink.views()
        seen = seen_files(views, mutants)
        rig.check(len(seen) >= 0.8 * N_FILES, f"samples in {len(seen)} of {N_FILES} mutants")
        bombs.check_honest(views, honest.pid, begin, end)
        problems = sink.problems(rate=RATE)
        rig.check(not problems, "the payloads hold every rule" + "".join("\n    " + p for p in problems[:20]))


if __name__ == "__main__":
    rig.run(main)
