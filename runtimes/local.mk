# SPDX-License-Identifier: Apache-2.0
# Frames of interpreters and of code that is compiled at run time, through reads of memory.
RUNTIMES_SOURCES = \
	runtimes/arch-aarch64.h \
	runtimes/arch-v8.h \
	runtimes/arch.h \
	runtimes/chain.h \
	runtimes/cpython-code.c \
	runtimes/cpython-internal.h \
	runtimes/cpython-tables.c \
	runtimes/cpython-tables.h \
	runtimes/cpython-thread.c \
	runtimes/cpython-walk.c \
	runtimes/cpython.c \
	runtimes/cpython.h \
	runtimes/eval-code.c \
	runtimes/eval-code.h \
	runtimes/go.c \
	runtimes/go.h \
	runtimes/hotspot-code.c \
	runtimes/hotspot-internal.h \
	runtimes/hotspot-method.c \
	runtimes/hotspot-stepper.c \
	runtimes/hotspot-tables.c \
	runtimes/hotspot-tables.h \
	runtimes/hotspot-walk.c \
	runtimes/hotspot.c \
	runtimes/hotspot.h \
	runtimes/image.c \
	runtimes/image.h \
	runtimes/interp-internal.h \
	runtimes/interp.c \
	runtimes/interp.h \
	runtimes/marks.c \
	runtimes/marks.h \
	runtimes/memo.h \
	runtimes/memory.c \
	runtimes/memory.h \
	runtimes/musl.c \
	runtimes/musl.h \
	runtimes/php-function.c \
	runtimes/php-internal.h \
	runtimes/php-tables.c \
	runtimes/php-tables.h \
	runtimes/php-walk.c \
	runtimes/php.c \
	runtimes/php.h \
	runtimes/ruby-code.c \
	runtimes/ruby-internal.h \
	runtimes/ruby-object.c \
	runtimes/ruby-tables.c \
	runtimes/ruby-tables.h \
	runtimes/ruby-thread.c \
	runtimes/ruby-walk.c \
	runtimes/ruby.c \
	runtimes/ruby.h \
	runtimes/stack.h \
	runtimes/stepper.c \
	runtimes/stepper-internal.h \
	runtimes/stepper.h \
	runtimes/node-context.c \
	runtimes/node-context.h \
	runtimes/thread-context.c \
	runtimes/thread-context.h \
	runtimes/thread-variable.c \
	runtimes/thread-variable.h \
	runtimes/trampoline.c \
	runtimes/trampoline.h \
	runtimes/trust.h \
	runtimes/v8-bytecode.c \
	runtimes/v8-code.c runtimes/v8-copies.c \
	runtimes/v8-function.c \
	runtimes/v8-heap.c \
	runtimes/v8-internal.h \
	runtimes/v8-lines.c \
	runtimes/v8-stepper.c \
	runtimes/v8-tables.c \
	runtimes/v8-tables.h \
	runtimes/v8-walk.c \
	runtimes/v8.c \
	runtimes/v8.h

noinst_LIBRARIES += libruntimes.a
libruntimes_a_SOURCES = $(RUNTIMES_SOURCES)
if AARCH64
libruntimes_a_SOURCES += runtimes/arch-aarch64.c runtimes/arch-hotspot-aarch64.c runtimes/arch-v8-aarch64.c
endif
if RISCV64
libruntimes_a_SOURCES += runtimes/arch-riscv64.c runtimes/arch-hotspot-none.c runtimes/arch-v8-none.c
endif
if X86_64
libruntimes_a_SOURCES += runtimes/arch-v8-x86_64.c runtimes/arch-x86_64.c
endif

check_PROGRAMS += tests/unit/test-runtimes
tests_unit_test_runtimes_SOURCES = tests/unit/test-runtimes.c tests/unit/test.h
tests_unit_test_runtimes_LDADD = libruntimes.a libutil.a -ldl

# Recorded reads of real processes: tests/runtimes/record PID SAMPLES FILE >FILE.expect, of
# `java Mix` (default flags, 64 MiB of heap) some seconds after its start.
RUNTIMES_RECORDED = hotspot-8 hotspot-11 hotspot-17 hotspot-21 hotspot-25
EXTRA_DIST += $(RUNTIMES_RECORDED:%=tests/data/runtimes/%.gz) $(RUNTIMES_RECORDED:%=tests/data/runtimes/%.expect) \
	tests/runtimes/Mix.java
# Likewise of `chains.py parked FILE generators sort_key letters far_lines tasks` (tests/workloads).
CPYTHON_RECORDED = 3.6 3.7 3.8 3.9 3.10 3.11 3.12 3.13 3.14 3.15
EXTRA_DIST += $(CPYTHON_RECORDED:%=tests/data/cpython/%.gz) $(CPYTHON_RECORDED:%=tests/data/cpython/%.expect)
# What the fuzzer found.
EXTRA_DIST += tests/data/cpython/number-too-large.gz
# Likewise of `php /w/calls.php parked` and `ruby /w/calls.rb parked` (tests/workloads), in that place.
INTERP_RECORDED = php-7.4 php-8.1 php-8.2 php-8.3 php-8.4 php-8.5 ruby-2.7 ruby-3.0 ruby-3.1 ruby-3.2 \
	ruby-3.3 ruby-3.4
EXTRA_DIST += $(INTERP_RECORDED:%=tests/data/interp/%.gz) $(INTERP_RECORDED:%=tests/data/interp/%.expect)
# Likewise of `node mix.js`, 14 samples, some seconds after its start.
V8_RECORDED = 16 18 20 22 24 26
EXTRA_DIST += $(V8_RECORDED:%=tests/data/v8/%.gz) $(V8_RECORDED:%=tests/data/v8/%.expect) \
	tests/runtimes/mix.js
EXTRA_PROGRAMS += tests/runtimes/record
tests_runtimes_record_SOURCES = tests/runtimes/record.c tests/runtimes/recorded-chain.h \
	tests/runtimes/recorded-hotspot.h tests/runtimes/recorded-v8.h tests/runtimes/recording.h
tests_runtimes_record_LDADD = libruntimes.a libutil.a $(ZLIB_LIBS)
CLEANFILES += tests/runtimes/record$(EXEEXT)

check_PROGRAMS += tests/unit/test-marks
tests_unit_test_marks_SOURCES = tests/unit/test-marks.c tests/unit/compile.h tests/unit/test.h
tests_unit_test_marks_LDADD = libruntimes.a libutil.a

check_PROGRAMS += tests/unit/test-hotspot
tests_unit_test_hotspot_SOURCES = tests/unit/test-hotspot.c tests/runtimes/recorded-hotspot.h tests/runtimes/recording.h \
	tests/unit/recorded-file.h tests/unit/recorded-process.h tests/unit/test.h
tests_unit_test_hotspot_LDADD = libruntimes.a libutil.a $(ZLIB_LIBS)

check_PROGRAMS += tests/unit/test-cpython
tests_unit_test_cpython_SOURCES = tests/unit/test-cpython.c tests/runtimes/recorded-chain.h \
	tests/runtimes/recording.h \
	tests/unit/recorded-file.h tests/unit/recorded-process.h tests/unit/test.h
tests_unit_test_cpython_LDADD = libruntimes.a libutil.a $(ZLIB_LIBS)

check_PROGRAMS += tests/unit/test-interp
tests_unit_test_interp_SOURCES = tests/unit/test-interp.c tests/runtimes/recorded-chain.h \
	tests/runtimes/recording.h tests/unit/recorded-file.h tests/unit/recorded-process.h tests/unit/test.h
tests_unit_test_interp_LDADD = libruntimes.a libutil.a $(ZLIB_LIBS)

check_PROGRAMS += tests/unit/test-v8
tests_unit_test_v8_SOURCES = tests/unit/test-v8.c tests/runtimes/recorded-v8.h tests/runtimes/recording.h \
	tests/unit/recorded-file.h tests/unit/recorded-process.h tests/unit/test.h
tests_unit_test_v8_LDADD = libruntimes.a libutil.a $(ZLIB_LIBS)

# What only aarch64 has, on any processor. Its programs were recorded under qemu-user, whose memory
# is theirs, by a recorder that has these files in the place of those of x86_64; Java's by a recorder
# of aarch64 in qemu-system-aarch64 with a kernel.
RUNTIMES_AARCH64 = runtimes/arch-aarch64.c runtimes/arch-hotspot-aarch64.c runtimes/arch-v8-aarch64.c
INTERP_RECORDED_AARCH64 = php-8.2-aarch64 ruby-2.7-aarch64 ruby-3.1-aarch64 ruby-3.3-aarch64
EXTRA_DIST += $(INTERP_RECORDED_AARCH64:%=tests/data/interp/%.gz) $(INTERP_RECORDED_AARCH64:%=tests/data/interp/%.expect)
check_PROGRAMS += tests/unit/test-interp-aarch64
tests_unit_test_interp_aarch64_SOURCES = tests/unit/test-interp.c $(RUNTIMES_AARCH64) \
	tests/runtimes/recorded-chain.h tests/runtimes/recording.h tests/unit/recorded-file.h \
	tests/unit/recorded-process.h tests/unit/test.h
tests_unit_test_interp_aarch64_CPPFLAGS = $(AM_CPPFLAGS) -DRECORDED_AARCH64
tests_unit_test_interp_aarch64_LDADD = libruntimes.a libutil.a $(ZLIB_LIBS)
EXTRA_PROGRAMS += tests/runtimes/record-aarch64
tests_runtimes_record_aarch64_SOURCES = $(tests_runtimes_record_SOURCES) $(RUNTIMES_AARCH64)
tests_runtimes_record_aarch64_CPPFLAGS = $(AM_CPPFLAGS)
tests_runtimes_record_aarch64_LDADD = libruntimes.a libutil.a $(ZLIB_LIBS)
CLEANFILES += tests/runtimes/record-aarch64$(EXEEXT)
HOTSPOT_RECORDED_AARCH64 = hotspot-17-aarch64 hotspot-21-aarch64
EXTRA_DIST += $(HOTSPOT_RECORDED_AARCH64:%=tests/data/runtimes/%.gz) $(HOTSPOT_RECORDED_AARCH64:%=tests/data/runtimes/%.expect)
check_PROGRAMS += tests/unit/test-hotspot-aarch64
tests_unit_test_hotspot_aarch64_SOURCES = $(tests_unit_test_hotspot_SOURCES) $(RUNTIMES_AARCH64)
tests_unit_test_hotspot_aarch64_CPPFLAGS = $(AM_CPPFLAGS) -DRECORDED_AARCH64
tests_unit_test_hotspot_aarch64_LDADD = libruntimes.a libutil.a $(ZLIB_LIBS)
check_PROGRAMS += tests/unit/test-runtimes-aarch64
tests_unit_test_runtimes_aarch64_SOURCES = tests/unit/test-runtimes-aarch64.c $(RUNTIMES_AARCH64) tests/unit/test.h
tests_unit_test_runtimes_aarch64_CPPFLAGS = $(AM_CPPFLAGS)
tests_unit_test_runtimes_aarch64_LDADD = libruntimes.a libutil.a

check_PROGRAMS += tests/unit/test-node-context
tests_unit_test_node_context_SOURCES = tests/unit/test-node-context.c tests/unit/test.h
tests_unit_test_node_context_LDADD = libruntimes.a libutil.a

check_PROGRAMS += tests/unit/test-thread-context
tests_unit_test_thread_context_SOURCES = tests/unit/test-thread-context.c tests/unit/test.h
tests_unit_test_thread_context_LDADD = libruntimes.a libutil.a
tests_unit_test_thread_context_LDFLAGS = $(AM_LDFLAGS) -rdynamic -pthread

check_PROGRAMS += tests/unit/test-go-labels
tests_unit_test_go_labels_SOURCES = tests/unit/test-go-labels.c tests/unit/test.h
tests_unit_test_go_labels_LDADD = libruntimes.a libutil.a

# make bench-runtimes: what a stack of an interpreter costs. Not part of make check.
EXTRA_PROGRAMS += tests/bench/runtimes-bench
tests_bench_runtimes_bench_SOURCES = tests/bench/runtimes.c
tests_bench_runtimes_bench_LDADD = libruntimes.a libutil.a
CLEANFILES += tests/bench/runtimes-bench$(EXEEXT)

.PHONY: bench-runtimes
bench-runtimes: tests/bench/runtimes-bench$(EXEEXT)
	python3 $(srcdir)/tests/bench/runtimes.py ./tests/bench/runtimes-bench$(EXEEXT)
