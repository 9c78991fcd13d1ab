/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Payloads on disk: one file for each payload and destination, complete or absent, checked by sums,
 * bounded in bytes, number and age. Knows nothing of destinations but their names. Each
 * file has an owner that waits for it and learns when the spool gives it up.
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
	uint64_t max_age_ns; /* 0: any */
	uint32_t max_files;  /* 0: SPOOL_MAX_FILES */
};
#define SPOOL_MAX_FILES 16384

/* What is to be kept: all borrowed. */
struct spool_item {
	const char *destination;
	uint64_t id, n_samples, time_unix_ns;
	enum encoding encoding; /* of body */
	const uint8_t *body;
	size_t n_body;
};

/* A file of the spool. Owned by it; valid until spool_remove() or the call of spool_lost_fn. */
struct spool_file {
	TAILQ_ENTRY(spool_file) link; /* by seq */
	uint64_t seq;		      /* the order in which payloads came; the file's name */
	uint64_t id, n_samples, n_body;
	uint64_t bytes;	  /* of the file */
	int64_t since_ns; /* CLOCK_MONOTONIC when it came, before the boot too */
	uint32_t crc;	  /* of the body */
	strid destination;
	enum encoding encoding;
	bool busy;   /* being sent or not safe yet: the limits pass it over */
	void *owner; /* NULL: no destination of that name */
};

enum spool_loss {
	SPOOL_LOSS_FULL,    /* the oldest went for the sake of newer ones */
	SPOOL_LOSS_AGE,	    /* older than max_age */
	SPOOL_LOSS_CORRUPT, /* set aside, or gone */
};

/* f is given up: its owner forgets it now, and it is freed afterwards. */
typedef void (*spool_lost_fn)(void *ctx, const struct spool_file *f, enum spool_loss why);

/*
 * Takes over dir_fd, a directory that is ours alone; path: its name in the log. Reads what an
 * earlier process left there: half-written files are deleted, damaged ones set aside, and none of
 * that is an error. Nothing is given up for the limits before spool_trim(). 0 or -errno.
 */
int spool_open(struct spool **ret, int dir_fd, const char *path, const struct spool_limits *limits,
	       spool_lost_fn lost, void *ctx);
struct spool *spool_free(struct spool *s);
DEFINE_CLEANUP(struct spool *, spool_free)

/* The files in their order: spool_next(s, NULL) is the oldest; NULL at the end. */
struct spool_file *spool_next(const struct spool *s, const struct spool_file *f);
const char *spool_destination(const struct spool *s, const struct spool_file *f);

/* A place in the order, for a payload that has just come. */
uint64_t spool_take_seq(struct spool *s);
/*
 * Writes a payload down at its place, to be made safe by spool_commit(), at most SPOOL_BATCH at a
 * time; its file is busy until then. -EFBIG: beyond the limits by itself; another -errno: it
 * cannot be written; this is logged once until a write succeeds again.
 */
int spool_write(struct spool *s, uint64_t seq, const struct spool_item *item, void *owner,
		struct spool_file **ret);
#define SPOOL_BATCH 16
/* When this returns 0, all that was written is safe on disk. -errno: all of it is taken back, and
 * its files are no more. */
int spool_commit(struct spool *s);
/* Whether the limits allow what there is. */
bool spool_fits(const struct spool *s);
/* Gives up the oldest files beyond the limits, but not newest. */
void spool_keep_limits(struct spool *s, struct spool_file *newest);
/*
 * Reads the body of f; *ret (f->n_body bytes) is the caller's to free. -EBADMSG: it was damaged or
 * gone, and lost() has been called: f is no more. Another -errno: try again later.
 */
int spool_get(struct spool *s, struct spool_file *f, uint8_t **ret);
/* f is settled: deletes it. */
void spool_remove(struct spool *s, struct spool_file *f);

/* Gives up what the limits do not allow. */
void spool_trim(struct spool *s, uint64_t now);
/* When spool_trim() has something to do by age (CLOCK_MONOTONIC); UINT64_MAX: never. */
uint64_t spool_deadline(const struct spool *s);

/* Whether spool_write() is worth trying: after a failure, not again for some seconds. */
bool spool_usable(const struct spool *s, uint64_t now);
/* When it is again; 0 when it is. */
uint64_t spool_retry_ns(const struct spool *s);
/* Try at the next occasion, whatever happened before. */
void spool_retry_now(struct spool *s);

const char *spool_path(const struct spool *s);
