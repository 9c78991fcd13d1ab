noinst_LIBRARIES += libprocess.a
libprocess_a_SOURCES = \
	src/process/ask.c src/process/ask.h \
	src/process/file-identity.c src/process/file-identity.h \
	src/process/message.c src/process/message.h \
	src/process/outbox.c src/process/outbox.h \
	src/process/privileges.c src/process/privileges.h \
	src/process/role.c src/process/role.h \
	src/process/sandbox.c src/process/sandbox.h \
	src/process/sandbox-calls.c src/process/sandbox-internal.h \
	src/process/sandbox-program.c \
	src/process/setup.c src/process/setup.h \
	src/process/statistics.c src/process/statistics.h \
	src/process/status-page.c src/process/status-page.h

check_PROGRAMS += tests/unit/test-outbox
tests_unit_test_outbox_SOURCES = tests/unit/test-outbox.c tests/unit/test.h
tests_unit_test_outbox_LDADD = libprocess.a libutil.a

check_PROGRAMS += tests/unit/test-sandbox
tests_unit_test_sandbox_SOURCES = tests/unit/test-sandbox.c tests/unit/test.h
tests_unit_test_sandbox_LDADD = libprocess.a libutil.a
