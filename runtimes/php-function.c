/* SPDX-License-Identifier: Apache-2.0 */
/*
 * At the end of each request functions are freed and their memory is used for others, which often
 * lie where those of the request before did. So what is remembered of one is compared with all that
 * its name came from before it is used (trust.h): its head, and the heads of the strings, which
 * have their hash.
 */
#include "runtimes/php-internal.h"
#include "util/array.h"

enum {
	INTERNAL = 1,	      /* kinds of functions: written in C, */
	USER = 2,	      /* in PHP, */
	EVAL = 4,	      /* a text that is evaluated */
	MAX_CHARACTERS = 512, /* of a name, or of a path: its end */
	MAX_OPCODES = 1 << 24,
	INCLUDE_OR_EVAL = 73,
};
#define MAX_STRING (UINT64_C(1) << 40)

/* ---- Strings ---- */

static bool read_string(struct php *p, const struct php_string *s, bool its_end, strid *ret)
{
	uint64_t data = s->at + (uint64_t)p->tables.value[PHP_STRING_BYTES], n = s->length;
	char text[MAX_CHARACTERS + 1] = "";

	if (n > MAX_CHARACTERS) {
		data += its_end ? n - MAX_CHARACTERS : 0;
		n = MAX_CHARACTERS;
	}
	if (!memory_read(&p->base.memory, data, text, n))
		return false;
	/* Behind a 0 the names of classes without one have where they are. */
	*ret = strtab_put_n(&p->memo->base.texts, text, strlen(text));
	return true;
}

/* its_end: of a long one. false: it is no string. */
static bool find_string(struct php *p, uint64_t at, bool its_end, strid *ret)
{
	uint64_t key = hash_combine(hash_combine(at, its_end), p->owner);
	struct php_string *s = &p->memo->strings[key % PHP_N_TEXTS];
	bool known = s->at == at && s->owner == p->owner;
	uint8_t head[PHP_STRING_HEAD + 8];
	struct php_string now = {.at = at, .owner = p->owner, .walk = p->base.walks.walk};

	if (at == 0 || at % 8 != 0)
		return false;
	if (!known || s->walk != p->base.walks.walk) {
		if (!memory_read(&p->base.memory, at, head, sizeof(head)))
			return false;
		now.hash = memory_u64_of(head, p->tables.value[PHP_STRING_HASH]);
		now.length = memory_u64_of(head, p->tables.value[PHP_STRING_LENGTH]);
		now.first = memory_u64_of(head, p->tables.value[PHP_STRING_BYTES]);
		now.text = s->text;
		/* Without a hash, as some paths are, only all characters tell it from others. */
		if (now.length > MAX_STRING ||
		    ((!known || s->hash != now.hash || s->length != now.length ||
		      s->first != now.first || now.hash == 0) &&
		     !read_string(p, &now, its_end, &now.text)))
			return false;
		*s = now;
	}
	*ret = s->text;
	return true;
}

/* ---- Functions ---- */

static uint64_t field(const struct php *p, const uint8_t *head, enum php_value v)
{
	return memory_u64_of(head, p->tables.value[v]);
}

/* The name of the class at that address. */
static bool find_class(struct php *p, uint64_t at, strid *ret)
{
	return at % 8 == 0 &&
	       find_string(
		       p,
		       memory_u64(&p->base.memory, at + (uint64_t)p->tables.value[PHP_CLASS_NAME]),
		       false, ret);
}

static strid put_name(struct php *p, strid class, strid name)
{
	char text[2 * MAX_CHARACTERS + 4];

	if (class == STRID_EMPTY)
		return name;
	(void)snprintf(text, sizeof(text), "%s::%s", strtab_get(&p->memo->base.texts, class),
		       strtab_get(&p->memo->base.texts, name));
	return strtab_put(&p->memo->base.texts, text);
}

/* Where its instructions are, and its file. */
static bool read_code(struct php *p, const uint8_t *head, struct php_function *ret)
{
	ret->opcodes = field(p, head, PHP_FUNCTION_OPCODES);
	ret->n_opcodes = memory_u32_of(head, p->tables.value[PHP_FUNCTION_N_OPCODES]);
	ret->start_line = memory_u32_of(head, p->tables.value[PHP_FUNCTION_FIRST_LINE]);
	return ret->opcodes != 0 && ret->opcodes % 8 == 0 && ret->n_opcodes <= MAX_OPCODES &&
	       ret->start_line <= INT32_MAX &&
	       find_string(p, field(p, head, PHP_FUNCTION_FILE), true, &ret->file);
}

/* As it is now, with its own name; false: there is none. */
static bool read_function(struct php *p, uint64_t at, struct php_function *ret, strid *ret_class)
{
	struct php_function f = {.at = at, .owner = p->owner};
	uint8_t head[PHP_FUNCTION_BYTES], type;
	uint64_t name_at, class_at;
	strid class = STRID_EMPTY;

	if (at == 0 || at % 8 != 0 || !memory_read(&p->base.memory, at, head, sizeof(head)))
		return false;
	type = head[p->tables.value[PHP_FUNCTION_TYPE]];
	name_at = field(p, head, PHP_FUNCTION_NAME);
	class_at = field(p, head, PHP_FUNCTION_CLASS);
	if ((type != INTERNAL && type != USER && type != EVAL) ||
	    (name_at && !find_string(p, name_at, false, &f.name)) ||
	    (name_at && class_at && !find_class(p, class_at, &class)) ||
	    (type != INTERNAL && !read_code(p, head, &f)))
		return false;
	f.is_user = type != INTERNAL;
	f.is_code = f.is_user && !name_at;
	f.identity = hash_combine(hash_combine(f.opcodes, f.n_opcodes),
				  hash_combine(f.start_line, f.file));
	f.identity = hash_combine(f.identity, hash_combine(hash_combine(f.name, class), type));
	*ret_class = class;
	*ret = f;
	return true;
}

const struct php_function *php_find_function(struct php *p, uint64_t at, uint64_t place)
{
	uint64_t key = hash_combine(at, p->owner);
	struct php_function *f = &p->memo->functions[key % PHP_N_FUNCTIONS], now;
	bool known = at && f->at == at && f->owner == p->owner, same;
	strid class;

	/* The function that is called for a missing method belongs to the process. */
	if (known && !php_is_of_process(p, at) &&
	    (!f->is_user || !place || php_has_opcode(f, place)) &&
	    trust_has(&f->trust, &p->base.walks))
		return f;
	if (!read_function(p, at, &now, &class))
		return NULL;
	same = known && f->identity == now.identity;
	now.name = same ? f->name : put_name(p, class, now.name);
	now.trust = known ? f->trust : now.trust;
	if (!same) {
		p->base.stats.learned++;
		p->base.stats.stale += known;
		trust_end(&now.trust, &p->base.walks);
	}
	trust_prove(&now.trust, &p->base.walks);
	*f = now;
	return f;
}

/* ---- Instructions ---- */

bool php_has_opcode(const struct php_function *f, uint64_t at)
{
	return at >= f->opcodes && (at - f->opcodes) % PHP_OPCODE_BYTES == 0 &&
	       (at - f->opcodes) / PHP_OPCODE_BYTES < f->n_opcodes;
}

bool php_find_line(struct php *p, const struct php_function *f, uint64_t at, struct php_line *ret)
{
	struct php_line *l = &p->memo->lines[hash_combine(at, p->owner) % PHP_N_LINES];
	uint8_t bytes[PHP_OPCODE_BYTES];

	if (l->at != at || l->owner != p->owner || l->identity != f->identity) {
		if (!memory_read(&p->base.memory, at, bytes, sizeof(bytes)))
			return false;
		*l = (struct php_line){
			.at = at,
			.owner = p->owner,
			.identity = f->identity,
			.line = memory_u32_of(bytes, p->tables.value[PHP_OPCODE_LINE]),
			.kind = memory_u32_of(bytes, p->tables.value[PHP_OPCODE_KIND]),
			.opcode = bytes[p->tables.value[PHP_OPCODE_NUMBER]],
		};
		if (l->line > INT32_MAX)
			l->line = 0;
	}
	*ret = *l;
	return true;
}

strid php_code_name(struct php *p, const struct php_line *caller)
{
	static const struct {
		uint32_t kind;
		const char *name;
	} names[] = {
		{1, "eval"},	{2, "include"},	      {4, "include_once"},
		{8, "require"}, {16, "require_once"},
	};

	for (size_t i = 0; caller->opcode == INCLUDE_OR_EVAL && i < sizeof(names) / sizeof(*names);
	     i++) {
		if (caller->kind == names[i].kind)
			return strtab_put(&p->memo->base.texts, names[i].name);
	}
	return strtab_put(&p->memo->base.texts, "{main}");
}
