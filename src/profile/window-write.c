/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/profile/window.h"
#include "src/profile/window-format.h"
#include "util/cleanup.h"
#include "util/memory-file.h"

const uint32_t window_item_sizes[N_SECTIONS] = {
	[SECTION_STRINGS] = 1,
	[SECTION_MODULES] = sizeof(struct profile_module),
	[SECTION_PROCESSES] = sizeof(struct profile_process),
	[SECTION_THREADS] = sizeof(struct profile_thread),
	[SECTION_FUNCTIONS] = sizeof(struct profile_function),
	[SECTION_LINES] = sizeof(struct profile_line),
	[SECTION_FRAMES] = sizeof(struct profile_frame),
	[SECTION_STACKS] = sizeof(struct profile_stack),
	[SECTION_STACK_FRAMES] = sizeof(uint32_t),
	[SECTION_TYPES] = sizeof(struct window_type),
	[SECTION_SAMPLES] = sizeof(struct profile_sample),
	[SECTION_RESIDENTS] = sizeof(struct profile_resident),
	[SECTION_KILLS] = sizeof(struct profile_kills),
	[SECTION_VICTIMS] = sizeof(struct profile_victim),
};

static const void *section_data(const struct profile *p, enum window_section s, uint32_t *ret_n)
{
	switch (s) {
	case SECTION_STRINGS:
		*ret_n = (uint32_t)p->strings.n_bytes;
		return p->strings.bytes;
	case SECTION_MODULES:
		*ret_n = p->modules.n;
		return p->modules.items;
	case SECTION_PROCESSES:
		*ret_n = p->processes.n;
		return p->processes.items;
	case SECTION_THREADS:
		*ret_n = p->threads.n;
		return p->threads.items;
	case SECTION_FUNCTIONS:
		*ret_n = p->functions.n;
		return p->functions.items;
	case SECTION_LINES:
		*ret_n = p->lines.n;
		return p->lines.items;
	case SECTION_FRAMES:
		*ret_n = p->frames.n;
		return p->frames.items;
	case SECTION_STACKS:
		*ret_n = p->stacks.n;
		return p->stacks.items;
	case SECTION_STACK_FRAMES:
		*ret_n = p->stack_frames.n;
		return p->stack_frames.items;
	case SECTION_RESIDENTS:
		*ret_n = p->residents.n;
		return p->residents.items;
	case SECTION_KILLS:
		*ret_n = p->kills.n;
		return p->kills.items;
	case SECTION_VICTIMS:
		*ret_n = p->victims.n;
		return p->victims.items;
	case SECTION_TYPES:
	case SECTION_SAMPLES: /* the writer collects these */
	case N_SECTIONS:
		break;
	}
	*ret_n = 0;
	return NULL;
}

static uint32_t collect_types(const struct profile *p, struct window_type *types)
{
	uint32_t n_samples = 0;

	for (uint32_t i = 0; i < p->n_types; i++) {
		const struct profile_type *t = &p->types[i];

		types[i] = (struct window_type){
			.period_ns = t->period_ns,
			.period_events = t->period_events,
			.event = t->event,
			.unit = t->unit,
			.weighted = t->weighted,
			.rate_hz = t->rate_hz,
			.stack_bytes = t->stack_bytes,
			.n_samples = t->samples.n,
			.variance = t->variance,
		};
		memcpy(types[i].counters, t->counters, sizeof(t->counters));
		n_samples += t->samples.n;
	}
	return n_samples;
}

static void write_samples(const struct profile *p, uint8_t *map)
{
	for (uint32_t i = 0; i < p->n_types; i++) {
		const struct profile_type *t = &p->types[i];
		size_t bytes = t->samples.n * sizeof(*t->samples.items);

		if (bytes > 0)
			memcpy(map, t->samples.items, bytes);
		map += bytes;
	}
}

static void write_sections(const struct profile *p, const struct window_header *h,
			   const struct window_type *types, uint8_t *map)
{
	for (int s = 0; s < N_SECTIONS; s++) {
		uint32_t n = h->sections[s].n, n_data;
		const void *data = s == SECTION_TYPES
					   ? types
					   : section_data(p, (enum window_section)s, &n_data);

		if (s == SECTION_SAMPLES)
			write_samples(p, map);
		else if (n > 0)
			memcpy(map, data, (size_t)n * window_item_sizes[s]);
		map += window_padded((uint64_t)n * window_item_sizes[s]);
	}
}

int window_write(const struct profile *p)
{
	struct window_type types[PROFILE_MAX_TYPES];
	struct window_header h = {
		.magic = WINDOW_MAGIC,
		.total_bytes = window_padded(sizeof(h)),
		.start_unix_ns = p->start_unix_ns,
		.end_unix_ns = p->end_unix_ns,
		.host_name = p->host_name,
		.kernel_release = p->kernel_release,
		.n_cpus = p->n_cpus,
		.n_strings = p->strings.n,
	};
	_cleanup_close_ int fd = -EBADF;
	uint8_t *map;
	int e;

	memcpy(h.counters, p->counters, sizeof(h.counters));
	for (int s = 0; s < N_SECTIONS; s++)
		(void)section_data(p, (enum window_section)s, &h.sections[s].n);
	h.sections[SECTION_TYPES].n = p->n_types;
	h.sections[SECTION_SAMPLES].n = collect_types(p, types);
	for (int s = 0; s < N_SECTIONS; s++) {
		h.sections[s].item_bytes = window_item_sizes[s];
		h.total_bytes += window_padded((uint64_t)h.sections[s].n * window_item_sizes[s]);
	}

	fd = memory_file_new("perfwalk-window");
	if (fd < 0)
		return fd;
	if (ftruncate(fd, (off_t)h.total_bytes) < 0)
		return -errno;
	map = mmap(NULL, h.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	memcpy(map, &h, sizeof(h));
	write_sections(p, &h, types, map + window_padded(sizeof(h)));
	(void)munmap(map, h.total_bytes);
	e = memory_file_seal(fd);
	return e < 0 ? e : TAKE_FD(fd);
}
