# SPDX-License-Identifier: Apache-2.0
# Frames of interpreters and of code that is compiled at run time, through reads of memory.
RUNTIMES_SOURCES = \
	runtimes/image.c \
	runtimes/image.h \
	runtimes/memory.c \
	runtimes/memory.h

noinst_LIBRARIES += libruntimes.a
libruntimes_a_SOURCES = $(RUNTIMES_SOURCES)

check_PROGRAMS += tests/unit/test-runtimes
tests_unit_test_runtimes_SOURCES = tests/unit/test-runtimes.c tests/unit/test.h
tests_unit_test_runtimes_LDADD = libruntimes.a libutil.a -ldl
