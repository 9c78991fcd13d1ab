/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instruction sequences are freed and moved as other objects are: what is remembered of one is
 * compared with all that its names came from before it is used (trust.h).
 */
#include "runtimes/ruby-internal.h"

enum {
	SEQUENCE = 7,	   /* that kind of an internal object */
	EVALUATED = 6,	   /* that type of code: a call of eval() made it */
	MAX_EVALUATED = 8, /* in one another */
	MAX_ENCODED = 1 << 24,
	WORD = 8,
	/* The index from places to rows of lines: ranks of 7 bits for the first places, nine in a
	 * word, then blocks of bits. */
	N_AT_ONCE = 54,
	N_IN_WORD = 9,
	RANK_BITS = 7,
	BLOCK_BYTES = 80,
	BLOCK_BITS = 512,
	BLOCK_RANKS = 8, /* offsets in a block */
	BLOCK_WORDS = 16,
};

/* ---- Lines ---- */

/* The number of the row, from 1 on; 0: not known. */
static uint32_t find_row(struct ruby *p, uint64_t index, uint32_t place)
{
	uint8_t block[BLOCK_BYTES];
	uint32_t bit, word, row;

	if (place < N_AT_ONCE)
		return memory_u64(&p->base.memory, index + place / N_IN_WORD * WORD) >>
			       (place % N_IN_WORD * RANK_BITS) &
		       ((1 << RANK_BITS) - 1);
	place -= N_AT_ONCE;
	if (!memory_read(&p->base.memory,
			 index + N_AT_ONCE / N_IN_WORD * WORD +
				 (uint64_t)(place / BLOCK_BITS) * BLOCK_BYTES,
			 block, sizeof(block)))
		return 0;
	bit = place % BLOCK_BITS;
	word = bit / 64;
	row = memory_u32_of(block, 0);
	if (word > 0)
		row += memory_u64_of(block, BLOCK_RANKS) >> ((word - 1) * 9) & 0x1ff;
	return row + (uint32_t)__builtin_popcountll(
			     memory_u64_of(block, (int32_t)(BLOCK_WORDS + word * WORD))
			     << (63 - bit % 64));
}

static uint32_t read_line(struct ruby *p, const struct ruby_code *c, uint32_t place)
{
	uint32_t row = c->n_lines == 1 ? 1 : find_row(p, c->index, place), line;

	if (row == 0 || row > c->n_lines)
		return 0;
	line = (uint32_t)memory_u64(
		&p->base.memory, c->lines + (uint64_t)(row - 1) * (uint64_t)rb(p, RB_LINE_BYTES));
	return line <= INT32_MAX ? line : 0;
}

static bool has_place(const struct ruby_code *c, uint64_t pc)
{
	return pc >= c->encoded && (pc - c->encoded) % WORD == 0 &&
	       (pc - c->encoded) / WORD <= c->n_encoded;
}

bool ruby_find_line(struct ruby *p, const struct ruby_code *c, uint64_t pc, uint32_t *ret)
{
	uint64_t place = (pc - c->encoded) / WORD;
	uint64_t key = hash_combine(hash_combine(c->at, place), p->owner);
	struct ruby_line *l = &p->memo->lines[key % RUBY_N_LINES];

	if (!has_place(c, pc))
		return false;
	/* pc is after the instruction. */
	place -= place > 0;
	if (l->code != c->at || l->owner != p->owner || l->identity != c->identity ||
	    l->place != place + 1)
		*l = (struct ruby_line){c->at, c->identity, (uint32_t)place + 1,
					read_line(p, c, (uint32_t)place), p->owner};
	*ret = l->line;
	return true;
}

/* ---- Instruction sequences ---- */

/* A path, or a pair of it and another one. All code of a file has the same one. */
static bool find_path(struct ruby *p, uint64_t at, strid *ret)
{
	struct ruby_path *path = &p->memo->paths[hash_combine(at, p->owner) % RUBY_N_PATHS];
	bool known = at && path->at == at && path->owner == p->owner;
	uint64_t first;
	strid text;

	if (known && trust_has(&path->trust, &p->base.walks)) {
		*ret = path->text;
		return true;
	}
	first = ruby_element(p, at, 0);
	if (!ruby_find_string(p, first ? first : at, true, &text))
		return false;
	if (known && path->text != text)
		trust_end(&path->trust, &p->base.walks);
	if (!known || path->text != text)
		*path = (struct ruby_path){.at = at, .owner = p->owner, .text = text};
	trust_prove(&path->trust, &p->base.walks);
	*ret = text;
	return true;
}

static uint32_t first_line(const struct ruby *p, const uint8_t *body)
{
	uint64_t v = rb_u64(p, body, RB_BODY_FIRST_LINE);

	v = p->tables.int_lines ? v & UINT32_MAX : v >> 1;
	return v <= INT32_MAX ? (uint32_t)v : 0;
}

/* The evaluation jumps to addresses that instructions begin with. */
static void learn_evaluation(struct ruby *p, const struct ruby_code *c)
{
	uint64_t start, end;

	if (p->base.eval.n == 0 &&
	    image_code_range(&p->base.image, memory_u64(&p->base.memory, c->encoded), &start, &end))
		eval_code_find(&p->base.eval, &p->base.image, start, end);
}

/*
 * Code of eval() is named as the code around it. Up to 3.3 its label says so; since 3.4 that is
 * "<compiled>", and Ruby itself asks the parent. 0: it has no label.
 */
static uint64_t find_label(struct ruby *p, uint64_t body_at, const uint8_t *body)
{
	struct memory *m = &p->base.memory;
	uint64_t label = rb_u64(p, body, RB_BODY_LABEL), parent;
	uint32_t type = memory_u32_of(body, rb(p, RB_BODY_TYPE));

	if (rb(p, RB_BODY_PARENT) < 0)
		return label;
	for (int i = 0; i < MAX_EVALUATED && type == EVALUATED; i++) {
		parent = memory_u64(m, body_at + (uint64_t)rb(p, RB_BODY_PARENT));
		if (!parent)
			break;
		body_at = memory_u64(m, parent + (uint64_t)rb(p, RB_CODE_BODY));
		type = (uint32_t)memory_u64(m, body_at + (uint64_t)rb(p, RB_BODY_TYPE));
		label = memory_u64(m, body_at + (uint64_t)rb(p, RB_BODY_LABEL));
	}
	return label;
}

/* Its names; false: it has none. */
static bool name_code(struct ruby *p, const uint8_t *body, struct ruby_code *ret)
{
	return ruby_find_string(p, find_label(p, ret->body, body), false, &ret->label) &&
	       find_path(p, rb_u64(p, body, RB_BODY_PATH), &ret->path);
}

/* Reads the facts that do not change while this code lives; false: it is no code. */
static bool read_body(struct ruby *p, uint64_t at, uint64_t body_at, uint8_t *body,
		      struct ruby_code *ret)
{
	uint64_t h;

	if (!memory_read(&p->base.memory, body_at, body, RUBY_BODY_BYTES))
		return false;
	*ret = (struct ruby_code){
		.at = at,
		.body = body_at,
		.encoded = rb_u64(p, body, RB_BODY_ENCODED),
		.n_encoded = memory_u32_of(body, rb(p, RB_BODY_SIZE)),
		.lines = rb_u64(p, body, RB_BODY_LINES),
		.n_lines = memory_u32_of(body, rb(p, RB_BODY_N_LINES)),
		.index = rb_u64(p, body, RB_BODY_INDEX),
		.start_line = first_line(p, body),
		.owner = p->owner,
	};
	h = hash_combine(hash_combine(ret->encoded, ret->n_encoded),
			 hash_combine(ret->lines, ret->start_line));
	ret->identity = hash_combine(
		h, hash_combine(rb_u64(p, body, RB_BODY_LABEL), rb_u64(p, body, RB_BODY_PATH)));
	return ret->encoded != 0 && ret->n_encoded != 0 && ret->n_encoded <= MAX_ENCODED;
}

static bool read_code(struct ruby *p, uint64_t at, uint8_t *body, struct ruby_code *ret)
{
	uint8_t head[24];

	return at != 0 && at % 8 == 0 && memory_read(&p->base.memory, at, head, sizeof(head)) &&
	       ruby_is_internal(memory_u64_of(head, 0), SEQUENCE) &&
	       read_body(p, at, rb_u64(p, head, RB_CODE_BODY), body, ret);
}

/* The body that it had, which is its own still if it has the instruction at pc. */
static bool read_known(struct ruby *p, const struct ruby_code *c, uint64_t pc, uint8_t *body,
		       struct ruby_code *ret)
{
	return read_body(p, c->at, c->body, body, ret) && ret->identity == c->identity &&
	       has_place(ret, pc);
}

const struct ruby_code *ruby_find_code(struct ruby *p, uint64_t at, uint64_t pc)
{
	struct ruby_code *c = &p->memo->codes[hash_combine(at, p->owner) % RUBY_N_CODES], now;
	bool known = at && c->at == at && c->owner == p->owner, same;
	uint8_t body[RUBY_BODY_BYTES];

	if (known && has_place(c, pc) && trust_has(&c->trust, &p->base.walks))
		return c;
	if ((!known || !read_known(p, c, pc, body, &now)) && !read_code(p, at, body, &now))
		return NULL;
	if (!name_code(p, body, &now))
		return NULL;
	same = known && c->identity == now.identity && c->label == now.label && c->path == now.path;
	now.trust = known ? c->trust : (struct trust){.walk = 0};
	if (!same) {
		p->base.stats.learned++;
		p->base.stats.stale += known;
		trust_end(&now.trust, &p->base.walks);
	}
	trust_prove(&now.trust, &p->base.walks);
	*c = now;
	learn_evaluation(p, c);
	return c;
}
