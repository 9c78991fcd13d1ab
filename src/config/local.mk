noinst_LIBRARIES += libconfig.a
libconfig_a_SOURCES = \
	src/config/check.c src/config/check.h \
	src/config/config.c src/config/config.h \
	src/config/environment.c \
	src/config/expected.c \
	src/config/file.c \
	src/config/filter.c \
	src/config/headers.c \
	src/config/print.c \
	src/config/reader.c src/config/reader.h \
	src/config/store.c \
	src/config/table.c src/config/table.h \
	src/config/value.c

check_PROGRAMS += tests/unit/test-config
tests_unit_test_config_SOURCES = tests/unit/test-config.c tests/unit/test.h
tests_unit_test_config_LDADD = libconfig.a libutil.a $(INIH_LIBS)
