/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code objects are freed and their memory is used for others, as that of their names is. Generated
 * functions often differ in nothing but the text of a name. So what is remembered of a code object
 * is compared with all that its names came from before it is used (trust.h): its type, its
 * pointers, its first line, and the heads of the texts, which have their hash.
 */
#include "runtimes/cpython-internal.h"

enum {
	MAX_CHARACTERS = 512, /* of a name, or of a path: its end */
	MAX_BYTECODE = 64 << 20,
	MAX_COPIES = 65536,
	/* Bits of a text's state. */
	TEXT_WIDTH = 7, /* bytes of a character */
	TEXT_COMPACT = 8,
	TEXT_ASCII = 16,
};
#define MAX_TEXT (UINT64_C(1) << 40)

/* ---- Texts ---- */

static size_t put_utf8(char *to, uint32_t c)
{
	if (c >= 0x110000 || (c >= 0xd800 && c < 0xe000) || c == 0)
		c = 0xfffd;
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* n characters of that many bytes each, as UTF-8. */
static strid put_characters(struct cpython *p, const uint8_t *bytes, size_t n, size_t width)
{
	char text[MAX_CHARACTERS * 4];
	size_t n_text = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t c = 0;

		memcpy(&c, bytes + i * width, width);
		n_text += put_utf8(text + n_text, c);
	}
	return strtab_put_n(&p->memo->base.texts, text, n_text);
}

/* A text's state, without the bits that say whether it is immortal. */
static uint32_t state_bits(const struct cpython *p, const uint8_t *head)
{
	uint32_t state = memory_u32_of(head, py(p, PY_TEXT_STATE));

	return state >> (p->tables.free_threaded && p->tables.minor >= 14 ? 8 : 2);
}

/* Reads the characters: of a long text the beginning or the end. */
static bool read_text(struct cpython *p, const struct python_text *t, bool its_end, strid *ret)
{
	uint8_t bytes[MAX_CHARACTERS * 4];
	uint32_t width = t->kind & TEXT_WIDTH;
	uint64_t data =
		t->at + (uint64_t)py(p, t->kind & TEXT_ASCII ? PY_TEXT_ASCII : PY_TEXT_OTHER);
	uint64_t n = t->length;

	if (n > MAX_CHARACTERS) {
		data += its_end ? (n - MAX_CHARACTERS) * width : 0;
		n = MAX_CHARACTERS;
	}
	if (!memory_read(&p->base.memory, data, bytes, n * width))
		return false;
	*ret = put_characters(p, bytes, n, width);
	return true;
}

/* The head of the text object at `at`, as it is now; false: it is none. */
static bool read_text_head(struct cpython *p, uint64_t at, struct python_text *ret)
{
	uint8_t head[PYTHON_OBJECT_BYTES];
	uint32_t width;

	if (at == 0 || at % 8 != 0 ||
	    !memory_read(&p->base.memory, at, head, (size_t)py(p, PY_TEXT_ASCII)) ||
	    memory_u64_of(head, py(p, PY_OBJECT_TYPE)) != p->text_type)
		return false;
	*ret = (struct python_text){
		.at = at,
		.length = memory_u64_of(head, py(p, PY_TEXT_LENGTH)),
		/* The word behind the length in all releases. */
		.hash = memory_u64_of(head, py(p, PY_TEXT_LENGTH) + 8),
		.kind = state_bits(p, head) & (TEXT_WIDTH | TEXT_COMPACT | TEXT_ASCII),
		.owner = p->owner,
		.walk = p->base.walks.walk,
	};
	width = ret->kind & TEXT_WIDTH;
	/* Since 3.3 texts of code are always compact ones. */
	return (ret->kind & TEXT_COMPACT) && (width == 1 || width == 2 || width == 4) &&
	       ret->length <= MAX_TEXT;
}

static bool is_same_text(const struct python_text *a, const struct python_text *b)
{
	return a->at == b->at && a->owner == b->owner && a->hash == b->hash &&
	       a->hash != PYTHON_NO_HASH && a->length == b->length && a->kind == b->kind;
}

/* A text, proven once in each walk; false: it is none. its_end: of a long one. */
static bool find_text(struct cpython *p, uint64_t at, bool its_end, strid *ret)
{
	uint64_t key = hash_combine(hash_combine(at, its_end), p->owner);
	struct python_text *t = &p->memo->known_texts[key % CPYTHON_N_TEXTS], now;

	if (t->at != at || t->owner != p->owner || t->walk != p->base.walks.walk) {
		if (!read_text_head(p, at, &now))
			return false;
		now.text = t->text;
		if (!is_same_text(t, &now) && !read_text(p, &now, its_end, &now.text))
			return false;
		*t = now;
	}
	*ret = t->text;
	return true;
}

/* ---- Lines ---- */

/* Pairs of steps: in bytecode, and in lines (up to 3.9; lnotab_notes.txt). */
static uint32_t find_in_lnotab(const uint8_t *table, size_t n, int64_t line, int32_t place)
{
	int32_t at = 0;

	for (size_t i = 0; i + 2 <= n; i += 2) {
		at += table[i];
		if (at > place)
			break;
		line += (int8_t)table[i + 1];
	}
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* Pairs as well, with the length of each line's bytecode (3.10). */
static uint32_t find_in_ranges(const uint8_t *table, size_t n, int64_t line, int32_t place)
{
	int32_t end = 0;

	if (place < 0)
		return (uint32_t)line;
	for (size_t i = 0; i + 2 <= n; i += 2) {
		int8_t step = (int8_t)table[i + 1];

		end += table[i];
		if (step != -128)
			line += step;
		if (place < end)
			return step != -128 && line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
	}
	return 0;
}

/* A number of 6 bits in each byte, the lowest first. */
static int64_t location_number(const uint8_t *table, size_t n, size_t at)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; at < n && shift < 36; shift += 6) {
		v |= (uint64_t)(table[at] & 0x3f) << shift;
		if (!(table[at++] & 0x40))
			break;
	}
	return v & 1 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
}

/* Entries of a first byte, which says kind and length, and others without bit 7 (since 3.11;
 * locations.md). */
static uint32_t find_in_locations(const uint8_t *table, size_t n, int64_t line, int32_t place)
{
	enum { ONE_LINE = 10, NO_COLUMNS = 13, LONG = 14, NONE = 15 };
	int32_t end = 0;
	size_t at = 0;

	if (place < 0)
		return (uint32_t)line;
	while (at < n) {
		uint8_t kind = table[at] >> 3 & 15;

		end += ((table[at] & 7) + 1) * 2;
		if (kind == NO_COLUMNS || kind == LONG)
			line += location_number(table, n, at + 1);
		else if (kind >= ONE_LINE && kind < NO_COLUMNS)
			line += kind - ONE_LINE;
		if (place < end)
			return kind != NONE && line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
		for (at++; at < n && !(table[at] & 0x80);)
			at++;
	}
	return 0;
}

uint32_t cpython_find_line(uint32_t minor, const uint8_t *table, size_t n, uint32_t first_line,
			   int32_t place)
{
	if (minor < 10)
		return find_in_lnotab(table, n, first_line, place);
	if (minor == 10)
		return find_in_ranges(table, n, first_line, place);
	return find_in_locations(table, n, first_line, place);
}

/* false: the table cannot be read. */
static bool read_line(struct cpython *p, const struct python_code *c, int32_t place, uint32_t *ret)
{
	uint8_t head[PYTHON_OBJECT_BYTES];
	uint64_t n;

	if (!memory_read(&p->base.memory, c->lines, head, (size_t)py(p, PY_BYTES_DATA)) ||
	    memory_u64_of(head, py(p, PY_OBJECT_TYPE)) != p->bytes_type)
		return false;
	n = memory_u64_of(head, py(p, PY_OBJECT_SIZE));
	if (n > CPYTHON_WINDOW)
		n = CPYTHON_WINDOW;
	if (!memory_read(&p->base.memory, c->lines + (uint64_t)py(p, PY_BYTES_DATA), p->memo->table,
			 n))
		return false;
	*ret = cpython_find_line(p->tables.minor, p->memo->table, n, c->start_line, place);
	return true;
}

/* false: the budget is spent. */
static bool find_line(struct cpython *p, const struct python_code *c, int32_t place, uint32_t *ret)
{
	uint64_t key = hash_combine(hash_combine(c->at, (uint32_t)place), p->owner);
	struct python_line *l = &p->memo->lines[key % CPYTHON_N_LINES];

	if (l->owner != p->owner || l->code != c->at || l->identity != c->identity ||
	    l->place != place) {
		struct python_line found = {c->at, c->identity, place, p->owner, 0};

		/* A frame without a line is one, but not for want of reads: the next walk has it.
		 */
		if (!read_line(p, c, place, &found.line) && cpython_is_spent(p))
			return false;
		*l = found;
	}
	*ret = l->line;
	return true;
}

/* ---- Code objects ---- */

/* Facts that do not change while the object is the same one, but for the texts. */
static uint64_t identify(const struct cpython *p, const uint8_t *head)
{
	uint64_t h = hash_combine(memory_u64_of(head, py(p, PY_CODE_NAME)),
				  memory_u64_of(head, py(p, PY_CODE_FILE)));

	h = hash_combine(h, memory_u64_of(head, py(p, PY_CODE_LINES)));
	h = hash_combine(h, memory_u32_of(head, py(p, PY_CODE_FIRST_LINE)));
	return p->tables.minor < 11 ? h
				    : hash_combine(h, memory_u64_of(head, py(p, PY_OBJECT_SIZE)));
}

/* As it is now; false: there is none. */
static bool read_head(struct cpython *p, uint64_t at, struct python_code *ret)
{
	struct python_code c = {.at = at, .owner = p->owner};
	uint8_t head[PYTHON_CODE_BYTES];
	uint64_t units;

	if (at == 0 || at % 8 != 0 || !memory_read(&p->base.memory, at, head, p->n_code) ||
	    memory_u64_of(head, py(p, PY_OBJECT_TYPE)) != p->code_type)
		return false;
	units = memory_u64_of(head, py(p, PY_OBJECT_SIZE));
	c.lines = memory_u64_of(head, py(p, PY_CODE_LINES));
	c.start_line = memory_u32_of(head, py(p, PY_CODE_FIRST_LINE));
	if (c.start_line > INT32_MAX)
		return false;
	if (py_known(p, PY_CODE_BYTECODE)) {
		if (units == 0 || units > MAX_BYTECODE / 2)
			return false;
		c.bytecode = at + (uint64_t)py(p, PY_CODE_BYTECODE);
		c.n_bytecode = (uint32_t)units * 2;
	}
	if (!find_text(p, memory_u64_of(head, py(p, PY_CODE_NAME)), false, &c.function) ||
	    !find_text(p, memory_u64_of(head, py(p, PY_CODE_FILE)), true, &c.file) ||
	    c.function == STRID_EMPTY)
		return false;
	c.identity = hash_combine(identify(p, head), hash_combine(c.function, c.file));
	*ret = c;
	return true;
}

/* As it is now; NULL: there is none. */
static struct python_code *read_code(struct cpython *p, uint64_t at, struct python_code *c)
{
	bool known = c->at == at && c->owner == p->owner;
	struct python_code now;

	if (!read_head(p, at, &now))
		return NULL;
	if (!known || c->identity != now.identity) {
		p->base.stats.learned++;
		if (known) {
			p->base.stats.stale++;
			trust_end(&c->trust, &p->base.walks);
		}
		*c = now;
	}
	trust_prove(&c->trust, &p->base.walks);
	return c;
}

/* Without the one lock each thread executes a copy of the bytecode: where the one begins. */
static uint64_t find_copy(struct cpython *p, const struct python_code *c, uint32_t copy)
{
	uint64_t array = memory_u64(&p->base.memory, c->at + (uint64_t)py(p, PY_CODE_COPIES));
	uint64_t n = array ? memory_u64(&p->base.memory, array) : 0;

	return copy < n && copy < MAX_COPIES
		       ? memory_u64(&p->base.memory, array + 8 + (uint64_t)copy * 8)
		       : 0;
}

/* Bytes from the beginning of the bytecode, -1 in front of it; false: nowhere in it. */
static bool find_place(struct cpython *p, const struct python_code *c, uint64_t place,
		       uint32_t copy, int32_t *ret)
{
	int32_t number = (int32_t)place;
	uint64_t at = place - c->bytecode;

	if (!py_known(p, PY_CODE_BYTECODE)) {
		if (number < -1 || number >= MAX_BYTECODE / 2)
			return false;
		*ret = number < 0 ? -1 : p->tables.minor == 10 ? number * 2 : number;
		return true;
	}
	if (at >= c->n_bytecode && at != (uint64_t)-2 && py_known(p, PY_FRAME_COPY))
		at = place - find_copy(p, c, copy);
	*ret = at == (uint64_t)-2 ? -1 : (int32_t)at;
	return at == (uint64_t)-2 || (at < c->n_bytecode && at % 2 == 0);
}

bool cpython_code_frame(struct cpython *p, uint64_t at, uint64_t place, uint32_t copy,
			struct chained_frame *ret)
{
	struct python_code *c = &p->memo->codes[hash_combine(at, p->owner) % CPYTHON_N_CODES];
	bool known = at && c->at == at && c->owner == p->owner;
	int32_t in_code;

	if (!known || !trust_has(&c->trust, &p->base.walks) ||
	    !find_place(p, c, place, copy, &in_code)) {
		c = read_code(p, at, c);
		if (!c || !find_place(p, c, place, copy, &in_code))
			return false;
	}
	ret->function = c->function;
	ret->file = c->file;
	ret->start_line = c->start_line;
	return find_line(p, c, in_code, &ret->line);
}
