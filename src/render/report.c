/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of a profile, like perf report's: what shares the same values of the keys is one row. Keys
 * that say whose a sample is (comm, container, unit, thread) hold for a whole stack, those that say
 * where (module, symbol, line) for each function of it; a row's total counts a sample once, however
 * often it recurs in the stack.
 *
 * Values are interned, so a function of a stack costs a hash of two numbers: the owner's and the
 * place's. Places are cached by frame.
 */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "src/render/aggregate.h"
#include "src/render/frame.h"
#include "src/render/render.h"
#include "src/render/table.h"
#include "util/hash.h"
#include "util/text.h"

#define MAX_TEXT_BYTES	 (UINT64_C(512) << 20)
#define MAX_CHAIN	 256
#define MAX_DEPTH	 32 /* of trees of callers and callees */
#define MAX_TREES	 10 /* without --symbol and --top */
#define SEPARATOR	 '\t'
#define CONTAINER_DIGITS 12

struct entry {
	uint32_t owner, place; /* strids of keys */
	uint64_t self, total;
	uint64_t seen; /* number of the row that was counted last */
};

/* Functions of a frame, innermost first. */
struct frame_places {
	uint32_t first, n; /* rows of places; n 0: not known yet */
};

struct tree_node {
	uint32_t place, parent, first_child, next;
	uint64_t value;
};

struct report {
	const struct profile *p;
	const struct render_report_options *o;
	struct aggregate a;
	struct strtab texts;
	struct frame_places *frames;
	ARRAY(uint32_t) places;
	ARRAY(struct entry) entries;
	struct hash_index index;
	ARRAY(struct tree_node) nodes; /* the first is the root */
	struct hash_index node_index;  /* by parent and place */
	uint32_t *owners;	       /* by thread: strid + 1, 0: not known yet */
	uint64_t total;
	bool by_owner, by_place, has_symbol;
	regex_t symbol;
	const struct entry *only; /* trees of this entry alone; NULL: of what matches symbol */
};

static const struct {
	const char *name, *title;
	bool owner;
} keys[REPORT_N_KEYS] = {
	[REPORT_COMM] = {"comm", "COMM", true},
	[REPORT_CONTAINER] = {"container", "CONTAINER", true},
	[REPORT_UNIT] = {"unit", "UNIT", true},
	[REPORT_THREAD] = {"thread", "THREAD", true},
	[REPORT_MODULE] = {"module", "MODULE", false},
	[REPORT_SYMBOL] = {"symbol", "SYMBOL", false},
	[REPORT_LINE] = {"line", "LINE", false},
};

const char *render_report_key_name(enum render_report_key key)
{
	return keys[key].name;
}

/* ---- Values of keys ---- */

static void owner_value(const struct report *r, enum render_report_key key, uint32_t thread,
			char *buf, size_t size)
{
	const struct profile *p = r->p;
	const struct profile_thread *t = &p->threads.items[thread];
	const struct profile_process *proc = &p->processes.items[t->process];
	const char *name;
	char tid[32];

	buf[0] = '\0';
	switch (key) {
	case REPORT_COMM:
		(void)frame_process_name(p, t->process, buf, size);
		break;
	case REPORT_CONTAINER:
		name = profile_text(p, proc->container_name);
		(void)text_clean(buf, size, *name ? name : profile_text(p, proc->container_id),
				 *name ? SIZE_MAX : CONTAINER_DIGITS);
		break;
	case REPORT_UNIT:
		(void)text_clean(buf, size, profile_text(p, proc->systemd_unit), SIZE_MAX);
		break;
	default:
		(void)text_clean(buf, size - 16, profile_text(p, t->name), SIZE_MAX);
		(void)snprintf(tid, sizeof(tid), "%s%" PRIu32, *buf ? "/" : "", t->tid);
		if (t->tid)
			(void)strcat(buf, tid);
	}
}

static void place_value(const struct report *r, enum render_report_key key, uint32_t frame,
			const struct profile_line *line, char *buf, size_t size)
{
	const struct profile *p = r->p;
	uint32_t module = p->frames.items[frame].module;
	const char *file;
	char name[256];

	buf[0] = '\0';
	switch (key) {
	case REPORT_MODULE:
		(void)text_clean(
			buf, size,
			frame_function_module(p, module, line ? line->function : PROFILE_NONE),
			SIZE_MAX);
		break;
	case REPORT_SYMBOL:
		if (line)
			(void)frame_function_name(p, line->function, buf, size);
		else
			(void)frame_fallback_name(p, frame, buf, size);
		break;
	default:
		file = line ? profile_text(p, p->functions.items[line->function].file) : "";
		(void)text_clean(name, sizeof(name), frame_basename(file), SIZE_MAX);
		if (*name)
			(void)snprintf(buf, size, "%s:%" PRIu32, name, line->line);
	}
}

/* The values of the keys of one sort, with separators between. */
static uint32_t put_values(struct report *r, bool owner, uint32_t row,
			   const struct profile_line *line)
{
	char text[8 * FRAME_MAX_NAME];
	bool first = true;
	size_t n = 0;

	for (uint32_t i = 0; i < r->o->n_keys; i++) {
		enum render_report_key key = (enum render_report_key)r->o->keys[i];

		if (keys[key].owner != owner)
			continue;
		if (!first)
			text[n++] = SEPARATOR;
		first = false;
		if (owner)
			owner_value(r, key, row, text + n, FRAME_MAX_NAME);
		else
			place_value(r, key, row, line, text + n, FRAME_MAX_NAME);
		n += strlen(text + n);
	}
	text[n] = '\0';
	return strtab_put_n(&r->texts, text, n);
}

static uint32_t owner_of(struct report *r, uint32_t thread)
{
	if (!r->by_owner)
		return STRID_EMPTY;
	if (!r->owners[thread])
		r->owners[thread] = put_values(r, true, thread, NULL) + 1;
	return r->owners[thread] - 1;
}

/* The places of a frame's functions, innermost first; NULL without memory. */
static const uint32_t *places_of(struct report *r, uint32_t frame, uint32_t *ret_n)
{
	const struct profile_frame *f = &r->p->frames.items[frame];
	struct frame_places *have = &r->frames[frame];
	uint32_t n = f->n_lines < MAX_CHAIN ? f->n_lines : MAX_CHAIN;

	if (have->n == 0) {
		have->first = r->places.n;
		for (uint32_t i = 0; i < (n ? n : 1); i++) {
			const struct profile_line *line =
				n ? &r->p->lines.items[f->first_line + f->n_lines - n + i] : NULL;
			uint32_t *place = array_push(&r->places);

			if (!place)
				return NULL;
			*place = put_values(r, false, frame, line);
		}
		have->n = n ? n : 1;
	}
	*ret_n = have->n;
	return r->places.items + have->first;
}

/* ---- Rows ---- */

static struct entry *entry_of(struct report *r, uint32_t owner, uint32_t place)
{
	uint64_t hash = hash_combine(hash_u64(owner), place);
	uint32_t slot = hash_index_first(&r->index, hash), row;
	struct entry *e;

	while ((row = hash_index_row(&r->index, slot)) != HASH_INDEX_NONE) {
		e = &r->entries.items[row];
		if (e->owner == owner && e->place == place)
			return e;
		slot = hash_index_next(&r->index, slot);
	}
	e = array_push(&r->entries);
	if (!e || hash_index_add(&r->index, hash, r->entries.n - 1) < 0)
		return NULL;
	*e = (struct entry){.owner = owner, .place = place};
	return e;
}

static int count(struct report *r, const struct aggregate_row *row, uint64_t number, uint32_t place,
		 bool leaf)
{
	struct entry *e = entry_of(r, owner_of(r, row->thread), place);

	if (!e)
		return -ENOMEM;
	e->self += leaf ? row->value : 0;
	if (e->seen != number)
		e->total += row->value;
	e->seen = number;
	return 0;
}

static bool row_wanted(const struct report *r, const struct aggregate_row *row)
{
	uint32_t process = r->p->threads.items[row->thread].process;
	const struct profile_process *proc = &r->p->processes.items[process];
	const char *id = profile_text(r->p, proc->container_id);
	const char *name = profile_text(r->p, proc->container_name);
	const char *comm = r->o->comm, *container = r->o->container;
	char text[256];

	(void)frame_process_name(r->p, process, text, sizeof(text));
	if (comm && *comm && fnmatch(comm, text, 0) != 0)
		return false;
	/* As it is, or as it is shown. */
	(void)snprintf(text, sizeof(text), "%.*s", CONTAINER_DIGITS, id);
	return !container || !*container || fnmatch(container, id, 0) == 0 ||
	       fnmatch(container, text, 0) == 0 || fnmatch(container, name, 0) == 0;
}

/* Calls fn for each function of the stack, leaf first; at: number from there. */
static int each_place(struct report *r, uint32_t stack,
		      int (*fn)(struct report *r, void *ctx, uint32_t place, uint32_t at),
		      void *ctx)
{
	uint32_t n, at = 0;
	const uint32_t *frames = profile_stack_frames(r->p, stack, &n);
	int e = 0;

	for (uint32_t i = 0; i < n && e == 0; i++) {
		uint32_t n_places;
		const uint32_t *places = places_of(r, frames[i], &n_places);

		if (!places)
			return -ENOMEM;
		for (uint32_t k = 0; k < n_places && e == 0; k++)
			e = fn(r, ctx, r->places.items[r->frames[frames[i]].first + k], at++);
	}
	return e;
}

struct counting {
	const struct aggregate_row *row;
	uint64_t number;
};

static int count_place(struct report *r, void *ctx, uint32_t place, uint32_t at)
{
	const struct counting *c = ctx;

	return count(r, c->row, c->number, place, at == 0);
}

static int count_rows(struct report *r)
{
	int e = 0;

	for (uint32_t i = 0; i < r->a.rows.n && e == 0; i++) {
		struct counting c = {&r->a.rows.items[i], i + 1};

		if (!row_wanted(r, c.row))
			continue;
		r->total += c.row->value;
		if (r->by_place)
			e = each_place(r, c.row->stack, count_place, &c);
		else
			e = count(r, c.row, c.number, STRID_EMPTY, true);
	}
	return e;
}

/* ---- Callers and callees ---- */

static struct tree_node *child_of(struct report *r, uint32_t parent, uint32_t place,
				  uint32_t *ret_row)
{
	uint64_t hash = hash_combine(hash_u64(parent), place);
	uint32_t slot = hash_index_first(&r->node_index, hash), row;
	struct tree_node *n;

	while ((row = hash_index_row(&r->node_index, slot)) != HASH_INDEX_NONE) {
		n = &r->nodes.items[row];
		if (n->parent == parent && n->place == place) {
			*ret_row = row;
			return n;
		}
		slot = hash_index_next(&r->node_index, slot);
	}
	n = array_push(&r->nodes);
	row = r->nodes.n - 1;
	if (!n || hash_index_add(&r->node_index, hash, row) < 0)
		return NULL;
	*n = (struct tree_node){
		.place = place, .parent = parent, .next = r->nodes.items[parent].first_child};
	r->nodes.items[parent].first_child = *ret_row = row;
	return n;
}

struct path {
	ARRAY(uint32_t) places; /* leaf first */
};

static int path_add(struct report *r, void *ctx, uint32_t place, uint32_t at)
{
	struct path *path = ctx;
	uint32_t *item = array_push(&path->places);

	if (!item)
		return -ENOMEM;
	*item = place;
	return 0;
}

/* The value of the key symbol among those of a place; its length. */
static size_t symbol_of(const struct report *r, uint32_t place, const char **ret)
{
	const char *text = strtab_get(&r->texts, place);

	for (uint32_t i = 0; i < r->o->n_keys && r->o->keys[i] != REPORT_SYMBOL; i++) {
		if (!keys[r->o->keys[i]].owner) {
			text += strcspn(text, "\t");
			text += *text != '\0';
		}
	}
	*ret = text;
	return strcspn(text, "\t");
}

static bool place_matches(const struct report *r, uint32_t place)
{
	char name[FRAME_MAX_NAME];
	const char *text;
	size_t n;

	if (r->only)
		return place == r->only->place;
	n = symbol_of(r, place, &text);
	(void)snprintf(name, sizeof(name), "%.*s", (int)n, text);
	return regexec(&r->symbol, name, 0, NULL, 0) == 0;
}

/* From the outermost match down to the leaf, or from the innermost one up to the root. */
static int tree_add(struct report *r, const struct path *path, uint64_t value, bool callers)
{
	uint32_t match = UINT32_MAX, node = 0, depth = 0;

	for (uint32_t i = 0; i < path->places.n; i++) {
		if (!place_matches(r, path->places.items[i]))
			continue;
		match = i;
		if (callers)
			break;
	}
	if (match == UINT32_MAX)
		return 0;
	r->nodes.items[0].value += value;
	for (uint32_t i = match; i < path->places.n && depth < MAX_DEPTH; depth++) {
		struct tree_node *n = child_of(r, node, path->places.items[i], &node);

		if (!n)
			return -ENOMEM;
		n->value += value;
		i += callers ? 1u : UINT32_MAX; /* past the leaf it wraps and ends */
	}
	return 0;
}

static int tree_build(struct report *r, bool callers)
{
	struct path path = {.places = ARRAY_INIT(UINT32_MAX / 2)};
	struct tree_node *root;
	int e = 0;

	r->nodes.max = UINT32_MAX / 2;
	array_clear(&r->nodes);
	hash_index_clear(&r->node_index);
	root = array_push(&r->nodes);
	if (!root)
		return -ENOMEM;
	*root = (struct tree_node){0};
	for (uint32_t i = 0; i < r->a.rows.n && e == 0; i++) {
		const struct aggregate_row *row = &r->a.rows.items[i];

		if (!row_wanted(r, row) || (r->only && owner_of(r, row->thread) != r->only->owner))
			continue;
		array_clear(&path.places);
		e = each_place(r, row->stack, path_add, &path);
		if (e == 0)
			e = tree_add(r, &path, row->value, callers);
	}
	array_deinit(&path.places);
	return e;
}

/* The largest of the children that comes after last (0: the first one); 0: none is left. */
static uint32_t next_child(const struct report *r, uint32_t node, uint32_t last)
{
	uint64_t limit = last ? r->nodes.items[last].value : UINT64_MAX;
	uint32_t best = 0;

	for (uint32_t c = r->nodes.items[node].first_child; c; c = r->nodes.items[c].next) {
		uint64_t v = r->nodes.items[c].value;

		if ((v < limit || (v == limit && c > last)) &&
		    (!best || v > r->nodes.items[best].value))
			best = c;
	}
	return best;
}

/* A chain of calls without branches is one column: indent grows where the value changes. */
static void tree_print(const struct report *r, struct table *t, uint32_t parent, uint32_t depth,
		       uint32_t indent)
{
	uint32_t child = 0;

	while (depth < MAX_DEPTH && (child = next_child(r, parent, child)) != 0) {
		const struct tree_node *n = &r->nodes.items[child];
		double percent = table_share(n->value, r->total);
		bool same = parent && n->value == r->nodes.items[parent].value;
		uint32_t at = parent && !same ? indent + 1 : indent;
		const char *text;
		size_t length = symbol_of(r, n->place, &text);

		if (percent < r->o->min_percent)
			return;
		table_tree_line(t, percent, t->csv ? depth : at, same, text, length);
		tree_print(r, t, child, depth + 1, at);
	}
}

/* what: of which functions. */
static int print_tree(struct report *r, struct table *t, bool callers, const char *what)
{
	int e = tree_build(r, callers);

	if (e < 0)
		return e;
	table_heading(t,
		      callers ? "Callers of %s: each is called by those below it"
			      : "Callees of %s: each calls those below it",
		      what);
	if (r->nodes.items[0].value == 0)
		table_note(t, "no function matches");
	else
		tree_print(r, t, 0, 0, 0);
	return 0;
}

static int print_trees(struct report *r, struct table *t, const char *what)
{
	int e = 0;

	if (r->o->callers)
		e = print_tree(r, t, true, what);
	if (e == 0 && r->o->callees)
		e = print_tree(r, t, false, what);
	return e;
}

/* ---- The table ---- */

static int by_self(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return x->place != y->place ? (x->place < y->place ? -1 : 1)
				    : (x->owner < y->owner ? -1 : x->owner > y->owner);
}

static int by_total(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return by_self(a, b);
}

/* Puts the entries to show first, in their order, and returns how many; sums up the rest. */
static uint32_t choose_entries(struct report *r, uint32_t max, uint32_t *ret_hidden,
			       uint64_t *ret_rest)
{
	uint32_t shown = 0;

	*ret_hidden = 0;
	*ret_rest = 0;
	if (r->entries.n)
		qsort(r->entries.items, r->entries.n, sizeof(*r->entries.items),
		      r->o->by_total ? by_total : by_self);
	for (uint32_t i = 0; i < r->entries.n; i++) {
		const struct entry e = r->entries.items[i];
		uint64_t most = r->o->no_total ? e.self : e.total;

		if (r->has_symbol && !place_matches(r, e.place))
			continue;
		if ((max && shown == max) || table_share(most, r->total) < r->o->min_percent) {
			++*ret_hidden;
			*ret_rest += e.self;
			continue;
		}
		r->entries.items[shown++] = e;
	}
	return shown;
}

/* Calls fn for the values of an entry's keys, in the order of the columns. */
static void each_cell(const struct report *r, struct table *t, const struct entry *e,
		      void (*fn)(struct table *t, const char *text, size_t n))
{
	const char *owner = strtab_get(&r->texts, e->owner);
	const char *place = strtab_get(&r->texts, e->place);

	t->at = 0;
	for (uint32_t k = 0; k < r->o->n_keys; k++) {
		const char **from = keys[r->o->keys[k]].owner ? &owner : &place;
		size_t n = strcspn(*from, "\t");

		fn(t, *from, n);
		*from += n + ((*from)[n] != '\0');
	}
}

static void print_entries(struct report *r, struct table *t)
{
	uint32_t hidden;
	uint64_t rest;
	uint32_t n = choose_entries(r, r->o->max_rows, &hidden, &rest);

	for (uint32_t i = 0; i < r->o->n_keys; i++)
		table_column(t, keys[r->o->keys[i]].title);
	for (uint32_t i = 0; i < n; i++)
		each_cell(r, t, &r->entries.items[i], table_measure);
	table_head(t, r->by_place && !r->o->no_total);
	for (uint32_t i = 0; i < n; i++) {
		const struct entry *e = &r->entries.items[i];

		table_begin(t, table_share(e->self, r->total), table_share(e->total, r->total),
			    e->self);
		each_cell(r, t, e, table_cell);
		table_end(t);
	}
	if (n == 0)
		table_note(t, "no sample matches");
	table_rest(t, hidden, table_share(rest, r->total));
}

/* A tree for each of the first entries. */
static int print_entry_trees(struct report *r, struct table *t)
{
	uint32_t hidden, n;
	uint64_t rest;
	int e = 0;

	n = choose_entries(r, r->o->max_rows ? r->o->max_rows : MAX_TREES, &hidden, &rest);
	for (uint32_t i = 0; i < n && e == 0; i++) {
		const struct entry only = r->entries.items[i];
		const char *owner = strtab_get(&r->texts, only.owner), *symbol;
		size_t length = symbol_of(r, only.place, &symbol);
		char what[FRAME_MAX_NAME * 2];

		(void)snprintf(what, sizeof(what), "%.*s%s%s", (int)length, symbol,
			       *owner ? " of " : "", owner);
		for (char *c = what; *c; c++)
			*c = *c == SEPARATOR ? ' ' : *c;
		r->only = &only;
		e = print_trees(r, t, what);
		r->only = NULL;
	}
	return e;
}

static int report_run(struct report *r, struct table *t)
{
	int e = count_rows(r);

	if (e < 0)
		return e;
	if (!r->o->callers && !r->o->callees)
		print_entries(r, t);
	else if (r->has_symbol)
		e = print_trees(r, t, r->o->symbol);
	else
		e = print_entry_trees(r, t);
	return e;
}

static int report_init(struct report *r)
{
	const struct render_report_options *o = r->o;

	for (uint32_t i = 0; i < o->n_keys; i++) {
		r->by_owner |= keys[o->keys[i]].owner;
		r->by_place |= !keys[o->keys[i]].owner;
	}
	if (o->symbol && *o->symbol) {
		if (regcomp(&r->symbol, o->symbol, REG_EXTENDED | REG_NOSUB) != 0)
			return -EINVAL;
		r->has_symbol = true;
	}
	strtab_init(&r->texts, MAX_TEXT_BYTES);
	r->places.max = r->entries.max = UINT32_MAX / 2;
	r->frames = calloc((size_t)r->p->frames.n + 1, sizeof(*r->frames));
	r->owners = calloc((size_t)r->p->threads.n + 1, sizeof(*r->owners));
	return r->frames && r->owners ? 0 : -ENOMEM;
}

static void report_deinit(struct report *r)
{
	if (r->has_symbol)
		regfree(&r->symbol);
	strtab_deinit(&r->texts);
	array_deinit(&r->places);
	array_deinit(&r->entries);
	array_deinit(&r->nodes);
	hash_index_deinit(&r->node_index);
	hash_index_deinit(&r->index);
	free(r->frames);
	free(r->owners);
}

static void choose_keys(const struct profile *p, struct render_report_options *o)
{
	bool modules = false;

	for (uint32_t i = 0; i < p->modules.n; i++)
		modules |= p->modules.items[i].path != STRID_EMPTY;
	o->keys[o->n_keys++] = REPORT_COMM;
	if (modules)
		o->keys[o->n_keys++] = REPORT_MODULE;
	o->keys[o->n_keys++] = REPORT_SYMBOL;
}

int render_report(const struct profile *p, const struct render_info *info,
		  const struct render_report_options *options, FILE *out)
{
	struct render_report_options o = *options;
	struct report r = {.p = p, .o = &o};
	struct table t;
	int e;

	if (o.n_keys == 0)
		choose_keys(p, &o);

	e = aggregate_build(&r.a, p, NULL);
	if (e == 0)
		e = report_init(&r);
	if (e == 0) {
		table_init(&t, out, options->width, options->color, options->csv);
		table_facts(&t, p, info);
		e = report_run(&r, &t);
	}
	report_deinit(&r);
	aggregate_deinit(&r.a);
	return e < 0 ? e : fflush(out) != 0 || ferror(out) ? -EIO : 0;
}
