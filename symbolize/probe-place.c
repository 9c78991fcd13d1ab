/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function is searched in .symtab and .dynsym of the file, in .gnu_debugdata, and if none of them
 * has the name, in the separate debug file, which has the same addresses.
 *
 * A marker's note has three addresses from link time: of the marker, of .stapsdt.base, and of the
 * semaphore. prelink moves the file without updating them; the current address of .stapsdt.base
 * shows by how much.
 */
#include "symbolize/probe-place.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "symbolize/debug-file.h"
#include "symbolize/elf-image.h"
#include "util/array.h"
#include "util/cursor.h"
#include "util/notes.h"
#include "util/text.h"

#define MAX_TABLE_BYTES (UINT64_C(512) << 20)
#define MAX_MINI_BYTES	(UINT64_C(256) << 20)
#define QUIET_BYTES	(UINT64_C(64) << 20) /* of a table that nobody has asked for */
#define QUIET_SUFFIX	64		     /* of a name: "@@VERSION" */
#define MAX_NAMES	(1u << 16)	     /* searched for a similar name */
#define MAX_FOUND	8		     /* places of a name in a message */
#define MAX_WHAT	4096
#define NOTE_STAPSDT	3

/* ---- Functions ---- */

struct found {
	uint64_t address;
	uint32_t type;	 /* STT_ */
	bool is_default; /* the default version of the name, which new programs get */
};

struct place_search {
	const struct elf_image *image; /* the file itself */
	const char *name;
	uint64_t max_bytes; /* of a table */
	size_t max_name;    /* longer names are others */
	uint64_t offset;    /* from the start of the function */
	bool mangled;	    /* names are compared as they are linked */
	struct found found[MAX_FOUND];
	uint32_t n_found, n_more;
	bool has_data;	   /* something else is called so */
	bool is_elsewhere; /* another file has it */
	bool has_symtab;
	ARRAY(char *) names; /* of functions, for a hint */
};

static bool same_name(const struct place_search *s, const char *name, size_t n)
{
	_cleanup_free_ char *linked = NULL, *full = NULL, *simple = NULL;
	size_t n_given = strlen(s->name);

	if (n == n_given && memcmp(name, s->name, n) == 0)
		return true;
	if (s->mangled)
		return false;
	linked = strndup(name, n);
	full = linked ? symbol_demangle(linked, SYMBOL_DEMANGLE_FULL) : NULL;
	if (!full)
		return false;
	if (strcmp(full, s->name) == 0)
		return true;
	simple = symbol_demangle(linked, SYMBOL_DEMANGLE_SIMPLE);
	/* Of full names the part before the parameters, too. */
	return (simple && strcmp(simple, s->name) == 0) ||
	       (strncmp(full, s->name, n_given) == 0 && full[n_given] == '(');
}

static void keep_found(struct place_search *s, uint64_t address, uint32_t type, bool is_default)
{
	for (uint32_t i = 0; i < s->n_found; i++) {
		if (s->found[i].address != address)
			continue;
		s->found[i].is_default |= is_default;
		return;
	}
	if (s->n_found == MAX_FOUND)
		s->n_more++;
	else
		s->found[s->n_found++] = (struct found){address, type, is_default};
}

/* hidden: an older version of the name. */
static void look_at(struct place_search *s, const Elf64_Sym *symbol, const char *name, bool hidden)
{
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);
	size_t n = strcspn(name, "@");
	/* foo@@V2 is what foo means today. */
	bool is_default = !hidden && (!name[n] || name[n + 1] == '@');
	bool is_function = type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
	size_t n_wanted = strlen(s->name), most = n_wanted / 3 + 1;
	uint64_t offset;
	char **copy;

	if (!*name || (type != STT_OBJECT && type != STT_TLS && !is_function))
		return;
	if (strchr(s->name, '@') ? strcmp(name, s->name) == 0 : same_name(s, name, n)) {
		s->is_elsewhere |= symbol->st_shndx == SHN_UNDEF;
		s->has_data |= symbol->st_shndx != SHN_UNDEF && !is_function;
		if (is_function && symbol->st_shndx != SHN_UNDEF &&
		    elf_image_offset(s->image, symbol->st_value, PF_X, &offset))
			keep_found(s, symbol->st_value, type, is_default);
	}
	/* What is nearly right is nearly as long. */
	if (type == STT_FUNC && symbol->st_shndx != SHN_UNDEF && n + most >= n_wanted &&
	    n <= n_wanted + most && (copy = array_push(&s->names)) && !(*copy = strndup(name, n)))
		s->names.n--;
}

/* Which symbols of .dynsym are older versions. */
static void read_versions(const struct elf_image *im, struct elf_bytes *ret)
{
	const struct elf_section *s = elf_image_find_type(im, SHT_GNU_versym);

	if (s)
		(void)elf_image_bytes(im, s, MAX_TABLE_BYTES, ret);
}

static bool is_hidden(const struct elf_bytes *versions, size_t i)
{
	uint16_t v;

	if (!versions->data || versions->compressed || (i + 1) * sizeof(v) > versions->n)
		return false;
	memcpy(&v, versions->data + i * sizeof(v), sizeof(v));
	return v & 0x8000;
}

static int open_table(const struct elf_image *im, uint32_t type, uint64_t max_bytes,
		      struct elf_bytes *symbols, struct elf_bytes *names)
{
	const struct elf_section *s = elf_image_find_type(im, type), *strings;
	struct elf_section dynamic[2];
	int r;

	if (s && s->link < im->n_sections) {
		strings = &im->sections[s->link];
	} else if (im->n_sections == 0 && type == SHT_DYNSYM &&
		   elf_dynamic_symbols(im, &dynamic[0], &dynamic[1])) {
		s = &dynamic[0];
		strings = &dynamic[1];
	} else {
		return -ENOENT;
	}
	r = elf_image_bytes(im, s, max_bytes, symbols);
	if (r == 0 && symbols->compressed)
		r = elf_bytes_inflate(symbols, im->is64, max_bytes);
	if (r == 0)
		r = elf_image_bytes(im, strings, max_bytes, names);
	if (r == 0 && names->compressed)
		r = elf_bytes_inflate(names, im->is64, max_bytes);
	return r;
}

/* true: there is such a table. */
static bool search_table(struct place_search *s, const struct elf_image *im, uint32_t type)
{
	struct elf_bytes symbols = {0}, names = {0}, versions = {0};
	size_t size = im->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	int r = open_table(im, type, s->max_bytes, &symbols, &names);

	if (r == 0 && type == SHT_DYNSYM)
		read_versions(im, &versions);
	for (size_t i = 1; r == 0 && i < symbols.n / size; i++) {
		Elf64_Sym symbol = elf_symbol(symbols.data + i * size, im->is64);
		const char *name = (const char *)names.data + symbol.st_name;
		size_t left = symbol.st_name < names.n ? names.n - symbol.st_name : 0;

		if (left > s->max_name)
			left = s->max_name;
		if (left && memchr(name, 0, left))
			look_at(s, &symbol, name, is_hidden(&versions, i));
	}
	elf_bytes_release(&symbols);
	elf_bytes_release(&names);
	elf_bytes_release(&versions);
	return r == 0;
}

/* The symbols of .gnu_debugdata. */
static void search_mini(struct place_search *s, const struct elf_image *im)
{
	const struct elf_section *section = elf_image_find(im, ".gnu_debugdata");
	struct elf_image inside = ELF_IMAGE_INIT;
	struct elf_bytes b = {0};

	uint64_t max_bytes = s->max_bytes < MAX_MINI_BYTES ? s->max_bytes : MAX_MINI_BYTES;

	if (!section || elf_image_bytes(im, section, max_bytes, &b) < 0)
		return;
	if (elf_bytes_unxz(&b, max_bytes) == 0 &&
	    elf_image_open_memory(&inside, b.data, b.n) == 0) {
		(void)search_table(s, &inside, SHT_SYMTAB);
		elf_image_close(&inside);
	}
	elf_bytes_release(&b);
}

static void search_debug_file(struct place_search *s, symbol_open_debug_fn open_debug, void *ctx)
{
	struct elf_image debug = ELF_IMAGE_INIT;
	struct debug_link link;

	if (!open_debug)
		return;
	debug_link_read(&link, s->image);
	if (debug_file_open(&link, s->image, open_debug, ctx, &debug) != 0)
		return;
	s->has_symtab |= search_table(s, &debug, SHT_SYMTAB);
	(void)close_fd(debug.fd);
	elf_image_close(&debug);
}

static void search_all(struct place_search *s, symbol_open_debug_fn open_debug, void *ctx)
{
	s->has_symtab |= search_table(s, s->image, SHT_SYMTAB);
	(void)search_table(s, s->image, SHT_DYNSYM);
	if (s->n_found == 0)
		search_mini(s, s->image);
	if (s->n_found == 0 && !s->has_symtab)
		search_debug_file(s, open_debug, ctx);
}

/* Of versions of one name the default; else all. */
static void prefer_default(struct place_search *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_found; i++)
		n += s->found[i].is_default;
	for (uint32_t i = 0; n == 1 && i < s->n_found; i++) {
		if (s->found[i].is_default)
			s->found[0] = s->found[i];
	}
	if (n == 1) {
		s->n_found = 1;
		s->n_more = 0;
	}
}

static void explain_missing(const struct place_search *s, char *error, size_t n_error)
{
	const char *near = NULL;

	if (s->names.n)
		near = text_nearest(s->name, (const char *const *)s->names.items, s->names.n);
	if (s->has_data)
		(void)snprintf(error, n_error, "%s is data there, not a function", s->name);
	else if (s->is_elsewhere)
		(void)snprintf(error, n_error,
			       "it calls %s, which another file has: name that library (ldd "
			       "lists them)",
			       s->name);
	else if (near)
		(void)snprintf(error, n_error,
			       "it has no function %s (did you mean %s?); one that the compiler "
			       "inlined everywhere has no place of its own",
			       s->name, near);
	else if (!s->has_symtab)
		(void)snprintf(error, n_error,
			       "it has no function %s among those it exports, and is stripped of "
			       "the others: install its debug symbols, or name an exported one",
			       s->name);
	else
		(void)snprintf(error, n_error,
			       "it has no function %s; nm FILE lists them; one that the compiler "
			       "inlined everywhere has no place of its own",
			       s->name);
}

static void explain_several(const struct place_search *s, char *error, size_t n_error)
{
	size_t n = (size_t)snprintf(error, n_error,
				    "%u functions are called %s: name one by its address,",
				    s->n_found + s->n_more, s->name);

	for (uint32_t i = 0; i < s->n_found && n < n_error; i++)
		n += (size_t)snprintf(error + n, n_error - n, "%s %#" PRIx64, i ? "," : "",
				      s->found[i].address);
	if (s->n_more && n < n_error)
		(void)snprintf(error + n, n_error - n, " ...");
}

static int choose_function(struct place_search *s, uint64_t *ret_address, char *error,
			   size_t n_error)
{
	prefer_default(s);
	if (s->n_found == 0) {
		explain_missing(s, error, n_error);
		return -ENOENT;
	}
	if (s->n_found > 1 || s->n_more) {
		explain_several(s, error, n_error);
		return -ENOTUNIQ;
	}
	if (s->found[0].type == STT_GNU_IFUNC) {
		(void)snprintf(error, n_error,
			       "%s only chooses one of several functions when a program starts "
			       "(IFUNC), and is not called later: name the one it chooses, such "
			       "as __memmove_avx_unaligned_erms of memcpy; perfwalk record shows "
			       "which one runs",
			       s->name);
		return -EOPNOTSUPP;
	}
	*ret_address = s->found[0].address;
	return 0;
}

static bool parse_hex(const char *text, uint64_t *ret)
{
	char *end;

	if (strncmp(text, "0x", 2) != 0 || !text[2])
		return false;
	errno = 0;
	*ret = strtoull(text, &end, 16);
	return !errno && !*end;
}

/* "f+0x10" and "f+16": cuts the name at the sign. operator+ has none. */
static bool split_offset(char *name, uint64_t *ret)
{
	char *plus = strrchr(name, '+'), *end;

	*ret = 0;
	if (!plus || plus == name || plus[1] < '0' || plus[1] > '9')
		return true;
	errno = 0;
	*ret = strtoull(plus + 1, &end, 0);
	*plus = '\0';
	return !errno && !*end;
}

static int find_function(const struct elf_image *im, const char *what,
			 symbol_open_debug_fn open_debug, void *ctx, uint64_t *ret_address,
			 char *error, size_t n_error)
{
	struct place_search s = {.image = im};
	char name[MAX_WHAT];
	int r;

	if (parse_hex(what, ret_address))
		return 0;
	(void)snprintf(name, sizeof(name), "%s", what);
	if (strlen(what) >= sizeof(name) || !split_offset(name, &s.offset)) {
		(void)snprintf(error, n_error,
			       "expected FUNCTION, FUNCTION+OFFSET or 0xADDRESS, not %s", what);
		return -EINVAL;
	}
	s.name = name;
	s.max_bytes = error ? MAX_TABLE_BYTES : QUIET_BYTES;
	s.max_name = error ? SIZE_MAX : strlen(name) + QUIET_SUFFIX;
	s.names.max = error ? MAX_NAMES : 0;
	/* Demangling all names is slow, and C has no such names. */
	s.mangled = true;
	search_all(&s, open_debug, ctx);
	if (s.n_found == 0 && (strpbrk(name, ":(<") || strncmp(name, "operator", 8) == 0)) {
		s.mangled = false;
		search_all(&s, open_debug, ctx);
	}
	r = choose_function(&s, ret_address, error, n_error);
	for (uint32_t i = 0; i < s.names.n; i++)
		free(s.names.items[i]);
	array_deinit(&s.names);
	if (r == 0)
		*ret_address += s.offset;
	return r;
}

/* ---- Markers ---- */

struct marker {
	uint64_t address, base, semaphore;
	const char *provider, *name, *arguments;
};

static bool marker_read(const struct note *note, bool is64, struct marker *ret)
{
	struct cursor c = cursor_make(note->desc, note->n_desc);

	if (!note_is(note, NOTE_STAPSDT, "stapsdt"))
		return false;
	ret->address = is64 ? cursor_u64(&c) : cursor_u32(&c);
	ret->base = is64 ? cursor_u64(&c) : cursor_u32(&c);
	ret->semaphore = is64 ? cursor_u64(&c) : cursor_u32(&c);
	ret->provider = cursor_string(&c);
	ret->name = cursor_string(&c);
	ret->arguments = cursor_string(&c);
	return cursor_ok(&c);
}

struct markers {
	const struct elf_image *image;
	uint64_t base; /* of .stapsdt.base now; 0: there is none */
	const char *wanted;
	FILE *list;
	struct probe_place *places;
	uint32_t n, n_refused, n_all;
	ARRAY(char *) names;
};

static void take_marker(struct markers *s, const struct marker *m)
{
	uint64_t moved = s->base && m->base ? s->base - m->base : 0;
	struct probe_place p = {0};

	if (!elf_image_offset(s->image, m->address + moved, PF_X, &p.offset) ||
	    (m->semaphore && !elf_image_offset(s->image, m->semaphore + moved, PF_W, &p.counter)))
		return;
	for (uint32_t i = 0; i < s->n; i++) {
		if (s->places[i].offset == p.offset) /* notes of sections, and of segments */
			return;
	}
	if (s->n == PROBE_PLACES_MAX)
		s->n_refused++;
	else
		s->places[s->n++] = p;
}

static bool on_note(void *ctx, const struct note *note)
{
	struct markers *s = ctx;
	struct marker m;
	char *name, **place;

	if (!marker_read(note, s->image->is64, &m) ||
	    asprintf(&name, "%s:%s", m.provider, m.name) < 0)
		return false;
	s->n_all++;
	if (s->wanted && strcmp(name, s->wanted) == 0)
		take_marker(s, &m);
	place = array_push(&s->names);
	if (place)
		*place = name;
	else
		free(name);
	return false;
}

static void find_markers(struct markers *s)
{
	const struct elf_section *base = elf_image_find(s->image, ".stapsdt.base");

	s->base = base ? base->addr : 0;
	s->names.max = MAX_NAMES;
	elf_image_each_note(s->image, on_note, s);
}

static void markers_deinit(struct markers *s)
{
	for (uint32_t i = 0; i < s->names.n; i++)
		free(s->names.items[i]);
	array_deinit(&s->names);
}

static void explain_no_marker(const struct markers *s, char *error, size_t n_error)
{
	const char *const *names = (const char *const *)s->names.items;
	const char *near = s->names.n ? text_nearest(s->wanted, names, s->names.n) : NULL;

	if (s->n_all == 0)
		(void)snprintf(error, n_error,
			       "it has no USDT markers: it was built without them (sys/sdt.h), or "
			       "one of its libraries has them");
	else
		(void)snprintf(error, n_error,
			       "it has no marker %s%s%s%s; perfwalk debug marker FILE lists all",
			       s->wanted, near ? " (did you mean " : "", near ? near : "",
			       near ? "?)" : "");
}

static int find_marker(const struct elf_image *im, const char *what,
		       struct probe_place ret[PROBE_PLACES_MAX], char *error, size_t n_error)
{
	struct markers s = {.image = im, .wanted = what, .places = ret};

	find_markers(&s);
	if (s.n == 0)
		explain_no_marker(&s, error, n_error);
	else if (s.n_refused)
		(void)snprintf(error, n_error, "%s has %u places in it, more than %d", what,
			       s.n + s.n_refused, PROBE_PLACES_MAX);
	markers_deinit(&s);
	return s.n_refused ? -E2BIG : s.n ? (int)s.n : -ENOENT;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int probe_list_markers(int fd, FILE *out)
{
	struct elf_image im;
	struct markers s = {.image = &im};
	int r = elf_image_open_fd(&im, fd), n = 0;

	if (r < 0)
		return r;
	find_markers(&s);
	if (s.names.n)
		qsort(s.names.items, s.names.n, sizeof(*s.names.items), compare_names);
	for (uint32_t i = 0; i < s.names.n; i++) {
		if (i > 0 && strcmp(s.names.items[i], s.names.items[i - 1]) == 0)
			continue;
		(void)fprintf(out, "%s\n", s.names.items[i]);
		n++;
	}
	markers_deinit(&s);
	elf_image_close(&im);
	return n;
}

int probe_find_places(int fd, const char *what, bool marker, symbol_open_debug_fn open_debug,
		      void *ctx, struct probe_place ret[PROBE_PLACES_MAX], char *error,
		      size_t n_error)
{
	struct elf_image im;
	uint64_t address;
	int r = elf_image_open_fd(&im, fd);

	if (r < 0) {
		(void)snprintf(error, n_error,
			       r == -ENOEXEC ? "it is no ELF program or library, or damaged"
					     : "it cannot be read");
		return r;
	}
	if (marker) {
		r = find_marker(&im, what, ret, error, n_error);
	} else {
		r = find_function(&im, what, open_debug, ctx, &address, error, n_error);
		if (r == 0 && !elf_image_offset(&im, address, PF_X, &ret[0].offset)) {
			(void)snprintf(error, n_error, "it has no code at %#" PRIx64, address);
			r = -ENOENT;
		}
		ret[0].counter = 0;
		r = r < 0 ? r : 1;
	}
	elf_image_close(&im);
	return r;
}
