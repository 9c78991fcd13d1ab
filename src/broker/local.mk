noinst_LIBRARIES += libbroker.a
libbroker_a_SOURCES = \
	src/broker/opener.c src/broker/opener.h \
	src/broker/privileges.c src/broker/privileges.h \
	src/broker/protocol.c src/broker/protocol.h \
	src/broker/supervisor.c src/broker/supervisor.h
