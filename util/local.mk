noinst_LIBRARIES += libutil.a
libutil_a_SOURCES = \
	util/array.h \
	util/cleanup.h \
	util/clock.h \
	util/cursor.h \
	util/fdmsg.c util/fdmsg.h \
	util/hash.c util/hash.h \
	util/log.c util/log.h \
	util/strtab.c util/strtab.h \
	util/text.c util/text.h
