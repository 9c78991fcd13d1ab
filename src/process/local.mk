noinst_LIBRARIES += libprocess.a
libprocess_a_SOURCES = \
	src/process/ask.c src/process/ask.h \
	src/process/context-file.c src/process/context-file.h \
	src/process/credentials.c src/process/credentials.h \
	src/process/filter.c src/process/filter.h \
	src/process/filter-rule.c src/process/filter-rule.h \
	src/process/frame-record.h \
	src/process/frame-ring.c src/process/frame-ring.h \
	src/process/kept-blocks.c src/process/kept-blocks.h \
	src/process/message.c src/process/message.h \
	src/process/outbox.c src/process/outbox.h \
	src/process/privileges.c src/process/privileges.h \
	src/process/receipts.c src/process/receipts.h \
	src/process/role.c src/process/role.h \
	src/process/sandbox.c src/process/sandbox.h \
	src/process/sandbox-calls.c src/process/sandbox-internal.h \
	src/process/sandbox-files.c \
	src/process/sandbox-program.c \
	src/process/sandbox-trap.c \
	src/process/sandbox-try.c \
	src/process/judging.h \
	src/process/setup.c src/process/setup.h \
	src/process/spawn.c src/process/spawn.h \
	src/process/statistics.c src/process/statistics.h \
	src/process/status-page.c src/process/status-page.h

# Numbers and names of all system calls of the architecture that this is built for.
src/process/syscall-names.h:
	$(AM_V_GEN)$(MKDIR_P) src/process && echo '#include <sys/syscall.h>' | $(CC) $(CPPFLAGS) -E -dM -x c - | \
		sed -n 's/^#define SYS_\([a-z0-9_]*\) .*/{SYS_\1, "\1"},/p' | LC_ALL=C sort >$@.new && mv $@.new $@
src/process/sandbox-trap.$(OBJEXT): src/process/syscall-names.h
BUILT_SOURCES += src/process/syscall-names.h
CLEANFILES += src/process/syscall-names.h

check_PROGRAMS += tests/unit/test-ask
tests_unit_test_ask_SOURCES = tests/unit/test-ask.c tests/unit/test.h
tests_unit_test_ask_LDADD = libprocess.a libutil.a

check_PROGRAMS += tests/unit/test-outbox
tests_unit_test_outbox_SOURCES = tests/unit/test-outbox.c tests/unit/test.h
tests_unit_test_outbox_LDADD = libprocess.a libutil.a

check_PROGRAMS += tests/unit/test-receipts
tests_unit_test_receipts_SOURCES = tests/unit/test-receipts.c tests/unit/test.h
tests_unit_test_receipts_LDADD = libprocess.a libutil.a

check_PROGRAMS += tests/unit/test-setup
tests_unit_test_setup_SOURCES = tests/unit/test-setup.c tests/unit/test.h
tests_unit_test_setup_LDADD = libprocess.a libutil.a

check_PROGRAMS += tests/unit/test-sandbox
tests_unit_test_sandbox_SOURCES = tests/unit/test-sandbox.c tests/unit/test.h
tests_unit_test_sandbox_LDADD = libprocess.a libutil.a

check_PROGRAMS += tests/unit/test-frame-ring
tests_unit_test_frame_ring_SOURCES = tests/unit/test-frame-ring.c tests/unit/test.h
tests_unit_test_frame_ring_LDADD = libprocess.a libutil.a

# make bench-shell: what the filters of system calls cost a sample; as root.
EXTRA_PROGRAMS += tests/bench/filter-bench
tests_bench_filter_bench_SOURCES = tests/bench/filter.c
tests_bench_filter_bench_LDADD = libprocess.a libutil.a
CLEANFILES += tests/bench/filter-bench$(EXEEXT)
.PHONY: bench-shell
bench-shell: perfwalk tests/bench/filter-bench$(EXEEXT)
	PERFWALK=$(abs_builddir)/perfwalk python3 $(srcdir)/tests/bench/shell.py $(abs_builddir)/tests/bench/filter-bench$(EXEEXT)
