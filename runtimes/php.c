/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "runtimes/php-internal.h"

enum {
	OPEN_READS = 20000, /* real ones: 100 */
	OPEN_BYTES = 4 << 20,
};

/* ---- Recognising ---- */

/* "php", "php8.2", "php-fpm8.2", "php-cgi", "php8.2-cgi". */
static bool is_program(const char *name)
{
	static const char *const kinds[] = {"", "-fpm", "-cgi"};

	if (strncmp(name, "php", 3) != 0)
		return false;
	name += 3 + strspn(name + 3, "0123456789.");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		size_t n = strlen(kinds[i]);

		if (strncmp(name, kinds[i], n) == 0 &&
		    name[n + strspn(name + n, "0123456789.")] == '\0')
			return true;
	}
	return false;
}

int php_rank(const char *path)
{
	static const char library[] = "libphp";
	const char *name = strrchr(path, '/');

	if (!name)
		return 0;
	name++;
	if (strncmp(name, library, sizeof(library) - 1) == 0) {
		name += sizeof(library) - 1;
		name += strspn(name, "0123456789.");
		/* The dot in front of "so" counts as one of the version. */
		return strncmp(name - 1, ".so", 3) == 0 ? 2 : 0;
	}
	return is_program(name) ? 1 : 0;
}

/* ---- What is learned of a process once ---- */

static int read_image(struct php *p, uint64_t image, const char **ret_why)
{
	uint64_t start = 0, end = 0;
	int r;

	if (!image_open(&p->image, &p->memory, image))
		return -ENOENT;
	r = php_tables_read(&p->tables, &p->image, ret_why);
	if (r < 0)
		return r;
	if (p->tables.micro)
		(void)snprintf(p->release, sizeof(p->release), "%u.%u.%u", p->tables.major,
			       p->tables.minor, p->tables.micro);
	else
		(void)snprintf(p->release, sizeof(p->release), "%u.%u", p->tables.major,
			       p->tables.minor);
	(void)image_symbol_range(&p->image, "executor_globals", &p->globals, &p->end);
	(void)image_symbol_range(&p->image, "execute_ex", &start, &end);
	eval_code_find(&p->eval, &p->image, start, end);
	return 0;
}

int php_new(struct php **ret, const struct memory *memory, uint64_t image, const char **ret_why)
{
	_cleanup_(php_freep) struct php *p = calloc(1, sizeof(*p));
	int r;

	*ret_why = "";
	if (!p)
		return -ENOMEM;
	p->memory = *memory;
	strtab_init(&p->texts, PHP_MAX_TEXT);
	php_begin(p, OPEN_READS, OPEN_BYTES);
	r = read_image(p, image, ret_why);
	if (r < 0)
		return r;
	p->functions = calloc(PHP_N_FUNCTIONS, sizeof(*p->functions));
	p->strings = calloc(PHP_N_TEXTS, sizeof(*p->strings));
	p->lines = calloc(PHP_N_LINES, sizeof(*p->lines));
	if (!p->functions || !p->strings || !p->lines)
		return -ENOMEM;
	*ret = TAKE_PTR(p);
	return 0;
}

struct php *php_free(struct php *p)
{
	if (p) {
		strtab_deinit(&p->texts);
		free(p->functions);
		free(p->strings);
		free(p->lines);
		free(p);
	}
	return NULL;
}

/* ---- For its user ---- */

const char *php_release(const struct php *p)
{
	return p->release;
}

bool php_is_tried(const struct php *p)
{
	return p->tables.major == 7 || p->tables.minor == 2 || p->tables.minor == 4;
}

const char *php_text(const struct php *p, strid id)
{
	return strtab_get(&p->texts, id);
}

const struct php_stats *php_stats(const struct php *p)
{
	return &p->stats;
}

void php_begin(struct php *p, uint32_t reads, uint64_t bytes)
{
	p->memory.reads_left = reads;
	p->memory.bytes_left = bytes;
	/* Frames of a walk refer to it: room is made between walks. */
	if (p->functions &&
	    (strtab_bytes(&p->texts) > PHP_MAX_TEXT * 3 / 4 || p->texts.n_refused > 0)) {
		memset(p->functions, 0, PHP_N_FUNCTIONS * sizeof(*p->functions));
		memset(p->strings, 0, PHP_N_TEXTS * sizeof(*p->strings));
		strtab_clear(&p->texts);
		p->texts.n_refused = 0;
	}
}

enum chain_result php_walk(struct php *p, const struct chained_thread *thread,
			   struct chained_frame *frames, size_t max, size_t *ret_n)
{
	uint32_t reads = p->memory.reads_left;
	uint64_t bytes = p->memory.bytes_left;
	enum chain_result r;

	*ret_n = 0;
	p->walk++;
	r = php_follow(p, thread, frames, max < CHAIN_MAX_FRAMES ? max : CHAIN_MAX_FRAMES, ret_n);
	if (r == CHAIN_WHOLE && *ret_n == 0)
		r = CHAIN_NO_THREAD;
	if (r == CHAIN_UNPROVEN && (p->memory.reads_left == 0 || p->memory.bytes_left < PHP_WINDOW))
		r = CHAIN_SPENT;
	p->stats.walks++;
	p->stats.results[r]++;
	p->stats.reads += reads - p->memory.reads_left;
	p->stats.bytes += bytes - p->memory.bytes_left;
	return r;
}

bool php_eval_range(const struct php *p, size_t i, uint64_t *ret_start, uint64_t *ret_end)
{
	return eval_code_range(&p->eval, i, ret_start, ret_end);
}

void php_explain(const struct php *p, FILE *out)
{
	(void)fprintf(out, "PHP %s%s\n", p->release, php_is_tried(p) ? "" : " (untested version)");
	(void)fprintf(out, "its image at %#" PRIx64 "\n", p->image.base);
	eval_code_explain(&p->eval, &p->image, out);
	(void)fprintf(out, "from the table for this minor version:\n");
	for (unsigned int i = 0; i < PHP_N_VALUES; i++)
		(void)fprintf(out, "  %-34s %d\n", php_value_name(i), p->tables.value[i]);
}
