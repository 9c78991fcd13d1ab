noinst_LIBRARIES += libsymbolizer.a
libsymbolizer_a_SOURCES = \
	src/symbolizer/arrivals.c src/symbolizer/arrivals.h \
	src/symbolizer/code-names.c src/symbolizer/code-names.h \
	src/symbolizer/counted.c src/symbolizer/counted.h \
	src/symbolizer/debug-runtime.c \
	src/symbolizer/debug-show.c src/symbolizer/debug-show.h \
	src/symbolizer/file-compare.c src/symbolizer/file-compare.h \
	src/symbolizer/file-names.c src/symbolizer/file-names.h \
	src/symbolizer/function-rows.c src/symbolizer/function-rows.h \
	src/symbolizer/idle.c src/symbolizer/idle.h \
	src/symbolizer/internal.h \
	src/symbolizer/kernel-names.c src/symbolizer/kernel-names.h \
	src/symbolizer/live.c src/symbolizer/live.h \
	src/symbolizer/main.c \
	src/symbolizer/namer.c src/symbolizer/namer.h \
	src/symbolizer/payloads.c src/symbolizer/payloads.h \
	src/symbolizer/results.c \
	src/symbolizer/setup.h \
	src/symbolizer/viewer.c src/symbolizer/viewer.h \
	src/symbolizer/wait-reasons.c src/symbolizer/wait-reasons.h \
	src/symbolizer/wanted.c src/symbolizer/wanted.h \
	src/symbolizer/windows.c

check_PROGRAMS += tests/unit/test-kernel-names
tests_unit_test_kernel_names_SOURCES = tests/unit/test-kernel-names.c tests/unit/test.h
tests_unit_test_kernel_names_LDADD = libsymbolizer.a libsymbolize.a libutil.a $(SYMBOLIZE_LIBS)

check_PROGRAMS += tests/unit/test-code-names
tests_unit_test_code_names_SOURCES = tests/unit/test-code-names.c tests/unit/test.h \
	tests/unit/jitdump-file.h
tests_unit_test_code_names_LDADD = libsymbolizer.a libprocess.a libsymbolize.a libutil.a \
	$(SYMBOLIZE_LIBS)

check_PROGRAMS += tests/unit/test-file-names
tests_unit_test_file_names_SOURCES = tests/unit/test-file-names.c tests/unit/lookup.h tests/unit/nm.h \
	tests/unit/test.h
tests_unit_test_file_names_LDADD = libsymbolizer.a libprocess.a libsymbolize.a libutil.a \
	$(SYMBOLIZE_LIBS)

check_PROGRAMS += tests/unit/test-namer
tests_unit_test_namer_SOURCES = tests/unit/test-namer.c tests/unit/nm.h tests/unit/test.h
tests_unit_test_namer_LDADD = libsymbolizer.a libprocess.a libsymbolize.a libprofile.a libutil.a \
	$(SYMBOLIZE_LIBS)

check_PROGRAMS += tests/unit/test-arrivals
tests_unit_test_arrivals_SOURCES = tests/unit/test-arrivals.c tests/unit/test.h
tests_unit_test_arrivals_LDADD = libsymbolizer.a

check_PROGRAMS += tests/unit/test-symbolizer
tests_unit_test_symbolizer_SOURCES = tests/unit/test-symbolizer.c tests/unit/test.h
tests_unit_test_symbolizer_LDADD = libsymbolizer.a libscreen.a libimport.a librender.a libprocess.a \
	libprofile.a libsymbolize.a libunwind.a libruntimes.a libproto.a libproto-gen.a libutil.a \
	$(ELFUTILS_LIBS) $(PROTOBUF_C_LIBS) $(SYMBOLIZE_LIBS) $(NCURSES_LIBS) -ldl

check_PROGRAMS += tests/unit/test-idle
tests_unit_test_idle_SOURCES = tests/unit/test-idle.c tests/unit/test.h
tests_unit_test_idle_LDADD = libsymbolizer.a libprofile.a libutil.a

check_PROGRAMS += tests/unit/test-wait-reasons
tests_unit_test_wait_reasons_SOURCES = tests/unit/test-wait-reasons.c tests/unit/test.h
tests_unit_test_wait_reasons_LDADD = libsymbolizer.a libprofile.a libutil.a
