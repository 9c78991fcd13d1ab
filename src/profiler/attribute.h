/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One sample record -> one sample of the window: who (host), which frames (unwind), added up
 * (profile). The rooms below know nothing of each other; this is where they are joined.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/ask.h"
#include "src/process/role.h"
#include "src/profile/profile.h"
#include "src/profiler/handover.h"
#include "src/profiler/setup.h"

struct filter;
struct frame_key;
struct frame_source;
struct readers;
struct runtime_frames;
struct stack_size;
struct record;
struct sample_losses;
struct perf_data_host;
struct replay;
struct attribution;

/* filter: borrowed. */
int attribution_new(struct attribution **ret, struct role *role, struct ask *ask,
		    const struct setup_profiler *setup, const struct filter *filter,
		    struct replay *replay);
struct attribution *attribution_free(struct attribution *a);

/* Any record of the rings, in time order. false: a sample that is not wanted. */
bool attribution_record(struct attribution *a, const struct record *r);
/* Before the records of a drain: what they tell has happened. */
void attribution_begin(struct attribution *a);
/* Losses that no record reports. Losses of the side band put in doubt what we know of processes. */
void attribution_add_lost(struct attribution *a, struct sample_losses lost);
/* Something was not recorded: checks what is known of each process when it is sampled next. */
void attribution_doubt(struct attribution *a);
/* A file is set aside for a process of the tree, or not any more (MESSAGE_QUARANTINE). */
void attribution_quarantine(struct attribution *a, const struct message *m);

/* Facts of the file's host into the window. */
void attribution_put_host(struct attribution *a, const struct perf_data_host *host);

/* Globs of the keys of resource attributes that processes may say of themselves, and may not; NULL:
 * all, and none. Borrowed. */
void attribution_choose_attributes(struct attribution *a, const char *allow, const char *deny);

/* Told of each stack that is walked; borrowed. NULL: nobody is. */
void attribution_watch_stacks(struct attribution *a, struct stack_size *watch);

/* Where it is written when the events of switches stood still; borrowed. */
void attribution_watch_gaps(struct attribution *a, const struct ledger *l);

/* All records up to that time were taken: what stands still can be looked at now. */
void attribution_read_late(struct attribution *a, uint64_t time_ns);

/* A second source of frames is asked about each sample with a user stack; borrowed. 0 or
 * -ENOMEM. */
int attribution_set_source(struct attribution *a, const struct frame_source *source);
/* The frames that the source did not have yet when it was asked; none: there are no such frames.
 * false: the sample did not wait that long. */
bool attribution_add_frames(struct attribution *a, const struct frame_key *key,
			    const struct runtime_frames *frames);

/* Readers of interpreters, which are told of processes; borrowed. They are a second source. 0 or
 * -ENOMEM. */
int attribution_set_readers(struct attribution *a, struct readers *readers);

/*
 * What an event's records were, by profile_counter. The last event's may be of no type of the
 * profile.
 */
const uint64_t *attribution_counters(struct attribution *a, uint32_t event);
/* Before the window is read: time that threads were blocked up to time_ns (perf clock) becomes
 * samples. pause: from here on nobody tells what they do. */
void attribution_close(struct attribution *a, uint64_t time_ns, bool pause);

/* How much of the processes is in memory: each second, and (closes) before a window is read. */
void attribution_read_residents(struct attribution *a, uint64_t now_unix_ns, bool closes);

/* Looks for an interpreter in a process that may not have been sampled yet. */
void attribution_look_at(struct attribution *a, uint32_t pid, uint64_t time_ns);
/* Ends of blocks were not seen. */
void attribution_miss_ends(struct attribution *a);
/* Before the last window is closed: it tells what is in use then. */
void attribution_end(struct attribution *a);

/* The window now being filled. */
struct profile *attribution_profile(struct attribution *a);
/* Before the window is read: samples wait for nothing any more. */
void attribution_finish_samples(struct attribution *a);
/*
 * Ends the window: the items the symbolizer needs for it (allocated, *ret_n; NULL when none).
 * Afterwards attribution_next_window() empties the profile and begins the next.
 */
struct handover_item *attribution_window_items(struct attribution *a, uint32_t *ret_n);
void attribution_next_window(struct attribution *a);

/* handover's view of the files. */
int attribution_descriptor(void *ctx, const struct handover_item *item, struct message *m);
bool attribution_mark_sent(void *ctx, const struct handover_item *item, uint32_t generation,
			   bool sent);
