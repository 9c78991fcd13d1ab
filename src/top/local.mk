noinst_LIBRARIES += libtop.a
libtop_a_SOURCES = \
	src/top/layout.c src/top/layout.h \
	src/top/model.c src/top/model.h \
	src/top/terminal.c src/top/terminal.h \
	src/top/tree.c src/top/tree.h \
	src/top/ui.c src/top/ui.h \
	src/top/view.c src/top/view.h \
	src/top/wire.c src/top/wire.h
check_PROGRAMS += tests/unit/test-top-model
tests_unit_test_top_model_SOURCES = tests/unit/test-top-model.c tests/unit/test.h
tests_unit_test_top_model_LDADD = libtop.a libutil.a

check_PROGRAMS += tests/unit/test-top-ui
tests_unit_test_top_ui_SOURCES = tests/unit/test-top-ui.c tests/unit/test.h
tests_unit_test_top_ui_LDADD = libtop.a libutil.a
