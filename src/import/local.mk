noinst_LIBRARIES += libimport.a
libimport_a_SOURCES = \
	src/import/builder.c src/import/builder.h \
	src/import/folded.c \
	src/import/import.c src/import/import.h \
	src/import/otlp.c \
	src/import/pprof.c
