noinst_LIBRARIES += libproto.a libproto-gen.a

proto_files = \
	proto/kept-memory.proto \
	proto/otlp-common.proto \
	proto/otlp-resource.proto \
	proto/otlp-profiles.proto \
	proto/otlp-profiles-service.proto \
	proto/pprof.proto \
	proto/rpc-status.proto
proto_generated = $(proto_files:.proto=.pb-c.c) $(proto_files:.proto=.pb-c.h)

# What protoc-c writes is compiled without warnings of ours: it is not our style to judge.
nodist_libproto_gen_a_SOURCES = $(proto_generated)
libproto_gen_a_CFLAGS = $(AM_CFLAGS) -w

libproto_a_SOURCES = \
	proto/otlp-dictionary.c proto/otlp-dictionary.h \
	proto/otlp-json.c proto/otlp-json.h \
	proto/otlp-merge.c proto/otlp-merge.h \
	proto/otlp-time.c proto/otlp-time.h \
	proto/otlp-response.c proto/otlp-response.h \
	proto/otlp-rewrite.c proto/otlp-rewrite.h \
	proto/process-context.c proto/process-context.h \
	proto/wire-read.h \
	proto/wire-write.c proto/wire-write.h

# One run writes both files; a pattern rule with two targets says so to every GNU make.
proto/%.pb-c.c proto/%.pb-c.h: $(srcdir)/proto/%.proto
	$(AM_V_GEN)$(MKDIR_P) proto && $(PROTOC_C) -I$(srcdir) --c_out=. $(srcdir)/proto/$*.proto

BUILT_SOURCES += $(proto_generated)
CLEANFILES += $(proto_generated)
EXTRA_DIST += $(proto_files)

check_PROGRAMS += tests/unit/test-otlp-response
tests_unit_test_otlp_response_SOURCES = tests/unit/test-otlp-response.c tests/unit/test.h
tests_unit_test_otlp_response_LDADD = libproto.a libproto-gen.a libutil.a $(PROTOBUF_C_LIBS)

check_PROGRAMS += tests/unit/test-process-context
tests_unit_test_process_context_SOURCES = tests/unit/test-process-context.c tests/unit/test.h
tests_unit_test_process_context_LDADD = libproto.a libutil.a
