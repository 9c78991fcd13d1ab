/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "src/cmd/format.h"
#include "src/render/render.h"

const struct format formats[] = {
	{".html", "html", "flame graph page, self-contained", render_html, NULL},
	{".folded", "folded", "folded stacks, one a line: comm;root;...;leaf N", render_folded,
	 render_diff_folded},
	{".pb.gz", "pprof", "pprof profile, gzipped", render_pprof, NULL},
	{".otlp", "otlp", "OpenTelemetry profiles (OTLP), one ProfilesData message",
	 render_otlp_file, NULL},
	{".otlp.json", "otlp-json", "OpenTelemetry profiles in OTLP/JSON", render_otlp_json_file,
	 NULL},
};
const unsigned int n_formats = sizeof(formats) / sizeof(formats[0]);

const struct format *format_of_path(const char *path)
{
	size_t n = strlen(path);

	for (unsigned int i = 0; i < n_formats; i++) {
		size_t m = strlen(formats[i].suffix);

		if (n > m && strcmp(path + n - m, formats[i].suffix) == 0)
			return &formats[i];
	}
	return NULL;
}

const char *format_suffixes(char *buf, unsigned long size, bool diff)
{
	size_t at = 0;

	buf[0] = '\0';
	for (unsigned int i = 0; i < n_formats && at < size; i++) {
		if (!diff || formats[i].render_diff)
			at += (size_t)snprintf(buf + at, size - at, "%s%s", at > 0 ? ", " : "",
					       formats[i].suffix);
	}
	return buf;
}
