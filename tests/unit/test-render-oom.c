/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every rendering with every one of its allocations failing once: each must say -ENOMEM, leak
 * nothing (the build with sanitizers sees that) and never pass off a partial output as a whole one.
 * The linker's --wrap puts the functions below between the program and its allocator.
 */
#include <errno.h>
#include <stdbool.h>

#include "tests/unit/synthetic.h"
#include "tests/unit/test.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static bool counting;
static uint64_t n_allowed, n_failed;

static bool fails(void)
{
	if (!counting)
		return false;
	if (n_allowed) {
		n_allowed--;
		return false;
	}
	n_failed++;
	return true;
}

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return fails() ? NULL : __real_realloc(p, n);
}

static int ignore(void *ctx, const uint8_t *bytes, size_t n, uint64_t n_samples)
{
	return 0;
}

static int folded(const struct profile *p, FILE *out)
{
	return render_folded(p, &synthetic_info, out);
}

static int html(const struct profile *p, FILE *out)
{
	return render_html(p, &synthetic_info, out);
}

static int pprof(const struct profile *p, FILE *out)
{
	return render_pprof(p, &synthetic_info, out);
}

static int summary(const struct profile *p, FILE *out)
{
	return render_summary(p, &synthetic_info, out, 0, 80);
}

static int otlp(const struct profile *p, FILE *out)
{
	struct render_otlp_options options = {.max_bytes = 20000};

	return render_otlp(p, &synthetic_info, &options, ignore, NULL);
}

static int svg(const struct profile *p, FILE *out)
{
	return render_svg(p, &synthetic_info, out);
}

static int speedscope(const struct profile *p, FILE *out)
{
	return render_speedscope(p, &synthetic_info, out);
}

static int firefox(const struct profile *p, FILE *out)
{
	return render_firefox(p, &synthetic_info, out);
}

static int otlp_json(const struct profile *p, FILE *out)
{
	return render_otlp_json_file(p, &synthetic_info, out);
}

/* Fails the first allocation, the second ... until a rendering gets by without a failure. */
static void check(const struct profile *p, int (*render)(const struct profile *p, FILE *out))
{
	FILE *out = fopen("/dev/null", "w");
	uint64_t n;

	CHECK(out);
	for (n = 0; n < 100000; n++) {
		int r;

		n_allowed = n;
		n_failed = 0;
		counting = true;
		r = render(p, out);
		counting = false;
		CHECK_INT(r, ==, n_failed ? -ENOMEM : 0);
		if (!n_failed)
			break;
	}
	CHECK_INT(n, >, 10);
	CHECK_INT(n, <, 100000);
	(void)fclose(out);
}

int main(void)
{
	struct profile p[2];

	synthetic_small(&p[0]);
	synthetic_random(&p[1], 31, 300);
	synthetic_add_types(&p[1], 32, 60);
	for (int i = 0; i < 2; i++) {
		check(&p[i], folded);
		check(&p[i], html);
		check(&p[i], pprof);
		check(&p[i], summary);
		check(&p[i], otlp);
		check(&p[i], svg);
		check(&p[i], speedscope);
		check(&p[i], firefox);
		check(&p[i], otlp_json);
		profile_deinit(&p[i]);
	}
	return 0;
}
