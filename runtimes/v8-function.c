/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SharedFunctionInfo -> names and lines. A script's number is never used twice in an isolate, and a
 * function has its place in the script to itself: with both the same, it is the same function,
 * wherever it was moved to, and whatever had its address before.
 */
#include "runtimes/v8-internal.h"
#include "util/hash.h"

enum {
	SCOPE_WORDS = 12,
	SCOPE_HEAD = 4,	       /* map, flags, number of parameters, number of names */
	MAX_INLINE_NAMES = 75, /* more are in a table */
	MAX_NAMES = 1 << 16,
	MAX_NAME = 256,
};

/* ---- ScopeInfo: the name, and the place in the script ---- */

/* Two small integers in a row, the last ones of their run: where the function begins and ends. */
static int32_t find_place(const uint64_t *words, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++) {
		size_t end = i;

		while (end < n && v8_is_smi(words[end]))
			end++;
		if (end - i >= 2)
			return v8_smi(words[end - 2]) < v8_smi(words[end - 1])
				       ? v8_smi(words[end - 2])
				       : -1;
	}
	return -1;
}

static bool is_place(const uint64_t *words)
{
	return v8_is_smi(words[0]) && v8_is_smi(words[1]);
}

/* false: it cannot be read. */
static bool read_scope(struct v8 *v, uint64_t scope, struct v8_function *f)
{
	uint64_t words[SCOPE_WORDS], n = v8_word(v, scope, 24), at = SCOPE_HEAD * 8;
	uint64_t place = v8_value(v, V8_SCOPE_PLACE);

	if (!v8_is_smi(n) || v8_smi(n) < 0 || v8_smi(n) > MAX_NAMES)
		return false;
	if (place)
		at = place + 16;
	/* A name and its properties each. */
	at += v8_smi(n) < MAX_INLINE_NAMES ? (uint64_t)v8_smi(n) * 16 : 8 + (uint64_t)v8_smi(n) * 8;
	if (!v8_read(v, scope - 1 + at, words, sizeof(words)))
		return false;
	for (int i = 0; i < 3 && !f->name && !is_place(words + i); i++) {
		int32_t type = v8_is_object(words[i]) ? v8_type(v, words[i]) : 0;

		if (type < 0)
			return false;
		/* After an empty name there may be one inferred from the variable that the function
		 * was assigned to. */
		if (v8_is_object(words[i]) && v8_is_string_type(v, type) &&
		    v8_word(v, words[i], 8) >> 32 != 0)
			f->name = words[i];
	}
	f->start = place ? v8_smi(v8_word(v, scope, place)) : find_place(words, SCOPE_WORDS);
	return true;
}

/* ---- Functions ---- */

static uint64_t word_at(const uint8_t *bytes, uint64_t offset)
{
	uint64_t word = 0;

	if (offset + sizeof(word) <= V8_SHARED_BYTES)
		memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

static struct v8_kept_function *kept_of(struct v8 *v, uint64_t shared)
{
	return &v->memo->functions[hash_combine(shared, v->owner) % V8_N_FUNCTIONS];
}

/* Is this the remembered function, with the same head? */
static bool is_as_it_was(const struct v8 *v, const struct v8_kept_function *k, uint64_t shared,
			 const uint8_t *head)
{
	return k->owner == v->owner && k->function.shared == shared &&
	       memcmp(k->head, head, V8_SHARED_BYTES) == 0;
}

static void keep(struct v8 *v, const uint8_t *head, const struct v8_function *f)
{
	struct v8_kept_function *k = kept_of(v, f->shared);
	bool same_head = is_as_it_was(v, k, f->shared, head);
	bool same = k->owner == v->owner && k->function.shared == f->shared &&
		    k->function.identity == f->identity;

	if (same_head && !same)
		trust_end(&k->trust, &v->walks);
	if (!same)
		k->trust = (struct trust){.walk = 0};
	if (!same_head || !same)
		k->bytecode = 0;
	memcpy(k->head, head, V8_SHARED_BYTES);
	k->function = *f;
	k->owner = v->owner;
	trust_prove(&k->trust, &v->walks);
}

/* By all that it is made of. */
static bool prove_function(struct v8 *v, uint64_t shared, const uint8_t *bytes,
			   struct v8_function *ret)
{
	struct v8_function f = {.shared = shared, .start = -1};
	uint64_t name, id;

	if (!v8_has_type(v, shared, V8_TYPE_SHARED))
		return false;
	name = word_at(bytes, v8_value(v, V8_SHARED_NAME));
	f.script = word_at(bytes, v8_value(v, V8_SHARED_SCRIPT));
	if (!v8_has_type(v, f.script, V8_TYPE_SCRIPT)) /* the debugger's, or a built-in function */
		f.script = 0;
	id = f.script ? v8_word(v, f.script, v8_value(v, V8_SCRIPT_ID)) : 0;
	f.script_id = v8_is_smi(id) ? v8_smi(id) : 0;
	if (v8_has_type(v, name, V8_TYPE_SCOPE)) {
		if (!read_scope(v, name, &f))
			return false;
	} else if (v8_is_string_type(v, v8_type(v, name))) {
		f.name = name;
	}
	/* A string begins with its hash; hash and length identify it. */
	f.identity =
		hash_combine(hash_combine(shared, f.script),
			     hash_combine((uint64_t)(uint32_t)f.script_id << 32 | (uint32_t)f.start,
					  hash_combine(f.name, v8_word(v, f.name, 8))));
	*ret = f;
	return true;
}

static bool read_function(struct v8 *v, uint64_t shared, struct v8_function *ret)
{
	struct v8_kept_function *k = kept_of(v, shared);
	uint8_t head[V8_SHARED_BYTES];

	if (!v8_is_object(shared) || !v8_read(v, shared - 1, head, sizeof(head)))
		return false;
	if (is_as_it_was(v, k, shared, head) && trust_has(&k->trust, &v->walks)) {
		*ret = k->function;
		return true;
	}
	if (!prove_function(v, shared, head, ret))
		return false;
	keep(v, head, ret);
	return true;
}

uint64_t v8_function_identity(struct v8 *v, uint64_t shared)
{
	struct v8_function f;

	return read_function(v, shared, &f) ? f.identity : 0;
}

/* false: a name cannot be read. */
static bool name_function(struct v8 *v, const struct v8_function *f, struct stepped_frame *ret)
{
	char text[MAX_NAME] = "";
	uint64_t name = f->script ? v8_word(v, f->script, v8_value(v, V8_SCRIPT_NAME)) : 0;

	if (f->name && !v8_string(v, f->name, text, sizeof(text)))
		return false;
	ret->function = strtab_put(&v->memo->base.texts, *text ? text : "(anonymous)");
	text[0] = '\0';
	if (v8_is_string_type(v, v8_type(v, name)) && !v8_string(v, name, text, sizeof(text)))
		return false;
	ret->file = strtab_put(&v->memo->base.texts, *text ? text : f->script ? "[eval]" : "");
	return true;
}

bool v8_function_frame(struct v8 *v, uint64_t shared, int32_t position, struct stepped_frame *ret)
{
	struct v8_spot *s =
		&v->memo->spots[hash_combine(hash_combine(shared, (uint32_t)position), v->owner) %
				V8_N_SPOTS];
	struct v8_function f;

	if (!read_function(v, shared, &f))
		return false;
	if (s->owner == v->owner && s->shared == shared && s->position == position) {
		if (s->identity == f.identity) {
			*ret = s->frame;
			return true;
		}
		v->stats.stale++;
	}
	v->stats.learned++;
	*ret = (struct stepped_frame){.level = V8_OPTIMIZED};
	if (!name_function(v, &f, ret))
		return false;
	ret->start_line = f.script ? v8_line(v, &f, f.start) : 0;
	ret->line = f.script ? v8_line(v, &f, position) : 0;
	/* What could not be read now may be, the next time. */
	if (v->below.reads_left > 0 && v->below.bytes_left > 8192)
		*s = (struct v8_spot){shared, f.identity, position, v->owner, *ret};
	return true;
}

/* ---- The function of a frame ---- */

/* By what it leads to. */
static bool prove_bytecode(struct v8 *v, uint64_t shared, uint64_t bytecode)
{
	uint64_t data;

	if (!v8_has_type(v, shared, V8_TYPE_SHARED))
		return false;
	data = v8_word(v, shared, v8_value(v, V8_SHARED_DATA));
	if (data == bytecode)
		return true;
	if (v8_has_type(v, data, V8_TYPE_CODE)) { /* baseline */
		data = v8_word(v, data, v8_value(v, V8_CODE_DEOPT));
		if (data == bytecode)
			return true;
	}
	/* V8 9 has something in between for baseline code. */
	if (v->tables.inline_code && v8_word(v, data, 16) == bytecode)
		return true;
	return v8_has_type(v, data, V8_TYPE_INTERPRETER_DATA) && v8_word(v, data, 8) == bytecode;
}

/* Is that the bytecode of the function? */
static bool has_bytecode(struct v8 *v, uint64_t shared, uint64_t bytecode)
{
	struct v8_kept_function *k = kept_of(v, shared);
	uint8_t head[V8_SHARED_BYTES];
	bool known, has;

	if (!v8_is_object(shared) || !v8_read(v, shared - 1, head, sizeof(head)))
		return false;
	known = is_as_it_was(v, k, shared, head);
	if (known && k->bytecode == bytecode && trust_has(&k->trust, &v->walks))
		return true;
	has = prove_bytecode(v, shared, bytecode);
	if (known && k->bytecode == bytecode && !has)
		trust_end(&k->trust, &v->walks);
	if (known)
		k->bytecode = has ? bytecode : 0;
	return has;
}

static bool is_function(struct v8 *v, uint64_t object)
{
	enum { N_FUNCTION_TYPES = 32 };
	int32_t type = v8_type(v, object), first = v->tables.value[V8_TYPE_FUNCTION];

	return type >= first && type < first + N_FUNCTION_TYPES;
}

uint64_t v8_shared(struct v8 *v, uint64_t function)
{
	uint64_t map = v8_word(v, function, 0);

	/* It was moved: it says where. */
	if (map && !(map & 7))
		function = map + 1;
	return is_function(v, function) ? v8_word(v, function, v8_value(v, V8_FUNCTION_SHARED)) : 0;
}

/* The function that had that bytecode before, if it still has; 0: none. */
static uint64_t known_function_of(struct v8 *v, uint64_t bytecode)
{
	size_t i = hash_combine(bytecode, v->owner) % V8_N_ARRAYS;

	return v->memo->arrays[i].owner == v->owner && v->memo->arrays[i].array == bytecode &&
			       has_bytecode(v, v->memo->arrays[i].shared, bytecode)
		       ? v->memo->arrays[i].shared
		       : 0;
}

bool v8_is_bytecode(struct v8 *v, uint64_t object)
{
	return v8_is_object(object) &&
	       (known_function_of(v, object) || v8_has_type(v, object, V8_TYPE_BYTECODE));
}

uint64_t v8_function_of(struct v8 *v, uint64_t function, uint64_t bytecode)
{
	size_t i = hash_combine(bytecode, v->owner) % V8_N_ARRAYS;
	uint64_t shared = known_function_of(v, bytecode);

	if (shared)
		return shared;
	shared = v8_shared(v, function);
	if (!shared || !has_bytecode(v, shared, bytecode))
		return 0;
	v->memo->arrays[i].array = bytecode;
	v->memo->arrays[i].shared = shared;
	v->memo->arrays[i].owner = v->owner;
	return shared;
}
