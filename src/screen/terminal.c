/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncurses restores the terminal if its process exits normally. Otherwise another process does,
 * without ncurses: with the saved settings, and with escape sequences that all terminals with an
 * alternate screen share.
 *
 * This process is not in the terminal's session, so the keys to stop and abort would affect other
 * processes: they are disabled, except Ctrl-C, which the command handles.
 */
#include "config.h"

#include "src/screen/terminal.h"

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool terminal_get(struct termios *ret)
{
	memset(ret, 0, sizeof(*ret));
	return isatty(STDOUT_FILENO) && tcgetattr(STDIN_FILENO, ret) == 0;
}

static bool same(const struct termios *a, const struct termios *b)
{
	return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_cflag == b->c_cflag &&
	       a->c_lflag == b->c_lflag && memcmp(a->c_cc, b->c_cc, sizeof(a->c_cc)) == 0;
}

void terminal_restore(const struct termios *before)
{
	/* Attributes off, cursor shown, keypad off, the ordinary screen. */
	static const char sequences[] = "\033[0m\033[?25h\033[?1l\033>\033[?1049l\r";
	struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};
	struct termios now;

	if (!terminal_get(&now) || same(&now, before))
		return;
	(void)tcsetattr(STDIN_FILENO, TCSANOW, before);
	/* A terminal whose reader hangs accepts nothing. */
	if (poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) &&
	    write(STDOUT_FILENO, sequences, sizeof(sequences) - 1) < 0)
		errno = 0;
}

#ifdef HAVE_NCURSES

#include <curses.h>
#include <term.h>

#define ESCAPE_DELAY_MS 25

static SCREEN *screen;
static bool colors;

bool terminal_supported(void)
{
	return true;
}

static void set_keys(void)
{
	struct termios t;

	if (tcgetattr(STDIN_FILENO, &t) < 0)
		return;
	t.c_cc[VSUSP] = t.c_cc[VQUIT] = _POSIX_VDISABLE;
	t.c_iflag &= ~(tcflag_t)(IXON | IXOFF); /* Ctrl-S would block drawing */
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &t);
	(void)def_prog_mode();
}

static void set_colors(bool color)
{
	colors = color && has_colors() && start_color() == OK;
	if (!colors)
		return;
	(void)use_default_colors();
	(void)init_pair(TOP_STYLE_HOT, COLOR_RED, -1);
	(void)init_pair(TOP_STYLE_WARM, COLOR_YELLOW, -1);
}

int terminal_open(const struct termios *before, bool color)
{
	const char *move;

	terminal_restore(before); /* in case a process died without restoring it */
	(void)setlocale(LC_CTYPE, "");
	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return -ENOTTY;
	move = tigetstr("cup");
	if (!move || move == (char *)-1) {
		terminal_close();
		return -ENOTTY;
	}
	(void)cbreak();
	(void)noecho();
	(void)nonl();
	(void)keypad(stdscr, true);
	(void)nodelay(stdscr, true);
	(void)set_escdelay(ESCAPE_DELAY_MS);
	(void)curs_set(0);
	set_keys();
	set_colors(color);
	terminal_resize();
	return 0;
}

void terminal_close(void)
{
	if (!screen)
		return;
	(void)endwin();
	delscreen(screen);
	screen = NULL;
}

void terminal_resize(void)
{
	struct winsize w;

	if (screen && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row > 0 && w.ws_col > 0)
		(void)resizeterm(w.ws_row, w.ws_col);
}

int terminal_key(void)
{
	static const struct {
		int curses, ours;
	} keys[] = {
		{KEY_UP, TOP_KEY_UP},
		{KEY_DOWN, TOP_KEY_DOWN},
		{KEY_LEFT, TOP_KEY_LEFT},
		{KEY_RIGHT, TOP_KEY_RIGHT},
		{KEY_PPAGE, TOP_KEY_PAGE_UP},
		{KEY_NPAGE, TOP_KEY_PAGE_DOWN},
		{KEY_HOME, TOP_KEY_HOME},
		{KEY_END, TOP_KEY_END},
		{KEY_ENTER, TOP_KEY_ENTER},
		{'\r', TOP_KEY_ENTER},
		{'\n', TOP_KEY_ENTER},
		{27, TOP_KEY_ESCAPE},
		{KEY_BACKSPACE, TOP_KEY_BACKSPACE},
		{0x7f, TOP_KEY_BACKSPACE},
		{'\b', TOP_KEY_BACKSPACE},
	};
	int c = screen ? getch() : ERR;

	if (c == ERR)
		return -1;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (keys[i].curses == c)
			return keys[i].ours;
	}
	return c < 256 ? c : 0; /* keys without a meaning here */
}

static void put(void *ctx, unsigned int y, enum top_style style, const char *text)
{
	static const attr_t plain[TOP_STYLE_N] = {
		[TOP_STYLE_BOLD] = A_BOLD,
		[TOP_STYLE_HEAD] = A_REVERSE,
		[TOP_STYLE_SELECTED] = A_REVERSE,
		[TOP_STYLE_HOT] = A_BOLD,
	};
	attr_t a = plain[style];

	if (colors && (style == TOP_STYLE_HOT || style == TOP_STYLE_WARM))
		a |= COLOR_PAIR((int)style);
	(void)attrset((int)a);
	(void)mvaddstr((int)y, 0, text);
	(void)attrset(A_NORMAL);
}

void terminal_draw(struct top_ui *ui, const struct top_facts *facts)
{
	if (!screen)
		return;
	(void)erase();
	top_ui_draw(ui, facts, (unsigned int)LINES, (unsigned int)COLS, put, NULL);
	(void)refresh();
}

#else

bool terminal_supported(void)
{
	return false;
}

int terminal_open(const struct termios *before, bool color)
{
	return -EOPNOTSUPP;
}

void terminal_close(void) {}

void terminal_resize(void) {}

int terminal_key(void)
{
	return -1;
}

void terminal_draw(struct top_ui *ui, const struct top_facts *facts) {}

#endif
