noinst_LIBRARIES += libmetrics.a
libmetrics_a_SOURCES = \
	src/metrics/exposition.c src/metrics/exposition.h \
	src/metrics/health.c src/metrics/health.h \
	src/metrics/main.c \
	src/metrics/pulls.c src/metrics/pulls.h \
	src/metrics/setup.h

check_PROGRAMS += tests/unit/test-exposition
tests_unit_test_exposition_SOURCES = tests/unit/test-exposition.c tests/unit/test.h
tests_unit_test_exposition_LDADD = libmetrics.a libprocess.a libprofile.a libutil.a

check_PROGRAMS += tests/unit/test-health
tests_unit_test_health_SOURCES = tests/unit/test-health.c tests/unit/test.h
tests_unit_test_health_LDADD = libmetrics.a libutil.a

check_PROGRAMS += tests/unit/test-pulls
tests_unit_test_pulls_SOURCES = tests/unit/test-pulls.c tests/unit/synthetic.c tests/unit/synthetic.h tests/unit/test.h
tests_unit_test_pulls_LDADD = libmetrics.a libhttp.a libimport.a librender.a libprocess.a libprofile.a \
	libproto.a libproto-gen.a libutil.a $(PROTOBUF_C_LIBS) $(ZLIB_LIBS) $(NETTLE_LIBS) -ldl
