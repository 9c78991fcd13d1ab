noinst_LIBRARIES += libstore.a
libstore_a_SOURCES = \
	src/store/name.c src/store/name.h \
	src/store/stored.c src/store/stored.h
