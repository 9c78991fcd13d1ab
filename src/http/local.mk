# libmicrohttpd is loaded when it is needed (src/http/microhttpd.h), so nothing here links with it.
noinst_LIBRARIES += libhttp.a
libhttp_a_SOURCES = \
	src/http/curl.c src/http/curl.h \
	src/http/serve.c src/http/serve.h
if HAVE_MICROHTTPD
libhttp_a_SOURCES += src/http/microhttpd.c src/http/microhttpd.h
endif
