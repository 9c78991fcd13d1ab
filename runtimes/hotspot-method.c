/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Method* -> names and lines. A Method points to its ConstMethod, that to its ConstantPool, and
 * that to its class, whose own ConstantPool points back. No other bytes do that, so we do not
 * mistake the memory of a freed method for one.
 *
 * Classes are unloaded, and of others of the same shape all of that lies where it was before. So we
 * use remembered names only if the Method, the whole head of its ConstMethod and the texts of the
 * names are still the same. The texts are read again in few walks once they were the same in many
 * (trust.h).
 */
#include <stdio.h>
#include <stdlib.h>

#include "runtimes/hotspot-internal.h"
#include "util/hash.h"

enum {
	MAX_SYMBOL = 1024, /* longer names are cut */
	MAX_LINES_BYTES = 8192,
	TAG_UTF8 = 1, /* JVM_CONSTANT_Utf8 */
};

static uint32_t u16_at(const uint8_t *bytes, int64_t at)
{
	uint16_t v;

	memcpy(&v, bytes + at, sizeof(v));
	return v;
}

static uint32_t u32_at(const uint8_t *bytes, int64_t at)
{
	uint32_t v;

	memcpy(&v, bytes + at, sizeof(v));
	return v;
}

static uint64_t u64_at(const uint8_t *bytes, int64_t at)
{
	uint64_t v;

	memcpy(&v, bytes + at, sizeof(v));
	return v;
}

static bool read_heads(struct hotspot *h, uint64_t at, struct method *ret)
{
	uint8_t bytes[HOTSPOT_METHOD_BYTES];
	int64_t n = hs(h, HS_METHOD_CONST) + 8, n_head = hs(h, HS_CONST_BYTES);

	if (!at || at % 8 || n > HOTSPOT_METHOD_BYTES || n_head > HOTSPOT_METHOD_BYTES ||
	    n_head < 16 || hs(h, HS_CONST_CONSTANTS) + 8 > n_head ||
	    hs(h, HS_CONST_CODE_SIZE) + 2 > n_head || hs(h, HS_CONST_NAME_INDEX) + 2 > n_head ||
	    hs(h, HS_CONST_FLAGS) + 4 > n_head)
		return false;
	ret->at = at;
	if (!memory_read(&h->memory, at, bytes, (size_t)n))
		return false;
	ret->const_method = u64_at(bytes, hs(h, HS_METHOD_CONST));
	if (!ret->const_method || ret->const_method % 8 ||
	    !memory_read(&h->memory, ret->const_method, ret->head, (size_t)n_head))
		return false;
	ret->constants = u64_at(ret->head, hs(h, HS_CONST_CONSTANTS));
	ret->code_size = u16_at(ret->head, hs(h, HS_CONST_CODE_SIZE));
	ret->name_index = u16_at(ret->head, hs(h, HS_CONST_NAME_INDEX));
	/* The vtable and the pointers; counters and compiled code of a method change. */
	ret->heads = hash_bytes(ret->head, (size_t)n_head,
				hash_combine(u64_at(bytes, 0), ret->const_method));
	return true;
}

/*
 * The Method and its ConstMethod, which are not proven by that. NULL: they cannot be read. A walk
 * reads them once: it looks at a frame of the interpreter several times, and methods call
 * themselves.
 */
static const struct method *heads_of(struct hotspot *h, uint64_t at)
{
	struct method *m = &h->memo->methods[hash_u64(at) % HOTSPOT_N_METHODS];

	if (m->at == at && m->walk == h->walk)
		return m;
	m->walk = 0;
	if (!read_heads(h, at, m))
		return NULL;
	m->walk = h->walk;
	return m;
}

/*
 * Its class has a pool that points back: mostly the same. Methods that HotSpot makes for method
 * handles have a small one of their own, and those of a class that was redefined their old one.
 */
static bool prove(struct hotspot *h, const struct method *m, uint64_t *ret_holder)
{
	uint64_t back, holder, holder_at = (uint64_t)hs(h, HS_POOL_HOLDER);

	if (!m->constants || m->constants % 8)
		return false;
	holder = memory_u64(&h->memory, m->constants + holder_at);
	if (!holder || holder % 8)
		return false;
	*ret_holder = holder;
	back = memory_u64(&h->memory, holder + (uint64_t)hs(h, HS_CLASS_CONSTANTS));
	return back == m->constants ||
	       (back && back % 8 == 0 && memory_u64(&h->memory, back + holder_at) == holder);
}

/* ---- Texts ---- */

/* A Symbol's text, cut to fit; false: it is none. */
static bool read_symbol(struct hotspot *h, uint64_t at, char *ret, size_t size)
{
	uint8_t head[16];
	int64_t body = hs(h, HS_SYMBOL_BODY);
	size_t n;

	if (!at || at % 8 || body > 16 || hs(h, HS_SYMBOL_LENGTH) + 2 > body ||
	    !memory_read(&h->memory, at, head, (size_t)body))
		return false;
	n = u16_at(head, hs(h, HS_SYMBOL_LENGTH));
	if (n >= size)
		n = size - 1;
	ret[n] = '\0';
	return n > 0 && memory_read(&h->memory, at + (uint64_t)body, ret, n) && !memchr(ret, 0, n);
}

/* The Symbol of a method's name, if it has one. */
static uint64_t name_symbol(struct hotspot *h, const struct method *m)
{
	return memory_u64(&h->memory, m->constants + (uint64_t)hs(h, HS_POOL_BYTES) +
					      (uint64_t)m->name_index * 8);
}

static uint64_t class_symbol(struct hotspot *h, uint64_t holder)
{
	return memory_u64(&h->memory, holder + (uint64_t)hs(h, HS_CLASS_NAME));
}

/* Entry `index` of the constant pool, which must be a text. */
static bool read_constant(struct hotspot *h, const struct method *m, uint32_t index, char *ret,
			  size_t size)
{
	uint64_t tags = memory_u64(&h->memory, m->constants + (uint64_t)hs(h, HS_POOL_TAGS));
	uint32_t length;
	uint8_t tag;

	if (index == 0 ||
	    !memory_read(&h->memory, m->constants + (uint64_t)hs(h, HS_POOL_LENGTH), &length,
			 sizeof(length)) ||
	    index >= length ||
	    !memory_read(&h->memory, tags + (uint64_t)hs(h, HS_BYTES_DATA) + index, &tag, 1) ||
	    tag != TAG_UTF8)
		return false;
	return read_symbol(h,
			   memory_u64(&h->memory, m->constants + (uint64_t)hs(h, HS_POOL_BYTES) +
							  (uint64_t)index * 8),
			   ret, size);
}

/* Is text a number, as HotSpot appends it to the name of a hidden class: "/0x000..", "+0x", "/123"?
 */
static bool is_hidden_suffix(const char *text)
{
	if (*text == '/' && text[1] && strspn(text + 1, "0123456789") == strlen(text + 1))
		return true;
	return (*text == '/' || *text == '+') && strncmp(text + 1, "0x", 2) == 0 &&
	       strspn(text + 3, "0123456789abcdef") == strlen(text + 3) && text[3];
}

/* "java/util/Map$1" -> "java.util.Map$1", without what differs from run to run. */
static void make_class_name(char *name)
{
	for (char *c = name; *c; c++) {
		if (is_hidden_suffix(c)) {
			*c = '\0';
			return;
		}
		if (*c == '/')
			*c = '.';
	}
}

static bool put_names(struct hotspot *h, const struct method *m, uint64_t holder,
		      struct method_names *ret)
{
	char name[MAX_SYMBOL + 1], class[MAX_SYMBOL + 1], text[2 * MAX_SYMBOL + 2];
	uint32_t source = 0;
	uint8_t bytes[2];

	if (!read_symbol(h, class_symbol(h, holder), class, sizeof(class)) ||
	    !read_constant(h, m, m->name_index, name, sizeof(name)))
		return false;
	make_class_name(class);
	(void)snprintf(text, sizeof(text), "%s.%s", class, name);
	ret->function = strtab_put(&h->memo->base.texts, text);
	if (hs_known(h, HS_POOL_SOURCE_FILE_INDEX) &&
	    memory_read(&h->memory, m->constants + (uint64_t)hs(h, HS_POOL_SOURCE_FILE_INDEX),
			bytes, 2))
		source = u16_at(bytes, 0);
	else if (hs_known(h, HS_CLASS_SOURCE_FILE_INDEX) &&
		 memory_read(&h->memory, holder + (uint64_t)hs(h, HS_CLASS_SOURCE_FILE_INDEX),
			     bytes, 2))
		source = u16_at(bytes, 0);
	if (source && read_constant(h, m, source, name, sizeof(name)))
		ret->file = strtab_put(&h->memo->base.texts, name);
	return ret->function != STRID_EMPTY;
}

/* ---- Lines ---- */

/*
 * UNSIGNED5 (compressedStream.cpp, unsigned5.hpp): up to five bytes of six bits, of which those of
 * 192 and more are not the last. Since JDK 20 no byte is 0.
 */
bool hotspot_read_number(const struct hotspot *h, const uint8_t *bytes, size_t n, size_t *at,
			 uint32_t *ret)
{
	uint32_t excluded = h->major >= 20 ? 1 : 0, sum = 0;

	for (unsigned int i = 0; i < 5; i++) {
		uint32_t b;

		if (*at >= n || bytes[*at] < excluded)
			return false;
		b = bytes[(*at)++];
		sum += (b - excluded) << (6 * i);
		if (b < 192)
			break;
	}
	*ret = sum;
	return true;
}

static int32_t signed_number(uint32_t v)
{
	return (int32_t)(v >> 1) ^ -(int32_t)(v & 1);
}

/* The compressed table after the bytecodes: steps in bci and line. */
static void find_line(struct hotspot *h, const struct method *m, int32_t bci,
		      struct stepped_frame *ret)
{
	uint8_t bytes[MAX_LINES_BYTES];
	uint64_t table = m->const_method + (uint64_t)hs(h, HS_CONST_BYTES) + m->code_size;
	uint32_t flags = u32_at(m->head, hs(h, HS_CONST_FLAGS)), number;
	int64_t at_bci = 0, line = 0;
	size_t n = 0, at = 0;

	if (!(flags & (uint32_t)hs(h, HS_HAS_LINES)))
		return;
	/* It says nowhere how long it is. */
	while (n < sizeof(bytes) && memory_read(&h->memory, table + n, bytes + n, 256)) {
		n += 256;
		if (memchr(bytes + n - 256, 0, 256))
			break;
	}
	while (at < n && bytes[at] != 0) {
		uint8_t b = bytes[at++];

		if (b != 0xff) {
			at_bci += b >> 3;
			line += b & 7;
		} else {
			if (!hotspot_read_number(h, bytes, n, &at, &number))
				return;
			at_bci += signed_number(number);
			if (!hotspot_read_number(h, bytes, n, &at, &number))
				return;
			line += signed_number(number);
		}
		if (at_bci < 0 || at_bci > UINT16_MAX || line < 0 || line > UINT16_MAX)
			return;
		if (ret->start_line == 0 || line < ret->start_line)
			ret->start_line = (uint32_t)line;
		if (bci >= 0 && at_bci <= bci)
			ret->line = (uint32_t)line;
		else if (bci >= 0)
			return;
	}
}

/* ---- What is remembered ---- */

/* A hash of the texts of class and method; 0: they cannot be read. */
static uint64_t hash_names(struct hotspot *h, const struct method *m)
{
	uint64_t holder = 0, hash;
	char text[MAX_SYMBOL + 1];

	if (m->constants && m->constants % 8 == 0)
		holder = memory_u64(&h->memory, m->constants + (uint64_t)hs(h, HS_POOL_HOLDER));
	if (!holder || holder % 8 || !read_symbol(h, class_symbol(h, holder), text, sizeof(text)))
		return 0;
	hash = hash_bytes(text, strlen(text), holder);
	if (!read_symbol(h, name_symbol(h, m), text, sizeof(text)))
		return 0;
	hash = hash_bytes(text, strlen(text), hash);
	return hash ? hash : 1;
}

/* Its names, proven once in each walk; NULL: it is no method. Valid until the next call. */
static const struct method_names *find_names(struct hotspot *h, const struct method *m)
{
	uint64_t key = hash_combine(m->at, h->owner), holder;
	struct method_names *n = &h->memo->names[key % HOTSPOT_N_NAMES], now;
	bool its = n->owner == h->owner && n->method == m->at;

	if (its && n->heads == m->heads && trust_has(&n->trust, &h->walks))
		return n;
	now = (struct method_names){
		.method = m->at, .heads = m->heads, .texts = hash_names(h, m), .owner = h->owner};
	if (!now.texts)
		return NULL;
	if (!its || n->heads != now.heads || n->texts != now.texts) {
		if (!prove(h, m, &holder) || !put_names(h, m, holder, &now))
			return NULL;
		h->stats.learned++;
		h->stats.stale += its;
		if (its)
			trust_end(&n->trust, &h->walks);
		*n = now;
	}
	trust_prove(&n->trust, &h->walks);
	return n;
}

bool hotspot_method_frame(struct hotspot *h, uint64_t at, int32_t bci, struct stepped_frame *ret)
{
	const struct method *m = heads_of(h, at);
	const struct method_names *n = m ? find_names(h, m) : NULL;
	uint64_t key = hash_combine(hash_combine(at, (uint32_t)bci), h->owner), identity;
	struct spot *s = &h->memo->spots[key % HOTSPOT_N_SPOTS];

	if (!n)
		return false;
	identity = hash_combine(n->heads, n->texts);
	if (s->owner != h->owner || s->method != at || s->bci != bci || s->identity != identity) {
		struct stepped_frame frame = {.function = n->function, .file = n->file};

		if (bci >= (int32_t)m->code_size)
			return false;
		h->stats.learned++;
		find_line(h, m, bci, &frame);
		*s = (struct spot){.method = at,
				   .identity = identity,
				   .owner = h->owner,
				   .bci = bci,
				   .frame = frame};
	}
	*ret = s->frame;
	return true;
}

int32_t hotspot_method_bci(struct hotspot *h, uint64_t at, uint64_t bcp)
{
	const struct method *m = heads_of(h, at);
	uint64_t bci;

	if (!m)
		return -1;
	bci = bcp - m->const_method - (uint64_t)hs(h, HS_CONST_BYTES);
	return bci < m->code_size ? (int32_t)bci : -1;
}
