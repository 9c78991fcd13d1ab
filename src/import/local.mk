# sources of src/import/
noinst_LIBRARIES += libimport.a
libimport_a_SOURCES = \
	src/import/builder.c src/import/builder.h \
	src/import/damaged.c \
	src/import/folded.c \
	src/import/import.c src/import/import.h \
	src/import/otlp.c src/import/otlp-internal.h \
	src/import/otlp-fields.c \
	src/import/otlp-memory.c \
	src/import/otlp-frames.c \
	src/import/otlp-resource.c \
	src/import/pprof.c src/import/pprof-internal.h \
	src/import/pprof-prune.c src/import/pprof-prune.h \
	src/import/pprof-samples.c \
	src/import/pprof-values.c \
	src/import/values.c

check_PROGRAMS += tests/unit/test-import
tests_unit_test_import_SOURCES = tests/unit/test-import.c $(render_synthetic)
tests_unit_test_import_LDADD = libimport.a $(render_libs)

# The fuzz targets over the files that are kept.
check_PROGRAMS += tests/fuzz/replay-import
tests_fuzz_replay_import_SOURCES = tests/fuzz/fuzz-import.c tests/fuzz/replay.h
tests_fuzz_replay_import_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-import"'
tests_fuzz_replay_import_LDADD = libimport.a $(render_libs)
EXTRA_DIST += \
	tests/fuzz/corpus-import/folded \
	tests/fuzz/corpus-import/folded-odd \
	tests/fuzz/corpus-import/otlp \
	tests/fuzz/corpus-import/otlp-collector \
	tests/fuzz/corpus-import/otlp-long \
	tests/fuzz/corpus-import/otlp-out-of-range \
	tests/fuzz/corpus-import/pprof \
	tests/fuzz/corpus-import/pprof-gz \
	tests/fuzz/corpus-import/pprof-self-reference
