/* SPDX-License-Identifier: Apache-2.0 */
#include "src/symbolizer/function-rows.h"
#include "util/text.h"

void function_rows_init(struct function_rows *rows)
{
	rows->keys.max = PROFILE_NONE - 1;
}

void function_rows_deinit(struct function_rows *rows)
{
	array_deinit(&rows->keys);
	hash_index_deinit(&rows->index);
}

/* A text too long to be kept ends in a hash of linked, which names the same function. */
static strid put_name(struct profile *p, const char *text, const char *linked)
{
	char clean[4096];
	size_t len = text_shorten(clean, sizeof(clean), text, linked);

	return strtab_put_n(&p->strings, clean, len);
}

strid function_rows_clean(struct profile *p, const char *text)
{
	return put_name(p, text, NULL);
}

static uint32_t add_function(const struct function_rows *rows, struct profile *p,
			     const struct symbol *s, strid file)
{
	struct profile_function f = {.file = file, .start_line = s->start_line};
	_cleanup_free_ char *demangled = NULL;
	const char *name = symbol_name(s);

	if (!name || !*name)
		return PROFILE_NONE;
	demangled = symbol_demangle(name, rows->demangling);
	f.name = put_name(p, demangled ? demangled : name, name);
	f.system_name = demangled ? function_rows_clean(p, name) : f.name;
	f.module_name = s->module_name ? function_rows_clean(p, s->module_name) : STRID_EMPTY;
	f.language = strtab_put(&p->strings, s->language ? s->language : "");
	return profile_add_function(p, &f);
}

uint32_t function_rows_put(struct function_rows *rows, struct profile *p, uint32_t module,
			   const struct symbol *s)
{
	strid file = s->file ? function_rows_clean(p, s->file) : STRID_EMPTY;
	uint64_t hash =
		hash_combine(hash_combine(s->start, module), (uint64_t)file << 1 | s->inlined);
	uint32_t slot = hash_index_first(&rows->index, hash), row;
	struct function_key *key;

	while ((row = hash_index_row(&rows->index, slot)) != HASH_INDEX_NONE) {
		key = &rows->keys.items[row];
		if (key->start == s->start && key->module == module && key->file == file &&
		    key->inlined == s->inlined)
			return key->function;
		slot = hash_index_next(&rows->index, slot);
	}
	row = add_function(rows, p, s, file);
	key = row == PROFILE_NONE ? NULL : array_push(&rows->keys);
	if (key) {
		*key = (struct function_key){s->start, module, row, file, s->inlined};
		if (hash_index_add(&rows->index, hash, rows->keys.n - 1) < 0)
			rows->keys.n--;
	}
	return row;
}

void function_rows_demangle_again(const struct function_rows *rows, struct profile *p)
{
	for (uint32_t i = 0; i < p->functions.n; i++) {
		struct profile_function *f = &p->functions.items[i];
		const char *linked = profile_text(p, f->system_name);
		_cleanup_free_ char *name = symbol_demangle(linked, SYMBOL_DEMANGLE_FULL);
		_cleanup_free_ char *wanted = symbol_demangle(linked, rows->demangling);

		/* What is not mangled has the name that its recorder gave it. */
		if (name)
			f->name = put_name(p, wanted ? wanted : linked, linked);
	}
}

void function_rows_clear(struct function_rows *rows)
{
	array_clear(&rows->keys);
	hash_index_clear(&rows->index);
}
