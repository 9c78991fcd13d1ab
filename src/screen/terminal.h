/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The terminal on standard input and output, by ncurses. One of it. */
#include <stdbool.h>
#include <termios.h>

#include "src/screen/ui.h"

/* Was this program built with ncurses? */
bool terminal_supported(void);
/* Its settings, zero-filled; false when standard input and output are not both a terminal. */
bool terminal_get(struct termios *ret);
/*
 * Puts back what terminal_get() gave, and the ordinary screen, if they are not there: for whoever
 * survives the process that had opened it. Never blocks.
 */
void terminal_restore(const struct termios *before);

/* Takes the terminal. 0; -ENOTTY: of no known type, or one that cannot do it; -EOPNOTSUPP. */
int terminal_open(const struct termios *before, bool color);
void terminal_close(void); /* if it is open */
/* After a change of its size. */
void terminal_resize(void);
/* The next key waiting: a byte or enum top_key_code; -1: none. */
int terminal_key(void);
void terminal_draw(struct top_ui *ui, const struct top_facts *facts);
