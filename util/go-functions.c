/* SPDX-License-Identifier: Apache-2.0 */
#include "util/go-functions.h"

#include "util/bisect.h"
#include "util/cursor.h"

static struct cursor bytes_at(const struct go_functions *t, uint64_t offset)
{
	if (offset >= t->n)
		return cursor_make(NULL, 0);
	return cursor_make(t->data + offset, t->n - (size_t)offset);
}

bool go_functions_read(struct go_functions *ret, const uint8_t *data, size_t n)
{
	struct go_functions t = {.data = data, .n = n};
	struct cursor c = cursor_make(data, n);
	uint64_t n_funcs;

	t.magic = cursor_u32(&c);
	if ((t.magic != GO_MAGIC_118 && t.magic != GO_MAGIC_120) || cursor_u16(&c) != 0)
		return false;
	t.quantum = cursor_u8(&c);
	if (cursor_u8(&c) != 8)
		return false;
	n_funcs = cursor_u64(&c);
	(void)cursor_u64(&c); /* number of files */
	t.text = cursor_u64(&c);
	t.names = cursor_u64(&c);
	t.units = cursor_u64(&c);
	t.files = cursor_u64(&c);
	t.programs = cursor_u64(&c);
	t.funcs = cursor_u64(&c);
	if (!cursor_ok(&c) || t.names >= n || t.units >= n || t.files >= n || t.programs >= n ||
	    t.funcs >= n || n_funcs == 0 || n_funcs > UINT32_MAX || n_funcs >= (n - t.funcs) / 8)
		return false;
	t.n_funcs = (uint32_t)n_funcs;
	*ret = t;
	return true;
}

uint32_t go_functions_u32(const struct go_functions *t, uint64_t offset)
{
	struct cursor c = bytes_at(t, offset);

	return cursor_u32(&c);
}

const char *go_functions_string(const struct go_functions *t, uint64_t offset)
{
	struct cursor c = bytes_at(t, offset);
	const char *s = cursor_string(&c);

	return s ? s : "";
}

uint32_t go_functions_begin(const struct go_functions *t, uint32_t row)
{
	return go_functions_u32(t, t->funcs + (uint64_t)row * 8);
}

uint32_t go_functions_row(const struct go_functions *t, uint64_t offset)
{
	uint32_t n = bisect(t->n_funcs, i, go_functions_begin(t, i) <= offset);

	return n == 0 ? t->n_funcs : n - 1;
}

bool go_functions_find(const struct go_functions *t, uint64_t vaddr, struct go_function *ret)
{
	uint64_t offset = vaddr - t->text, at;
	struct go_function f = {0};
	struct cursor c;
	uint32_t row, entry, end;

	if (vaddr < t->text || offset > UINT32_MAX)
		return false;
	row = go_functions_row(t, offset);
	if (row == t->n_funcs)
		return false;
	entry = go_functions_begin(t, row);
	end = go_functions_begin(t, row + 1);
	at = t->funcs + go_functions_u32(t, t->funcs + (uint64_t)row * 8 + 4);
	c = bytes_at(t, at);
	if (cursor_u32(&c) != entry || offset >= end)
		return false;
	f.start = t->text + entry;
	f.end = t->text + end;
	f.name = cursor_u32(&c);
	(void)cursor_take(&c, 2 * 4); /* size of arguments, deferreturn */
	f.sp_program = cursor_u32(&c);
	f.file_program = cursor_u32(&c);
	f.line_program = cursor_u32(&c);
	f.n_pcdata = cursor_u32(&c);
	f.unit = cursor_u32(&c);
	f.start_line = t->magic == GO_MAGIC_120 ? cursor_u32(&c) : 0;
	(void)cursor_u8(&c); /* function ID: which function of the runtime it is */
	f.flags = cursor_u8(&c);
	(void)cursor_u8(&c); /* padding */
	f.n_funcdata = cursor_u8(&c);
	if (!cursor_ok(&c))
		return false;
	f.arrays = at + (t->magic == GO_MAGIC_120 ? 44 : 40);
	*ret = f;
	return true;
}

static bool read_varint(struct cursor *c, uint32_t *ret)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 35; shift += 7) {
		uint8_t byte = cursor_u8(c);

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = (uint32_t)v;
			return cursor_ok(c);
		}
	}
	return false;
}

bool go_functions_run(const struct go_functions *t, const struct go_function *f, uint32_t program,
		      uint64_t pc, uint32_t max_steps, struct go_value *ret)
{
	struct cursor c = bytes_at(t, t->programs + program);
	uint64_t start, at = f->start;
	uint32_t value = UINT32_MAX, change, advance; /* starts at -1 */

	if (program == 0)
		return false;
	for (uint32_t i = 0; i < max_steps; i++) {
		if (!read_varint(&c, &change) || (change == 0 && i > 0) ||
		    !read_varint(&c, &advance))
			return false;
		value += change & 1 ? ~(change >> 1) : change >> 1;
		start = at;
		at += (uint64_t)advance * t->quantum;
		if (pc < at) {
			*ret = (struct go_value){(int32_t)value, start, at < f->end ? at : f->end};
			return true;
		}
	}
	return false;
}
