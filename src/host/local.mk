# sources of src/host/
noinst_LIBRARIES += libhost.a
libhost_a_SOURCES = \
	src/host/cgroup-path.c \
	src/host/cgroup.c \
	src/host/file.c \
	src/host/host.c src/host/host.h \
	src/host/info.c \
	src/host/internal.h \
	src/host/maps-text.c \
	src/host/mapping.c \
	src/host/mapset.c \
	src/host/process.c \
	src/host/thread.c
