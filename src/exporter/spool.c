/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory and its limits. Files are kept in the order in which payloads came. Each start
 * makes the list in memory again from the headers; bodies are checked when they are read to be
 * sent. A damaged file gets another suffix, so that the operator can examine it: a few are kept,
 * and they are the first to go when room is needed.
 *
 * Ages count on the monotonic clock from the moment a payload came, or from the start of this
 * process less the time that passed before it by the wall clock. So setting the clock while we run
 * makes nothing expire.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/exporter/spool-file.h"
#include "src/exporter/spool.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/disk-reserve.h"
#include "util/ensure.h"
#include "util/log.h"
#include "util/text.h"

#define NAMES_MAX (4 * SPOOL_MAX_FILES) /* read from the directory at the start */
#define BAD_MAX	  4
#define RETRY_NS  (10 * NSEC_PER_SEC)

#define DESTINATION_NAMES_BYTES (64u << 10)

struct seqs {
	uint64_t *items;
	uint32_t n, cap, max;
}; /* an ARRAY() that has a name */

struct bad_file {
	uint64_t seq, bytes;
};

struct spool {
	int dir_fd;
	char *path;
	struct spool_limits limits;
	spool_lost_fn lost;
	void *ctx;
	TAILQ_HEAD(spool_files, spool_file) files;
	uint64_t bytes, next_seq;
	uint32_t n_files;
	struct strtab names; /* of destinations */
	struct bad_file bad[BAD_MAX];
	uint32_t n_bad, n_corrupt;
	struct spool_file *written[SPOOL_BATCH]; /* and not safe yet */
	uint32_t n_written;
	bool failing, refused; /* refused: one behind those written could not be */
	uint64_t retry_ns;     /* while failing: not before */
	struct log_ratelimit corrupt;
};

struct spool_file *spool_next(const struct spool *s, const struct spool_file *f)
{
	return f ? TAILQ_NEXT(f, link) : TAILQ_FIRST(&s->files);
}

const char *spool_destination(const struct spool *s, const struct spool_file *f)
{
	return strtab_get(&s->names, f->destination);
}

const char *spool_path(const struct spool *s)
{
	return s->path;
}

uint64_t spool_take_seq(struct spool *s)
{
	return s->next_seq++;
}

/* --- the list ------------------------------------------------------------------------------ */

static void insert(struct spool *s, struct spool_file *f)
{
	struct spool_file *before = TAILQ_LAST(&s->files, spool_files);

	while (before && before->seq > f->seq)
		before = TAILQ_PREV(before, spool_files, link);
	if (before)
		TAILQ_INSERT_AFTER(&s->files, before, f, link);
	else
		TAILQ_INSERT_HEAD(&s->files, f, link);
	s->n_files++;
	s->bytes += f->bytes;
}

static void forget(struct spool *s, struct spool_file *f)
{
	TAILQ_REMOVE(&s->files, f, link);
	s->n_files--;
	s->bytes -= f->bytes;
	free(f);
}

static void unlink_seq(struct spool *s, uint64_t seq, const char *suffix)
{
	char name[SPOOL_NAME_MAX];

	(void)unlinkat(s->dir_fd, spool_file_name(name, seq, suffix), 0);
}

void spool_remove(struct spool *s, struct spool_file *f)
{
	unlink_seq(s, f->seq, SPOOL_SUFFIX);
	forget(s, f);
}

static void give_up(struct spool *s, struct spool_file *f, enum spool_loss why)
{
	s->lost(s->ctx, f, why);
	if (why == SPOOL_LOSS_CORRUPT)
		forget(s, f);
	else
		spool_remove(s, f);
}

/* --- damaged files ------------------------------------------------------------------------- */

static void remove_bad(struct spool *s, uint32_t i)
{
	unlink_seq(s, s->bad[i].seq, SPOOL_SUFFIX_BAD);
	s->bytes -= s->bad[i].bytes;
	s->bad[i] = s->bad[--s->n_bad];
}

static void add_bad(struct spool *s, uint64_t seq, uint64_t bytes)
{
	uint32_t oldest = 0;

	for (uint32_t i = 1; i < s->n_bad; i++) {
		if (s->bad[i].seq < s->bad[oldest].seq)
			oldest = i;
	}
	if (s->n_bad == BAD_MAX)
		remove_bad(s, oldest);
	s->bad[s->n_bad++] = (struct bad_file){seq, bytes};
	s->bytes += bytes;
}

static void set_aside(struct spool *s, uint64_t seq)
{
	char name[SPOOL_NAME_MAX], bad[SPOOL_NAME_MAX];
	struct stat st;

	spool_file_name(name, seq, SPOOL_SUFFIX);
	spool_file_name(bad, seq, SPOOL_SUFFIX_BAD);
	s->n_corrupt++;
	if (log_ratelimit(&s->corrupt, 60))
		log_warning("spool: %s/%s is damaged; it is set aside as %s and not sent", s->path,
			    name, bad);
	if (fstatat(s->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    renameat(s->dir_fd, name, s->dir_fd, bad) < 0)
		(void)unlinkat(s->dir_fd, name, 0);
	else
		add_bad(s, seq, (uint64_t)st.st_size);
}

/* --- limits -------------------------------------------------------------------------------- */

static struct spool_file *oldest_idle(const struct spool *s)
{
	struct spool_file *f = TAILQ_FIRST(&s->files);

	while (f && f->busy)
		f = TAILQ_NEXT(f, link);
	return f;
}

bool spool_fits(const struct spool *s)
{
	return s->bytes <= s->limits.max_bytes && s->n_files <= s->limits.max_files;
}

static void keep_limits(struct spool *s)
{
	struct spool_file *f;

	while (!spool_fits(s) && s->n_bad > 0)
		remove_bad(s, 0);
	while (!spool_fits(s) && (f = oldest_idle(s)))
		give_up(s, f, SPOOL_LOSS_FULL);
}

static bool is_old(const struct spool *s, const struct spool_file *f, uint64_t now)
{
	return s->limits.max_age_ns && (int64_t)now - f->since_ns >= (int64_t)s->limits.max_age_ns;
}

void spool_trim(struct spool *s, uint64_t now)
{
	struct spool_file *f, *next;

	for (f = TAILQ_FIRST(&s->files); f && is_old(s, f, now); f = next) {
		next = TAILQ_NEXT(f, link);
		if (!f->busy)
			give_up(s, f, SPOOL_LOSS_AGE);
	}
	keep_limits(s);
}

uint64_t spool_deadline(const struct spool *s)
{
	const struct spool_file *f = oldest_idle(s);
	int64_t at;

	if (!f || !s->limits.max_age_ns)
		return UINT64_MAX;
	at = f->since_ns + (int64_t)s->limits.max_age_ns;
	return at > 0 ? (uint64_t)at : 0;
}

/* --- writing and reading ------------------------------------------------------------------- */

bool spool_usable(const struct spool *s, uint64_t now)
{
	return !s->failing || now >= s->retry_ns;
}

uint64_t spool_retry_ns(const struct spool *s)
{
	return s->failing ? s->retry_ns : 0;
}

void spool_retry_now(struct spool *s)
{
	s->retry_ns = 0;
}

/* One line when it begins and one when it ends. */
static int note_outcome(struct spool *s, int r)
{
	if (r < 0) {
		if (!s->failing)
			log_warning("spool: %s cannot be written: %s; unsent profiles wait in "
				    "memory (max_queue_size)",
				    s->path,
				    r == -ENOSPC ? "only the reserve of free space is left"
						 : strerror(-r));
		s->failing = true;
		s->retry_ns = clock_monotonic_ns() + RETRY_NS;
	} else if (s->failing) {
		log_info("spool: %s can be written again", s->path);
		s->failing = false;
	}
	return r;
}

static int note_refused(struct spool *s, int r)
{
	s->refused = s->n_written > 0;
	return note_outcome(s, r);
}

static struct spool_file *file_of(struct spool *s, uint64_t seq, const struct spool_header *h)
{
	struct spool_file *f = calloc(1, sizeof(*f));
	uint64_t now = clock_monotonic_ns(), wall = clock_realtime_ns();
	uint64_t age = wall > h->time_unix_ns ? wall - h->time_unix_ns : 0;

	if (!f)
		return NULL;
	*f = (struct spool_file){
		.seq = seq,
		.id = h->id,
		.n_samples = h->n_samples,
		.n_body = h->n_body,
		.bytes = spool_file_bytes(h),
		.since_ns = (int64_t)now - (int64_t)age,
		.crc = h->crc_body,
		.n_halvings = h->n_halvings,
		.destination = strtab_put(&s->names, h->destination),
		.encoding = h->encoding,
	};
	return f;
}

int spool_write(struct spool *s, uint64_t seq, const struct spool_item *item, void *owner,
		struct spool_file **ret)
{
	struct spool_header h = {
		.id = item->id,
		.n_samples = item->n_samples,
		.time_unix_ns = item->time_unix_ns,
		.n_body = item->n_body,
		.crc_body = spool_file_crc(item->body, item->n_body),
		.n_halvings = item->n_halvings,
		.encoding = item->encoding,
	};
	struct spool_file *f;
	int r;

	ensure(s->n_written < SPOOL_BATCH);
	(void)snprintf(h.destination, sizeof(h.destination), "%s", item->destination);
	if (spool_file_bytes(&h) > s->limits.max_bytes)
		return -EFBIG;
	f = file_of(s, seq, &h);
	if (!f)
		return note_refused(s, -ENOMEM);
	r = disk_reserve_check(s->dir_fd, f->bytes);
	if (r == 0)
		r = spool_file_write(s->dir_fd, seq, &h, item->body);
	if (r < 0) {
		free(f);
		return note_refused(s, r);
	}
	f->owner = owner;
	f->busy = true;
	insert(s, f);
	s->written[s->n_written++] = f;
	*ret = f;
	return 0;
}

/* If the flush fails, nobody can say which files would be there after a power cut. */
int spool_commit(struct spool *s)
{
	int r = 0;

	if (s->n_written == 0)
		return 0;
	if (fsync(s->dir_fd) < 0)
		r = -errno;
	for (uint32_t i = 0; i < s->n_written; i++) {
		s->written[i]->busy = false;
		if (r < 0)
			spool_remove(s, s->written[i]);
	}
	s->n_written = 0;
	/* If one behind them was refused, it is not so that the disk can be written again. */
	if (r < 0 || !s->refused)
		r = note_outcome(s, r);
	s->refused = false;
	return r;
}

/* Older ones go only once the new one is safe: a disk that cannot be written costs nothing that is
 * on it. */
void spool_keep_limits(struct spool *s, struct spool_file *newest)
{
	bool busy = newest->busy;

	newest->busy = true;
	keep_limits(s);
	newest->busy = busy;
}

int spool_get(struct spool *s, struct spool_file *f, uint8_t **ret)
{
	struct spool_header h;
	uint8_t *body = NULL;
	int r = spool_file_read(s->dir_fd, f->seq, &h, &body);

	if (r == 0 && (h.n_body != f->n_body || h.crc_body != f->crc)) {
		free(body); /* whole, but another one than at the start */
		r = -EBADMSG;
	}
	if (r == -EBADMSG || r == -ENOENT) {
		if (r == -EBADMSG)
			set_aside(s, f->seq);
		give_up(s, f, SPOOL_LOSS_CORRUPT);
		return -EBADMSG;
	}
	if (r < 0)
		return r;
	*ret = body;
	return 0;
}

/* --- the start ----------------------------------------------------------------------------- */

static int by_seq(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* A name of the directory: what is no file to send is dealt with here. */
static void take_name(struct spool *s, struct seqs *seqs, const char *name, uint32_t *n_left_out)
{
	uint64_t seq, *item;
	struct stat st;

	if (spool_file_parse_name(name, SPOOL_SUFFIX_TEMPORARY, &seq)) {
		(void)unlinkat(s->dir_fd, name, 0);
	} else if (spool_file_parse_name(name, SPOOL_SUFFIX_BAD, &seq)) {
		if (fstatat(s->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			add_bad(s, seq, (uint64_t)st.st_size);
	} else if (spool_file_parse_name(name, SPOOL_SUFFIX, &seq)) {
		item = array_push(seqs);
		if (item)
			*item = seq;
		else
			++*n_left_out;
	} else {
		return; /* not ours */
	}
	if (seq >= s->next_seq)
		s->next_seq = seq + 1;
}

static int read_names(struct spool *s, struct seqs *seqs)
{
	int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	uint32_t n_left_out = 0;
	struct dirent *e;

	if (!d) {
		int r = -errno;

		(void)close_fd(fd);
		return r;
	}
	while ((e = readdir(d)))
		take_name(s, seqs, e->d_name, &n_left_out);
	(void)closedir(d);
	if (n_left_out > 0)
		log_warning("spool: %s holds %" PRIu32
			    " files more than can be looked at; they are "
			    "left for the next start",
			    s->path, n_left_out);
	return 0;
}

static void load_files(struct spool *s, const struct seqs *seqs)
{
	for (uint32_t i = 0; i < seqs->n; i++) {
		struct spool_header h;
		int r = spool_file_read(s->dir_fd, seqs->items[i], &h, NULL);
		struct spool_file *f = r == 0 ? file_of(s, seqs->items[i], &h) : NULL;

		if (r == -EBADMSG)
			set_aside(s, seqs->items[i]);
		else if (r < 0)
			log_warning("spool: a file in %s cannot be read: %s", s->path,
				    strerror(-r));
		if (f)
			insert(s, f);
	}
}

static void say_what_is_left(const struct spool *s)
{
	char bytes[32];

	if (s->n_files > 0)
		log_info("spool: %" PRIu32 " payload(s) of an earlier run wait in %s (%s)",
			 s->n_files, s->path, text_format_bytes(bytes, sizeof(bytes), s->bytes));
	if (s->n_corrupt > 1)
		log_warning("spool: %" PRIu32 " files of %s are damaged", s->n_corrupt, s->path);
}

int spool_open(struct spool **ret, int dir_fd, const char *path, const struct spool_limits *limits,
	       spool_lost_fn lost, void *ctx)
{
	_cleanup_close_ int owned = dir_fd;
	_cleanup_(spool_freep) struct spool *s = calloc(1, sizeof(*s));
	struct seqs seqs = ARRAY_INIT(NAMES_MAX);
	int r;

	if (!s)
		return -ENOMEM;
	s->dir_fd = TAKE_FD(owned);
	TAILQ_INIT(&s->files);
	strtab_init(&s->names, DESTINATION_NAMES_BYTES);
	s->path = strdup(path);
	if (!s->path)
		return -ENOMEM;
	s->limits = *limits;
	if (s->limits.max_files == 0)
		s->limits.max_files = SPOOL_MAX_FILES;
	s->lost = lost;
	s->ctx = ctx;
	s->next_seq = 1;
	r = read_names(s, &seqs);
	if (r == 0) {
		if (seqs.n > 0)
			qsort(seqs.items, seqs.n, sizeof(*seqs.items), by_seq);
		load_files(s, &seqs);
		say_what_is_left(s);
	}
	array_deinit(&seqs);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

struct spool *spool_free(struct spool *s)
{
	struct spool_file *f;

	if (!s)
		return NULL;
	while ((f = TAILQ_FIRST(&s->files)))
		forget(s, f);
	strtab_deinit(&s->names);
	s->dir_fd = close_fd(s->dir_fd);
	free(s->path);
	free(s);
	return NULL;
}
