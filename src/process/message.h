/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Messages between the processes: fixed-size messages over SOCK_SEQPACKET pairs. Each type has its
 * own size and number of descriptors. A message of another size, an unknown type or a wrong number
 * of descriptors is an error of the peer and ends the connection.
 *
 * Sockets of a child:
 *	control	(fd 3)	broker -> child: set-up, peers, orders; child -> broker: results
 *	ask	(fd 4)	child -> broker: one request, one answer (same seq); only children that may
 *	peers		readers -> profiler -> symbolizer -> exporter, screen and metrics; each
 *			comes in a MESSAGE_PEER
 *
 * Both sides are the same binary on one machine: native layout. But a peer may be compromised:
 * receivers check every field they use.
 */
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/process/status-page.h"
#include "util/file-identity.h"

#define PROTOCOL_CONTROL_FD	3
#define PROTOCOL_ASK_FD		4
#define PROTOCOL_PATH_MAX	4096
#define PROTOCOL_TEXT_MAX	8192
#define PROTOCOL_BLOB_MAX	2048
#define PROTOCOL_MAX_OUTPUTS	16
#define PROTOCOL_STATISTICS_MAX 9216
#define MESSAGE_MAX_CONTEXT	640
#define MESSAGE_MAX_STANDS	64

enum message_type {
	/* broker -> child, in order: set-up, texts, then START; a reload may repeat the set-up */
	MESSAGE_SETUP,	   /* one struct of the role (setup.h) as a blob; fd: status page */
	MESSAGE_TEXT,	   /* one string of the set-up */
	MESSAGE_FILE,	   /* a descriptor of the set-up: an output file, kallsyms */
	MESSAGE_START,	   /* the set-up is complete */
	MESSAGE_PEER,	   /* fd: the socket to a neighbour, new after its restart */
	MESSAGE_CPU_ADD,   /* fds: sample event, and the side band of the first event */
	MESSAGE_CPU_EVENT, /* fd: the new sample event that writes into the CPU's ring */
	MESSAGE_CPU_REMOVE,
	MESSAGE_QUARANTINE, /* this file is set aside, or no longer */
	MESSAGE_FLUSH, /* end the window now; status_page.flushed says when it was handed over */
	MESSAGE_PAUSE, /* the events are paused or resumed */
	MESSAGE_LOG_LEVEL,   /* a new log level for the profiler */
	MESSAGE_LOAD,	     /* the cost of all processes, for the screen */
	MESSAGE_RESIZE,	     /* the terminal has another size */
	MESSAGE_FETCH,	     /* download a debug file */
	MESSAGE_STOOD_STILL, /* the event for ends of allocated blocks stood still for a while */
	MESSAGE_CLIENT,	     /* to a reader: a process to read; fds: its memory and maps */
	/* to the profiler: look for an interpreter in a process before its first sample; pid 0:
	 * that was the last one. The profiler sends the last one back when it has looked at all. */
	MESSAGE_LOOK,
	MESSAGE_TARGET, /* to the profiler: a process to sample, see sample_options.whole_cpus */
	MESSAGE_STANDS, /* to the profiler: what threads did when the events began */
	MESSAGE_PLACE,	/* to the symbolizer: the place of the profiler that has exited */
	MESSAGE_LOST,	/* to the symbolizer: samples lost with their payloads */
	MESSAGE_STOP,	/* finish the current work and exit */
	/* child -> broker */
	/* the profiler wants stack copies of another size; the answer, which follows the new
	 * events, is the size in force */
	MESSAGE_STACK_SIZE,
	/* the profiler has enough samples of blocks or wake-ups of a CPU, for a quarter of a second
	 */
	MESSAGE_ENOUGH,
	/* the profiler would do with a quarter of all samples of blocks, or does so no longer */
	MESSAGE_PLACES_KNOWN,
	MESSAGE_RESULT,	 /* the symbolizer has written all outputs; the user has quit the screen */
	MESSAGE_FETCHED, /* from the fetcher; passed on to the symbolizer */
	/* the profiler has seen an interpreter in a process; to the profiler: one that was refused
	 * may be read now */
	MESSAGE_INTERPRETER,
	MESSAGE_CLIENT_GONE, /* the process no longer has it; passed on to the readers */
	/* a reader asks for the number of a thread in its own pid namespace; the answer has the
	 * same type */
	MESSAGE_THREAD,
	/* asks and their answers */
	MESSAGE_ASK_MAPS,
	MESSAGE_ASK_FILE,
	MESSAGE_ASK_CGROUP,
	MESSAGE_ASK_CGROUP_PATH,
	MESSAGE_ASK_CONTAINER,
	MESSAGE_ASK_PROCESS,
	MESSAGE_ASK_USER,
	MESSAGE_ASK_PERF_MAP,
	MESSAGE_ASK_MEMORY,   /* of a process that has a runtime's library mapped */
	MESSAGE_ASK_RESIDENT, /* how much of a process is in memory; fd: its statm */
	MESSAGE_ASK_KILLS,    /* for want of memory; fd: vmstat, or lines of the kernel's log */
	MESSAGE_ASK_CONTEXT,  /* what a process publishes; fd: a file with a struct context_file */
	MESSAGE_ASK_DEBUG_FILE,
	MESSAGE_ASK_SPLIT_FILE,
	MESSAGE_ASK_RECORDED_FILE, /* of a process in a perf.data file */
	MESSAGE_ASK_COPY,	   /* also sample a copy of the allocation library, mapped there */
	MESSAGE_ASK_ALLOCATOR,	   /* also sample a runtime's own allocator, mapped there */
	MESSAGE_ASK_TABLE,	   /* of the allocation library in a process; fd: the table */
	MESSAGE_ASK_BLOCKED,	/* the stack of a thread; fd: a file with a struct blocked_thread */
	MESSAGE_ASK_STATISTICS, /* of the whole tree */
	MESSAGE_ASK_FLUSH,	/* end the window now */
	MESSAGE_ANSWER,		/* error; fd if the request was for a file */
	MESSAGE_ANSWER_TEXT,	/* cgroup path */
	MESSAGE_ANSWER_PROCESS,
	MESSAGE_ANSWER_USER,
	MESSAGE_ANSWER_STATISTICS, /* struct statistics (statistics.h) as a blob */
	/* broker -> opener: an ASK_FILE whose mapping the kernel has reported */
	MESSAGE_ASK_SEEN_FILE,
	/* opener -> broker: error, or fd and its identity; or the fds of memory, and of a file to
	 * be judged first */
	MESSAGE_OPENED,
	/* profiler -> reader and back: the context of a thread that is blocked */
	MESSAGE_CONTEXT,
	/* reader -> profiler */
	MESSAGE_FRAMES, /* fd: the ring with the reader's records (frame-ring.h) */
	/* profiler -> symbolizer */
	MESSAGE_MODULE,	  /* fd: the file of a module uid */
	MESSAGE_PERF_MAP, /* fd: the perf map of a process */
	MESSAGE_JITDUMP,  /* fd: the jitdump file of a process */
	MESSAGE_KALLSYMS, /* fd: the kallsyms of a recording, instead of this host's */
	MESSAGE_WINDOW,	  /* fd: a closed window */
	/* symbolizer -> profiler */
	MESSAGE_WINDOW_DONE,
	MESSAGE_MODULE_GONE, /* the module's descriptor was closed: send it again when needed */
	/* symbolizer -> screen */
	MESSAGE_TABLE, /* fd: the table of a window for a live view (src/screen/wire.h) */
	/* symbolizer -> exporter and back; to metrics only one way, with consecutive ids */
	MESSAGE_PAYLOAD, /* fds: a finished request, and the part that only the store keeps */
	MESSAGE_PAYLOAD_DONE,
	MESSAGE_N_TYPES
};

/* The kind of a MESSAGE_TEXT or MESSAGE_FILE; it defines the meaning of index. */
enum text_kind {
	TEXT_HOST_NAME,
	TEXT_HOST_ID,
	TEXT_KERNEL_RELEASE,
	TEXT_TITLE,
	TEXT_ASKED, /* the event that a capture is made for */
	TEXT_SERVICE_NAME,
	TEXT_FILTER,	    /* a rule, see filter-rule.h */
	TEXT_ALLOW,	    /* globs of keys of resource attributes to keep; "": all */
	TEXT_DENY,	    /* globs of keys to leave out */
	TEXT_REDUCED,	    /* the reduced quality, from statistics_reduced() */
	TEXT_RESOURCE,	    /* a key, and in the next text its value */
	TEXT_OUTPUT_FORMAT, /* name of the format of the next output, instead of its suffix */
	TEXT_OUTPUT,	    /* path of an output file, with its descriptor */
	TEXT_KALLSYMS,	    /* with its descriptor */
	TEXT_SUMMARY,	    /* standard output, with its descriptor */
	TEXT_INPUT,	    /* path of a recorded file, with its descriptor */
	TEXT_SYMBOL,	    /* of a report: expression for functions */
	TEXT_COMM,	    /* of a report: glob for processes */
	TEXT_CONTAINER,	    /* of a report: glob for container ids and names */
	TEXT_SERVICE,	    /* of a report: glob for services */
	TEXT_TRACE,	    /* of a report: a trace's id */
	TEXT_SPAN,	    /* of a report: a span's id */
	TEXT_EVENT,	    /* of a recorded file: which of its events */
	TEXT_EXPORT_NAME,   /* begins the next destination */
	TEXT_EXPORT_ENDPOINT,
	TEXT_EXPORT_PROFILES_ENDPOINT,
	TEXT_EXPORT_HEADER,
	TEXT_EXPORT_CERTIFICATE,
	TEXT_EXPORT_CLIENT_CERTIFICATE,
	TEXT_EXPORT_CLIENT_KEY,
	TEXT_EXPORT_SERVER_NAME,
	TEXT_EXPORT_PROXY,
	TEXT_KERNEL_NOTES, /* with its descriptor */
	TEXT_STORE,	   /* path of the store, with its descriptor */
	TEXT_LISTEN,	   /* address of the metrics server, with the socket */
	TEXT_SPOOL,	   /* path of the spool, with its descriptor; before the destinations */
	TEXT_DEBUGINFOD,   /* URL of a server */
	TEXT_DEBUG_CACHE,  /* path of the cache of debug files, with its descriptor */
	TEXT_VARIABLE,	   /* NAME=VALUE of the environment, for children with the network */
	TEXT_LEDGER,	   /* of the rings, with its descriptor (src/sample/ledger.h) */
	TEXT_BLOCKS,	   /* in use, with their descriptor (src/process/kept-blocks.h) */
	TEXT_N_KINDS
};

/* Where to look for a file that was mapped in a perf.data recording. */
enum recorded_place {
	RECORDED_CACHE,	   /* perf's own store, ~/.debug, by build id */
	RECORDED_KALLSYMS, /* the same, by the kernel's build id: a copy of /proc/kallsyms */
	RECORDED_PATH,	   /* its path: the caller checks the build id, else the inode */
	RECORDED_PERF_MAP, /* /tmp/perf-PID.map */
	RECORDED_N_PLACES
};

enum peer {
	PEER_PROFILER,
	PEER_SYMBOLIZER,
	PEER_EXPORTER,
	PEER_SCREEN,
	PEER_METRICS,
	PEER_FETCHER,
	PEER_READER,
	PEER_N
};
/* "profiler" ... */
const char *peer_name(enum peer who);

/* One process of the tree. Some kinds have several, with indexes from 0. */
struct peer_id {
	enum peer kind;
	uint32_t index;
};

/* The only process of a kind. */
static inline struct peer_id peer_only(enum peer kind)
{
	return (struct peer_id){kind, 0};
}

/* Interpreters of one process that are read. */
enum { CLIENT_MAX_IMAGES = 4 };

/* What a client's threads publish, and where. */
struct client_threads {
	/* As in struct thread_variable: where their contexts are, and of glibc's threads the size
	 * and the CPU, also those of a Go program. */
	uint64_t context_module;
	int64_t context_offset;
	uint64_t context_musl_thread;
	uint32_t glibc_bytes;
	uint32_t has_context;
	uint64_t go_cycle;   /* where cycles of its garbage collector are counted; 0: not known */
	uint32_t go_version; /* for go_layout_find(); 0: no labels of goroutines */
	uint32_t context_node;
	int32_t cpu;
	uint32_t reserved;
};

struct message {
	uint32_t type; /* enum message_type */
	uint32_t seq;  /* of an ask, copied to its answer; else 0 */
	union {
		struct {
			uint32_t n;
			uint8_t bytes[PROTOCOL_BLOB_MAX];
		} setup;
		struct {
			uint32_t kind, n; /* enum text_kind; length without the 0 */
			char text[PROTOCOL_TEXT_MAX];
		} text;
		struct {
			uint32_t peer, index; /* enum peer; as in peer_id */
			uint64_t start;	      /* how often it has been started by now */
		} peer;
		struct {
			int32_t cpu;
			uint32_t index;	      /* of the event; all of a CPU are removed together */
			uint32_t came_online; /* added: the CPU has just come online */
			uint32_t reserved;
			uint64_t sample_ring_bytes, sideband_ring_bytes;
		} cpu;
		struct {
			struct file_identity file;
			uint32_t for_peer; /* enum peer: the process that must not read it */
			uint32_t lifted;   /* 1: it may read it again */
		} quarantine;
		struct {
			uint64_t id; /* of the request, growing */
		} flush;
		struct {
			uint32_t paused;
		} pause;
		struct {
			uint32_t known;
		} places;
		struct {
			uint32_t level; /* enum log_level */
		} log;
		struct {
			uint32_t bytes;
		} stack_size;
		struct {
			/* sums over all processes: CPU time since their starts, and memory */
			uint64_t cpu_ns, rss_bytes;
		} load;
		struct {
			int32_t code;	  /* 0 or -errno */
			uint32_t written; /* complete outputs: bit i is the i-th */
			/* -errno of the others; 0: not begun */
			int32_t output_errors[PROTOCOL_MAX_OUTPUTS];
		} result;
		struct mapped_file_name {
			uint32_t pid, alternate_pid; /* alternate 0: none */
			uint64_t start, end, inode;
			uint32_t major, minor;
			char path[PROTOCOL_PATH_MAX];
		} ask_file;
		struct {
			struct mapped_file_name file;
			uint64_t picked[2], ended; /* offsets in the file; ended 0: none */
			uint64_t fetched;	   /* as in struct uprobe_site */
			uint32_t n_picked, reserved;
		} ask_allocator;
		struct {
			uint32_t pid;  /* maps, perf map, memory ...; cgroup: a tid */
			uint32_t copy; /* maps: 1: a copy of them; kills: 1: lines of the log */
			/* memory: where the file begins of which the asker thinks that it holds a
			 * runtime; 0: its name says so */
			uint64_t image;
		} ask_pid;
		struct {
			uint32_t pid;	  /* in our pid namespace; thread: its tid */
			uint32_t own_pid; /* in its own; client and thread only; 0: unknown */
			/* the first bytes of the interpreters' files; 0: no more */
			uint64_t images[CLIENT_MAX_IMAGES];
			/* of the files' filesystem, which does not block */
			uint32_t major, minor;
			struct client_threads threads;
			uint64_t robust_list; /* of a thread; 0: unknown */
			uint32_t in_front;    /* 1: a thread with a real-time priority */
			uint32_t stat;	      /* 1: the answer about a thread needs its stat file */
			/* Interpreter only: when the process started, since boot; 0: unknown. */
			uint64_t start_time_ns;
		} client; /* also interpreter, client gone, thread, look, target */
		struct {
			uint64_t id;
		} ask_cgroup_path;
		struct {
			char id[65];
		} ask_container;
		struct {
			uint32_t pid;	     /* look in its root first; 0: none */
			uint32_t n_build_id; /* 0: none */
			uint8_t build_id[64];
			uint32_t fetch;		      /* 1: may ask a server: -EINPROGRESS */
			char path[PROTOCOL_PATH_MAX]; /* for opener_debug_file() */
		} ask_debug_file;
		struct {
			int32_t error; /* fetched: -errno: no server has it, or not yet */
			/* length of build_id. fetched: 0: ask again, for every file (error 0: a
			 * fetcher has started) or for the files under way (the fetcher died) */
			uint32_t n;
			uint8_t build_id[64];
		} fetch;
		struct {
			char path[PROTOCOL_PATH_MAX];
		} ask_split_file;
		struct {
			uint32_t place; /* enum recorded_place */
			uint32_t pid;
			uint32_t n_build_id, major, minor, reserved;
			uint64_t inode; /* n_build_id 0 */
			uint8_t build_id[20];
			char path[PROTOCOL_PATH_MAX];
		} ask_recorded_file;
		struct {
			uint32_t pid, tid;
			uint64_t sp, ip;	    /* where it stood; 0, 0: unknown */
			uint32_t n_bytes, reserved; /* of the stack; up to BLOCKED_MAX_BYTES */
		} ask_blocked;
		struct {
			uint32_t n, n_left; /* the latter: of how many we never tell */
			struct message_stands {
				uint64_t time_ns; /* CLOCK_MONOTONIC */
				uint64_t sp, ip;
				uint32_t pid, tid;
				uint32_t runs; /* 1: it is not blocked, and has no place */
				uint32_t reserved;
			} threads[MESSAGE_MAX_STANDS];
		} stands;
		struct {
			uint64_t time_ns; /* when the block began; copied to the answer */
			uint32_t pid, tid, cpu;
			/* Answer: the bytes as in struct frame_record_context; 0: see span. */
			uint32_t n;
			uint32_t span, reserved; /* answer: enum frame_record_span */
			uint64_t read_ns;	 /* answer: when they were read, CLOCK_MONOTONIC */
			uint8_t bytes[MESSAGE_MAX_CONTEXT];
		} context;
		struct {
			uint64_t address;
			uint32_t pid, reserved;
		} ask_table;
		struct {
			uint64_t start_time_ns; /* of the process, since boot; 0: unknown */
			uint64_t published_ns;	/* of the last context read; 0: none */
			uint32_t pid;
			uint32_t environment; /* 1: with variables of its environment */
		} ask_context;
		struct {
			/* 0 or -errno; -EUCLEAN: the file is set aside for this process */
			int32_t error;
		} answer;
		struct {
			int32_t error;
			uint32_t reserved;
			/* 0: it is in memory, or in /proc; of the second file, if there are two */
			struct file_identity file;
		} opened;
		struct {
			int32_t error;
			char text[PROTOCOL_PATH_MAX];
		} answer_text;
		struct {
			int32_t error;
			uint32_t uid; /* effective */
		} answer_user;
		struct {
			int32_t error;
			uint32_t n;
			uint8_t bytes[PROTOCOL_STATISTICS_MAX];
		} answer_statistics;
		struct {
			int32_t error;
			uint32_t parent_pid;
			uint64_t start_time_ns; /* since boot */
			uint32_t is_kernel;
			uint32_t has_ended; /* 1: all of its threads have */
			char comm[16];
			char executable_path[PROTOCOL_PATH_MAX];
		} answer_process;
		struct {
			uint64_t uid;
			/* a process that had it mapped; 0: one in a recording */
			uint32_t pid, reserved;
			char path[PROTOCOL_PATH_MAX];
		} module;
		struct {
			uint64_t start_time_unix_ns;
			uint32_t pid, reserved;
		} perf_map; /* jitdump, too */
		struct {
			uint64_t id;
			uint64_t n_samples; /* payload */
			uint64_t made_ns;   /* payload: when it was made (CLOCK_MONOTONIC) */
			uint64_t order;	    /* payload: see payloads_push() */
		} item;			    /* window done, module gone, payload, payload done */
		struct {
			uint64_t id;
			uint64_t n_samples;
			struct sample_place begin, end;
			/* Samples in windows that this profiler dropped. */
			uint64_t n_dropped[STATUS_MAX_EVENTS];
			/* The event of switches, which has no type; UINT32_MAX: there is none. */
			uint32_t switches, reserved;
		} window;
		struct sample_place place;
		struct {
			uint64_t n_samples; /* since the start of the broker */
		} lost;
	};
};

/* The allocation library's table: addresses of the blocks that it tracks; 0: a free place. */
#define LIBRARY_TABLE_BYTES (1 << 20)

/* What a process publishes of itself: the head of a file, which variables of its environment
 * follow, each with its 0, and then the payload of its process context. */
#define CONTEXT_MAX_ENVIRONMENT 16384
#define CONTEXT_MAX_PAYLOAD	65536
struct context_file {
	uint64_t published_ns; /* the context's time stamp */
	int32_t error;	       /* why there is no payload: -ENOENT: no context; -EALREADY; others */
	uint32_t n_environment, n_payload;
	uint32_t reserved;
};

/* A blocked thread: the head of a file, which n_bytes of its stack follow. */
#define BLOCKED_MAX_BYTES 65536
struct blocked_thread {
	int64_t call; /* the system call that it is in; -1: none */
	uint64_t args[6];
	uint64_t sp, ip;
	char wchan[64];	  /* the kernel's function, from /proc/PID/wchan; "": unknown */
	uint32_t own_tid; /* in its own pid namespace */
	uint32_t reserved;
	uint64_t n_bytes;
};

/* The size of a message of that type, in bytes; 0: no such type. */
size_t message_size(uint32_t type);

/* Sends m (of its type's size). fds are the caller's. 0; -EAGAIN: a non-blocking socket is full;
 * another -errno. */
int message_send(int sock, const struct message *m, const int *fds, size_t n_fds);
/* Does the same without waiting on any socket: -EAGAIN if the peer does not read. */
int message_try_send(int sock, const struct message *m, const int *fds, size_t n_fds);

/*
 * Receives one message into m and its descriptors (at most 2, the rest -1; owned by the caller).
 * 1: a message; 0: end of file; -EAGAIN; -EBADMSG: not a message of this protocol; -errno.
 */
int message_recv(int sock, struct message *m, int ret_fds[2], int flags);

/* Copies text into a fixed field, cut to fit, always terminated and zero-filled. */
void message_set_text(char *field, size_t size, const char *text);
/* True: the fixed text field is terminated within its size. */
bool message_text_ok(const char *field, size_t size);
