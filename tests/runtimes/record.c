/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records what walks through frames of Java, JavaScript, Python, PHP or Ruby read of a live
 * process:
 *
 *	record PID SAMPLES FILE
 *
 * Java and JavaScript: stops threads of the process (ptrace) until SAMPLES were in such code, and
 * walks their stacks. The others: walks the stacks of all threads, at most SAMPLES, of a process
 * that somebody has stopped. Writes the reads and the samples (recording.h) to FILE, and prints the
 * walks.
 */
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "tests/runtimes/recorded-chain.h"
#include "tests/runtimes/recorded-hotspot.h"
#include "tests/runtimes/recorded-v8.h"
#include "util/runtime-files.h"

enum { STACK_BYTES = 24576, LINE = 64, MAX_LINES = 1 << 20 };

static int memory_fd;
/* Read so far, in lines: addresses, and one copy each, of the time when it was read first. */
static uint64_t *lines;
static uint8_t (*contents)[LINE];
static size_t n_lines;

static bool keep_line(uint64_t at)
{
	for (size_t i = n_lines; i-- > 0;) {
		if (lines[i] == at)
			return true;
	}
	if (n_lines == MAX_LINES || pread(memory_fd, contents[n_lines], LINE, (off_t)at) != LINE)
		return false;
	lines[n_lines++] = at;
	return true;
}

static bool read_memory(void *ctx, uint64_t address, void *ret, size_t n)
{
	if (pread(memory_fd, ret, n, (off_t)address) != (ssize_t)n)
		return false;
	for (uint64_t at = address / LINE * LINE; at < address + n; at += LINE) {
		if (!keep_line(at))
			return false;
	}
	return true;
}

/* Where a file of a process is whose path is as it should be; 0: there is none. */
static uint64_t find_image(const char *pid, bool (*is_wanted)(const char *path))
{
	char path[64], line[4096];
	uint64_t image = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	f = fopen(path, "r");
	while (f && !image && fgets(line, sizeof(line), f)) {
		char *name = strchr(line, '/');

		line[strcspn(line, "\n")] = '\0';
		if (name && is_wanted(name))
			image = strtoull(line, NULL, 16);
	}
	if (f)
		(void)fclose(f);
	return image;
}

/* And not only a program that needs it. */
static bool is_library(const char *path)
{
	return runtime_file_rank(path, strlen(path), RUNTIME_CHAINS) > 1;
}

static bool is_interpreter(const char *path)
{
	return runtime_file_rank(path, strlen(path), RUNTIME_CHAINS) > 0;
}

static bool is_java(const char *path)
{
	return runtime_file_rank(path, strlen(path), RUNTIME_STEPS) > 2;
}

/* CPython has been looked for before. */
static bool is_javascript(const char *path)
{
	return runtime_file_rank(path, strlen(path), RUNTIME_STEPS) > 0 && !is_interpreter(path);
}

/* Prints the walk of a sample; false: it is not in the runtime's code. */
typedef bool (*walk_fn)(void *runtime, const struct recorded_walk *w);

static bool walk_java(void *runtime, const struct recorded_walk *w)
{
	if (!hotspot_has(runtime, w->r[RECORDED_PC]))
		return false;
	(void)recording_walk(runtime, w, stdout);
	return true;
}

static bool walk_javascript(void *runtime, const struct recorded_walk *w)
{
	char *text = NULL;
	size_t n_text, n;
	FILE *f = open_memstream(&text, &n_text);

	n = f ? recorded_walk_v8(runtime, w, f) : 0;
	if (f)
		(void)fclose(f);
	if (n > 0)
		(void)fputs(text, stdout);
	free(text);
	return n > 0;
}

static bool take(pid_t tid, void *runtime, walk_fn walk, struct recorded_walk *ret)
{
	static uint8_t stack[STACK_BYTES];
	struct user_regs_struct u;
	struct iovec registers = {&u, sizeof(u)};
	struct runtime_regs regs;
	int status;
	ssize_t n;
	bool ok = false;

	if (ptrace(PTRACE_SEIZE, tid, 0, 0) < 0)
		return false;
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0 && waitpid(tid, &status, __WALL) == tid &&
	    ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &registers) == 0 &&
	    runtime_regs_from_ptrace(&u, registers.iov_len, &regs)) {
		uint8_t *copy;

		n = pread(memory_fd, stack, sizeof(stack), (off_t)regs.sp);
		copy = n > 0 ? malloc((size_t)n) : NULL;
		if (copy) {
			for (size_t i = 0; i < RECORDING_REGS; i++)
				ret->r[i] = regs.r[recording_register(i)];
			memcpy(copy, stack, (size_t)n);
			ret->stack = copy;
			ret->n = (uint32_t)n;
			ok = walk(runtime, ret);
		}
	}
	(void)ptrace(PTRACE_DETACH, tid, 0, 0);
	return ok;
}

static uint32_t take_all(const char *pid, void *runtime, walk_fn walk,
			 struct recorded_walk *samples, uint32_t wanted)
{
	uint32_t n = 0;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%s/task", pid);
	while (n < wanted) {
		DIR *d = opendir(path);

		if (!d)
			break;
		for (struct dirent *e; n < wanted && (e = readdir(d));)
			n += e->d_name[0] != '.' &&
			     take(atoi(e->d_name), runtime, walk, &samples[n]);
		(void)closedir(d);
		(void)usleep(20000);
	}
	return n;
}

static int compare_lines(const void *a, const void *b)
{
	uint64_t x = lines[*(const size_t *)a], y = lines[*(const size_t *)b];

	return (x > y) - (x < y);
}

static void write_all(const char *path, uint64_t image, const struct recorded_walk *samples,
		      uint32_t n_samples)
{
	size_t *order = calloc(n_lines, sizeof(*order));
	uint32_t n_ranges = 0;
	gzFile f = gzopen(path, "wb9");

	for (size_t i = 0; i < n_lines; i++)
		order[i] = i;
	qsort(order, n_lines, sizeof(*order), compare_lines);
	for (size_t i = 0; i < n_lines; i++)
		n_ranges += i == 0 || lines[order[i]] != lines[order[i - 1]] + LINE;
	(void)gzwrite(f, &image, 8);
	(void)gzwrite(f, &n_ranges, 4);
	(void)gzwrite(f, &n_samples, 4);
	for (size_t i = 0, k; i < n_lines; i = k) {
		uint32_t n;

		for (k = i + 1; k < n_lines && lines[order[k]] == lines[order[k - 1]] + LINE;)
			k++;
		n = (uint32_t)(k - i) * LINE;
		(void)gzwrite(f, &lines[order[i]], 8);
		(void)gzwrite(f, &n, 4);
		for (size_t j = i; j < k; j++)
			(void)gzwrite(f, contents[order[j]], LINE);
	}
	for (uint32_t i = 0; i < n_samples; i++) {
		(void)gzwrite(f, samples[i].r, sizeof(samples[i].r));
		(void)gzwrite(f, &samples[i].n, 4);
		(void)gzwrite(f, samples[i].stack, samples[i].n);
	}
	(void)gzclose(f);
	free(order);
}

static void record_java(const char *pid, uint32_t wanted, const char *file, uint64_t image)
{
	static struct recorded_walk samples[RECORDING_MAX_SAMPLES];
	const struct memory memory = {.read = read_memory};
	struct hotspot *h;
	const char *why;
	int r = hotspot_new(&h, &memory, image, &why);

	if (r < 0) {
		(void)fprintf(stderr, "%s: %s %s\n", pid, strerror(-r), why);
		exit(1);
	}
	write_all(file, image, samples, take_all(pid, h, walk_java, samples, wanted));
	(void)hotspot_free(h);
}

static void record_javascript(const char *pid, uint32_t wanted, const char *file, uint64_t image)
{
	static struct recorded_walk samples[RECORDING_MAX_SAMPLES];
	const struct memory memory = {.read = read_memory};
	struct v8 *v;
	const char *why;
	int r = v8_new(&v, &memory, image, &why);

	if (r < 0) {
		(void)fprintf(stderr, "%s: %s %s\n", pid, strerror(-r), why);
		exit(1);
	}
	write_all(file, image, samples, take_all(pid, v, walk_javascript, samples, wanted));
	(void)v8_free(v);
}

static void record_chains(const char *pid, uint32_t wanted, const char *file, uint64_t image)
{
	static struct recorded_walk samples[RECORDING_MAX_SAMPLES];
	const struct memory memory = {.read = read_memory};
	struct interp *p;
	const char *why;
	uint32_t n = 0;
	char path[64];
	DIR *d;
	int r = interp_new(&p, &memory, image, &why);

	if (r < 0) {
		(void)fprintf(stderr, "%s: %s %s\n", pid, strerror(-r), why);
		exit(1);
	}
	(void)snprintf(path, sizeof(path), "/proc/%s/task", pid);
	d = opendir(path);
	for (struct dirent *e; d && n < wanted && (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		samples[n].r[RECORDED_TID] = (uint64_t)atoi(e->d_name);
		samples[n].stack = (const uint8_t *)"";
		(void)recorded_walk_chain(p, &samples[n++], stdout);
	}
	if (d)
		(void)closedir(d);
	write_all(file, image, samples, n);
	(void)interp_free(p);
}

int main(int argc, char **argv)
{
	char path[64];
	uint64_t java, javascript, interpreter;
	uint32_t wanted;

	if (argc != 4)
		return 2;
	lines = calloc(MAX_LINES, sizeof(*lines));
	contents = calloc(MAX_LINES, LINE);
	(void)snprintf(path, sizeof(path), "/proc/%s/mem", argv[1]);
	memory_fd = open(path, O_RDONLY);
	wanted = (uint32_t)atoi(argv[2]);
	java = find_image(argv[1], is_java);
	javascript = find_image(argv[1], is_javascript);
	interpreter = find_image(argv[1], is_library);
	if (!interpreter)
		interpreter = find_image(argv[1], is_interpreter);
	if (java)
		record_java(argv[1], wanted, argv[3], java);
	else if (javascript)
		record_javascript(argv[1], wanted, argv[3], javascript);
	else
		record_chains(argv[1], wanted, argv[3], interpreter);
	return 0;
}
