noinst_LIBRARIES += libunwind.a
libunwind_a_SOURCES = \
	unwind/arch.h \
	unwind/arch-x86_64.c \
	unwind/cfi.c \
	unwind/debug-frame.c \
	unwind/entry.c \
	unwind/expr.c \
	unwind/guard.c \
	unwind/internal.h \
	unwind/module.c \
	unwind/rows.c \
	unwind/step.c \
	unwind/unwind.h \
	unwind/vet.c \
	unwind/walk.c

check_LIBRARIES = tests/unit/libunwindtest.a
# Code to be stopped in: as distributions compile it, not as the rest is (sanitizers keep frame pointers).
tests_unit_libunwindtest_a_SOURCES = tests/unit/unwind-workload.c tests/unit/unwind-workload.h
tests_unit_libunwindtest_a_CFLAGS = $(AM_CFLAGS) -O2 -fomit-frame-pointer -fno-sanitize=all

UNWIND_TEST_LIBS = libunwind.a libutil.a $(ELFUTILS_LIBS) $(ZLIB_LIBS)
UNWIND_TEST_PROC = tests/unit/test.h tests/unit/unwind-proc.c tests/unit/unwind-proc.h

check_PROGRAMS += tests/unit/test-unwind-live
tests_unit_test_unwind_live_SOURCES = tests/unit/test-unwind-live.c $(UNWIND_TEST_PROC)
tests_unit_test_unwind_live_LDADD = tests/unit/libunwindtest.a $(UNWIND_TEST_LIBS)
