noinst_LIBRARIES += libopener.a
libopener_a_SOURCES = \
	src/opener/allocators.c src/opener/allocators.h \
	src/opener/asked.c \
	src/opener/blocked.c \
	src/opener/container-state.c \
	src/opener/contents.c \
	src/opener/context.c \
	src/opener/debug.c \
	src/opener/filesystems.c \
	src/opener/helper.c src/opener/helper.h src/opener/helper-main.c \
	src/opener/internal.h \
	src/opener/judge.c src/opener/judge.h \
	src/opener/listener.c src/opener/listener.h \
	src/opener/mapped.c \
	src/opener/memory.c \
	src/opener/mount-line.c src/opener/mount-line.h \
	src/opener/mounts.c \
	src/opener/opener.c src/opener/opener.h \
	src/opener/proc.c \
	src/opener/resolve.c \
	src/opener/state-dir.c src/opener/state-dir.h \
	src/opener/stuck.c src/opener/stuck.h \
	src/opener/wait.c

check_PROGRAMS += tests/unit/test-stuck
tests_unit_test_stuck_SOURCES = tests/unit/test-stuck.c tests/unit/test.h
tests_unit_test_stuck_LDADD = libopener.a libprocess.a libutil.a
check_PROGRAMS += tests/unit/test-allocator-files
tests_unit_test_allocator_files_SOURCES = tests/unit/test-allocator-files.c \
	tests/unit/fuse-file.h tests/unit/test.h
tests_unit_test_allocator_files_LDADD = libopener.a libprocess.a libutil.a
check_PROGRAMS += tests/unit/test-opener tests/unit/test-mounts tests/unit/test-context
tests_unit_test_context_SOURCES = tests/unit/test-context.c tests/unit/context-publisher.h tests/unit/test.h
tests_unit_test_context_LDADD = libopener.a libprocess.a libutil.a
tests_unit_test_opener_SOURCES = tests/unit/test-opener.c tests/unit/test.h
tests_unit_test_opener_LDADD = libopener.a libprocess.a libutil.a
tests_unit_test_mounts_SOURCES = tests/unit/test-mounts.c tests/unit/fuse-file.h \
	tests/unit/mounts-child.h tests/unit/test.h
tests_unit_test_mounts_LDADD = libopener.a libprocess.a libutil.a
check_PROGRAMS += tests/unit/test-judge
tests_unit_test_judge_SOURCES = tests/unit/test-judge.c tests/unit/compile.h tests/unit/test.h
tests_unit_test_judge_LDADD = libopener.a libjudge.a libprocess.a libruntimes.a libutil.a
