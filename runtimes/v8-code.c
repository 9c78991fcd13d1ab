/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pc -> code -> the functions that are executing there.
 *
 * Instructions are an object of V8's heap. The head before them leads to their Code object, which
 * leads back; bytes that look like a head by accident do not. V8 moves and frees code, so we read
 * and compare it at each use.
 */
#include "runtimes/v8-internal.h"
#include "util/hash.h"

/* All code of a thread's heap lies in a range that is smaller. */
#define CODE_RANGE (UINT64_C(512) << 20)

enum {
	ALIGNMENT = 16, /* of heads */
	SCAN_BYTES = 128 << 10,
	CHUNK = 4096, /* a page: what is below may not be there */
	MAX_HEAD = 256,
	MAX_CODE = 16 << 20,
	CODE_BYTES = 64,
	SHAPE_BYTES = 64,
	KIND_MASK = 15,
	INLINING_BYTES = 16,
	USES_OF_NONE = 256, /* of the knowledge that there is no code */
};

static uint64_t word_at(const uint8_t *bytes, uint64_t offset, size_t n)
{
	uint64_t word = 0;

	if (offset + n <= CODE_BYTES)
		memcpy(&word, bytes + offset, n);
	return word;
}

/* Reads the code at an address, as it is now. */
static bool read_code(struct v8 *v, uint64_t at, struct v8_code *ret)
{
	uint8_t bytes[CODE_BYTES];

	if (!v8_has_type(v, at, V8_TYPE_CODE) || !v8_read(v, at - 1, bytes, sizeof(bytes)))
		return false;
	*ret = (struct v8_code){
		.at = at,
		.start = v->tables.inline_code ? at - 1 + v8_value(v, V8_CODE_START)
					       : word_at(bytes, v8_value(v, V8_CODE_START), 8),
		.deopt = word_at(bytes, v8_value(v, V8_CODE_DEOPT), 8),
		.positions = word_at(bytes, v8_value(v, V8_CODE_POSITIONS), 8),
		.size = (uint32_t)word_at(bytes, v8_value(v, V8_CODE_SIZE), 4),
		.kind = (uint32_t)word_at(bytes, v8_value(v, V8_CODE_FLAGS), 4) & KIND_MASK,
	};
	return ret->size <= MAX_CODE;
}

static bool is_same(const struct v8_code *a, const struct v8_code *b)
{
	return a->at == b->at && a->start == b->start && a->size == b->size &&
	       a->deopt == b->deopt && a->positions == b->positions && a->kind == b->kind;
}

/* Is there a head of instructions at an address, for code around pc? */
static bool is_head(struct v8 *v, uint64_t at, const uint64_t *words, uint64_t pc,
		    struct v8_code *ret)
{
	uint64_t code = v->tables.inline_code ? at + 1 : words[1];

	if (!v8_is_object(words[0]) || !v8_is_object(code) ||
	    !v8_has_type(v, at + 1, V8_TYPE_STREAM) || !read_code(v, code, ret))
		return false;
	return ret->start > at && ret->start - at <= MAX_HEAD && pc >= ret->start &&
	       pc <= ret->start + ret->size;
}

/* The head that code around pc had before. */
static bool find_known(struct v8 *v, uint64_t pc, uint64_t head, struct v8_code *ret)
{
	uint64_t words[2];

	return head < pc && pc - head < SCAN_BYTES &&
	       memory_read(&v->memory, head, words, sizeof(words)) &&
	       is_head(v, head, words, pc, ret);
}

/* *ret_none: there is no code, and not just memory that cannot be read. */
static bool find_code(struct v8 *v, uint64_t pc, struct v8_code *ret, bool *ret_none)
{
	size_t i = hash_combine(pc / V8_HEAD_PART, v->owner) % V8_N_HEADS;
	uint8_t chunk[CHUNK];
	uint64_t words[2], low = 0;

	*ret_none = false;
	if (v->memo->heads[i].owner == v->owner && v->memo->heads[i].part == pc / V8_HEAD_PART &&
	    find_known(v, pc, v->memo->heads[i].head, ret))
		return true;
	for (uint64_t at = (pc & ~(uint64_t)(ALIGNMENT - 1)) - ALIGNMENT; pc - at < SCAN_BYTES;
	     at -= ALIGNMENT) {
		if (low == 0 || at < low) {
			low = at & ~(uint64_t)(CHUNK - 1);
			if (!memory_read(&v->memory, low, chunk, at + ALIGNMENT - low))
				return false;
		}
		memcpy(words, chunk + (at - low), sizeof(words));
		if (!is_head(v, at, words, pc, ret))
			continue;
		v->memo->heads[i].part = pc / V8_HEAD_PART;
		v->memo->heads[i].head = at;
		v->memo->heads[i].owner = v->owner;
		return true;
	}
	*ret_none = true;
	return false;
}

/* ---- The functions at a pc of optimized code ---- */

static bool push_place(struct v8 *v, struct v8_known_code *k, uint64_t shared, int32_t position)
{
	struct v8_place *p = array_push(&v->memo->places);

	if (!p)
		return false;
	*p = (struct v8_place){shared, v8_function_identity(v, shared), position};
	k->n++;
	return true;
}

/* A function in an array, which may hold it weakly or in a wrapper. */
static uint64_t function_in(struct v8 *v, uint64_t array, uint32_t index)
{
	uint64_t object = v8_element(v, array, index);

	if ((object & 3) == 3)
		object -= 2;
	return v8_has_type(v, object, V8_TYPE_SHARED) ? object : v8_word(v, object, 8);
}

/* Adds the functions inlined at a place in the code, innermost first, up to the code's own. */
static bool push_inlined(struct v8 *v, struct v8_known_code *k, struct v8_position *at)
{
	uint64_t literals = v8_element(v, k->code.deopt, (uint32_t)v8_value(v, V8_DEOPT_LITERALS));
	uint64_t inlinings =
		v8_element(v, k->code.deopt, (uint32_t)v8_value(v, V8_DEOPT_INLININGS));

	for (int i = 0; at->inlining >= 0; i++) {
		uint64_t raw[2], offset = 16 + (uint64_t)at->inlining * INLINING_BYTES;
		uint64_t length = v8_word(v, inlinings, 8);
		uint32_t literal;

		if (i == V8_MAX_INLINED || !v8_is_smi(length) ||
		    offset > (uint64_t)(uint32_t)v8_smi(length) ||
		    !memory_read(&v->memory, inlinings - 1 + offset, raw, sizeof(raw)))
			return false;
		literal = (uint32_t)raw[1];
		if (!push_place(v, k, function_in(v, literals, literal), at->script_offset))
			return false;
		*at = v8_position_of(raw[0]);
	}
	return true;
}

/*
 * Calls have positions, other instructions only some: of interrupted code just the function is
 * certain that the code was made of.
 */
static bool push_functions(struct v8 *v, struct v8_known_code *k)
{
	struct v8_position at = {-1, -1};
	uint64_t own = function_in(v, k->code.deopt, (uint32_t)v8_value(v, V8_DEOPT_SHARED));

	if (!k->innermost &&
	    v8_position_find(v, k->code.positions, (int64_t)(k->pc - k->code.start) - 1, &at) &&
	    !push_inlined(v, k, &at))
		return false;
	return push_place(v, k, own, at.script_offset);
}

static enum v8_shape shape_of(struct v8 *v, const struct v8_code *c, uint64_t pc,
			      uint8_t *ret_register)
{
	uint8_t bytes[2 * SHAPE_BYTES] = {0};
	uint64_t n_before = pc - c->start, n = c->start + c->size - pc;

	n_before = n_before < SHAPE_BYTES ? n_before : SHAPE_BYTES;
	n = n < SHAPE_BYTES ? n : SHAPE_BYTES;
	if (!memory_read(&v->memory, pc - n_before, bytes, (size_t)(n_before + n)))
		return V8_SHAPE_FULL;
	return arch_v8_shape(bytes, (size_t)n_before, bytes + n_before, (size_t)n, ret_register);
}

/* ---- Remembered code ---- */

/* What is at a pc. Where one isolate ends, the next one puts its code. */
static uint64_t word_at_pc(struct v8 *v, uint64_t pc)
{
	return memory_u64(&v->memory, pc - pc % sizeof(uint64_t));
}

static bool is_known(const struct v8 *v, const struct v8_known_code *k, uint64_t pc, bool innermost)
{
	return k->owner == v->owner && k->pc == pc && k->innermost == innermost;
}

/* fresh: what k is to say of the pc, if there was no code before. */
static void learn_none(struct v8 *v, struct v8_known_code *k, const struct v8_known_code *fresh,
		       bool none)
{
	bool was_there = is_known(v, k, fresh->pc, fresh->innermost) && k->code.at;

	/* It may be because of the budget. */
	if (v->below.reads_left == 0 || v->below.bytes_left <= CHUNK)
		return;
	if (!was_there && !none) {
		k->pc = 0;
		return;
	}
	if (!was_there) {
		*k = *fresh;
		k->code.at = 0;
	}
	k->gone = was_there;
	k->n_uses = 0;
	k->word = word_at_pc(v, fresh->pc);
}

static bool learn(struct v8 *v, struct v8_known_code *k, uint64_t pc, bool innermost)
{
	struct v8_known_code fresh = {
		.pc = pc, .owner = v->owner, .innermost = innermost, .first = v->memo->places.n};
	bool none;

	v->stats.learned++;
	if (!find_code(v, pc, &fresh.code, &none)) {
		learn_none(v, k, &fresh, none);
		return false;
	}
	k->pc = 0;
	if (fresh.code.kind > (uint32_t)v8_value(v, V8_KIND_BASELINE) &&
	    !push_functions(v, &fresh)) {
		v->memo->places.n = fresh.first;
		return false;
	}
	if (fresh.code.kind == (uint32_t)v8_value(v, V8_KIND_BASELINE))
		fresh.entry = v8_baseline_entry(v, &fresh.code);
	if (innermost)
		fresh.shape = (uint8_t)shape_of(v, &fresh.code, pc, &fresh.return_register);
	*k = fresh;
	if (!v->code_low || fresh.code.start < v->code_low)
		v->code_low = fresh.code.start;
	if (fresh.code.start > v->code_high)
		v->code_high = fresh.code.start;
	return true;
}

static struct v8_known_code *slot_of(struct v8 *v, uint64_t pc, bool innermost)
{
	return &v->memo->codes[hash_combine(hash_combine(pc, innermost), v->owner) % V8_N_CODES];
}

/* Is the remembered code still there? */
static bool is_there(struct v8 *v, struct v8_known_code *k)
{
	struct v8_code now;

	if (!k->code.at || k->gone)
		return false;
	if (trust_has(&k->trust, &v->walks))
		return true;
	if (!read_code(v, k->code.at, &now))
		return false;
	if (!is_same(&now, &k->code)) {
		trust_end(&k->trust, &v->walks);
		return false;
	}
	trust_prove(&k->trust, &v->walks);
	return true;
}

/* The collector may have moved its functions, and put others there. It tells the code's table, of
 * which only the outcome is remembered. */
static bool has_its_functions(struct v8 *v, const struct v8_known_code *k)
{
	for (uint32_t i = 0; i < k->n; i++) {
		struct v8_place p = v->memo->places.items[k->first + i];

		if (v8_function_identity(v, p.shared) != p.identity)
			return false;
	}
	return true;
}

const struct v8_known_code *v8_code_find(struct v8 *v, uint64_t pc, bool innermost)
{
	struct v8_known_code *k = slot_of(v, pc, innermost);

	if (is_known(v, k, pc, innermost)) {
		if ((!k->code.at || k->gone) && k->n_uses++ < USES_OF_NONE &&
		    k->word == word_at_pc(v, pc))
			return NULL;
		if (is_there(v, k) && has_its_functions(v, k))
			return k;
		v->stats.stale++;
	}
	return learn(v, k, pc, innermost) ? k : NULL;
}

const struct v8_known_code *v8_code_before(struct v8 *v, uint64_t pc, bool innermost)
{
	struct v8_known_code *k = slot_of(v, pc, innermost);

	return is_known(v, k, pc, innermost) && k->gone && has_its_functions(v, k) ? k : NULL;
}

const struct v8_known_code *v8_code_at(struct v8 *v, uint64_t word)
{
	if (v->code_low && (word + CODE_RANGE < v->code_low || word > v->code_high + CODE_RANGE))
		return NULL;
	return v8_code_find(v, word, false);
}

int32_t v8_code_offset(struct v8 *v, uint64_t pc, uint64_t bytecode)
{
	struct v8_known_code *k = slot_of(v, pc, false);

	if (!is_known(v, k, pc, false))
		return -1;
	if (k->bytecode != bytecode) {
		k->offset = v8_baseline_offset(v, &k->code, bytecode, pc);
		k->bytecode = bytecode;
	}
	return k->offset;
}
