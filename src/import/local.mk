noinst_LIBRARIES += libimport.a
libimport_a_SOURCES = \
	src/import/builder.c src/import/builder.h \
	src/import/folded.c \
	src/import/import.c src/import/import.h \
	src/import/otlp.c \
	src/import/pprof.c

check_PROGRAMS += tests/unit/test-import
tests_unit_test_import_SOURCES = tests/unit/test-import.c $(render_synthetic)
tests_unit_test_import_LDADD = libimport.a $(render_libs)
