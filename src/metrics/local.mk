noinst_LIBRARIES += libmetrics.a
libmetrics_a_SOURCES = \
	src/metrics/exposition.c src/metrics/exposition.h \
	src/metrics/health.c src/metrics/health.h \
	src/metrics/main.c \
	src/metrics/pulls.c src/metrics/pulls.h \
	src/metrics/setup.h
