/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame graph page: one file that refers to no other. Its sources are in page/, a template, a
 * style sheet and the parts of a script; the build makes C strings of them.
 *
 * The data (html-data.c) is a JSON block, with one object for each type of a capture, or for each
 * of two compared captures. Names are untrusted. They are JSON strings in which everything that
 * HTML or JavaScript could take for markup is escaped, and the script shows them only as text. The
 * page's Content-Security-Policy allows our script and style sheet by hash: nothing else runs,
 * loads or is sent anywhere, whatever is in the data.
 */
#include <errno.h>
#include <nettle/base64.h>
#include <nettle/sha2.h>
#include <string.h>

#include "src/render/html-data.h"
#include "src/render/page-css.h"
#include "src/render/page-html.h"
#include "src/render/page-js.h"

/* The policy's source expression for an inline script or style. */
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

/* before: NULL, or the capture to compare p with. */
static int put_captures(FILE *out, const struct profile *p, const struct profile *before,
			const struct render_info *info)
{
	static const struct render_info unknown;
	int r = 0;

	fputs("[", out);
	for (uint32_t i = 0; i < p->n_types && r == 0; i++) {
		struct profile view;

		profile_view(p, i, &view);
		if (i > 0)
			view.residents.n = view.kills.n = view.victims.n =
				0; /* once: they are of no type */
		fputs(i ? ",\n" : "", out);
		r = html_put_data(out, &view, p, info, false);
	}
	if (r == 0 && before) {
		fputs(",\n", out);
		r = html_put_data(out, before, NULL, info->before ? info->before : &unknown, true);
	}
	fputs("]", out);
	return r;
}

static int render_page(const struct profile *p, const struct profile *before,
		       const struct render_info *info, FILE *out)
{
	static const char *const marks[] = {"@SCRIPT_HASH@", "@STYLE_HASH@", "@CSS@", "@DATA@",
					    "@JS@"};
	const char *at = page_html;
	int r = 0;

	/* Each mark occurs once, in this order. */
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
			r = put_captures(out, p, before, info);
			break;
		default:
			fputs(page_js, out);
		}
	}
	if (r == 0)
		fputs(at, out);
	if (r == 0 && (fflush(out) != 0 || ferror(out)))
		r = -EIO;
	return r;
}

int render_html(const struct profile *p, const struct render_info *info, FILE *out)
{
	return render_page(p, NULL, info, out);
}

int render_html_diff(const struct profile *before, const struct profile *after,
		     const struct render_info *info, FILE *out)
{
	return render_page(after, before, info, out);
}
