UNWIND_SOURCES = \
	unwind/arch.h \
	unwind/budget.c \
	unwind/cfi.c \
	unwind/compact.c \
	unwind/continue.c \
	unwind/debug-frame.c \
	unwind/entry.c \
	unwind/explain.c \
	unwind/explain.h \
	unwind/expr.c \
	unwind/go-table.c \
	unwind/guard.c \
	unwind/internal.h \
	unwind/lost-fp.c \
	unwind/module.c \
	unwind/recorded.c \
	unwind/recorded.h \
	unwind/rows.c \
	unwind/step.c \
	unwind/unwind.h \
	unwind/unwinder.c \
	unwind/vet.c \
	unwind/walk.c

noinst_LIBRARIES += libunwind.a
libunwind_a_SOURCES = $(UNWIND_SOURCES)
if AARCH64
libunwind_a_SOURCES += unwind/arch-aarch64.c
endif
if RISCV64
libunwind_a_SOURCES += unwind/arch-riscv64.c
endif
if X86_64
libunwind_a_SOURCES += unwind/arch-x86_64.c
endif

# The same for stacks of aarch64, read anywhere.
check_LIBRARIES += libunwind-aarch64.a
libunwind_aarch64_a_SOURCES = $(UNWIND_SOURCES) unwind/arch-aarch64.c
libunwind_aarch64_a_CPPFLAGS = $(AM_CPPFLAGS) -DUNWIND_FOR_AARCH64

check_LIBRARIES += tests/unit/libunwindtest.a
# Code to be stopped in: as distributions compile it, not as the rest is (sanitizers keep frame pointers).
tests_unit_libunwindtest_a_SOURCES = tests/unit/unwind-workload.c tests/unit/unwind-workload.h
tests_unit_libunwindtest_a_CFLAGS = $(AM_CFLAGS) -O2 -fomit-frame-pointer -fno-sanitize=all

UNWIND_TEST_LIBS = libunwind.a libutil.a $(ELFUTILS_LIBS) $(ZLIB_LIBS)
UNWIND_TEST_PROC = tests/unit/test.h tests/unit/unwind-proc.c tests/unit/unwind-proc.h
CORPUS_ORACLE = tests/corpus/judge.c tests/corpus/judge.h tests/corpus/oracle.c tests/corpus/oracle.h tests/corpus/relation.h
UNWIND_TEST_COMPARE = $(UNWIND_TEST_PROC) $(CORPUS_ORACLE) tests/unit/unwind-compare.c tests/unit/unwind-compare.h

check_PROGRAMS += tests/unit/test-unwind-live
tests_unit_test_unwind_live_SOURCES = tests/unit/test-unwind-live.c $(UNWIND_TEST_COMPARE)
tests_unit_test_unwind_live_LDADD = tests/unit/libunwindtest.a $(UNWIND_TEST_LIBS)
# It steps through the resolver of calls that are bound at their first use.
tests_unit_test_unwind_live_LDFLAGS = $(AM_LDFLAGS) -Wl,-z,lazy

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
	tests/bench/unwind-capture.c tests/bench/unwind-capture.h $(UNWIND_TEST_PROC) $(CORPUS_ORACLE)
tests_bench_unwind_bench_LDADD = libsample.a $(UNWIND_TEST_LIBS)
EXTRA_DIST += tests/bench/unwind.sh tests/bench/framehop/Cargo.toml tests/bench/framehop/Cargo.lock \
	tests/bench/framehop/src/lib.rs
CLEANFILES += tests/bench/unwind-bench$(EXEEXT)

.PHONY: bench-unwind
bench-unwind: tests/bench/unwind-bench$(EXEEXT)
	$(SHELL) $(srcdir)/tests/bench/unwind.sh ./tests/bench/unwind-bench$(EXEEXT)

check_PROGRAMS += tests/unit/test-unwind-go
tests_unit_test_unwind_go_SOURCES = tests/unit/test-unwind-go.c tests/unit/compile.h $(UNWIND_TEST_PROC) $(CORPUS_ORACLE)
tests_unit_test_unwind_go_LDADD = $(UNWIND_TEST_LIBS)

check_PROGRAMS += tests/unit/test-unwind-compact
tests_unit_test_unwind_compact_SOURCES = tests/unit/test-unwind-compact.c tests/unit/test.h
tests_unit_test_unwind_compact_LDADD = $(UNWIND_TEST_LIBS)
# make check-aarch64: wants qemu-user and a cross compiler (tests/emulated/aarch64.sh).
UNWIND_AARCH64_TEST_LIBS = libunwind-aarch64.a libutil.a $(ELFUTILS_LIBS) $(ZLIB_LIBS)
EXTRA_PROGRAMS += tests/emulated/test-aarch64
tests_emulated_test_aarch64_SOURCES = tests/emulated/test-aarch64.c tests/emulated/qemu.c \
	tests/emulated/qemu.h $(UNWIND_TEST_COMPARE)
tests_emulated_test_aarch64_CPPFLAGS = $(AM_CPPFLAGS) -DUNWIND_FOR_AARCH64
tests_emulated_test_aarch64_LDADD = $(UNWIND_AARCH64_TEST_LIBS)
EXTRA_PROGRAMS += tests/emulated/test-compact
tests_emulated_test_compact_SOURCES = tests/unit/test-unwind-compact.c tests/unit/test.h
tests_emulated_test_compact_CPPFLAGS = $(AM_CPPFLAGS) -DUNWIND_FOR_AARCH64
tests_emulated_test_compact_LDADD = $(UNWIND_AARCH64_TEST_LIBS)
EXTRA_DIST += tests/emulated/aarch64.sh tests/emulated/program.c tests/emulated/program.go
CLEANFILES += tests/emulated/test-aarch64$(EXEEXT) tests/emulated/test-compact$(EXEEXT)

.PHONY: check-aarch64
check-aarch64: tests/emulated/test-aarch64$(EXEEXT) tests/emulated/test-compact$(EXEEXT)
	$(SHELL) $(srcdir)/tests/emulated/aarch64.sh ./tests/emulated $(srcdir)
# The corpus: recorded samples with every trap, and the tool that makes them (tests/corpus/make.sh).
EXTRA_PROGRAMS += tests/corpus/take
CORPUS_TAKE = tests/corpus/take.c tests/corpus/take.h tests/corpus/take-maps.c tests/corpus/take-cut.c \
	tests/corpus/take-write.c tests/corpus/touch.c tests/corpus/touch.h $(CORPUS_ORACLE) $(UNWIND_TEST_PROC)
tests_corpus_take_SOURCES = $(CORPUS_TAKE) tests/corpus/take-ptrace.c
tests_corpus_take_LDADD = $(UNWIND_TEST_LIBS)
EXTRA_PROGRAMS += tests/corpus/take-aarch64
tests_corpus_take_aarch64_SOURCES = $(CORPUS_TAKE) tests/corpus/take-qemu.c tests/emulated/qemu.c tests/emulated/qemu.h
tests_corpus_take_aarch64_CPPFLAGS = $(AM_CPPFLAGS) -DUNWIND_FOR_AARCH64
tests_corpus_take_aarch64_LDADD = $(UNWIND_AARCH64_TEST_LIBS)
CLEANFILES += tests/corpus/take$(EXEEXT) tests/corpus/take-aarch64$(EXEEXT)
CORPUS_TRAPS = asm-libc asm-libcrypto asm-libgcc coroutine cxx-clang cxx-exception debug-frame debug-frame-zlib \
	go go-cgo go-morestack go-stripped java-jit llvm longjmp mapped-twice mapping-split musl \
	musl-static no-cfi-frame-pointer no-sections node node-jit plt plt-ibt plt-no-cfi prelinked \
	prologue rust-panic rustc signal signal-altstack signal-fault static static-pie tail-call \
	truncated vdso
CORPUS_AARCH64 = asm-libc coroutine debug-frame frame-pointer go go-stripped longjmp no-cfi-frame-pointer plt prologue resolver signal \
	signal-altstack signal-fault signed signed-signal static-pie tail-call truncated
EXTRA_DIST += $(CORPUS_AARCH64:%=tests/data/unwind/aarch64/%.samples.gz) \
	$(CORPUS_AARCH64:%=tests/data/unwind/aarch64/%.expect) tests/data/unwind/aarch64/differences
EXTRA_DIST += tests/corpus/common.sh tests/corpus/make.sh tests/corpus/make-aarch64.sh \
	tests/corpus/src/Hot.java \
	tests/corpus/src/context.c \
	tests/corpus/src/crypto.c \
	tests/corpus/src/exception.cc \
	tests/corpus/src/gotraps.go \
	tests/corpus/src/hot.js \
	tests/corpus/src/library.c \
	tests/corpus/src/many.cc \
	tests/corpus/src/mark.h \
	tests/corpus/src/panic.rs \
	tests/corpus/src/split-stack.c \
	tests/corpus/src/traps.c \
	tests/corpus/src/twice.c \
	tests/corpus/src/cgo/main.go \
	$(CORPUS_TRAPS:%=tests/data/unwind/%.samples.gz) \
	$(CORPUS_TRAPS:%=tests/data/unwind/%.expect) tests/data/unwind/differences

check_PROGRAMS += tests/unit/test-unwind-corpus tests/unit/test-unwind-corpus-aarch64
tests_unit_test_unwind_corpus_SOURCES = tests/unit/test-unwind-corpus.c tests/unit/test.h $(CORPUS_ORACLE)
tests_unit_test_unwind_corpus_LDADD = $(UNWIND_TEST_LIBS)
tests_unit_test_unwind_corpus_aarch64_SOURCES = tests/unit/test-unwind-corpus.c tests/unit/test.h $(CORPUS_ORACLE)
tests_unit_test_unwind_corpus_aarch64_CPPFLAGS = $(AM_CPPFLAGS) -DUNWIND_FOR_AARCH64
tests_unit_test_unwind_corpus_aarch64_LDADD = $(UNWIND_AARCH64_TEST_LIBS)

check_PROGRAMS += tests/unit/test-unwind-continue
tests_unit_test_unwind_continue_SOURCES = tests/unit/test-unwind-continue.c tests/unit/test.h
tests_unit_test_unwind_continue_LDADD = $(UNWIND_TEST_LIBS)

# The fuzz targets over what is kept.
UNWIND_FUZZ_ELF = tests/unit/unwind-elf.c tests/unit/unwind-elf.h
check_PROGRAMS += tests/fuzz/replay-recorded tests/fuzz/replay-recorded-aarch64 tests/fuzz/replay-unwind \
	tests/fuzz/replay-walk
tests_fuzz_replay_recorded_SOURCES = tests/fuzz/fuzz-recorded.c tests/fuzz/replay.h
tests_fuzz_replay_recorded_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/data/unwind"'
tests_fuzz_replay_recorded_LDADD = $(UNWIND_TEST_LIBS)
tests_fuzz_replay_recorded_aarch64_SOURCES = tests/fuzz/fuzz-recorded.c tests/fuzz/replay.h
tests_fuzz_replay_recorded_aarch64_CPPFLAGS = $(AM_CPPFLAGS) -DUNWIND_FOR_AARCH64 \
	-DFUZZ_REPLAY='"$(srcdir)/tests/data/unwind/aarch64"'
tests_fuzz_replay_recorded_aarch64_LDADD = $(UNWIND_AARCH64_TEST_LIBS)
tests_fuzz_replay_unwind_SOURCES = tests/fuzz/fuzz-unwind.c tests/fuzz/replay.h $(UNWIND_FUZZ_ELF)
tests_fuzz_replay_unwind_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-unwind"'
tests_fuzz_replay_unwind_LDADD = $(UNWIND_TEST_LIBS)
tests_fuzz_replay_walk_SOURCES = tests/fuzz/fuzz-walk.c $(UNWIND_FUZZ_ELF)
tests_fuzz_replay_walk_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY
tests_fuzz_replay_walk_LDADD = $(UNWIND_TEST_LIBS)
FUZZ_UNWIND_KEPT = expression-loop frame-pointer plt registers remember restore restore-in-cie signal
EXTRA_DIST += $(FUZZ_UNWIND_KEPT:%=tests/fuzz/corpus-unwind/%)
