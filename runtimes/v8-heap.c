/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of V8's heap (src/objects). Whatever is at an address may have been moved or freed. */
#include "runtimes/v8-internal.h"
#include "util/hash.h"

enum {
	STRING_CHARS = 16,
	STRING_LENGTH = 12,
	STRING_DATA = 24, /* of an external one; a sliced one's offset */
	ARRAY_LENGTH = 8,
	ARRAY_DATA = 16,
	ONE_BYTE = 8, /* of a type; & 7: how it is kept */
	UNCACHED = 16,
	MAX_CHARS = 512, /* of a string that is read at once */
	MAX_NESTED = 8,
	CHUNK = 4096,
	PAGE = 4096,
};
enum { SEQUENTIAL, CONS, EXTERNAL, SLICED, THIN = 5 };

/* ---- Memory ---- */

/* NULL: it cannot be read. */
static const uint8_t *find_block(struct v8 *v, uint64_t at)
{
	struct v8_block *b = &v->memo->blocks[hash_combine(at, 0) % V8_N_BLOCKS];

	if (b->owner != v->owner || b->at != at || (b->walk != v->walk && !v8_is_own(v, at))) {
		b->owner = 0;
		if (!memory_read(&v->below, at, b->bytes, sizeof(b->bytes)))
			return NULL;
		b->owner = v->owner;
		b->at = at;
		b->walk = v->walk;
	}
	return b->bytes;
}

bool v8_read_blocks(void *ctx, uint64_t address, void *ret, size_t n)
{
	struct v8 *v = ctx;
	uint8_t *to = ret;

	if (n >= V8_BLOCK_BYTES)
		return memory_read(&v->below, address, ret, n);
	while (n > 0) {
		uint64_t at = address % V8_BLOCK_BYTES;
		size_t step = V8_BLOCK_BYTES - at < n ? V8_BLOCK_BYTES - at : n;
		const uint8_t *block = find_block(v, address - at);

		if (!block)
			return false;
		memcpy(to, block + at, step);
		to += step;
		address += step;
		n -= step;
	}
	return true;
}

/* ---- Objects ---- */

uint64_t v8_word(struct v8 *v, uint64_t object, uint64_t offset)
{
	return v8_is_object(object) ? memory_u64(&v->memory, object - 1 + offset) : 0;
}

bool v8_read(struct v8 *v, uint64_t address, void *ret, size_t n)
{
	size_t page = PAGE - address % PAGE;

	if (n > page) {
		/* The object may end where its memory does. */
		(void)memory_read(&v->memory, address + page, (uint8_t *)ret + page, n - page);
		n = page;
	}
	return memory_read(&v->memory, address, ret, n);
}

int32_t v8_type(struct v8 *v, uint64_t object)
{
	uint64_t map = v8_word(v, object, 0);
	struct v8_kept_type *t = &v->memo->types[hash_combine(map, v->owner) % V8_N_TYPES];
	bool known = t->owner == v->owner && t->map == map;
	uint16_t type;

	if (known && trust_has(&t->trust, &v->walks))
		return t->type;
	if (!v8_is_object(map) ||
	    !memory_read(&v->memory, map - 1 + v8_value(v, V8_MAP_TYPE), &type, sizeof(type)))
		return -1;
	if (known && t->type != type)
		trust_end(&t->trust, &v->walks);
	if (!known || t->type != type)
		*t = (struct v8_kept_type){.map = map, .type = type, .owner = v->owner};
	trust_prove(&t->trust, &v->walks);
	return type;
}

size_t v8_bytes(struct v8 *v, uint64_t array, uint8_t *ret, size_t size)
{
	uint64_t length = v8_word(v, array, ARRAY_LENGTH);
	size_t n = v8_is_smi(length) && v8_smi(length) > 0 ? (size_t)v8_smi(length) : 0;

	n = n < size ? n : size;
	return n && memory_read(&v->memory, array - 1 + ARRAY_DATA, ret, n) ? n : 0;
}

uint64_t v8_element(struct v8 *v, uint64_t array, uint32_t index)
{
	uint64_t length = v8_word(v, array, ARRAY_LENGTH);

	if (!v8_is_smi(length) || v8_smi(length) < 0 || index >= (uint32_t)v8_smi(length))
		return 0;
	return v8_word(v, array, ARRAY_DATA + (uint64_t)index * 8);
}

/* ---- Strings ---- */

bool v8_is_string_type(const struct v8 *v, int32_t type)
{
	return type >= 0 && type < v->tables.value[V8_TYPE_NO_STRING];
}

/* The characters of a string that lie in one piece. */
struct piece {
	uint64_t chars;
	uint32_t n;
	bool wide;
};

/* A flat string: its parts are in one place, wherever that is. false: it is none. */
static bool find_piece(struct v8 *v, uint64_t string, struct piece *ret)
{
	uint64_t from = 0;
	uint32_t length = 0;

	for (int i = 0; i < MAX_NESTED; i++) {
		int32_t type = v8_type(v, string);
		uint32_t n;

		if (!v8_is_string_type(v, type) ||
		    !memory_read(&v->memory, string - 1 + STRING_LENGTH, &n, sizeof(n)) ||
		    n > INT32_MAX)
			return false;
		length = i == 0 ? n : length;
		ret->wide = !(type & ONE_BYTE);
		if ((type & 7) == SEQUENTIAL || ((type & 7) == EXTERNAL && !(type & UNCACHED))) {
			ret->chars = (type & 7) == SEQUENTIAL ? string - 1 + STRING_CHARS
							      : v8_word(v, string, STRING_DATA);
			ret->chars += from * (ret->wide ? 2 : 1);
			ret->n = length;
			return from + length <= n;
		}
		if ((type & 7) == SLICED)
			from += (uint64_t)(uint32_t)v8_smi(v8_word(v, string, STRING_DATA));
		else if ((type & 7) != THIN && (type & 7) != CONS)
			return false;
		else if ((type & 7) == CONS && v8_word(v, v8_word(v, string, 24), 8) >> 32 != 0)
			return false;
		string = v8_word(v, string, STRING_CHARS);
	}
	return false;
}

static size_t put_character(char *to, size_t left, uint32_t c)
{
	if (c < 0x80 && left > 1) {
		to[0] = (char)c;
		return 1;
	}
	if (c >= 0x80 && c < 0x800 && left > 2) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c >= 0x800 && c <= UINT16_MAX && left > 3) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	return 0;
}

/* Appends; false: it cannot be read. */
static bool put_piece(struct v8 *v, const struct piece *p, char *ret, size_t size, size_t *at)
{
	uint8_t bytes[MAX_CHARS * 2];
	uint32_t n = p->n < MAX_CHARS ? p->n : MAX_CHARS;
	size_t step = 1;

	if (n && !memory_read(&v->memory, p->chars, bytes, (size_t)n * (p->wide ? 2 : 1)))
		return false;
	for (uint32_t i = 0; i < n && step > 0; i++) {
		uint32_t c = p->wide ? bytes[2 * i] | (uint32_t)bytes[2 * i + 1] << 8 : bytes[i];

		/* Half of a character beyond the basic plane: there is no UTF-8 for it. */
		if (c >= 0xd800 && c < 0xe000)
			c = 0xfffd;
		step = put_character(ret + *at, size - *at, c ? c : '?');
		*at += step;
	}
	return true;
}

bool v8_string(struct v8 *v, uint64_t string, char *ret, size_t size)
{
	uint64_t parts[MAX_NESTED] = {string};
	size_t at = 0, n = 1;

	ret[0] = '\0';
	for (int i = 0; n > 0 && i < 2 * MAX_NESTED; i++) {
		uint64_t part = parts[--n];
		int32_t type = v8_type(v, part);
		struct piece p;

		/* Two, one behind the other. */
		if (v8_is_string_type(v, type) && (type & 7) == CONS && n + 2 <= MAX_NESTED) {
			parts[n++] = v8_word(v, part, 24);
			parts[n++] = v8_word(v, part, 16);
		} else if (!find_piece(v, part, &p) || !put_piece(v, &p, ret, size, &at)) {
			return false;
		}
	}
	ret[at] = '\0';
	return true;
}

static uint32_t count_newlines(const uint8_t *bytes, uint32_t n, bool wide)
{
	uint32_t lines = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (wide)
			lines += bytes[2 * i] == '\n' && bytes[2 * i + 1] == 0;
		else
			lines += bytes[i] == '\n';
	}
	return lines;
}

bool v8_count_lines(struct v8 *v, uint64_t string, uint32_t from, uint32_t n, uint32_t *ret)
{
	struct piece p;

	*ret = 0;
	if (!find_piece(v, string, &p) || from > p.n || n > p.n - from)
		return false;
	while (n > 0) {
		uint8_t bytes[CHUNK];
		uint32_t width = p.wide ? 2 : 1, step = n < CHUNK / width ? n : CHUNK / width;

		if (!memory_read(&v->memory, p.chars + (uint64_t)from * width, bytes,
				 (size_t)step * width))
			return false;
		*ret += count_newlines(bytes, step, p.wide);
		from += step;
		n -= step;
	}
	return true;
}

/* ---- Numbers ---- */

static bool read_number(const uint8_t *bytes, size_t n, size_t *at, uint64_t *ret)
{
	unsigned int shift = 0;

	*ret = 0;
	while (*at < n && shift < 64) {
		uint8_t b = bytes[(*at)++];

		*ret |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return true;
		shift += 7;
	}
	return false;
}

/* The sign is the lowest bit. */
bool v8_read_signed(const uint8_t *bytes, size_t n, size_t *at, int64_t *ret)
{
	uint64_t u;

	if (!read_number(bytes, n, at, &u))
		return false;
	*ret = (int64_t)(u >> 1) ^ -(int64_t)(u & 1);
	return true;
}

bool v8_read_unsigned(const uint8_t *bytes, size_t n, size_t *at, uint32_t *ret)
{
	uint64_t u;

	if (!read_number(bytes, n, at, &u) || u > UINT32_MAX)
		return false;
	*ret = (uint32_t)u;
	return true;
}
