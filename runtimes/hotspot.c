/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "runtimes/arch.h"

enum {
	OPEN_READS = 20000, /* real ones: 4000 */
	OPEN_BYTES = 16 << 20,
	MAX_CODE_CACHE = 2047 << 20, /* ReservedCodeCacheSize is below 2 GiB */
	MAX_INTERPRETER = 16 << 20,
	MAX_CODELETS = 8192,
	ONE_HEAP = 8, /* the last version whose code cache is one */
};

static const char *const level_names[HOTSPOT_N_LEVELS] = {
	[HOTSPOT_INTERPRETED] = "interpreted",
	[HOTSPOT_C1] = "C1",
	[HOTSPOT_C1_COUNTS] = "C1, counting",
	[HOTSPOT_C1_PROFILES] = "C1, profiling",
	[HOTSPOT_C2] = "C2",
	[HOTSPOT_NATIVE] = "native",
	[HOTSPOT_STUB] = "stub",
};

const char *hotspot_level_name(enum hotspot_level level)
{
	return (unsigned int)level < HOTSPOT_N_LEVELS ? level_names[level] : "";
}

/* ---- Facts that are read once for each process ---- */

/* Up to 8 HotSpot had a version of its own: "25.252-b09" is 8u252. */
static void make_release(struct hotspot *h)
{
	if (hs_known(h, HS_HEAP) && strncmp(h->release, "25.", 3) == 0) {
		h->release[0] = '8';
		h->release[1] = 'u';
		memmove(h->release + 2, h->release + 3, strlen(h->release + 3) + 1);
	}
	for (char *c = h->release; *c; c++) {
		if (*c < ' ' || *c > '~')
			*c = '?';
	}
}

static bool read_version(struct hotspot *h)
{
	uint64_t release;

	/* The others with one heap had no Method. */
	h->major = ONE_HEAP;
	if (!hs_known(h, HS_HEAP) &&
	    !memory_read(&h->memory, (uint64_t)hs(h, HS_VM_MAJOR), &h->major, sizeof(h->major)))
		return false;
	release = hs_known(h, HS_VM_RELEASE)
			  ? memory_u64(&h->memory, (uint64_t)hs(h, HS_VM_RELEASE))
			  : 0;
	if (!release || !memory_text(&h->memory, release, h->release, sizeof(h->release)))
		h->release[0] = '\0';
	make_release(h);
	return true;
}

/* The pieces of the interpreter: in which of them methods are entered. */
static bool read_interpreter(struct hotspot *h, struct memory *m)
{
	uint64_t queue = memory_u64(m, (uint64_t)hs(h, HS_INTERPRETER_CODE)), at;
	uint32_t n, size;
	char text[48];

	h->interpreter.start = memory_u64(m, queue + (uint64_t)hs(h, HS_QUEUE_BUFFER));
	if (!queue || !memory_read(m, queue + (uint64_t)hs(h, HS_QUEUE_LIMIT), &n, sizeof(n)) ||
	    n == 0 || n > MAX_INTERPRETER || h->interpreter.start < h->low ||
	    h->interpreter.start + n > h->high)
		return false;
	h->interpreter.end = at = h->interpreter.start;
	h->interpreter.end += n;
	for (int i = 0; i < MAX_CODELETS && at < h->interpreter.end; i++) {
		struct code_range *r;

		if (!memory_read(m, at + (uint64_t)hs(h, HS_CODELET_SIZE), &size, sizeof(size)) ||
		    size < (uint64_t)hs(h, HS_CODELET_BYTES) || size > h->interpreter.end - at)
			break;
		if (memory_text(m, memory_u64(m, at + (uint64_t)hs(h, HS_CODELET_DESCRIPTION)),
				text, sizeof(text)) &&
		    strstr(text, "method entry point")) {
			r = array_push(&h->entries);
			if (!r)
				return false;
			*r = (struct code_range){at, at + size};
		}
		at += size;
	}
	return true;
}

static int read_process(struct hotspot *h, const char **ret_why)
{
	struct memory_pages *pages;
	bool ok;

	if (!read_version(h)) {
		*ret_why = "its version cannot be read";
		return -ENOTSUP;
	}
	h->call_stub_return = memory_u64(&h->memory, (uint64_t)hs(h, HS_CALL_STUB_RETURN));
	if (!hotspot_code_bounds(h) || !h->call_stub_return)
		return -EAGAIN;
	if (h->high - h->low > MAX_CODE_CACHE) {
		*ret_why = "its code cache is larger than any can be";
		return -ENOTSUP;
	}
	pages = memory_pages_new(&h->memory);
	if (!pages)
		return -ENOMEM;
	ok = hotspot_code_heaps(h) && read_interpreter(h, memory_of_pages(pages));
	free(pages);
	return ok ? 0 : -EAGAIN;
}

static struct memo *memo;

static int join_memo(struct hotspot *h)
{
	int r = memo_join(&memo, sizeof(*h->memo), HOTSPOT_MAX_TEXT, &h->owner);

	if (r == 0) {
		h->memo = (struct hotspot_memo *)memo;
		h->memo->places.max = HOTSPOT_MAX_PLACES;
	}
	return r;
}

static void leave_memo(const struct hotspot *h)
{
	if (!h->memo)
		return;
	if (!memo_is_shared(memo))
		array_deinit(&h->memo->places);
	memo_leave(&memo);
}

int hotspot_new(struct hotspot **ret, const struct memory *memory, uint64_t image,
		const char **ret_why)
{
	_cleanup_(hotspot_freep) struct hotspot *h = calloc(1, sizeof(*h));
	int r;

	*ret_why = "";
	if (!h)
		return -ENOMEM;
	h->memory = *memory;
	h->entries.max = 256;
	r = join_memo(h);
	if (r < 0)
		return r;
	hotspot_begin(h, OPEN_READS, OPEN_BYTES);
	if (!image_open(&h->image, &h->memory, image))
		return -ENOENT;
	r = hotspot_tables_read(&h->tables, &h->image, ret_why);
	if (r == 0 && !arch_hotspot_tried[0]) {
		*ret_why = "its frames on this processor are not known";
		r = -ENOTSUP;
	}
	if (r == 0)
		r = read_process(h, ret_why);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(h);
	/* The copied image points to the original memory. */
	(*ret)->image.memory = &(*ret)->memory;
	return 0;
}

struct hotspot *hotspot_free(struct hotspot *h)
{
	if (h) {
		array_deinit(&h->entries);
		leave_memo(h);
		free(h);
	}
	return NULL;
}

/* ---- For its user ---- */

bool hotspot_has(const struct hotspot *h, uint64_t pc)
{
	return hs_is_code(h, pc);
}

const char *hotspot_release(const struct hotspot *h)
{
	return h->release;
}

bool hotspot_is_tried(const struct hotspot *h)
{
	for (const uint8_t *version = arch_hotspot_tried; *version; version++) {
		if (h->major == *version)
			return true;
	}
	return false;
}

const char *hotspot_text(const struct hotspot *h, strid id)
{
	return strtab_get(&h->memo->base.texts, id);
}

const struct hotspot_stats *hotspot_stats(const struct hotspot *h)
{
	return &h->stats;
}

void hotspot_begin(struct hotspot *h, uint32_t reads, uint64_t bytes)
{
	struct hotspot_memo *m = h->memo;

	h->memory.reads_left = reads;
	h->memory.bytes_left = bytes;
	m->last_walk = m->last_walk == UINT32_MAX ? 1 : m->last_walk + 1;
	h->walk = m->last_walk;
	trust_begin_walk(&h->walks);
	/* Frames of a walk refer to both: room is made between walks. */
	if (m->places.n > HOTSPOT_MAX_PLACES * 3 / 4 ||
	    strtab_bytes(&m->base.texts) > HOTSPOT_MAX_TEXT * 3 / 4 ||
	    m->base.texts.n_refused > 0) {
		memset(m->codes, 0, sizeof(m->codes));
		memset(m->spots, 0, sizeof(m->spots));
		memset(m->names, 0, sizeof(m->names));
		array_clear(&m->places);
		strtab_clear(&m->base.texts);
		m->base.texts.n_refused = 0;
	}
}

void hotspot_explain(const struct hotspot *h, FILE *out)
{
	(void)fprintf(out, "HotSpot %s%s\n", *h->release ? h->release : "of unknown release",
		      hotspot_is_tried(h) ? "" : " (untested version)");
	(void)fprintf(out, "libjvm.so at %#" PRIx64 "\n", h->image.base);
	(void)fprintf(out, "code cache %#" PRIx64 "-%#" PRIx64 "\n", h->low, h->high);
	for (uint32_t i = 0; i < h->n_heaps; i++)
		(void)fprintf(out, "  heap %#" PRIx64 "-%#" PRIx64 ", segments of %u bytes\n",
			      h->heaps[i].low, h->heaps[i].high, 1u << h->heaps[i].log2_segment);
	(void)fprintf(out, "interpreter %#" PRIx64 "-%#" PRIx64 ", %u method entries\n",
		      h->interpreter.start, h->interpreter.end, h->entries.n);
	(void)fprintf(out, "from the tables that libjvm.so exports:\n");
	for (unsigned int i = 0; i < HS_N_VALUES; i++) {
		if (!h->tables.known[i])
			(void)fprintf(out, "  %-44s not in this version\n", hotspot_value_name(i));
		else if (i <= HS_VM_MAJOR)
			(void)fprintf(out, "  %-44s at libjvm.so + %#" PRIx64 "\n",
				      hotspot_value_name(i),
				      (uint64_t)h->tables.value[i] - h->image.base);
		else
			(void)fprintf(out, "  %-44s %" PRId64 "\n", hotspot_value_name(i),
				      h->tables.value[i]);
	}
}
