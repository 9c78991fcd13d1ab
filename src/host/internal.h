/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Inside of src/host: the tables behind host.h and what its files ask of each other. A process is
 * one idea in four files, which need each other: process.c (its life), info.c (what /proc says of
 * it), mapping.c (its mappings), thread.c (its threads).
 */
#include "src/host/host.h"
#include "util/array.h"
#include "util/hash.h"
#include "util/time-share.h"

/* ---- Mappings of one address space, shared by forks until one of them changes it ---- */
struct mapset {
	uint32_t n_refs;
	ARRAY(struct host_mapping) maps; /* sorted by start, not overlapping; each holds its file */
};

struct mapset *mapset_new(uint32_t max);
struct mapset *mapset_ref(struct mapset *set);
struct mapset *mapset_unref(struct host *h, struct mapset *set);
/* A private copy when others share it; NULL without memory. Takes the caller's reference over. */
struct mapset *mapset_own(struct host *h, struct mapset *set);
/*
 * Adds m, whose file reference goes to the set (or is dropped when refused, false), and cuts away
 * what it covers. The set must be unshared.
 */
bool mapset_insert(struct host *h, struct mapset *set, const struct host_mapping *m);
/* Index of the mapping at pc, or UINT32_MAX. */
uint32_t mapset_find(const struct mapset *set, uint64_t pc);

/* ---- Tables' rows ---- */
struct process {
	struct host_process pub; /* first: the caller's pointer is ours */
	struct mapset *set;
	struct cgroup *own_cgroup; /* from its cgroup file, or its parent's until that is read */
	uint32_t row;
	uint32_t last_hit;   /* index in the set: most samples fall where the last one did */
	uint32_t generation; /* behind the host's: records were lost since, doubtful */
	uint32_t exit_window;
	uint32_t cgroup_window; /* when its cgroup file was read */
	uint64_t exit_ns;
	uint64_t maps_time_ns;		      /* records up to here are already in the mappings */
	uint64_t next_read_ns, read_delay_ns; /* back-off of maps reads */
	uint64_t next_whole_ns; /* many mappings: when all may be read again, by the wall clock */
	struct process *next_exited;
	bool info_known;     /* or not available: not asked again */
	bool start_is_exact; /* from /proc, not from the fork record */
	bool doubtful;	     /* mappings to be re-read on next use */
	bool exe_pending;    /* the next file mapped is the executable */
	bool leader_exited;  /* the main thread's exit was recorded; others may go on */
	bool cgroup_read;
	bool in_exited_list;
};

struct thread {
	uint32_t tid, pid;
	char comm[17]; /* "": same as the process's */
	bool used, dead;
	uint32_t dead_window;
	uint32_t next_free;
};

struct file {
	struct host_file pub; /* first: the caller's pointer is ours */
	uint32_t row;
	uint32_t last_window;
	uint32_t failed_pid; /* the process through which opening failed last */
	uint32_t n_failed;
	bool indexed;
	struct file *lru_prev, *lru_next; /* of open ones, most recent first */
};

struct cgroup {
	struct host_cgroup pub; /* first: the caller's pointer is ours */
	uint32_t row;
	uint32_t n_refs;
	uint32_t last_window;
	bool failed; /* id could not be told; stays to be not asked again soon */
	bool by_id;  /* in which index it is */
	bool name_asked;
	uint32_t name_window; /* when */
};

/* Pointers with stable row numbers; free rows are reused. */
struct host_rows {
	ARRAY(void *) items;
	ARRAY(uint32_t) spare;
	uint32_t n_used;
};
void host_rows_init(struct host_rows *r);
/* The row given to item, or UINT32_MAX: full or no memory. */
uint32_t host_rows_add(struct host_rows *r, void *item);
void host_rows_remove(struct host_rows *r, uint32_t row);
void host_rows_deinit(struct host_rows *r);

/* So many questions of one kind a second, on the records' clock. */
struct budget {
	uint64_t tokens, last_ns;
};

struct host {
	struct host_source source;
	struct host_limits limits;
	struct host_stats stats;
	uint64_t time_ns; /* youngest record time seen */
	uint64_t boot_unix_ns;
	uint32_t generation; /* counts host_on_lost() */
	uint32_t window;     /* counts host_collect() */
	uint64_t next_file_uid;
	struct host_rows processes, files, cgroups;
	struct hash_index process_index; /* by pid, the living incarnation */
	struct hash_index file_index;	 /* by device and inode */
	struct hash_index cgroup_id_index, cgroup_path_index;
	ARRAY(struct thread) threads;
	struct hash_index thread_index; /* by tid */
	uint32_t free_thread;		/* list through next_free, UINT32_MAX ends */
	ARRAY(uint32_t) dead_threads;	/* tids */
	struct process *exited;		/* list through next_exited */
	struct file *lru_first, *lru_last;
	uint32_t full_window; /* the window in which the file table was swept last, + 1 */
	uint32_t sweep_row;   /* where the check of doubtful processes goes on */
	bool only_v2; /* no cgroup v1 hierarchy: the id of a sample is all there is to know */
	struct budget info_budget, cgroup_budget;
	struct time_share maps_share;
};

/* rows.c */
void host_see_time(struct host *h, uint64_t time_ns);
bool host_budget_take(struct host *h, struct budget *b, uint64_t per_second);
/* The clock that costs are measured with. */
uint64_t host_wall_ns(struct host *h);
/* Begins a question when something is left of the share; false: it is put off, and counted. */
bool host_share_begin(struct host *h, struct time_share *s);
void host_share_end(struct host *h, struct time_share *s);
/* Now on the records' clock: the source's, else the youngest record's time. */
uint64_t host_now(struct host *h);

/* process.c */
struct process *process_find(struct host *h, uint32_t pid);
/* The process a side-band record is about: with limits.recorded made known by it; else NULL. */
struct process *process_of_record(struct host *h, uint32_t pid);
void process_free(struct host *h, struct process *p);
/* Leaves the table to a new incarnation; freed by a later host_collect(). */
void process_retire(struct host *h, struct process *p);
void process_set_maps(struct process *p, struct mapset *set);
/* What it writes down of its compiled code is not looked at any more. */
void process_close_code(struct process *p);
/* Gone at that time; freed by a later host_collect(), found until then. */
void process_mark_exited(struct host *h, struct process *p, uint64_t time_ns);
void process_collect(struct host *h);

/* info.c */
enum info_identity { INFO_SAME, INFO_OTHER, INFO_GONE };
/* A question to process_info() fits in the budget. */
bool info_may_ask(struct host *h);
/* Asks for what is not known at first sight of a process, at a record of that time. */
void info_fill(struct host *h, struct process *p, uint64_t time_ns);
enum info_identity info_check_identity(struct host *h, const struct process *p);
/* The same after records were lost: the name and the program are taken anew, too. */
enum info_identity info_check_again(struct host *h, struct process *p);
void info_set_start(struct host *h, struct process *p, uint64_t start_ns, bool exact);
/* Start time in the clock of /proc from a time on the records' clock; 0: they do not compare. */
uint64_t info_start_from_record(struct host *h, uint64_t time_ns);
/* path NULL: not known. */
void info_set_exe(struct process *p, const char *path);

/* thread.c */
void thread_set_comm(struct host *h, uint32_t pid, uint32_t tid, const char *comm);
void thread_on_fork(struct host *h, struct process *p, uint32_t tid, uint32_t parent_tid);
void thread_on_exit(struct host *h, uint32_t tid);
/* Of that process, and its exit was recorded; false once it is forgotten. */
bool thread_exited(struct host *h, uint32_t pid, uint32_t tid);
void thread_collect(struct host *h);

/* file.c */
/* The file with one more reference, NULL: refused. key NULL: without identity, never shared. */
struct host_file *file_get(struct host *h, const struct host_file_key *key, const char *path);
void file_unref(struct host *h, struct host_file *f);
void file_used(struct host *h, struct host_file *f);
void file_free_all(struct host *h);
void file_collect(struct host *h);

/* mapping.c */
enum host_mapping_kind mapping_kind(const char *path, bool has_inode);
/* Reads the process's maps if it is time to; false: it was not, or they cannot be read. */
bool mapping_refresh(struct host *h, struct process *p);

/* cgroup.c */
/* What a process is told to be in, and what its file (or its parent's) says. NULL: nothing. */
void cgroup_set(struct process *p, struct host_cgroup *cg);
void cgroup_set_own(struct process *p, struct host_cgroup *cg);
void cgroup_free_all(struct host *h);
void cgroup_collect(struct host *h);
