/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A label has four fields and an end: key, 's' or 'n', the text or the number, the unit. Control
 * characters end fields and labels, since no clean text has them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/profile/labels.h"
#include "util/hash.h"
#include "util/text.h"

#define FIELD_END '\x1f'
#define LABEL_END '\x1e'
#define ENDS	  "\x1f\x1e"

static void put_field(FILE *out, const char *text, char end)
{
	size_t n = strcspn(text, ENDS);

	for (; text[n]; text += n + 1, n = strcspn(text, ENDS)) {
		(void)fwrite(text, 1, n, out);
		(void)fputc(' ', out);
	}
	(void)fwrite(text, 1, n, out);
	(void)fputc(end, out);
}

void label_write(FILE *out, const struct label *l)
{
	char number[32] = "";

	if (!l->text)
		(void)snprintf(number, sizeof(number), "%" PRId64, l->number);
	put_field(out, l->key, FIELD_END);
	put_field(out, l->text ? "s" : "n", FIELD_END);
	put_field(out, l->text ? l->text : number, FIELD_END);
	put_field(out, l->unit ? l->unit : "", LABEL_END);
}

bool label_read(const char **text, struct label *ret, char *buf, size_t size)
{
	size_t n = strcspn(*text, "\x1e");
	char *fields[4], *at = buf;

	if (!(*text)[0] || (*text)[n] != LABEL_END || n >= size)
		return false;
	memcpy(buf, *text, n);
	buf[n] = '\0';
	*text += n + 1;
	for (int i = 0; i < 4; i++) {
		char *end = at ? strchr(at, FIELD_END) : NULL;

		if (!at)
			return false;
		fields[i] = at;
		if (end)
			*end = '\0';
		at = end ? end + 1 : NULL;
	}
	*ret = (struct label){.key = fields[0], .unit = fields[3]};
	if (*fields[1] == 's')
		ret->text = fields[2];
	else
		ret->number = strtoll(fields[2], NULL, 10);
	return true;
}

bool label_find(const char *labels, const char *key, char *ret, size_t size)
{
	size_t n_key = strlen(key);

	while (*labels) {
		size_t n = strcspn(labels, "\x1e");

		if (strncmp(labels, key, n_key) == 0 &&
		    strncmp(labels + n_key, "\x1fs\x1f", 3) == 0) {
			const char *text = labels + n_key + 3;

			(void)snprintf(ret, size, "%.*s", (int)strcspn(text, ENDS), text);
			return true;
		}
		labels += n + (labels[n] != '\0');
	}
	return false;
}

bool label_names_service(const char *key)
{
	static const char *const keys[] = {"service.name", "service.instance.id", "service.version",
					   "deployment.environment.name"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(key, keys[i]) == 0)
			return true;
	}
	return false;
}

bool label_is_reserved(const char *key)
{
	/* Those of OTLP and those of pprof. */
	static const char *const keys[] = {
		"thread.id", "thread.name", "cpu.logical_number", "pid", "tid", "comm",
		"thread",    "container",   "container_name",	  "unit"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(key, keys[i]) == 0)
			return true;
	}
	return label_names_service(key);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* An id of zeros is none. */
static bool find_id(const char *labels, const char *key, uint8_t *ret, size_t n)
{
	char text[2 * LABEL_TRACE_BYTES + 2];
	uint8_t any = 0;

	if (!label_find(labels, key, text, sizeof(text)) || strlen(text) != 2 * n)
		return false;
	for (size_t i = 0; i < n; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		ret[i] = (uint8_t)(high << 4 | low);
		any |= ret[i];
	}
	return any != 0;
}

bool label_link(const char *labels, uint8_t trace[LABEL_TRACE_BYTES],
		uint8_t span[LABEL_SPAN_BYTES])
{
	return *labels && find_id(labels, LABEL_TRACE, trace, LABEL_TRACE_BYTES) &&
	       find_id(labels, LABEL_SPAN, span, LABEL_SPAN_BYTES);
}

/* ---- Values ---- */

const char *label_format_double(char buf[LABEL_DOUBLE_BYTES], double number)
{
	for (int digits = 6; digits <= 17; digits++) {
		(void)snprintf(buf, LABEL_DOUBLE_BYTES, "%.*g", digits, number);
		if (strtod(buf, NULL) == number)
			break;
	}
	return buf;
}

int label_list_add(void *list, const uint8_t *text, size_t n)
{
	struct label_list *l = list;

	if (!text || n + 2 > sizeof(l->text) - l->n) {
		l->refused = true;
		return 0;
	}
	if (l->n_items++)
		l->text[l->n++] = LABEL_ITEM_END;
	l->n += text_clean(l->text + l->n, sizeof(l->text) - l->n, (const char *)text, n);
	return 0;
}

/* ---- The labels of a sample ---- */

int label_set_begin(struct label_set *s)
{
	*s = (struct label_set){0};
	s->out = open_memstream(&s->text, &s->n_text);
	return s->out ? 0 : -ENOMEM;
}

static bool has_key(const struct label_set *s, uint64_t key)
{
	for (uint32_t i = 0; i < s->n; i++) {
		if (s->keys[i] == key)
			return true;
	}
	return false;
}

void label_set_add(struct label_set *s, const struct label *l)
{
	uint64_t key = hash_bytes(l->key, strlen(l->key), 0);
	size_t n = strlen(l->key) + (l->text ? strlen(l->text) : 20) + strlen(l->unit) + 5;

	if (l->text && !*l->text)
		return;
	if (!*l->key || label_is_reserved(l->key) || s->n == LABEL_SET_MAX || has_key(s, key) ||
	    (size_t)ftell(s->out) + n > LABEL_SET_MAX_BYTES) {
		s->n_refused++;
		return;
	}
	s->keys[s->n++] = key;
	label_write(s->out, l);
}

char *label_set_end(struct label_set *s)
{
	if (fclose(s->out) == 0)
		return s->text;
	free(s->text);
	return NULL;
}
