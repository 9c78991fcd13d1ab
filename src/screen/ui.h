/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The keys of a live view and the contents of its screen, without a terminal. */
#include "src/screen/layout.h"

/* Keys that are not characters. */
enum top_key_code {
	TOP_KEY_UP = 0x10000,
	TOP_KEY_DOWN,
	TOP_KEY_LEFT,
	TOP_KEY_RIGHT,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_ENTER,
	TOP_KEY_ESCAPE,
	TOP_KEY_BACKSPACE,
};

enum top_style {
	TOP_STYLE_PLAIN,
	TOP_STYLE_BOLD,
	TOP_STYLE_HEAD,
	TOP_STYLE_SELECTED,
	TOP_STYLE_HOT, /* a large share */
	TOP_STYLE_WARM,
	TOP_STYLE_N
};

struct top_ui {
	struct top_view view;
	struct top_table shown;	  /* the rows of view */
	struct top_table hidden;  /* without native functions, what they are made of */
	enum top_view_kind back;  /* the view before a jump */
	uint32_t selected, first; /* row, and row at the top of the list */
	uint64_t selected_hash;	  /* of its texts, to find it again */
	uint32_t page;		  /* rows of the list when it was last drawn */
	uint64_t opening;	  /* path in the tree to open with the next sum; 0: none */
	uint32_t event, n_events; /* the shown event */
	bool paused, help, editing;
	char edit[TOP_FILTER_MAX];
	char message[128];
};

void top_ui_init(struct top_ui *ui);
void top_ui_deinit(struct top_ui *ui);

/* Makes the rows from a new sum, or from the same one for another view; keeps the selected row. */
void top_ui_update(struct top_ui *ui, const struct top_table *sum);
/* Handles a key; call top_ui_update() after it. false: the user quits. */
bool top_ui_key(struct top_ui *ui, int key);

/* Calls put for each line of a screen of rows by columns; text is valid for the call. */
typedef void (*top_put_fn)(void *ctx, unsigned int y, enum top_style style, const char *text);
void top_ui_draw(struct top_ui *ui, const struct top_facts *facts, unsigned int rows,
		 unsigned int columns, top_put_fn put, void *ctx);
