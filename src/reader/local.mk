noinst_LIBRARIES += libreader.a
libreader_a_SOURCES = \
	src/reader/clients.c src/reader/clients.h \
	src/reader/constants.c src/reader/constants.h \
	src/reader/contexts.c src/reader/contexts.h \
	src/reader/go-threads.c src/reader/go-threads.h \
	src/reader/instants.c src/reader/instants.h \
	src/reader/main.c \
	src/reader/moment.c src/reader/moment.h \
	src/reader/musl-threads.c src/reader/musl-threads.h \
	src/reader/own-tids.c src/reader/own-tids.h \
	src/reader/thread-stat.c src/reader/thread-stat.h \
	src/reader/setup.h \
	src/reader/teller.c src/reader/teller.h

check_PROGRAMS += tests/unit/test-teller
tests_unit_test_teller_SOURCES = tests/unit/test-teller.c tests/unit/test.h
tests_unit_test_teller_LDADD = libreader.a libprocess.a libutil.a

check_PROGRAMS += tests/unit/test-moment
tests_unit_test_moment_SOURCES = tests/unit/test-moment.c tests/unit/test.h
tests_unit_test_moment_LDADD = libreader.a libutil.a

check_PROGRAMS += tests/unit/test-instants
tests_unit_test_instants_SOURCES = tests/unit/test-instants.c tests/unit/test.h
tests_unit_test_instants_LDADD = libreader.a -lm

check_PROGRAMS += tests/unit/test-musl-threads
tests_unit_test_musl_threads_SOURCES = tests/unit/test-musl-threads.c tests/unit/test.h
tests_unit_test_musl_threads_LDADD = libreader.a libruntimes.a libutil.a

check_PROGRAMS += tests/unit/test-own-tids
tests_unit_test_own_tids_SOURCES = tests/unit/test-own-tids.c tests/unit/test.h
tests_unit_test_own_tids_LDADD = libreader.a libutil.a

check_PROGRAMS += tests/unit/test-clients
tests_unit_test_clients_SOURCES = tests/unit/test-clients.c tests/runtimes/recording.h \
	tests/unit/recorded-file.h tests/unit/test.h
tests_unit_test_clients_LDADD = libreader.a libprocess.a libhost.a libruntimes.a libutil.a $(ZLIB_LIBS)
tests_unit_test_clients_LDFLAGS = $(AM_LDFLAGS) -rdynamic

check_PROGRAMS += tests/unit/test-contexts
tests_unit_test_contexts_SOURCES = tests/unit/test-contexts.c tests/unit/fake-stat.h \
	tests/unit/test.h
tests_unit_test_contexts_LDADD = libreader.a libruntimes.a libutil.a

check_PROGRAMS += tests/unit/test-thread-stat
tests_unit_test_thread_stat_SOURCES = tests/unit/test-thread-stat.c tests/unit/fake-stat.h \
	tests/unit/test.h
tests_unit_test_thread_stat_LDADD = libreader.a libutil.a

check_PROGRAMS += tests/unit/test-constants
tests_unit_test_constants_SOURCES = tests/unit/test-constants.c tests/unit/test.h
tests_unit_test_constants_LDADD = libreader.a libutil.a

check_PROGRAMS += tests/unit/test-go-threads
tests_unit_test_go_threads_SOURCES = tests/unit/test-go-threads.c tests/unit/fake-stat.h \
	tests/unit/test.h
tests_unit_test_go_threads_LDADD = libreader.a libruntimes.a libutil.a

# make bench-spans: what the span of a sample costs. Not part of make check.
EXTRA_PROGRAMS += tests/bench/spans-bench
tests_bench_spans_bench_SOURCES = tests/bench/spans.c
tests_bench_spans_bench_LDADD = libreader.a libruntimes.a libutil.a
CLEANFILES += tests/bench/spans-bench$(EXEEXT)

.PHONY: bench-spans
bench-spans: tests/bench/spans-bench$(EXEEXT)
	./tests/bench/spans-bench$(EXEEXT)
