noinst_LIBRARIES += libreader.a
libreader_a_SOURCES = \
	src/reader/clients.c src/reader/clients.h \
	src/reader/main.c \
	src/reader/own-tids.c src/reader/own-tids.h \
	src/reader/setup.h \
	src/reader/teller.c src/reader/teller.h
