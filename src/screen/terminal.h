/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The terminal on standard input and output, with ncurses. There is only one. */
#include <stdbool.h>
#include <termios.h>

#include "src/screen/ui.h"

/* Was this program built with ncurses? */
bool terminal_supported(void);
/* Its settings, zero-filled; false: standard input or output is not a terminal. */
bool terminal_get(struct termios *ret);
/*
 * Restores the settings of terminal_get(), and the normal screen, if needed: for a process that
 * survives the one that opened the terminal. Never blocks.
 */
void terminal_restore(const struct termios *before);

/* Takes the terminal. 0; -ENOTTY: unknown type, or not capable; -EOPNOTSUPP. */
int terminal_open(const struct termios *before, bool color);
void terminal_close(void); /* if it is open */
/* After a change of its size. */
void terminal_resize(void);
/* The next pending key: a byte or enum top_key_code; -1: none. */
int terminal_key(void);
void terminal_draw(struct top_ui *ui, const struct top_facts *facts);
