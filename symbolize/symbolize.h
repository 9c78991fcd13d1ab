/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Names for addresses: ELF symbol tables and DWARF (of the file or its separate debug file),
 * kallsyms, perf maps, jitdump; demangling. Everything here reads hostile bytes, in a process that
 * may die.
 *
 * Opens no file: descriptors come from the caller. Each source is a sorted table, built once and
 * then searched; no lookup scans a file.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

/* One function at an address. Strings are borrowed from the source, valid until it is freed; those
 * of a struct symbol_file until the next call for it. */
struct symbol {
	/* linkage name (mangled), without a @VERSION suffix; below 64 KiB; NULL: symbol_name() */
	const char *name;
	struct symbol_file *named_by; /* with row: what symbol_name() reads; NULL: nothing */
	uint32_t row;
	const char *module_name; /* kallsyms only: "ext4"; NULL for the kernel proper */
	uint64_t start, size;	 /* ELF virtual address (kernel: absolute); size 0: not known */
	const char *file;	 /* source file of the line, NULL: not known */
	uint32_t line, start_line, column; /* 0: not known */
	const char *language; /* "c", "c++", "go", "rust" ...; NULL: not known; static */
	/* inlined into the next one of the chain; then start is no address, but a number that no
	 * other inlined function of the file has */
	bool inlined;
};

/*
 * Opens the separate debug file of a file, and the supplementary file of dwz (debuglink is then its
 * path); called at most once for each. build_id: n bytes (0: none); debuglink: the name (NULL:
 * none) with its CRC. Returns an open descriptor, which this room closes, or -1.
 */
typedef int (*symbol_open_debug_fn)(void *ctx, const uint8_t *build_id, size_t n,
				    const char *debuglink, uint32_t crc);

/*
 * Opens a split file (-gsplit-dwarf); called at the first lookup in its unit and again after a
 * trim. path: as in the unit, without "..", relative if the unit has no directory; NULL: the
 * package of all split files, PROGRAM.dwp (called once). Returns an open descriptor, which this
 * room closes, or -1.
 */
typedef int (*symbol_open_split_fn)(void *ctx, const char *path);

struct symbol_limits {
	uint64_t max_file_bytes; /* symbol and string tables read from one file; default 256 MiB */
	/* compressed symbols and names of one file, all together; default 64 MiB */
	uint64_t max_inflate_bytes;
	/* sections for lines, inflated at one time; default 256 MiB */
	uint64_t max_inflate_dwarf_bytes;
	uint64_t max_table_bytes; /* one perf map or kallsyms; default 64 MiB */
	uint64_t max_dwarf_bytes; /* sections mapped at one time for lines; default 512 MiB */
	/* tables made from them; default 0: no lines, no inlined callers */
	uint64_t max_line_bytes;
	bool only_inlined; /* read inlined callers, but no line tables */
	bool keep_text;	   /* of kallsyms, which takes twice the memory: few names are looked up */
};
#define SYMBOL_LIMITS_DEFAULT                                                                      \
	{                                                                                          \
		UINT64_C(256) << 20, UINT64_C(64) << 20, UINT64_C(256) << 20, UINT64_C(64) << 20,  \
			UINT64_C(512) << 20, 0, false, false                                       \
	}

/* ---- ELF files ---- */
struct symbol_file;

/* fd stays the caller's. 0; -ENOEXEC: not ELF or damaged; -ENOMEM, or -errno. The first lookup
 * builds the tables. */
int symbol_file_new_fd(struct symbol_file **ret, int fd, const struct symbol_limits *limits,
		       symbol_open_debug_fn open_debug, void *ctx);
/* Call before the first lookup. */
void symbol_file_set_open_split(struct symbol_file *f, symbol_open_split_fn open_split, void *ctx);
/* An image in memory (the vdso), borrowed. */
int symbol_file_new_memory(struct symbol_file **ret, const void *image, size_t n,
			   const struct symbol_limits *limits);
struct symbol_file *symbol_file_free(struct symbol_file *f);
DEFINE_CLEANUP(struct symbol_file *, symbol_file_free)

/*
 * Finds the function that covers an ELF virtual address, and leaves its name in the file, for
 * callers that may know the function by its start: symbol_name() reads it. 0: found; 1: no function
 * covers the address. A stub section such as .plt gives name@plt. symbol-table.c says which of
 * several names at one address wins. Without memory for the tables no address has a name.
 */
int symbol_file_find(struct symbol_file *f, uint64_t vaddr, struct symbol *ret);
/* The name of any symbol, read now if it was left; NULL: the file was cut short, or no memory. */
const char *symbol_name(const struct symbol *s);

#define SYMBOL_MAX_CHAIN 64 /* longer chains of inlined calls lose their innermost functions */

/*
 * All functions at an address: innermost inlined function first, the one that has the code last.
 * Each has its line: that of the address, or of the call to the one before. max 1: only the last.
 * 0: *ret_n >= 1 functions; 1: no function covers the address. Without debugging information (or
 * limits.max_line_bytes) the result is that of symbol_file_find(); with limits.only_inlined the
 * only lines are those of declarations.
 */
int symbol_file_lines(struct symbol_file *f, uint64_t vaddr, struct symbol *chain, size_t max,
		      size_t *ret_n);
/* The lowest ELF virtual address of an executable segment. */
uint64_t symbol_file_code_start(const struct symbol_file *f);
/* Memory of the tables, for the caller's budget; and the part of it that is for lines. */
size_t symbol_file_bytes(const struct symbol_file *f);
size_t symbol_file_line_bytes(const struct symbol_file *f);
/* Gives back memory that can be read from the file again. Call it after a burst of lookups, and
 * before the next file with a lot of debugging information. Lines that failed for lack of memory
 * are tried again from now on. */
void symbol_file_trim(struct symbol_file *f);
/* The same, and frees all tables for lines. */
void symbol_file_forget_lines(struct symbol_file *f);
/* What was left out: symbols and tables over the limits, debug files that belong to other files. */
uint64_t symbol_file_refused(const struct symbol_file *f);

/*
 * The variable at an ELF virtual address, by the symbol tables of the file itself: its linkage
 * name, cut if need be, and where it begins. 0; 1: there is none; -errno. Reads all symbols.
 */
int symbol_find_data(int fd, const struct symbol_limits *limits, uint64_t vaddr, char *name,
		     size_t n_name, uint64_t *ret_start);

/* Identities of a file for OTLP (specification: profiles/mappings). */
struct symbol_file_id {
	uint8_t gnu[64];
	size_t n_gnu;	  /* 0: no NT_GNU_BUILD_ID */
	char go[128];	  /* "" : no Go build id note */
	char htlhash[33]; /* 32 hex digits: first 16 bytes of SHA-256(first 4096 + last 4096 bytes +
			     length as BE64) */
	const char *language; /* "go", "rust" or NULL, from the file itself; static string */
};
/* 0 or -errno. Does not need a struct symbol_file; reads with pread. */
int symbol_file_identify(int fd, struct symbol_file_id *ret);
/* Only the NT_GNU_BUILD_ID, at a fraction of the cost; *ret_n: its length, 0: none. 0 or -errno. */
int symbol_file_build_id(int fd, uint8_t ret[64], size_t *ret_n);

/* ---- Kernel ---- */
struct kallsyms;

/* Reads the text of /proc/kallsyms from fd to its end. 0; 1: all addresses are zero (kptr_restrict
 * hides them) or there is no line at all, *ret is NULL; -errno. Damaged lines are skipped. */
int kallsyms_new_fd(struct kallsyms **ret, int fd, const struct symbol_limits *limits);
struct kallsyms *kallsyms_free(struct kallsyms *k);
DEFINE_CLEANUP(struct kallsyms *, kallsyms_free)
/* 0; 1: no function there. module_name of BPF programs is "bpf". */
int kallsyms_lookup(const struct kallsyms *k, uint64_t address, struct symbol *ret);
/* The lowest function of the kernel proper; 0: there is none. */
uint64_t kallsyms_text_start(const struct kallsyms *k);
/* Were both read from the same text? false also for regular files that were read in parts. */
bool kallsyms_equal(const struct kallsyms *a, const struct kallsyms *b);
/* Memory held, in bytes; the number of lines beyond the limit. */
size_t kallsyms_bytes(const struct kallsyms *k);
uint64_t kallsyms_refused(const struct kallsyms *k);

/* ---- perf map (/tmp/perf-PID.map: "START SIZE name" lines in hex) ---- */
struct perf_map;

int perf_map_new(struct perf_map **ret, const struct symbol_limits *limits);
struct perf_map *perf_map_free(struct perf_map *m);
DEFINE_CLEANUP(struct perf_map *, perf_map_free)
/*
 * Reads what was appended since the last update, at most max_table_bytes at a time; reads another
 * file, or a rewritten one, from its start. Later lines win over earlier ones they overlap. 0;
 * -EINVAL: not a regular file; -ENOMEM, or -errno. Skips bad lines: no name, no size, a range over
 * 1 GiB. An update may invalidate names from earlier lookups.
 */
int perf_map_update(struct perf_map *m, int fd);
/* 0; 1: no function there. start and size are those of the line, even if later lines hide a
 * part. */
int perf_map_lookup(struct perf_map *m, uint64_t address, struct symbol *ret);
size_t perf_map_bytes(const struct perf_map *m);
/* Lines refused: more than 1 Mi functions, or more than max_table_bytes of memory. */
uint64_t perf_map_refused(const struct perf_map *m);

/* ---- jitdump (jit-PID.dump: binary, with time stamps and source lines) ---- */
struct jitdump;
enum jitdump_use { JITDUMP_NAMES, JITDUMP_UNWINDING };

/* Only what this use needs of the file is kept. */
int jitdump_new(struct jitdump **ret, const struct symbol_limits *limits, enum jitdump_use use);
struct jitdump *jitdump_free(struct jitdump *j);
DEFINE_CLEANUP(struct jitdump *, jitdump_free)
/*
 * Reads the complete records up to until_ns (CLOCK_MONOTONIC; all records of a file with another
 * clock), at most some 64 MiB at a time (JITDUMP_UNWINDING: 1 MiB, and the next call continues).
 * Continues after the last update, or starts again if the file is another one or shorter. 0;
 * -ENOEXEC: it cannot be used, and jitdump_problem() says why; -EINVAL: not a regular file;
 * -ENOMEM, or -errno. An update may invalidate names from earlier lookups.
 */
int jitdump_update(struct jitdump *j, int fd, uint64_t until_ns);
/* Why the file cannot be used: "was written in another byte order" ...; static. NULL: no problem.
 */
const char *jitdump_problem(const struct jitdump *j);
/* JITDUMP_NAMES: the newest function at the address, with its line. 0; 1: no function there. */
int jitdump_lookup(struct jitdump *j, uint64_t address, struct symbol *ret);
/*
 * Unwinding information of one function, or of all that were compiled together. Borrowed until the
 * next update.
 */
struct jitdump_unwinding {
	uint64_t start, end; /* of the function, or of the part that is left */
	uint64_t serial;     /* equal serial and address: the same .eh_frame */
	const uint8_t *eh_frame;
	size_t n_eh_frame; /* at most 64 KiB; not checked */
	uint64_t address;  /* of the .eh_frame, for its relative addresses */
};
/* JITDUMP_UNWINDING: 0; 1: no function there, or the newest one has no unwinding information. */
int jitdump_lookup_unwinding(struct jitdump *j, uint64_t address, struct jitdump_unwinding *ret);
/* Did any function have unwinding information so far? */
bool jitdump_has_unwinding(const struct jitdump *j);
size_t jitdump_bytes(const struct jitdump *j);
/* Functions over the limits, as for perf maps; records that contradict themselves. */
uint64_t jitdump_refused(const struct jitdump *j);

/* ---- Demangling: Itanium C++, Rust legacy and v0, D ---- */
enum symbol_demangling {
	SYMBOL_DEMANGLE_FULL,	/* with parameters and template arguments */
	SYMBOL_DEMANGLE_SIMPLE, /* the path alone: demangle-simple.c has examples */
	SYMBOL_DEMANGLE_NONE,
};
/*
 * The demangled name, allocated (free()), or NULL if the name is not mangled or longer than 4 KiB.
 * At most about 16 KiB, cut with "...". It has no hash of legacy Rust names, and keeps @plt at its
 * end.
 */
char *symbol_demangle(const char *name, enum symbol_demangling style);
