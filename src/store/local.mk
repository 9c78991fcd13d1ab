noinst_LIBRARIES += libstore.a
libstore_a_SOURCES = \
	src/store/name.c src/store/name.h \
	src/store/stored.c src/store/stored.h

check_PROGRAMS += tests/unit/test-store
tests_unit_test_store_SOURCES = tests/unit/test-store.c tests/unit/test.h
tests_unit_test_store_LDADD = libstore.a libutil.a
