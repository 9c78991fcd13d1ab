noinst_LIBRARIES += libsymbolize.a
libsymbolize_a_SOURCES = \
	symbolize/alloc-place.c symbolize/alloc-place.h \
	symbolize/code-table.c symbolize/code-table.h \
	symbolize/data-symbol.c \
	symbolize/debug-file.c symbolize/debug-file.h \
	symbolize/demangle.c \
	symbolize/demangle-simple.c symbolize/demangle-simple.h \
	symbolize/dwarf.c symbolize/dwarf.h symbolize/dwarf-internal.h \
	symbolize/dwarf-abbrev.c \
	symbolize/dwarf-budget.c \
	symbolize/dwarf-code.c \
	symbolize/dwarf-file.c \
	symbolize/dwarf-line.c \
	symbolize/dwarf-map.c \
	symbolize/dwarf-package.c \
	symbolize/dwarf-read.c \
	symbolize/dwarf-split.c \
	symbolize/dwarf-units.c \
	symbolize/elf-compress.c \
	symbolize/elf-dynamic.c \
	symbolize/arch.c symbolize/arch.h symbolize/arch-aarch64.c symbolize/arch-riscv64.c symbolize/arch-x86_64.c \
	symbolize/elf-image.c symbolize/elf-image.h \
	symbolize/go-table.c symbolize/go-table.h \
	symbolize/identify.c \
	symbolize/jitdump.c symbolize/jitdump-internal.h \
	symbolize/jitdump-lines.c \
	symbolize/jitdump-unwinding.c \
	symbolize/kallsyms.c \
	symbolize/kallsyms-table.c symbolize/kallsyms-table.h \
	symbolize/perf-map.c \
	symbolize/probe-place.c symbolize/probe-place.h \
	symbolize/sort.c symbolize/sort.h \
	symbolize/symbol-file.c \
	symbolize/symbol-plt.c symbolize/symbol-plt.h \
	symbolize/symbol-table.c symbolize/symbol-table.h \
	symbolize/symbolize.h

symbolize_test_libs = libsymbolize.a libutil.a $(SYMBOLIZE_LIBS)
check_PROGRAMS += \
	tests/unit/test-symbolize-dwarf \
	tests/unit/test-symbolize-dwarf-hostile \
	tests/unit/test-symbolize-compressed \
	tests/unit/test-symbolize-elf \
	tests/unit/test-symbolize-go \
	tests/unit/test-symbolize-hostile \
	tests/unit/test-symbolize-identify \
	tests/unit/test-symbolize-jitdump \
	tests/unit/test-symbolize-kallsyms \
	tests/unit/test-symbolize-perf-map \
	tests/unit/test-symbolize-sort \
	tests/unit/test-alloc-place \
	tests/unit/test-probe-place \
	tests/unit/test-symbolize-demangle
tests_unit_test_alloc_place_SOURCES = tests/unit/test-alloc-place.c tests/unit/go-builds.h tests/unit/compile.h tests/unit/workshop.h
tests_unit_test_alloc_place_LDADD = $(symbolize_test_libs)
tests_unit_test_probe_place_SOURCES = tests/unit/test-probe-place.c tests/unit/probe-target.h
tests_unit_test_probe_place_LDADD = $(symbolize_test_libs)
tests_unit_test_symbolize_compressed_SOURCES = tests/unit/test-symbolize-compressed.c tests/unit/lookup.h tests/unit/compile.h
tests_unit_test_symbolize_compressed_LDADD = $(symbolize_test_libs)
tests_unit_test_symbolize_elf_SOURCES = tests/unit/test-symbolize-elf.c tests/unit/lookup.h tests/unit/workshop.h
tests_unit_test_symbolize_elf_LDADD = $(symbolize_test_libs)
tests_unit_test_symbolize_dwarf_SOURCES = tests/unit/test-symbolize-dwarf.c tests/unit/lookup.h tests/unit/compile.h \
	tests/unit/workshop.h
tests_unit_test_symbolize_dwarf_LDADD = $(symbolize_test_libs)
tests_unit_test_symbolize_dwarf_hostile_SOURCES = tests/unit/test-symbolize-dwarf-hostile.c tests/unit/compile.h \
	tests/unit/workshop.h
tests_unit_test_symbolize_dwarf_hostile_LDADD = $(symbolize_test_libs)
tests_unit_test_symbolize_go_SOURCES = tests/unit/test-symbolize-go.c tests/unit/lookup.h
tests_unit_test_symbolize_go_LDADD = $(symbolize_test_libs)
tests_unit_test_symbolize_sort_SOURCES = tests/unit/test-symbolize-sort.c
tests_unit_test_symbolize_sort_LDADD = $(symbolize_test_libs)
tests_unit_test_symbolize_hostile_SOURCES = tests/unit/test-symbolize-hostile.c tests/unit/lookup.h
tests_unit_test_symbolize_hostile_LDADD = $(symbolize_test_libs)
tests_unit_test_symbolize_identify_SOURCES = tests/unit/test-symbolize-identify.c
tests_unit_test_symbolize_identify_LDADD = $(symbolize_test_libs)
tests_unit_test_symbolize_jitdump_SOURCES = tests/unit/test-symbolize-jitdump.c \
	tests/unit/jitdump-file.h
tests_unit_test_symbolize_jitdump_LDADD = $(symbolize_test_libs)
tests_unit_test_symbolize_kallsyms_SOURCES = tests/unit/test-symbolize-kallsyms.c
tests_unit_test_symbolize_kallsyms_LDADD = $(symbolize_test_libs)
tests_unit_test_symbolize_perf_map_SOURCES = tests/unit/test-symbolize-perf-map.c
tests_unit_test_symbolize_perf_map_LDADD = $(symbolize_test_libs)
tests_unit_test_symbolize_demangle_SOURCES = tests/unit/test-symbolize-demangle.c
tests_unit_test_symbolize_demangle_LDADD = $(symbolize_test_libs)

# The fuzz target over the files that are kept.
check_PROGRAMS += tests/fuzz/replay-jitdump
tests_fuzz_replay_jitdump_SOURCES = tests/fuzz/fuzz-jitdump.c tests/fuzz/replay.h
tests_fuzz_replay_jitdump_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-jitdump"'
tests_fuzz_replay_jitdump_LDADD = $(symbolize_test_libs)
EXTRA_DIST += \
	tests/fuzz/corpus-jitdump/moved \
	tests/fuzz/corpus-jitdump/node \
	tests/fuzz/corpus-jitdump/node-unwinding \
	tests/fuzz/corpus-jitdump/turns \
	tests/fuzz/corpus-jitdump/unwound-apart \
	tests/fuzz/corpus-jitdump/unwound-behind
# What tests/system/names.py asks; make check-names: all forms of files, all over their code (minutes).
EXTRA_PROGRAMS += tests/names/answer
tests_names_answer_SOURCES = tests/names/answer.c
tests_names_answer_LDADD = libopener.a libprocess.a $(symbolize_test_libs)
CLEANFILES += tests/names/answer$(EXEEXT)

.PHONY: check-names
check-names: perfwalk$(EXEEXT)
	PERFWALK=./perfwalk$(EXEEXT) python3 $(srcdir)/tests/system/names.py --all

# make bench-symbolize: not part of make check, it compares with programs that cargo builds.
EXTRA_PROGRAMS += tests/bench/symbolize-bench
tests_bench_symbolize_bench_SOURCES = tests/bench/symbolize.c
tests_bench_symbolize_bench_LDADD = $(symbolize_test_libs)
EXTRA_DIST += tests/bench/symbolize.sh tests/bench/symbolize/Cargo.toml \
	tests/bench/symbolize/src/main.rs
CLEANFILES += tests/bench/symbolize-bench$(EXEEXT)

.PHONY: bench-symbolize
bench-symbolize: tests/bench/symbolize-bench$(EXEEXT)
	$(SHELL) $(srcdir)/tests/bench/symbolize.sh ./tests/bench/symbolize-bench$(EXEEXT)
