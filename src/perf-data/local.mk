noinst_LIBRARIES += libperf-data.a
libperf_data_a_SOURCES = \
	src/perf-data/attr.c \
	src/perf-data/feature.c \
	src/perf-data/inflate.c \
	src/perf-data/internal.h \
	src/perf-data/order.c \
	src/perf-data/perf-data.c src/perf-data/perf-data.h \
	src/perf-data/read.c \
	src/perf-data/step.c

check_PROGRAMS += tests/unit/test-perf-data
tests_unit_test_perf_data_SOURCES = tests/unit/test-perf-data.c tests/unit/test.h
tests_unit_test_perf_data_LDADD = libperf-data.a libsample.a libutil.a $(SYMBOLIZE_LIBS)

check_PROGRAMS += tests/fuzz/replay-perf-data
tests_fuzz_replay_perf_data_SOURCES = tests/fuzz/fuzz-perf-data.c tests/fuzz/replay.h
tests_fuzz_replay_perf_data_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-perf-data"'
tests_fuzz_replay_perf_data_LDADD = libperf-data.a libsample.a libutil.a $(SYMBOLIZE_LIBS)

EXTRA_DIST += \
	tests/bench/perfdata.py \
	tests/fuzz/corpus-perf-data/file \
	tests/fuzz/corpus-perf-data/pipe \
	tests/fuzz/corpus-perf-data/zstd
