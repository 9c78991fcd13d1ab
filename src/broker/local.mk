noinst_LIBRARIES += libbroker.a
libbroker_a_SOURCES = \
	src/broker/container-state.c \
	src/broker/listener.c src/broker/listener.h \
	src/broker/opener.c src/broker/opener.h \
	src/broker/opener-contents.c \
	src/broker/opener-debug.c src/broker/opener-internal.h \
	src/broker/opener-resolve.c \
	src/broker/state-dir.c src/broker/state-dir.h \
	src/broker/strikes.c src/broker/strikes.h \
	src/broker/supervisor.c src/broker/supervisor.h

check_PROGRAMS += tests/unit/test-broker
tests_unit_test_broker_SOURCES = tests/unit/test-broker.c tests/unit/test.h
tests_unit_test_broker_LDADD = libbroker.a libprocess.a libutil.a

check_PROGRAMS += tests/unit/test-supervisor
tests_unit_test_supervisor_SOURCES = tests/unit/test-supervisor.c tests/unit/test.h
tests_unit_test_supervisor_LDADD = libbroker.a libprocess.a libutil.a
