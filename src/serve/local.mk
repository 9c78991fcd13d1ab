# libmicrohttpd is loaded when it is needed (src/serve/microhttpd.h), so nothing here links with it.
noinst_LIBRARIES += libserve.a
libserve_a_SOURCES = src/serve/serve.c src/serve/serve.h
if HAVE_MICROHTTPD
libserve_a_SOURCES += src/serve/microhttpd.c src/serve/microhttpd.h
endif
