# libcurl is loaded when it is needed (src/http/curl.h), so nothing here links with it.
noinst_LIBRARIES += libexport.a
libexport_a_SOURCES = \
	src/export/backlog.c \
	src/export/body.c \
	src/export/destination.c \
	src/export/encoding.c src/export/encoding.h \
	src/export/export.h \
	src/export/exporter.c \
	src/export/grpc.c src/export/grpc.h \
	src/export/internal.h \
	src/export/payload.c src/export/payload.h \
	src/export/report.c \
	src/export/request.c \
	src/export/retry.c \
	src/export/route.c \
	src/export/schema.h \
	src/export/split.c \
	src/export/spool.c src/export/spool.h \
	src/export/spool-file.c src/export/spool-file.h \
	src/export/store.c src/export/store.h

check_PROGRAMS += tests/unit/test-export
tests_unit_test_export_SOURCES = tests/unit/test-export.c tests/unit/test.h
tests_unit_test_export_LDADD = libexport.a libhttp.a libproto.a libproto-gen.a libutil.a \
	$(PROTOBUF_C_LIBS) $(ZLIB_LIBS) $(ZSTD_LIBS) $(NETTLE_LIBS) -ldl

check_PROGRAMS += tests/unit/test-spool
tests_unit_test_spool_SOURCES = tests/unit/test-spool.c tests/unit/test.h
tests_unit_test_spool_LDADD = libexport.a libhttp.a libproto.a libproto-gen.a libutil.a \
	$(PROTOBUF_C_LIBS) $(ZLIB_LIBS) $(ZSTD_LIBS) $(NETTLE_LIBS) -ldl
