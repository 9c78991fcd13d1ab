/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pc -> blob of the code cache -> the functions that are executing there.
 *
 * A code heap is cut into segments; a byte of its map says how many of them to go back for the
 * beginning of the block (codeHeap, heap.cpp). A block holds a blob, whose head says what it is.
 * Blobs are freed and their places used again, so the head is read at each use and compared.
 */
#include <stdlib.h>

#include "runtimes/arch.h"
#include "util/hash.h"

enum {
	MAX_HOPS = 4096, /* of 255 segments */
	MAX_BLOB = 64 << 20,
	MAX_PC_DESCS = 1 << 20,
	SCOPE_BYTES = 24,
	CODE_BYTES = 32,     /* of an epilogue */
	PROLOGUE_BYTES = 96, /* in front of a place in a prologue */
};

static uint32_t u32_of(const struct hotspot *h, const uint8_t *head, enum hotspot_value v)
{
	int64_t at = hs(h, v);
	uint32_t wide = 0;
	int16_t half;

	if (!hs_known(h, v) || at + 4 > HOTSPOT_HEADER_BYTES)
		return 0;
	if (!h->tables.narrow[v]) {
		memcpy(&wide, head + at, sizeof(wide));
		return wide;
	}
	memcpy(&half, head + at, sizeof(half));
	return (uint32_t)(int32_t)half;
}

static uint64_t u64_of(const struct hotspot *h, const uint8_t *head, enum hotspot_value v)
{
	uint64_t value = 0;

	if (hs_known(h, v) && hs(h, v) + 8 <= HOTSPOT_HEADER_BYTES)
		memcpy(&value, head + hs(h, v), sizeof(value));
	return value;
}

/* ---- Find the beginning of a blob ---- */

/* The address of each heap's description; its number. */
static uint32_t list_heaps(struct hotspot *h, uint64_t *heaps)
{
	uint64_t array, data;
	uint32_t n;

	if (hs_known(h, HS_HEAP)) {
		heaps[0] = memory_u64(&h->memory, (uint64_t)hs(h, HS_HEAP));
		return heaps[0] ? 1 : 0;
	}
	array = memory_u64(&h->memory, (uint64_t)hs(h, HS_HEAPS));
	if (!array || !memory_read(&h->memory, array + (uint64_t)hs(h, HS_ARRAY_LENGTH), &n, 4) ||
	    n > HOTSPOT_MAX_HEAPS)
		return 0;
	data = memory_u64(&h->memory, array + (uint64_t)hs(h, HS_ARRAY_DATA));
	for (uint32_t i = 0; i < n; i++)
		heaps[i] = memory_u64(&h->memory, data + (uint64_t)i * 8);
	return n;
}

bool hotspot_code_bounds(struct hotspot *h)
{
	uint64_t heaps[HOTSPOT_MAX_HEAPS], space;

	if (hs_known(h, HS_HEAP)) {
		if (list_heaps(h, heaps) == 0)
			return false;
		space = heaps[0] + (uint64_t)hs(h, HS_HEAP_MEMORY);
		h->low = memory_u64(&h->memory, space + (uint64_t)hs(h, HS_SPACE_FIRST));
		h->high = memory_u64(&h->memory, space + (uint64_t)hs(h, HS_SPACE_LAST));
	} else {
		h->low = memory_u64(&h->memory, (uint64_t)hs(h, HS_LOW_BOUND));
		h->high = memory_u64(&h->memory, (uint64_t)hs(h, HS_HIGH_BOUND));
	}
	return h->low < h->high && h->low != UINT64_MAX;
}

bool hotspot_code_heaps(struct hotspot *h)
{
	uint64_t map = (uint64_t)hs(h, HS_HEAP_SEGMAP);
	uint64_t space = (uint64_t)hs(h, HS_HEAP_MEMORY);
	uint64_t heaps[HOTSPOT_MAX_HEAPS];
	uint32_t n = list_heaps(h, heaps), log2;

	h->n_heaps = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t heap = heaps[i];
		struct code_heap c = {
			.low = memory_u64(&h->memory, heap + space + (uint64_t)hs(h, HS_SPACE_LOW)),
			.high = memory_u64(&h->memory,
					   heap + space + (uint64_t)hs(h, HS_SPACE_HIGH)),
			.segmap =
				memory_u64(&h->memory, heap + map + (uint64_t)hs(h, HS_SPACE_LOW)),
		};

		if (!memory_read(&h->memory, heap + (uint64_t)hs(h, HS_HEAP_LOG2_SEGMENT), &log2,
				 4) ||
		    log2 < 3 || log2 > 20 || c.low < h->low || c.high > h->high || c.low > c.high)
			continue;
		c.log2_segment = log2;
		h->heaps[h->n_heaps++] = c;
	}
	return h->n_heaps > 0;
}

static const struct code_heap *find_heap(struct hotspot *h, uint64_t pc)
{
	/* They grow: a second look. */
	for (int look = 0; look < 2; look++) {
		for (uint32_t i = 0; i < h->n_heaps; i++) {
			if (pc >= h->heaps[i].low && pc < h->heaps[i].high)
				return &h->heaps[i];
		}
		if (look == 0 && !hotspot_code_heaps(h))
			return NULL;
	}
	return NULL;
}

/* 0: none. */
static uint64_t find_blob(struct hotspot *h, uint64_t pc)
{
	const struct code_heap *c = find_heap(h, pc);
	uint64_t segment;
	uint8_t hop;

	if (!c)
		return 0;
	segment = (pc - c->low) >> c->log2_segment;
	for (int i = 0; i < MAX_HOPS; i++) {
		if (!memory_read(&h->memory, c->segmap + segment, &hop, 1) || hop == 0xff ||
		    hop > segment)
			return 0;
		if (hop == 0)
			return c->low + (segment << c->log2_segment) +
			       (uint64_t)hs(h, HS_HEAP_BLOCK_BYTES);
		segment -= hop;
	}
	return 0;
}

/* ---- Read a blob ---- */

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static enum blob_kind kind_of(const struct blob *b)
{
	if (strcmp(b->text, "nmethod") == 0)
		return BLOB_NMETHOD;
	if (strcmp(b->text, "native nmethod") == 0)
		return BLOB_NATIVE;
	if (strcmp(b->text, "Interpreter") == 0)
		return BLOB_INTERPRETER;
	if (begins(b->text, "StubRoutines (cont"))
		return BLOB_CONTINUATION;
	if (begins(b->text, "StubRoutines"))
		return BLOB_STUBS;
	if (begins(b->text, "I2C/C2I") || begins(b->text, "vtable") ||
	    begins(b->text, "MethodHandle"))
		return BLOB_FRAMELESS;
	return b->frame_words > 0 ? BLOB_FRAMED : BLOB_STUBS;
}

static void parse_nmethod(const struct hotspot *h, const uint8_t *head, struct blob *b)
{
	uint64_t immutable = u64_of(h, head, HS_NMETHOD_IMMUTABLE_DATA);

	b->method = u64_of(h, head, HS_NMETHOD_METHOD);
	b->compile_id = u32_of(h, head, HS_NMETHOD_COMPILE_ID);
	b->level = u32_of(h, head, HS_NMETHOD_COMP_LEVEL) & 0xff;
	b->orig_pc_offset = u32_of(h, head, HS_NMETHOD_ORIG_PC_OFFSET);
	b->stub = b->at + u32_of(h, head, HS_NMETHOD_STUB_OFFSET);
	if (hs_known(h, HS_NMETHOD_VERIFIED_ENTRY))
		b->verified_entry = u64_of(h, head, HS_NMETHOD_VERIFIED_ENTRY);
	else
		b->verified_entry = b->code_begin +
				    (u32_of(h, head, HS_NMETHOD_VERIFIED_ENTRY_OFFSET) & 0xffff);
	b->deopt = u64_of(h, head, HS_NMETHOD_DEOPT);
	b->deopt_mh = u64_of(h, head, HS_NMETHOD_DEOPT_MH);
	if (hs_known(h, HS_NMETHOD_DEOPT_OFFSET) && !b->deopt)
		b->deopt = b->at + u32_of(h, head, HS_NMETHOD_DEOPT_OFFSET);
	if (hs_known(h, HS_NMETHOD_DEOPT_MH_OFFSET) && !b->deopt_mh)
		b->deopt_mh = b->at + u32_of(h, head, HS_NMETHOD_DEOPT_MH_OFFSET);
	if (hs_known(h, HS_NMETHOD_IMMUTABLE_DATA)) {
		b->pcs = immutable + u32_of(h, head, HS_NMETHOD_SCOPES_PCS_OFFSET);
		b->pcs_end = immutable + u32_of(h, head, HS_NMETHOD_SCOPES_DATA_OFFSET);
		b->scopes = b->pcs_end;
		b->scopes_end = immutable + u32_of(h, head, HS_NMETHOD_IMMUTABLE_DATA_SIZE);
	} else {
		b->pcs = b->at + u32_of(h, head, HS_NMETHOD_SCOPES_PCS_OFFSET);
		b->pcs_end = b->at + u32_of(h, head, HS_NMETHOD_DEPENDENCIES_OFFSET);
		b->scopes = hs_known(h, HS_NMETHOD_SCOPES_DATA)
				    ? u64_of(h, head, HS_NMETHOD_SCOPES_DATA)
				    : b->at + u32_of(h, head, HS_NMETHOD_SCOPES_DATA_OFFSET);
		b->scopes_end = b->pcs;
	}
	if (hs_known(h, HS_NMETHOD_METADATA_OFFSET))
		b->metadata = b->at + u32_of(h, head, HS_NMETHOD_METADATA_OFFSET);
	else
		b->metadata = u64_of(h, head, HS_BLOB_MUTABLE_DATA) +
			      u32_of(h, head, HS_BLOB_RELOCATION_SIZE);
}

/* Reads the head of a blob, as it is now, without the text of its name. */
static bool read_head(struct hotspot *h, uint64_t at, bool is_nmethod, struct blob *ret)
{
	int64_t n = is_nmethod ? hs(h, HS_NMETHOD_BYTES) : hs(h, HS_BLOB_BYTES);
	uint8_t head[HOTSPOT_HEADER_BYTES] = {0};
	struct blob b = {.at = at};

	if (n > HOTSPOT_HEADER_BYTES || !memory_read(&h->memory, at, head, (size_t)n))
		return false;
	b.name = u64_of(h, head, HS_BLOB_NAME);
	b.size = u32_of(h, head, HS_BLOB_SIZE);
	b.frame_words = u32_of(h, head, HS_BLOB_FRAME_SIZE);
	if (b.frame_words == UINT32_MAX) /* of no fixed size */
		b.frame_words = 0;
	b.frame_complete = (int32_t)u32_of(h, head, HS_BLOB_FRAME_COMPLETE);
	if (hs_known(h, HS_BLOB_CODE_BEGIN)) {
		b.code_begin = u64_of(h, head, HS_BLOB_CODE_BEGIN);
		b.code_end = u64_of(h, head, HS_BLOB_CODE_END);
	} else {
		b.code_begin = at + u32_of(h, head, HS_BLOB_CODE_OFFSET);
		b.code_end = at + u32_of(h, head, HS_BLOB_DATA_OFFSET);
	}
	if (b.size > MAX_BLOB || b.code_begin < at || b.code_end < b.code_begin ||
	    b.code_end > at + b.size || b.frame_words > UINT16_MAX)
		return false;
	if (is_nmethod)
		parse_nmethod(h, head, &b);
	/* The number of an nmethod's compilation is never used twice. */
	b.identity = hash_combine(hash_combine(b.name, b.code_begin),
				  hash_combine((uint64_t)b.size << 32 | b.compile_id, b.method));
	*ret = b;
	return true;
}

/* The blob around pc, from its head on. */
static bool read_blob(struct hotspot *h, uint64_t pc, struct blob *ret)
{
	uint64_t at = find_blob(h, pc);
	struct blob b;
	char text[sizeof(b.text)];

	if (!at || !read_head(h, at, false, &b) || pc < b.code_begin || pc > b.code_end ||
	    !memory_text(&h->memory, b.name, text, sizeof(text)))
		return false;
	memcpy(b.text, text, sizeof(text));
	b.kind = kind_of(&b);
	if (b.kind == BLOB_NMETHOD || b.kind == BLOB_NATIVE) {
		if (!read_head(h, at, true, ret) || ret->name != b.name)
			return false;
		memcpy(ret->text, text, sizeof(text));
		ret->kind = b.kind;
		return true;
	}
	*ret = b;
	return true;
}

/* ---- The functions at a pc of an nmethod ---- */

/* The first debug information whose pc is not below that one; exact: its pc is that one. */
static bool find_pc_desc(struct hotspot *h, const struct blob *b, uint64_t pc, bool exact,
			 uint32_t *ret_scope)
{
	uint64_t stride = (uint64_t)hs(h, HS_PC_DESC_BYTES), low = 0, high;
	int64_t wanted = (int64_t)(pc - b->code_begin);
	int32_t offset = 0, scope;

	if (b->pcs_end < b->pcs || stride < 8)
		return false;
	high = (b->pcs_end - b->pcs) / stride;
	if (high == 0 || high > MAX_PC_DESCS)
		return false;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2, at = b->pcs + middle * stride;

		if (!memory_read(&h->memory, at + (uint64_t)hs(h, HS_PC_DESC_PC_OFFSET), &offset,
				 4))
			return false;
		if (offset < wanted)
			low = middle + 1;
		else
			high = middle;
	}
	if (!memory_read(&h->memory, b->pcs + low * stride + (uint64_t)hs(h, HS_PC_DESC_PC_OFFSET),
			 &offset, 4) ||
	    !memory_read(&h->memory,
			 b->pcs + low * stride + (uint64_t)hs(h, HS_PC_DESC_SCOPE_OFFSET), &scope,
			 4) ||
	    b->pcs + (low + 1) * stride > b->pcs_end)
		return false;
	/* The last one stands for no code. */
	if (exact ? offset != wanted
		  : offset < wanted || b->code_begin + (uint64_t)offset > b->code_end)
		return false;
	*ret_scope = (uint32_t)scope;
	return scope >= 0;
}

static bool push_place(struct hotspot *h, struct code *c, const struct stepped_frame *f)
{
	struct stepped_frame *place = array_push(&h->memo->places);

	if (!place)
		return false;
	*place = *f;
	c->n++;
	return true;
}

static bool push_method(struct hotspot *h, struct code *c, uint64_t method, int32_t bci)
{
	struct stepped_frame f;

	if (!hotspot_method_frame(h, method, bci, &f))
		return false;
	f.level = c->blob.kind == BLOB_NATIVE ? HOTSPOT_NATIVE
		  : c->blob.level >= HOTSPOT_C1 && c->blob.level <= HOTSPOT_C2
			  ? (uint8_t)c->blob.level
			  : HOTSPOT_C2;
	return push_place(h, c, &f);
}

/* Adds a chain of scopes, innermost first. In the data, the scope of a caller comes before those
 * inlined into it. */
static bool push_scopes(struct hotspot *h, struct code *c, uint32_t scope)
{
	const struct blob *b = &c->blob;

	if (scope == 0)
		return push_method(h, c, b->method, -1);
	for (int i = 0; i < HOTSPOT_MAX_INLINED && scope; i++) {
		uint8_t bytes[SCOPE_BYTES];
		uint64_t at = b->scopes + scope, left;
		uint32_t sender, method, bci;
		size_t n, k = 0;

		if (b->scopes_end <= at)
			return false;
		left = b->scopes_end - at;
		n = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);
		if (!memory_read(&h->memory, at, bytes, n) ||
		    !hotspot_read_number(h, bytes, n, &k, &sender) ||
		    !hotspot_read_number(h, bytes, n, &k, &method) ||
		    !hotspot_read_number(h, bytes, n, &k, &bci) || sender >= scope || method == 0 ||
		    method > UINT16_MAX)
			return false;
		/* InvocationEntryBci is -1. */
		if (!push_method(h, c,
				 memory_u64(&h->memory, b->metadata + (uint64_t)(method - 1) * 8),
				 (int32_t)bci - 1))
			return false;
		h->memo->places.items[h->memo->places.n - 1].inlined = sender != 0;
		scope = sender;
	}
	return scope == 0;
}

bool hotspot_is_behind_call(struct hotspot *h, uint64_t pc)
{
	uint8_t before[8];

	return memory_read(&h->memory, pc - sizeof(before), before, sizeof(before)) &&
	       arch_is_call(before, sizeof(before));
}

/* Does a frame return to where the interpreter takes over from its code? */
static bool is_given_up(const struct blob *b, uint64_t pc)
{
	return pc == b->deopt || pc == b->deopt_mh;
}

static bool push_functions(struct hotspot *h, struct code *c)
{
	const struct blob *b = &c->blob;
	uint32_t scope;

	if (b->kind == BLOB_NATIVE)
		return push_method(h, c, b->method, -1);
	if (c->use != PC_INTERRUPTED) {
		/* It has none: the place that was put aside has. */
		if (is_given_up(b, c->pc))
			return true;
		if (find_pc_desc(h, b, c->pc, true, &scope))
			return push_scopes(h, c, scope);
		if (c->use == PC_CALLED_JAVA || !hotspot_is_behind_call(h, c->pc))
			return false;
	}
	/* Before its frame is made, in its stubs: the method is executing, it cannot be said where.
	 */
	if ((b->frame_complete > 0 && c->pc < b->code_begin + (uint64_t)b->frame_complete) ||
	    c->pc >= b->stub)
		return push_method(h, c, b->method, -1);
	if (find_pc_desc(h, b, c->pc + 1, false, &scope))
		return push_scopes(h, c, scope);
	return push_method(h, c, b->method, -1);
}

/* The place where the code makes its frame: after the check of the receiver's class, if any. */
static uint64_t entry_of(const struct blob *b)
{
	return b->kind == BLOB_NMETHOD || b->kind == BLOB_NATIVE ? b->verified_entry
								 : b->code_begin;
}

static enum frame_shape shape_of(struct hotspot *h, const struct blob *b, uint64_t pc)
{
	uint64_t entry = entry_of(b);
	bool complete = b->frame_complete >= 0 && pc >= b->code_begin + (uint64_t)b->frame_complete;
	uint8_t code[PROLOGUE_BYTES + CODE_BYTES] = {0};
	size_t n_before = 0, n;

	/* A method handle's: it jumps on to its target. */
	if (b->kind == BLOB_NATIVE && b->frame_words < 2)
		return SHAPE_NONE;
	if (pc <= entry)
		return SHAPE_NONE;
	if (!complete && pc - entry > PROLOGUE_BYTES)
		complete = true;
	if (!complete)
		n_before = (size_t)(pc - entry);
	n = b->code_end - pc < CODE_BYTES ? (size_t)(b->code_end - pc) : CODE_BYTES;
	if (!memory_read(&h->memory, pc - n_before, code, n_before + n))
		return SHAPE_FULL;
	return arch_frame_shape(code, n_before, n, complete);
}

/* ---- Remembered code ---- */

static bool learn(struct hotspot *h, struct code *c, uint64_t pc, enum pc_use use)
{
	struct stepped_frame stub = {.level = HOTSPOT_STUB};
	struct code fresh = {
		.pc = pc, .use = (uint8_t)use, .owner = h->owner, .first = h->memo->places.n};

	h->stats.learned++;
	if (!read_blob(h, pc, &fresh.blob))
		return false;
	fresh.identity = fresh.blob.identity;
	if (fresh.blob.kind == BLOB_NMETHOD || fresh.blob.kind == BLOB_NATIVE) {
		if (!push_functions(h, &fresh)) {
			h->memo->places.n = fresh.first;
			return false;
		}
	} else if (fresh.blob.kind != BLOB_INTERPRETER) {
		stub.function =
			strtab_put(&h->memo->base.texts,
				   pc == h->call_stub_return ? "call_stub" : fresh.blob.text);
		if (!push_place(h, &fresh, &stub))
			return false;
	}
	if (use == PC_INTERRUPTED)
		fresh.shape = (uint8_t)shape_of(h, &fresh.blob, pc);
	if (use != PC_CALLED_JAVA)
		arch_look_ahead(&h->memory, pc, fresh.blob.code_end, &fresh.ahead);
	fresh.walk = h->walk;
	*c = fresh;
	return true;
}

const struct code *hotspot_code_find(struct hotspot *h, uint64_t pc, enum pc_use use)
{
	uint64_t key = hash_combine(hash_combine(pc, use), h->owner);
	struct code *c = &h->memo->codes[key % HOTSPOT_N_CODES];
	struct blob now;

	if (c->pc == pc && c->use == use && c->owner == h->owner) {
		bool is_nmethod = c->blob.kind == BLOB_NMETHOD || c->blob.kind == BLOB_NATIVE;

		if (c->walk == h->walk)
			return c;
		if (!read_head(h, c->blob.at, is_nmethod, &now))
			return NULL;
		if (now.identity == c->identity) {
			c->walk = h->walk;
			return c;
		}
		h->stats.stale++;
	}
	c->pc = 0;
	return learn(h, c, pc, use) ? c : NULL;
}
