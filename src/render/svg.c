/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flame graph as a picture: one SVG file without a script or a reference to another file, for
 * places that only show pictures. The root is at the bottom and callers are below their callees;
 * each box has its name, samples and share as a tooltip (title). Colours are those of the page: a
 * hue for the kind of code, varied a little by the module.
 *
 * Boxes narrower than MIN_WIDTH are left out: nobody could see or hit them, and they are most of a
 * large capture. The picture says their sum at the top, so that nothing is hidden.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/render/calltree.h"
#include "src/render/render.h"
#include "util/text.h"

#define WIDTH		1400.0
#define MARGIN		12.0
#define HEAD		64.0
#define ROW		18
#define MIN_WIDTH	0.25
#define TITLE_CHARS	145  /* of 15 px */
#define CHAR_WIDTH	6.7  /* of 11 px monospace, rounded up */
#define MAX_LABEL_BYTES 1024 /* of WIDTH / CHAR_WIDTH characters of up to four bytes */
#define MAX_ROWS	600  /* deeper boxes are left out: no viewer shows such a picture */

struct svg {
	FILE *out;
	const struct calltree *t;
	double *left; /* by node, in samples from the left */
	uint32_t n_rows;
	uint32_t n_hidden;
	double scale; /* pixels for a sample */
};

/* Text of an element or attribute. XML does not allow U+FFFE and U+FFFF. */
static void put_text(FILE *out, const char *clean)
{
	for (const unsigned char *c = (const unsigned char *)clean; *c; c++) {
		if (*c == '<')
			(void)fputs("&lt;", out);
		else if (*c == '>')
			(void)fputs("&gt;", out);
		else if (*c == '&')
			(void)fputs("&amp;", out);
		else if (*c == '"')
			(void)fputs("&quot;", out);
		else if (c[0] == 0xef && c[1] == 0xbf && c[2] >= 0xbe) {
			(void)fputc('?', out);
			c += 2;
		} else
			(void)fputc(*c, out);
	}
}

static double hash_text(const char *text)
{
	uint32_t h = UINT32_C(2166136261);

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * UINT32_C(16777619);
	return h / 4294967296.0;
}

static void put_color(const struct svg *s, const struct call_symbol *symbol)
{
	static const struct {
		double hue, spread, saturation;
	} kinds[FRAME_N_KINDS] = {
		[FRAME_NATIVE] = {39, 13, 82},	     [FRAME_KERNEL] = {212, 12, 62},
		[FRAME_JIT] = {142, 14, 48},	     [FRAME_INLINED] = {52, 9, 68},
		[FRAME_MARKER] = {345, 0, 68},	     [FRAME_PROCESS] = {225, 0, 12},
		[FRAME_INTERPRETED] = {292, 10, 26}, [FRAME_WAIT] = {225, 0, 12},
	};
	const char *name = strtab_get(&s->t->names, symbol->name);
	const char *module = strtab_get(&s->t->names, symbol->module);
	double hue = kinds[symbol->kind].hue +
		     (hash_text(module) - 0.5) * 2 * kinds[symbol->kind].spread;
	double light = 74 + (kinds[symbol->kind].spread > 0 ? (hash_text(name) - 0.5) * 7 : 0);

	(void)fprintf(s->out, "hsl(%.0f,%.0f%%,%.0f%%)", hue, kinds[symbol->kind].saturation,
		      light);
}

/* Bytes of the first n characters. */
static size_t prefix_bytes(const char *text, size_t n)
{
	size_t i = 0;

	for (; text[i]; i++) {
		if (((unsigned char)text[i] & 0xc0) != 0x80 && n-- == 0)
			break;
	}
	return i;
}

static void put_label(const struct svg *s, const char *name, double x, double y, double width)
{
	size_t room = width > 8 ? (size_t)((width - 8) / CHAR_WIDTH) : 0, n;
	char text[MAX_LABEL_BYTES];

	if (room < 3)
		return;
	n = prefix_bytes(name, room);
	if (name[n])
		n = prefix_bytes(name, room - 1);
	(void)snprintf(text, sizeof(text), "%.*s", (int)n, name);
	(void)fprintf(s->out, "<text x=\"%.1f\" y=\"%.1f\">", x + 4, y + ROW - 5.5);
	put_text(s->out, text);
	(void)fputs(name[n] ? "\xe2\x80\xa6</text>" : "</text>", s->out);
}

static void put_box(struct svg *s, uint32_t node, uint32_t depth)
{
	const struct call_node *n = &s->t->nodes.items[node];
	const struct call_symbol *symbol =
		n->symbol == CALLTREE_NONE ? NULL : &s->t->symbols.items[n->symbol];
	const char *name = symbol ? strtab_get(&s->t->names, symbol->name) : "all";
	const char *module = symbol ? strtab_get(&s->t->names, symbol->module) : "";
	double x = MARGIN + s->left[node] * s->scale, width = (double)n->total * s->scale;
	double y = HEAD + (double)(s->n_rows - 1 - depth) * ROW;
	double all = (double)s->t->nodes.items[0].total;

	(void)fputs("<g><title>", s->out);
	put_text(s->out, name);
	if (*module) {
		(void)fputs(" (", s->out);
		put_text(s->out, module);
		(void)fputc(')', s->out);
	}
	(void)fprintf(s->out,
		      ": %" PRId64 " samples, %.2f%%</title>"
		      "<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" fill=\"",
		      n->total, all > 0 ? 100 * (double)n->total / all : 0, x, y,
		      width > 1 ? width - 0.6 : width, ROW - 1);
	if (symbol)
		put_color(s, symbol);
	else
		(void)fputs("hsl(225,7%,80%)", s->out);
	(void)fputs("\"/>", s->out);
	put_label(s, name, x, y, width);
	(void)fputs("</g>\n", s->out);
}

/* Where each box begins: at its parent's start plus the siblings before it. A parent has a smaller
 * row than its children, so one pass in preorder is enough. */
static void place_boxes(struct svg *s)
{
	uint32_t depth = 0;

	for (uint32_t i = 0; i != CALLTREE_NONE; i = calltree_next(s->t, i, &depth)) {
		const struct call_node *n = &s->t->nodes.items[i];
		double x = s->left[i];
		bool visible = (double)n->total * s->scale >= MIN_WIDTH && depth < MAX_ROWS;

		s->n_hidden += !visible;
		if (visible && depth + 1 > s->n_rows)
			s->n_rows = depth + 1;
		for (uint32_t c = n->first_child; c != CALLTREE_NONE;
		     c = s->t->nodes.items[c].next) {
			s->left[c] = x;
			x += (double)s->t->nodes.items[c].total;
		}
	}
}

static void put_head(const struct svg *s, const struct profile *p, const struct render_info *info)
{
	double height = HEAD + (double)s->n_rows * ROW + MARGIN;
	char title[512], host[256];

	(void)text_clean(title, sizeof(title), info->title ? info->title : "perfwalk", SIZE_MAX);
	title[prefix_bytes(title, TITLE_CHARS)] = '\0';
	(void)text_clean(host, sizeof(host), info->host_name ? info->host_name : "?", SIZE_MAX);
	(void)fprintf(s->out,
		      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		      "viewBox=\"0 0 %.0f %.0f\">\n"
		      "<style>text{font:11px ui-monospace,\"DejaVu Sans Mono\",Menlo,Consolas,"
		      "monospace;fill:#1b2029}.t{font-size:15px;font-weight:600}.m{fill:#626b7a}"
		      "g:hover rect{stroke:#1b2029}</style>\n"
		      "<rect width=\"100%%\" height=\"100%%\" fill=\"#f6f7f9\"/>\n"
		      "<text class=\"t\" x=\"%.0f\" y=\"26\">",
		      WIDTH, height, WIDTH, height, MARGIN);
	put_text(s->out, title);
	(void)fprintf(s->out, "</text>\n<text class=\"m\" x=\"%.0f\" y=\"46\">", MARGIN);
	put_text(s->out, host);
	(void)fprintf(s->out, ", %" PRId64 " samples", s->t->nodes.items[0].total);
	if (p->types[0].rate_hz)
		(void)fprintf(s->out, " at %" PRIu32 " Hz", p->types[0].rate_hz);
	if (s->n_hidden)
		(void)fprintf(s->out, "; %" PRIu32 " boxes too small to see are left out",
			      s->n_hidden);
	(void)fputs("</text>\n", s->out);
}

static int draw(struct svg *s, const struct profile *p, const struct render_info *info)
{
	int64_t total = s->t->nodes.items[0].total;
	uint32_t depth = 0;

	s->left = calloc(s->t->nodes.n, sizeof(*s->left));
	if (!s->left)
		return -ENOMEM;
	s->scale = (WIDTH - 2 * MARGIN) / (double)(total ? total : 1);
	place_boxes(s);
	put_head(s, p, info);
	for (uint32_t i = 0; i != CALLTREE_NONE && total; i = calltree_next(s->t, i, &depth)) {
		if ((double)s->t->nodes.items[i].total * s->scale >= MIN_WIDTH && depth < MAX_ROWS)
			put_box(s, i, depth);
	}
	(void)fputs("</svg>\n", s->out);
	return fflush(s->out) != 0 || ferror(s->out) ? -EIO : 0;
}

int render_svg(const struct profile *p, const struct render_info *info, FILE *out)
{
	struct calltree t;
	struct svg s = {.out = out, .t = &t};
	int r = calltree_build(&t, p, CALLTREE_MODULES | CALLTREE_INLINED);

	if (r == 0)
		r = draw(&s, p, info);
	calltree_deinit(&t);
	free(s.left);
	return r;
}
