noinst_LIBRARIES += libprofile.a
libprofile_a_SOURCES = \
	src/profile/labels.c src/profile/labels.h \
	src/profile/native-frames.c src/profile/native-frames.h \
	src/profile/profile.c src/profile/profile.h src/profile/texts.c src/profile/types.c \
	src/profile/window.h src/profile/window-format.h \
	src/profile/window-read.c src/profile/window-write.c
check_PROGRAMS += tests/unit/test-profile
tests_unit_test_profile_SOURCES = tests/unit/test-profile.c tests/unit/test.h
tests_unit_test_profile_LDADD = libprofile.a libutil.a
