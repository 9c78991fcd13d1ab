/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a role asks of the C library once its filter is on, whichever library that is: "libc ROLE"
 * puts the filter on in the mode trap, so a call that no row allows ends it by its name.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "src/process/sandbox.h"

#define NEED(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* Small and large, grown, kept and given back. */
static void use_memory(void)
{
	static void *blocks[4096];

	for (unsigned int i = 0; i < 4096; i++) {
		blocks[i] = malloc(i % 64 ? 16 + i * 7 % 5000 : (size_t)1 << (10 + i / 400));
		NEED(blocks[i]);
		memset(blocks[i], 1, 16);
	}
	for (unsigned int i = 0; i < 4096; i += 2)
		NEED((blocks[i] = realloc(blocks[i], 20000 + i)));
	for (unsigned int i = 0; i < 4096; i++)
		free(blocks[i]);
	NEED((blocks[0] = malloc(1 << 20)));
	NEED((blocks[0] = realloc(blocks[0], 64 << 20)));
	free(blocks[0]);
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, 8);
}

static void use_loop(int epoll, int pipe_fd)
{
	struct epoll_event e = {.events = EPOLLIN};
	struct pollfd p = {.fd = pipe_fd, .events = POLLIN};
	const struct timespec t = {.tv_nsec = 1};
	struct timespec now;

	NEED(epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_fd, &e) == 0);
	NEED(epoll_wait(epoll, &e, 1, 0) == 0);
	NEED(poll(&p, 1, 0) == 0);
	NEED(nanosleep(&t, NULL) == 0);
	NEED(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
}

/* A file in memory: made, written and read through stdio. */
static void use_file(void)
{
	static char rows[1 << 20];
	int fd = memfd_create("libc", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct stat st;
	char text[64];
	FILE *f;

	NEED(fd >= 0 && ftruncate(fd, 100) == 0 && fstat(fd, &st) == 0 && st.st_size == 100);
	NEED((f = fdopen(fd, "w+")));
	NEED(fprintf(f, "%s %.3f\n", "text", 1.5) > 0 && fflush(f) == 0 &&
	     fseek(f, 0, SEEK_SET) == 0);
	NEED(fgets(text, sizeof(text), f) && strcmp(text, "text 1.500\n") == 0);
	NEED(pread(fileno(f), text, 4, 0) == 4 && fcntl(fileno(f), F_GETFL) >= 0);
	NEED(fclose(f) == 0);
	qsort(rows, sizeof(rows) / 8, 8, compare);
}

static void *run(void *arg)
{
	use_memory();
	return arg;
}

static void use_threads(void)
{
	pthread_attr_t attr;
	pthread_t t;

	NEED(pthread_create(&t, NULL, run, NULL) == 0 && pthread_join(t, NULL) == 0);
	NEED(pthread_attr_init(&attr) == 0 &&
	     pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0);
	NEED(pthread_create(&t, &attr, run, NULL) == 0);
}

static void use_network(void)
{
	struct addrinfo *found, hints = {.ai_socktype = SOCK_STREAM};
	char line[256];
	DIR *d;
	FILE *f;

	NEED(getaddrinfo("localhost", "80", &hints, &found) == 0);
	freeaddrinfo(found);
	NEED((f = fopen("/etc/hosts", "re")));
	NEED(fgets(line, sizeof(line), f) && fclose(f) == 0);
	NEED((d = opendir("/etc")) && readdir(d) && closedir(d) == 0);
	NEED(access("/etc/hosts", R_OK) == 0);
}

static void use_opener(int path_fd)
{
	char text[256];
	struct stat st;
	int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC), more;

	NEED(fd >= 0 && read(fd, text, sizeof(text)) > 0);
	more = openat(path_fd, "hosts", O_RDONLY | O_CLOEXEC);
	NEED(more >= 0 && fstat(more, &st) == 0 && fstat(path_fd, &st) == 0);
	NEED(fcntl(more, F_DUPFD_CLOEXEC, 0) >= 0 && close(more) == 0 && stat("/", &st) == 0);
	NEED(readlink("/proc/self/ns/mnt", text, sizeof(text)) > 0);
}

int main(int argc, char **argv)
{
	int who = 0, epoll = epoll_create1(EPOLL_CLOEXEC), ends[2];
	int path_fd = open("/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	while (argc == 2 && who < SANDBOX_OPENER && strcmp(sandbox_name((enum peer)who), argv[1]))
		who++;
	NEED(argc == 2 && pipe(ends) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	NEED(sandbox_filter_calls((enum peer)who, SANDBOX_TRAP) == 0);
	use_memory();
	if (who == SANDBOX_OPENER) {
		use_opener(path_fd);
		return 0;
	}
	use_loop(epoll, ends[0]);
	use_file();
	if (who == PEER_SYMBOLIZER || who == PEER_SCREEN)
		printf("%d\n", isatty(STDOUT_FILENO));
	if (who == PEER_SCREEN) {
		struct timeval none = {0};

		NEED(select(0, NULL, NULL, NULL, &none) == 0);
	}
	if (sandbox_uses_network((enum peer)who)) {
		use_threads();
		use_network();
	}
	return 0;
}
