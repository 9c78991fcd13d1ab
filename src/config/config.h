/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Configuration: one INI file, its drop-ins (FILE.d/NAME.conf sorted by name), then the OTEL_*
 * environment and DEBUGINFOD_URLS. One table (table.c) says for every key its section, type,
 * default, range and help text; --print-config, the default config file and perfwalk.conf(5) are
 * checked against it.
 *
 * Errors are collected with file:line, the key, what was expected and the nearest known key, and
 * all are reported, not only the first.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "util/cleanup.h"
#include "util/log.h"

enum config_protocol { CONFIG_HTTP_PROTOBUF, CONFIG_GRPC, CONFIG_HTTP_JSON };
enum config_preset { CONFIG_COLLECTOR, CONFIG_PYROSCOPE, CONFIG_PARCA };
enum config_compression { CONFIG_NONE, CONFIG_GZIP, CONFIG_ZSTD };

/* A value for [attributes] deny: the attributes that may hold secrets. */
#define CONFIG_SECRET_ATTRIBUTES "process.command*, process.environment_variable.*"

struct config_export {
	char *name; /* NAME of [export:NAME] */
	char *endpoint, *profiles_endpoint;
	char **headers; /* n "Name: value" lines */
	size_t n_headers;
	char *headers_file; /* lines "Name: value"; read by the broker, mode 0600 wanted */
	enum config_protocol protocol;
	enum config_compression compression;
	enum config_preset preset;
	uint64_t timeout_ns;
	char *certificate, *client_certificate, *client_key;
	bool insecure_skip_verify;
	char *server_name_override;
	char *proxy;		    /* a URL, or "none" */
	uint64_t max_request_bytes; /* before compression; 64 MiB */
	uint64_t max_queue_bytes;
	uint64_t max_elapsed_ns;
};

/* An event that is sampled besides CPU time. This room does not know which events exist. */
struct config_event {
	char *name;		     /* NAME of [event:NAME] */
	char *event;		     /* the event; NULL: it is called as name */
	char *filter;		     /* of a tracepoint; NULL: none */
	uint32_t samples_per_second; /* 0: as in [profiler], or by period */
	uint32_t period;	     /* events between samples; 0: by rate */
	uint32_t budget;	     /* samples a second on each CPU, by period; 0: no limit */
	uint32_t stack_size_bytes;   /* 0, the default: as in [profiler] */
	bool user, kernel;	     /* sample user code, kernel code; at least one */
};

/* The criteria of [filter], for what is sampled or not: a list each, values separated by commas. */
enum config_filter {
	CONFIG_FILTER_COMM,	 /* globs */
	CONFIG_FILTER_USER,	 /* uids; names are converted when they are read */
	CONFIG_FILTER_UNIT,	 /* globs */
	CONFIG_FILTER_CONTAINER, /* prefixes of ids and names */
	CONFIG_FILTER_CGROUP,	 /* paths */
	CONFIG_FILTER_CPUS,	 /* numbers and ranges */
	CONFIG_FILTER_SERVICE,	 /* globs */
	CONFIG_N_FILTERS
};

/* How mangled names are shown. */
enum config_demangle { CONFIG_DEMANGLE_FULL, CONFIG_DEMANGLE_SIMPLE, CONFIG_DEMANGLE_NONE };
/* The name of the i-th style; NULL: no more. */
const char *config_demangle_name(unsigned int i);
/* Reads "full", "simple" or "none"; false: something else. */
bool config_demangle_parse(const char *text, enum config_demangle *ret);

/* The effect of a system call that a child does not need. */
enum config_seccomp { CONFIG_SECCOMP_ERRNO, CONFIG_SECCOMP_KILL, CONFIG_SECCOMP_NO };

#define CONFIG_MAX_EXPORTS	   16
#define CONFIG_MAX_EVENTS	   5
#define CONFIG_DEBUGINFOD_MAX_URLS 16
/* The most bytes of a value, header or item of a list, which goes to a process in one message. */
#define CONFIG_VALUE_MAX_BYTES 8000

#define CONFIG_DEFAULT_FILE  SYSCONFDIR "/perfwalk/perfwalk.conf"
#define CONFIG_DEFAULT_STORE LOCALSTATEDIR "/lib/perfwalk/store" /* needs config.h */

struct config {
	/* [filter] */
	char *include[CONFIG_N_FILTERS], *exclude[CONFIG_N_FILTERS]; /* NULL: none */
	/* [profiler] */
	uint32_t samples_per_second;   /* 19 */
	uint64_t reporter_interval_ns; /* 10 s; 1 s .. 1 h */
	uint32_t stack_size_bytes; /* 0, the default: auto; else a multiple of 8, 1 KiB .. 65528 */
	uint64_t ring_size_bytes;  /* per CPU; power of two pages; 2 MiB */
	bool kernel_stacks;	   /* yes */
	bool interpreters;	   /* yes */
	bool native_frames;	   /* yes */
	bool memory_growth;	   /* no; as [event:memory_growth] */
	uint32_t max_frames;	   /* 1024 */
	/* [off_cpu] */
	bool off_cpu_locks, off_cpu_wall; /* no; locks, wall */
	bool off_cpu;			  /* no; enabled */
	bool off_cpu_idle;		  /* no; idle */
	/* [alloc] */
	bool alloc;	       /* no; enabled */
	uint32_t alloc_budget; /* 1000 */
	/* [event:NAME] */
	struct config_event *events;
	size_t n_events;
	/* [symbolizer] */
	bool source_lines;	       /* no; captures set it */
	bool inline_frames;	       /* no; captures set it */
	enum config_demangle demangle; /* full */
	/* [limits] */
	uint32_t cpu_ppm;		     /* of all CPUs of the host; 1000000: no limit; 2% */
	uint64_t window_memory_bytes;	     /* 32 MiB */
	uint64_t unwind_rows_bytes;	     /* 8 MiB */
	uint64_t symbols_bytes;		     /* cached symbol tables and lines; 32 MiB */
	uint64_t symbolizer_memory_bytes;    /* address space of the symbolizer; 1 GiB */
	uint64_t symbolizer_file_timeout_ns; /* one file may hold the symbolizer this long; 3 s */
	uint32_t max_processes;		     /* 65536 */
	uint32_t max_open_files;	     /* files held open for walking and naming; 1024 */
	/* [process] */
	char *control;		     /* path of the control socket; /run/perfwalk/control */
	char *user;		     /* "perfwalk"; falls back to nobody, said in the log */
	char *network_user;	     /* "perfwalk-net"; falls back to the one above */
	enum config_seccomp seccomp; /* errno */
	bool landlock;		     /* yes */
	/* [spool] */
	bool spool_enabled;	   /* yes */
	char *spool_path;	   /* NULL: perfwalk/spool where the host keeps state */
	uint64_t spool_max_bytes;  /* 256 MiB */
	uint64_t spool_max_age_ns; /* 24 h; 0: any */
	/* [store] */
	bool store_enabled;	   /* no; without any export it is used all the same */
	char *store_path;	   /* NULL: perfwalk/store where the host keeps state */
	uint64_t store_max_bytes;  /* 1 GiB */
	uint64_t store_max_age_ns; /* 7 days; 0: any */
	/* [debuginfod] */
	char *debuginfod_urls;		    /* NULL: not asked; else with blanks between them */
	char *debuginfod_cache_path;	    /* NULL: perfwalk/debuginfod where caches are */
	uint64_t debuginfod_cache_bytes;    /* 1 GiB */
	uint64_t debuginfod_max_file_bytes; /* 256 MiB */
	uint64_t debuginfod_timeout_ns;	    /* 2 minutes */
	/* [metrics] */
	char *metrics_listen; /* NULL: nowhere */
	/* [attributes] */
	char *attributes_allow, *attributes_deny; /* globs; NULL: all, and none */
	/* [resource] key = value */
	char **resource; /* n_resource pairs: key, value, key, value ... */
	size_t n_resource;
	char *service_name; /* OTEL_SERVICE_NAME; NULL: per process */
	/* [log] */
	enum log_level log_level; /* info */
	/* [export:NAME] */
	struct config_export *exports;
	size_t n_exports;
};

/*
 * Loads path (NULL: no file, defaults and environment only), which may be missing if it has
 * drop-ins. env: apply the OTEL_* variables, too; DEBUGINFOD_URLS always applies. 0 and *ret, which
 * the caller owns; or -errno, and errors gets all errors, one a line: "file:line: text", "file:
 * text" or "environment: VARIABLE: text". errors also gets a line for each variable that is
 * ignored, on success, too.
 *
 * A config without destinations is valid here: a caller that needs one checks that.
 */
int config_load(struct config **ret, const char *path, bool env, FILE *errors);
/* Does the file exist, or a directory of drop-ins for it? */
bool config_exists(const char *path);
struct config *config_free(struct config *c);
DEFINE_CLEANUP(struct config *, config_free)

/*
 * Adds value to an include list, as a line in [filter] would. 0; -ENOMEM; -EINVAL: error (n_error
 * bytes) says what was expected.
 */
int config_include(struct config *c, enum config_filter filter, const char *value, char *error,
		   size_t n_error);
/* Calls fn for each item of a list (n characters, not terminated) until it fails. 0, or what fn
 * failed with. list NULL: no items. */
int config_list_each(const char *list, int (*fn)(void *ctx, const char *item, size_t n), void *ctx);

/*
 * Appends the lines of x->headers_file, if it is set, to x->headers. config_load() does not,
 * because only the privileged process can read that file. 0 or -errno, and errors gets the reason.
 */
int config_export_read_headers(struct config_export *x, FILE *errors);

/* Prints the effective config as an INI file; header values as "***". */
void config_print(const struct config *c, FILE *out);
/* Prints the commented default config, every key with its help: the text of etc/perfwalk.conf. */
void config_print_default(FILE *out);
