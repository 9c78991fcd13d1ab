/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame graph page: one file without any reference to another. Its sources are in page/, as a
 * template, a style sheet and a script; the build makes C strings of them.
 *
 * The data goes in as a JSON block: a string table, the symbols, and the call tree in preorder as
 * flat arrays. Names come from strangers. They are JSON strings in which everything that HTML or
 * JavaScript could take for markup is escaped, the script only ever shows them as text, and the
 * page's Content-Security-Policy names our one script and style sheet by hash: nothing else runs,
 * loads or is sent anywhere, whatever is in the data.
 */
#include <errno.h>
#include <inttypes.h>
#include <nettle/base64.h>
#include <nettle/sha2.h>
#include <string.h>

#include "src/render/calltree.h"
#include "src/render/json.h"
#include "src/render/page-css.h"
#include "src/render/page-html.h"
#include "src/render/page-js.h"
#include "src/render/render.h"

static void put_text(FILE *out, const char *key, const char *text)
{
	fprintf(out, ",\"%s\":", key);
	json_put_string(out, text ? text : "");
}

static void put_meta(FILE *out, const struct profile *p, const struct render_info *info)
{
	uint64_t length = p->end_unix_ns > p->start_unix_ns ? p->end_unix_ns - p->start_unix_ns : 0;

	fprintf(out,
		"\"meta\":{\"rate\":%" PRIu32 ",\"periodNs\":%" PRIu64 ",\"periodEvents\":%" PRIu64
		",\"weighted\":%d,\"startMs\":%" PRIu64 ",\"durationNs\":%" PRIu64
		",\"cpus\":%" PRIu32,
		p->rate_hz, p->period_ns, p->period_events, (int)p->weighted,
		p->start_unix_ns / 1000000, length, info->n_cpus);
	put_text(out, "title", info->title ? info->title : "perfwalk");
	put_text(out, "host", info->host_name);
	put_text(out, "kernel", info->kernel_release);
	put_text(out, "version", info->version);
	put_text(out, "event", profile_text(p, p->event));
	fputs("},\n\"counters\":{", out);
	for (int c = 0; c < PROFILE_N_COUNTERS; c++)
		fprintf(out, "%s\"%s\":%" PRIu64, c ? "," : "",
			profile_counter_name((enum profile_counter)c), p->counters[c]);
	fputs("}", out);
}

static void put_symbols(FILE *out, const struct calltree *t)
{
	fputs("\"strings\":[\"\"", out);
	for (strid i = 1; i <= t->names.n; i++) {
		fputc(',', out);
		json_put_string(out, strtab_get(&t->names, i));
	}
	fputs("],\n\"symbols\":{\"name\":[", out);
	for (uint32_t i = 0; i < t->symbols.n; i++)
		fprintf(out, "%s%" PRIu32, i ? "," : "", t->symbols.items[i].name);
	fputs("],\n\"module\":[", out);
	for (uint32_t i = 0; i < t->symbols.n; i++)
		fprintf(out, "%s%" PRIu32, i ? "," : "", t->symbols.items[i].module);
	fputs("],\n\"kind\":[", out);
	for (uint32_t i = 0; i < t->symbols.n; i++)
		fprintf(out, "%s%" PRIu32, i ? "," : "", t->symbols.items[i].kind);
	fputs("]}", out);
}

enum column { SYMBOL, DEPTH, SELF };

static void put_column(FILE *out, const struct calltree *t, enum column column)
{
	uint32_t depth = 0;
	const char *comma = "";

	for (uint32_t i = calltree_next(t, 0, &depth); i != CALLTREE_NONE;
	     i = calltree_next(t, i, &depth)) {
		const struct call_node *n = &t->nodes.items[i];

		fprintf(out, "%s%" PRIu64, comma,
			column == SYMBOL  ? n->symbol
			: column == DEPTH ? depth
					  : n->self);
		comma = ",";
	}
}

static void put_data(FILE *out, const struct profile *p, const struct render_info *info,
		     const struct calltree *t)
{
	fputs("{", out);
	put_meta(out, p, info);
	fprintf(out, ",\n\"total\":%" PRIu64 ",\"cut\":%" PRIu64 ",\n", t->nodes.items[0].total,
		t->n_cut);
	put_symbols(out, t);
	fputs(",\n\"nodes\":{\"symbol\":[", out);
	put_column(out, t, SYMBOL);
	fputs("],\n\"depth\":[", out);
	put_column(out, t, DEPTH);
	fputs("],\n\"self\":[", out);
	put_column(out, t, SELF);
	fputs("]}}", out);
}

/* The source expression by which the policy names an inline script or style. */
static void put_hash(FILE *out, const char *text)
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	char encoded[BASE64_ENCODE_RAW_LENGTH(SHA256_DIGEST_SIZE) + 1] = "";
	struct sha256_ctx ctx;

	sha256_init(&ctx);
	sha256_update(&ctx, strlen(text), (const uint8_t *)text);
	sha256_digest(&ctx, sizeof(digest), digest);
	base64_encode_raw(encoded, sizeof(digest), digest);
	fprintf(out, "'sha256-%s'", encoded);
}

int render_html(const struct profile *p, const struct render_info *info, FILE *out)
{
	static const char *const marks[] = {"@SCRIPT_HASH@", "@STYLE_HASH@", "@CSS@", "@DATA@",
					    "@JS@"};
	const char *at = page_html;
	struct calltree t;
	int r;

	r = calltree_build(&t, p, CALLTREE_MODULES | CALLTREE_INLINED);
	/* The marks occur once each, in this order. */
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]) && r == 0; i++) {
		const char *mark = strstr(at, marks[i]);

		if (!mark) {
			r = -EINVAL;
			break;
		}
		(void)fwrite(at, 1, (size_t)(mark - at), out);
		at = mark + strlen(marks[i]);
		switch (i) {
		case 0:
			put_hash(out, page_js);
			break;
		case 1:
			put_hash(out, page_css);
			break;
		case 2:
			fputs(page_css, out);
			break;
		case 3:
			put_data(out, p, info, &t);
			break;
		default:
			fputs(page_js, out);
		}
	}
	if (r == 0)
		fputs(at, out);
	calltree_deinit(&t);
	if (r == 0 && (fflush(out) != 0 || ferror(out)))
		r = -EIO;
	return r;
}
