# sources of src/sample/
noinst_LIBRARIES += libsample.a
libsample_a_SOURCES = \
	src/sample/arch.h \
	src/sample/decode.c src/sample/decode.h \
	src/sample/event-name.c \
	src/sample/event.c src/sample/event.h \
	src/sample/explain-tracepoint.c \
	src/sample/explain.c \
	src/sample/ledger.c src/sample/ledger.h \
	src/sample/merge.c src/sample/merge.h \
	src/sample/number.c \
	src/sample/peek.c src/sample/peek.h \
	src/sample/probe.c \
	src/sample/ring.c \
	src/sample/sample.h \
	src/sample/selfcheck.c \
	src/sample/source.c src/sample/source.h \
	src/sample/stack-size.c src/sample/stack-size.h \
	src/sample/switch.c src/sample/switch.h \
	src/sample/tracepoint.c src/sample/tracepoint.h \
	src/sample/uprobe.c src/sample/uprobe.h

if AARCH64
libsample_a_SOURCES += src/sample/arch-aarch64.c
endif
if RISCV64
libsample_a_SOURCES += src/sample/arch-riscv64.c
endif
if X86_64
libsample_a_SOURCES += src/sample/arch-x86_64.c
endif

check_PROGRAMS += \
	tests/unit/test-arch \
	tests/unit/test-decode \
	tests/unit/test-event-name \
	tests/unit/test-explain \
	tests/unit/test-ledger \
	tests/unit/test-merge \
	tests/unit/test-sample-live
tests_unit_test_arch_SOURCES = tests/unit/test-arch.c tests/unit/test.h
tests_unit_test_arch_LDADD = libsample.a libunwind.a libutil.a $(ELFUTILS_LIBS) $(ZLIB_LIBS)
tests_unit_test_decode_SOURCES = tests/unit/test-decode.c tests/unit/test.h
tests_unit_test_decode_LDADD = libsample.a libutil.a
tests_unit_test_event_name_SOURCES = tests/unit/test-event-name.c tests/unit/test.h
tests_unit_test_event_name_LDADD = libsample.a libutil.a
tests_unit_test_explain_SOURCES = tests/unit/test-explain.c tests/unit/test.h
tests_unit_test_explain_LDADD = libsample.a libutil.a
tests_unit_test_ledger_SOURCES = tests/unit/test-ledger.c tests/unit/test.h
tests_unit_test_ledger_LDADD = libsample.a libutil.a
tests_unit_test_merge_SOURCES = tests/unit/test-merge.c tests/unit/test.h
tests_unit_test_merge_LDADD = libsample.a libutil.a
tests_unit_test_sample_live_SOURCES = tests/unit/test-sample-live.c tests/unit/test.h
tests_unit_test_sample_live_LDADD = libsample.a libutil.a

check_PROGRAMS += tests/unit/test-switch-live
tests_unit_test_switch_live_SOURCES = tests/unit/test-switch-live.c tests/unit/test.h \
	tests/unit/tracefs.h
tests_unit_test_switch_live_LDADD = libsample.a libutil.a

check_PROGRAMS += tests/unit/test-stack-size
tests_unit_test_stack_size_SOURCES = tests/unit/test-stack-size.c tests/unit/test.h
tests_unit_test_stack_size_LDADD = libsample.a libutil.a

check_PROGRAMS += tests/unit/test-tracepoint
tests_unit_test_tracepoint_SOURCES = tests/unit/test-tracepoint.c tests/unit/test.h \
	tests/unit/tracefs.h
tests_unit_test_tracepoint_LDADD = libsample.a libutil.a

check_PROGRAMS += tests/unit/test-peek
tests_unit_test_peek_SOURCES = tests/unit/test-peek.c tests/unit/test.h
tests_unit_test_peek_LDADD = libsample.a libutil.a

# make bench-switch-prices: what it costs the kernel, by what is recorded.
EXTRA_PROGRAMS += tests/bench/switch-prices-bench
tests_bench_switch_prices_bench_SOURCES = tests/bench/switch-prices.c
tests_bench_switch_prices_bench_LDADD = libsample.a libutil.a
CLEANFILES += tests/bench/switch-prices-bench$(EXEEXT)
.PHONY: bench-switch-prices
bench-switch-prices: tests/bench/switch-prices-bench$(EXEEXT)
	tests/bench/switch-prices-bench$(EXEEXT) $${PAIRS:-100}
