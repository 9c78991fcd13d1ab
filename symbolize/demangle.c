/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangling by libiberty, with the bounds it lacks.
 *
 * Its recursion is limited, its output is not: a name of a hundred bytes can refer back to its own
 * parts so that the text doubles each time. For C++ and Rust the text arrives through a callback,
 * which stops the demangler by longjmp when it has enough. Those demanglers work on the stack; a
 * longjmp leaks at most the buffer of one punycode identifier. The demangler for D has no callback
 * and allocates its result, so we limit the number of back references beforehand.
 *
 * People want to read what they wrote. Parameters tell overloads apart and stay. The result type of
 * a template instance (no other names have one) is dropped, and so is the hash of legacy Rust
 * names. Suffixes of copies that the compiler made read "f(int) [clone .cold]". For shorter names
 * there is demangle-simple.c.
 */
#include "symbolize/symbolize.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#if defined(HAVE_DEMANGLE_H) && !defined(HAVE_LIBIBERTY_DEMANGLE_H)
#include <demangle.h>
#else
#include <libiberty/demangle.h>
#endif

#include "symbolize/demangle-simple.h"

/* libiberty's own limit for C++ is about 1000 bytes, as part of its limit of recursion. */
#define MAX_MANGLED	 4096
#define MAX_DEMANGLED	 16384
#define MAX_D_REFERENCES 24 /* 3^8 times the longest part at worst */
#define OPTIONS		 (DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP)

struct text {
	jmp_buf full;
	size_t n;
	char bytes[MAX_DEMANGLED + 1];
};

static void text_append(const char *piece, size_t n, void *ctx)
{
	struct text *t = ctx;
	size_t room = MAX_DEMANGLED - t->n;

	if (n == 0) /* piece may be NULL then */
		return;
	memcpy(t->bytes + t->n, piece, n < room ? n : room);
	t->n += n < room ? n : room;
	if (n > room)
		longjmp(t->full, 1);
}

typedef int (*demangle_fn)(const char *mangled, int options, demangle_callbackref callback,
			   void *ctx);

/* False: not mangled that way. A text that is too long is cut. */
static bool demangle_bounded(demangle_fn fn, const char *name, struct text *t)
{
	t->n = 0;
	if (setjmp(t->full))
		return true;
	return fn(name, OPTIONS, text_append, t) && t->n > 0;
}

static bool demangle_d(const char *name, struct text *t)
{
	_cleanup_free_ char *s = NULL;
	unsigned int n = 0;

	for (const char *p = name; *p; p++)
		n += *p == 'Q';
	if (n > MAX_D_REFERENCES)
		return false;
	s = dlang_demangle(name, OPTIONS);
	if (!s || !*s)
		return false;
	t->n = strnlen(s, MAX_DEMANGLED);
	memcpy(t->bytes, s, t->n);
	return true;
}

/* The end of a legacy Rust name, after its hash: 17h, 16 hex digits, E. NULL: it is C++. */
static const char *rust_legacy_end(const char *name)
{
	for (const char *p = strstr(name, "17h"); p; p = strstr(p + 1, "17h")) {
		size_t n = strspn(p + 3, "0123456789abcdef");

		if (n == 16 && p[3 + n] == 'E' && (p[4 + n] == 0 || p[4 + n] == '.'))
			return p + 4 + n;
	}
	return NULL;
}

/*
 * name begins with _ and is a copy that may be cut. *ret_suffix is the rest after the mangled part,
 * if the demangler does not print it itself.
 */
static bool demangle(char *name, const char **ret_suffix, struct text *t,
		     enum demangle_language *ret_language)
{
	char *llvm = strstr(name, ".llvm.");
	const char *end;

	*ret_suffix = "";
	if (llvm) /* a number that makes a local name unique */
		*llvm = 0;
	if (name[1] == 'R' || name[1] == 'D')
		end = name + strcspn(name, ".");
	else if (strncmp(name, "_ZN", 3) == 0)
		end = rust_legacy_end(name);
	else
		end = NULL;
	if (end) {
		_cleanup_free_ char *base = strndup(name, (size_t)(end - name));

		*ret_suffix = end;
		*ret_language = name[1] == 'D' ? DEMANGLE_D : DEMANGLE_RUST;
		if (base && (name[1] == 'D' ? demangle_d(base, t)
					    : demangle_bounded(rust_demangle_callback, base, t)))
			return true;
		*ret_suffix = "";
	}
	*ret_language = DEMANGLE_CXX;
	return (strncmp(name, "_Z", 2) == 0 || strncmp(name, "_GLOBAL_", 8) == 0) &&
	       demangle_bounded(cplus_demangle_v3_callback, name, t);
}

char *symbol_demangle(const char *name, enum symbol_demangling style)
{
	size_t n = strnlen(name, MAX_MANGLED + 1);
	bool stub = n > 4 && memcmp(name + n - 4, "@plt", 4) == 0;
	_cleanup_free_ char *copy = NULL, *simple = NULL;
	_cleanup_free_ struct text *t = NULL;
	enum demangle_language language;
	const char *suffix;
	char *result;

	if (style == SYMBOL_DEMANGLE_NONE || n < 3 || n > MAX_MANGLED || name[0] != '_')
		return NULL;
	copy = strndup(name, stub ? n - 4 : n);
	t = malloc(sizeof(*t));
	if (!copy || !t || !demangle(copy, &suffix, t, &language))
		return NULL;
	t->bytes[t->n] = 0;
	simple = style == SYMBOL_DEMANGLE_SIMPLE ? demangle_simplify(t->bytes, language) : NULL;
	if (asprintf(&result, "%s%s%s%s%s%s", simple ? simple : t->bytes,
		     !simple && t->n == MAX_DEMANGLED ? "..." : "", *suffix ? " [clone " : "",
		     suffix, *suffix ? "]" : "", stub ? "@plt" : "") < 0)
		return NULL;
	return result;
}
