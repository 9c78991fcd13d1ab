/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host model knows only executable mappings. So when the address of a lock is new, we read the
 * text of /proc/PID/maps to find its file, and the code of that file, which converts the address to
 * one in the file. Variables that begin as zeros (.bss) are in memory without a name after the
 * file's last mapping.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/profiler/attribute-internal.h"
#include "src/profiler/lock-places.h"
#include "src/profiler/module-rows.h"
#include "src/profiler/outside.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/hash.h"

#define MAX_READS   50 /* of maps, in a second */
#define MEMORY_UID  (UINT64_C(1) << 59)
#define REGION_BITS 32
#define NO_ROW	    UINT32_MAX

/* Memory of a process, by the name it has in its maps. */
static const char *const regions[] = {"[anon]", "[heap]", "[stack]"};

struct lock_place {
	uint64_t start_ns; /* of the process: its number may come again */
	uint64_t address;  /* 0: none */
	uint64_t code;	   /* start of an executable mapping of its file; 0: it is in none */
	uint64_t ip;	   /* of the call that was seen to wait for it; 0: none */
	uint32_t pid, region;
	uint32_t n_execs;      /* of the process: another program has other memory */
	uint32_t older, newer; /* rows, by when they were last used */
};

struct lock_places {
	struct attribution *a;
	ARRAY(struct lock_place) places;
	struct hash_index index;
	uint32_t oldest, newest;
	uint64_t second_ns;
	uint32_t n_reads; /* since then */
};

int lock_places_new(struct lock_places **ret, struct attribution *a, uint32_t max_places)
{
	struct lock_places *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->a = a;
	l->places.max = max_places;
	l->oldest = l->newest = NO_ROW;
	*ret = l;
	return 0;
}

struct lock_places *lock_places_free(struct lock_places *l)
{
	if (l) {
		array_deinit(&l->places);
		hash_index_deinit(&l->index);
		free(l);
	}
	return NULL;
}

static uint64_t hash_place(uint32_t pid, uint64_t start_ns, uint64_t address)
{
	return hash_combine(hash_combine(pid, start_ns), address);
}

/* As the newest one. */
static void link_row(struct lock_places *l, uint32_t row)
{
	struct lock_place *place = &l->places.items[row];

	place->older = l->newest;
	place->newer = NO_ROW;
	*(l->newest == NO_ROW ? &l->oldest : &l->places.items[l->newest].newer) = row;
	l->newest = row;
}

static void unlink_row(struct lock_places *l, uint32_t row)
{
	const struct lock_place *place = &l->places.items[row];

	*(place->older == NO_ROW ? &l->oldest : &l->places.items[place->older].newer) =
		place->newer;
	*(place->newer == NO_ROW ? &l->newest : &l->places.items[place->newer].older) =
		place->older;
}

static struct lock_place *find(struct lock_places *l, const struct host_process *p,
			       uint64_t address)
{
	uint64_t h = hash_place(p->pid, p->start_time_ns, address);
	uint32_t slot = hash_index_first(&l->index, h), row;

	while ((row = hash_index_row(&l->index, slot)) != HASH_INDEX_NONE) {
		struct lock_place *place = &l->places.items[row];

		if (place->pid == p->pid && place->start_ns == p->start_time_ns &&
		    place->n_execs == p->n_execs && place->address == address) {
			unlink_row(l, row);
			link_row(l, row);
			return place;
		}
		slot = hash_index_next(&l->index, slot);
	}
	return NULL;
}

/* A new one, or that of the lock that was used longest ago. NO_ROW: there is no memory. */
static uint32_t take_row(struct lock_places *l)
{
	const struct lock_place *place;
	uint32_t row = l->oldest;

	if (l->places.n < l->places.max && array_push(&l->places))
		return l->places.n - 1;
	if (row == NO_ROW)
		return NO_ROW;
	place = &l->places.items[row];
	(void)hash_index_remove(&l->index, hash_place(place->pid, place->start_ns, place->address),
				row);
	unlink_row(l, row);
	return row;
}

/* ---- What is mapped ---- */

/* The lines of a text that is read from its first to its last. */
struct maps_search {
	uint64_t address;
	/* Of the line before: its end, and whether it is a file's or goes on from one. */
	uint64_t end;
	bool of_file;
	struct host_maps_line file; /* the last line of a file */
	uint64_t code;		    /* of that file */
	/* What was found. */
	bool found, in_file;
	uint32_t region;
};

static bool same_file(const struct host_maps_line *a, const struct host_maps_line *b)
{
	return a->inode == b->inode && a->major == b->major && a->minor == b->minor;
}

static uint32_t region_of(const char *path)
{
	for (uint32_t i = 1; i < ARRAY_SIZE(regions); i++)
		if (strcmp(path, regions[i]) == 0)
			return i;
	return 0;
}

/* True: the search is over. */
static bool take_line(struct maps_search *s, const struct host_maps_line *line)
{
	bool file = line->inode != 0;
	bool behind = !file && !line->path[0] && s->of_file && line->start == s->end;

	if (file && (!same_file(line, &s->file) || !s->of_file))
		s->code = 0;
	if (file)
		s->file = *line;
	if (file && line->executable)
		s->code = line->start;
	s->of_file = file || behind;
	s->end = line->end;
	if (s->address < line->start || s->address >= line->end)
		return s->address < line->start;
	s->found = true;
	s->in_file = s->of_file && s->code;
	s->region = region_of(line->path);
	return true;
}

static void search(struct maps_search *s, FILE *maps)
{
	_cleanup_free_ char *text = NULL;
	struct host_maps_line line;
	size_t size = 0;
	ssize_t n;

	while ((n = getline(&text, &size, maps)) > 0) {
		if (text[n - 1] == '\n')
			text[--n] = '\0';
		if (host_parse_maps_line(text, (size_t)n, &line) && take_line(s, &line))
			return;
	}
}

static bool may_read(struct lock_places *l)
{
	uint64_t now = clock_monotonic_ns();

	if (now - l->second_ns > NSEC_PER_SEC) {
		l->second_ns = now;
		l->n_reads = 0;
	}
	return l->n_reads++ < MAX_READS;
}

void lock_places_see(struct lock_places *l, const struct host_process *p, uint64_t address,
		     uint64_t ip)
{
	struct maps_search s = {.address = address};
	struct lock_place *place;
	uint32_t row;
	FILE *maps;
	int fd;

	if (find(l, p, address) || p->exited || !may_read(l))
		return;
	fd = outside_open_maps(&l->a->outside, p->pid);
	maps = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (!maps) {
		(void)close_fd(fd);
		return;
	}
	search(&s, maps);
	(void)fclose(maps);
	row = s.found ? take_row(l) : NO_ROW;
	if (row == NO_ROW)
		return;
	place = &l->places.items[row];
	*place = (struct lock_place){.start_ns = p->start_time_ns,
				     .address = address,
				     .code = s.in_file ? s.code : 0,
				     .ip = ip,
				     .pid = p->pid,
				     .region = s.region,
				     .n_execs = p->n_execs};
	link_row(l, row);
	if (hash_index_add(&l->index, hash_place(p->pid, p->start_time_ns, address), row) < 0)
		l->places.items[row].address = 0; /* nobody finds it */
}

bool lock_places_knows(struct lock_places *l, const struct host_process *p, uint64_t address,
		       uint64_t ip)
{
	const struct lock_place *place = address && ip ? find(l, p, address) : NULL;

	return place && place->ip == ip;
}

/* ---- Frames ---- */

static uint32_t memory_frame(struct attribution *a, const struct host_process *p, uint32_t region,
			     uint64_t address)
{
	const struct profile_module m = {
		.uid = PROFILE_UID_DATA | MEMORY_UID | (uint64_t)region << REGION_BITS | p->pid,
		.kind = PROFILE_MODULE_DATA,
		.process = PROFILE_NONE,
		.path = strtab_put(&a->profile.strings, regions[region]),
	};

	return profile_add_frame(&a->profile, profile_add_module(&a->profile, &m), address);
}

/* The symbolizer finds the file by the rest of the number. */
static uint32_t file_frame(struct attribution *a, uint32_t code_row, uint64_t address)
{
	const struct profile_module *code = &a->profile.modules.items[code_row];
	const struct profile_module m = {
		.uid = PROFILE_UID_DATA | code->uid,
		.kind = PROFILE_MODULE_DATA,
		.process = PROFILE_NONE,
		.path = code->path,
	};

	return profile_add_frame(&a->profile, profile_add_module(&a->profile, &m), address);
}

uint32_t lock_places_frame(struct lock_places *l, struct host_process *p, uint64_t address)
{
	const struct lock_place *place = find(l, p, address);
	struct attribution *a = l->a;
	uint32_t row;
	uint64_t bias;

	if (place && place->code && attribution_code_row(a, place->code, &row, &bias))
		return file_frame(a, row, address - bias);
	return memory_frame(a, p, place ? place->region : 0, address);
}
