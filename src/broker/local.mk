noinst_LIBRARIES += libbroker.a
libbroker_a_SOURCES = \
	src/broker/answer.c src/broker/answer.h \
	src/broker/blame.c src/broker/blame.h \
	src/broker/broker.c src/broker/broker.h \
	src/broker/budget.c \
	src/broker/cloud.c src/broker/cloud.h \
	src/broker/copies.c \
	src/broker/child.c src/broker/child.h \
	src/broker/children.c src/broker/children.h \
	src/broker/control.c src/broker/control.h \
	src/broker/custody.c src/broker/custody.h \
	src/broker/effort.c src/broker/effort.h \
	src/broker/event-budget.c src/broker/event-budget.h \
	src/broker/events.c src/broker/events.h \
	src/broker/fetch.c \
	src/broker/foresee.c \
	src/broker/filter-texts.c src/broker/filter-texts.h \
	src/broker/governor.c src/broker/governor.h \
	src/broker/internal.h \
	src/broker/set-aside.c \
	src/broker/limits.c src/broker/limits.h \
	src/broker/peers.c src/broker/peers.h \
	src/broker/quarantine.c src/broker/quarantine.h \
	src/broker/readers.c \
	src/broker/sampling.c \
	src/broker/seen.c src/broker/seen.h \
	src/broker/setup.c \
	src/broker/stands.c \
	src/broker/statistics.c \
	src/broker/status.c \
	src/broker/strikes.c src/broker/strikes.h \
	src/broker/strikes-file.c src/broker/strikes-file.h \
	src/broker/supervisor.c src/broker/supervisor.h \
	src/broker/targets.c \
	src/broker/tasks.c src/broker/tasks.h \
	src/broker/timers.c \
	src/broker/turns.c \
	src/broker/undead.c src/broker/undead.h \
	src/broker/users.c

check_PROGRAMS += tests/unit/test-supervisor
tests_unit_test_supervisor_SOURCES = tests/unit/test-supervisor.c tests/unit/child-loop.h tests/unit/test.h
tests_unit_test_supervisor_LDADD = libbroker.a libconfig.a libopener.a libprocess.a libsample.a \
	libprofile.a libutil.a $(INIH_LIBS)

check_PROGRAMS += tests/unit/test-seen
tests_unit_test_seen_SOURCES = tests/unit/test-seen.c tests/unit/test.h
tests_unit_test_seen_LDADD = libbroker.a libprocess.a libutil.a

check_PROGRAMS += tests/unit/test-control
tests_unit_test_control_SOURCES = tests/unit/test-control.c tests/unit/test.h
tests_unit_test_control_LDADD = libbroker.a libopener.a libprocess.a libutil.a

check_PROGRAMS += tests/unit/test-custody
tests_unit_test_custody_SOURCES = tests/unit/test-custody.c tests/unit/test.h
tests_unit_test_custody_LDADD = libbroker.a libutil.a

check_PROGRAMS += tests/unit/test-tasks
tests_unit_test_tasks_SOURCES = tests/unit/test-tasks.c tests/unit/test.h
tests_unit_test_tasks_LDADD = libbroker.a libutil.a

check_PROGRAMS += tests/unit/test-peers
tests_unit_test_peers_SOURCES = tests/unit/test-peers.c tests/unit/child-loop.h tests/unit/test.h
tests_unit_test_peers_LDADD = $(tests_unit_test_supervisor_LDADD)

check_PROGRAMS += tests/unit/test-broker-tree
tests_unit_test_broker_tree_SOURCES = tests/unit/test-broker-tree.c tests/unit/child-loop.h tests/unit/test.h
tests_unit_test_broker_tree_LDADD = $(tests_unit_test_supervisor_LDADD)

check_PROGRAMS += tests/unit/test-filter
tests_unit_test_filter_SOURCES = tests/unit/test-filter.c tests/unit/test.h
tests_unit_test_filter_LDADD = libbroker.a libprocess.a libconfig.a libutil.a $(INIH_LIBS)

check_PROGRAMS += tests/unit/test-limits
tests_unit_test_limits_SOURCES = tests/unit/test-limits.c tests/unit/test.h
tests_unit_test_limits_LDADD = $(tests_unit_test_supervisor_LDADD)

check_PROGRAMS += tests/unit/test-governor
tests_unit_test_governor_SOURCES = tests/unit/test-governor.c tests/unit/test.h
tests_unit_test_governor_LDADD = libbroker.a
