/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings are JSON. Numbers are in columns: LEB128 numbers in base64. Columns of similar values
 * hold differences (zigzag), so most entries take one byte. A node of the tree takes 5 to 10 bytes
 * and a sample about as many, and a browser decodes this faster than JSON.
 *
 * The tree is in preorder. A node has the place (a function at an address) that first led to it and
 * how many levels it is above a child of the node before it. Only samples have values: node, time,
 * thread, CPU. So the page can add up any part of them.
 */
#include <errno.h>
#include <inttypes.h>
#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>

#include "src/profile/labels.h"
#include "src/render/calltree.h"
#include "src/render/amount.h"
#include "src/render/html-data.h"
#include "src/render/residents.h"
#include "src/render/waits.h"
#include "util/json.h"
#include "util/cleanup.h"

#define MAX_LOCKS  1000
#define MAX_MEMORY 100

static void put_member(FILE *out, const char *key, const char *text)
{
	fprintf(out, ",\"%s\":", key);
	json_put_string(out, text ? text : "");
}

static void put_meta(FILE *out, const struct profile *p, const struct render_info *info,
		     const struct sampling *how, bool before)
{
	const struct profile_type *t = &p->types[0];
	uint64_t length = p->end_unix_ns > p->start_unix_ns ? p->end_unix_ns - p->start_unix_ns : 0;

	fprintf(out,
		"\"meta\":{\"rate\":%" PRIu32 ",\"periodNs\":%" PRIu64 ",\"periodEvents\":%" PRIu64
		",\"weighted\":%d,\"counted\":%d,\"spread\":%.17g,\"startMs\":%" PRIu64
		",\"durationNs\":%" PRIu64 ",\"cpus\":%" PRIu32,
		t->rate_hz, t->period_ns, t->period_events, (int)t->weighted, (int)how->known,
		how->spread, p->start_unix_ns / 1000000, length, info->n_cpus);
	put_member(out, "title", info->title ? info->title : "perfwalk");
	put_member(out, "host", info->host_name);
	put_member(out, "kernel", info->kernel_release);
	put_member(out, "version", info->version);
	put_member(out, "event", profile_text(p, t->event));
	put_member(out, "unit", profile_period_unit(p));
	if (before)
		fputs(",\"before\":1", out);
	if (info->asked && strcmp(info->asked, profile_text(p, t->event)) == 0)
		fputs(",\"asked\":1", out);
	fputs("},\n\"counters\":{", out);
	for (int c = 0; c < PROFILE_N_COUNTERS; c++)
		fprintf(out, "%s\"%s\":%" PRIu64, c ? "," : "",
			profile_counter_name((enum profile_counter)c),
			profile_view_counter(p, (enum profile_counter)c));
	fputs("}", out);
}

/* ---- Columns ---- */

struct column {
	FILE *out;
	size_t n;
	int64_t last;	   /* last value of put_difference() */
	uint8_t buf[3072]; /* a multiple of 3: pieces of base64 can follow one another */
};

static void column_begin(struct column *c, FILE *out, const char *key)
{
	fprintf(out, "%s\"%s\":\"", key[0] == ',' ? ",\n" : "", key + (key[0] == ','));
	c->out = out;
	c->n = 0;
	c->last = 0;
}

static void column_flush(struct column *c)
{
	char text[BASE64_ENCODE_RAW_LENGTH(sizeof(c->buf))];

	base64_encode_raw(text, c->n, c->buf);
	(void)fwrite(text, 1, BASE64_ENCODE_RAW_LENGTH(c->n), c->out);
	c->n = 0;
}

static void column_put(struct column *c, uint64_t value)
{
	do {
		if (c->n == sizeof(c->buf))
			column_flush(c);
		c->buf[c->n++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		value >>= 7;
	} while (value);
}

static void column_put_difference(struct column *c, int64_t value)
{
	int64_t d = (int64_t)((uint64_t)value - (uint64_t)c->last);

	column_put(c, (uint64_t)d << 1 ^ (uint64_t)(d >> 63));
	c->last = value;
}

static void column_end(struct column *c)
{
	column_flush(c);
	fputc('"', c->out);
}

/* ---- Tables ---- */

static void put_symbols(FILE *out, const struct calltree *t)
{
	struct column c;

	fputs("\"strings\":[\"\"", out);
	for (strid i = 1; i <= t->names.n; i++) {
		fputc(',', out);
		json_put_string(out, strtab_get(&t->names, i));
	}
	fprintf(out, "],\n\"symbols\":{\"n\":%" PRIu32, t->symbols.n);
	column_begin(&c, out, ",name");
	for (uint32_t i = 0; i < t->symbols.n; i++)
		column_put_difference(&c, t->symbols.items[i].name);
	column_end(&c);
	column_begin(&c, out, ",module");
	for (uint32_t i = 0; i < t->symbols.n; i++)
		column_put(&c, t->symbols.items[i].module);
	column_end(&c);
	column_begin(&c, out, ",kind");
	for (uint32_t i = 0; i < t->symbols.n; i++)
		column_put(&c, t->symbols.items[i].kind);
	column_end(&c);
	column_begin(&c, out, ",file");
	for (uint32_t i = 0; i < t->symbols.n; i++)
		column_put(&c, t->symbols.items[i].file);
	column_end(&c);
	column_begin(&c, out, ",line");
	for (uint32_t i = 0; i < t->symbols.n; i++)
		column_put(&c, t->symbols.items[i].line);
	column_end(&c);
	fputs("}", out);
}

static uint64_t place_address(const struct profile *p, const struct call_place *place)
{
	return place->frame == PROFILE_NONE ? 0 : p->frames.items[place->frame].address;
}

/* Addresses are split in two halves: JavaScript's numbers are exact up to 53 bits. */
static void put_places(FILE *out, const struct profile *p, const struct calltree *t)
{
	struct column c;

	fprintf(out, ",\n\"places\":{\"n\":%" PRIu32, t->places.n);
	column_begin(&c, out, ",symbol");
	for (uint32_t i = 0; i < t->places.n; i++)
		column_put_difference(&c, t->places.items[i].symbol);
	column_end(&c);
	column_begin(&c, out, ",line");
	for (uint32_t i = 0; i < t->places.n; i++)
		column_put(&c, t->places.items[i].line);
	column_end(&c);
	column_begin(&c, out, ",high");
	for (uint32_t i = 0; i < t->places.n; i++)
		column_put_difference(&c, (int64_t)(place_address(p, &t->places.items[i]) >> 32));
	column_end(&c);
	column_begin(&c, out, ",low");
	for (uint32_t i = 0; i < t->places.n; i++)
		column_put_difference(&c, (uint32_t)place_address(p, &t->places.items[i]));
	column_end(&c);
	fputs("}", out);
}

/* Sets order to the number of each node in preorder; the root's is 0. */
static void put_nodes(FILE *out, const struct calltree *t, uint32_t *order)
{
	uint32_t depth = 0, last = 0, n = 0;
	struct column c;

	fprintf(out, ",\n\"nodes\":{\"n\":%" PRIu32, t->nodes.n - 1);
	column_begin(&c, out, ",place");
	for (uint32_t i = calltree_next(t, 0, &depth); i != CALLTREE_NONE;
	     i = calltree_next(t, i, &depth)) {
		column_put(&c, t->nodes.items[i].place);
		order[i] = ++n;
	}
	column_end(&c);
	column_begin(&c, out, ",up");
	depth = 0;
	for (uint32_t i = calltree_next(t, 0, &depth); i != CALLTREE_NONE;
	     i = calltree_next(t, i, &depth)) {
		column_put(&c, last + 1 - depth);
		last = depth;
	}
	column_end(&c);
	fputs("}", out);
}

/* As texts, each a key, "=" and the value. */
static int put_labels(FILE *out, const char *text, bool (*wanted)(const char *key), bool *begun)
{
	size_t size = strlen(text) + 1;
	_cleanup_free_ char *buf = malloc(size);
	struct label l;
	char both[4608];

	if (!buf)
		return -ENOMEM;
	while (label_read(&text, &l, buf, size)) {
		if (wanted && !wanted(l.key))
			continue;
		if (l.text)
			(void)snprintf(both, sizeof(both), "%s=%s", l.key, l.text);
		else
			(void)snprintf(both, sizeof(both), "%s=%" PRId64, l.key, l.number);
		(void)fputs(*begun ? "," : ",[", out);
		json_put_string(out, both);
		*begun = true;
	}
	return 0;
}

/* Are spans or services to choose from? */
static bool has_said(const struct profile *p)
{
	for (uint32_t i = 0; i < p->threads.n; i++) {
		const struct profile_thread *t = &p->threads.items[i];
		const char *said = profile_text(p, p->processes.items[t->process].attributes);
		char name[2];

		if (t->labels != STRID_EMPTY ||
		    label_find(said, "service.name", name, sizeof(name)))
			return true;
	}
	return false;
}

/* Each has a service, as in a report: that of one that publishes none is its executable. */
static void put_service(FILE *out, const struct profile *p, uint32_t process, bool *begun)
{
	char name[FRAME_MAX_NAME], both[FRAME_MAX_NAME + 16];

	(void)frame_service_name(p, process, name, sizeof(name));
	(void)snprintf(both, sizeof(both), "service.name=%s", name);
	(void)fputs(",[", out);
	json_put_string(out, both);
	*begun = true;
}

/* What is said of a thread and of its service. */
static int put_said(FILE *out, const struct profile *p, const struct profile_thread *t)
{
	const char *said = profile_text(p, p->processes.items[t->process].attributes);
	bool begun = false;
	char name[2];
	int r;

	if (!label_find(said, "service.name", name, sizeof(name)))
		put_service(out, p, t->process, &begun);
	r = put_labels(out, said, label_names_service, &begun);
	if (r == 0)
		r = put_labels(out, profile_text(p, t->labels), NULL, &begun);
	(void)fputc(']', out);
	return r;
}

static int put_threads(FILE *out, const struct profile *p)
{
	const bool said = has_said(p);
	int r = 0;

	fputs(",\n\"threads\":[", out);
	for (uint32_t i = 0; r == 0 && i < p->threads.n; i++) {
		const struct profile_thread *t = &p->threads.items[i];
		char name[FRAME_MAX_NAME], owner[256];

		(void)frame_process_name(p, t->process, name, sizeof(name));
		(void)frame_process_owner(p, t->process, owner, sizeof(owner));
		fprintf(out, "%s[%" PRIu32 ",%" PRIu32 ",", i ? "," : "", t->tid,
			p->processes.items[t->process].pid);
		json_put_string(out, profile_text(p, t->name));
		fputc(',', out);
		json_put_string(out, name);
		fputc(',', out);
		json_put_string(out, owner);
		if (said)
			r = put_said(out, p, t);
		fputc(']', out);
	}
	fputs("]", out);
	return r;
}

static void put_samples(FILE *out, const struct profile *p, const struct calltree *t,
			const uint32_t *order)
{
	const struct profile_sample *samples = p->types[0].samples.items;
	uint32_t n = p->types[0].samples.n;
	struct column c;

	fprintf(out, ",\n\"samples\":{\"n\":%" PRIu32, n);
	column_begin(&c, out, ",node");
	for (uint32_t i = 0; i < n; i++)
		column_put(&c, order[t->sample_nodes[i]]);
	column_end(&c);
	/* Microseconds since the start of the capture. */
	column_begin(&c, out, ",time");
	for (uint32_t i = 0; i < n; i++)
		column_put_difference(&c,
				      (int64_t)(samples[i].time_unix_ns - p->start_unix_ns) / 1000);
	column_end(&c);
	column_begin(&c, out, ",thread");
	for (uint32_t i = 0; i < n; i++)
		column_put(&c, samples[i].thread);
	column_end(&c);
	column_begin(&c, out, ",cpu");
	for (uint32_t i = 0; i < n; i++)
		column_put(&c, samples[i].cpu);
	column_end(&c);
	column_begin(&c, out, ",value");
	for (uint32_t i = 0; i < n; i++)
		column_put(&c, (uint64_t)samples[i].value);
	column_end(&c);
	/* The numbers of samples in the values; otherwise these are the values. */
	if (p->types[0].weighted) {
		column_begin(&c, out, ",count");
		for (uint32_t i = 0; i < n; i++)
			column_put(&c, samples[i].n);
		column_end(&c);
	}
	fputs("}", out);
}

/* [name, waits, ns, time in words, longest in words, who waited, who released] of each lock. */
static int put_locks(FILE *out, const struct profile *p)
{
	_cleanup_free_ struct lock_sum *locks = NULL;
	char text[FRAME_MAX_NAME];
	uint32_t n = 0;
	int r = waits_by_lock(p, &locks, &n);

	if (r < 0 || n == 0)
		return r;
	fputs(",\n\"locks\":[", out);
	for (uint32_t i = 0; i < n && i < MAX_LOCKS; i++) {
		const struct lock_sum *l = &locks[i];

		fputs(i ? ",[" : "[", out);
		json_put_string(out, waits_lock_name(p, l, text, sizeof(text)));
		fprintf(out, ",%" PRIu64 ",%" PRId64 ",", l->n, l->ns);
		json_put_string(out, amount_text(text, sizeof(text), l->ns, "nanoseconds"));
		fputc(',', out);
		json_put_string(out, amount_text(text, sizeof(text), l->longest_ns, "nanoseconds"));
		fputc(',', out);
		json_put_string(out, waits_caller_name(p, l->waiter, text, sizeof(text)));
		fputc(',', out);
		json_put_string(out, waits_caller_name(p, l->releaser, text, sizeof(text)));
		fputc(']', out);
	}
	fputc(']', out);
	return 0;
}

/*
 * [name, pid, most, [[microseconds since the start, bytes], ...]] of each process that was looked
 * at, the largest first; only changes are there. Bytes are null where they are not known from then
 * on.
 */
static int put_memory(FILE *out, const struct profile *p)
{
	struct resident_sums s;
	char name[FRAME_MAX_NAME];
	int r = residents_by_process(p, &s);

	for (uint32_t i = 0; r == 0 && i < s.n && i < MAX_MEMORY; i++) {
		const struct resident_sum *of = &s.items[i];

		fputs(i ? ",\n[" : ",\n\"memory\":[[", out);
		(void)frame_process_name(p, of->process, name, sizeof(name));
		json_put_string(out, name);
		fprintf(out, ",%" PRIu32 ",%" PRIu64 ",[", p->processes.items[of->process].pid,
			of->most);
		for (uint32_t k = 0; k < of->n; k++) {
			const struct profile_resident *at = &s.points[of->first + k];

			if (k > 0 && at[-1].bytes == at->bytes)
				continue;
			fprintf(out, "%s[%" PRIu64 ",", k ? "," : "",
				residents_us(p, at->time_unix_ns));
			if (at->bytes == PROFILE_RESIDENT_UNKNOWN)
				fputs("null]", out);
			else
				fprintf(out, "%" PRIu64 "]", at->bytes);
		}
		fputs("]]", out);
	}
	if (r == 0 && s.n)
		fputc(']', out);
	residents_free_sums(&s);
	return r;
}

/* [microseconds since the start, processes killed since the look before]. */
static void put_kills(FILE *out, const struct profile *p)
{
	for (uint32_t i = 0; i < p->kills.n; i++) {
		const struct profile_kills *k = &p->kills.items[i];

		fprintf(out, "%s[%" PRIu64 ",%" PRIu64 "]", i ? "," : ",\n\"kills\":[",
			residents_us(p, k->time_unix_ns), k->n);
	}
	if (p->kills.n)
		fputc(']', out);
}

/* [microseconds, name, pid, owner, certain] of those that were killed, or may have been. */
static void put_victims(FILE *out, const struct profile *p)
{
	char name[FRAME_MAX_NAME];

	for (uint32_t i = 0; i < p->victims.n; i++) {
		const struct profile_victim *v = &p->victims.items[i];

		fprintf(out, "%s[%" PRIu64 ",", i ? "," : ",\n\"victims\":[",
			residents_us(p, v->time_unix_ns));
		(void)frame_process_name(p, v->process, name, sizeof(name));
		json_put_string(out, name);
		fprintf(out, ",%" PRIu32 ",", p->processes.items[v->process].pid);
		(void)frame_process_owner(p, v->process, name, sizeof(name));
		json_put_string(out, name);
		fprintf(out, ",%d]", v->certain != 0);
	}
	if (p->victims.n)
		fputc(']', out);
}

int html_put_data(FILE *out, const struct profile *p, const struct profile *all,
		  const struct render_info *info, bool before)
{
	_cleanup_free_ uint32_t *order = NULL;
	struct calltree t;
	int r;

	r = calltree_build(&t, p, CALLTREE_MODULES | CALLTREE_INLINED | CALLTREE_SAMPLES);
	if (r == 0) {
		order = calloc((size_t)t.nodes.n + 1, sizeof(*order));
		r = order ? 0 : -ENOMEM;
	}
	if (r == 0) {
		fputs("{", out);
		put_meta(out, p, info, &t.sampling, before);
		fprintf(out, ",\n\"total\":%" PRId64 ",\"cut\":%" PRId64 ",\n",
			t.nodes.items[0].total, t.n_cut);
		put_symbols(out, &t);
		put_places(out, p, &t);
		put_nodes(out, &t, order);
		r = put_threads(out, p);
		put_samples(out, p, &t, order);
		if (r == 0 && all && profile_is_off_cpu(p, 0))
			r = put_locks(out, all);
		if (r == 0)
			r = put_memory(out, p);
		put_kills(out, p);
		put_victims(out, p);
		fputs("}", out);
	}
	calltree_deinit(&t);
	return r;
}
