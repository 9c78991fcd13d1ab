/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The model of the host: processes, threads, mappings, files, cgroups. It gets the side-band
 * records in time order, and asks the broker through struct host_source only on a miss.
 *
 * Identity of a process is (pid, start time). fork copies the parent's mappings (copy on write),
 * exec clears them, exit marks the process as gone. host_collect() frees it after the last window
 * that may refer to it; one that nobody looked up may go earlier, a second after its exit. Every
 * table is bounded and counts what it refuses.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

struct host;

/* Identity of a mapped file as the kernel reports it in maps and MMAP2. */
struct host_file_key {
	uint32_t major, minor;
	uint64_t inode, generation; /* generation 0: unknown (maps) */
};

/* One file, shared by all processes that map it. A file without an inode in its records (plain
 * MMAP) is shared only by a process and its forks: a path alone means nothing across mount
 * namespaces. */
struct host_file {
	struct host_file_key key;
	uint64_t uid;	 /* unique in the host's lifetime, never 0, below 2^44 */
	char *path;	 /* as first seen, " (deleted)" removed; raw bytes: clean them for output */
	int fd;		 /* -1: not tried, not available, or closed as least recently used */
	bool tried;	 /* we tried to open it */
	void *user;	 /* the caller's (its unwind module); host_limits.free_user frees it */
	uint32_t n_refs; /* mappings that point here */
};

enum host_mapping_kind { HOST_MAPPING_FILE, HOST_MAPPING_VDSO, HOST_MAPPING_ANON };

/* One executable mapping. Forks share it until one of them changes its mappings. A pointer to it is
 * valid until the next call that takes a record or looks up a process or mapping. */
struct host_mapping {
	uint64_t start, end, file_offset;
	struct host_file *file; /* HOST_MAPPING_FILE */
	uint8_t kind;		/* enum host_mapping_kind */
	uint8_t bias_state;	/* the caller's: 0 at first */
	uint64_t bias;		/* the caller's */
};

struct host_cgroup {
	uint64_t id;	       /* 0: found by path */
	char *path;	       /* cleaned */
	char container_id[65]; /* "" none; of LXC and systemd-nspawn its name: they have no other */
	bool is_named;	       /* it is such a name */
	const char *runtime;   /* "docker", "containerd", "cri-o", "podman", "lxc",
				* "systemd-nspawn", ""; static */
	char pod_uid[37];      /* "" none */
	char *container_name;  /* cleaned; see host_container_name(); NULL: unknown */
	char unit[128];	       /* innermost systemd *.service or *.scope, except scopes of
				    * containers and init.scope; "" none */
};

struct host_process {
	uint32_t pid;
	uint64_t start_time_ns; /* CLOCK_BOOTTIME-like: /proc/PID/stat field 22 in ns; 0: unknown */
	uint64_t start_unix_ns; /* 0: unknown */
	uint32_t parent_pid;
	char comm[17];
	char *executable_path; /* NULL: unknown (yet) */
	struct host_cgroup *cgroup;
	struct host_mapping *mappings; /* sorted by start, not overlapping */
	uint32_t n_mappings;
	bool is_kernel; /* kernel thread */
	bool exited;
	bool mappings_known; /* from maps, a fork or an exec: then a miss is a real miss */
	int perf_map_fd;     /* -1: not tried, -2: not available */
	int jitdump_fd;	     /* -1: not tried, or not available */
	uint32_t n_execs;    /* number of programs that it has executed since we know it */
	uint32_t n_names;    /* grows when comm or executable_path is set */
	void *user;	     /* the caller's; host_limits.free_process_user frees it */
};

/* Questions to the broker. All return an owned descriptor or 0, else -errno, and have a deadline of
 * their own. */
struct host_source {
	void *ctx;
	/* The text of /proc/PID/maps. */
	int (*open_maps)(void *ctx, uint32_t pid);
	/* The file of one mapping; strict: verify that it is the file of the key. alternate_pid:
	 * another process that probably has the same mount namespace (the parent), 0 none. -EAGAIN:
	 * ask again at a later sample. */
	int (*open_file)(void *ctx, uint32_t pid, uint32_t alternate_pid, uint64_t start,
			 uint64_t end, const struct host_file_key *key, const char *path);
	/* Text of /proc/TID/cgroup. */
	int (*open_cgroup)(void *ctx, uint32_t tid);
	/* Sets buf to the path of a cgroup id ("/a/b"). 0 or -errno. */
	int (*cgroup_path)(void *ctx, uint64_t id, char *buf, size_t size);
	/*
	 * The engine's state file of the container with that id. NULL: container names are not
	 * wanted.
	 */
	int (*open_container)(void *ctx, const char *id);
	/* From /proc/PID: start time in ns since boot, parent, comm, executable path, kernel
	 * thread. Works for a tid, too. */
	int (*process_info)(void *ctx, uint32_t pid, uint64_t *ret_start_ns, uint32_t *ret_parent,
			    char comm[17], char *exe, size_t n_exe, bool *ret_is_kernel);
	/* The current time on the records' clock if that is CLOCK_MONOTONIC; NULL: another clock.
	 * It shows that an mmap record is older than a maps read, and that a pid was reused before
	 * we looked. */
	uint64_t (*now)(void *ctx);
	/* The clock to measure how long an answer took; NULL: CLOCK_MONOTONIC. */
	uint64_t (*wall)(void *ctx);
};

struct host_limits {
	/* 0: the default given here */
	uint32_t max_processes; /* 65536 */
	uint32_t max_mappings;	/* executable mappings of one process; 65536 */
	uint32_t max_threads;	/* 262144 */
	uint32_t max_files;	/* file entries; 16384 */
	/* open descriptors; the least recently used is closed first; 1024 */
	uint32_t max_open_files;
	void (*free_user)(void *ctx, struct host_file *file);
	void (*free_process_user)(void *ctx, struct host_process *process);
	void *ctx;
	/* The kernel does not mark exec in COMM records (comm_exec, 3.16). Then a new name of a
	 * main thread may be an exec, and the mappings of its process are checked again. */
	bool exec_unmarked;
	/* The records come from a file and are the only source: any record makes its process known,
	 * and only open_file of the source is called. */
	bool recorded;
};

struct host_stats {
	uint64_t processes, files, open_files, threads; /* now */
	uint64_t maps_reads, maps_failed;
	uint64_t maps_queries; /* queries for the mapping at one address, instead of a read */
	uint64_t file_opens, file_open_failed, cgroup_reads;
	uint64_t refused_processes, refused_mappings, refused_threads, refused_files;
	uint64_t refused_cgroups;
	uint64_t cgroups;     /* now */
	uint64_t infos;	      /* calls of process_info() */
	uint64_t deferred;    /* questions to the broker postponed: too many in too short a time */
	uint64_t reused_pids; /* found by a different start time */
};

/* source and limits: copied. 0 or -ENOMEM. */
int host_new(struct host **ret, const struct host_source *source, const struct host_limits *limits);
struct host *host_free(struct host *h);
DEFINE_CLEANUP(struct host *, host_free)

/* ---- Side-band records, in time order (perf clock) ---- */
/* Call it before the records of a drain, which all lie in the past by now: so each file in them is
 * checked only once for having been overwritten. */
void host_begin(struct host *h);
void host_on_fork(struct host *h, uint32_t pid, uint32_t tid, uint32_t parent_pid,
		  uint32_t parent_tid, uint64_t time_ns);
void host_on_exit(struct host *h, uint32_t pid, uint32_t tid, uint64_t time_ns);
void host_on_comm(struct host *h, uint32_t pid, uint32_t tid, const char *comm, bool exec,
		  uint64_t time_ns);
/* key NULL: the record had no inode (plain MMAP). */
void host_on_mmap(struct host *h, uint32_t pid, uint64_t start, uint64_t length,
		  uint64_t file_offset, const struct host_file_key *key, const char *path,
		  uint64_t time_ns);
void host_on_cgroup(struct host *h, uint64_t id, const char *path);
/* Side-band records were lost: names, programs and mappings of all processes will be read again at
 * their next use. */
void host_on_lost(struct host *h);

/* ---- Look-ups, at a sample ---- */
/* The process, which is added and filled through the source if it is new. NULL: the table is full
 * (counted), or pid is 0 or (uint32_t)-1: idle, another pid namespace, or a task that is gone. */
struct host_process *host_process_get(struct host *h, uint32_t pid, uint32_t tid, uint64_t time_ns);
/* The process if it is known, even if it has exited, or NULL. Does not use the source. */
struct host_process *host_process_peek(struct host *h, uint32_t pid);
/*
 * For a side band of some tasks beside samples of all (sample_options.whole_cpus): is a sample one
 * of these tasks'? They are all that were forked, or executed a program, by the side band, and
 * those added here.
 */
bool host_is_target(struct host *h, uint32_t pid, uint32_t tid, uint64_t time_ns);
void host_add_target(struct host *h, uint32_t pid);
/* Name of a thread (its own, else the process's); never NULL. */
const char *host_thread_name(struct host *h, struct host_process *p, uint32_t tid);
/* The executable mapping at pc; on a miss /proc/PID/maps is read again, with a back-off for each
 * process (the delay doubles each time) and within a share of the wall clock for all. The maps of a
 * process with very many mappings are read at most every 10 s; in between the kernel is asked for
 * the mapping at pc (Linux 6.11). NULL: none. */
struct host_mapping *host_mapping_find(struct host *h, struct host_process *p, uint64_t pc,
				       uint64_t time_ns);
/* Opens the mapping's file if that was not tried yet, or failed only through other processes (a few
 * times). Its descriptor (owned by the host, valid until a later call opens another file) or -1. */
int host_file_open(struct host *h, struct host_process *p, struct host_mapping *m);
/* Files that could not be opened are tried again. */
void host_files_retry(struct host *h);
/* A file by its uid; NULL: it was freed. */
struct host_file *host_file_find(struct host *h, uint64_t uid);
/* The cgroup of a sample, by id (0: none), else from the thread's cgroup file at first sight. NULL:
 * unknown. Sets p->cgroup. */
const struct host_cgroup *host_cgroup_get(struct host *h, struct host_process *p, uint32_t tid,
					  uint64_t id);

/* The name of a cgroup's container, "web" or "NAMESPACE/POD/NAME": read at first use, and again
 * some windows later if it was not available. NULL: unknown. */
const char *host_container_name(struct host *h, const struct host_cgroup *cgroup);

/* Call after a window: frees processes that exited before it began, closes files that are no longer
 * used, forgets dead threads. */
void host_collect(struct host *h);
const struct host_stats *host_stats(const struct host *h);

/* ---- Parsers, public for their tests ---- */
struct host_maps_line {
	uint64_t start, end, file_offset, inode;
	uint32_t major, minor;
	bool writable, executable;
	const char *path; /* in the text, unescaped, without " (deleted)"; "" none */
	bool deleted;
};
/* One line of /proc/PID/maps (n bytes, no newline; may be modified). false: not such a line. */
bool host_parse_maps_line(char *line, size_t n, struct host_maps_line *ret);
/* Fills container id, runtime, pod uid and unit from a cgroup path. */
void host_parse_cgroup_path(const char *path, struct host_cgroup *ret);
/* The most specific path in the text of /proc/PID/cgroup (v1, v2, hybrid). false: none. */
bool host_parse_cgroup_file(char *text, size_t n, char *path, size_t size);
/*
 * Calls fn for each pair of an OTEL_RESOURCE_ATTRIBUTES, "key=value,key=value" with %XX. 0;
 * -EBADMSG: a pair is wrong; then fn was not called at all, as the specification wants it.
 */
int host_parse_resource_variable(const char *text,
				 void (*fn)(void *ctx, const char *key, const char *value),
				 void *ctx);
/*
 * The name of the container with that id, from the text of a file that opener_container_state()
 * opens. false: none.
 */
bool host_parse_container_state(const char *text, size_t n, const char *id, char *ret, size_t size);
