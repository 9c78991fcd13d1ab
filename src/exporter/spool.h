/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Payloads on disk: one file for each payload and destination, complete or absent, with checksums,
 * bounded in bytes, number and age. Of destinations it knows only the names. Each file has an owner
 * that waits for it; the spool tells the owner when it drops the file.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "src/exporter/encoding.h"
#include "util/cleanup.h"
#include "util/strtab.h"

struct spool;

struct spool_limits {
	uint64_t max_bytes;  /* of all files */
	uint64_t max_age_ns; /* 0: no limit */
	uint32_t max_files;  /* 0: SPOOL_MAX_FILES */
};
#define SPOOL_MAX_FILES 16384

/* A payload to write; everything is borrowed. */
struct spool_item {
	const char *destination;
	uint64_t id, n_samples, time_unix_ns;
	uint32_t n_halvings;	/* that made it */
	enum encoding encoding; /* of body */
	const uint8_t *body;
	size_t n_body;
};

/* A file of the spool, which owns it; valid until spool_remove() or the call of spool_lost_fn. */
struct spool_file {
	TAILQ_ENTRY(spool_file) link; /* by seq */
	uint64_t seq;		      /* the order in which payloads came; the file's name */
	uint64_t id, n_samples, n_body;
	uint64_t bytes;	  /* of the file */
	int64_t since_ns; /* when it came (CLOCK_MONOTONIC); below 0: before the boot */
	uint32_t crc;	  /* of the body */
	uint32_t n_halvings;
	strid destination;
	enum encoding encoding;
	bool busy;   /* being sent, or not safe yet: the limits spare it */
	void *owner; /* NULL: no destination of that name */
};

enum spool_loss {
	SPOOL_LOSS_FULL,    /* it made room for newer ones */
	SPOOL_LOSS_AGE,	    /* it is older than max_age_ns */
	SPOOL_LOSS_CORRUPT, /* it was set aside, or has disappeared */
};

/* The spool drops f: its owner must forget it now, since it is freed afterwards. */
typedef void (*spool_lost_fn)(void *ctx, const struct spool_file *f, enum spool_loss why);

/*
 * Takes dir_fd, a directory that is ours alone; path: its name in the log. Reads the files that an
 * earlier process left: deletes half-written ones, and sets damaged ones aside; neither is an
 * error. The limits apply from spool_trim() on. 0 or -errno.
 */
int spool_open(struct spool **ret, int dir_fd, const char *path, const struct spool_limits *limits,
	       spool_lost_fn lost, void *ctx);
struct spool *spool_free(struct spool *s);
DEFINE_CLEANUP(struct spool *, spool_free)

/* The files in their order: spool_next(s, NULL) is the oldest; NULL at the end. */
struct spool_file *spool_next(const struct spool *s, const struct spool_file *f);
/* The name of its destination; borrowed. */
const char *spool_destination(const struct spool *s, const struct spool_file *f);

/* The next number in the order, for a payload that has just come. */
uint64_t spool_take_seq(struct spool *s);
/*
 * Writes a payload with that number. spool_commit() makes up to SPOOL_BATCH of them safe; until
 * then the file is busy. 0; -EFBIG: it exceeds the limits by itself; another -errno: it cannot be
 * written, which is logged once until a write succeeds again.
 */
int spool_write(struct spool *s, uint64_t seq, const struct spool_item *item, void *owner,
		struct spool_file **ret);
#define SPOOL_BATCH 16
/* Makes the files written since the last call safe on disk. 0; -errno: all of them are deleted. */
int spool_commit(struct spool *s);
/* Is the spool within its limits? */
bool spool_fits(const struct spool *s);
/* Drops the oldest files beyond the limits, but not newest. */
void spool_keep_limits(struct spool *s, struct spool_file *newest);
/*
 * Reads the body of f; the caller frees *ret (f->n_body bytes). 0; -EBADMSG: the file was damaged
 * or has disappeared; lost() was called, and f is freed; another -errno: try again later.
 */
int spool_get(struct spool *s, struct spool_file *f, uint8_t **ret);
/* f is settled: deletes it. */
void spool_remove(struct spool *s, struct spool_file *f);

/* Drops files beyond the limits. now: CLOCK_MONOTONIC. */
void spool_trim(struct spool *s, uint64_t now);
/* When the next file becomes too old (CLOCK_MONOTONIC); UINT64_MAX: never. */
uint64_t spool_deadline(const struct spool *s);

/* May spool_write() succeed? After a failure the answer is no for some seconds. */
bool spool_usable(const struct spool *s, uint64_t now);
/* When to try again (CLOCK_MONOTONIC); 0: at once. */
uint64_t spool_retry_ns(const struct spool *s);
/* Forgets earlier failures. */
void spool_retry_now(struct spool *s);

const char *spool_path(const struct spool *s);
