/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects: a word of flags with their type, a pointer to their class, and what is theirs. Short
 * strings and arrays are in the object itself. Strings are freed and moved, so that the head of one
 * is compared before it is used, once in each walk. Characters that are not in the head are read
 * again.
 */
#include "runtimes/arch.h"
#include "runtimes/ruby-internal.h"

enum {
	TYPE_MASK = 0x1f,
	STRING = 5,
	ARRAY = 7,
	INTERNAL = 0x1a,
	KIND_SHIFT = 12,     /* of internal objects */
	IN_OBJECT = 1 << 13, /* of arrays; of strings: it is not */
	LENGTH_SHIFT = 14,   /* of short strings */
	LENGTH_MASK = 0x1f,
	OWN_DATA = 16, /* behind flags and class */
	MAX_CHARACTERS = 512,
	/* The table of names: arrays of 512 pairs of a string and a symbol. */
	NAMES_OF_ONE = 512,
	ID_SHIFT = 4,
	SYMBOLS_STRINGS = 8, /* offsets in it */
	SYMBOLS_IDS = 16,
	MIN_SYMBOLS = 256, /* Ruby's own */
	MAX_SYMBOLS = 1 << 28,
	MAX_LOADS = 8,
};
#define MAX_STRING (UINT64_C(1) << 40)

bool ruby_is_internal(uint64_t flags, uint32_t kind)
{
	return (flags & TYPE_MASK) == INTERNAL && (flags >> KIND_SHIFT & 15) == kind;
}

/* ---- Strings ---- */

/* Where its characters are, and how many. */
static void find_characters(const struct ruby *p, uint64_t at, const uint8_t *head,
			    uint64_t *ret_data, uint64_t *ret_n)
{
	uint64_t flags = memory_u64_of(head, 0);
	bool apart = flags & IN_OBJECT;

	*ret_n = memory_u64_of(head, OWN_DATA);
	*ret_data = memory_u64_of(head, OWN_DATA + 8);
	if (apart)
		return;
	*ret_data = at + OWN_DATA + (p->tables.length_in_text ? 8 : 0);
	if (!p->tables.length_in_text)
		*ret_n = flags >> LENGTH_SHIFT & LENGTH_MASK;
}

/* Whether the head has all of its characters: else others may be where those were. */
static bool is_all_in_head(const struct ruby *p, uint64_t at, const uint8_t *head)
{
	uint64_t data, n;

	find_characters(p, at, head, &data, &n);
	return data >= at && data - at <= RUBY_STRING_HEAD && n <= RUBY_STRING_HEAD - (data - at);
}

static bool read_string(struct ruby *p, uint64_t at, const uint8_t *head, bool its_end, strid *ret)
{
	char text[MAX_CHARACTERS];
	uint64_t data, n;

	if ((memory_u64_of(head, 0) & TYPE_MASK) != STRING)
		return false;
	find_characters(p, at, head, &data, &n);
	if (n > MAX_STRING)
		return false;
	if (n > MAX_CHARACTERS) {
		data += its_end ? n - MAX_CHARACTERS : 0;
		n = MAX_CHARACTERS;
	}
	if (!memory_read(&p->base.memory, data, text, n))
		return false;
	*ret = strtab_put_n(&p->memo->base.texts, text, strnlen(text, n));
	return true;
}

bool ruby_find_string(struct ruby *p, uint64_t at, bool its_end, strid *ret)
{
	uint64_t key = hash_combine(hash_combine(at, its_end), p->owner);
	struct ruby_string *s = &p->memo->strings[key % RUBY_N_STRINGS];
	struct ruby_string now = {.at = at, .owner = p->owner, .walk = p->base.walks.walk};
	bool known = s->at == at && s->owner == p->owner;

	if (at == 0 || at % 8 != 0)
		return false;
	if (!known || s->walk != p->base.walks.walk) {
		if (!memory_read(&p->base.memory, at, now.head, sizeof(now.head)))
			return false;
		now.text = s->text;
		if ((!known || memcmp(s->head, now.head, sizeof(now.head)) != 0 ||
		     !is_all_in_head(p, at, now.head)) &&
		    !read_string(p, at, now.head, its_end, &now.text))
			return false;
		*s = now;
	}
	*ret = s->text;
	return true;
}

/* ---- Arrays, and names ---- */

uint64_t ruby_element(struct ruby *p, uint64_t array, uint64_t i)
{
	enum { HEAD_BYTES = 40, N_IN_HEAD = (HEAD_BYTES - OWN_DATA) / 8 };
	uint8_t head[HEAD_BYTES];
	uint64_t data = array + OWN_DATA;

	if (array == 0 || array % 8 != 0 ||
	    !memory_read(&p->base.memory, array, head, sizeof(head)) ||
	    (memory_u64_of(head, 0) & TYPE_MASK) != ARRAY)
		return 0;
	if (!(memory_u64_of(head, 0) & IN_OBJECT)) {
		if (i >= memory_u64_of(head, OWN_DATA))
			return 0;
		data = memory_u64_of(head, OWN_DATA + 16);
	} else if (i < N_IN_HEAD) {
		return memory_u64_of(head, OWN_DATA + (int32_t)i * 8);
	}
	return memory_u64(&p->base.memory, data + i * 8);
}

/* Where names of methods are. A program that begins has none yet, or its memory cannot be read yet:
 * so attempts go on, but are ever rarer. */
static void find_symbols(struct ruby *p)
{
	uint32_t walk = p->base.walks.walk;

	if (!p->reads_it || walk < p->look_for_it)
		return;
	p->look_for_it = walk + walk / 2 + 1;
	for (size_t i = 0; i < MAX_LOADS && !p->symbols; i++) {
		uint64_t at = arch_loaded_variable(&p->base.memory, p->reads_it, i), last;

		if (at < p->base.image.start + SYMBOLS_STRINGS || at >= p->base.image.end)
			continue;
		at -= SYMBOLS_STRINGS;
		last = memory_u64(&p->base.memory, at) & UINT32_MAX;
		if (last > MIN_SYMBOLS && last < MAX_SYMBOLS &&
		    ruby_element(p, memory_u64(&p->base.memory, at + SYMBOLS_IDS), 0))
			p->symbols = at;
	}
}

/* Numbers of names are never used again. */
strid ruby_find_name(struct ruby *p, uint64_t id)
{
	uint64_t serial = id > (uint64_t)rb(p, RB_LAST_OPERATOR) ? id >> ID_SHIFT : id, names;
	struct ruby_name *n = &p->memo->names[hash_combine(id, p->owner) % RUBY_N_NAMES];
	strid name;

	if (id && n->id == id && n->owner == p->owner)
		return n->text;
	if (!p->symbols)
		find_symbols(p);
	if (!p->symbols || serial >= MAX_SYMBOLS)
		return STRID_EMPTY;
	names = ruby_element(p, memory_u64(&p->base.memory, p->symbols + SYMBOLS_IDS),
			     serial / NAMES_OF_ONE);
	if (!ruby_find_string(p, ruby_element(p, names, serial % NAMES_OF_ONE * 2), false, &name))
		return STRID_EMPTY;
	*n = (struct ruby_name){id, p->owner, name};
	return name;
}
