# libcurl is loaded when it is needed (src/http/curl.h), so nothing here links with it.
noinst_LIBRARIES += libexporter.a
libexporter_a_SOURCES = \
	src/exporter/backlog.c \
	src/exporter/body.c \
	src/exporter/destination.c \
	src/exporter/encoding.c src/exporter/encoding.h \
	src/exporter/entry.c \
	src/exporter/export.h \
	src/exporter/exporter.c \
	src/exporter/grpc.c src/exporter/grpc.h \
	src/exporter/internal.h \
	src/exporter/main.c \
	src/exporter/payload.c src/exporter/payload.h \
	src/exporter/report.c \
	src/exporter/request.c \
	src/exporter/retry.c \
	src/exporter/route.c \
	src/exporter/schema.h \
	src/exporter/setup.h \
	src/exporter/split.c \
	src/exporter/spool.c src/exporter/spool.h \
	src/exporter/spool-file.c src/exporter/spool-file.h \
	src/exporter/store.c src/exporter/store.h

check_PROGRAMS += tests/unit/test-export
tests_unit_test_export_SOURCES = tests/unit/test-export.c tests/unit/test.h
tests_unit_test_export_LDADD = libexporter.a libstore.a libhttp.a libprocess.a libproto.a \
	libproto-gen.a libutil.a $(PROTOBUF_C_LIBS) $(ZLIB_LIBS) $(ZSTD_LIBS) $(LIBDEFLATE_LIBS) \
	$(NETTLE_LIBS) -ldl

check_PROGRAMS += tests/unit/test-spool
tests_unit_test_spool_SOURCES = tests/unit/test-spool.c tests/unit/test.h
tests_unit_test_spool_LDADD = libexporter.a libstore.a libhttp.a libprocess.a libproto.a \
	libproto-gen.a libutil.a $(PROTOBUF_C_LIBS) $(ZLIB_LIBS) $(ZSTD_LIBS) $(LIBDEFLATE_LIBS) \
	$(NETTLE_LIBS) -ldl
