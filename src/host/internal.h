/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Private to src/host: the tables of the model and the functions that its files share. Four files
 * that need each other are about processes: process.c (their life), info.c (their facts from
 * /proc), mapping.c (their mappings), thread.c (their threads).
 */
#include "src/host/host.h"
#include "util/array.h"
#include "util/file-identity.h"
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
/*
 * The set itself, or a private copy if others share it; NULL: no memory. Takes the caller's
 * reference.
 */
struct mapset *mapset_own(struct host *h, struct mapset *set);
/*
 * Adds m and removes the parts of mappings that it covers. Takes the file reference of m, also if
 * it refuses m (false). The set must be unshared.
 */
bool mapset_insert(struct host *h, struct mapset *set, const struct host_mapping *m);
/* Index of the mapping at pc, or UINT32_MAX. */
uint32_t mapset_find(const struct mapset *set, uint64_t pc);

/* ---- Tables' rows ---- */
struct process {
	struct host_process pub; /* first, so that the caller's pointer is ours */
	struct mapset *set;
	struct cgroup *own_cgroup; /* from its cgroup file, or the parent's until that is read */
	uint32_t row;
	/* index in the set: most samples hit the same mapping as the last one */
	uint32_t last_hit;
	uint32_t generation; /* less than the host's: records were lost since */
	uint32_t exit_window;
	uint32_t cgroup_window; /* when its cgroup file was read */
	uint64_t exit_ns;
	uint64_t maps_time_ns;		      /* the mappings include all records up to this time */
	uint64_t next_read_ns, read_delay_ns; /* back-off of maps reads */
	uint64_t next_whole_ns; /* many mappings: when to read all again, on the wall clock */
	struct process *next_exited;
	bool info_known;     /* or not available: do not ask again */
	bool start_is_exact; /* from /proc, not from the fork record */
	bool doubtful;	     /* read the mappings again at the next use */
	bool exe_pending;    /* the next file mapped is the executable */
	bool leader_exited;  /* the main thread has exited; others may go on */
	bool cgroup_read;
	bool in_exited_list;
	bool looked_up; /* by host_process_get(): what the caller keeps of it holds for a window */
	bool is_target; /* the side band, or host_add_target(), named it */
};

struct thread {
	uint32_t tid, pid;
	char comm[17]; /* "": same as the process's */
	bool used, dead;
	uint32_t dead_window;
	uint32_t next_free;
};

struct file {
	struct host_file pub; /* first, so that the caller's pointer is ours */
	uint32_t row;
	uint32_t last_window;
	uint32_t failed_pid; /* opening failed last through this process */
	uint32_t n_failed;
	uint64_t not_before_ns, off_ns; /* put off until then, by that; 0: it is not */
	bool indexed;
	struct file_identity contents;	  /* when it was opened; ino 0: unknown */
	uint32_t round;			  /* of the last comparison, see host_begin() */
	bool used;			  /* since it was put at the front of the list below */
	struct file *lru_prev, *lru_next; /* of open files, the newest first */
};

struct cgroup {
	struct host_cgroup pub; /* first, so that the caller's pointer is ours */
	uint32_t row;
	uint32_t n_refs;
	uint32_t last_window;
	bool failed; /* the id has no path; stays, so that we do not ask again soon */
	bool by_id;  /* in the index by id, not by path */
	bool name_asked;
	uint32_t name_window; /* the window in which it was asked */
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

/* Limits the questions of one kind by their number a second, on the records' clock. */
struct budget {
	uint64_t tokens, last_ns;
};

struct host {
	struct host_source source;
	struct host_limits limits;
	struct host_stats stats;
	uint64_t time_ns; /* latest record time seen */
	uint64_t boot_unix_ns;
	uint32_t generation; /* counts host_on_lost() */
	uint32_t window;     /* counts host_collect() */
	uint32_t round;	     /* counts host_begin() and reads of maps */
	uint64_t next_file_uid;
	struct host_rows processes, files, cgroups;
	struct hash_index process_index; /* by pid, living processes */
	struct hash_index file_index;	 /* by device and inode */
	struct hash_index cgroup_id_index, cgroup_path_index;
	ARRAY(struct thread) threads;
	struct hash_index thread_index; /* by tid */
	uint32_t free_thread;		/* list through next_free, UINT32_MAX ends */
	ARRAY(uint32_t) dead_threads;	/* tids */
	/* lists through next_exited: in the order of exits; what a full table had to pass over */
	struct process *exited, *exited_last, *exited_kept;
	struct file *lru_first, *lru_last;
	uint32_t full_window; /* the window in which the file table was swept last, + 1 */
	uint32_t sweep_row;   /* where the check of doubtful processes continues */
	bool only_v2;	      /* no cgroup v1 hierarchy: the id of a sample says everything */
	struct budget info_budget, cgroup_budget;
	struct time_share maps_share;
};

/* rows.c */
void host_see_time(struct host *h, uint64_t time_ns);
bool host_budget_take(struct host *h, struct budget *b, uint64_t per_second);
/* The clock for measuring costs. */
uint64_t host_wall_ns(struct host *h);
/* Begins a question if some of the share is left; false: it is postponed, and counted. */
bool host_share_begin(struct host *h, struct time_share *s);
void host_share_end(struct host *h, struct time_share *s);
/* The current time on the records' clock: from the source, else that of the latest record. */
uint64_t host_now(struct host *h);

/* process.c */
struct process *process_find(struct host *h, uint32_t pid);
/*
 * The process of a side-band record, or NULL: unknown. With limits.recorded the record makes it
 * known.
 */
struct process *process_of_record(struct host *h, uint32_t pid);
void process_free(struct host *h, struct process *p);
void process_set_maps(struct process *p, struct mapset *set);
/* Closes its perf map and jitdump file. */
void process_close_code(struct process *p);
/*
 * The process exited at that time. It is found until a later host_collect() frees it, or a second
 * after, if nobody has looked it up and the table is full.
 */
void process_mark_exited(struct host *h, struct process *p, uint64_t time_ns);
void process_collect(struct host *h);

/* info.c */
enum info_identity { INFO_SAME, INFO_OTHER, INFO_GONE };
/* Does a question to process_info() fit in the budget? */
bool info_may_ask(struct host *h);
/* Asks for unknown facts at first sight of a process, at a record of that time. */
void info_fill(struct host *h, struct process *p, uint64_t time_ns);
enum info_identity info_check_identity(struct host *h, const struct process *p);
/* Checks after records were lost: also reads the name and the program again. */
enum info_identity info_check_again(struct host *h, struct process *p);
/* Has it lost its program, as at its end? true also if that is unknown. */
bool info_is_ending(struct host *h, const struct process *p);
void info_set_start(struct host *h, struct process *p, uint64_t start_ns, bool exact);
/* Converts a time on the records' clock to a start time as in /proc; 0: not possible. */
uint64_t info_start_from_record(struct host *h, uint64_t time_ns);
/* path NULL: unknown. */
void info_set_exe(struct process *p, const char *path);

/* thread.c */
void thread_set_comm(struct host *h, uint32_t pid, uint32_t tid, const char *comm);
void thread_on_fork(struct host *h, struct process *p, uint32_t tid, uint32_t parent_tid);
void thread_on_exit(struct host *h, uint32_t tid);
/* Has this thread of that process exited? false once it is forgotten. */
bool thread_exited(struct host *h, uint32_t pid, uint32_t tid);
void thread_collect(struct host *h);

/* file.c */
/* The file with one more reference; NULL: refused. key NULL: unknown identity, not shared. */
struct host_file *file_get(struct host *h, const struct host_file_key *key, const char *path);
/* Call it at the first use of a mapping: gives it another struct host_file if the file was
 * overwritten since it was opened. Not earlier, because most mappings of short-lived processes are
 * never used. */
void file_check(struct host *h, struct host_mapping *m);
void file_unref(struct host *h, struct host_file *f);
void file_used(struct host *h, struct host_file *f);
void file_free_all(struct host *h);
void file_collect(struct host *h);

/* mapping.c */
/* Reads the process's maps if it is time to; false: it is not, or they cannot be read. */
bool mapping_refresh(struct host *h, struct process *p);

/* cgroup.c */
/* Set the cgroup of a process from a sample, and from its file (or its parent's). NULL: none. */
void cgroup_set(struct process *p, struct host_cgroup *cg);
void cgroup_set_own(struct process *p, struct host_cgroup *cg);
void cgroup_free_all(struct host *h);
void cgroup_collect(struct host *h);
