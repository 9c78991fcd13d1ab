/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shortens a demangled name to the path of the function, without parameters, template arguments,
 * result type and qualifiers.
 *
 *	std::vector<int, A>::push_back(int&&)		std::vector::push_back
 *	foo::bar()::{lambda(int)#1}::operator()() const	foo::bar::{lambda#1}::operator()
 *	auto f<int>(int)::{lambda()#1}::operator()()	f::{lambda#1}::operator()
 *	std::operator<< <char>(std::ostream&)		std::operator<<
 *	v8::(anonymous namespace)::run(int) [clone .cold]
 *					v8::(anonymous namespace)::run [clone .cold]
 *	<alloc::vec::Vec<T> as core::fmt::Debug>::fmt	<alloc::vec::Vec as core::fmt::Debug>::fmt
 *	core::ptr::drop_in_place::<alloc::string::String> core::ptr::drop_in_place
 *	std.algorithm.map!(int[]).map(int[]).front() const std.algorithm.map.map.front
 *
 * This is a pass over the demangled text, because no option of libiberty leaves these out. The
 * words in the text come from the file, so brackets need not match: every skip stops at the end of
 * the text.
 */
#include "symbolize/demangle-simple.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

struct writer {
	char *text;
	size_t start, n; /* start: after words such as "virtual thunk to" */
};

static void put(struct writer *w, const char *p, size_t n)
{
	memcpy(w->text + w->n, p, n);
	w->n += n;
}

static bool starts(const char *p, const char *word)
{
	return strncmp(p, word, strlen(word)) == 0;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (c & 0x80);
}

/*
 * Skips a string or a character in quotes, or only the quote if it begins neither (a lifetime). The
 * demanglers do not escape quotes within a string: it ends at a quote after which a list continues.
 */
static const char *skip_quoted(const char *p)
{
	const char *q = p + 1;

	if (*p == '\'' && *q != '\\' && !(*q && q[1] == '\''))
		return q;
	for (q += *q != 0; *q; q++) {
		if (*q == *p && strchr(",)>wd", q[1]))
			return q + 1;
	}
	return q;
}

/* Skips to after the bracket that closes the one at p. */
static const char *skip_round(const char *p, bool quotes)
{
	size_t depth = 0;

	while (*p) {
		if (quotes && (*p == '"' || *p == '\'')) {
			p = skip_quoted(p);
			continue;
		}
		depth += *p == '(';
		if (*p++ == ')' && --depth == 0)
			break;
	}
	return p;
}

static const char *skip_angle(const char *p, bool quotes)
{
	size_t depth = 0;

	while (*p) {
		if (*p == '(') {
			p = skip_round(p, quotes);
		} else if (starts(p, "->")) {
			p += 2;
		} else if (quotes && *p == '\'') {
			p = skip_quoted(p);
		} else {
			depth += *p == '<';
			if (*p++ == '>' && --depth == 0)
				break;
		}
	}
	return p;
}

/* The length of " const", " &&" ... after parameters; 0: p is at something else. */
static size_t qualifier_length(const char *p)
{
	static const char *const words[] = {" const",	 " volatile",	" &&",	     " &",
					    " restrict", " __restrict", " noexcept", " immutable",
					    " shared",	 " inout"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t n = strlen(words[i]);

		if (starts(p, words[i]) && (!p[n] || strchr(" :.", p[n])))
			return n;
	}
	return 0;
}

/* ---- C++ ---- */

static size_t thunk_length(const char *text)
{
	static const char *const words[] = {
		"non-virtual thunk to ",       "virtual thunk to ",
		"covariant return thunk to ",  "TLS wrapper function for ",
		"TLS init function for ",      "transaction clone for ",
		"non-transaction clone for ",  "global constructors keyed to ",
		"global destructors keyed to "};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (starts(text, words[i]))
			return strlen(words[i]);
	}
	return 0;
}

/*
 * Copies the rest of an operator's name; p is after "operator". A type is copied up to its
 * parameters.
 */
static const char *put_operator(struct writer *w, const char *p)
{
	static const char *const symbols[] = {"\"\" ", "()", "[]", "<=>", "->*", "<<=", ">>=", "->",
					      "<<",    ">>", "<=", ">=",  "==",	 "!=",	"&&",  "||",
					      "++",    "--", "+=", "-=",  "*=",	 "/=",	"%=",  "&=",
					      "|=",    "^=", "<",  ">",	  "=",	 "!",	"+",   "-",
					      "*",     "/",  "%",  "&",	  "|",	 "^",	"~",   ","};

	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		if (starts(p, symbols[i])) {
			put(w, p, strlen(symbols[i]));
			p += strlen(symbols[i]);
			return starts(p, " <") ? p + 1 : p;
		}
	}
	while (*p && *p != '(') {
		if (*p == '<')
			p = skip_angle(p, false);
		else
			put(w, p++, 1);
	}
	return p;
}

/* {lambda(int)#1}, {unnamed type#1} */
static const char *put_braces(struct writer *w, const char *p)
{
	while (*p && *p != '}') {
		if (*p == '(')
			p = skip_round(p, false);
		else if (*p == '<')
			p = skip_angle(p, false);
		else
			put(w, p++, 1);
	}
	if (*p)
		put(w, p++, 1);
	return p;
}

/* Handles a space outside of all brackets. If no qualifier follows, the text so far was the result
 * type. */
static const char *take_space(struct writer *w, const char *p)
{
	size_t n = qualifier_length(p);

	if (n)
		return p + n;
	if (starts(p, " requires "))
		return p + strlen(p);
	w->n = w->start;
	return p + 1;
}

static void simplify_cxx(struct writer *w, const char *p)
{
	static const char anonymous[] = "(anonymous namespace)";

	w->start = thunk_length(p);
	put(w, p, w->start);
	for (p += w->start; *p;) {
		if (starts(p, anonymous)) {
			put(w, p, sizeof(anonymous) - 1);
			p += sizeof(anonymous) - 1;
		} else if (starts(p, " [clone ")) {
			put(w, p, strlen(p));
			p += strlen(p);
		} else if (starts(p, "[abi:")) {
			p += strcspn(p, "]");
			p += *p == ']';
		} else if (starts(p, "operator") && !is_word(p[8]) &&
			   (w->n == 0 || !is_word(w->text[w->n - 1]))) {
			put(w, p, 8);
			p = put_operator(w, p + 8);
		} else if (*p == '<') {
			p = skip_angle(p, false);
		} else if (*p == '(') {
			p = skip_round(p, false);
		} else if (*p == '{') {
			p = put_braces(w, p);
		} else if (*p == ' ') {
			p = take_space(w, p);
		} else {
			put(w, p++, 1);
		}
	}
}

/* ---- Rust ---- */

/* Are these generic arguments? "<T as Trait>" and "<impl T>" begin a path instead. */
static bool is_generic(const struct writer *w, const char *p)
{
	char last = w->n ? w->text[w->n - 1] : ' ';

	return *p == '<' && (is_word(last) || last == ':') && !starts(p, "<impl ");
}

static void simplify_rust(struct writer *w, const char *p)
{
	while (*p) {
		if (is_generic(w, p)) {
			if (w->n >= 2 && memcmp(w->text + w->n - 2, "::", 2) == 0)
				w->n -= 2;
			p = skip_angle(p, true);
		} else {
			put(w, p++, 1);
		}
	}
}

/* ---- D ---- */

static void simplify_d(struct writer *w, const char *p)
{
	while (*p) {
		size_t n = qualifier_length(p);

		if (starts(p, "!("))
			p = skip_round(p + 1, true);
		else if (*p == '(')
			p = skip_round(p, true);
		else if (n)
			p += n;
		else
			put(w, p++, 1);
	}
}

char *demangle_simplify(const char *text, enum demangle_language language)
{
	struct writer w = {.text = malloc(strlen(text) + 1)};

	if (!w.text)
		return NULL;
	switch (language) {
	case DEMANGLE_CXX:
		simplify_cxx(&w, text);
		break;
	case DEMANGLE_RUST:
		simplify_rust(&w, text);
		break;
	case DEMANGLE_D:
		simplify_d(&w, text);
		break;
	}
	if (w.n == w.start) /* nothing is left */
		w.n = strlen(strcpy(w.text, text));
	w.text[w.n] = 0;
	return w.text;
}
