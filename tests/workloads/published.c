/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishes a process context as OTEP 4719 says, and works:
 *
 *	published KEY=VALUE... [-- KEY=VALUE...]
 *
 * A VALUE is a text, "@double NUMBER" or "@list TEXT,TEXT...". The attributes behind -- are
 * published at SIGUSR1, instead of the first ones. It says "published"
 * each time. With nothing before -- it publishes nothing until then.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../unit/context-publisher.h"
#include "common.h"

static volatile sig_atomic_t again;

static void on_signal(int number)
{
	again = 1;
}

/* Attributes for readers of the context, not of the resource. */
static bool is_for_readers(const char *pair)
{
	return strncmp(pair, "threadlocal.", 12) == 0;
}

/* "@double NUMBER" or "@list TEXT,TEXT..."; may be changed. */
static uint8_t *put_other(uint8_t *to, const char *key, char *value, uint8_t *both)
{
	uint8_t list[2048], item[1024], *at = list;
	double number;

	if (strncmp(value, "@double ", 8) == 0) {
		/* A fixed64, 9 bytes with its tag. */
		number = strtod(value + 8, NULL);
		at = published_put(both, 1, key, strlen(key));
		*at++ = 2 << 3 | 2;
		*at++ = 9;
		*at++ = 4 << 3 | 1;
		memcpy(at, &number, sizeof(number));
		return published_put(to, 1, both, (size_t)(at - both) + sizeof(number));
	}
	for (char *text = strtok(value + 6, ","); text; text = strtok(NULL, ","))
		at = published_put(at, 1, item,
				   (size_t)(published_put(item, 1, text, strlen(text)) - item));
	return published_put_pair(to, 1, key, 5, list, (size_t)(at - list), both);
}

/* A KeyValue, as an attribute of a Resource or of the context. */
static uint8_t *put_attribute(uint8_t *to, const char *pair)
{
	static uint8_t both[8192];
	const char *equals = strchr(pair, '=');
	char key[256];

	if (!equals)
		return to;
	(void)snprintf(key, sizeof(key), "%.*s", (int)(equals - pair), pair);
	if (equals[1] == '@')
		return put_other(to, key, strdup(equals + 1), both);
	return published_put_pair(to, is_for_readers(pair) ? 2 : 1, key, 1, equals + 1,
				  strlen(equals + 1), both);
}

static void publish(char **pairs, int n)
{
	static struct published_header *header;
	static uint8_t payloads[2][16384], resource[16000];
	static int side;
	uint8_t *at = resource;
	struct timespec t;

	if (!header)
		header = published_map(1);
	for (int i = 0; i < n; i++)
		at = is_for_readers(pairs[i]) ? at : put_attribute(at, pairs[i]);
	side = !side;
	at = published_put(payloads[side], 1, resource, (size_t)(at - resource));
	for (int i = 0; i < n; i++)
		at = is_for_readers(pairs[i]) ? put_attribute(at, pairs[i]) : at;
	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	if (!header)
		exit(77);
	published_set(header, payloads[side], (uint32_t)(at - payloads[side]),
		      (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec);
	(void)puts("published");
	(void)fflush(stdout);
}

KNOWN void published_work(void)
{
	SPIN(SPIN_SHORT);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	int n = 1;

	(void)signal(SIGUSR1, on_signal);
	while (n < argc && strcmp(argv[n], "--") != 0)
		n++;
	if (n > 1)
		publish(argv + 1, n - 1);
	for (;;) {
		published_work();
		rest(10);
		if (again && n < argc)
			publish(argv + n + 1, argc - n - 1);
		again = 0;
	}
}
