noinst_LIBRARIES += libtop.a
libtop_a_SOURCES = src/top/model.c src/top/model.h
check_PROGRAMS += tests/unit/test-top-model
tests_unit_test_top_model_SOURCES = tests/unit/test-top-model.c tests/unit/test.h
tests_unit_test_top_model_LDADD = libtop.a libutil.a
