/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places in bytecode and in baseline code (source-position-table.cc, bytecode-offset-iterator.h). A
 * place is one that is calling, or the last one before it of which a position in the script is
 * known, as in V8's own stack traces.
 */
#include <stdlib.h>

#include "runtimes/v8-internal.h"

enum {
	ARRAY_LENGTH = 8,
	MAX_BYTECODE = 1 << 20,
	CHUNK = 1024,
	/* Of an instruction of the machine or of bytecode: where functions are entered. */
	ENTRY = -1,
};

/* ---- Positions ---- */

/* SourcePosition: a bit, 30 of the place in the script, 16 of what was inlined; both plus 1. */
struct v8_position v8_position_of(uint64_t raw)
{
	return (struct v8_position){
		.script_offset = raw & 1 ? -1 : (int32_t)(raw >> 1 & 0x3fffffff) - 1,
		.inlining = (int32_t)(raw >> 31 & 0xffff) - 1,
	};
}

/* How far an entry is behind the one before: up to V8 13 a negative number is that of an
 * expression, since 14 the lowest bit says so. */
static int64_t code_step(const struct v8 *v, int64_t step)
{
	if (v->tables.version[0] >= 14)
		return step >> 1;
	return step >= 0 ? step : -(step + 1);
}

bool v8_position_find(struct v8 *v, uint64_t table, int64_t offset, struct v8_position *ret)
{
	size_t n = v8_bytes(v, table, v->memo->table, sizeof(v->memo->table)), at = 0;
	int64_t code = ENTRY, step;
	uint64_t position = 0;
	bool found = false;

	while (at < n && v8_read_signed(v->memo->table, n, &at, &step)) {
		code += code_step(v, step);
		if (code > offset || !v8_read_signed(v->memo->table, n, &at, &step))
			break;
		position += (uint64_t)step;
		found = true;
	}
	if (found)
		*ret = v8_position_of(position);
	return found;
}

static int32_t find_position(struct v8 *v, uint64_t bytecode, int32_t offset)
{
	uint64_t table = v8_word(v, bytecode, v8_value(v, V8_BYTECODE_POSITIONS));
	struct v8_position p;

	return v8_position_find(v, table, offset, &p) ? p.script_offset : -1;
}

int32_t v8_bytecode_position(struct v8 *v, uint64_t bytecode, int32_t offset)
{
	struct v8_kept_offset *k =
		&v->memo->offsets[hash_combine(hash_combine(bytecode, (uint32_t)offset), v->owner) %
				  V8_N_OFFSETS];
	bool known = k->owner == v->owner && k->bytecode == bytecode && k->offset == offset;
	int32_t position;

	if (offset < 0)
		return -1;
	if (known && trust_has(&k->trust, &v->walks))
		return k->position;
	position = find_position(v, bytecode, offset);
	if (known && k->position != position)
		trust_end(&k->trust, &v->walks);
	/* V8 makes the table of a function only once somebody asks for a line. */
	if (position < 0)
		return -1;
	if (!known || k->position != position)
		*k = (struct v8_kept_offset){bytecode, offset, position, v->owner, {.walk = 0}};
	trust_prove(&k->trust, &v->walks);
	return position;
}

/* ---- Baseline code: a number of bytes for each bytecode ---- */

struct bytecodes {
	struct v8 *v;
	uint64_t at; /* of the next one */
	uint32_t left;
	uint8_t bytes[CHUNK];
	uint32_t n, next;
};

static bool next_byte(struct bytecodes *b, uint8_t *ret)
{
	if (b->next == b->n) {
		b->n = b->left < CHUNK ? b->left : CHUNK;
		b->next = 0;
		if (b->n == 0 || !memory_read(&b->v->memory, b->at, b->bytes, b->n))
			return false;
		b->at += b->n;
		b->left -= b->n;
	}
	*ret = b->bytes[b->next++];
	return true;
}

/* How many bytes the next bytecode has, with its prefix; 0: none. */
static uint32_t next_bytecode(struct bytecodes *b)
{
	enum { WIDE = 0, EXTRA_WIDE = 1, DEBUG_WIDE = 2, DEBUG_EXTRA_WIDE = 3 };
	uint32_t prefix = 0, scale = 0, n;
	uint8_t code, skipped;

	if (!next_byte(b, &code))
		return 0;
	if (code <= DEBUG_EXTRA_WIDE) {
		scale = code == WIDE || code == DEBUG_WIDE ? 1 : 2;
		prefix = 1;
		if (!next_byte(b, &code))
			return 0;
	}
	if (code >= b->v->n_bytecodes)
		return 0;
	n = b->v->bytecode_sizes[scale * b->v->n_bytecodes + code];
	for (uint32_t i = 1; i < n; i++) {
		if (!next_byte(b, &skipped))
			return 0;
	}
	return n ? n + prefix : 0;
}

static bool open_bytecode(struct v8 *v, uint64_t bytecode, struct bytecodes *ret)
{
	uint64_t length = v8_word(v, bytecode, ARRAY_LENGTH);

	if (!v8_is_smi(length) || v8_smi(length) <= 0 || v8_smi(length) > MAX_BYTECODE)
		return false;
	ret->v = v;
	ret->at = bytecode - 1 + v8_value(v, V8_BYTECODE_DATA);
	ret->left = (uint32_t)v8_smi(length);
	ret->n = ret->next = 0;
	return true;
}

int32_t v8_baseline_offset(struct v8 *v, const struct v8_code *code, uint64_t bytecode, uint64_t pc)
{
	size_t n = v8_bytes(v, code->positions, v->memo->table, sizeof(v->memo->table)), at = 0;
	struct bytecodes b;
	uint64_t end = 0;
	uint32_t bytes, size = 0;
	int32_t offset = ENTRY;

	if (!v->bytecode_sizes || !open_bytecode(v, bytecode, &b) ||
	    !v8_read_unsigned(v->memo->table, n, &at, &bytes))
		return -1;
	for (end = bytes; end < pc - code->start; end += bytes) {
		offset = offset == ENTRY ? 0 : offset + (int32_t)size;
		size = next_bytecode(&b);
		if (size == 0 || !v8_read_unsigned(v->memo->table, n, &at, &bytes))
			return -1;
	}
	return offset;
}

uint32_t v8_baseline_entry(struct v8 *v, const struct v8_code *code)
{
	uint8_t bytes[8];
	size_t n = v8_bytes(v, code->positions, bytes, sizeof(bytes)), at = 0;
	uint32_t end;

	return v8_read_unsigned(bytes, n, &at, &end) ? end : 0;
}
