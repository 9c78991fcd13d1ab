/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "src/reader/constants.h"
#include "util/hash.h"

static size_t place_of(uint64_t address)
{
	return hash_u64(address) % CONSTANTS;
}

const uint8_t *constants_find(const struct constants *c, uint64_t address, size_t n)
{
	const struct constant *item = &c->items[place_of(address)];

	return address && item->address == address && n <= item->n ? item->bytes : NULL;
}

void constants_put(struct constants *c, uint64_t address, const void *bytes, size_t n)
{
	struct constant *item = &c->items[place_of(address)];

	if (n > sizeof(item->bytes))
		return;
	item->address = address;
	item->n = n;
	memcpy(item->bytes, bytes, n);
}
