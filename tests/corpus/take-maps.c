/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/corpus/take.h"
#include "util/hash.h"

static int map_file(struct take_file *f, size_t n)
{
	f->bytes.n = n;
	f->bytes.start = mmap(NULL, n, PROT_READ, MAP_PRIVATE, f->fd, 0);
	f->bytes.bits = calloc(n / TOUCH_GRANULE / 8 + 64, 1);
	return f->bytes.start == MAP_FAILED || !f->bytes.bits ? -ENOMEM : 0;
}

/* The image of the vdso goes into a file of its own. */
static int open_vdso(struct take *t, struct take_file *f, pid_t pid, uint64_t start, size_t n)
{
	_cleanup_free_ uint8_t *own = malloc(n);
	const uint8_t *bytes = t->vdso ? t->vdso : own;
	_cleanup_close_ int fd = -EBADF;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (!t->vdso && (fd < 0 || pread(fd, own, n, (off_t)start) != (ssize_t)n))
		return -EIO;
	if (t->vdso)
		n = t->n_vdso;
	f->fd = memfd_create("vdso", MFD_CLOEXEC);
	if (f->fd < 0 || write(f->fd, bytes, n) != (ssize_t)n)
		return -EIO;
	f->vdso = true;
	return map_file(f, n);
}

static int open_mapped(struct take_file *f, pid_t pid, const struct take_line *l)
{
	char link[96];
	struct stat st;

	(void)snprintf(link, sizeof(link), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid,
		       l->start, l->end);
	f->fd = open(link, O_RDONLY | O_CLOEXEC);
	if (f->fd < 0 || fstat(f->fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return -EIO;
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	return map_file(f, (size_t)st.st_size);
}

static uint32_t find_file(struct take *t, pid_t pid, const struct take_line *l, const char *path)
{
	bool vdso = strcmp(path, "[vdso]") == 0;
	struct take_file *f;
	int r;

	if (path[0] != '/' && !vdso)
		return RECORDED_ANONYMOUS;
	for (uint32_t i = 0; i < t->files.n; i++) {
		if (strcmp(t->files.items[i].path, path) == 0)
			return i;
	}
	f = array_push(&t->files);
	if (!f)
		return RECORDED_FILE_MISSING;
	f->path = strdup(path);
	f->fd = -EBADF;
	r = vdso ? open_vdso(t, f, pid, l->start, (size_t)(l->end - l->start))
		 : open_mapped(f, pid, l);
	if (r < 0) {
		fprintf(stderr, "take: %s cannot be read\n", path);
		return RECORDED_FILE_MISSING;
	}
	return t->files.n - 1;
}

static void add_line(struct take *t, struct take_maps *maps, pid_t pid, const char *text)
{
	char perms[8], path[4096] = "";
	struct take_line l = {.start = 0};

	if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4095[^\n]", &l.start,
		   &l.end, perms, &l.offset, path) < 4 ||
	    perms[2] != 'x' || l.start > INT64_MAX)
		return;
	l.file = find_file(t, pid, &l, path);
	*array_push(&maps->lines) = l;
}

static int compare_lines(const void *a, const void *b)
{
	const struct take_line *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int take_maps_load(struct take *t, pid_t pid)
{
	_cleanup_free_ char *text = NULL;
	struct take_maps *maps;
	uint64_t hash;
	int r = take_read_maps(t, pid, &text);

	if (r < 0)
		return r;
	hash = hash_bytes(text, strlen(text), 0);
	for (uint32_t i = t->maps.n; i-- > 0;) {
		if (t->maps.items[i].hash == hash)
			return (int)i;
	}
	maps = array_push(&t->maps);
	if (!maps)
		return -E2BIG;
	maps->hash = hash;
	maps->lines.max = 4096;
	for (const char *line = text; line && *line;) {
		add_line(t, maps, pid, line);
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	qsort(maps->lines.items, maps->lines.n, sizeof(*maps->lines.items), compare_lines);
	return (int)t->maps.n - 1;
}

int take_open_module(struct take *t, struct take_file *f)
{
	return unwind_module_new_memory(&f->module, t->u, f->bytes.start, f->bytes.n, f->path);
}

bool take_find(void *ctx, uint64_t pc, struct unwind_mapping *ret)
{
	struct take *t = ctx;

	for (uint32_t i = 0; i < t->current->lines.n; i++) {
		struct take_line *l = &t->current->lines.items[i];
		struct take_file *f = l->file < t->files.n ? &t->files.items[l->file] : NULL;

		if (pc < l->start || pc >= l->end)
			continue;
		if (f && !f->module)
			(void)take_open_module(t, f);
		*ret = (struct unwind_mapping){.start = l->start, .end = l->end, .tag = i};
		ret->module = f ? f->module : NULL;
		if (ret->module && !unwind_module_bias(ret->module, l->start, l->offset, &l->bias))
			ret->module = NULL;
		ret->bias = l->bias;
		ret->file_missing = !ret->module && l->file != RECORDED_ANONYMOUS;
		l->wanted = true;
		return true;
	}
	return false;
}

void take_close_modules(struct take *t)
{
	for (uint32_t i = 0; i < t->files.n; i++)
		t->files.items[i].module = unwind_module_free(t->files.items[i].module);
}
