noinst_LIBRARIES += libscreen.a
libscreen_a_SOURCES = \
	src/screen/choice.c \
	src/screen/layout.c src/screen/layout.h \
	src/screen/main.c \
	src/screen/model.c src/screen/model.h \
	src/screen/native.c src/screen/native.h \
	src/screen/setup.h \
	src/screen/terminal.c src/screen/terminal.h \
	src/screen/tree.c src/screen/tree.h \
	src/screen/ui.c src/screen/ui.h \
	src/screen/view.c src/screen/view.h \
	src/screen/wire.c src/screen/wire.h
check_PROGRAMS += tests/unit/test-top-model
tests_unit_test_top_model_SOURCES = tests/unit/test-top-model.c tests/unit/test.h
tests_unit_test_top_model_LDADD = libscreen.a libutil.a

check_PROGRAMS += tests/unit/test-top-ui
tests_unit_test_top_ui_SOURCES = tests/unit/test-top-ui.c tests/unit/test.h
tests_unit_test_top_ui_LDADD = libscreen.a libutil.a

check_PROGRAMS += tests/unit/test-top-native
tests_unit_test_top_native_SOURCES = tests/unit/test-top-native.c tests/unit/test.h
tests_unit_test_top_native_LDADD = libscreen.a libutil.a
