noinst_LIBRARIES += libbroker.a
libbroker_a_SOURCES = \
	src/broker/strikes.c src/broker/strikes.h \
	src/broker/supervisor.c src/broker/supervisor.h

check_PROGRAMS += tests/unit/test-supervisor
tests_unit_test_supervisor_SOURCES = tests/unit/test-supervisor.c tests/unit/test.h
tests_unit_test_supervisor_LDADD = libbroker.a libopener.a libprocess.a libutil.a
