noinst_LIBRARIES += libunwind.a
libunwind_a_SOURCES = \
	unwind/arch.h \
	unwind/arch-x86_64.c \
	unwind/cfi.c \
	unwind/compact.c \
	unwind/debug-frame.c \
	unwind/entry.c \
	unwind/expr.c \
	unwind/go-table.c \
	unwind/guard.c \
	unwind/internal.h \
	unwind/module.c \
	unwind/rows.c \
	unwind/step.c \
	unwind/unwind.h \
	unwind/vet.c \
	unwind/walk.c

check_LIBRARIES += tests/unit/libunwindtest.a
# Code to be stopped in: as distributions compile it, not as the rest is (sanitizers keep frame pointers).
tests_unit_libunwindtest_a_SOURCES = tests/unit/unwind-workload.c tests/unit/unwind-workload.h
tests_unit_libunwindtest_a_CFLAGS = $(AM_CFLAGS) -O2 -fomit-frame-pointer -fno-sanitize=all

UNWIND_TEST_LIBS = libunwind.a libutil.a $(ELFUTILS_LIBS) $(ZLIB_LIBS)
UNWIND_TEST_PROC = tests/unit/test.h tests/unit/unwind-proc.c tests/unit/unwind-proc.h
UNWIND_TEST_COMPARE = $(UNWIND_TEST_PROC) tests/unit/unwind-compare.c tests/unit/unwind-compare.h

check_PROGRAMS += tests/unit/test-unwind-live
tests_unit_test_unwind_live_SOURCES = tests/unit/test-unwind-live.c $(UNWIND_TEST_COMPARE)
tests_unit_test_unwind_live_LDADD = tests/unit/libunwindtest.a $(UNWIND_TEST_LIBS)

check_PROGRAMS += tests/unit/test-unwind-walk
tests_unit_test_unwind_walk_SOURCES = tests/unit/test-unwind-walk.c tests/unit/test.h \
	tests/unit/unwind-elf.c tests/unit/unwind-elf.h
tests_unit_test_unwind_walk_LDADD = $(UNWIND_TEST_LIBS)

check_PROGRAMS += tests/unit/test-unwind-file
tests_unit_test_unwind_file_SOURCES = tests/unit/test-unwind-file.c tests/unit/test.h \
	tests/unit/unwind-elf.c tests/unit/unwind-elf.h
tests_unit_test_unwind_file_LDADD = $(UNWIND_TEST_LIBS)

check_PROGRAMS += tests/unit/test-unwind-hostile
tests_unit_test_unwind_hostile_SOURCES = tests/unit/test-unwind-hostile.c $(UNWIND_TEST_PROC) \
	tests/unit/unwind-elf.c tests/unit/unwind-elf.h
tests_unit_test_unwind_hostile_LDADD = $(UNWIND_TEST_LIBS)

# make bench-unwind: not part of make check, it wants root and makes a load (tests/bench/unwind.sh).
EXTRA_PROGRAMS += tests/bench/unwind-bench
tests_bench_unwind_bench_SOURCES = tests/bench/unwind.c tests/bench/framehop.c tests/bench/framehop.h \
	tests/bench/unwind-capture.c tests/bench/unwind-capture.h $(UNWIND_TEST_PROC)
tests_bench_unwind_bench_LDADD = $(UNWIND_TEST_LIBS)
EXTRA_DIST += tests/bench/unwind.sh tests/bench/framehop/Cargo.toml tests/bench/framehop/Cargo.lock \
	tests/bench/framehop/src/lib.rs tests/fuzz/fuzz-unwind.c
CLEANFILES += tests/bench/unwind-bench$(EXEEXT)

.PHONY: bench-unwind
bench-unwind: tests/bench/unwind-bench$(EXEEXT)
	$(SHELL) $(srcdir)/tests/bench/unwind.sh ./tests/bench/unwind-bench$(EXEEXT)

check_PROGRAMS += tests/unit/test-unwind-go
tests_unit_test_unwind_go_SOURCES = tests/unit/test-unwind-go.c $(UNWIND_TEST_PROC)
tests_unit_test_unwind_go_LDADD = $(UNWIND_TEST_LIBS)

check_PROGRAMS += tests/unit/test-unwind-compact
tests_unit_test_unwind_compact_SOURCES = tests/unit/test-unwind-compact.c tests/unit/test.h
tests_unit_test_unwind_compact_LDADD = $(UNWIND_TEST_LIBS)
