/* SPDX-License-Identifier: Apache-2.0 */
#include "src/screen/ui.h"

#include <stdio.h>
#include <string.h>

#include "src/screen/native.h"
#include "src/screen/tree.h"

#define MIN_ROWS    6
#define MIN_COLUMNS 20
#define N_HEAD	    3 /* lines above the list */
#define N_FOOT	    2

static const char *const help_lines[] = {
	"",
	"  1  functions: self is time in the function, total includes its callees",
	"  2  processes, 3  containers and units; 100 CPU% is one CPU",
	"  4  tree: callers and callees, largest total first; right opens, left closes",
	"  s      sort by self or total; c  with the 95% ranges of the shares",
	"  i      with or without the native functions of interpreters",
	"  /      show only rows that match a regular expression; empty: all",
	"  e      next event, with several (-e)",
	"  space  pause and resume",
	"  enter  the functions of the selected process or container (4: their tree)",
	"  esc    back; at the top: clear the filter",
	"  up, down, page up, page down, home, end (or k, j)  select",
	"  q      quit",
	"",
	"  SELF%, TOTAL% and SHARE% are of all samples of the window, of all CPUs.",
	"  95% ranges: how much the shares may be off by chance.",
	"  lost: samples the kernel had no room for. cut short: stacks whose outer",
	"  callers are unknown, so totals of these are too small.",
	"  any key returns",
};

void top_ui_init(struct top_ui *ui)
{
	memset(ui, 0, sizeof(*ui));
	top_view_init(&ui->view);
	top_table_init(&ui->shown);
	top_table_init(&ui->hidden);
}

void top_ui_deinit(struct top_ui *ui)
{
	top_view_deinit(&ui->view);
	top_table_deinit(&ui->shown);
	top_table_deinit(&ui->hidden);
}

/* ---- Rows ---- */

static uint64_t row_hash(const struct top_ui *ui, uint32_t i)
{
	const struct top_table *t = &ui->shown;
	const struct top_row *r = &t->rows.items[i];
	const strid ids[] = {r->function, r->module, r->comm, r->owner};
	uint64_t h = r->pid;

	if (ui->view.kind == TOP_VIEW_TREE)
		return r->path;
	for (int j = 0; j < 4; j++) {
		const char *text = strtab_get(&t->strings, ids[j]);

		h = hash_bytes(text, strlen(text), h);
	}
	return h;
}

static void select_row(struct top_ui *ui, uint32_t i)
{
	uint32_t n = ui->shown.rows.n;

	ui->selected = n == 0 ? 0 : i < n ? i : n - 1;
	/* At the top, the selection stays on the largest row, whichever that is. */
	ui->selected_hash = ui->selected > 0 ? row_hash(ui, ui->selected) : 0;
}

void top_ui_update(struct top_ui *ui, const struct top_table *sum)
{
	uint32_t n;

	if (ui->view.no_native) {
		top_hide_native(sum, &ui->hidden);
		sum = &ui->hidden;
	}
	if (ui->opening)
		top_tree_open_chain(&ui->view, sum, ui->opening);
	ui->opening = 0;
	top_view_make(&ui->view, sum, &ui->shown);
	n = ui->shown.rows.n;
	for (uint32_t i = 0; ui->selected_hash && i < n; i++) {
		if (row_hash(ui, i) == ui->selected_hash) {
			ui->selected = i;
			return;
		}
	}
	select_row(ui, ui->selected);
}

/* ---- Keys ---- */

static bool has_functions(enum top_view_kind kind)
{
	return kind == TOP_VIEW_FUNCTIONS || kind == TOP_VIEW_TREE;
}

/* The selected process or container stays when switching between functions and tree. */
static void show_kind(struct top_ui *ui, enum top_view_kind kind)
{
	if (!has_functions(kind) || !has_functions(ui->view.kind))
		ui->view.one_process = ui->view.one_owner = false;
	ui->view.kind = kind;
	ui->selected = ui->first = 0;
	ui->selected_hash = 0;
}

static void jump(struct top_ui *ui)
{
	const struct top_table *t = &ui->shown;
	const struct top_row *r;

	if (ui->selected >= t->rows.n || has_functions(ui->view.kind))
		return;
	r = &t->rows.items[ui->selected];
	ui->back = ui->view.kind;
	show_kind(ui, TOP_VIEW_FUNCTIONS);
	ui->view.pid = r->pid;
	ui->view.one_process = ui->back == TOP_VIEW_PROCESSES;
	ui->view.one_owner = ui->back == TOP_VIEW_CONTAINERS;
	(void)snprintf(ui->view.owner, sizeof(ui->view.owner), "%s",
		       strtab_get(&t->strings, r->owner));
	/* The filter found the process; show all its functions. */
	top_view_clear_filter(&ui->view);
}

static void go_back(struct top_ui *ui)
{
	if (ui->view.one_process || ui->view.one_owner)
		show_kind(ui, ui->back);
	else
		top_view_clear_filter(&ui->view);
}

/* ---- The tree's keys ---- */

static void select_parent(struct top_ui *ui)
{
	const struct top_row *rows = ui->shown.rows.items;
	uint32_t at = ui->selected;

	while (at > 0 && rows[at].depth >= rows[ui->selected].depth)
		at--;
	ui->selected = at;
	ui->selected_hash = rows[at].path;
}

/* open: opens the node, or moves below an open one; else closes it, or moves to its parent. */
static void fold(struct top_ui *ui, bool open)
{
	const struct top_row *r = &ui->shown.rows.items[ui->selected];

	if (ui->view.kind != TOP_VIEW_TREE || ui->selected >= ui->shown.rows.n)
		return;
	if (open && r->fold == TOP_CLOSED) {
		ui->opening = r->path;
	} else if (open && r->fold == TOP_OPEN && ui->selected + 1 < ui->shown.rows.n) {
		ui->selected++;
		ui->selected_hash = r[1].path;
		return;
	} else if (!open && r->fold == TOP_OPEN) {
		top_tree_set_open(&ui->view, r->path, false);
	} else if (!open) {
		select_parent(ui);
		return;
	}
	/* The top row stays in place, even if it is opened. */
	ui->selected_hash = r->path;
}

static void enter(struct top_ui *ui)
{
	bool closed = ui->selected < ui->shown.rows.n &&
		      ui->shown.rows.items[ui->selected].fold == TOP_CLOSED;

	if (ui->view.kind == TOP_VIEW_TREE)
		fold(ui, closed);
	else
		jump(ui);
}

static void edit_key(struct top_ui *ui, int key)
{
	size_t n = strlen(ui->edit);

	switch (key) {
	case TOP_KEY_ESCAPE:
		ui->editing = false;
		break;
	case TOP_KEY_ENTER:
		if (top_view_set_filter(&ui->view, ui->edit, ui->message, sizeof(ui->message)) == 0)
			ui->editing = false;
		ui->first = 0;
		break;
	case TOP_KEY_BACKSPACE:
		/* Deletes a whole character. */
		while (n > 0 && (ui->edit[n - 1] & 0xc0) == 0x80)
			n--;
		ui->edit[n > 0 ? n - 1 : 0] = '\0';
		break;
	default:
		if (key >= ' ' && key < 256 && key != 0x7f && n + 1 < sizeof(ui->edit)) {
			ui->edit[n] = (char)key;
			ui->edit[n + 1] = '\0';
		}
	}
}

static void move(struct top_ui *ui, int64_t by)
{
	int64_t to = (int64_t)ui->selected + by;

	select_row(ui, to < 0 ? 0 : to > UINT32_MAX ? UINT32_MAX : (uint32_t)to);
}

static void list_key(struct top_ui *ui, int key)
{
	switch (key) {
	case TOP_KEY_UP:
	case 'k':
		move(ui, -1);
		break;
	case TOP_KEY_DOWN:
	case 'j':
		move(ui, 1);
		break;
	case TOP_KEY_PAGE_UP:
		move(ui, -(int64_t)ui->page);
		break;
	case TOP_KEY_PAGE_DOWN:
		move(ui, ui->page);
		break;
	case TOP_KEY_HOME:
		select_row(ui, 0);
		break;
	case TOP_KEY_END:
		select_row(ui, UINT32_MAX);
		break;
	case TOP_KEY_RIGHT:
	case '+':
	case TOP_KEY_LEFT:
	case '-':
		fold(ui, key == TOP_KEY_RIGHT || key == '+');
		break;
	default:
		break;
	}
}

bool top_ui_key(struct top_ui *ui, int key)
{
	ui->message[0] = '\0';
	if (ui->editing) {
		edit_key(ui, key);
		return true;
	}
	if (ui->help) {
		ui->help = false;
		return true;
	}
	switch (key) {
	case 'q':
		return false;
	case '1':
	case '2':
	case '3':
	case '4':
		show_kind(ui, (enum top_view_kind)(key - '1'));
		break;
	case 's':
		ui->view.sort = ui->view.sort == TOP_SORT_SELF ? TOP_SORT_TOTAL : TOP_SORT_SELF;
		break;
	case 'e':
		ui->event = ui->n_events ? (ui->event + 1) % ui->n_events : 0;
		break;
	case 'c':
		ui->view.confidence = !ui->view.confidence;
		break;
	case 'i':
		ui->view.no_native = !ui->view.no_native;
		break;
	case '/':
		ui->editing = true;
		(void)snprintf(ui->edit, sizeof(ui->edit), "%s", ui->view.filter);
		break;
	case ' ':
		ui->paused = !ui->paused;
		break;
	case '?':
	case 'h':
		ui->help = true;
		break;
	case TOP_KEY_ENTER:
		enter(ui);
		break;
	case TOP_KEY_ESCAPE:
		go_back(ui);
		break;
	default:
		list_key(ui, key);
	}
	return true;
}

/* ---- The screen ---- */

static enum top_style row_style(const struct top_ui *ui, uint32_t i)
{
	const struct top_row *r = &ui->shown.rows.items[i];
	bool self = ui->view.sort == TOP_SORT_SELF && ui->view.kind != TOP_VIEW_TREE;
	uint64_t value = self ? r->self : r->total;

	if (i == ui->selected)
		return TOP_STYLE_SELECTED;
	if (value * 10 >= ui->shown.counts.whole)
		return TOP_STYLE_HOT;
	return value * 100 >= ui->shown.counts.whole ? TOP_STYLE_WARM : TOP_STYLE_PLAIN;
}

static void draw_list(struct top_ui *ui, unsigned int columns, top_put_fn put, void *ctx)
{
	char line[TOP_LINE_MAX];

	if (ui->selected < ui->first)
		ui->first = ui->selected;
	if (ui->selected >= ui->first + ui->page)
		ui->first = ui->selected - ui->page + 1;
	for (uint32_t y = 0; y < ui->page && ui->first + y < ui->shown.rows.n; y++) {
		top_layout_row(line, columns, &ui->view, &ui->shown, ui->first + y);
		put(ctx, N_HEAD + y, row_style(ui, ui->first + y), line);
	}
	if (ui->shown.rows.n == 0)
		put(ctx, N_HEAD, TOP_STYLE_PLAIN,
		    !ui->shown.end_ns	 ? "  waiting for the first samples"
		    : ui->view.filter[0] ? "  nothing matches the filter (esc: no filter)"
					 : "  no samples: nothing here is running");
}

static void draw_foot(struct top_ui *ui, const struct top_facts *facts, unsigned int rows,
		      unsigned int columns, top_put_fn put, void *ctx)
{
	char text[TOP_FILTER_MAX + 176], line[TOP_LINE_MAX];

	top_layout_status(line, columns, facts, &ui->shown);
	put(ctx, rows - 2, TOP_STYLE_PLAIN, line);
	if (ui->editing)
		(void)snprintf(text, sizeof(text), "/%s_  %s", ui->edit, ui->message);
	else
		(void)snprintf(
			text, sizeof(text),
			"%s1 functions  2 processes  3 containers  4 tree  s sort  / filter  "
			"? help  q quit",
			ui->n_events > 1 ? "e event  " : "");
	(void)top_layout_fit(line, sizeof(line), text, columns, true);
	put(ctx, rows - 1, ui->editing ? TOP_STYLE_BOLD : TOP_STYLE_HEAD, line);
}

void top_ui_draw(struct top_ui *ui, const struct top_facts *facts, unsigned int rows,
		 unsigned int columns, top_put_fn put, void *ctx)
{
	struct top_facts f = *facts;
	char line[TOP_LINE_MAX], head[TOP_LINE_MAX];

	if (rows < MIN_ROWS || columns < MIN_COLUMNS) {
		(void)top_layout_fit(line, sizeof(line), "too small", columns, false);
		put(ctx, 0, TOP_STYLE_PLAIN, line);
		return;
	}
	f.paused = ui->paused;
	ui->page = rows - N_HEAD - N_FOOT;
	top_layout_title(line, columns, &f, &ui->shown);
	put(ctx, 0, TOP_STYLE_BOLD, line);
	top_layout_scope(line, columns, &ui->view, &ui->shown);
	put(ctx, 1, TOP_STYLE_PLAIN, line);
	for (uint32_t i = 0; ui->help && i < sizeof(help_lines) / sizeof(*help_lines); i++) {
		(void)top_layout_fit(line, sizeof(line), help_lines[i], columns, false);
		if (i < ui->page)
			put(ctx, N_HEAD - 1 + i, TOP_STYLE_PLAIN, line);
	}
	if (!ui->help) {
		top_layout_head(head, columns, &ui->view, &ui->shown);
		(void)top_layout_fit(line, sizeof(line), head, columns, true);
		put(ctx, 2, TOP_STYLE_HEAD, line);
		draw_list(ui, columns, put, ctx);
	}
	draw_foot(ui, &f, rows, columns, put, ctx);
}
