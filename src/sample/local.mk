# sources of src/sample/
noinst_LIBRARIES += libsample.a
libsample_a_SOURCES = \
	src/sample/decode.c src/sample/decode.h \
	src/sample/event.c src/sample/event.h \
	src/sample/explain.c \
	src/sample/merge.c src/sample/merge.h \
	src/sample/probe.c \
	src/sample/ring.c \
	src/sample/sample.h \
	src/sample/selfcheck.c
