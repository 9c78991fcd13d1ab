/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "src/profile/profile.h"
#include "src/render/format.h"
#include "src/render/render.h"
#include "util/log.h"

/* The first matching suffix counts, so .otlp.json is before .json. */
const struct format formats[] = {
	{".html", "html", "flame graph page, self-contained", true, true, FORMAT_REFUSES,
	 render_html, render_html_diff},
	{".svg", "svg", "flame graph as a picture", false, false, FORMAT_REFUSES, render_svg, NULL},
	{".folded", "folded", "folded stacks, one a line: comm;root;...;leaf N", false, false,
	 FORMAT_LEAVES_OUT, render_folded, render_diff_folded},
	{".pb.gz", "pprof", "pprof profile, gzipped", true, true, FORMAT_HOLDS, render_pprof, NULL},
	{".speedscope.json", "speedscope", "speedscope profile", true, true, FORMAT_REFUSES,
	 render_speedscope, NULL},
	{".otlp.json", "otlp-json", "OpenTelemetry profiles in OTLP/JSON", true, true, FORMAT_HOLDS,
	 render_otlp_json_file, NULL},
	{".otlp", "otlp", "OpenTelemetry profiles, one ProfilesData message", true, true,
	 FORMAT_HOLDS, render_otlp_file, NULL},
	{".json", "firefox", "Firefox Profiler profile", true, false, FORMAT_REFUSES,
	 render_firefox, NULL},
	{".json.gz", "firefox-gzip", "Firefox Profiler profile, gzipped", true, false,
	 FORMAT_REFUSES, render_firefox_gzip, NULL},
	{".ndjson", "ndjson", "a JSON object for each stack, one a line, for databases", false,
	 true, FORMAT_HOLDS, render_ndjson, NULL},
	{".perf.txt", "perf-script", "text in the form of perf script", false, true, FORMAT_REFUSES,
	 render_perf_script, NULL},
	{".script", "perf-script", "text in the form of perf script", false, true, FORMAT_REFUSES,
	 render_perf_script, NULL},
};
const unsigned int n_formats = sizeof(formats) / sizeof(formats[0]);

/* The format of a path's suffix; NULL: unknown. */
static const struct format *find_by_path(const char *path)
{
	size_t n = strlen(path);

	for (unsigned int i = 0; i < n_formats; i++) {
		size_t m = strlen(formats[i].suffix);

		if (n > m && strcmp(path + n - m, formats[i].suffix) == 0)
			return &formats[i];
	}
	return NULL;
}

int format_check_values(const struct format *f, const char *path, const struct profile *p)
{
	int64_t sum;
	uint64_t n;
	int r;

	if (f->negative == FORMAT_HOLDS || !profile_is_difference(p))
		return 0;
	if (f->negative == FORMAT_REFUSES) {
		log_error("%s cannot be written: some values are below 0, as in the difference of "
			  "two profiles, and %s cannot hold them; pprof, OTLP and perfwalk report "
			  "can",
			  path, f->name);
		return -EINVAL;
	}
	r = render_folded_below_zero(p, &n, &sum);
	if (r == 0 && n)
		log_warning("%s: %" PRIu64 " stacks whose values are below 0, %" PRId64
			    " in all, are left out: folded stacks cannot hold them",
			    path, n, sum);
	return r;
}

bool format_is_standard_output(const char *path)
{
	return strcmp(path, "-") == 0;
}

const struct format *format_of_name(const char *name)
{
	for (unsigned int i = 0; i < n_formats; i++) {
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	}
	return NULL;
}

/* ".html, .folded, .pb.gz"; diff: only formats for a difference. */
static void list_suffixes(char *buf, unsigned long size, bool diff)
{
	size_t at = 0;

	buf[0] = '\0';
	for (unsigned int i = 0; i < n_formats && at < size; i++) {
		if (!diff || formats[i].render_diff)
			at += (size_t)snprintf(buf + at, size - at, "%s%s", at > 0 ? ", " : "",
					       formats[i].suffix);
	}
}

const struct format *format_choose(const char *path, const struct format *named, bool diff,
				   char *error)
{
	const struct format *f = named ? named : find_by_path(path);
	char suffixes[256];

	if (f && (!diff || f->render_diff))
		return f;
	list_suffixes(suffixes, sizeof(suffixes), diff);
	if (f)
		(void)snprintf(error, FORMAT_ERROR_MAX,
			       "that format cannot hold differences; these can: %s", suffixes);
	else if (format_is_standard_output(path))
		(void)snprintf(error, FORMAT_ERROR_MAX,
			       "standard output has no suffix: add --format NAME");
	else
		(void)snprintf(error, FORMAT_ERROR_MAX,
			       "the suffix chooses the format: %s; or add --format NAME", suffixes);
	return NULL;
}

const char *format_name(unsigned int i, bool diff)
{
	for (unsigned int k = 0; k < n_formats; k++) {
		const struct format *f = &formats[k];

		if (format_of_name(f->name) == f && (!diff || f->render_diff) && i-- == 0)
			return f->name;
	}
	return NULL;
}

const char *format_names(char *buf, unsigned long size)
{
	const char *name;
	size_t at = 0;

	buf[0] = '\0';
	for (unsigned int i = 0; at < size && (name = format_name(i, false)); i++)
		at += (size_t)snprintf(buf + at, size - at, "%s%s", i > 0 ? ", " : "", name);
	return buf;
}

const char *format_names_of_all_types(char *buf, unsigned long size)
{
	size_t at = 0;

	buf[0] = '\0';
	for (unsigned int i = 0; i < n_formats && at < size; i++) {
		const struct format *f = &formats[i];

		if (f->all_types && format_of_name(f->name) == f)
			at += (size_t)snprintf(buf + at, size - at, "%s%s", at > 0 ? ", " : "",
					       f->name);
	}
	return buf;
}
