# sources of src/host/
noinst_LIBRARIES += libhost.a
libhost_a_SOURCES = \
	src/host/cgroup-path.c \
	src/host/cgroup.c \
	src/host/container-name.c \
	src/host/environment.c \
	src/host/file.c \
	src/host/host.c src/host/host.h \
	src/host/info.c \
	src/host/internal.h \
	src/host/maps-text.c \
	src/host/mapping.c \
	src/host/mapset.c \
	src/host/process.c \
	src/host/readable.c src/host/readable.h \
	src/host/rows.c \
	src/host/thread.c

check_PROGRAMS += tests/unit/test-readable
tests_unit_test_readable_SOURCES = tests/unit/test-readable.c tests/unit/test.h
tests_unit_test_readable_LDADD = libhost.a libutil.a

check_PROGRAMS += \
	tests/unit/test-host \
	tests/unit/test-host-proc \
	tests/unit/test-host-text \
	tests/unit/test-mapset
tests_unit_test_host_SOURCES = tests/unit/test-host.c tests/unit/test.h
tests_unit_test_host_LDADD = libhost.a libutil.a
tests_unit_test_host_proc_SOURCES = tests/unit/test-host-proc.c tests/unit/test.h
tests_unit_test_host_proc_LDADD = libhost.a libutil.a
tests_unit_test_host_text_SOURCES = tests/unit/test-host-text.c tests/unit/test.h
tests_unit_test_host_text_LDADD = libhost.a libutil.a
tests_unit_test_mapset_SOURCES = tests/unit/test-mapset.c tests/unit/test.h
tests_unit_test_mapset_LDADD = libhost.a libutil.a
