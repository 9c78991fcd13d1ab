noinst_LIBRARIES += libutil.a
libutil_a_SOURCES = \
	util/address.c util/address.h \
	util/array.h \
	util/bisect.h \
	util/cleanup.h \
	util/clock.h \
	util/confidence.c util/confidence.h \
	util/cursor.h \
	util/disk-reserve.c util/disk-reserve.h \
	util/ensure.h \
	util/file-identity.c util/file-identity.h \
	util/fdmsg.c util/fdmsg.h \
	util/go-functions.c util/go-functions.h \
	util/globs.c util/globs.h \
	util/go-module.c util/go-module.h \
	util/hash.c util/hash.h \
	util/heap.c util/heap.h \
	util/json.c util/json.h \
	util/json-read.c util/json-read.h \
	util/library.c util/library.h \
	util/log.c util/log.h \
	util/loop.c util/loop.h \
	util/mapped-file.c util/mapped-file.h \
	util/memory-file.c util/memory-file.h \
	util/notes.c util/notes.h \
	util/runtime-files.c util/runtime-files.h util/runtime-rows.h \
	util/strtab.c util/strtab.h \
	util/text.c util/text.h \
	util/ticks.c util/ticks.h \
	util/time-share.c util/time-share.h

check_PROGRAMS += tests/unit/test-util tests/unit/test-notes
tests_unit_test_util_SOURCES = tests/unit/test-util.c tests/unit/test.h
tests_unit_test_util_LDADD = libutil.a
check_PROGRAMS += tests/unit/test-runtime-files
tests_unit_test_runtime_files_SOURCES = tests/unit/test-runtime-files.c tests/unit/test.h
tests_unit_test_runtime_files_LDADD = libutil.a
tests_unit_test_notes_SOURCES = tests/unit/test-notes.c tests/unit/test.h
tests_unit_test_notes_LDADD = libutil.a $(ELFUTILS_LIBS)

check_PROGRAMS += tests/unit/test-heap
tests_unit_test_heap_SOURCES = tests/unit/test-heap.c tests/unit/test.h
tests_unit_test_heap_LDADD = libutil.a

check_PROGRAMS += tests/unit/test-ticks
tests_unit_test_ticks_SOURCES = tests/unit/test-ticks.c tests/unit/test.h
tests_unit_test_ticks_LDADD = libutil.a -lm

check_PROGRAMS += tests/unit/test-confidence
tests_unit_test_confidence_SOURCES = tests/unit/test-confidence.c tests/unit/test.h
tests_unit_test_confidence_LDADD = libutil.a
