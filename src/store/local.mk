noinst_LIBRARIES += libstore.a
libstore_a_SOURCES = \
	src/store/stored.c src/store/stored.h
