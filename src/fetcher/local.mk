noinst_LIBRARIES += libfetcher.a
libfetcher_a_SOURCES = \
	src/fetcher/debug-cache.c src/fetcher/debug-cache.h \
	src/fetcher/debuginfod.c src/fetcher/debuginfod.h \
	src/fetcher/main.c \
	src/fetcher/setup.h

check_PROGRAMS += tests/unit/test-debug-cache
tests_unit_test_debug_cache_SOURCES = tests/unit/test-debug-cache.c tests/unit/test.h
tests_unit_test_debug_cache_LDADD = libfetcher.a libutil.a

EXTRA_DIST += tests/unit/debug-server.py
check_PROGRAMS += tests/unit/test-debuginfod
tests_unit_test_debuginfod_SOURCES = tests/unit/test-debuginfod.c tests/unit/compile.h tests/unit/test.h
tests_unit_test_debuginfod_LDADD = libfetcher.a libhttp.a $(symbolize_test_libs) -ldl
