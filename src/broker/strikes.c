/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "src/broker/strikes.h"
#include "src/process/status-page.h"

static struct strike *find(struct strikes *s, enum peer who, const struct file_identity *file)
{
	for (uint32_t i = 0; i < s->n; i++) {
		struct strike *k = &s->items[i];

		if (k->who == who && file_identity_equal(&k->file.identity, file))
			return k;
	}
	return NULL;
}

static struct strike *add(struct strikes *s, enum peer who)
{
	struct strike *k = &s->items[s->next];

	s->next = (s->next + 1) % STRIKES_MAX;
	if (s->n < STRIKES_MAX)
		s->n++;
	*k = (struct strike){.who = who};
	return k;
}

enum strike_outcome strikes_add(struct strikes *s, enum peer who, const struct status_file *file,
				bool sure, bool took_too_long, uint64_t now)
{
	struct strike *k = find(s, who, &file->identity);
	uint32_t doublings;

	if (!k)
		k = add(s, who);
	if (k->until_ns)
		return STRIKE_BEFORE;
	/* A death long ago does not count any more. */
	if (k->n && now - k->struck_ns > s->period_ns)
		k->n = 0;
	k->file = *file;
	k->took_too_long = took_too_long;
	k->struck_ns = now;
	if (++k->n < 2 && !sure)
		return STRIKE_COUNTED;
	doublings = k->n_aside < STRIKES_MAX_DOUBLINGS ? k->n_aside : STRIKES_MAX_DOUBLINGS;
	k->n_aside++;
	k->until_ns = now + (s->period_ns << doublings);
	return STRIKE_ASIDE;
}

const struct strike *strikes_find(const struct strikes *s, enum peer who,
				  const struct file_identity *file)
{
	const struct strike *k = find((struct strikes *)s, who, file);

	return k && k->until_ns ? k : NULL;
}

const struct strike *strikes_next(const struct strikes *s, uint32_t *at)
{
	while (*at < s->n) {
		const struct strike *k = &s->items[(*at)++];

		if (k->until_ns)
			return k;
	}
	return NULL;
}

const struct strike *strikes_take_back(struct strikes *s, uint64_t now)
{
	for (uint32_t i = 0; i < s->n; i++) {
		struct strike *k = &s->items[i];

		if (!k->until_ns || k->until_ns > now)
			continue;
		k->until_ns = 0;
		k->n = 0;
		return k;
	}
	return NULL;
}
