/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * From a sample record to a sample of the window: whose it is (host), its frames (unwind), the sum
 * (profile). These rooms do not know each other; the attribution joins them.
 */
#include <stdbool.h>
#include <stdint.h>

#include "src/process/ask.h"
#include "src/process/role.h"
#include "src/process/status-page.h"
#include "src/profile/profile.h"
#include "src/profiler/handover.h"
#include "src/profiler/setup.h"

struct filter;
struct frame_source;
struct kept_blocks;
struct readers;
struct stack_size;
struct record;
struct sample_losses;
struct perf_data_host;
struct replay;
struct attribution;
struct blocked_context;

/* Everything is borrowed. replay NULL: the host is live. 0 or -errno. */
int attribution_new(struct attribution **ret, struct role *role, struct ask *ask,
		    const struct setup_profiler *setup, const struct filter *filter,
		    struct replay *replay);
struct attribution *attribution_free(struct attribution *a);

/* false: a sample of a task that this capture is not of. Call it for a record before the next. */
bool attribution_asks_for(struct attribution *a, const struct record *r);
/* Takes a record; records come in the order of time. false: a sample that the filter excludes. */
bool attribution_record(struct attribution *a, const struct record *r);
/* Call it before the records of a drain, which all lie in the past by now. */
void attribution_begin(struct attribution *a);
/* Call it after them, with the youngest one's time: children that interpreters have forked are read
 * from then on, before they have a sample. */
void attribution_look_at_forked(struct attribution *a, uint64_t time_ns);
/* Counts losses that no record reports. After losses of the side band, what is known of processes
 * is in doubt. */
void attribution_add_lost(struct attribution *a, struct sample_losses lost);
/* Adds what the kernel has counted of an event beyond the events that samples stand for, as a stack
 * that was not seen. */
void attribution_add_missed(struct attribution *a, uint32_t event, uint64_t counted);
/* Records are missing: checks what is known of each process at its next sample. */
void attribution_doubt(struct attribution *a);
/* A file is set aside for a process of the tree, or no longer (MESSAGE_QUARANTINE). */
void attribution_quarantine(struct attribution *a, const struct message *m);

/* Writes the facts of the recorded host into the window. */
void attribution_put_host(struct attribution *a, const struct perf_data_host *host);

/* Globs of the keys of resource attributes to take from processes, and to leave out; NULL: all, and
 * none. Borrowed. */
void attribution_choose_attributes(struct attribution *a, const char *allow, const char *deny);

/* Reports each stack that is walked to watch; borrowed. NULL: to nobody. */
void attribution_watch_stacks(struct attribution *a, struct stack_size *watch);

/* The ledger that says when the events of switches stood still; borrowed. */
void attribution_watch_gaps(struct attribution *a, const struct ledger *l);

/* All records up to that time (perf clock) were taken: reads the stacks of threads that have been
 * blocked since. */
void attribution_read_late(struct attribution *a, uint64_t time_ns);

/* Where profilers keep the blocks of memory in use for each other; borrowed. Takes those of the one
 * before, or removes them if allocations are not sampled. */
void attribution_share_blocks(struct attribution *a, struct kept_blocks *k);

/* Sets a second source of frames, which is asked about each sample with a user stack; borrowed. 0
 * or -ENOMEM. */
int attribution_set_source(struct attribution *a, const struct frame_source *source);

/* Sets the readers of interpreters, as a second source, and reports processes with an interpreter
 * to them; borrowed. 0 or -ENOMEM. */
int attribution_set_readers(struct attribution *a, struct readers *readers);

/* What programs said of themselves and was left out, since the start. */
void attribution_count_said(const struct attribution *a, struct status_said *ret);

/* The counters of an event's records, by profile_counter; borrowed. Switches, the last event, have
 * counters but no type in the profile. */
uint64_t *attribution_counters(struct attribution *a, uint32_t event);
/* Call it before the window is read: the time that threads were blocked up to time_ns (perf clock)
 * becomes samples. pause: no switches follow for now. */
void attribution_close(struct attribution *a, uint64_t time_ns, bool pause);

/* Measures how much memory processes have. Call it each second and (closes) before a window is
 * read. */
void attribution_read_residents(struct attribution *a, uint64_t now_unix_ns, bool closes);

/* As switches_enough_stacks(), if there are events of switches. */
uint32_t attribution_enough_stacks(struct attribution *a);

/* As off_cpu_places_known(); false without off-CPU time. */
bool attribution_places_known(struct attribution *a, uint64_t time_ns);
/* Threads of some process tell their spans, which are read while they are blocked. */
bool attribution_follows_blocks(const struct attribution *a);
/*
 * How soon the next drain should come. The frames of some runtimes are read late, and whose process
 * has ended by then has none: so a young one is read when a fortieth of its life has passed since
 * the last time. Of interpreters we find the next one soon that begins after one. UINT64_MAX: there
 * is none.
 */
uint64_t attribution_drain_ns(const struct attribution *a);
/* The answer of a reader about a blocked thread. */
void attribution_context(struct attribution *a, const struct blocked_context *context);
/* See host_add_target(). */
void attribution_add_target(struct attribution *a, uint32_t pid);
/* Takes MESSAGE_STANDS, for off-CPU time. */
void attribution_stands(struct attribution *a, const struct message *m);

/* Looks for an interpreter in a process that may not have been sampled yet. time_ns: perf clock. */
void attribution_look_at(struct attribution *a, uint32_t pid, uint64_t time_ns);
/* Ends of allocated blocks were missed. */
void attribution_miss_ends(struct attribution *a);
/* Call it before the last window is closed, which has the memory in use at that time. */
void attribution_end(struct attribution *a);

/* The window that is being filled; borrowed. */
struct profile *attribution_profile(struct attribution *a);
/*
 * Ends the window. Returns the items that the symbolizer needs for it, *ret_n of them, which the
 * caller frees; NULL: none. attribution_next_window() then empties the profile and begins the next.
 */
struct handover_item *attribution_window_items(struct attribution *a, uint32_t *ret_n);
void attribution_next_window(struct attribution *a);

/* handover_callbacks.descriptor and .mark. */
int attribution_descriptor(void *ctx, const struct handover_item *item, struct message *m);
bool attribution_mark_sent(void *ctx, const struct handover_item *item, uint32_t generation,
			   bool sent);
